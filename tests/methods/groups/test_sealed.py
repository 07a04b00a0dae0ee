"""Known attacks fit the plans, fresh ones choose, sealed ones judge; on every released column and on all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.methods.groups.files import GOOD, PROTECT, protected_study, rows

from sfumato.base.arrays import Floats
from sfumato.cli import run
from sfumato.errors import DataError, StudyError
from sfumato.methods.groups import search
from sfumato.methods.groups.attack.attack import attack
from sfumato.methods.groups.files import read_whole
from sfumato.methods.groups.front import front_of, report_of
from sfumato.methods.groups.planner import Planner
from sfumato.methods.groups.revealing import alone, ranked
from sfumato.methods.groups.search import Level, Protection, Roles, improved, protect, truths_of
from sfumato.methods.groups.swapped import read_released, staying_columns
from sfumato.methods.groups.system import verdict_of
from sfumato.methods.groups.transport import Pairs, Transport, least_cost
from sfumato.methods.run import Run
from sfumato.study import read


def protected(folder: Path, changes: dict[str, str] | None = None) -> Protection:
    """The small study protected, with some text of its run file changed; always with the same partners."""
    text = (folder / "run.toml").read_text("utf-8")
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    (folder / "changed.toml").write_text(text, "utf-8")
    return protect(read(folder / "changed.toml"), Run(), test_seed=1)


def plans(protection: Protection) -> list[tuple[float, list[int], list[int], int]]:
    return [
        (level.level, level.plan.givers.tolist(), level.plan.takers.tolist(), level.findings)
        for level in protection.levels
    ]


@pytest.mark.long
def test_a_sealed_attacker_cannot_change_the_plan(tmp_path: Path) -> None:
    protected_study(tmp_path)
    (tmp_path / "other.csv").write_text(rows(np.random.default_rng(5)), "utf-8")
    one = protected(tmp_path)
    held_out = '{ path = "aux.csv" }, { path = "other.csv", held_out = true }'
    sealed = 'sealed_seeds = 2\nsealed_attackers = ["forest"]'
    two = protected(tmp_path, {'{ path = "aux.csv" }': held_out, "sealed_attackers = []": sealed})
    assert plans(one) == plans(two)
    assert one.chosen == two.chosen
    assert (len(one.sealed), len(two.sealed)) == (1, 8)  # exact and a forest, from two files, with two seeds
    assert {a.auxiliary for a in (*two.known, *two.fresh)} == {"aux.csv"}
    planned = [row.as_dict() for row in one.choice.residual]
    assert planned == [row.as_dict() for row in two.choice.residual]


def test_the_verdict_is_that_of_sealed_attacks_alone(tmp_path: Path) -> None:
    protected_study(tmp_path)
    front = front_of(protected(tmp_path))
    report = report_of(front)
    point = report["points"][report["chosen"]]
    sealed = [row for row in point["residual"] if row["role"] == "sealed"]
    assert point["sealed"]["areas"] == sum(row["areas_after"] for row in sealed)
    assert report["holds"] is (point["sealed"]["areas"] == 0)
    assert report["found_before"] == sum(row["areas_before"] for row in sealed)
    assert point["found"] == sum(row["areas_after"] for row in point["residual"] if row["role"] != "sealed")
    point["sealed"] |= {"areas": 2, "finding": 1, "low": 1}
    assert verdict_of(report | {"holds": False}).startswith("not hidden: after point")
    assert "from above or from below" in verdict_of(report | {"holds": True})


def row(attacker: str, areas: int, low: int = 0, role: str = "sealed") -> dict[str, Any]:
    return {"attacker": attacker, "auxiliary": "aux.csv", "role": role, "areas_after": areas, "low_after": low}


def verdict_with(*rows: dict[str, Any]) -> str:
    """The verdict on one point after these attacks; `badge` tells the group best."""
    sealed = {"attacks": 3, "finding": 1, "areas": 1, "low": 0}
    point = {"id": 0, "cost": 3.0, "sealed": sealed, "residual": list(rows)}
    telling = {"secret": [{"column": name, "alone": 0.4} for name in ("badge", "rank")]}
    return verdict_of(
        {"points": [point], "chosen": 0, "rows": 300, "columns": 3, "holds": False, "found_before": 3}
        | {"telling": telling}
    )


def test_the_verdict_names_who_finds_and_what_would_help() -> None:
    on_all = verdict_with(row("forest_all", 1), row("boosted", 0), row("exact", 2, role="known"))
    assert "by forest_all from aux.csv" in on_all
    assert (
        'It may help to withhold columns that reveal the group: withhold = ["badge", "rank"] under [groups]' in on_all
    )
    on_recipe = verdict_with(row("boosted", 1, low=1), row("forest_all", 0))
    assert "by boosted from aux.csv (from below)" in on_recipe
    assert "learn from the declared attributes alone, so withholding other columns does not help" in on_recipe


def test_the_choice_is_made_whatever_sealed_attacks_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plans that known and fresh attacks cannot tell apart, one of which swaps nothing and costs nothing: it is
    chosen, although held-out attacks find an area after it alone."""
    protected_study(tmp_path)
    hidden = protected(tmp_path).choice
    idle = replace(hidden, plan=search.NOTHING)
    monkeypatch.setattr(search, "_plans", lambda *_: ([hidden, idle], []))
    made = protected(tmp_path)
    assert made.chosen == 1
    assert [level.sealed_findings > 0 for level in made.levels] == [False, True]
    assert made.choice.sealed_findings


