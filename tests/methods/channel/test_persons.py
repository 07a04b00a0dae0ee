"""One report per person: a person with many rows is as well protected as one with a single row."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import DataError, StudyError
from sfumato.methods.channel.estimate import grr, warner
from sfumato.plans.channel import Channel
from sfumato.release import manifest as pack
from sfumato.release.policy import PolicyError

JOBS = ("clerk", "cook", "driver")
ROLES = {
    "person": {"role": "unit"},
    "job": {"role": "sensitive"},
    "sex": {"role": "other"},
    "tag": {"role": "other"},
}
COIN = Channel(("job",), JOBS, JOBS, grr(3, 1.0))
ALL = {"uniques": "the tags of a test", "k": "the tags of a test", "response": "the tags of a test"}


def visits(persons: int = 360) -> pd.DataFrame:
    """Persons with 1 to 12 rows; commonest is the job of those with few rows, so rows and persons differ in shares."""
    rows = []
    for person in range(persons):
        many = person % 12 + 1
        job = JOBS[0 if many < 7 else 1 if many < 11 else 2]
        rows += [(f"p{person}", job, "fm"[person % 2], f"t{person}")] * many
    return pd.DataFrame(rows, columns=["person", "job", "sex", "tag"])


def study_of(path: Path, frame: pd.DataFrame, **settings: Any) -> sf.Study:
    frame.to_csv(path, index=False)
    return sf.Study(data={"path": str(path)}, columns=ROLES, **settings)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))


def test_a_person_has_one_report_in_all_rows(tmp_path: Path) -> None:
    """A person's rows show one report, with M[y, x] for one row and for twelve, so the posterior is the same."""
    frame = visits()
    sf.disguise(study_of(tmp_path / "v.csv", frame), [COIN], tmp_path / "out", keep=["tag"], accept=ALL)
    data = pd.read_csv(tmp_path / "out" / "public" / "data.csv", dtype=str)
    assert len(data) == len(frame)
    assert data.groupby("tag").size().equals(frame.groupby("tag").size())
    assert (data.groupby("tag")["job"].nunique() == 1).all()
    told = data.groupby("tag")["job"].first() == frame.groupby("tag")["job"].first()
    truth = math.exp(1) / (math.exp(1) + 2)
    assert abs(told.mean() - truth) < 6 * math.sqrt(truth * (1 - truth) / 360)
    for many in (1, 12):  # given the truth, who has twelve rows is no more often reported truly
        own = frame.groupby("tag").filter(lambda rows, many=many: len(rows) == many)["tag"].unique()
        assert abs(told[own].mean() - truth) < 6 * math.sqrt(truth * (1 - truth) / len(own))
    checked = sf.verify(tmp_path / "out", tmp_path / "v.csv")
    assert checked, [str(difference) for difference in checked.differences]


