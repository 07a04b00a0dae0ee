"""Projects of ARX (`.deid`): the table, what its columns are, hierarchies, privacy models, quality model.

A project is an archive that may come from anybody. Its table, hierarchies and settings are read in memory within
limits. Nothing is unpacked to disk, no name in the archive becomes a path, and its serialized Java objects are never
opened.
"""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.base.files import new_folder
from sfumato.base.formats import Element, parse_xml
from sfumato.base.settings import Noted, toml_text
from sfumato.base.trust import note_input
from sfumato.data.settings import Role
from sfumato.errors import DataError, counted
from sfumato.study import write_run_file

FIGURE = r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"
NUMBER, SETTING = rf"(?P<value>{FIGURE})", rf"(?P<setting>{FIGURE})"
FOR = r" for attribute '(?P<attribute>.*)'"


@dataclass
class Demands:
    """What the privacy models of a project ask for, and what of them could not be carried over."""

    constraints: dict[str, float] = field(default_factory=dict)
    measures: dict[str, dict[str, float | str]] = field(default_factory=dict)
    distances: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def demand(self, name: str, value: float, attribute: str | None = None, *, lower: bool = False) -> None:
        """A limit on a measure; of two, the stricter one holds."""
        before = self.constraints.get(name)
        stricter = value if before is None else (min if lower else max)(before, value)
        if before is not None and before != value:
            self.notes.append(f"{name} was asked for as {before:g} and as {value:g}: the stricter one holds for all")
        self.constraints[name] = int(stricter) if stricter == int(stricter) else stricter
        if attribute is not None:
            self.attributes.setdefault(name, set()).add(attribute)


def demands(criteria: Sequence[str]) -> Demands:
    """The privacy models of a project, as its `config.xml` writes them.

    >>> found = demands(["5-anonymity", "recursive-(3.0,2)-diversity for attribute 'ill'", "(0.1,0.2)-presence"])
    >>> found.constraints, found.measures, found.notes
    ({'k': 5, 'recursive_l': 2}, {'recursive_l': {'c': 3.0}}, ['not carried over: (0.1,0.2)-presence'])
    """
    result = Demands()
    for criterion in criteria:
        if not _carried(result, criterion):
            result.notes.append(f"not carried over: {criterion}")
    return result


MODELS = (  # a privacy model of ARX: pattern, measure, whether a smaller limit is stricter
    (rf"{NUMBER}-anonymity", "k", False),
    (rf"distinct-{NUMBER}-diversity{FOR}", "distinct_l", False),
    (rf"(?:shannon-)?entropy-{NUMBER}-diversity{FOR}", "entropy_l", False),
    (rf"recursive-\({SETTING}, ?{NUMBER}\)-diversity{FOR}", "recursive_l", False),
    (rf"{NUMBER}-closeness with (?P<distance>equal|hierarchical|ordered) distance{FOR}", "t_closeness", True),
    (rf"{NUMBER}-basic[- ](?:beta-)?likeness{FOR}", "beta_likeness", True),
    (rf"{NUMBER}-enhanced[- ](?:beta-)?likeness{FOR}", "enhanced_beta", True),
    (rf"{NUMBER}-disclosure privacy{FOR}", "delta_disclosure", True),
)


def _carried(result: Demands, criterion: str) -> bool:
    """Add a privacy model to the demands; return False if no measure is the same."""
    for pattern, name, lower in MODELS:
        match = re.fullmatch(pattern, criterion)
        if match is None:
            continue
        found, value = match.groupdict(), float(match["value"])
        attribute = found.get("attribute")
        if name == "recursive_l":
            result.measures[name] = {"c": float(found["setting"])}
        elif name == "t_closeness":
            result.distances[attribute or ""] = found["distance"]
        elif name == "delta_disclosure":
            value *= math.log(2)
            result.measures[name] = {"absent": "ignored"}
            result.notes.append("δ is in bits in ARX: it was multiplied by ln 2; values that a class lacks are ignored")
        result.demand(name, value, attribute, lower=lower)
        return True
    return False


QUALITY = {  # a word of ARX's quality model, and the measure that is the same or nearest
    "loss": "arx_loss",
    "precision": "precision",
    "discernab": "discernibility",
    "non-uniform entropy": "non_uniform_entropy",
    "average equivalence class": "average_class_size",
    "aecs": "average_class_size",
}


def objective(metric: str) -> tuple[str, list[str]]:
    """The measure to search by, and what should be known of the choice.

    >>> objective("Discernability")
    ('discernibility', [])
    """
    name = next((measure for word, measure in QUALITY.items() if word in metric.lower()), None)
    if name is None:
        return "general_loss", [f"the quality model {metric!r} has no like here: general loss is searched"]
    if name == "arx_loss":
        return name, ["the readable part of a project does not say how Loss is aggregated: the geometric mean is taken"]
    return name, []


