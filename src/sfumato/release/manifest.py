"""The manifest of a release and the layout of its folder.

Every method writes the same entries. Under `own` are the entries that only one method reads. The files that may be
published are in `public/`, all others in `private/`. File names are relative to the release folder, with `/` between
their parts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from sfumato.base.formats import read_json
from sfumato.base.settings import toml_text
from sfumato.base.trust import note_unsealed, signature
from sfumato.data.cells import MISSING
from sfumato.data.settings import FOREIGN, Role
from sfumato.data.source import Source
from sfumato.errors import HierarchyError, InputError
from sfumato.hierarchies import Hierarchy, load, save
from sfumato.hierarchies.hierarchy import flat
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.plans.recodings import RecodingPlan
from sfumato.release.columns import Naming
from sfumato.release.format import Entry, format_of
from sfumato.study import Study, read
from sfumato.tables.domain import Domain
from sfumato.tables.frequency import FrequencyTable


class SourceEntry(TypedDict):
    """The table that a release was made from."""

    name: str
    sha256: str
    rows_read: int


class Content(TypedDict):
    """The entries of a manifest before its files are listed.

    The `unit` states what the figures count, with the publisher's reason if rows are declared to be persons. The
    `point` is the chosen point with its `id`, and `columns` are the released columns in order. The entries of the
    method are in `own`. The digest of the code and the templates that made the pages is in `templates`.
    """

    format: int
    created: str
    system: str
    source: SourceEntry
    data: str
    versions: dict[str, str]
    templates: str
    run_file: str
    unit: dict[str, str]
    reason: str
    point: dict[str, Any]
    columns: list[str]
    records: int
    suppressed: int
    left_out: int
    released: int
    loss: float
    figures: dict[str, Any]
    whole: dict[str, Any]
    policy: dict[str, Any]
    accepted: list[dict[str, Any]]
    warnings: list[str]
    dictionary: dict[str, Any]
    hierarchies: dict[str, dict[str, Any]]
    own: dict[str, Any]


class Manifest(Content):
    """A whole manifest: the digest of every other file of the folder, and that of its own content.

    `seal` is a keyed digest of the checksum, by which the publisher's own machine knows what it published.
    """

    files: dict[str, str]
    checksum: str
    seal: str


FORMAT = 3
PUBLIC = "public"
PRIVATE = "private"
MANIFEST = "private/manifest.json"
RUN = "private/run.toml"
FOLDER = "private/hierarchies"
INTERNAL = "private/internal.html"
DICTIONARY = ("public/dictionary.json", "public/dictionary.html")
EXTERNAL = "public/external.html"
METADATA = ("public/croissant.json", "public/ddi.xml")
CERTIFICATE = "public/certificate.json"
OWN = tuple(Path(name).name for name in (*DICTIONARY, EXTERNAL, *METADATA, CERTIFICATE))
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*$")


def data_name(source: Source, asked: str | None = None, kind: str | None = None) -> str:
    """Return the path of the released file: `data` with the ending of its format `kind`, or the chosen name.

    The name of the source is not repeated, because it may contain information that is not public.
    """
    if asked is None:
        kind = format_of(source, None, kind)
        packed = source.format == kind == "csv" and source.path.suffix == ".gz"
        return f"{PUBLIC}/data.{kind}" + (".gz" if packed else "")
    return named_data(asked)


def named_data(asked: str, endings: Sequence[str] = ()) -> str:
    """Return the path of a released file with a chosen name. Raises an error if its ending is not in `endings`."""
    stem = next((asked.removesuffix(ending) for ending in endings if asked.endswith(ending)), "" if endings else asked)
    if not PLAIN.fullmatch(stem) or asked.lower() in OWN:
        raise InputError(
            f'the file cannot be called "{asked}"',
            expected="letters, digits, '.', '_' and '-'"
            + (f", the ending {' or '.join(endings)}" if endings else "")
            + ", and not the name of a report",
        )
    return f"{PUBLIC}/{asked}"


def make_parts(folder: Path) -> None:
    """Make the two parts of a new release folder: the public one, and the private one of the publisher."""
    (folder / PUBLIC).mkdir()
    (folder / PRIVATE).mkdir(mode=0o700)


def hierarchy_names(columns: Iterable[str]) -> dict[str, str]:
    """Return a file name for each column: its own name if every file system accepts it, or its number.

    >>> hierarchy_names(["age", "Age"])
    {'age': 'private/hierarchies/age.csv', 'Age': 'private/hierarchies/column2.csv'}
    """
    names_of: dict[str, str] = {}
    for number, column in enumerate(columns, start=1):
        name = f"{FOLDER}/{column}.csv"
        taken = {other.lower() for other in names_of.values()}
        plain = PLAIN.match(column) and len(column) < 100 and not re.match(r"column\d+$", column.lower())
        names_of[column] = name if plain and name.lower() not in taken else f"{FOLDER}/column{number}.csv"
    return names_of


def kept_domains(study: Study, table: FrequencyTable) -> dict[str, Domain]:
    """Return the domains whose hierarchy a reader of the release needs.

    These are all quasi-identifiers, other columns with a declared hierarchy, and sensitive columns in bands, because
    the hierarchy has the order of the bands. A hierarchy that was built from the source cannot be built from the
    release.
    """
    domains = {domain.name: domain for domain in table.domains}
    values = [*table.sensitive.values(), *([table.label] if table.label else [])]
    columns = {values.domain.name: study.columns[values.domain.name] for values in values}
    needed = {
        name
        for name, column in columns.items()
        if column.hierarchy is not None or (column.bands is not None and column.role is Role.SENSITIVE)
    }
    return domains | {v.domain.name: v.domain for v in values if v.domain.name in needed}


def trees_and_levels(
    study: Study, table: FrequencyTable, plan: RecodingPlan
) -> tuple[dict[str, Hierarchy], dict[str, int]]:
    """Return the hierarchies that define a plan, and its level in each. A cut makes a hierarchy of its own."""
    trees = {name: domain.hierarchy for name, domain in kept_domains(study, table).items()}
    levels = {}
    for domain in table.domains:
        trees[domain.name], levels[domain.name] = plan.tree(domain)
    return trees, levels


def distances_of(table: FrequencyTable) -> dict[str, str]:
    """Return the distances between the values of each sensitive column."""
    return {name: values.domain.distance for name, values in table.sensitive.items()}


def write_hierarchies(folder: Path, trees: Mapping[str, Hierarchy]) -> dict[str, str]:
    """Save each hierarchy and check that it reads back unchanged. Columns with missing values only have none."""
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
                remedy="trim = true under [data], or correct the labels",
            )
    return names


def about_hierarchies(
    study: Study,
    folder: Path,
    trees: Mapping[str, Hierarchy],
    files: Mapping[str, str],
    names: Mapping[str, Naming],
) -> dict[str, dict[str, object]]:
    """Return the manifest's entry on each hierarchy: its file, its digest, that of the declared file (null: built).

    Files have no empty labels, so the path of a missing value is in this entry instead. `named` holds how the groups
    were named, for later releases with the same plan.
    """
    described: dict[str, dict[str, object]] = {}
    for column, hierarchy in trees.items():
        tree, name = study.columns[column].hierarchy, files.get(column)
        path = tree.path if isinstance(tree, HierarchyFile) else tree if isinstance(tree, str) else None
        described[column] = {
            "file": name,
            "sha256": digest(folder / name) if name else None,
            "declared_sha256": digest(study.folder / path) if path not in (None, FOREIGN) else None,
            "missing_path": next((list(path) for path in hierarchy.paths if path[0] == MISSING), None),
            "named": names[column].as_dict() if column in names else None,
        }
    return described


def load_hierarchies(folder: Path, about: Mapping[str, Entry]) -> dict[str, Hierarchy]:
    """Return the hierarchies of a release folder, as they were at publication."""
    trees = {}
    for column, entry in about.items():
        if entry["file"] is None:
            trees[column] = flat(column, [MISSING])
            continue
        path = (folder / str(entry["file"])).resolve()
        if not path.is_relative_to((folder / FOLDER).resolve()):
            raise HierarchyError(f"the hierarchy of {column} is outside the release", expected=f"a file in {FOLDER}")
        tree = load(path, name=column, header=True, separator=",")
        missing = entry["missing_path"]  # a cut may group missing values with others
        trees[column] = Hierarchy.from_paths(column, [*tree.paths, tuple(map(str, missing))]) if missing else tree
    return trees


def file_settings(like: Source, names: Sequence[str], data: str, *, trim: bool) -> dict[str, object]:
    """Return settings that read a released file without detection.

    `like` has its format and dialect, and `names` are its columns.
    """
    dialect = like.dialect
    settings: dict[str, Any] = {"path": f"../{data}", "format": like.format}
    if dialect is not None:
        settings |= {"separator": dialect.separator, "quote": dialect.quote, "decimal": dialect.decimal}
        settings |= {"header": dialect.header}
    if (dialect is not None and not dialect.header) or clashing(names):
        settings["names"] = list(names)
    return settings | {"trim": trim}


def write_run_file(folder: Path, study: Study, like: Source, names: Sequence[str], data: str, sections: Entry) -> Study:
    """Write the run file that reads the released file, with the `sections` of its method. Return its study."""
    settings = file_settings(like, names, data, trim=study.data.trim) | sections.get("data", {})
    text = toml_text({"version": 1, **sections, "data": settings})
    (folder / RUN).write_text(text, encoding="utf-8")
    return read(folder / RUN).replace(engine=study.engine, engine_options=study.engine_options)


def clashing(names: Sequence[str]) -> list[str]:
    """Return names that differ from an earlier one only in case, because the engine renames them.

    >>> clashing(["Age", "age", "sex"])
    ['age']
    """
    lowered = [name.lower() for name in names]
    return [name for position, name in enumerate(names) if lowered[position] in lowered[:position]]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    sha = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 22):
            sha.update(block)
    return sha.hexdigest()


def checksum(manifest: Mapping[str, object]) -> str:
    """Return the SHA-256 of a manifest's content without its checksum and its seal. The layout has no influence."""
    content = {name: value for name, value in manifest.items() if name not in ("checksum", "seal")}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def files_in(folder: Path) -> list[str]:
    """Return the files of a release folder, by name."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def write_manifest(folder: Path, content: Content, *, sealed: bool = False) -> Manifest:
    """Write the manifest as the last file: a folder without it is no release. Only publication sets `sealed`."""
    names = files_in(folder)
    digests = {name: digest(folder / name) for name in names}
    manifest: Manifest = {**content, "files": digests, "checksum": "", "seal": ""}
    manifest["checksum"] = checksum(manifest)
    manifest["seal"] = signature(manifest["checksum"]) if sealed else ""
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    for path in (folder / PRIVATE, *(folder / PRIVATE).rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a release folder. Anybody may have written it, so entries may be missing or wrong."""
    note_unsealed(folder)
    content = read_json(folder / MANIFEST, expected="a folder that sfumato publish wrote")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{folder / MANIFEST} is not a manifest", expected=f"a manifest of format {FORMAT}")
    return cast("Manifest", content)
