"""Releases of tables whose rows belong to persons: figures against pandas, what no file holds, verification, apply."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.methods.visits import study_of, visits
from tests.release.fronts import front_of, publish, write_csv

import sfumato as sf
from sfumato.release import manifest
from sfumato.release.policy import PolicyError
from sfumato.release.readback import external_facts
from sfumato.report.release_pages import whole_of

KEYS = ["age", "sex", "ward"]
TRIAL = {"t": "a table that was made for a test"}


def released(folder: Path, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """The rows of a released file, and the sizes in persons of the classes it shows."""
    rows = pd.read_parquet(folder / "public" / "data.parquet")
    assert "patient" not in rows.columns
    return rows, rows.groupby(KEYS).size()


@pytest.mark.parametrize("varying", [False, True], ids=["constant", "varying"])
@pytest.mark.parametrize("system", ["lattice", "cuts"])
def test_a_release_is_measured_in_persons_and_verified(system: str, varying: bool, tmp_path: Path) -> None:
    table = visits(200, varying=varying)
    study = study_of(table)
    settings = {"generations": 2, "population": 10} if system == "cuts" else {}
    front = sf.search(study, system=system, max_suppression=0.05, constraints={"distinct_l": 2}, **settings)
    release = sf.publish(sf.pick(front, min_k=3), tmp_path / "r", accept=TRIAL, state=tmp_path / "state")
    about = release.manifest
    _, sizes = released(tmp_path / "r", table)
    assert about["figures"]["k"]["measured_on"] == "source"
    # Every released class has at least as many rows as persons, and the class sizes in rows are those of the file.
    assert sizes.min() >= about["figures"]["k"]["value"] >= 3
    whole_of(about)["all_columns"]["unique"] = 2
    assert external_facts(about)["unique_share"] == "fewer than 10 persons"
    persons = about["own"]["persons"]
    assert persons["number"] == table["patient"].nunique()
    assert persons["suppressed"] == about["point"]["suppressed_units"]
    assert sf.verify(tmp_path / "r", table)
    assert sf.verify(tmp_path / "r")
    for name in ("public", "private"):
        for file in (tmp_path / "r" / name).rglob("*"):
            if file.is_file() and name == "public":
                assert b"p0001" not in file.read_bytes(), file


def test_figures_of_persons_are_those_of_pandas(tmp_path: Path) -> None:
    table = visits(200, varying=True)
    study = study_of(table)
    front = sf.search(study, max_suppression=0.05, constraints={"distinct_l": 2})
    choice = sf.pick(front, min_k=3)
    figures = sf.publish(choice, tmp_path / "r", accept=TRIAL, state=tmp_path / "state").manifest["figures"]
    frequency = study.table()
    rows = pd.DataFrame(
        {
            domain.name: table[domain.name].astype(str).map(dict(zip(domain.labels, part.groups.tolist(), strict=True)))
            for domain, part in zip(frequency.domains, choice.point.recoding_plan.recoding(frequency), strict=True)
        }
    )
    by = [rows[key] for key in KEYS]
    size = table["patient"].groupby(by).transform("nunique")
    kept = size >= choice.point.recoding_plan.suppress_below
    holders, share, single = [], [], []
    for _, one in table[kept].groupby([part[kept] for part in by]):
        number = one["patient"].nunique()
        held = one.groupby("diagnosis")["patient"].nunique()
        single.append(1 if held.max() == number else min(len(held), number))
        holders.append(held.max() / number)
        share.append(number)
    assert figures["k"]["value"] == min(share)
    assert figures["alpha_k"]["value"] == pytest.approx(max(holders))
    assert figures["distinct_l"]["value"] == min(single)
    each = (1 / size).where(kept, 0.0).groupby(table["patient"]).max()
    assert figures["marketer_risk"]["value"] == pytest.approx(each.mean())


def test_forged_figures_of_persons_are_found_with_the_source(tmp_path: Path) -> None:
    table = visits(150)
    front = sf.search(study_of(table), max_suppression=0.05, constraints={"distinct_l": 2})
    sf.publish(sf.pick(front, min_k=3), tmp_path / "r", accept=TRIAL, state=tmp_path / "state")
    path = tmp_path / "r" / manifest.MANIFEST
    about = json.loads(path.read_text("utf-8"))
    about["figures"]["alpha_k"]["value"] = 0.01
    about["own"]["persons"]["whole"]["all_columns"]["unique"] = 0
    about["checksum"] = manifest.checksum(about)
    path.write_text(json.dumps(about), "utf-8")
    said = " ".join(difference.what for difference in sf.verify(tmp_path / "r", table).differences)
    assert "alpha_k is not that of the source" in said
    assert "persons.whole.all_columns.unique is not that of the source" in said


def test_many_rows_of_few_persons_are_refused(tmp_path: Path) -> None:
    """The review's table: exact keys, several visits a person. In rows k is 5; in persons every class is one person."""
    table = visits(60)
    table = table.loc[table.index.repeat(5)].reset_index(drop=True)
    table["ward"] = table["patient"].str[-1]  # constant, and nearly a name together with age and sex
    study = study_of(table)
    raw = next(point for point in sf.search(study) if point.loss == 0)
    assert raw.values["k"] == 1
    with pytest.raises(PolicyError, match="share their quasi-identifiers with no other person"):
        sf.publish(sf.pick(sf.search(study), point=raw.id), tmp_path / "r", state=tmp_path / "state")


