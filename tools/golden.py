"""The golden corpus: what Sfumato answers and writes for small tables, recorded once and compared after every change.

python -m tools.golden compare                  # all; exit code 1 and a list of differences if anything is different
python -m tools.golden compare cuts             # one system, or "interfaces"; several may be named
python -m tools.golden compare lattice/units    # one case
python -m tools.golden compare --quick cuts     # the quick case of a system
python -m tools.golden compare --threads=2      # with that many threads, on which nothing may depend
python -m tools.golden record [cuts …]          # write the corpus down; the commit that does so says why

Sfumato is used from outside: by its command line, in this process, because starting 500 processes takes minutes. Data
files in CSV are compared to the byte, other formats by what they hold, figures to 1e-12 (figures that come from an
iterative solver to 1e-6), keys of JSON exactly. Texts for people are not compared, nor times, versions and checksums of
pages. A digest of a file that the case has is replaced by the name of that file, so every digest is checked as well.

What publishing takes from the operating system is the same in every run: `os.urandom` is replaced. The order of the
released rows follows from it; a file with the same rows in another order is reported as that.

Not compared to the digit: matrices that a solver found, and what is drawn with them (the processor decides about the
last digits of a matrix, and a digit can decide about a draw). Files drawn with matrices in closed form are.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools.golden_cases import POLICY, WHY, Case, cases, toml

# The only inner names, beside the command line: where the description of the workbench's interface comes from.
WEB_APP, WEB_PLACES = ("sfumato.web.app", "make_app"), ("sfumato.web.workspace", "Places")

CORPUS = Path(__file__).parents[1] / "tests" / "golden"
INTERFACES = "interfaces"
SYSTEMS = ("lattice", "cuts", "local", "cells", "channel", "groups")
CLOSE, SOLVED = 1e-12, 1e-6
MANY = 100  # entries of a list of figures that are all kept
LONG = 160  # characters of a text, and of a list without figures, that are kept as they are
TEXT, VARIES, DRAWN = "<text>", "<varies>", "<drawn>"
TEXTS = {"citation", "counted", "description", "designed_for", "done", "expected", "how", "meaning", "note", "notes"}
TEXTS |= {"reason", "says", "sentence", "sentences", "short", "summary", "title", "try", "warnings", "what", "words"}
VARYING = {"checksum", "created", "salt", "seal", "seconds", "stages", "templates", "versions"}
OF_A_DRAW = {"agreement", "expected_correct_matches", "matrix", "observed", "outputs", "reports"}
OF_A_DRAW |= {"classes", "smallest", "unique", "unique_share"}  # which rows are alike, of those that were drawn
Answers = dict[str, Any]


def compute(case: Case, folder: Path, threads: int | None = None) -> Answers:
    """All answers and files of a case, in a folder that is empty."""
    sections = case.table(folder)
    if threads:
        sections["engine_options"] = {"threads": threads}
    sections = {**sections, "policy": POLICY, **{n: sections.get(n, {}) | more for n, more in case.sections.items()}}
    (folder / "run.toml").write_text(toml(sections), "utf-8")
    answers: Answers = {}

    def ask(name: str, *words: str) -> Any:
        answers[name] = answer = command(*words)
        return answer["answer"]

    if case.audit:
        ask("audit", "audit", "--run", "run.toml")
    more = ("--threads", str(threads)) if threads and case.system in ("lattice", "cuts") else ()
    found = ask("search", "search", "run.toml", "-o", "front", *more) if case.search else None
    if found and "points" in found:
        middle = str(len(found["points"]) // 2)
        for words in case.choices:
            ask(" ".join(words), words[0], "front", *words[1:])
        ask("pick --point", "pick", "front", "--point", middle)
        if case.released:
            to_release = ("publish", "front", "--point", middle, "-o", "release", *case.publish)
            ask("publish", *to_release, *accepting("k", "attacks"))
            ask("verify", "verify", "release", "--source", "run.toml")
    for words in case.more:
        ask(" ".join(word for word in words if word not in ("run.toml", "--run") and WHY not in word), *words)
    answers |= {f"file {name}": files for name, files in written(folder).items()}
    digests = {digest(path): f"<sha256 of {path.relative_to(folder)}>" for path in sorted(all_files(folder))[::-1]}
    return {name: plain(answer, name, folder, digests, drawn=case.solver) for name, answer in answers.items()}


def accepting(*rules: str) -> list[str]:
    return [word for rule in rules for word in ("--accept", f"{rule}={WHY}")]


def command(*words: str) -> Answers:
    """The exit code of a command, and the JSON it prints."""
    main = importlib.import_module("sfumato.cli").main
    out, notes = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
        try:
            main([*words, "--json"])
        except SystemExit as ended:
            code = ended.code
    text = out.getvalue()
    return {"code": code, "answer": json.loads(text) if text.strip() else None}


def all_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] != "state"]


def written(folder: Path) -> Answers:
    """What is in every file that was written; of pages, only that they are there."""
    made = [path for path in all_files(folder) if path.parent != folder or path.name in ("made.json", "inspected.toml")]
    contents = {}
    for path in sorted(made):
        name = str(path.relative_to(folder))
        if not name.startswith("hierarchies/"):
            contents[name] = content(path)
    return contents


def content(path: Path) -> Any:
    match path.suffix:
        case ".json":
            return json.loads(path.read_text("utf-8"))
        case ".toml":
            return tomllib.loads(path.read_text("utf-8"))
        case ".csv" if path.name == "data.csv":
            return csv_content(path)
        case ".csv":
            return path.read_text("utf-8")
        case ".xml":
            return [" ".join(xml_line(node)) for node in ElementTree.parse(path).iter()]
        case ".parquet":
            return parquet_content(path)
        case ".sav":
            return sav_content(path)
    return "<a file>"  # a page, a seal


def xml_line(node: ElementTree.Element) -> Iterator[str]:
    """An element: its name, its attributes, and its text if that is one word."""
    yield node.tag.rpartition("}")[2]
    for name, value in node.attrib.items():
        yield f"{name.rpartition('}')[2]}={VARIES if (node.tag[-8:], name) == ('software', 'version') else value}"
    text = (node.text or "").strip()
    yield TEXT if " " in text or text.endswith(".") else text


def csv_content(path: Path) -> Answers:
    """A data file: its digest, that of its rows in any order, and its first rows."""
    data = path.read_bytes()
    head, *rows = data.splitlines(keepends=True)
    return {
        # With words before them, because a digest alone is replaced by the name of its file.
        "bytes": f"sha256 {hashlib.sha256(data).hexdigest()}",
        "sorted rows": f"sha256 {hashlib.sha256(head + b''.join(sorted(rows))).hexdigest()}",
        "rows": len(rows),
        "head": [line.decode("utf-8").rstrip() for line in (head, *rows[:3])],
    }


def parquet_content(path: Path) -> Answers:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return {"types": {field.name: str(field.type) for field in table.schema}, "columns": columns}


def sav_content(path: Path) -> Answers:
    import pyreadstat

    frame, about = pyreadstat.read_sav(path, user_missing=True, dates_as_pandas_datetime=False)
    columns = {name: [None if each != each else each for each in frame[name].tolist()] for name in frame.columns}
    labels = {
        name: {str(code): label for code, label in of.items()} for name, of in about.variable_value_labels.items()
    }
    more = {"names": about.column_names_to_labels, "labels": labels, "missing": about.missing_ranges}
    return {"types": about.readstat_variable_types, "columns": columns, **more, "measure": about.variable_measure}


def plain(value: Any, key: str, folder: Path, digests: dict[str, str], *, drawn: bool) -> Any:
    """A value as it is recorded: without texts, times, paths of this run, and what cannot be compared."""
    if isinstance(value, dict):
        if drawn and "sorted rows" in value and not key.startswith("file disguised"):
            return {"rows": value["rows"], "head": value["head"][0]}
        return {name: plain(each, name, folder, digests, drawn=drawn) for name, each in value.items()}
    if key in VARYING:
        return VARIES
    if drawn and key in OF_A_DRAW:
        return DRAWN
    if isinstance(value, list):
        values = [plain(each, key, folder, digests, drawn=drawn) for each in value]
        if len(values) > MANY and figures_in(values):
            return {"entries": len(values)} | summary(values)
        text = json.dumps(values, ensure_ascii=False, sort_keys=True)
        return (
            values
            if len(text) <= LONG or key == "head" or figures_in(values) or TEXT in text
            else shortened(text, len(values))
        )
    if isinstance(value, str):
        if value.startswith("version = 1\n"):  # a run file inside a manifest
            return plain(tomllib.loads(value), "", folder, digests, drawn=drawn)
        value = digests.get(value, value).replace(str(folder.resolve()), "FOLDER").replace(str(folder), "FOLDER")
        prose = value.endswith(".") or (" " in value and (key in TEXTS or ". " in value or ": " in value))
        return TEXT if prose else value if len(value) <= LONG else shortened(value, len(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)  # 2 and 2.0 are the same figure
    if isinstance(value, float):
        return float(f"{value:.15g}")
    return value


def figures_in(values: Any) -> bool:
    """Whether there are figures that need not agree to the last digit."""
    if isinstance(values, dict):
        return any(figures_in(each) for each in values.values())
    if isinstance(values, list):
        return any(figures_in(each) for each in values)
    return isinstance(values, float)


def summary(values: list[Any]) -> Answers:
    """Of a long list of figures, what changes if one of them or their order does: by key, so that it can be read."""
    columns: dict[str, list[float]] = {}
    for each in values:
        for name, figure in (each if isinstance(each, dict) else {"figures": each}).items():
            if isinstance(figure, int | float):
                columns.setdefault(name, []).append(figure)
    return {
        name: [len(all_), min(all_), max(all_), math.fsum(all_), math.fsum(n * each for n, each in enumerate(all_))]
        for name, all_ in columns.items()
    }


def shortened(text: str, count: int) -> str:
    return f"<{count} values, sha256 {hashlib.sha256(text.encode()).hexdigest()[:24]}>"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def interfaces(folder: Path) -> Answers:
    """What does not depend on a table: the measures, the commands, the interface of the workbench."""
    answers = {"measures": plain(command("measures"), "", folder, {}, drawn=False)}
    typed = importlib.import_module("typer.main").get_command(importlib.import_module("sfumato.cli").application())
    answers["commands"] = dict(options(typed, "sfumato"))
    places = getattr(importlib.import_module(WEB_PLACES[0]), WEB_PLACES[1])(folder)
    app = getattr(importlib.import_module(WEB_APP[0]), WEB_APP[1])(places)
    answers["openapi"] = resolved(json.loads(json.dumps(app.openapi())))
    return answers


def options(given: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The parameters of every command."""
    for name, each in sorted(getattr(given, "commands", {}).items()):
        yield from options(each, f"{path} {name}")
    if not hasattr(given, "commands"):
        yield (
            path,
            {
                " ".join([*one.opts, *one.secondary_opts]): [one.required, one.multiple, one.nargs, str(one.default)]
                for one in given.params
            },
        )


