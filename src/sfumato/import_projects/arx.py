"""Projects of ARX (`.deid`): the table, what its columns are, hierarchies, privacy models, quality model.

A project is an archive. Read are `data/input.csv`, `input/definition.xml`, `input/config.xml`, `project.xml` and the
hierarchies; its serialized Java objects are never opened.

The settings of an ARX project in the words of a run file: privacy models, quality model, limits.

The files of an archive (zip) that may come from anybody: named ones alone, in memory, within limits.

Nothing is unpacked to disk, and no name in the archive becomes a path.
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
from typing import Any

from sfumato.base.files import new_folder
from sfumato.base.formats import Element, parse_xml
from sfumato.base.settings import Noted, toml_text
from sfumato.base.trust import note_input
from sfumato.data.settings import Role
from sfumato.errors import DataError, counted
from sfumato.study import write_run_file

NUMBER = r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)"
FOR = r" for attribute '(.*)'"
ENTROPY = r"(?:shannon-|grassberger-)?entropy-"


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


def _carried(result: Demands, criterion: str) -> bool:
    """Whether there is the same here; if so, it is demanded."""
    if match := re.fullmatch(rf"{NUMBER}-anonymity", criterion):
        result.demand("k", float(match[1]))
    elif match := re.fullmatch(rf"distinct-{NUMBER}-diversity{FOR}", criterion):
        result.demand("distinct_l", float(match[1]), match[2])
    elif match := re.fullmatch(rf"{ENTROPY}{NUMBER}-diversity{FOR}", criterion):
        if criterion.startswith("grassberger"):
            return False
        result.demand("entropy_l", float(match[1]), match[2])
    elif match := re.fullmatch(rf"recursive-\({NUMBER}, ?{NUMBER}\)-diversity{FOR}", criterion):
        result.demand("recursive_l", float(match[2]), match[3])
        result.measures["recursive_l"] = {"c": float(match[1])}
    elif match := re.fullmatch(rf"{NUMBER}-closeness with (equal|hierarchical|ordered) distance{FOR}", criterion):
        result.demand("t_closeness", float(match[1]), match[3], lower=True)
        result.distances[match[3]] = match[2]
    elif match := re.fullmatch(rf"{NUMBER}-(basic|enhanced)[- ](?:beta-)?likeness{FOR}", criterion):
        name = "beta_likeness" if match[2] == "basic" else "enhanced_beta"
        result.demand(name, float(match[1]), match[3], lower=True)
    elif match := re.fullmatch(rf"{NUMBER}-disclosure privacy{FOR}", criterion):
        result.demand("delta_disclosure", float(match[1]) * math.log(2), match[2], lower=True)
        result.measures["delta_disclosure"] = {"absent": "ignored"}
        result.notes.append("δ is in bits in ARX: it was multiplied by ln 2; values that a class lacks are ignored")
    else:
        return False
    return True


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


MOST_ENTRIES = 4_096
MOST_BYTES = 2 << 30  # of one file, unpacked
PART = 1 << 20


class Archive:
    """An open archive. Its files are asked for by name."""

    def __init__(self, path: Path, expected: str) -> None:
        self.path, self.expected = path, expected
        try:
            self._zip = zipfile.ZipFile(note_input(path))
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise DataError(f"{path} cannot be opened as an archive: {error}", expected=expected) from error
        names = [entry.filename for entry in self._zip.infolist()]
        if len(names) > MOST_ENTRIES or len(names) != len(set(names)):
            raise DataError(f"{path} holds too many files, or two of one name", expected=expected)
        self._names = frozenset(names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(self._names)

    def read(self, name: str, limit: int = MOST_BYTES) -> bytes:
        """One file, unless it is larger than allowed, whatever the archive says of its size."""
        if name not in self._names:
            raise DataError(f"{self.path} holds no {name}", expected=self.expected)
        parts, size = [], 0
        try:
            with self._zip.open(name) as stream:
                while part := stream.read(PART):
                    size += len(part)
                    if size > limit:
                        raise DataError(
                            f"{name} in {self.path} is larger than {limit >> 20:,} MiB", expected=self.expected
                        )
                    parts.append(part)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, NotImplementedError, OSError) as error:
            raise DataError(f"{name} in {self.path} cannot be read: {error}", expected=self.expected) from error
        return b"".join(parts)

    def close(self) -> None:
        self._zip.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


EXPECTED = "a project of ARX 3, saved as .deid"
TABLE = "data/input.csv"
DEFINITION, CONFIGURATION, PROJECT = "input/definition.xml", "input/config.xml", "project.xml"
MOST_XML, MOST_HIERARCHY = 16 << 20, 256 << 20
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

    def as_dict(self) -> dict[str, Any]:
        return {"run_file": str(self.run_file), "columns": self.columns, "notes": list(self.notes)}


def import_arx(path: str | Path, folder: str | Path) -> Imported:
    """Write a project as a new folder: the table, the hierarchies, a run file that asks ARX's question.

    Args:
        path: the project.
        folder: a folder that does not exist yet; it is private, for it holds the table.

    Returns:
        The run file, and what could not be carried over.
    """
    with Archive(Path(path), EXPECTED) as archive:
        separator = _separator(archive)
        table = archive.read(TABLE)
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


def _xml(archive: Archive, name: str) -> Element:
    return parse_xml(archive.read(name, MOST_XML), name, expected=EXPECTED)


def _separator(archive: Archive) -> str:
    given = _xml(archive, PROJECT).said("separator") if PROJECT in archive else None
    # A blank or a tab is lost when the text of an element is taken without its margins.
    return given or ("\t" if PROJECT in archive else ";")


def _attributes(archive: Archive) -> list[Attribute]:
    """The columns as the definition has them, each with its hierarchy."""
    result = []
    for element in _xml(archive, DEFINITION).all("assigment"):  # as ARX spells it
        name, kind, ref = element.said("name") or "", element.said("type") or "", element.said("ref")
        if not name or kind not in ROLES:
            raise DataError(f"{DEFINITION} gives a column no name, or no type that is known", expected=EXPECTED)
        file = f"input/{ref}" if ref else ""
        hierarchy = archive.read(file, MOST_HIERARCHY) if file in archive else None
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
) -> dict[str, Any]:
    """The run file; `notes` gets what could not be carried over."""
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
    settings: dict[str, Any] = {
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


def _column(one: Attribute, file: str | None, separator: str, wanted: Demands, notes: list[str]) -> dict[str, Any]:
    hierarchy: Any = {"path": file, "separator": separator, "header": False} if file else None
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
