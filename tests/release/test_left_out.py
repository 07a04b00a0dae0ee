"""Left out means lost: records that the missing rule leaves out are in the loss, the policy, pages and counts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.base.text import percent
from sfumato.cli import run
from sfumato.release.policy import PolicyError

METHODS = ("lattice", "cuts", "local", "cells")
ENOUGH = "the table is a test and nobody is in it"
ACCEPT = dict.fromkeys(("k", "l", "t", "uniques", "raw", "left_out"), ENOUGH)
COLUMNS = {
    "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20]}},
    "zip": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "ill": {"role": "sensitive"},
}


def people(rows: int = 300, share: float = 0.3, seed: int = 3) -> pd.DataFrame:
    """People, some of whom have no age; `-9` is how the file says so."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, rows).astype(str),
            "zip": rng.choice(["8001", "8002", "8003"], rows),
            "sex": rng.choice(["F", "M"], rows),
            "ill": rng.choice(["flu", "cold", "none", "gout"], rows),
        }
    )
    frame.loc[rng.random(rows) < share, "age"] = "-9"
    return frame


def study_of(folder: Path, frame: pd.DataFrame, missing: str | None = "drop", **search: Any) -> sf.Study:
    frame.to_csv(folder / "people.csv", index=False)
    data = {"path": str(folder / "people.csv"), "na": ["-9"], **({} if missing is None else {"missing": missing})}
    return sf.Study(data=data, columns=COLUMNS, search={"max_suppression": 0.05, **search})


@pytest.mark.parametrize("method", METHODS)
def test_a_record_that_is_left_out_is_lost(tmp_path: Path, method: str) -> None:
    """The loss is that of the complete rows as a source of their own, with every other record fully lost."""
    frame = people()
    complete = frame[frame["age"] != "-9"]
    n, m = len(complete), len(frame) - len(complete)
    settings = {"system": method, **({"generations": 5} if method == "cuts" else {})}
    (tmp_path / "whole").mkdir()
    (tmp_path / "some").mkdir()
    whole = sf.search(study_of(tmp_path / "whole", frame, **settings))
    alone = sf.search(study_of(tmp_path / "some", complete, **settings))
    assert (whole.left_out, alone.left_out, whole.rows) == (m, 0, n)
    assert [point.values for point in whole] == [point.values for point in alone]
    assert [point.plan for point in whole] == [point.plan for point in alone]
    for one, other in zip(whole, alone, strict=True):
        assert one.loss == pytest.approx((n * other.loss + m) / (n + m), rel=1e-12)
        if "ratio" in other.details:
            assert one.details["ratio"] == other.details["ratio"]
            assert one.details["floor"] == pytest.approx((n * other.details["floor"] + m) / (n + m), rel=1e-12)
            assert whole.ratio(one.loss, one.details["floor"]) == pytest.approx(one.details["ratio"], rel=1e-9)
    read = sf.load_front(whole.save(tmp_path / "front"))
    assert (read.left_out, [p.loss for p in read]) == (m, [p.loss for p in whole])
    assert f"{m:,} left out" in repr(read)


@pytest.mark.parametrize("method", METHODS)
def test_a_release_says_what_was_left_out(tmp_path: Path, method: str) -> None:
    """The file that was written has the loss of the source, by plain counting; every page and count names the rest."""
    frame = people()
    complete = frame[frame["age"] != "-9"]
    n, m = len(complete), len(frame) - len(complete)
    front = sf.search(study_of(tmp_path, frame, system=method, **({"generations": 5} if method == "cuts" else {})))
    choice = sf.pick(front, min_k=3)
    with pytest.raises(PolicyError, match=f"leaves out {m} of the {n + m} records of the source") as refused:
        sf.publish(choice, tmp_path / "refused", accept={k: v for k, v in ACCEPT.items() if k != "left_out"})
    assert [finding.rule for finding in refused.value.findings] == ["left_out"]
    release = sf.publish(choice, tmp_path / "release", accept=ACCEPT)
    about = release.as_dict()
    written = pd.read_csv(release.data, dtype=str, keep_default_na=False)
    assert (about["left_out"], about["records"], len(written)) == (m, n, about["released"])
    assert about["loss"] == pytest.approx(choice.point.loss, rel=1e-9)
    assert about["loss"] >= m / (n + m)
    for name in ("public/external.html", "private/internal.html"):
        text = re.sub(r"<script.*?</script>", "", (release.folder / name).read_text("utf-8"), flags=re.DOTALL)
        tiles = text.split("<table")[0].replace("\xa0", " ")
        assert percent(m / (n + m)) in tiles, name
        assert "left out" in tiles, name
    checked = sf.verify(release.folder, source=tmp_path / "people.csv")
    checked.raise_if_failed()
    assert checked.counts["left_out"] == m
    again = sf.read(release.folder / "private" / "run.toml").table()
    assert again.left_out == m


