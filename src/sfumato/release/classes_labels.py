"""The labels of one column if each class has its own: runs of ordered values, named by released values only.

A run of one value has that value as its label, a missing value stays missing, and the run of all values is the root. A
node of the column's hierarchy keeps the name that a person wrote. Any other run of numbers is named by its ends,
`[25 .. 29]`, and any other run of texts by its values, `{clerk | cook}`. Only values of released records are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.data.cells import MISSING, neutralised
from sfumato.errors import HierarchyError, shortened
from sfumato.hierarchies.labels import from_values, listed, number, spanned
from sfumato.plans.recodings import ColumnRecoding
from sfumato.plans.segments import Segment
from sfumato.release.columns import UNLISTED, ReleasedColumn, for_whole, is_public
from sfumato.release.format import Entry
from sfumato.study import Study
from sfumato.tables.domain import Domain, leaf_values, span_share

Run = tuple[int, int]  # positions of values: the first, and behind the last


@dataclass(frozen=True, eq=False)
class BoxColumn(ReleasedColumn):
    """One column: its values in order (a missing value is the empty text), and the label of each released run.

    A label is None if a missing cell stays missing. `depths` and `spans` are the properties of a run that measures of
    loss need besides its values. `nodes` is true if the labels are nodes of the column's hierarchy.

    >>> column = BoxColumn("age", ("20", "25", "29"), {(0, 1): "20", (1, 3): "[25 .. 29]"}, nodes=False)
    >>> column.covers("[25 .. 29]"), column.generalized
    (2, True)
    """

    name: str
    values: tuple[str, ...]
    labels: Mapping[Run, str | None]
    nodes: bool
    depths: Mapping[Run, float] = field(default_factory=dict)
    spans: Mapping[Run, float] | None = None

    @cached_property
    def run_of(self) -> dict[str, Run]:
        """The run of each label. A missing cell is read as the empty text."""
        return {MISSING if label is None else label: run for run, label in self.labels.items()}

    def covers(self, label: str) -> int:
        low, high = self.run_of[label]
        return high - low

    @property
    def generalized(self) -> bool:
        """Whether some label covers several values."""
        return any(high - low > 1 for low, high in self.labels)

    @property
    def hidden(self) -> bool:
        """Whether the released column contains no information."""
        return all(high - low == len(self.values) > 1 for low, high in self.labels)

    @property
    def blanked(self) -> bool:
        """Whether every cell is either unchanged or hidden."""
        return self.generalized and all(high - low in (1, len(self.values)) for low, high in self.labels)

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def root(self) -> str | None:
        return self.labels.get((0, len(self.values))) if self.blanked else None

    def recoding(self, domain: Domain) -> ColumnRecoding:
        """Return a released column as a recoding in which every label is a group of its own."""
        self.refuse_strange(domain, self.run_of, "labels of the release")
        runs = [self.run_of.get(label) for label in domain.labels]
        covers = np.array([1 if run is None else run[1] - run[0] for run in runs], dtype=np.int32)
        depths = np.array([0.0 if run is None else self.depths[run] for run in runs])
        spans = None
        if self.spans is not None:
            spans = np.array([0.0 if run is None else self.spans[run] for run in runs])
        return ColumnRecoding(domain.labels, np.arange(len(runs), dtype=np.int32), covers, depths, spans)

    def covered(self, values: Collection[str] | None) -> Mapping[str, int]:
        before = np.cumsum([0, *(values is None or value in values for value in self.values)])
        return {label: int(before[high] - before[low]) for label, (low, high) in self.run_of.items()}

    def words(self, occurring: Collection[str], blanked: str = "") -> str:
        """Return a sentence on what was done to a column.

        >>> column = BoxColumn("sex", ("F", "M"), {(0, 1): "F", (1, 2): "M", (0, 2): "*"}, nodes=True)
        >>> column.words(["F", "M", "*"], "1.2 % of the records")
        'Unchanged, except that single cells are blanked (1.2 % of the records): * is in their place.'
        """
        if not self.generalized:
            return "Unchanged."
        root = self.labels.get((0, len(self.values)))
        if self.hidden:
            return f"Hidden: every value is replaced by {root}."
        if self.blanked:
            how_many = f" ({blanked})" if blanked else ""
            return f"Unchanged, except that single cells are blanked{how_many}: {root} is in their place."
        how = "nodes of its hierarchy" if self.nodes else "runs of neighbouring values"
        labels = f"{len(occurring):,} labels occur, which are {how} and may overlap."
        return f"Grouped differently from class to class: {labels}"

    def entry(self, occurring: Collection[str], public: bool, blanked: str) -> dict[str, object]:  # noqa: ARG002
        shown = sorted((label for label in occurring if label), key=self.run_of.__getitem__)
        done = "hidden" if self.hidden else "generalized" if self.generalized else "kept"
        done = "blanked" if self.blanked and done == "generalized" else done
        entry: dict[str, object] = {"done": done, "words": self.words(shown, blanked)}
        entry |= {"missing": "Missing values remain missing."} if MISSING in occurring else {}
        return entry | ({"labels": shown, "note": UNLISTED} if done == "generalized" else {})

    def as_dict(self) -> dict[str, object]:
        runs = list(self.labels)
        saved: dict[str, object] = {
            "values": list(self.values),
            "runs": [list(run) for run in runs],
            "labels": [self.labels[run] for run in runs],
            "nodes": self.nodes,
            "depths": [self.depths[run] for run in runs],
        }
        return saved | ({} if self.spans is None else {"spans": [self.spans[run] for run in runs]})

    @classmethod
    def from_dict(cls, name: str, saved: Entry) -> BoxColumn:
        """Return a saved column. Raises ValueError if the entries cannot be those of a column."""
        values = tuple(map(str, saved["values"]))
        runs = [(int(low), int(high)) for low, high in saved["runs"]]
        if not all(0 <= low < high <= len(values) for low, high in runs) or len(set(values)) != len(values):
            raise ValueError("runs of values that are not there")
        labels = [None if label is None else str(label) for label in saved["labels"]]
        spans = {"spans": map(float, saved["spans"])} if "spans" in saved else {}
        return cls(
            name,
            values,
            dict(zip(runs, labels, strict=True)),
            bool(saved["nodes"]),
            dict(zip(runs, map(float, saved["depths"]), strict=True)),
            dict(zip(runs, spans["spans"], strict=True)) if spans else None,
        )


def box_column(
    study: Study,
    segment: Segment,
    runs: Iterable[Run],
    released: Flags,
    earlier: Mapping[Run, str] | None = None,
) -> BoxColumn:
    """Return the labels of a column.

    `released[p]` is true if a released record has value p, and `earlier` holds the labels of an earlier release.
    """
    domain = segment.domain
    tree, order = domain.hierarchy, np.array(domain.order)
    texts = [tree.leaves[leaf] for leaf in order]
    missing = None if domain.missing is None else domain.order.index(domain.missing)
    public = is_public(study.columns[domain.name])
    naming = _Naming(segment, texts, missing, np.ones_like(released) if public else released)
    wanted = sorted(set(runs))
    labels = {run: (earlier or {}).get(run) or naming.label(run) for run in wanted}
    counts = Counter(label for label in labels.values() if label is not None)
    labels = {run: naming.plain(run) if label and counts[label] > 1 else label for run, label in labels.items()}
    _refuse_unreadable(study, domain.name, labels)
    values = tuple(MISSING if position == missing else text for position, text in enumerate(texts))
    numbers = leaf_values(tree, domain.decimal)
    return BoxColumn(
        domain.name,
        values,
        labels,
        segment.constrained,
        {run: _depth(tree.sizes, tree.height, run) for run in wanted},
        None if numbers is None else {run: _span(numbers[order], run) for run in wanted},
    )


@dataclass(frozen=True, eq=False)
class _Naming:
    segment: Segment
    texts: list[str]
    missing: int | None
    released: Flags

    def label(self, run: Run) -> str | None:
        low, high = run
        if high - low == 1:
            return None if low == self.missing else self.texts[low]
        if high - low == len(self.texts):
            return self.segment.domain.hierarchy.root
        return self._nodes.get(run) or self.plain(run)

    def plain(self, run: Run) -> str:
        """Return the label of a run, made of its released values."""
        low, high = run
        inside = [position for position in range(low, high) if self.released[position]]
        inside = inside or list(range(low, high))
        texts = [self.texts[position] for position in inside]
        if len(texts) == 1 and high - low == 1:
            return texts[0]
        decimal = self.segment.domain.decimal
        if not self.segment.constrained and all(number(text, decimal) is not None for text in texts):
            return spanned(texts[0], texts[-1])
        return listed(texts if len(texts) > 1 else [*texts, *texts])

    @cached_property
    def _nodes(self) -> dict[Run, str]:
        """The names that nodes of the tree have, where a person wrote them and they are those of no value."""
        if not self.segment.constrained:
            return {}
        domain = self.segment.domain
        tree, position = domain.hierarchy, np.argsort(np.array(domain.order))
        whole = all(_is_whole(text, domain.decimal) for text, out in zip(self.texts, self.released, strict=True) if out)
        names: dict[Run, str] = {}
        for level in range(tree.height - 1, 0, -1):
            for group, name in enumerate(tree.levels[level]):
                held = position[tree.maps[level] == group]
                if not from_values(name) and tree.nodes[name][0] > 0:
                    names[int(held.min()), int(held.max()) + 1] = for_whole(name) if whole else name
        return names


def _is_whole(text: str, decimal: str) -> bool:
    value = number(text, decimal)
    return text == MISSING or (value is not None and value.is_integer())


def _depth(sizes: Iterable[Any], height: int, run: Run) -> float:
    """Return the lowest level of the tree with a label that covers as many values, as a share of its height."""
    covered = run[1] - run[0]
    return next(level / height for level, held in enumerate(sizes) if held.max() >= covered)


def _span(numbers: Floats, run: Run) -> float:
    inside = np.zeros(len(numbers), dtype=np.bool_)
    inside[run[0] : run[1]] = True
    return span_share(numbers, inside)


def _refuse_unreadable(study: Study, name: str, labels: Mapping[Run, str | None]) -> None:
    """Raise if a label would be read as another value."""
    given = [label for label in labels.values() if label is not None]
    missing = [label for label in given if label in (MISSING, *study.data.na)]
    if missing or len(set(given)) < len(given):
        what = shortened(map(repr, missing or sorted(x for x, n in Counter(given).items() if n > 1)), 3)
        raise HierarchyError(
            f"{name} would be released with labels that read as {'missing' if missing else 'one another'}: {what}",
            expected="labels that distinguish groups and are not in na under [data]",
            remedy="rename them in the hierarchy",
        )
    if study.data.neutralise_formulas and any(label != neutralised(label) for label in given):
        raise HierarchyError(
            f"{name} would be released with labels that a spreadsheet takes for formulas",
            expected="labels that start with none of the signs =, +, - and @, where neutralise_formulas = true",
        )
