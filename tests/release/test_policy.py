"""What a release must keep to: every rule is measured on the written file, and broken only with a reason."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import WHY, front_of, publish, small, write_csv

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import InputError
from sfumato.methods.registry import system_named
from sfumato.methods.system import Publishing
from sfumato.release.policy import PolicyError, acceptances
from sfumato.study.sections import THRESHOLDS, PolicySettings, weaker_thresholds

COARSE = {"age": 3, "post code": 3, "sex": 0}
RAW = {"age": 0, "post code": 0, "sex": 0}


def table(folder: Path, rows: list[list[Any]], **roles: str) -> sf.Study:
    write_csv(folder / "t.csv", rows)
    columns = {name: {"role": role} for name, role in roles.items()}
    return sf.Study(data={"path": str(folder / "t.csv")}, columns=columns)


def refused(front: sf.Front, folder: Path, **options: Any) -> dict[str, str]:
    with pytest.raises(PolicyError) as caught:
        publish(front, 0, folder, state=folder.parent / "state", **options)
    assert not folder.exists()
    assert caught.value.exit_code == 3
    return {finding.key: finding.what for finding in caught.value.findings}


def test_the_raw_table_is_refused(tmp_path: Path) -> None:
    study = small(tmp_path).model_copy(update={"policy": PolicySettings(k=4)})
    front = front_of(study, [RAW])
    broken = refused(front, tmp_path / "out")
    assert set(broken) == {"raw", "k", "l"}
    assert "no other record" in broken["k"]
    accept = dict.fromkeys(("raw", "k", "l", "t"), "made up for a test")
    assert "uniques" in refused(front, tmp_path / "out", accept=accept)


def test_each_limit_is_measured(tmp_path: Path) -> None:
    """Two of three classes break a rule each: one has a single illness, one two people, one is all of another kind."""
    rows = [["q", "ill"]]
    rows += [["a", "flu"]] * 6 + [["b", "cold"], ["b", "flu"]] + [["c", "gout"]] * 2 + [["c", "cold"]] * 90
    front = front_of(table(tmp_path, rows, q="quasi_identifier", ill="sensitive"), [{"q": 0}], anything=False)
    broken = refused(front, tmp_path / "out")
    assert "k is 2, below 3" in broken["k"]
    assert "ℓ is 1, below 2" in broken["l"]
    assert "t is 0.9" in broken["t"]
    assert set(broken) == {"raw", "k", "l", "t"}


@pytest.mark.parametrize(("limit", "broken"), [(0.06, False), (0.05, False), (0.04, True)])
def test_as_many_records_may_be_suppressed_as_the_policy_says(tmp_path: Path, limit: float, broken: bool) -> None:
    """2 of 40 records are suppressed, which is 5 %."""
    rows = [["q"], *([["a"]] * 38), ["b"], ["b"]]
    study = table(tmp_path, rows, q="quasi_identifier").model_copy(update={"policy": PolicySettings(suppressed=limit)})
    front = front_of(study, [{"q": 0}], 2, anything=False)
    assert front.points[0].suppressed == 2
    accept = {"raw": WHY}
    if broken:
        found = refused(front, tmp_path / "out", accept=accept)
        assert found == {"suppressed": "5.0 % of the records are suppressed, more than 4.0 %."}
        accept["suppressed"] = WHY
    release = publish(front, 0, tmp_path / "out", accept=accept, state=tmp_path / "state")
    assert {entry["rule"] for entry in release.manifest["accepted"]} == set(accept)


def test_a_distance_that_is_the_limit_is_refused(tmp_path: Path) -> None:
    """Half of all have the flu, and three of four in each class have the same illness: t is a quarter."""
    rows = [["q", "ill"], *([["a", "flu"]] * 3), ["a", "cold"], *([["b", "cold"]] * 3), ["b", "flu"]]
    study = table(tmp_path, rows, q="quasi_identifier", ill="sensitive")
    at, above = (study.model_copy(update={"policy": PolicySettings(t=t)}) for t in (0.25, 0.26))
    accept = {"raw": WHY}
    found = refused(front_of(at, [{"q": 0}], anything=False), tmp_path / "out", accept=accept)
    assert set(found) == {"t"}
    assert "t is 0.250, not below 0.25" in found["t"]
    publish(front_of(above, [{"q": 0}], anything=False), 0, tmp_path / "out", accept=accept, state=tmp_path / "state")


def test_columns_that_are_kept_count(tmp_path: Path) -> None:
    """k is 50 over the quasi-identifier, and a kept column makes every record unique."""
    rows = [["q", "note"], *([["a" if i % 2 else "b", f"n{i}"] for i in range(100)])]
    study = table(tmp_path, rows, q="quasi_identifier", note="other")
    front = front_of(study, [{"q": 0}], anything=False)
    broken = refused(front, tmp_path / "out", accept={"raw": "made up for a test"})
    assert "100 of 100 released records (100.0 %) are unique" in broken["uniques"]
    reason = "the file stays in the safe room"
    given = {"raw": "made up for a test", "uniques": reason, "identifying:note": "made up for a test"}
    release = publish(front, 0, tmp_path / "out", accept=given, state=tmp_path / "state")
    everything = release.manifest["whole"]["all_columns"]
    assert (everything["unique"], everything["smallest"], everything["expected_correct_matches"]) == (100, 1, 1.0)
    assert release.manifest["whole"]["columns_in_no_figure"] == ["note"]
    inside = (release.folder / "private" / "internal.html").read_text()
    assert reason in inside
    outside = (release.public / "external.html").read_text("utf-8")
    assert reason not in outside
    assert "1 further column is released unchanged" in outside
    assert "100.0\u00a0% of the records are unique" in outside


def test_the_whole_file_is_measured_as_plain_code_measures_it(tmp_path: Path) -> None:
    release = publish(front_of(small(tmp_path), [COARSE], 20), 0, tmp_path / "out", state=tmp_path / "state")
    with release.data.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for part, names in (
        ("all_columns", list(rows[0])),
        ("quasi_identifiers_and_kept", [name for name in rows[0] if name != "ill"]),
    ):
        sizes = Counter(tuple(row[name] for name in names) for row in rows)
        measured = release.manifest["whole"][part]
        assert measured["unique"] == sum(n == 1 for n in sizes.values())
        assert measured["smallest"] == min(sizes.values())
        assert measured["classes"] == len(sizes)
        assert measured["expected_correct_matches"] == pytest.approx(len(sizes) / len(rows))


def test_public_texts_do_not_promise_no_others(tmp_path: Path) -> None:
    accept = {"raw": "made up for a test", "k": "made up for a test", "uniques": "made up for a test"}
    rows = [["q"], ["a"], ["b"], ["b"]]
    front = front_of(table(tmp_path, rows, q="quasi_identifier"), [{"q": 0}], anything=False)
    outside = (publish(front, 0, tmp_path / "out", accept=accept, state=tmp_path).public / "external.html").read_text()
    assert "at least 0" not in outside
    assert "some records are unique" in outside


def test_rows_lost_to_missing_values_are_in_both_reports(tmp_path: Path) -> None:
    rows = [["q"], *([["a"], ["b"]] * 20), *([[""]] * 13)]
    study = table(tmp_path, rows, q="quasi_identifier").replace(data={"missing": "drop"})
    release = publish(
        front_of(study, [{"q": 0}], anything=False),
        0,
        tmp_path / "out",
        accept={"raw": "made up for a test", "left_out": "made up for a test"},
        state=tmp_path,
    )
    inside = (release.folder / "private" / "internal.html").read_text()
    assert "rows left out because of missing values</th><td" in inside
    assert ">13</td>" in inside
    assert "left out: 24.5\u00a0%" in (release.public / "external.html").read_text("utf-8")


@pytest.mark.parametrize(
    "given",
    [
        {"uniqes": "a reason that is long"},
        {"k": "short"},
        {"k:age": "a reason that is long"},
        {"dependence": "a reason that is long"},
        {"raw": "xxxxxxxxxx"},
        {"raw": "xx xx xx xx"},
        {"raw": "reasonreason"},
        {"raw": "............."},
        {"raw": "1234567890 1234567890"},
    ],
)
def test_an_acceptance_needs_a_rule_and_a_reason(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match="is not valid"):
        acceptances(given)


def test_the_run_file_may_accept(tmp_path: Path) -> None:
    rows = [["q"], ["a"], ["b"], ["b"]]
    accepted = [{"rule": "raw", "reason": "agreed with the review board"}]
    policy = {"k": 1, "uniques": 1, "identifying": 1, "reason": "a table made for a test", "accept": accepted}
    study = sf.Study(
        data={"path": str(write_csv(tmp_path / "t.csv", rows))},
        columns={"q": {"role": "quasi_identifier"}},
        policy=policy,
    )
    release = publish(front_of(study, [{"q": 0}], anything=False), 0, tmp_path / "out", state=tmp_path)
    (entry,) = release.manifest["accepted"]
    assert entry["reason"] == "agreed with the review board"
    (tmp_path / "run.toml").write_text(study.as_toml(), "utf-8")
    assert sf.read(tmp_path / "run.toml").policy == study.policy


def test_the_command_line_refuses_with_3_and_accepts_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    rows = [["q"], ["a"], ["b"], ["b"]]
    front_of(table(tmp_path, rows, q="quasi_identifier"), [{"q": 0}], anything=False).save(tmp_path / "front")
    arguments = ["publish", str(tmp_path / "front"), "--point", "0", "-o", str(tmp_path / "out"), "--json"]
    assert run(arguments) == 3
    refusal = json.loads(capsys.readouterr().out)["error"]
    assert {finding["key"] for finding in refusal["findings"]} == {"raw", "k"}
    accept = [f"--accept={key}=agreed with the review board" for key in ("raw", "k", "uniques")]
    assert run([*arguments, *accept]) == 0
    assert len(json.loads(capsys.readouterr().out)["accepted"]) == 3
    assert run([*arguments[:-2], str(tmp_path / "two"), "--accept", "nonsense"]) == 2


@pytest.mark.usefixtures("_generous")
def test_the_private_part_is_private_whatever_the_umask(tmp_path: Path) -> None:
    release = publish(front_of(small(tmp_path), [COARSE], 20), 0, tmp_path / "out", state=tmp_path / "state")
    private = release.folder / "private"
    assert private.stat().st_mode & 0o077 == 0
    for path in private.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


WEAKER = {"k": 2, "l": 1, "t": 1.0, "uniques": 0.5}


@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_threshold_needs_a_reason(name: str) -> None:
    """Every threshold has a direction: below the default of k and l, above the default of t and uniques."""
    with pytest.raises(InputError, match=f"{name} = .*no reason is given"):
        sf.Study(data={"path": "t.csv"}, policy={name: WEAKER[name]})
    with pytest.raises(InputError, match="two different words or more"):
        sf.Study(data={"path": "t.csv"}, policy={name: WEAKER[name], "reason": "xxxxxxxxxxxxxx"})
    study = sf.Study(data={"path": "t.csv"}, policy={name: WEAKER[name], "reason": "only for the safe room"})
    assert study.policy.reason == "only for the safe room"


def test_every_threshold_has_a_direction_and_a_default() -> None:
    """A field with a number is a rule with a direction; its default is not weaker than itself, a step beyond it is."""
    numbers = {name for name, field in PolicySettings.model_fields.items() if isinstance(field.default, int | float)}
    assert numbers == set(THRESHOLDS)
    for name, facts in THRESHOLDS.items():
        step = -1 if facts.limit == "at least" else 1
        assert not weaker_thresholds({name: facts.default})
        assert not weaker_thresholds({name: facts.default - step})
        assert list(weaker_thresholds({name: facts.default + step})) == [name]


@pytest.mark.parametrize("policy", [{}, {"k": 5, "l": 3, "t": 0.5, "suppressed": 0.1, "uniques": 0.0}])
def test_a_threshold_that_is_as_strict_needs_none(policy: dict[str, float]) -> None:
    assert sf.Study(data={"path": "t.csv"}, policy=policy).policy.reason is None


def test_the_internal_report_states_what_is_below_the_default(tmp_path: Path) -> None:
    rows = [["q"], *([["a"], ["b"]] * 2)]
    write_csv(tmp_path / "t.csv", rows)
    policy = {"k": 2, "uniques": 0.2, "reason": "only for the safe room"}
    study = sf.Study(data={"path": str(tmp_path / "t.csv")}, columns={"q": {"role": "quasi_identifier"}}, policy=policy)
    front = front_of(study, [{"q": 0}], anything=False)
    release = publish(front, 0, tmp_path / "out", accept={"raw": "made up for a test"}, state=tmp_path / "state")
    inside = (release.folder / "private" / "internal.html").read_text("utf-8").replace("\u00a0", " ")
    assert "Below the default: k is 2, not 3; uniques is 20 %, not 0.1 %. Reason: only for the safe room" in inside
    assert "safe room" not in (release.public / "external.html").read_text("utf-8")
    assert bool(sf.verify(release.folder, tmp_path / "t.csv"))


def test_a_run_file_with_weaker_thresholds_and_no_reason_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(tmp_path / "t.csv", [["q"], ["a"], ["a"]])
    text = '[data]\npath = "t.csv"\n[columns.q]\nrole = "quasi_identifier"\nhierarchy = { build = "flat" }\n'
    text += "[policy]\nk = 1\n"
    (tmp_path / "run.toml").write_text(text)
    assert run(["search", str(tmp_path / "run.toml"), "-o", str(tmp_path / "front"), "--json"]) == 2
    refusal = json.loads(capsys.readouterr().out)["error"]
    assert "k = 1" in refusal["what"]
    assert "reason" in refusal["try"]
    (tmp_path / "run.toml").write_text(text.partition("[policy]")[0])
    arguments = ["search", str(tmp_path / "run.toml"), "-o", str(tmp_path / "front"), "--json", "--set", "policy.k=1"]
    assert run(arguments) == 2
    assert run([*arguments, "--set", 'policy.reason="only for the safe room"']) == 0


def test_original_records_are_raw_however_many_are_removed(tmp_path: Path) -> None:
    """Three quasi-identifiers at level 0 and every small class suppressed: what is released is original."""
    study = small(tmp_path).model_copy(
        update={"policy": PolicySettings(k=2, l=1, t=1, uniques=1, identifying=1, reason=WHY)}
    )
    front = front_of(study, [RAW], 190, anything=False)
    assert 0 < front.points[0].suppressed < 200
    broken = refused(front, tmp_path / "out")
    assert "of the records are removed" in broken["raw"]


def test_a_generalized_column_that_changes_no_released_record_is_raw(tmp_path: Path) -> None:
    """The only values that the level joins are suppressed, so every released record has its own value."""
    tree = {"a": "a", "b": "b", "c": "cd", "d": "cd"}
    (tmp_path / "tree.csv").write_text("".join(f"{leaf};{label};*\n" for leaf, label in tree.items()))
    rows = [["q"], *([["a"], ["b"]] * 20), ["c"], ["d"]]
    write_csv(tmp_path / "t.csv", rows)
    columns = {"q": {"role": "quasi_identifier", "hierarchy": {"path": str(tmp_path / "tree.csv"), "separator": ";"}}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv")}, columns=columns)
    broken = refused(front_of(study, [{"q": 1}], 2, anything=False), tmp_path / "out")
    assert set(broken) == {"raw"}


def test_what_classes_decide_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder is begun, no engine writes, and the ledger is not read."""
    front = front_of(small(tmp_path), [RAW], anything=False)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("work was begun")

    for name in ("new_folder", "build"):
        monkeypatch.setattr(f"sfumato.release.publish.{name}", never)
    broken = refused(front, tmp_path / "out")
    assert {"raw", "k", "l"} <= set(broken)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_foreseen_is_what_the_file_has(tmp_path: Path, seed: int) -> None:
    """k, ℓ, t of classes before writing are those of plain code over the file that is written."""
    missing = ("category", "drop", "wildcard")[seed % 3]
    study = small(tmp_path, missing, rows=120 + 30 * seed)
    levels = {"age": seed % 3, "post code": 1 + seed % 3, "sex": seed % 2}
    front = front_of(study, [levels], 0 if missing == "wildcard" else 10 * seed)
    draft = system_named("lattice").draft(sf.pick(front, point=0), Publishing())
    strict = PolicySettings(k=1000, l=1000, t=1e-9, suppressed=0.0)
    draft.study = draft.study.model_copy(update={"policy": strict})
    foreseen = {finding.rule: dict(finding.figures) for finding in draft.foresee()}
    release = publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    if missing != "wildcard":
        with release.data.open(newline="") as file:
            rows = list(csv.DictReader(file))
        classes: dict[tuple[str, ...], Counter[str]] = {}
        for row in rows:
            classes.setdefault(tuple(row[name] for name in levels), Counter())[row["ill"]] += 1
        assert foreseen["k"] == {"k": min(map(Counter.total, classes.values()))}
        assert foreseen["l"] == {"l": min(map(len, classes.values()))}
        whole = Counter(row["ill"] for row in rows)
        far = max(
            sum(abs(held[v] / held.total() - whole[v] / whole.total()) for v in whole) / 2 for held in classes.values()
        )
        assert foreseen.get("t", {"t": 0.0})["t"] == pytest.approx(far)
    figures = release.manifest["figures"]
    assert foreseen["k"] == {"k": figures["k"]["value"]}
    assert foreseen["l"] == {"l": figures["distinct_l"]["value"]}
    assert foreseen.get("t", {"t": 0.0})["t"] == pytest.approx(figures["t_closeness"]["value"])
    if front.points[0].suppressed:
        assert foreseen["suppressed"]["suppressed"] == release.manifest["suppressed"] / release.manifest["records"]
