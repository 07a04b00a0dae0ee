"""Baselines: Datafly and the lattice optimum against all nodes, Adult, fronts beside them, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.visits import study_of, visits
from tests.strategies import tables

import sfumato as sf
from sfumato.errors import InputError, StudyError, UnreachableError
from sfumato.measures.classes import classify
from sfumato.measures.registry import measure
from sfumato.measures.suppression import budget, suppress_below
from sfumato.methods.lattice.rollup import RollUp
from sfumato.papers.baselines_page import baselines_page, sentences
from sfumato.papers.cuts import paper_setting
from sfumato.plans.recodings import at_levels
from sfumato.study import ColumnSettings
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes

# The bundled Adult (8 quasi-identifiers, 1 % suppressed at most), measured with this version. Nobody published them.
# Every column keeps to its tree; with runs of neighbours in five columns (PARTED) Mondrian loses less.
ADULT = [
    ("lattice_optimum", 10, 10, 4, 0.37544, 276, 81),
    ("lattice_optimum", 100, 155, 8, 0.55089, 262, 21),
    ("datafly", 10, 10, 4, 0.44209, 171, 70),
    ("datafly", 100, 118, 10, 0.64022, 104, 12),
    ("mondrian_strict", 10, 10, 1, 0.11992, 0, 1137),
    ("mondrian_strict", 100, 104, 8, 0.47827, 0, 73),
]


PARTED = [
    ("mondrian_strict", 10, 10, 1, 0.08583, 0, 1713),
    ("mondrian_strict", 100, 100, 5, 0.31819, 0, 205),
    ("mondrian_relaxed", 10, 10, 1, 0.08349, 0, 1846),
    ("mondrian_relaxed", 100, 100, 5, 0.29789, 0, 225),
    ("mondrian_even", 10, 10, 1, 0.14386, 0, 1986),
    ("mondrian_even", 100, 105, 6, 0.41257, 0, 193),
]


def adult_study(**search: object) -> sf.Study:
    return sf.read(sf.sample("adult-complete")).with_search(**search)


def small_study(share: float) -> sf.Study:
    return sf.Study(data={"path": "none"}, columns={}, search={"max_suppression": share})


def declared(table: FrequencyTable) -> FrequencyTable:
    return replace(table, domains=tuple(replace(d, declared=True) for d in table.domains))


@pytest.mark.parametrize("expected", [ADULT, PARTED])
def test_adult(adult: FrequencyTable, expected: list[tuple[object, ...]]) -> None:
    study, table = (adult_study(), adult) if expected is ADULT else (paper_setting(4), None)
    names = list(dict.fromkeys(str(row[0]) for row in expected))
    found = sf.baselines(study, [10, 100], methods=names, table=table)
    rows = [row for row in found if row.method in names]
    assert [(r.method, r.asked, r.k, r.l, round(r.loss or 0, 5), r.suppressed, r.classes) for r in rows] == expected
    assert sf.baselines(study, [10, 100], methods=names, table=table) == found


def test_adult_with_diversity(adult: FrequencyTable) -> None:
    found = sf.baselines(adult_study(), [10], l=4, table=adult)
    assert {row.method for row in found} == {"lattice_optimum", "datafly", "mondrian_strict", "mondrian_relaxed"}
    plain = sf.baselines(adult_study(), [10], table=adult)
    for row in found:
        assert (row.k or 0) >= 10
        assert (row.l or 0) >= 4
        assert (row.loss or 0) >= (plain.row(row.method, 10).loss or 0) - 1e-12
    assert (found.row("lattice_optimum", 10).loss or 0) <= (found.row("datafly", 10).loss or 0)


def test_strict_is_not_finer_than_its_lattice(adult: FrequencyTable) -> None:
    """Mondrian's loss rises with k on Adult, and stays below that of any node."""
    found = sf.baselines(adult_study(), table=adult)
    assert found.asked == (2, 5, 10, 20, 50, 100)
    for name in ("mondrian_strict", "mondrian_relaxed", "lattice_optimum"):
        losses = [found.row(name, k).loss or 0 for k in found.asked]
        assert losses == sorted(losses)
    for k in found.asked:
        assert (found.row("mondrian_strict", k).loss or 0) < (found.row("lattice_optimum", k).loss or 0)