def resolved(document: Any) -> Any:
    """A description of an interface without words, and with its schemas numbered: their names are those of classes."""
    numbers: dict[str, int] = {}
    schemas = document["components"].pop("schemas")

    def walk(value: Any, under: str = "") -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return {"$ref": f"schema {numbers.setdefault(value['$ref'].rpartition('/')[2], len(numbers))}"}
            words = ("title", "description", "summary", "operationId", "tags") if under != "properties" else ()
            return {name: walk(each, name) for name, each in sorted(value.items()) if name not in words}
        if isinstance(value, list):
            return [walk(each) for each in value]
        return value

    result = walk(document)
    result["info"] = VARIES
    done: dict[str, Any] = {}
    while len(done) < len(numbers):
        name = list(numbers)[len(done)]
        done[f"schema {len(done)}"] = walk(schemas[name])
    return result | {"schemas": done}


def differences(recorded: Any, computed: Any, path: str = "", *, close: float = CLOSE) -> Iterator[str]:
    """Every difference: where it is, what is recorded and what was computed."""
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for name in recorded.keys() | computed.keys():
            here = f"{path} > {name}" if path else str(name)
            if name not in computed:
                yield f"{here}: recorded {brief(recorded[name])}, computed nothing"
            elif name not in recorded:
                yield f"{here}: recorded nothing, computed {brief(computed[name])}"
            else:
                yield from differences(recorded[name], computed[name], here, close=close)
    elif isinstance(recorded, list) and isinstance(computed, list):
        if len(recorded) != len(computed):
            yield f"{path}: recorded {len(recorded)} entries, computed {len(computed)}"
        for number, (one, two) in enumerate(zip(recorded, computed, strict=False)):
            yield from differences(one, two, f"{path}[{number}]", close=close)
    elif not same(recorded, computed, close):
        yield f"{path}: recorded {brief(recorded)}, computed {brief(computed)}"