def test_where_like_attackers_ask_too_much_the_known_ones_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room at all for attackers like the known ones: their bounds are passed, and those of known ones kept."""
    protected_study(tmp_path)
    bounds = Planner._bounds

    def none_for_likes(self: Planner, number: int, *given: float) -> tuple[Floats, Floats]:
        grow, fall = bounds(self, number, *given)
        return (grow, fall) if self.known[number] else (np.full_like(grow, -1e3), np.zeros_like(fall))

    monkeypatch.setattr(Planner, "_bounds", none_for_likes)
    made = protected(tmp_path)
    assert made.choice.level == 1.0
    assert made.choice.plan.swaps > 0
    assert made.choice.findings == 0


def least_of_all_pairs(given: Transport) -> float:
    """What pairs cost at least that keep every bound, where records may be divided: all pairs in one program."""
    givers, takers = given.cost.shape
    who, whom = np.repeat(np.arange(givers), takers), np.tile(np.arange(takers), givers)
    shift = given.giver_weights[:, who] - given.taker_weights[:, whom]
    rows = [who == giver for giver in range(givers)] + [whom == taker for taker in range(takers)]
    for signal, room in zip(shift, given.room, strict=True):
        for area in range(len(room)):
            comes, leaves = given.taker_area[whom] == area, given.giver_area[who] == area
            rows.append(signal * comes - signal * leaves)
    most = np.concatenate([np.ones(givers + takers), given.room.ravel()])
    solved = linprog(given.cost.ravel(), A_ub=np.array(rows, dtype=np.float64), b_ub=most)
    assert solved.status == 0
    return float(solved.fun)


def test_a_plan_whose_program_divided_records_is_not_called_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole records cost more than the program with divided ones, which bounds them: the gap is told."""
    protected_study(tmp_path)
    study = read(tmp_path / "run.toml")
    target = read_released(study)
    truths = truths_of(study, target)
    made = Planner(study, target, truths, Roles(study, target, truths).planning()[0], np.random.default_rng(1))
    asked: list[Transport] = []

    def noted(given: Transport, *more: Any, **other: Any) -> Pairs | None:
        asked.append(given)
        return least_cost(given, *more, **other)

    monkeypatch.setattr("sfumato.methods.groups.planner.least_cost", noted)
    found = made.plan(0.3)
    assert found is not None
    assert found[0].bound is not None
    least = least_of_all_pairs(asked[-1])
    assert least < found[0].cost - 0.1
    assert not found[0].exact
    assert found[0].bound == pytest.approx(least, abs=1e-3)


