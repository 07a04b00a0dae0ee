"""A description of what a release shows of its source, from which it can be computed on the rows themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from sfumato.base.arrays import Counts64
from sfumato.data.settings import Role
from sfumato.data.source import Source
from sfumato.plans.channel import Channel
from sfumato.plans.swaps import SwapPlan
from sfumato.release.classes_rows import Assigned, Division
from sfumato.release.columns import ColumnRecode
from sfumato.release.rows import Below, RowView
from sfumato.study import Study

Kind = Literal["recoded", "boxed", "kept", "exchanged", "disguised"]
NO_GROUP = -1  # the group of a value that a release does not have: people with it are not in the file


@dataclass(frozen=True)
class ShownColumn:
    """A released column: unchanged, with groups of values under one label, exchanged or disguised.

    `groups` has the position in `labels` of the label of each of `values`. A missing value is the empty text. A column
    is boxed if its labels differ from class to class. Then `runs` are the values of each of `labels`.
    """

    kind: Kind
    values: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    runs: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.runs) if self.kind == "boxed" else len(self.values) != len(self.groups):
            raise ValueError("no column of a release")

    @property
    def certain(self) -> bool:
        """Whether the shown cell follows from the person's own row."""
        return self.kind in ("recoded", "boxed", "kept")

    def holds(self, values: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which values each label covers, one row for each label."""
        position = {value: number for number, value in enumerate(self.values)}
        at = np.array([position.get(value, NO_GROUP) for value in values], dtype=np.int64)
        runs = np.array(self.runs, dtype=np.int64).reshape(-1, 2)
        return np.asarray((at >= runs[:, :1]) & (at < runs[:, 1:]))

    def codes(self, values: Sequence[str]) -> Counts64:
        """Return the group of each value: that of its label, its own in an unchanged column, or -1 without a label."""
        if self.kind != "recoded":
            return np.arange(len(values), dtype=np.int64)
        known = dict(zip(self.values, self.groups, strict=True))
        return np.array([known.get(value, NO_GROUP) for value in values], dtype=np.int64)


def _channel(channel: Channel) -> dict[str, object]:
    """Return what a channel does to a value, without the reason why it was chosen."""
    given = channel.as_dict()
    return {name: given[name] for name in ("columns", "categories", "cells", "outputs", "matrix")}


def _channel_of(given: Mapping[str, Any]) -> Channel:
    return Channel(
        tuple(map(str, given["columns"])),
        tuple(map(str, given["categories"])),
        tuple(map(str, given["outputs"])),
        np.array(given["matrix"], dtype=np.float64),
        cells=tuple(tuple(map(str, cell)) for cell in given["cells"]),
    )


SavedChannel = Annotated[Channel, PlainValidator(_channel_of), PlainSerializer(_channel)]
Pairs = Annotated[tuple[Counts64, Counts64], PlainValidator(lambda pairs: pairs)]  # never saved
SavedDivision = Annotated[Division, PlainValidator(Division.from_dict), PlainSerializer(Division.as_dict)]


@dataclass(frozen=True)
class Description:
    """Everything that decides what a release shows of a row of its source.

    Classes over the recoded columns are suppressed if they have fewer than `size` records, or fewer than `diversity`
    values in one of the `sensitive` columns. If other criteria decide, suppressed classes are `listed` by their groups,
    with the columns sorted by name. Rows without a value in a column of `complete` are left out.

    `person` are the columns that identify people. `swaps` are pairs of rows by their keyed hashes, and `pairs` the same
    by row number until the rows are hashed. `ordered` is true if the file keeps the order of its source.

    If labels differ from class to class, `division` holds the class of each record, and `boxes` the label of each class
    in the columns of the division.
    """

    system: str
    columns: Mapping[str, ShownColumn]
    size: int = 0
    diversity: int = 0
    listed: tuple[tuple[int, ...], ...] | None = None
    sensitive: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    person: tuple[str, ...] = ()
    channels: tuple[SavedChannel, ...] = ()
    swaps: tuple[tuple[str, str], ...] = ()
    ordered: bool = False
    division: SavedDivision | None = None
    boxes: tuple[tuple[int, ...], ...] = ()
    pairs: Pairs | None = field(default=None, compare=False)

    @property
    def recoded(self) -> list[str]:
        return [name for name, column in self.columns.items() if column.kind in ("recoded", "boxed")]

    @property
    def random(self) -> bool:
        """Whether the same description, used twice, results in two different files."""
        return bool(self.channels)

    @property
    def digest(self) -> str:
        """Return a digest that is equal for two releases that show the same of every row."""
        content = self.as_dict() | {"system": "", "person": ()}
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def within(self, names: Sequence[str]) -> Description:
        """Return the part that can be computed from a table with these columns.

        If a recoded column is missing, the classes are unknown, and no row is assumed to be suppressed.
        """
        if all(name in names for name in (*self.columns, *self.complete)):
            return self
        columns = {name: column for name, column in self.columns.items() if name in names}
        whole = all(name in names for name in (*self.recoded, *self.sensitive))
        divided = self.division is not None and all(name in names for name in self.division.cells)
        if not divided:
            columns = {name: column for name, column in columns.items() if column.kind != "boxed"}
        return replace(
            self,
            columns=columns,
            division=self.division if divided else None,
            size=self.size if whole else 0,
            diversity=self.diversity if whole else 0,
            listed=self.listed if whole else None,
            sensitive=tuple(name for name in self.sensitive if name in names),
            complete=tuple(name for name in self.complete if name in names),
        )

    def as_dict(self) -> dict[str, object]:
        return dict(SAVED.dump_python(self, mode="json", exclude={"pairs"}))

    @classmethod
    def from_dict(cls, given: object) -> Description:
        """Return the description in a ledger. Invalid entries raise KeyError, ValueError or TypeError."""
        if not isinstance(given, Mapping) or not set(given) >= WRITTEN:  # a default could hide what was released
            raise ValueError("no description of a release")
        return SAVED.validate_python(given)


SAVED = TypeAdapter(Description)
WRITTEN = {each.name for each in fields(Description)} - {"division", "boxes", "pairs"}  # the two only of classes


def person_columns(study: Study, source: Source) -> tuple[str, ...]:
    """Return the columns that identify people: identifiers and quasi-identifiers, if they are declared."""
    roles = (Role.IDENTIFIER, Role.QUASI_IDENTIFIER)
    return tuple(name for name in source.names if name in study.columns and study.columns[name].role in roles)


def _described(
    system: str, study: Study, source: Source, columns: Mapping[str, ShownColumn], complete: Sequence[str]
) -> Description:
    return Description(
        system=system,
        columns=columns,
        sensitive=tuple(name for name in study.named(Role.SENSITIVE) if name in source.names),
        complete=tuple(name for name in complete if name in source.names),
        person=person_columns(study, source),
    )


def describe_recoding(
    system: str, study: Study, recoded: RowView, columns: Sequence[ColumnRecode], below: Below
) -> Description:
    """Return the description of a release of lattice or cuts."""
    shown = {column.name: ShownColumn("kept") for column in recoded.columns}
    for column in columns:
        if column.name in shown:
            labels = tuple(column.labels)
            shown[column.name] = ShownColumn("recoded", tuple(column.keys), tuple(column.groups), labels)
    order = sorted(range(len(columns)), key=lambda position: columns[position].name)
    listed = None if below.listed is None else sorted(tuple(int(groups[i]) for i in order) for groups in below.listed)
    return replace(
        _described(system, study, recoded.source, shown, study.complete_columns),
        size=below.size,
        diversity=below.diversity,
        listed=None if listed is None else tuple(listed),
    )


def describe_classes(
    system: str, study: Study, source: Source, names: Sequence[str], plan: Assigned, division: Division
) -> Description:
    """Return the description of a release whose labels differ from class to class."""
    shown = {name: ShownColumn("kept") for name in names}
    numbers = []
    for j, column in enumerate(plan.columns):
        runs = list(column.labels)
        labels = tuple(column.labels[run] or "" for run in runs)
        shown[column.name] = ShownColumn("boxed", column.values, (), labels, tuple(runs))
        number = {run: position for position, run in enumerate(runs)}
        numbers.append([number[run] for run in zip(plan.low[:, j].tolist(), plan.high[:, j].tolist(), strict=True)])
    described = _described(system, study, source, shown, study.complete_columns)
    return replace(described, division=division, boxes=tuple(zip(*numbers, strict=True)))


def describe_swaps(
    study: Study, source: Source, columns: Sequence[str], exchanged: Sequence[str], plan: SwapPlan
) -> Description:
    """Return the description of a release of the groups method: some rows have exchanged some cells."""
    return Description(
        system="groups",
        columns={name: ShownColumn("exchanged" if name in exchanged else "kept") for name in columns},
        person=person_columns(study, source),
        pairs=(plan.givers.astype(np.int64), plan.takers.astype(np.int64)),
    )


def describe_disguise(
    study: Study,
    source: Source,
    channels: Sequence[Channel],
    kept: Sequence[str],
    complete: Sequence[str],
    *,
    ordered: bool = False,
) -> Description:
    """Return the description of a disguised file: random reports in the columns of channels, others unchanged."""
    shown = {name: ShownColumn("disguised") for channel in channels for name in channel.columns}
    shown |= {name: ShownColumn("kept") for name in kept}
    return replace(_described("channel", study, source, shown, complete), channels=tuple(channels), ordered=ordered)
