"""A box plan made ready for release: columns with their labels, classes as runs, and who is in which class."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.errors import DataError, InputError
from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.hierarchy import flat
from sfumato.plans.boxes import BoxPlan
from sfumato.plans.segments import segments_of
from sfumato.release.boxes.labels import BoxColumn, Run, box_column
from sfumato.runtime.arrays import Codes, Counts64
from sfumato.runtime.json_files import read_json
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

FILE = "private/classes.json"
Earlier = Mapping[str, Mapping[Run, str]]


@dataclass(frozen=True, eq=False)
class Assigned:
    """Tuples as positions of values, sorted, with counts; classes as runs; and how many records of which are where.

    Entry e: `count[e]` records of tuple `of[e]` are in class `owner[e]`, those of -1 are suppressed. Which of the
    records of a tuple they are follows from `salt`: they are taken in the order of a hash of their cells.
    """

    columns: tuple[BoxColumn, ...]
    codes: Codes
    counts: Counts64
    low: Counts64
    high: Counts64
    of: Counts64
    owner: Counts64
    count: Counts64
    salt: str

    @property
    def records(self) -> int:
        return int(self.counts.sum())

    @property
    def suppressed(self) -> int:
        return int(self.count[self.owner < 0].sum())

    @property
    def classes(self) -> int:
        return len(self.low)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def split(self) -> Counts64:
        """The tuples whose records are in several classes."""
        return np.flatnonzero(np.bincount(self.of, minlength=len(self.counts)) > 1)

    def trees(self) -> dict[str, Hierarchy]:
        """Flat hierarchies with the values in order: a table that is read with them has the same positions."""
        return {column.name: flat(column.name, column.values) for column in self.columns}

    def save(self, folder: Path) -> None:
        columns = {column.name: column.as_dict() for column in self.columns}
        saved = {
            "columns": columns,
            "salt": self.salt,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "codes": self.codes.tolist(),
            "counts": self.counts.tolist(),
            "entries": np.stack([self.of, self.owner, self.count]).tolist(),
        }
        text = json.dumps(saved, ensure_ascii=False, separators=(",", ":"))
        (folder / FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Assigned:
        """The classes of a release, which may come from anybody: what does not fit together is a DataError."""
        saved = read_json(folder / FILE)
        try:
            columns = tuple(BoxColumn.from_dict(name, own) for name, own in saved["columns"].items())
            width = len(columns)
            arrays = [np.array(saved[name], dtype=np.int64).reshape(-1, width) for name in ("low", "high")]
            codes = np.array(saved["codes"], dtype=np.int32).reshape(width, -1)
            counts = np.array(saved["counts"], dtype=np.int64)
            of, owner, count = np.array(saved["entries"], dtype=np.int64).reshape(3, -1)
            result = cls(columns, codes, counts, arrays[0], arrays[1], of, owner, count, str(saved["salt"]))
            result.check()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
            raise DataError(f"{FILE} cannot be read", expected="the classes of a release") from error
        return result

    def check(self) -> None:
        """Raise ValueError unless every record is in one class, inside its labels."""
        fits = (
            self.codes.shape[1] == len(self.counts) and len(self.low) == len(self.high) and bool(np.all(self.count > 0))
        )
        fits = fits and (len(self.of) == 0 or (self.of.min() >= 0 and self.of.max() < len(self.counts)))
        fits = fits and (len(self.of) == 0 or (self.owner.min() >= -1 and self.owner.max() < len(self.low)))
        if not fits:
            raise ValueError("the classes do not fit together")
        summed = np.bincount(self.of, weights=self.count, minlength=len(self.counts))
        inside = self.owner >= 0
        codes = self.codes[:, self.of[inside]].T
        low, high = self.low[self.owner[inside]], self.high[self.owner[inside]]
        if not np.array_equal(summed, self.counts) or not np.all((low <= codes) & (codes < high)):
            raise ValueError("a record is in no class, or outside the labels of its class")
        for j, column in enumerate(self.columns):
            used = set(zip(self.low[:, j].tolist(), self.high[:, j].tolist(), strict=True))
            if not used <= set(column.labels):
                raise ValueError("a class has a label that its column lacks")


def assigned(study: Study, table: FrequencyTable, plan: BoxPlan, salt: str, earlier: Earlier | None = None) -> Assigned:
    """A plan on its table. A plan that does not fit the table, or is not true of it, is refused."""
    if plan.columns != table.columns:
        raise InputError("the plan and the table differ in their quasi-identifiers", expected="a plan of this table")
    segments = segments_of(study, table)
    position = [np.argsort(np.array(segment.domain.order)) for segment in segments]
    codes = np.stack([own[codes] for own, codes in zip(position, table.codes, strict=True)]).astype(np.int32)
    order = np.lexsort(codes[::-1])
    rank = np.argsort(order)
    places = [
        {segment.domain.hierarchy.leaves[leaf]: at for at, leaf in enumerate(segment.domain.order)}
        for segment in segments
    ]
    try:
        low = [[places[j][span[0]] for j, span in enumerate(spans)] for spans in plan.labels]
        high = [[places[j][span[1]] + 1 for j, span in enumerate(spans)] for spans in plan.labels]
        entries = np.array(plan.members, dtype=np.int64).reshape(-1, 3)
        lows, highs = (np.array(ends, dtype=np.int64).reshape(-1, len(segments)) for ends in (low, high))
        given = entries[:, 0]
        if len(given) and int(given.max()) >= table.tuples:
            raise ValueError("a tuple that is not there")
        inside = entries[:, 1] >= 0
        seen = codes[:, given[inside]]
        columns = []
        for j, segment in enumerate(segments):
            released = np.zeros(len(segment.domain.order), dtype=np.bool_)
            released[seen[j]] = True
            runs = zip(lows[:, j].tolist(), highs[:, j].tolist(), strict=True)
            columns.append(box_column(study, segment, runs, released, (earlier or {}).get(segment.name)))
        of, owner, count = rank[given], entries[:, 1], entries[:, 2]
        by = np.lexsort((owner, of))
        made = Assigned(
            tuple(columns), codes[:, order], table.counts[order], lows, highs, of[by], owner[by], count[by], salt
        )
        made.check()
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(
            "the plan does not fit the table: nothing was released",
            expected="a plan that was found for this table",
            remedy="search again",
        ) from error
    return made