def test_what_sealed_attacks_find_is_no_reason_to_choose(tmp_path: Path) -> None:
    protected_study(tmp_path)
    level = protected(tmp_path).choice
    worse = Level(level.level, level.plan, level.slack, level.residual, (*level.sealed, *level.sealed))
    assert worse.worth() == level.worth()


Cells = Callable[[list[str], np.random.Generator, int], str]


def study_with(folder: Path, more: str, cells: Cells, *, groups: str = "") -> Path:
    """The small study with one column more, made of a row's age, sex, town and job, a generator and its number."""
    rng = np.random.default_rng(8)
    for name, seed in (("t.csv", 1), ("aux.csv", 2)):
        head, *lines = rows(np.random.default_rng(seed)).splitlines()
        made = [f"{line},{cells(line.split(','), rng, i)}" for i, line in enumerate(lines)]
        (folder / name).write_text("\n".join([f"{head},{more}", *made]) + "\n", "utf-8")
    given = "[groups.attack]\nruns = 1\n" + PROTECT
    text = GOOD.replace("[groups]\n", "[groups]\n" + groups).replace("[groups.vital]", given + "[groups.vital]")
    (folder / "run.toml").write_text(text, "utf-8")
    return folder / "run.toml"


def badge(row: list[str], rng: np.random.Generator, _: int) -> str:
    """A column outside the recipe: four of five members have it, and one of four others."""
    return "b" if rng.random() < (0.8 if row[3] == "55" else 0.25) else "a"


def test_every_released_column_is_attacked_and_all_rows(tmp_path: Path) -> None:
    study = read(study_with(tmp_path, "badge", badge))
    path = tmp_path / "run.toml"
    path.write_text(path.read_text("utf-8").replace("age = { column", "age = { range = [18, 21], column"), "utf-8")
    narrow = read(path)
    columns = staying_columns(narrow)
    assert columns == ("age", "sex", "badge")
    target = read_whole(narrow, columns)
    assert (target.records, target.inside.sum() < 150) == (300, True)
    assert target.quantity("secret").sum() == target.members["secret"].sum() == target.everyone["secret"].sum()
    (flagged, expected) = attack(narrow, "logistic_all", seeds=1, columns=columns)
    assert len(flagged.grades) == 300
    assert (flagged.grades[~target.inside] > 0).any()
    assert expected.fuzzy().sum() == pytest.approx(flagged.grades.sum())
    assert flagged.findings().by_way["rank"] == flagged.sensitive.areas == (0,)
    (inside,) = attack(study, "exact", seeds=1)
    assert (flagged.precision or 0) > (inside.precision or 0)


def test_members_outside_the_ranges_are_moved_too(tmp_path: Path) -> None:
    path = study_with(tmp_path, "badge", badge)
    path.write_text(path.read_text("utf-8").replace("age = { column", "age = { range = [18, 21], column"), "utf-8")
    made = protect(read(path), Run(), test_seed=1)
    target = made.target
    moved = np.isin(target.rows, made.choice.plan.givers)
    assert (moved & target.members["secret"] & ~target.inside).any()
    assert made.moved().quantity("secret")[0] < 0.6 * target.quantity("secret")[0]
    assert (made.moved().sizes() == target.sizes()).all()


def test_columns_are_ranked_and_one_that_nearly_names_the_group_is_refused(tmp_path: Path) -> None:
    path = study_with(tmp_path, "badge", badge)
    target = read_whole(read(path), ("age", "sex", "badge"))
    listed = ranked(target, "secret", 25, 1)
    assert [one.column for one in listed] == ["age", "badge", "sex"]
    shown = listed[1]
    assert target.wide is not None
    assert shown.alone == pytest.approx(
        alone(target.wide.codes[2].astype(np.int64) + 1, target.members["secret"]), abs=1e-4
    )
    assert (shown.withholding_takes or 0) > (listed[2].withholding_takes or 0)
    limit = shown.alone - 0.01
    path.write_text(path.read_text("utf-8").replace("[groups]\n", f"[groups]\nnaming = {limit}\n", 1), "utf-8")
    with pytest.raises(StudyError, match=r"nearly name the group secret: badge \(0\.") as refused:
        protect(read(path), Run(), test_seed=1)
    assert refused.value.remedy == 'withhold = ["badge"] under [groups]'
    assert run(["groups", "columns", str(path), "--json"]) == 0


