"""Next year's file with this year's plan; and the three commands, end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import front_of, people, publish, small, write_csv

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import DataError, InputError
from sfumato.methods.apply import apply_plan
from sfumato.methods.publish import verify
from sfumato.release.policy import PolicyError
from sfumato.release.publish import Release

LEVELS = {"age": 2, "post code": 1, "sex": 0}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    front = front_of(small(tmp_path, rows=400), [LEVELS], 20)
    front.save(tmp_path / "front")
    return publish(front, 0, tmp_path / "release", state=tmp_path / "state").folder


def next_year(tmp_path: Path, *changes: tuple[int, int, str]) -> Path:
    rows = people(800, seed=8)
    rows[1][1] = 30
    for row, column, value in changes:
        rows[row][column] = value
    return write_csv(tmp_path / "next.csv", rows)


def rows_of(release: Release) -> list[dict[str, str]]:
    with release.data.open() as file:
        return list(csv.DictReader(file))


def test_apply_a_release_without_its_source(release: Path, tmp_path: Path) -> None:
    new, state = next_year(tmp_path), tmp_path / "state"
    (tmp_path / "people.csv").unlink()
    applied = apply_plan(release, new, tmp_path / "next", state=state)
    found = applied.manifest
    assert found["records"] == 800
    assert found["released"] == 800 - found["suppressed"]
    sizes: dict[tuple[str, ...], int] = {}
    for row in rows_of(applied):
        key = (row["age"], row["post code"], row["sex"])
        sizes[key] = sizes.get(key, 0) + 1
    assert min(sizes.values()) == found["figures"]["k"]["value"] >= found["point"]["suppress_below"]
    assert "name" not in rows_of(applied)[0]
    verify(tmp_path / "next", new).raise_if_failed()
    with pytest.raises(InputError, match="already exists"):
        apply_plan(release, new, tmp_path / "next", state=state)


def test_more_suppression_than_the_search_allowed_is_said(release: Path, tmp_path: Path) -> None:
    applied = apply_plan(release, next_year(tmp_path), tmp_path / "next", state=tmp_path / "state")
    assert applied.manifest["suppressed"] > 0
    assert any("suppressed; the search that found the plan allowed 0 %" in text for text in applied.warnings)


def test_unseen_values_are_an_error_or_hidden(release: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    new = next_year(tmp_path, (1, 1, "7777"), (2, 1, "7778"), (3, 1, "7777"), (4, 3, "X"))
    with pytest.raises(
        DataError, match=r"2 columns: age: 2 values in 3 records, such as '7777', '7778'; sex: 1 value in 1 record"
    ):
        apply_plan(release, new, tmp_path / "out", state=state)
    assert not (tmp_path / "out").exists()
    least = json.loads((release / "private" / "manifest.json").read_text())["point"]["suppress_below"]
    applied = apply_plan(release, new, tmp_path / "out", unseen="star", state=state)
    assert any(
        text.startswith("age has 2 values that the plan does not know, in 3 records") for text in applied.warnings
    )
    assert "7777" not in "".join(path.read_text() for path in applied.public.iterdir())
    assert applied.manifest["figures"]["k"]["value"] >= least
    verify(tmp_path / "out", new).raise_if_failed()
    many = [(row, 1, "7777") for row in range(1, 500)]
    wide = apply_plan(release, next_year(tmp_path, *many), tmp_path / "wide", unseen="star", state=state)
    assert {"*"} < {row["age"] for row in rows_of(wide)}
    assert wide.manifest["loss"] > 0
    with pytest.raises(InputError, match="error"):
        apply_plan(release, new, tmp_path / "no", unseen="drop")


def test_unseen_missing_values(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [["q", "x"], *([["a", "1"], ["b", "2"]] * 4)])
    write_csv(tmp_path / "n.csv", [["q", "x"], *([["a", "1"], ["", "2"]] * 4)])
    columns = {"q": {"role": "quasi_identifier"}, "x": {"role": "other"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv"), "missing": "category"}, columns=columns)
    folder = publish(front_of(study, [{"q": 0}]), 0, tmp_path / "out", state=tmp_path / "state").folder
    with pytest.raises(DataError, match="missing"):
        apply_plan(folder, tmp_path / "n.csv", tmp_path / "new", state=tmp_path / "state")
    applied = apply_plan(folder, tmp_path / "n.csv", tmp_path / "new", unseen="star", state=tmp_path / "state")
    assert sorted(row["q"] for row in rows_of(applied)) == ["*"] * 4 + ["a"] * 4


def test_apply_a_front(release: Path, tmp_path: Path) -> None:
    new, state = next_year(tmp_path), tmp_path / "state"
    with pytest.raises(InputError, match="many plans"):
        apply_plan(tmp_path / "front", new, tmp_path / "out")
    one = apply_plan(tmp_path / "front", new, tmp_path / "one", point=0, state=state)
    two = apply_plan(release, new, tmp_path / "two", state=state)
    assert sorted(one.data.read_text().splitlines()) == sorted(two.data.read_text().splitlines())
    assert one.manifest["figures"] == two.manifest["figures"]
    with pytest.raises(InputError, match="point 0, not 3"):
        apply_plan(release, new, tmp_path / "three", point=3)
    with pytest.raises(InputError, match="not the folder of a front"):
        apply_plan(tmp_path, new, tmp_path / "four")


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_the_commands(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    front, out = str(tmp_path / "sealed"), str(tmp_path / "cli")
    front_of(small(tmp_path, rows=400), [LEVELS], 20).save(front)  # under the key of this state
    code, found = ran(capsys, "publish", front, "--point", "0", "-o", out, "--reason", "because")
    assert code == 0
    assert found["released"] == 400 - found["suppressed"]
    code, found = ran(capsys, "publish", front, "--point", "0", "-o", out)
    assert code == 2
    assert "already exists" in found["error"]["what"]
    assert ran(capsys, "publish", front, "--point", "9", "-o", out + "x")[0] == 2
    code, found = ran(capsys, "verify", out)
    assert (code, found["verified"], found["differences"]) == (0, True, [])
    assert found["compared"] == ["files", "figures", "reports"]
    assert ran(capsys, "verify", out, "--source", str(tmp_path / "people.csv"))[0] == 0
    assert run(["verify", out]) == 0
    assert "is as it was published" in capsys.readouterr().out
    with (Path(out) / "public" / "data.csv").open("a") as file:
        file.write("*,*,*,flu,1\n")
    code, found = ran(capsys, "verify", out)
    assert code == 4
    assert "public/data.csv" in {difference["file"] for difference in found["differences"]}
    assert run(["verify", out]) == 4
    assert "public/data.csv: its bytes have changed" in capsys.readouterr().out
    assert ran(capsys, "verify", str(tmp_path / "nothing"))[0] == 2
    new, target = str(next_year(tmp_path, (1, 1, "7777"))), str(tmp_path / "new")
    code, found = ran(capsys, "apply", str(release), new, "-o", target)
    assert code == 2
    assert 'unseen = "star"' in found["error"]["try"]
    assert run(["apply", str(release), new, "-o", target, "--unseen", "star"]) == 0
    printed = capsys.readouterr()
    assert "that the plan does not know" in printed.err
    assert "records released" in printed.out
    code, found = ran(capsys, "publish", front, "-o", str(tmp_path / "words"))
    assert code == 2
    assert "--point 0" in found["error"]["expected"]
    assert run(["publish", front, "--point", "0", "-o", str(tmp_path / "words")]) == 0
    assert "Measured on the file" in capsys.readouterr().out


HANDED = {"k": "the first year is in the safe room", "raw": "the first year is in the safe room"}
HANDED |= dict.fromkeys(("l", "t", "uniques"), "the first year is in the safe room")


def counts_file(path: Path, **people: int) -> Path:
    """A table of one quasi-identifier and an illness: so many people of each value."""
    rows = [[value, f"{value}{number % 2}"] for value, count in people.items() for number in range(count)]
    return write_csv(path, [["q", "ill"], *rows])


def first_year(folder: Path, accept: dict[str, str]) -> Path:
    columns = {"q": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}}
    study = sf.Study(data={"path": str(counts_file(folder / "t.csv", a=2, b=40, c=40))}, columns=columns)
    front = front_of(study, [{"q": 0}], anything=False)
    return publish(front, 0, folder / "first", accept=accept, state=folder / "state").folder


def test_a_reason_holds_for_the_next_table_unless_a_figure_is_worse(tmp_path: Path) -> None:
    """k was 2: a table with k 2 needs no new reason, one with k 3 breaks nothing, one with k 1 does."""
    first = first_year(tmp_path, HANDED)
    same = apply_plan(first, counts_file(tmp_path / "same.csv", a=2, b=35, c=40), tmp_path / "a", state=tmp_path / "1")
    assert {entry["rule"] for entry in same.manifest["accepted"]} == {"k", "raw", "t"} & set(HANDED) | {"k", "raw"}
    assert HANDED["k"] in {entry["reason"] for entry in same.manifest["accepted"]}
    better = apply_plan(
        first, counts_file(tmp_path / "better.csv", a=9, b=35, c=40), tmp_path / "b", state=tmp_path / "2"
    )
    assert "k" not in {entry["rule"] for entry in better.manifest["accepted"]}
    worse = counts_file(tmp_path / "worse.csv", a=1, b=35, c=40)
    with pytest.raises(PolicyError) as refused:
        apply_plan(first, worse, tmp_path / "c", state=tmp_path / "3")
    found = {finding.key for finding in refused.value.findings}
    assert {"k", "l"} <= found
    assert "raw" not in found
    assert "k was 2 there and is 1 here" in refused.value.what
    accept = dict.fromkeys(found | {"uniques"}, "agreed again for the second year")
    again = apply_plan(first, worse, tmp_path / "c", accept=accept, state=tmp_path / "3")
    reasons = {entry["rule"]: entry["reason"] for entry in again.manifest["accepted"]}
    assert reasons["k"] == "agreed again for the second year"
    assert reasons["raw"] == HANDED["raw"]
    # The release that was asked again hands down its own figures.
    third = counts_file(tmp_path / "third.csv", a=1, b=36, c=40)
    onward = apply_plan(tmp_path / "c", third, tmp_path / "d", accept={"t": "agreed again"}, state=tmp_path / "4")
    assert {"k", "raw"} <= {entry["rule"] for entry in onward.manifest["accepted"]}


def test_a_reason_that_was_not_needed_is_not_handed_down(tmp_path: Path) -> None:
    """The first table meets k; what its run file accepts beside does not hold for a table that breaks it."""
    columns = {"q": {"role": "quasi_identifier"}}
    study = sf.Study(
        data={"path": str(counts_file(tmp_path / "t.csv", a=20, b=40))}, columns=columns | {"ill": {"role": "drop"}}
    )
    front = front_of(study, [{"q": 0}], anything=False)
    first = publish(front, 0, tmp_path / "first", accept=HANDED, state=tmp_path / "state").folder
    with pytest.raises(PolicyError) as refused:
        apply_plan(first, counts_file(tmp_path / "n.csv", a=2, b=40), tmp_path / "a", state=tmp_path / "1")
    assert {finding.key for finding in refused.value.findings} == {"k"}


@pytest.mark.parametrize("from_front", [False, True])
def test_the_rule_earlier_is_never_handed_down(tmp_path: Path, from_front: bool) -> None:
    """A trial with other labels was accepted beside the first; the next table has such a trial too, and is refused."""
    study = small(tmp_path, rows=400)
    policy = {"k": 3, "l": 1, "t": 1.0, "uniques": 1.0, "identifying": 1.0, "reason": "a table made for a test"}
    earlier = {"rule": "earlier", "reason": "the other one was a trial"}
    study = study.with_settings(
        {
            "policy": policy
            | {"accept": [earlier, {"rule": "identifying", "column": "income", "reason": "a table made for a test"}]}
        }
    )
    one, two = {"age": 2, "post code": 1, "sex": 0}, {"age": 1, "post code": 1, "sex": 1}
    publish(front_of(study, [one], 60), 0, tmp_path / "one", state=tmp_path / "state")
    second = front_of(study, [two], 60)
    accepted = publish(second, 0, tmp_path / "two", state=tmp_path / "state")
    assert "earlier" in {entry["rule"] for entry in accepted.manifest["accepted"]}
    new, state = next_year(tmp_path), tmp_path / "fresh"
    apply_plan(tmp_path / "one", new, tmp_path / "a", state=state)
    second.save(tmp_path / "front")
    plan = (tmp_path / "front", 0) if from_front else (tmp_path / "two", None)
    with pytest.raises(PolicyError) as refused:
        apply_plan(plan[0], new, tmp_path / "b", point=plan[1], state=state)
    assert {finding.key for finding in refused.value.findings} == {"earlier"}
    apply_plan(plan[0], new, tmp_path / "b", point=plan[1], accept={"earlier": "a trial as well"}, state=state)