def test_a_manifest_that_hides_records_is_a_difference(tmp_path: Path) -> None:
    """A count of left-out records that is made smaller, with its checksum, is noticed without and with the source."""
    from sfumato.release import manifest as pack

    frame = people()
    front = sf.search(study_of(tmp_path, frame))
    release = sf.publish(sf.pick(front, min_k=3), tmp_path / "release", accept=ACCEPT)
    path = release.folder / pack.MANIFEST
    for rows in (0, int((frame["age"] == "-9").sum())):
        manifest = json.loads(path.read_text("utf-8"))
        manifest["left_out"] = 0
        manifest["source"]["rows_read"] -= rows
        manifest["checksum"] = pack.checksum(manifest)
        path.write_text(json.dumps(manifest), "utf-8")
        assert not sf.verify(release.folder)
    assert not sf.verify(release.folder, source=tmp_path / "people.csv")


def test_limits_and_questions_are_about_the_source(tmp_path: Path) -> None:
    frame = people()
    n, m = int((frame["age"] != "-9").sum()), int((frame["age"] == "-9").sum())
    front = sf.search(study_of(tmp_path, frame))
    with pytest.raises(sf.SfumatoError):
        sf.pick(front, max_loss=m / (n + m) - 0.001, min_k=2)
    losses = [point.loss for point in front if point.values["k"] >= 2]
    chosen = sf.pick(front, max_loss=min(losses) + 1e-9, min_k=2)
    assert chosen.point.loss == min(losses)
    answer = sf.ask(front, max_loss=0.7)
    assert m / (n + m) < answer.offer.loss <= 0.7
    revised = sf.ask(front, max_loss=0.7, max_suppression=0.0)
    table = front.study.table()
    classes = answer.choice.point
    assert (table.left_out, classes.loss) == (m, pytest.approx(answer.offer.loss))
    assert revised.choice.point.loss == pytest.approx(revised.offer.loss, rel=1e-9)
    rows = sf.baselines(front.study, ks=[3], fronts=[front])
    assert all(row.loss is None or row.loss >= m / (n + m) for row in rows)
    assert min(point.loss for point in front) >= m / (n + m)


def test_a_share_below_the_rule_needs_no_acceptance(tmp_path: Path) -> None:
    """The rule is a share of the source: at its limit nothing is refused, one record more is."""
    frame = people(400, 0.0)
    rule = {"k": 1, "l": 1, "t": 1.0, "uniques": 1.0, "reason": ENOUGH}
    frame.loc[:19, "age"] = "-9"  # 20 of 400 are 5 %
    fine = study_of(tmp_path, frame).with_settings({"policy": rule})
    sf.publish(sf.pick(sf.search(fine), min_k=2), tmp_path / "fine")
    frame.loc[20, "age"] = "-9"
    over = study_of(tmp_path, frame).with_settings({"policy": rule})
    with pytest.raises(PolicyError, match="leaves out 21 of the 400 records"):
        sf.publish(sf.pick(sf.search(over), min_k=2), tmp_path / "over")
    kept = over.with_settings({"policy": {**rule, "left_out": 0.1}})
    sf.publish(sf.pick(sf.search(kept), min_k=2), tmp_path / "kept")


def test_missing_is_a_category_unless_another_rule_is_given(tmp_path: Path) -> None:
    frame = people()
    study = study_of(tmp_path, frame, missing=None)
    table = study.table()
    assert (study.data.missing, table.left_out, table.rows) == ("category", 0, len(frame))
    read = frame.replace("-9", None)
    assert sf.Study(read, quasi_identifiers=["age", "zip"], sensitive=["ill"], drop=["sex"]).table().left_out == 0


def test_the_samples() -> None:
    """All 32,561 records with a category for missing values, and the 30,162 that are complete, which has none."""
    whole, complete = (sf.read(sf.sample(name)).table() for name in ("adult", "adult-complete"))
    assert (whole.rows, whole.left_out, complete.rows, complete.left_out) == (32_561, 0, 30_162, 0)
    assert complete.tuples == 12_458
    for domain in whole.domains:
        if domain.missing is None:
            continue
        code, tree = domain.missing, domain.hierarchy
        assert tree.leaves[code] == "?"
        for level in range(tree.height):  # apart from every other value on every level but the last
            assert (np.asarray(tree.maps[level]) == tree.maps[level][code]).sum() == 1
    assert {d.name for d in whole.domains if d.missing is not None} == {"workclass", "native-country"}