EXPECTED = "a project of ARX 3, saved as .deid"
TABLE = "data/input.csv"
DEFINITION, CONFIGURATION, PROJECT = "input/definition.xml", "input/config.xml", "project.xml"
MOST_ENTRIES = 4_096
MOST_BYTES, MOST_XML, MOST_HIERARCHY = 2 << 30, 16 << 20, 256 << 20  # of one file, unpacked
ROLES = {
    "IDENTIFYING_ATTRIBUTE": Role.IDENTIFIER,
    "QUASI_IDENTIFYING_ATTRIBUTE": Role.QUASI_IDENTIFIER,
    "SENSITIVE_ATTRIBUTE": Role.SENSITIVE,
    "INSENSITIVE_ATTRIBUTE": Role.OTHER,
}
MOST_SUPPRESSION = 0.999  # a limit of 100 % has no like here: something must be released


@dataclass(frozen=True)
class Attribute:
    """A column of a project. `hierarchy` is the content of its file, None if it has none."""

    name: str
    role: Role
    hierarchy: bytes | None
    limits: tuple[str, str]  # the least and the highest level that ARX may use


@dataclass(frozen=True)
class Imported:
    """What an import wrote, and what the user should know of it."""

    run_file: Path
    columns: int
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        return {"run_file": str(self.run_file), "columns": self.columns, "notes": list(self.notes)}


def import_arx(path: str | Path, folder: str | Path) -> Imported:
    """Write a project as a new folder, which is private: the table, the hierarchies, a run file with ARX's question."""
    with _opened(Path(path)) as archive:
        separator = _separator(archive)
        table = _read(archive, TABLE)
        attributes = _attributes(archive)
        _check_header(table, separator, attributes)
        configuration = _xml(archive, CONFIGURATION)
        notes: list[str] = []
        with new_folder(Path(folder)) as inside:
            (inside / "data.csv").write_bytes(table)
            (inside / "hierarchies").mkdir()
            names = _write_hierarchies(inside / "hierarchies", attributes)
            settings = _settings(attributes, names, separator, configuration, notes)
            head = [f"From {Path(path).name}, a project of ARX.", *notes]
            write_run_file(inside / "run.toml", toml_text(settings, head))
    return Imported(Path(folder) / "run.toml", len(attributes), tuple(notes))


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(note_input(path))
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"{path} cannot be opened as an archive: {error}", expected=EXPECTED) from error
    names = archive.namelist()
    if len(names) > MOST_ENTRIES or len(names) != len(set(names)):
        raise DataError(f"{path} holds too many files, or two of one name", expected=EXPECTED)
    return archive


def _read(archive: zipfile.ZipFile, name: str, limit: int = MOST_BYTES) -> bytes:
    """Return one file, unless it is larger than allowed, whatever the archive says of its size."""
    if name not in archive.namelist():
        raise DataError(f"{archive.filename} holds no {name}", expected=EXPECTED)
    try:
        with archive.open(name) as stream:
            content = stream.read(limit + 1)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, NotImplementedError, OSError) as error:
        raise DataError(f"{name} in {archive.filename} cannot be read: {error}", expected=EXPECTED) from error
    if len(content) > limit:
        raise DataError(f"{name} in {archive.filename} is larger than {limit >> 20:,} MiB", expected=EXPECTED)
    return content


def _xml(archive: zipfile.ZipFile, name: str) -> Element:
    return parse_xml(_read(archive, name, MOST_XML), name, expected=EXPECTED)


def _separator(archive: zipfile.ZipFile) -> str:
    if PROJECT not in archive.namelist():
        return ";"
    # A blank or a tab is lost when the text of an element is taken without its margins.
    return _xml(archive, PROJECT).said("separator") or "\t"


def _attributes(archive: zipfile.ZipFile) -> list[Attribute]:
    """The columns as the definition has them, each with its hierarchy."""
    result = []
    for element in _xml(archive, DEFINITION).all("assigment"):  # as ARX spells it
        name, kind, ref = element.said("name") or "", element.said("type") or "", element.said("ref")
        if not name or kind not in ROLES:
            raise DataError(f"{DEFINITION} gives a column no name, or no type that is known", expected=EXPECTED)
        file = f"input/{ref}" if ref else ""
        hierarchy = _read(archive, file, MOST_HIERARCHY) if file in archive.namelist() else None
        limits = (element.said("min") or "All", element.said("max") or "All")
        result.append(Attribute(name, ROLES[kind], hierarchy, limits))
    if not result:
        raise DataError(f"{DEFINITION} declares no column", expected=EXPECTED)
    return result