def same(recorded: Any, computed: Any, close: float) -> bool:
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in (recorded, computed)):
        return type(recorded) is type(computed) and recorded == computed
    least = close if close == SOLVED else 1e-15  # a figure that is zero but for rounding
    return math.isclose(recorded, computed, rel_tol=close, abs_tol=least)


def brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def packed(value: Any, seen: dict[str, str], path: str) -> Any:
    """A value without what stands in the same file before: the path where it stands is written instead."""
    if not isinstance(value, dict | list):
        return value
    text = json.dumps(value, sort_keys=True)
    if len(text) > len(seen.get(text, path)) + 20:
        if text in seen:
            return {"<as>": seen[text]}
        seen[text] = path
    if isinstance(value, dict):
        return {name: packed(each, seen, f"{path}|{name}") for name, each in value.items()}
    return [packed(each, seen, f"{path}|{number}") for number, each in enumerate(value)]


def unpacked(value: Any, whole: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"<as>"}:
            found = whole
            for part in value["<as>"].split("|")[1:]:
                found = found[int(part)] if isinstance(found, list) else found[part]
            return unpacked(found, whole)
        return {name: unpacked(each, whole) for name, each in value.items()}
    return [unpacked(each, whole) for each in value] if isinstance(value, list) else value


def save(system: str, answers: dict[str, Answers]) -> None:
    """Write the corpus of a system: a line for each answer, so that a change of the file can be read."""
    CORPUS.mkdir(exist_ok=True)
    content = packed(answers, {}, "")
    parts = []
    for case, own in content.items():
        lines = [
            f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(each, ensure_ascii=False, separators=(',', ':'))}"
            for name, each in own.items()
        ]
        parts.append(f" {json.dumps(case)}: {{\n" + ",\n".join(lines) + "\n }")
    (CORPUS / f"{system}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def load(system: str) -> dict[str, Answers]:
    content = json.loads((CORPUS / f"{system}.json").read_text("utf-8"))
    loaded: dict[str, Answers] = unpacked(content, content)
    return loaded


@contextlib.contextmanager
def alone() -> Iterator[Path]:
    """An empty folder to work in, with a state folder of its own and the same randomness at every call.

    The bytes depend on their number alone, not on what was drawn before: code may draw in another order.
    """
    urandom, here = os.urandom, Path.cwd()
    state = os.environ.get("SFUMATO_STATE")
    with tempfile.TemporaryDirectory(prefix="golden") as name:
        os.environ["SFUMATO_STATE"] = str(Path(name) / "state")
        os.urandom = lambda size, /: hashlib.shake_256(b"golden %d" % size).digest(size)
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(here)
            os.urandom = urandom
            os.environ.pop("SFUMATO_STATE")
            if state is not None:
                os.environ["SFUMATO_STATE"] = state


def chosen(names: list[str], *, quick: bool) -> dict[str, list[Case | None]]:
    """The cases that were asked for, by system; None is the interfaces."""
    by_system: dict[str, list[Case | None]] = {}
    for case in cases():
        if (not names or case.system in names or case.title in names) and (case.quick or not quick):
            by_system.setdefault(case.system, []).append(case)
    if not names or INTERFACES in names:
        by_system[INTERFACES] = [None]
    return by_system


def main(words: list[str]) -> int:
    names = [word for word in words[1:] if not word.startswith("-")]
    known = {*SYSTEMS, INTERFACES, *(case.title for case in cases())}
    if not words or words[0] not in ("compare", "record") or not known.issuperset(names):
        print(__doc__)
        return 2
    record, verbose = words[0] == "record", "--verbose" in words
    threads = next((int(word.partition("=")[2]) for word in words if word.startswith("--threads=")), None)
    found = 0
    for system, which in chosen(names, quick="--quick" in words).items():
        recorded = load(system) if (CORPUS / f"{system}.json").exists() else {}
        for case in which:
            title = case.name if case else INTERFACES
            before = time.process_time()
            with alone() as folder:
                answers = compute(case, folder, threads) if case else interfaces(folder)
            answers = json.loads(json.dumps(answers))
            if verbose:
                print(f"{time.process_time() - before:6.2f} CPU s  {system}/{title}")
            if record:
                recorded[title] = answers
                continue
            close = SOLVED if case and case.solver else CLOSE
            for text in sorted(differences(recorded.get(title), answers, close=close)):
                if threads and ("engine_options" in text or "threads" in text):
                    continue  # the run files say so
                print(f"{system}/{title}: {text}")
                found += 1
        if record:
            order = [each.name for each in cases() if each.system == system] or [INTERFACES]
            save(system, {name: recorded[name] for name in order if name in recorded})
    print(f"{found} differences, {time.process_time():.1f} CPU s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
