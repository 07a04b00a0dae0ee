"""Mondrian: the example of its paper, a plain twin, and the laws of its classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES
from tests.strategies import hierarchies, recount

import sfumato as sf
from sfumato.data.cells import MISSING
from sfumato.methods.cuts.space import CutSpace
from sfumato.methods.local.model import Classes
from sfumato.papers.baselines import DIVIDES, LocalTable
from sfumato.plans.segments import Segment, segments_of
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes

STUDY = sf.Study(data={"path": "none"}, columns={})


def table_of(columns: dict[str, str], secret: str = "") -> FrequencyTable:
    """A table from words: one string of values a column."""
    domains, codes = [], []
    for name, words in columns.items():
        domain = domain_of(name, Counter(words.split()))
        domains.append(domain)
        codes.append([domain.labels.index(word) for word in words.split()])
    held = domain_of("s", Counter(secret.split())) if secret else None
    sensitive = {"s": (held, np.array([held.labels.index(w) for w in secret.split()], np.int32))} if held else {}
    return from_codes(domains, np.array(codes, dtype=np.int32), sensitive)


def classes_of(local: LocalTable, method: str, k: int, l: int = 1) -> Classes:
    found = local.classes(method, k, l)
    assert found is not None
    return found[0]


def boxes(local: LocalTable, found: Classes) -> list[tuple[tuple[str, ...], int]]:
    """Classes as labels from first to last value, with their records."""
    said = []
    for low, high, rows in zip(found.low.tolist(), found.high.tolist(), found.rows.tolist(), strict=True):
        ends = zip(local.table.domains, low, high, strict=True)
        labels = [(d.labels[d.order[a]], d.labels[d.order[b - 1]]) for d, a, b in ends]
        said.append((tuple(a if a == b else f"{a}-{b}" for a, b in labels), rows))
    return sorted(said)


PATIENTS = {
    "sex": "M F M M F M",
    "age": "25 25 26 27 27 28",
    "zip": "53711 53712 53711 53710 53712 53711",
}


def test_the_patients_of_the_paper() -> None:
    """LeFevre et al. 2006, the 2-anonymous multidimensional recoding of six patients.

    All columns span their whole domain, so the first is cut: both women apart from the four men. Of the men, age spans
    3/3 and zip 1/2: age is cut behind its median, 26. No part has four records then.
    """
    local = LocalTable.of(STUDY, table_of(PATIENTS))
    found = classes_of(local, "mondrian_strict", 2)
    assert boxes(local, found) == [
        (("F", "25-27", "53712"), 2),
        (("M", "25-26", "53711"), 2),
        (("M", "27-28", "53710-53711"), 2),
    ]
    cost = local.cost("mondrian_strict", 2)
    # age: 2 · 2/3 + 2 · 1/3 + 2 · 1/3; zip: 2 · 1/2; of 3 columns · 6 records
    assert cost.loss == pytest.approx((8 / 3 + 1) / 18)
    assert (cost.k, cost.l, cost.suppressed, cost.classes) == (2, None, 0, 3)
    # labels: sex F, M one each; 25 and 26: two and one, 27: two, 28: one; 53710: one, 53711: two, 53712: one
    assert cost.labels_per_value == pytest.approx((2 + 6 + 4) / 9)


def test_relaxed_cuts_divide_the_records_of_a_value() -> None:
    local = LocalTable.of(STUDY, table_of({"age": "1 2 2 2 2 3"}))
    strict, relaxed, even = (classes_of(local, name, 3) for name in DIVIDES)
    assert boxes(local, strict) == [(("1-3",), 6)]
    assert boxes(local, relaxed) == boxes(local, even) == [(("1-2",), 3), (("2-3",), 3)]


def test_an_even_division_is_first_or_last() -> None:
    """Where a whole cut is fit, only the printed rule divides: sexes 3 to 5 become F-M and M of four records each."""
    local = LocalTable.of(STUDY, table_of({"sex": "F F F M M M M M"}))
    relaxed, even = classes_of(local, "mondrian_relaxed", 3), classes_of(local, "mondrian_even", 3)
    assert boxes(local, relaxed) == [(("F",), 3), (("M",), 5)]
    assert boxes(local, even) == [(("F-M",), 4), (("M",), 4)]


def test_a_cut_must_leave_both_sides_diverse() -> None:
    table = table_of({"age": "1 2 3 4"}, secret="a a b b")
    local = LocalTable.of(STUDY, table)
    assert local.cost("mondrian_strict", 1).classes == 4
    assert local.cost("mondrian_strict", 1, 2).classes == 1
    mixed = LocalTable.of(STUDY, table_of({"age": "1 2 3 4"}, secret="a b a b"))
    cost = mixed.cost("mondrian_strict", 1, 2)
    assert (cost.classes, cost.k, cost.l) == (2, 2, 2)
    assert local.cost("mondrian_strict", 1, 3).note == "even the whole table as one class does not reach this"


@dataclass(frozen=True)
class Plain:
    """One record: its unit in each column, and its sensitive value."""

    units: tuple[int, ...]
    secret: int


def plain_mondrian(segments: tuple[Segment, ...], records: list[Plain], k: int, l: int, divide: str) -> list[Any]:
    """Mondrian as one would say it: records in lists, cut until nothing more is fit."""

    def label(j: int, part: list[Plain]) -> tuple[int, int]:
        low, high = min(r.units[j] for r in part), max(r.units[j] for r in part) + 1
        segment = segments[j]
        if segment.constrained:
            holding = [n for n in segment.nodes if n.low <= low and high <= n.high]
            node = min(holding, key=lambda n: n.high - n.low)
            return node.low, node.high
        return (0, segment.units) if segment.guarded and high == segment.units and high - low > 1 else (low, high)

    def width(j: int, part: list[Plain]) -> float:
        low, high = label(j, part)
        return (sum(segments[j].leaves[low:high]) - 1) / max(segments[j].domain.leaves - 1, 1)

    def proposals(j: int, part: list[Plain]) -> list[list[list[Plain]]]:
        segment, (low, high) = segments[j], label(j, part)
        if segment.constrained:
            (node,) = [n for n in segment.nodes if (n.low, n.high) == (low, high)]
            ends = [*node.children[1:], node.high]
            pairs = zip(node.children, ends, strict=False)
            return [[[r for r in part if a <= r.units[j] < b] for a, b in pairs]]
        found = []
        if segment.guarded and high == segment.units:
            found.append([[r for r in part if r.units[j] < high - 1], [r for r in part if r.units[j] == high - 1]])
        half = (len(part) + 1) // 2
        median = sorted(r.units[j] for r in part)[half - 1]
        less, same, more = (
            [r for r in part if r.units[j] < median],
            [r for r in part if r.units[j] == median],
            [r for r in part if r.units[j] > median],
        )
        quota = half - len(less)
        whole, other, even = [less + same, more], [less, same + more], [less + same[:quota], same[quota:] + more]
        order = {"never": [whole, other], "needed": [whole, other, even], "always": [even, whole, other]}
        return found + order[divide]

    def fit(part: list[Plain]) -> bool:
        return len(part) >= k and len({r.secret for r in part}) >= l

    def again(part: list[Plain]) -> list[list[Plain]]:
        for j in sorted(range(len(segments)), key=lambda j: -width(j, part)):
            if width(j, part) > 0:
                for pieces in proposals(j, part):
                    filled = [piece for piece in pieces if piece]
                    if len(filled) > 1 and all(fit(piece) for piece in filled):
                        return [done for piece in filled for done in again(in_order(part, piece))]
        return [part]

    def in_order(part: list[Plain], piece: list[Plain]) -> list[Plain]:
        """A piece in the order its records had: which of them are divided later depends on it."""
        left, kept = Counter(id(r) for r in piece), []
        for r in part:
            if left[id(r)]:
                left[id(r)] -= 1
                kept.append(r)
        return kept

    classes: dict[tuple[tuple[int, int], ...], list[Plain]] = {}
    for part in again(records):
        classes.setdefault(tuple(label(j, part) for j in range(len(segments))), []).extend(part)
    return sorted((box, len(part), len({r.secret for r in part})) for box, part in classes.items())


@st.composite
def studies(draw: st.DrawFn) -> FrequencyTable:
    """A random table with trees, numbers, words and missing values that stand apart."""
    rows = draw(st.integers(1, 30))
    domains, codes = [], []
    for j in range(draw(st.integers(1, 3))):
        tree = draw(hierarchies(f"q{j}", most_leaves=6))
        observed = dict.fromkeys(tree.leaves, 1) | ({MISSING: 1} if draw(st.booleans()) else {})
        domain = domain_of(f"q{j}", observed, tree, missing="category")
        column = draw(st.lists(st.integers(0, len(domain.labels) - 1), min_size=rows, max_size=rows))
        codes.append(np.array(column, dtype=np.int32))
        domains.append(recount(domain, codes[-1]))
    secret = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    held = domain_of("s", {"a": 1, "b": 1, "c": 1, "d": 1})
    return from_codes(domains, np.stack(codes), {"s": (held, np.array(secret, dtype=np.int32))})


def expanded(local: LocalTable) -> list[Plain]:
    """The records behind the cells, in their order; each is an object of its own."""
    cells = local.divided
    return [
        Plain(tuple(cells.codes[:, c].tolist()), int(cells.masks[c, 0]))
        for c in range(len(cells.counts))
        for _ in range(int(cells.counts[c]))
    ]


@given(data=st.data())
@settings(max_examples=3 * EXAMPLES)
def test_equals_the_plain_twin(data: st.DataObject) -> None:
    table = data.draw(studies())
    k, l = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    name = data.draw(st.sampled_from(list(DIVIDES)))
    local = LocalTable.of(STUDY, table)
    found = local.classes(name, k, l)
    records = expanded(local)
    if len(records) < k or len({r.secret for r in records}) < l:
        assert found is None
        return
    assert found is not None
    classes, held = found
    shown = zip(classes.low.tolist(), classes.high.tolist(), classes.rows.tolist(), held.tolist(), strict=True)
    kept = sorted((tuple(zip(a, b, strict=True)), rows, members) for a, b, rows, members in shown)
    assert kept == plain_mondrian(tuple(segments_of(STUDY, table)), records, k, l, DIVIDES[name])


@given(data=st.data())
@settings(max_examples=3 * EXAMPLES)
def test_laws_of_the_classes(data: st.DataObject) -> None:
    table = data.draw(studies())
    k, l = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    name = data.draw(st.sampled_from(list(DIVIDES)))
    local = LocalTable.of(STUDY, table)
    found = local.classes(name, k, l)
    if found is None:
        return
    classes, members = found
    assert classes.rows.min() >= k
    assert members.min() >= l
    # every record is in exactly one class, and its labels hold its values
    counted = np.bincount(classes.cell, weights=classes.count, minlength=len(classes.cells.counts))
    assert counted.tolist() == classes.cells.counts.tolist()
    inside = np.bincount(classes.owner, weights=classes.count, minlength=len(classes.rows))
    assert inside.tolist() == classes.rows.tolist()
    units = classes.cells.codes[classes.cell]
    assert np.all(classes.low[classes.owner] <= units)
    assert np.all(units < classes.high[classes.owner])
    if DIVIDES[name] == "never":
        assert len(set(classes.cell.tolist())) == len(classes.cell)
    segments = tuple(segments_of(STUDY, table))
    cost = local.cost(name, k, l)
    assert cost.loss == pytest.approx(literal_loss(segments, classes) / (len(segments) * table.rows))
    assert (cost.labels_per_value or 0) >= 1
    if l == 1 and DIVIDES[name] == "never":
        assert_nothing_more_can_be_cut(CutSpace(segments), classes, k)


def literal_loss(segments: tuple[Segment, ...], found: Classes) -> float:
    """The leaves under each label counted one by one, for each record."""
    total = 0.0
    for number, records in zip(found.owner.tolist(), found.count.tolist(), strict=True):
        for j, segment in enumerate(segments):
            held = [u for u in segment.unit_of.tolist() if found.low[number, j] <= u < found.high[number, j]]
            total += records * (len(held) - 1) / (segment.domain.leaves - 1) if segment.domain.leaves > 1 else 0.0
    return total


def assert_nothing_more_can_be_cut(space: CutSpace, found: Classes, k: int) -> None:
    """Strict classes are minimal: no ordered column of any can be cut so that both sides have k records."""
    for number in range(len(found.rows)):
        mine = found.owner == number
        for j, segment in enumerate(space.segments):
            if segment.constrained:
                continue
            units = np.repeat(found.cells.codes[found.cell[mine], j], found.count[mine])
            for at in range(1, segment.units):
                small = min(np.sum(units < at), np.sum(units >= at))
                assert small < k


def test_equals_the_plain_twin_on_adult(adult: FrequencyTable) -> None:
    study = sf.read(sf.sample("adult-complete"))
    local = LocalTable.of(study, adult)
    found = classes_of(local, "mondrian_relaxed", 100, 6)
    twin = plain_mondrian(tuple(segments_of(study, adult)), expanded(local), 100, 6, "needed")
    assert sorted(found.rows.tolist()) == sorted(rows for _, rows, _ in twin)
    assert {tuple(zip(a, b, strict=True)) for a, b in zip(found.low.tolist(), found.high.tolist(), strict=True)} == {
        box for box, _, _ in twin
    }