@given(data=st.data())
def test_levels_against_every_node(data: st.DataObject) -> None:
    """The optimum is the least loss of all nodes; Datafly is one of them and keeps its rule."""
    table = declared(data.draw(tables()))
    k = data.draw(st.integers(1, min(4, table.rows)))
    share = data.draw(st.sampled_from([0, 0.1, 0.4]))
    most = budget(share, table.records)
    held = len(np.unique(table.sensitive["s"].values))
    l = data.draw(st.sampled_from([1, 1, min(2, held), min(3, held)]))
    found = sf.baselines(
        small_study(share), [k], l=l, methods=["lattice_optimum", "datafly"], table=counted_secret(table)
    )
    best, simple = found.row("lattice_optimum", k), found.row("datafly", k)
    losses = []
    for node in RollUp(table).all_nodes.tolist():
        classes = suppress_below(classify(table, at_levels(table, node)), k, l)
        if classes.suppressed_rows <= most and classes.kept.any():
            losses.append(measure("general_loss").value(classes) / (len(table.domains) * table.records))
    assert best.loss == pytest.approx(min(losses))
    assert (best.k or 0) >= k
    assert (best.suppressed or 0) <= most
    assert (simple.k or 0) >= k
    assert (simple.suppressed or 0) <= max(k, most)
    assert (simple.suppressed or 0) < table.records
    assert min(best.l or 0, simple.l or 0) >= l
    if l == 1:
        assert simple.note == "levels " + " ".join(map(str, plain_datafly(table, k, max(k, most))))
    if (simple.suppressed or 0) <= most:
        assert (simple.loss or 0) >= min(losses) - 1e-9
    else:
        assert "Datafly suppresses up to k records by its own rule" in found.notes[0]


def counted_secret(table: FrequencyTable) -> FrequencyTable:
    """The same with the counts of the sensitive values that occur."""
    held = table.sensitive["s"]
    counts = np.bincount(held.values, weights=held.counts, minlength=len(held.domain.labels)).astype(np.int64)
    return replace(table, sensitive={"s": replace(held, domain=replace(held.domain, counts=counts))})


def plain_datafly(table: FrequencyTable, k: int, most: int) -> list[int]:
    """Datafly record by record, as its paper says it."""
    trees = [domain.hierarchy for domain in table.domains]
    raw = [
        tuple(codes) for codes, count in zip(table.codes.T.tolist(), table.counts, strict=True) for _ in range(count)
    ]
    levels = [0] * len(trees)
    while True:
        recoded = [tuple(int(t.maps[v][c]) for t, v, c in zip(trees, levels, row, strict=True)) for row in raw]
        small = sum(1 for row in recoded if recoded.count(row) < k)
        if small <= most and small < len(raw):
            return levels
        values = [
            len({row[j] for row in recoded}) if v < t.height else -1
            for j, (t, v) in enumerate(zip(trees, levels, strict=True))
        ]
        levels[values.index(max(values))] += 1


def test_datafly_by_hand() -> None:
    """Six people: age has 3 different values and is generalized first. Two records then stand alone; k = 2 may go."""
    age = domain_of("age", {"20": 2, "21": 2, "30": 2}, sf.Hierarchy.from_paths("age", AGES))
    sex = domain_of("sex", {"F": 3, "M": 3}, sf.Hierarchy.from_paths("sex", [("F", "*"), ("M", "*")]))
    records = np.array([[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]], dtype=np.int32)
    table = from_codes([age, sex], records)
    row = sf.baselines(small_study(0), [2], methods=["datafly"], table=table).row("datafly", 2)
    # at (1, 0): 20s F 2, 20s M 2, 30s F 1, 30s M 1: two records are below 2, as many as may go
    assert row.note == "levels 1 0"
    assert (row.k, row.suppressed, row.classes) == (2, 2, 2)
    # four records lose 1/2 for age, two lose everything: (4 · 1/2 + 2 · 2)/(2 · 6)
    assert row.loss == pytest.approx(6 / 12)