def inspected(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert run(["inspect", str(path), "-o", str(path.parent / "first.toml"), "--force", "--json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_nist_a_code_says_what_it_costs(shared: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """REVIEW-PAGE C1 A: N in 12 columns of MA 2019 is "not applicable" and would leave 37 of 7,634 records."""
    frame = pd.read_csv(
        shared / "data" / "nist-diverse-communities" / "ma2019.csv.gz", dtype=str, keep_default_na=False
    )
    frame.to_csv(tmp_path / "ma2019.csv", index=False)
    cost = inspected(tmp_path / "ma2019.csv", capsys)["missing_codes"]["N"]
    inside = frame[cost["columns"]] == "N"
    assert (len(cost["columns"]), cost["records"], cost["cells"]) == (
        12,
        int(inside.any(axis=1).sum()),
        inside.sum().sum(),
    )
    assert cost["left_out"] == 7_597 == int(inside.any(axis=1).sum())
    assert cost["rules"]["drop"] == "7,597 of 7,634 records are left out (99.5 %)"
    assert cost["rules"]["category"].startswith("no record is left out")
    assert 'missing = "category"' in (tmp_path / "first.toml").read_text("utf-8")


def test_uk_census_a_code_says_what_it_costs(shared: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """REVIEW-PAGE C1 B: -9 is "not applicable" for children; 26,717 of 50,000 people have it."""
    folder = shared / "data" / "uk-census-2011-teaching"
    frame = pd.read_csv(folder / "2011-census-microdata-small.csv.gz", dtype=str, keep_default_na=False)
    frame.to_csv(tmp_path / "uk.csv", index=False)
    cost = inspected(tmp_path / "uk.csv", capsys)["missing_codes"]["-9"]
    inside = frame[cost["columns"]] == "-9"
    assert (cost["records"], cost["cells"]) == (int(inside.any(axis=1).sum()), int(inside.sum().sum()))
    assert cost["left_out"] == cost["records"] == 26_717
    assert "26,717 of 50,000 records are left out (53.4 %)" in (tmp_path / "first.toml").read_text("utf-8")


def test_a_code_is_counted_with_the_others_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Blank cells and codes that are declared already are part of what "drop" would leave out."""
    rng = np.random.default_rng(5)
    rows = 200
    frame = pd.DataFrame(
        {
            "age": rng.choice([*map(str, range(20, 60)), "-9"], rows),
            "children": rng.choice(["0", "1", "2", "3", "-9", "-8"], rows),
            "sex": rng.choice(["F", "M", ""], rows),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = inspected(tmp_path / "t.csv", capsys, "--na=-8")["missing_codes"]["-9"]
    measured = frame[[*{*found["columns"], "sex"}]] if "sex" in found["columns"] else frame
    held = (measured == "-9").any(axis=1)
    gone = ((measured == "") | (measured == "-8")).any(axis=1)
    assert (found["records"], found["left_out_now"]) == (int(held.sum()), int(gone.sum()))
    assert found["left_out"] == int((held | gone).sum())
    assert (tmp_path / "first.toml").read_text("utf-8").count(f"drop: {found['left_out']} of 200 records") == 1


def test_the_command_line_names_left_out_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """audit, search, pick, ask, publish and verify say how many records the missing rule left out."""
    frame = people()
    m = int((frame["age"] == "-9").sum())
    (tmp_path / "run.toml").write_text(study_of(tmp_path, frame).as_toml(), "utf-8")
    run_file, front, release = (str(tmp_path / name) for name in ("run.toml", "front", "release"))
    accept = [part for rule, reason in ACCEPT.items() for part in ("--accept", f"{rule}={reason}")]
    for command in (
        ["audit", "--run", run_file],
        ["search", run_file, "-o", front],
        ["pick", front, "--max-loss", "0.7"],
        ["ask", front, "--max-loss", "0.7"],
        ["publish", front, "--point", "3", "-o", release, *accept],
        ["verify", release, "--source", run_file],
    ):
        assert run(command) == 0, command
        said = capsys.readouterr()
        assert f"{m:,}" in said.out + said.err, command
        assert "left out" in said.out + said.err, command
    assert run(["map", front]) == 0
    assert f"{m:,} records of the source left out" in (tmp_path / "front" / "map.html").read_text("utf-8")


def test_a_released_weight_that_is_unique_says_what_to_do(tmp_path: Path) -> None:
    """REVIEW-OFFICE F6a: the rule on unique records names the weight, and the same table without one is not advised."""
    frame = people(120, 0.0).assign(weight=[str(100 + place) for place in range(120)])
    frame.to_csv(tmp_path / "people.csv", index=False)
    rule = {"k": 1, "l": 1, "t": 1.0, "reason": ENOUGH}
    for role in ("weight", "other"):
        columns = {**COLUMNS, "weight": {"role": role}}
        study = sf.Study(data={"path": str(tmp_path / "people.csv")}, columns=columns, policy=rule)
        with pytest.raises(PolicyError) as refused:
            sf.publish(sf.pick(sf.search(study), min_k=3), tmp_path / "release")
        (unique,) = [finding.what for finding in refused.value.findings if finding.rule == "uniques"]
        assert ("Round it (round), give it the role drop" in unique) is (role == "weight")