@pytest.mark.long
def test_twelve_rows_say_no_more_than_one(tmp_path: Path) -> None:
    """The posterior from all rows of a person in the file, by Bayes: the same for one row and for twelve, and true."""
    frame = pd.DataFrame({"person": range(4_000)})
    frame["job"] = [JOBS[(0, 0, 0, 1, 1, 2)[person // 2 % 6]] for person in frame["person"]]
    frame = frame.loc[frame.index.repeat([1, 12] * 2_000)].reset_index(drop=True)
    frame["tag"] = "t" + frame["person"].astype(str)
    frame = frame.astype(str).assign(sex="f")
    accept = ALL | {"identifying:tag": "the tags of a test"}
    sf.disguise(study_of(tmp_path / "v.csv", frame), [COIN], tmp_path / "out", keep=["tag"], accept=accept)
    shares = frame.drop_duplicates("person")["job"].value_counts(normalize=True)
    found = json.loads(next((tmp_path / "out" / "public").glob("*.channel.json")).read_text("utf-8"))["channels"][0]
    matrix = pd.DataFrame(found["matrix"], index=found["outputs"], columns=found["categories"])
    posteriors = matrix.mul(shares).div(matrix.mul(shares).sum(axis=1), axis=0)
    data = pd.read_csv(tmp_path / "out" / "public" / "data.csv", dtype=str).groupby("tag")["job"]
    truth = frame.groupby("tag")["job"].first()
    reports, sizes = data.agg(lambda rows: frozenset(rows)), data.size()
    for size in (1, 12):
        own = reports[sizes == size]
        assert len(own) == 2_000
        assert own.map(len).max() == 1  # one draw, so the rows together have the probability of one of them
        for job in JOBS:  # what Bayes says of these persons is how often it is so
            said = own.map(lambda report: next(iter(report))).map(posteriors[job])
            spread = math.sqrt((said * (1 - said)).sum()) / len(own)
            assert abs((truth[own.index] == job).mean() - said.mean()) < 5 * spread
        right = own.map(lambda report: posteriors.loc[next(iter(report))].idxmax())
        best = own.map(lambda report: posteriors.loc[next(iter(report))].max())
        spread = math.sqrt((best * (1 - best)).sum()) / len(own)
        assert abs((truth[own.index] == right).mean() - best.mean()) < 5 * spread


def test_without_a_unit_rows_are_averaged_away(tmp_path: Path) -> None:
    """The contrast: where rows are not of persons, each has a draw of its own."""
    visits().drop(columns="person").to_csv(tmp_path / "v.csv", index=False)
    study = sf.Study(data={"path": str(tmp_path / "v.csv")}, columns={})
    accept = ALL | {"dependence:tag": "the rows of a tag have one job, as those of a test"}
    sf.disguise(study, [COIN], tmp_path / "out", keep=["tag"], accept=accept)
    data = pd.read_csv(tmp_path / "out" / "public" / "data.csv", dtype=str)
    assert (data.groupby("tag")["job"].nunique() > 1).mean() > 0.5


def test_figures_count_persons(tmp_path: Path) -> None:
    frame = visits()
    sf.disguise(study_of(tmp_path / "v.csv", frame), [COIN], tmp_path / "out", keep=["sex"])
    manifest = pack.read_manifest(tmp_path / "out")
    persons = frame.drop_duplicates("person")
    kept = json.loads((tmp_path / "out" / "private" / "channel.json").read_text("utf-8"))
    assert dict(zip(JOBS, kept["counts"][0], strict=True)) == persons["job"].value_counts().to_dict()
    assert dict(zip(JOBS, kept["rows"][0], strict=True)) == frame["job"].value_counts().to_dict()
    assert manifest["released"] == manifest["records"] == len(frame)
    assert manifest["own"]["persons"] == {"number": 360, "most_reports": 1}
    matrix = {y: dict(zip(JOBS, row, strict=True)) for y, row in zip(JOBS, COIN.matrix.tolist(), strict=True)}
    shares = persons["job"].value_counts(normalize=True).to_dict()
    blind = sum(max(matrix[y][x] * shares[x] for x in JOBS) for y in JOBS)
    figures = manifest["figures"]["job"]
    assert 1 - figures["privacy"] == pytest.approx(blind, abs=1e-12)
    joint = persons.groupby(["sex", "job"]).size() / 360
    right = sum(max(matrix[y][x] * joint.get((z, x), 0.0) for x in JOBS) for y in JOBS for z in "fm")
    worst = max(
        max(matrix[y][x] * joint.get((z, x), 0.0) for x in JOBS)
        / sum(matrix[y][x] * joint.get((z, x), 0.0) for x in JOBS)
        for y in JOBS
        for z in "fm"
    )
    assert figures["given"]["best_guess"] == pytest.approx(right, abs=1e-12)
    assert figures["given"]["worst_posterior"] == pytest.approx(worst, abs=1e-12)
    assert "All figures below count persons" in (tmp_path / "out" / "public" / "external.html").read_text("utf-8")


def test_a_combination_is_large_by_its_persons(tmp_path: Path) -> None:
    """Forty persons with many rows are a small combination, which only ε covers."""
    rows = [(f"p{i}", JOBS[i % 3], "f" if i < 40 else "m", "t") for i in range(300) for _ in range(10)]
    frame = pd.DataFrame(rows, columns=["person", "job", "sex", "tag"])
    strong = Channel(("job",), JOBS, JOBS, grr(3, 3.5))
    with pytest.raises(PolicyError, match=r"13\.3 % of the persons are in combinations of sex with fewer than 100"):
        sf.disguise(study_of(tmp_path / "v.csv", frame), [strong], tmp_path / "out", keep=["sex"])


def test_different_values_of_a_person_are_reports_of_their_own(tmp_path: Path) -> None:
    frame = visits()
    second = frame.index % 5 == 0
    frame.loc[second, "job"] = frame.loc[second, "job"].map(dict(zip(JOBS, [*JOBS[1:], JOBS[0]], strict=True)))
    sf.disguise(study_of(tmp_path / "v.csv", frame), [COIN], tmp_path / "out", keep=["tag"], accept=ALL)
    data = pd.read_csv(tmp_path / "out" / "public" / "data.csv", dtype=str)
    values = frame.groupby("tag")["job"].nunique()
    assert values.max() == 2
    assert (data.groupby("tag")["job"].nunique() <= values).all()
    manifest = pack.read_manifest(tmp_path / "out")
    assert manifest["own"]["persons"] == {"number": 360, "most_reports": 2}
    assert any("the sum of the ε" in warning for warning in manifest["warnings"])
    public = (tmp_path / "out" / "public" / "external.html").read_text("utf-8")
    assert "A person has up to 2 reports, and the ε of the person is their sum" in public
    kept = json.loads((tmp_path / "out" / "private" / "channel.json").read_text("utf-8"))
    pairs = frame.drop_duplicates(["person", "job"])["job"].value_counts().to_dict()
    assert dict(zip(JOBS, kept["counts"][0], strict=True)) == pairs
    assert sf.verify(tmp_path / "out", tmp_path / "v.csv")


def test_rows_without_a_person_are_an_error(tmp_path: Path) -> None:
    frame = visits()
    frame.loc[[3, 5], "person"] = None
    with pytest.raises(DataError, match="2 rows have no value in person"):
        sf.disguise(study_of(tmp_path / "v.csv", frame), [COIN], tmp_path / "out")


def test_persons_with_rows_in_several_combinations_are_covered_by_epsilon(tmp_path: Path) -> None:
    frame = visits()
    frame["sex"] = ["fm"[i % 2] for i in range(len(frame))]
    sure = Channel(("job",), JOBS, JOBS, warner(3, 0.6))
    wide = Channel(("job",), JOBS, JOBS, grr(3, 3.5))
    sf.disguise(study_of(tmp_path / "v.csv", frame), [sure], tmp_path / "out", keep=["sex"])
    with pytest.raises(PolicyError, match="persons have rows with different values of sex"):
        sf.disguise(study_of(tmp_path / "v.csv", frame), [wide], tmp_path / "no", keep=["sex"], state=tmp_path / "o")


def test_a_search_counts_persons(tmp_path: Path) -> None:
    frame = visits()
    channel = {"columns": ["job"], "keep": ["sex"], "points": 2, "design": "exact"}
    study = study_of(tmp_path / "v.csv", frame, channel=channel, search={"system": "channel"})
    front = sf.search(study)
    assert front.rows == 360
    shares = frame.drop_duplicates("person")["job"].value_counts(normalize=True)
    channel_found = front.points[0].plan
    assert isinstance(channel_found, Channel)
    right = sum(
        max(p * shares[x] for x, p in zip(channel_found.categories, row, strict=True))
        for row in channel_found.matrix.tolist()
    )
    assert front.points[0].values["privacy"] == pytest.approx(1 - right, abs=1e-9)
    sf.publish(sf.pick(front, point=0), tmp_path / "out")
    assert sf.verify(tmp_path / "out", tmp_path / "v.csv")


@pytest.mark.parametrize("setting", ["keep", "given"])
def test_a_number_of_persons_cannot_be_kept_beside_reports(tmp_path: Path, setting: str) -> None:
    """It would give away which rows belong together; the search says so before it begins."""
    study = study_of(
        tmp_path / "v.csv", visits(60), search={"system": "channel"}, channel={"columns": ["job"], setting: ["person"]}
    )
    with pytest.raises(StudyError, match="person has the role unit"):
        sf.search(study)
    with pytest.raises(StudyError, match="person has the role unit"):
        sf.disguise(study, [COIN], tmp_path / "out", keep=["person"], accept=ALL)