def test_a_class_of_one_household_breaks_the_rule(tmp_path: Path) -> None:
    table = visits(90).drop_duplicates("patient").reset_index(drop=True)
    table["family"] = [f"h{i // 3}" for i in range(len(table))]
    table[["age", "sex", "ward"]] = table.groupby("family")[["age", "sex", "ward"]].transform("first")
    columns = {name: column.model_dump(exclude_unset=True) for name, column in study_of(visits(5)).columns.items()}
    columns |= {"patient": {"role": "drop"}, "family": {"role": "household"}}
    study = study_of(table, columns=columns)
    front = sf.search(study)
    raw = next(point for point in front if point.loss == 0)
    assert raw.values["k"] >= 3
    with pytest.raises(PolicyError, match="Some classes hold the persons of 1 household"):
        sf.publish(sf.pick(front, point=raw.id), tmp_path / "r", state=tmp_path / "state")
    met = sf.search(study, constraints={"households": 2})
    assert sf.audit(study)["households"] == 1
    assert min(point.loss for point in met) > 0


def test_a_plan_is_applied_to_the_visits_of_another_year(tmp_path: Path) -> None:
    table, later = visits(200), visits(180, seed=8)
    front = sf.search(study_of(table), max_suppression=0.05, constraints={"distinct_l": 2})
    sf.publish(sf.pick(front, min_k=3), tmp_path / "r", accept=TRIAL, state=tmp_path / "state")
    again = sf.apply_plan(
        tmp_path / "r",
        later,
        tmp_path / "a",
        accept=TRIAL | {"l": "a table that was made for a test", "earlier": "other people, made for a test"},
        state=tmp_path / "state",
    )
    assert again.manifest["figures"]["k"]["value"] >= 3
    assert again.manifest["own"]["persons"]["number"] == later["patient"].nunique()
    assert sf.verify(tmp_path / "a", later)


@pytest.mark.parametrize("role", ["unit", "household"])
def test_two_releases_together_are_counted_in_persons_and_in_households(tmp_path: Path, role: str) -> None:
    """One file shows the region and one the trade, each of four persons; both together, the three rows of one.

    Three rows are enough for k = 3, and one person or household is not.
    """
    ills = ("flu", "cold", "asthma", "none")
    rows = [["number", "region", "trade", "ill"]]
    rows += [
        [100 + i, "nesw"[i % 4], "abcd"[i // 4], ill]
        for i in range(16)
        for ill in ills
        if ill != ills[(i // 4 + i) % 4]
    ]
    path = write_csv(tmp_path / "t.csv", rows)
    flat = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
    columns = {"number": {"role": role}, "region": flat, "trade": flat, "ill": {"role": "sensitive"}}
    study = sf.Study(data={"path": str(path)}, columns=columns)
    front = front_of(study, [{"region": 0, "trade": 1}, {"region": 1, "trade": 0}], anything=False)
    if role == "unit":
        front = replace(front, points=tuple(replace(point, suppressed_units=0) for point in front.points))
    publish(front, 0, tmp_path / "one", state=tmp_path / "state")
    with pytest.raises(PolicyError) as refused:
        publish(front, 1, tmp_path / "two", state=tmp_path / "state")
    (finding,) = refused.value.findings
    noun, least = ("people are", 3) if role == "unit" else ("households are", 2)
    assert finding.rule == "earlier"
    assert f"16 {noun} in joint classes of fewer than {least} (the smallest has 1)" in finding.what
    assert ("of 48 records in both files" in finding.what) is (role == "unit")


def test_what_a_column_reveals_is_counted_in_persons(tmp_path: Path) -> None:
    """The hidden place of 90 of 91 persons follows from the code; the last person has most of the records."""
    rows = [["number", "place", "code", "ill"]]
    rows += [[100 + i, "nesw"[i % 4], "abcd"[i % 4], ("flu", "cold")[i % 3 % 2]] for i in range(90)]
    rows += [[500, "nesw"[i % 4], "abcd"[i // 4 % 4], ("flu", "cold")[i % 2]] for i in range(1, 401)]
    path = write_csv(tmp_path / "t.csv", rows)
    flat = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
    columns = {"number": {"role": "unit"}, "place": flat, "code": {"role": "other"}, "ill": {"role": "sensitive"}}
    front = front_of(sf.Study(data={"path": str(path)}, columns=columns), [{"place": 1}], anything=False)
    front = replace(front, points=tuple(replace(point, suppressed_units=0) for point in front.points))
    with pytest.raises(PolicyError) as refused:
        publish(front, 0, tmp_path / "one", state=tmp_path / "state")
    (finding,) = (finding for finding in refused.value.findings if finding.rule == "dependence")
    assert finding.column == "code"
    assert "tells place, which is generalized: right for 98.9 % of the persons" in finding.what