AGES = [("20", "20s", "*"), ("21", "20s", "*"), ("30", "30s", "*")]


@pytest.mark.long
def test_a_front_of_cuts_beside_them() -> None:
    education = {
        "education": sf.read(sf.sample("adult-complete")).columns["education"].model_copy(update={"constrained": False})
    }
    study = adult_study(
        system="cuts", problem=2, objectives=("k", "general_loss"), algorithm="nsga2", generations=8, population=20
    )
    study = study.replace(columns=education)
    front = sf.search(study)
    found = sf.baselines(study, [5, 10**4], fronts=[front])
    row = found.row("cuts", 5)
    best = sf.pick(front, min_k=5).point
    assert row.loss == pytest.approx(best.loss)
    assert (row.k, row.suppressed, row.note) == (best.values["k"], best.suppressed, f"point {best.id}")
    assert found.how["cuts"].startswith("best found with seed 1")
    page = baselines_page(found, [front])
    assert page.count("Plotly.newPlot(") == 1
    assert "What each kind of recoding costs" in page
    assert "cuts (ours)" in page
    assert "the same value can carry different labels" in " ".join(sentences(found))
    lattice = sf.search(adult_study())
    both = sf.baselines(study, [5], fronts=[front, lattice])  # whose node needs no order of the values
    assert both.methods[:2] == ("cuts", "lattice")
    # a front by weighted k says no k of its points; they are measured
    plain = study.with_search(problem=1, max_suppression=0.0, generations=5)
    means = sf.search(plain)
    row = sf.baselines(plain, [1], fronts=[means], methods=["mondrian_strict"]).row("cuts", 1)
    assert (row.k or 0) >= 1
    assert row.loss == pytest.approx(min(point.loss for point in means.points))
    assert row.suppressed == 0


def test_fronts_of_other_studies_are_refused(adult: FrequencyTable) -> None:
    front = sf.search(adult_study())
    study = adult_study()
    age = {"age": study.columns["age"].model_copy(update={"breaks": (30.0,)})}
    for other, table, said in (
        (study.with_search(max_suppression=0.1), adult, "max_suppression = 0.01"),
        (study.with_search(weights={"age": 2.0}), adult, "other weights"),
        (study, replace(adult, fingerprint="else"), "another table"),
    ):
        with pytest.raises(InputError, match=said):
            sf.baselines(other, [5], fronts=[front], table=table)
    cuts = replace(front, system="cuts")
    with pytest.raises(InputError, match="another order, breaks or constraint of age"):
        sf.baselines(study.replace(columns=age), [5], fronts=[cuts], table=adult)
    with pytest.raises(InputError, match="2 fronts of lattice"):
        sf.baselines(study, [5], fronts=[front, front], table=adult)


def test_what_cannot_be_asked(adult: FrequencyTable) -> None:
    study = adult_study()
    with pytest.raises(InputError, match="k = 0"):
        sf.baselines(study, [0], table=adult)
    with pytest.raises(UnreachableError, match=r"more than the 30,162 records"):
        sf.baselines(study, [30163], table=adult)
    with pytest.raises(UnreachableError, match="l = 15 is more than the 14 different values"):
        sf.baselines(study, [5], l=15, table=adult)
    with pytest.raises(InputError, match="l = 0"):
        sf.baselines(study, [5], l=0, table=adult)
    with pytest.raises(StudyError, match="without a sensitive column"):
        sf.baselines(study, [5], l=2, table=replace(adult, sensitive={}))
    with pytest.raises(StudyError, match="removed from the table"):
        sf.baselines(study, [5], table=replace(adult, removed=3))
    with pytest.raises(InputError, match='unknown method "mondrain_strict"') as error:
        sf.baselines(study, [5], methods=["mondrain_strict"], table=adult)
    assert 'did you mean "mondrian_strict"?' in error.value.remedy