def _check_header(table: bytes, separator: str, attributes: Sequence[Attribute]) -> None:
    head = table.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").rstrip("\r")
    named = next(csv.reader(io.StringIO(head), delimiter=separator), [])
    declared = [attribute.name for attribute in attributes]
    if named != declared:
        raise DataError(
            f"{TABLE} has {counted(len(named), 'column')}, and {DEFINITION} declares {len(declared)} or other ones",
            expected="the columns of the table in its order",
            remedy="save the project again",
        )


def _write_hierarchies(folder: Path, attributes: Sequence[Attribute]) -> dict[str, str]:
    """Write each hierarchy under a name of ours; give the names by column."""
    names = {}
    for number, attribute in enumerate(attributes, 1):
        if attribute.hierarchy:
            plain = re.sub(r"[^A-Za-z0-9_-]+", "-", attribute.name).strip("-")[:40]
            names[attribute.name] = f"hierarchies/{number}-{plain}.csv"
            (folder / f"{number}-{plain}.csv").write_bytes(attribute.hierarchy)
    return names


def _settings(
    attributes: Sequence[Attribute],
    files: Mapping[str, str],
    separator: str,
    configuration: Element,
    notes: list[str],
) -> dict[str, object]:
    """Return the run file; `notes` gets what could not be carried over."""
    wanted = demands([element.text.strip() for element in configuration.all("criterion")])
    loss, about_loss = objective(configuration.said("metric") or "Loss")
    notes += [*wanted.notes, *about_loss]
    search = {
        "system": "lattice",
        "objectives": Noted([loss], f'ARX\'s question; ["k", "{loss}"] and no constraint on k shows every k at once'),
        "constraints": wanted.constraints,
        "max_suppression": _suppression(configuration, notes),
    }
    named = {one.name for one in attributes if one.role is Role.QUASI_IDENTIFIER}
    if weights := {name: value for name, value in _weights(configuration).items() if name in named}:
        search["weights"] = weights
    settings: dict[str, object] = {
        "version": 1,
        "data": {"path": "data.csv", "separator": separator, "missing": Noted("category", "as ARX counts them")},
        "columns": {one.name: _column(one, files.get(one.name), separator, wanted, notes) for one in attributes},
        "search": {name: value for name, value in search.items() if value != {}},
    }
    if wanted.measures:
        settings["measures"] = wanted.measures
    secret = {one.name for one in attributes if one.role is Role.SENSITIVE}
    for name, named in wanted.attributes.items():
        if secret - named:
            notes.append(f"{name} was asked for some sensitive columns only; here it holds for all of them")
    return settings


def _column(one: Attribute, file: str | None, separator: str, wanted: Demands, notes: list[str]) -> dict[str, object]:
    hierarchy: dict[str, object] | None = {"path": file, "separator": separator, "header": False} if file else None
    if one.role is Role.QUASI_IDENTIFIER:
        if hierarchy is None:
            notes.append(f"{one.name} has no hierarchy in the project: it is kept or hidden as a whole")
        if one.limits != ("All", "All"):
            low, high = one.limits
            notes.append(f"{one.name} was limited to levels {low} to {high}; here all levels are searched")
        return {"role": one.role.value, "hierarchy": hierarchy or {"build": "flat"}}
    if one.role is Role.SENSITIVE and one.name in wanted.distances:
        distance = wanted.distances[one.name]
        given = {"hierarchy": hierarchy} if distance == "hierarchical" and hierarchy else {}
        return {"role": one.role.value, "distance": distance, **given}
    return {"role": one.role.value}


def _suppression(configuration: Element, notes: list[str]) -> float:
    """The share of records that may be suppressed."""
    text = configuration.said("relativeMaxOutliers") or "0"
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise DataError(f"{CONFIGURATION}: a suppression limit of {text[:20]}", expected="a share from 0 to 1")
    if share > MOST_SUPPRESSION:
        notes.append(f"a suppression limit of 100 % became {MOST_SUPPRESSION:.1%}: something must be released")
    return min(share, MOST_SUPPRESSION)


def _weights(configuration: Element) -> dict[str, float]:
    """How much columns count, where they do not count alike. ARX's neutral weight is 0.5."""
    result = {}
    for element in configuration.all("attributeWeight"):
        try:
            result[element.said("attribute") or ""] = float(element.said("weight") or "") / 0.5
        except ValueError:
            raise DataError(f"{CONFIGURATION}: a weight that is no number", expected=EXPECTED) from None
    return result if len(set(result.values())) > 1 else {}
