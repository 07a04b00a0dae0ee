"""The folder of a release: what may leave in `public/`, everything else in `private/`.

Names are relative to the release folder, with `/` between their parts, as the manifest has them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.data.domain import MISSING, Domain
from sfumato.data.frequency import FrequencyTable
from sfumato.data.hierarchies import Hierarchy, load, save
from sfumato.data.hierarchies.hierarchy import flat
from sfumato.data.hierarchies.recipes import HierarchyFile
from sfumato.data.inputs import note_unsealed
from sfumato.data.json_files import read_json
from sfumato.data.settings import FOREIGN
from sfumato.data.source import Source
from sfumato.data.toml import toml_text
from sfumato.errors import HierarchyError, InputError
from sfumato.plans.plan import Plan
from sfumato.release.labels import Naming
from sfumato.release.recode import Recoded
from sfumato.study import Study, read

FORMAT = 2
PUBLIC = "public"
PRIVATE = "private"
MANIFEST = "private/manifest.json"
RUN = "private/run.toml"
FOLDER = "private/hierarchies"
INTERNAL = "private/internal.html"
DICTIONARY = ("public/dictionary.json", "public/dictionary.html")
EXTERNAL = "public/external.html"
OWN = tuple(Path(name).name for name in (*DICTIONARY, EXTERNAL))
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*$")


def data_name(source: Source, asked: str | None = None) -> str:
    """Where the released file stands: `data` with the ending of its format, unless a name is asked for.

    The name of the source is not repeated: it may say what the public need not know.
    """
    if asked is None:
        packed = source.format == "csv" and source.path.suffix == ".gz"
        return f"{PUBLIC}/data.{source.format}" + (".gz" if packed else "")
    if not PLAIN.fullmatch(asked) or asked.lower() in OWN:
        raise InputError(
            f'the file cannot be called "{asked}"',
            expected="letters, digits, '.', '_' and '-', and not the name of a report",
        )
    return f"{PUBLIC}/{asked}"


def make_parts(folder: Path) -> None:
    """The two parts of a new release folder: what may leave, and what only the publisher may read."""
    (folder / PUBLIC).mkdir()
    (folder / PRIVATE).mkdir(mode=0o700)


def hierarchy_names(columns: Iterable[str]) -> dict[str, str]:
    """A file for each column: its own name where every file system takes it, else its number.

    >>> hierarchy_names(["age", "Age"])
    {'age': 'private/hierarchies/age.csv', 'Age': 'private/hierarchies/column2.csv'}
    """
    found: dict[str, str] = {}
    for number, column in enumerate(columns, start=1):
        name = f"{FOLDER}/{column}.csv"
        taken = {other.lower() for other in found.values()}
        plain = PLAIN.match(column) and len(column) < 100 and not re.match(r"column\d+$", column.lower())
        found[column] = name if plain and name.lower() not in taken else f"{FOLDER}/column{number}.csv"
    return found


def kept_domains(study: Study, table: FrequencyTable) -> dict[str, Domain]:
    """The domains whose hierarchy a reader of the release needs: all quasi-identifiers, and others with one declared.

    A hierarchy that was built from the source could not be built again from the release.
    """
    domains = {domain.name: domain for domain in table.domains}
    values = [*table.sensitive.values(), *([table.label] if table.label else [])]
    return domains | {v.domain.name: v.domain for v in values if study.columns[v.domain.name].hierarchy is not None}


def trees_and_levels(study: Study, table: FrequencyTable, plan: Plan) -> tuple[dict[str, Hierarchy], dict[str, int]]:
    """The hierarchies that say what a plan does, and its level in each: a cut makes a hierarchy of its own."""
    trees = {name: domain.hierarchy for name, domain in kept_domains(study, table).items()}
    levels = {}
    for domain in table.domains:
        trees[domain.name], levels[domain.name] = plan.tree(domain)
    return trees, levels


def distances_of(table: FrequencyTable) -> dict[str, str]:
    """How far apart the values of each sensitive column are taken to be."""
    return {name: values.domain.distance for name, values in table.sensitive.items()}


def write_hierarchies(folder: Path, trees: Mapping[str, Hierarchy]) -> dict[str, str]:
    """Save each hierarchy, and see that it reads back the same. A column of missing values alone has none to save."""
    (folder / FOLDER).mkdir()
    names = hierarchy_names(trees)
    for column, tree in trees.items():
        paths = [path for path in tree.paths if path[0] != MISSING]
        if not paths:
            names.pop(column)
            continue
        plain = Hierarchy.from_paths(column, paths)
        save(plain, folder / names[column])
        if load(folder / names[column], name=column, header=True, separator=",").paths != plain.paths:
            raise HierarchyError(
                f"the hierarchy of {column} does not read back as it was written",
                expected="labels without blanks at their ends or line breaks",
                remedy="trim = true under [data], or mend the labels",
            )
    return names


def about_hierarchies(
    study: Study,
    folder: Path,
    trees: Mapping[str, Hierarchy],
    files: Mapping[str, str],
    names: Mapping[str, Naming],
) -> dict[str, dict[str, Any]]:
    """What the manifest says of each hierarchy: its file, digests of it and of the declared file (null: built).

    Files have no empty labels, so a leaf for missing values is told here instead of there. `named` tells how groups
    were named, for releases to come.
    """
    found = {}
    for column, hierarchy in trees.items():
        tree, name = study.columns[column].hierarchy, files.get(column)
        path = tree.path if isinstance(tree, HierarchyFile) else tree if isinstance(tree, str) else None
        found[column] = {
            "file": name,
            "sha256": digest(folder / name) if name else None,
            "declared_sha256": digest(study.folder / path) if path not in (None, FOREIGN) else None,
            "missing_leaf": MISSING in hierarchy.leaves,
            "named": names[column].as_dict() if column in names else None,
        }
    return found


def load_hierarchies(folder: Path, about: Mapping[str, Mapping[str, Any]]) -> dict[str, Hierarchy]:
    """The hierarchies of a pack, as they were when it was published."""
    found = {}
    for column, entry in about.items():
        if entry["file"] is None:
            found[column] = flat(column, [MISSING])
            continue
        path = (folder / str(entry["file"])).resolve()
        if not path.is_relative_to((folder / FOLDER).resolve()):
            raise HierarchyError(f"the hierarchy of {column} is outside the release", expected=f"a file in {FOLDER}")
        tree = load(path, name=column, header=True, separator=",")
        found[column] = tree.with_leaf(MISSING) if entry["missing_leaf"] else tree
    return found


def write_run_file(
    folder: Path, study: Study, distances: Mapping[str, str], recoded: Recoded, data: str, files: Mapping[str, str]
) -> Study:
    """The run file that reads the released file: the same roles, what was released, nothing left to detect."""
    dialect = recoded.source.dialect
    settings: dict[str, Any] = {"path": f"../{data}", "format": recoded.source.format}
    if dialect is not None:
        settings |= {"separator": dialect.separator, "quote": dialect.quote, "decimal": dialect.decimal}
        settings |= {"header": dialect.header}
    if (dialect is not None and not dialect.header) or clashing(recoded.names):
        settings["names"] = recoded.names
    settings |= {"trim": study.data.trim, "na": list(study.data.na), "missing": study.data.missing}
    settings["removed"] = recoded.suppressed
    released = {column.name for column in recoded.columns}
    columns: dict[str, dict[str, Any]] = {}
    for name, column in study.columns.items():
        if name in released:
            columns[name] = {"role": str(column.role)}
            if column.missing is not None:
                columns[name]["missing"] = column.missing
            distance = distances.get(name, column.distance)
            if distance is not None:  # the default depends on which values are there, so it is pinned
                columns[name]["distance"] = distance
            if name in files:
                path = Path(files[name]).relative_to(PRIVATE).as_posix()
                columns[name]["hierarchy"] = {"path": path, "separator": ",", "header": True}
    written: dict[str, Any] = {"version": 1, "data": settings, "columns": columns}
    if study.measures:
        written["measures"] = {name: dict(given) for name, given in study.measures.items()}
    if study.search.weights:
        written["search"] = {"weights": dict(study.search.weights)}
    (folder / RUN).write_text(toml_text(written), encoding="utf-8")
    return read(folder / RUN).model_copy(update={"engine": study.engine, "engine_options": study.engine_options})


def clashing(names: Sequence[str]) -> list[str]:
    """Names that differ from an earlier one only in case: the engine writes them with a number behind.

    >>> clashing(["Age", "age", "sex"])
    ['age']
    """
    lowered = [name.lower() for name in names]
    return [name for place, name in enumerate(names) if lowered[place] in lowered[:place]]


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 22):
            found.update(block)
    return found.hexdigest()


def checksum(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest's content, however it is laid out; its own entry apart."""
    content = {name: value for name, value in manifest.items() if name != "checksum"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def write_manifest(folder: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Write the manifest, last of all: a folder without it is no release."""
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    manifest = dict(content) | {"files": {name: digest(folder / name) for name in names}}
    manifest["checksum"] = checksum(manifest)
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    for path in (folder / PRIVATE, *(folder / PRIVATE).rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a release folder, which may come from anybody."""
    note_unsealed(folder)
    found = read_json(folder / MANIFEST, expected="a folder that sfumato publish wrote")
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{folder / MANIFEST} is not a manifest", expected=f"a manifest of format {FORMAT}")
    return found