def test_without_hierarchies_levels_are_left_out(adult: FrequencyTable) -> None:
    domains = tuple(replace(d, declared=False) for d in adult.domains)
    found = sf.baselines(adult_study(), [5], table=replace(adult, domains=domains))
    assert found.methods == ("mondrian_strict", "mondrian_relaxed")
    assert found.notes[0].startswith("left out: lattice optimum, Datafly (no hierarchy for age")
    with pytest.raises(StudyError, match="left out: Datafly"):
        sf.baselines(adult_study(), [5], methods=["datafly"], table=replace(adult, domains=domains))


def test_several_sensitive_columns(adult: FrequencyTable) -> None:
    """What a divided tuple's records hold together is not known, so nothing is said of it."""
    (held,) = adult.sensitive.values()
    table = replace(adult, sensitive={"one": held, "two": held})
    found = sf.baselines(adult_study(), [10], methods=["mondrian_strict", "mondrian_relaxed"], table=table)
    assert found.row("mondrian_strict", 10).l == 1
    assert found.row("mondrian_relaxed", 10).l is None
    found = sf.baselines(adult_study(), [10], l=3, methods=["mondrian_strict", "mondrian_relaxed"], table=table)
    assert found.row("mondrian_strict", 10).l == 3
    assert found.row("mondrian_relaxed", 10).loss is None
    assert "one sensitive column only" in found.row("mondrian_relaxed", 10).note


def test_weights_count_in_the_loss(adult: FrequencyTable) -> None:
    plain = sf.baselines(adult_study(), [10], methods=["mondrian_strict"], table=adult).rows[0]
    only_sex = dict.fromkeys(adult.columns, 0.0) | {"sex": 1.0}
    heavy = sf.baselines(adult_study(weights=only_sex), [10], methods=["mondrian_strict"], table=adult).rows[0]
    assert heavy.classes == plain.classes
    assert (heavy.loss or 0) < (plain.loss or 0)


def test_mondrian_keeps_to_trees_and_says_so(adult: FrequencyTable) -> None:
    """Where nothing is said a column with a tree keeps to it, as in local recoding; ARX's figures beside it."""
    along = sf.baselines(adult_study(), [20], methods=["mondrian_relaxed"], table=adult)
    study = paper_setting(4)
    free = sf.baselines(study, [20, 30], methods=["mondrian_relaxed"])
    assert along.labels.startswith("Mondrian's labels are nodes of the tree for age, ")
    assert "runs of neighbouring values for age, education, race, sex, salary-class" in free.labels
    assert (free.row("mondrian_relaxed", 20).loss or 0) == pytest.approx(0.1335, abs=5e-5)
    assert (along.row("mondrian_relaxed", 20).loss or 0) > (free.row("mondrian_relaxed", 20).loss or 0)
    for found in (along, free):
        assert (found.row("arx_local", 20).loss, found.row("arx_local", 20).table_error) == (0.0631, 0.0535)
        assert found.labels in " ".join(sentences(found))
    assert free.row("arx_local", 30).loss is None
    assert "ARX 3.9.2, local" in baselines_page(free)


def test_recorded_figures_are_of_one_table_alone() -> None:
    whole = paper_setting(4)
    few = whole.replace(columns={"race": ColumnSettings(role="drop")})
    found = sf.baselines(few, [20], methods=["mondrian_strict"])
    assert found.methods == ("mondrian_strict",)


def test_a_comparison_where_rows_belong_to_persons_is_refused() -> None:
    """Mondrian divides records, so its k would count the rows of one person as several persons."""
    study = study_of(visits(60))
    with pytest.raises(StudyError, match="patient is a unit column"):
        sf.baselines(study, [3])