def household(row: list[str], _: np.random.Generator, number: int) -> str:
    """People of a town live together in the order of the file, and some alone."""
    return f"{row[2]}{number // 12}" if number % 5 else f"alone{number}"


def test_households_move_whole(tmp_path: Path) -> None:
    homes = 'unit = "home"\nwithhold = ["home"]\n'
    study = read(study_with(tmp_path, "home", household, groups=homes))
    target = read_released(study)
    truths = truths_of(study, target)
    known, _ = Roles(study, target, truths).planning()
    planner = Planner(study, target, truths, known, np.random.default_rng(1))
    made = planner.plan(0.5)
    assert made is not None
    better = improved(planner, made[0], known)
    assert better is not None
    unit_of, before = target.unit_of, target.area_of
    assert unit_of is not None
    for plan in (made[0], better):
        after = plan.moved(before, target.rows)
        assert (np.bincount(unit_of[before != after]) >= 2).any()
        for unit in np.unique(unit_of[before != after]):
            assert (before != after)[unit_of == unit].all()
            assert len(np.unique(after[unit_of == unit])) == 1
        assert (np.bincount(before) == np.bincount(after)).all()
    torn = study_with(tmp_path, "home", lambda _row, _rng, number: f"h{number // 3}", groups=homes)
    with pytest.raises(DataError, match="lie in more than one area"):
        read_released(read(torn))


def test_a_declared_household_moves_whole(tmp_path: Path) -> None:
    """The role says what [groups] unit says; where both do and differ, nothing is guessed."""
    path = study_with(tmp_path, "home", household, groups='withhold = ["home"]\n')
    text = path.read_text("utf-8")
    path.write_text(text + '\n[columns.home]\nrole = "household"\n', "utf-8")
    unit_of = read_released(read(path)).unit_of
    assert unit_of is not None
    named = text.replace("[groups]\n", '[groups]\nunit = "home"\n', 1)
    path.write_text(named, "utf-8")
    assert np.array_equal(unit_of, read_released(read(path)).unit_of)
    other = named.replace('unit = "home"', 'unit = "age"', 1)
    path.write_text(other + '\n[columns.home]\nrole = "household"\n', "utf-8")
    with pytest.raises(StudyError, match="home is declared as one"):
        read_released(read(path))


def test_two_groups_are_protected_together(tmp_path: Path) -> None:
    """The second group gathers in F, and is old."""

    def other(row: list[str], rng: np.random.Generator, _: int) -> str:
        old = int(row[0]) >= 50 and row[3] != "55"
        return "x" if old and rng.random() < (0.95 if row[2] == "F" else 0.1) else "y"

    path = study_with(tmp_path, "post", other)
    text = path.read_text("utf-8").replace("[groups.vital]\n", '[groups.vital]\npostal = [{ post = "x" }]\n')
    path.write_text(text.replace("[groups]\n", '[groups]\nexpert = ["A", "F"]\n'), "utf-8")
    made = protect(read(path), Run(), test_seed=1)
    assert [truth.group for truth in made.truths] == ["postal", "secret"]
    plan = made.levels[-1].plan
    after = made.target.with_areas(plan.moved(made.target.area_of, made.target.rows))
    for group, area in (("postal", 5), ("secret", 0)):
        assert after.quantity(group)[area] < made.target.quantity(group)[area]
    assert {row.group for row in made.choice.sealed} == {"postal", "secret"}
