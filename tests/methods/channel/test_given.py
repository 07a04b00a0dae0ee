"""What reports reveal given the other columns of the file: every figure recomputed in plain numpy, cell by cell."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato import cli
from sfumato.methods.channel.estimate import grr, warner
from sfumato.methods.channel.given import CellCounts, figures_given
from sfumato.methods.channel.matrices import safe_epsilon
from sfumato.plans.channel import Channel
from sfumato.release import manifest as pack
from sfumato.release.policy import PolicyError
from sfumato.study.sections import PolicySettings

DELTA, GAIN, LEAST = 0.75, 1.5, 100  # the defaults of the rule, written out
Capture = pytest.CaptureFixture[str]
Joint = dict[Any, dict[str, int]]


def joint_of(frame: pd.DataFrame, hidden: str, kept: list[str]) -> Joint:
    """Records by cell and category."""
    found: Joint = {}
    for row in frame.itertuples(index=False):
        said = row._asdict() if not hasattr(row, "_0") else dict(zip(frame.columns, row, strict=True))
        cell = found.setdefault(tuple(said[name] for name in kept), {})
        cell[said[hidden]] = cell.get(said[hidden], 0) + 1
    return found


def worst_in(matrix: dict[str, dict[str, float]], cell: dict[str, int]) -> tuple[float, float]:
    """The largest posterior of any category given any report, and the largest share, in one cell."""
    worst = 0.0
    for report in matrix.values():
        weights = [report[x] * n for x, n in cell.items()]
        if sum(weights) > 0:
            worst = max(worst, max(weights) / sum(weights))
    return worst, max(cell.values()) / sum(cell.values())


def first_attacker(matrix: dict[str, dict[str, float]], joint: Joint) -> float:
    right = sum(max(report[x] * n for x, n in cell.items()) for cell in joint.values() for report in matrix.values())
    return right / sum(sum(cell.values()) for cell in joint.values())


def second_attacker(matrix: dict[str, dict[str, float]], joint: Joint, reports: Joint) -> tuple[float, float]:
    """EM in each cell, on its reports; then how often the guess is right under the truth, at least and at most.

    The reports are drawn anew in each run. Where two guesses are nearly as likely, the last digit of the estimated
    shares decides between them, so that either may be taken.
    """
    names = list(next(iter(matrix.values())))
    table = np.array([[report[x] for x in names] for report in matrix.values()])
    low, high = 0.0, 0.0
    for key, cell in joint.items():
        seen = np.array([reports[key].get(y, 0) for y in matrix], dtype=float)
        shares = np.full(len(names), 1 / len(names))
        for _ in range(3000):
            expected = table @ shares
            shares = shares * ((seen / np.where(expected > 0, expected, 1)) @ table) / seen.sum()
        for row in table:
            score = row * shares
            near = [i for i in range(len(names)) if score[i] >= 0.97 * score.max()]
            right = [row[i] * cell.get(names[i], 0) for i in near]
            low, high = low + min(right), high + max(right)
    number = sum(sum(cell.values()) for cell in joint.values())
    return low / number, high / number


def matrix_in(release: Path) -> dict[str, dict[str, float]]:
    """The public matrix: by report, the probability under each true category."""
    channel = json.loads((next((release / "public").glob("*.channel.json"))).read_text("utf-8"))["channels"][0]
    return {
        y: dict(zip(channel["categories"], row, strict=True))
        for y, row in zip(channel["outputs"], channel["matrix"], strict=True)
    }


def assert_rule(release: Path, source: pd.DataFrame, hidden: str, kept: list[str], delta: float = DELTA) -> None:
    """The rule in every cell of enough records, ε for every person, and the figures of the manifest."""
    matrix, joint = matrix_in(release), joint_of(source, hidden, kept)
    manifest = pack.read_manifest(release)
    given = manifest["own"]["given"]
    worst = 0.0
    for cell in joint.values():
        if sum(cell.values()) >= LEAST:
            reached, share = worst_in(matrix, cell)
            assert reached <= max(delta, GAIN * share) + 1e-9
            worst = max(worst, reached)
    small = [sum(cell.values()) for cell in joint.values() if sum(cell.values()) < LEAST]
    likely = [p for report in matrix.values() for p in report.values()]
    if small:
        assert min(likely) > 0
    if given["epsilon"] is not None:
        ratio = max(max(r.values()) / min(r.values()) for r in matrix.values())
        assert ratio <= math.exp(given["epsilon"]) * (1 + 1e-9)
        for cell in joint.values():  # the posterior odds of each person's own value, whatever the cell
            for x, n in cell.items():
                for report in matrix.values():
                    mine, rest = report[x] * n, sum(report[v] * m for v, m in cell.items() if v != x)
                    others = sum(cell.values()) - n
                    assert others == 0 or mine / rest <= math.exp(given["epsilon"]) * n / others * (1 + 1e-9)
    said = given["channels"][hidden]
    assert said["worst_posterior"] == (pytest.approx(worst, abs=1e-9) if worst else None)
    assert said["best_guess"] == pytest.approx(first_attacker(matrix, joint), abs=1e-9)
    assert given["small_cells"] == len(small)
    assert given["small_share"] == pytest.approx(sum(small) / len(source), abs=1e-12)
    data = pd.read_csv(release / "public" / "data.csv", dtype=str, keep_default_na=False)
    reports = joint_of(data, hidden, kept)
    low, high = second_attacker(matrix, joint, reports)
    assert low - 0.01 <= said["guess_from_file"] <= high + 0.01


def table(path: Path, frame: pd.DataFrame, **channel: Any) -> sf.Study:
    frame.to_csv(path, index=False)
    return sf.Study(data={"path": str(path)}, columns={}, channel=channel)


def drawn(seed: int) -> pd.DataFrame:
    """A random joint distribution: cells of very different sizes, some categories missing in some."""
    rng = np.random.default_rng(seed)
    categories, cells = int(rng.integers(3, 7)), int(rng.integers(2, 7))
    rows = []
    for cell in range(cells):
        size = int(rng.choice([7, 60, 150, 400, 900]))
        shares = rng.dirichlet(np.full(categories, rng.uniform(0.2, 2.0)))
        rows += [(f"c{x}", f"z{cell}") for x in rng.choice(categories, size, p=shares)]
    rows += [(f"c{x}", "z0") for x in range(categories)]
    return pd.DataFrame(rows, columns=["x", "z"])


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


WHO = {("clerk", "f"): 200, ("cook", "f"): 200, ("driver", "m"): 200, ("guard", "m"): 200}
FOUR = pd.DataFrame([pair for pair, n in WHO.items() for _ in range(n)], columns=["job", "sex"])
JOBS = ("clerk", "driver", "cook", "guard")
SETS = Channel(  # two of the four jobs are likely after a report, one of a woman's and one of a man's
    ("job",),
    JOBS,
    ("clerk|driver", "cook|guard", "clerk|guard", "driver|cook", "any"),
    np.array(
        [
            [0.405, 0.36, 0.045, 0.04],
            [0.045, 0.04, 0.405, 0.36],
            [0.405, 0.04, 0.045, 0.36],
            [0.045, 0.36, 0.405, 0.04],
            [0.1, 0.2, 0.1, 0.2],
        ]
    ),
)


def test_a_report_that_leaves_one_category_given_another_column_is_refused(
    tmp_path: Path, state: Path, capsys: Capture
) -> None:
    """The attack: a report makes clerk or driver likely, 45 % each; given sex it is one of them, with 90 %."""
    study = table(tmp_path / "jobs.csv", FOUR)
    alone = sf.disguise(study, [SETS], tmp_path / "alone")
    assert alone.manifest["figures"]["job"]["worst_posterior"] < 0.5
    with pytest.raises(PolicyError) as refused:
        sf.disguise(study, [SETS], tmp_path / "out", keep=["sex"], state=tmp_path / "other")
    assert [finding.rule for finding in refused.value.findings] == ["response"]
    assert "without sex" in refused.value.what
    assert "channel.epsilon is at most" in refused.value.what
    assert not (tmp_path / "out").exists()
    SETS.save(tmp_path / "sets.json")
    words = [
        "channel",
        "disguise",
        "--channel",
        tmp_path / "sets.json",
        "--data",
        tmp_path / "jobs.csv",
        "--keep",
        "sex",
    ]
    assert cli.run([*map(str, words), "-o", str(tmp_path / "out")]) == 3
    assert "response" in capsys.readouterr().err
    release = sf.disguise(
        study,
        [SETS],
        tmp_path / "out",
        keep=["sex"],
        state=tmp_path / "third",
        accept={"response": "only a test of it"},
    )
    accepted = release.manifest["accepted"]
    assert [(entry["rule"], entry["reason"]) for entry in accepted] == [("response", "only a test of it")]
    external = (tmp_path / "out" / "public" / "external.html").read_text("utf-8")
    worst = max(worst_in(matrix_in(tmp_path / "out"), cell)[0] for cell in joint_of(FOUR, "job", ["sex"]).values())
    assert worst == pytest.approx(0.9)
    assert re.search(r"<b>90\.0\s%</b>upper bound", external)
    assert "Given sex" in (tmp_path / "out" / "private" / "internal.html").read_text("utf-8")
    assert sf.verify(tmp_path / "out", tmp_path / "jobs.csv")


@pytest.mark.long
def test_the_readme_recipe_of_before_is_refused(tmp_path: Path, state: Path, capsys: Capture) -> None:
    """Adult: a front without regard to sex, released with sex; a posterior of 1 for some women and men."""
    sf_run = lambda *words: cli.run([str(word) for word in words])  # noqa: E731
    assert sf_run("sample", "adult", "-o", tmp_path / "adult") == 0
    base = ["search", tmp_path / "adult" / "run.toml", "--system", "channel", "--set", 'channel.columns=["occupation"]']
    base += ["--set", 'data.missing="drop"']
    left_out = ["--accept", "left_out=rows without an occupation have no report"]
    assert sf_run(*base, "--set", "channel.points=4", "-o", tmp_path / "front") == 0
    out = tmp_path / "survey"
    assert sf_run("publish", tmp_path / "front", "--point", 2, "--keep", "sex", "-o", out, *left_out) == 3
    said = capsys.readouterr().err
    assert "Given sex, a report of occupation makes a category up to 100.0 % probable" in said
    assert not out.exists()
    assert sf_run(*base, "--set", 'channel.keep=["sex"]', "--set", "channel.points=4", "-o", tmp_path / "safe") == 0
    assert sf_run("publish", tmp_path / "safe", "--point", 0, "-o", out, *left_out) == 0
    adult = pd.read_csv(tmp_path / "adult" / "adult.data.gz", header=None, skipinitialspace=True, dtype=str)
    adult = adult[[6, 9]].rename(columns={6: "occupation", 9: "sex"})
    assert_rule(out, adult[adult["occupation"] != "?"], "occupation", ["sex"])


@pytest.mark.parametrize("seed", range(10))
def test_random_joint_distributions(tmp_path: Path, state: Path, seed: int) -> None:
    frame = drawn(seed)
    study = table(tmp_path / "t.csv", frame, columns=["x"], keep=["z"], points=2)
    front = sf.search(study)
    release = tmp_path / "out"
    few = {"k": "some categories are rare here", "uniques": "single rows of a test"}
    sf.publish(sf.pick(front, point=0), release, accept=few)
    assert_rule(release, frame, "x", ["z"])
    assert sf.verify(release, tmp_path / "t.csv")
    # A design that ignores z is refused exactly where the rule does not hold, or ε is infinite and a cell is small.
    plain = sf.search(study.replace(channel={"keep": ()}))
    with_z = sf.Front(**{**vars(plain), "study": plain.study.replace(channel={"keep": ("z",)})})
    joint = joint_of(frame, "x", ["z"])
    channel = plain.points[0].plan
    assert isinstance(channel, Channel)
    matrix = {
        y: dict(zip(channel.categories, row, strict=True))
        for y, row in zip(channel.outputs, channel.matrix.tolist(), strict=True)
    }
    broken = any(sum(cell.values()) < LEAST for cell in joint.values())
    for cell in joint.values():
        reached, share = worst_in(matrix, cell)
        broken |= sum(cell.values()) >= LEAST and reached > max(DELTA, GAIN * share) + 1e-9
    try:
        sf.publish(sf.pick(with_z, point=0), tmp_path / "second", accept=few, state=tmp_path / "other")
        rules = []
    except PolicyError as error:
        rules = [finding.rule for finding in error.findings]
    assert ("response" in rules) == broken


SHARED = os.environ.get("SFUMATO_SHARED")


@pytest.mark.skipif(SHARED is None, reason="SFUMATO_SHARED does not name the shared data")
@pytest.mark.parametrize(
    ("path", "hidden", "kept"),
    [
        ("uk-census-2011-teaching/2011-census-microdata-small.csv.gz", "Religion", ["Age", "Sex"]),
        ("nist-diverse-communities/ma2019.csv.gz", "MSP", ["SEX", "RAC1P", "HOUSING_TYPE"]),
    ],
)
def test_tables(tmp_path: Path, state: Path, path: str, hidden: str, kept: list[str]) -> None:
    frame = pd.read_csv(f"{SHARED}/data/{path}", dtype=str, keep_default_na=False)[[hidden, *kept]]
    study = table(tmp_path / "t.csv", frame, columns=[hidden], keep=kept, points=2)
    sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "out", accept={"k": "a test on public teaching data"})
    assert_rule(tmp_path / "out", frame, hidden, kept)


def test_several_reports_are_measured_together(tmp_path: Path, state: Path) -> None:
    """Two columns that depend on each other: the report of one is another column for the other."""
    frame = pd.DataFrame([("a", "u")] * 400 + [("b", "v")] * 400 + [("a", "v")] * 20, columns=["x", "w"])
    study = table(tmp_path / "t.csv", frame)
    first = Channel(("x",), ("a", "b"), ("a", "b"), warner(2, 0.7))
    second = Channel(("w",), ("u", "v"), ("u", "v"), warner(2, 0.7))
    with pytest.raises(PolicyError, match="the other reports"):
        sf.disguise(study, [first, second], tmp_path / "never")
    sf.disguise(study, [first, second], tmp_path / "out", accept={"response": "only a test of it"})
    given = pack.read_manifest(tmp_path / "out")["own"]["given"]
    n, worst, right = len(frame), 0.0, 0.0
    counts = frame.value_counts().to_dict()
    for y in "ab":
        for v in "uv":
            weight = dict.fromkeys("ab", 0.0)
            for (x, w), m in counts.items():
                weight[x] += (0.7 if x == y else 0.3) * (0.7 if w == v else 0.3) * m
            worst = max(worst, max(weight.values()) / sum(weight.values()))
            right += max(weight.values()) / n
    assert given["channels"]["x"]["worst_posterior"] == pytest.approx(worst, abs=1e-12)
    assert given["channels"]["x"]["best_guess"] == pytest.approx(right, abs=1e-12)
    assert given["epsilon"] == pytest.approx(2 * math.log(7 / 3), abs=1e-12)


def test_small_combinations_need_a_bound_on_epsilon(tmp_path: Path, state: Path) -> None:
    frame = pd.DataFrame([(f"c{i // 12 % 3}", f"z{i % 12}") for i in range(600)], columns=["x", "z"])  # cells of 50
    study = table(tmp_path / "t.csv", frame)
    names = ("c0", "c1", "c2")
    wide = Channel(("x",), names, names, grr(3, 4.0))
    with pytest.raises(PolicyError, match=r"100\.0 % of the records are in combinations of z with fewer than 100"):
        sf.disguise(study, [wide], tmp_path / "never", keep=["z"])
    near = Channel(("x",), names, names, grr(3, 2.0))
    release = sf.disguise(study, [near], tmp_path / "out", keep=["z"])
    assert_rule(tmp_path / "out", frame, "x", ["z"])
    assert release.manifest["own"]["given"]["small_share"] == 1.0
    assert "ε is the only bound" in (tmp_path / "out" / "public" / "external.html").read_text("utf-8")


@pytest.mark.parametrize(("size", "large"), [(99, False), (100, True), (101, True)])
def test_a_combination_of_exactly_the_least_number_is_large(size: int, large: bool) -> None:
    """The rule holds in combinations with *at least* 100 records: one with 100 is not left to ε."""
    channel = Channel(("x",), ("a", "b"), ("a", "b"), warner(2, 0.9))
    counts = np.array([0.45 * size, 0.55 * size]).round()
    cells = CellCounts(np.array([7, 7]), np.array([0, 1]), counts, 2)
    given = figures_given([channel], ["z"], cells, cells, PolicySettings())
    weights = channel.matrix[1] * counts
    assert given["small_cells"] == (0 if large else 1)
    assert given["small_share"] == (0.0 if large else 1.0)
    assert given["channels"]["x"]["cells_over"] == (1 if large else 0)
    assert given["channels"]["x"]["worst_posterior"] == (pytest.approx(weights[1] / weights.sum()) if large else None)


def test_no_share_is_raised_above_what_is_allowed_by_the_default_bound() -> None:
    shares = np.linspace(0.001, 0.999, 999)
    for delta, gain in ((0.75, 1.5), (0.55, 1.5), (0.6, 1.2), (0.75, 3.0)):
        grown = shares / (1 - shares) * math.exp(safe_epsilon(delta, gain))
        assert (grown / (1 + grown) <= np.maximum(delta, np.minimum(gain * shares, 1)) + 1e-12).all()
        larger = shares / (1 - shares) * math.exp(safe_epsilon(delta, gain) + 0.01)
        assert (larger / (1 + larger) > np.maximum(delta, gain * shares)).any()


@pytest.mark.long
def test_a_search_given_other_columns_keeps_the_rule_with_less_error(tmp_path: Path, state: Path) -> None:
    cells = {"z0": (300, 200, 100, 40), "z1": (30, 100, 220, 150), "z2": (90, 0, 80, 60)}
    frame = pd.DataFrame(
        [(f"c{x}", z) for z, counts in cells.items() for x, n in enumerate(counts) for _ in range(n)],
        columns=["x", "z"],
    )
    settings = {"columns": ["x"], "keep": ["z"], "points": 3, "sweeps": 1, "design": "exact"}
    study = table(tmp_path / "t.csv", frame, **settings)
    bounded = sf.search(study)
    best = sf.search(study.replace(channel={"given": ("z",)}))
    assert best.study.channel.engine == "square"
    assert "best found" in best.how
    assert all(point.bound is not None and point.bound <= point.values["mse"] for point in best.points)
    assert min(p.values["mse"] for p in best.points) < min(p.values["mse"] for p in bounded.points)
    for point in best.points:
        channel = point.plan
        assert isinstance(channel, Channel)
        matrix = {
            y: dict(zip(channel.categories, row, strict=True))
            for y, row in zip(channel.outputs, channel.matrix.tolist(), strict=True)
        }
        for cell in joint_of(frame, "x", ["z"]).values():
            reached, share = worst_in(matrix, cell)
            assert reached <= max(DELTA, GAIN * share) + 1e-8
    few = {"k": "some categories are rare here"}
    sf.publish(sf.pick(best, point=0), tmp_path / "out", accept=few)
    assert_rule(tmp_path / "out", frame, "x", ["z"])


def test_altered_figures_given_the_other_columns_are_found(tmp_path: Path, state: Path) -> None:
    study = table(tmp_path / "jobs.csv", FOUR)
    sf.disguise(study, [Channel(("job",), JOBS, JOBS, grr(4, 1.0))], tmp_path / "out", keep=["sex"])
    manifest = dict(pack.read_manifest(tmp_path / "out"))
    said = manifest["own"]["given"]["channels"]["job"]
    for changed in (said, manifest["figures"]["job"]["given"]):
        changed["best_guess"] = 0.99
    from sfumato.methods.channel.pages import pages_of

    for name, text in pages_of(tmp_path / "out", manifest).items():  # type: ignore[arg-type]
        (tmp_path / "out" / name).write_text(text, "utf-8")
    (tmp_path / "out" / pack.MANIFEST).unlink()
    content = {name: value for name, value in manifest.items() if name not in ("checksum", "files")}
    pack.write_manifest(tmp_path / "out", content)  # type: ignore[arg-type]
    checked = sf.verify(tmp_path / "out", tmp_path / "jobs.csv")
    assert [(difference.file, difference.what) for difference in checked.differences] == [
        ("public/certificate.json", "it does not agree with the manifest"),
        ("private/manifest.json", "its own.given.channels.job.best_guess is not that of the source"),
    ]


def test_the_limits_are_thresholds_of_the_policy() -> None:
    from sfumato.errors import StudyError

    for weaker in (
        {"response": 2.0},
        {"response_posterior": 0.9},
        {"response_records": 500},
        {"response_epsilon": 9.0},
    ):
        with pytest.raises(StudyError, match="no reason is given"):
            PolicySettings(**weaker)
    assert PolicySettings(response=1.2, response_records=50).response == 1.2


def determined(persons: int = 400) -> pd.DataFrame:
    """A grade that follows from the years of school, of which the release keeps the years; one in fifty is wrong."""
    grades = [("low", "8"), ("low", "9"), ("middle", "10"), ("high", "12")]
    rows = [(f"p{i}", *grades[i % 4], "fm"[i // 4 % 2]) for i in range(persons)]
    frame = pd.DataFrame(rows, columns=["person", "grade", "years", "sex"])
    frame.loc[frame.index % 50 == 7, "years"] = "8"
    return frame


GRADES = ("low", "middle", "high")
NOISE = Channel(("grade",), GRADES, GRADES, grr(3, 0.5))


@pytest.mark.parametrize("twice", [False, True])
def test_a_plain_column_that_determines_the_disguised_one_is_refused(tmp_path: Path, state: Path, twice: bool) -> None:
    """Reports add nothing to a column that shows the value anyway: the rule `response` holds and protects nobody."""
    frame = determined()
    frame["other"] = ["ab"[i % 7 > 2] for i in range(len(frame))]
    roles = {name: {"role": "other"} for name in ("years", "sex", "other")} | {"grade": {"role": "sensitive"}}
    roles["person"] = {"role": "unit" if twice else "drop"}
    frame = pd.concat([frame] * 3) if twice else frame
    frame.to_csv(tmp_path / "t.csv", index=False)
    study = sf.Study(data={"path": str(tmp_path / "t.csv")}, columns=roles)
    with pytest.raises(PolicyError, match="years is released unchanged and tells grade, which is disguised") as refused:
        sf.disguise(study, [NOISE], tmp_path / "out", keep=["years", "sex"])
    assert [(finding.rule, finding.column) for finding in refused.value.findings] == [("dependence", "years")]
    assert not (tmp_path / "out").exists()
    sf.disguise(study, [NOISE], tmp_path / "safe", keep=["sex", "other"])
    accept = {"dependence:years": "the grade is public, only a test of it"}
    release = sf.disguise(study, [NOISE], tmp_path / "out", keep=["years"], accept=accept, state=tmp_path / "other")
    assert [entry["rule"] for entry in release.manifest["accepted"]] == ["dependence"]
    assert sf.verify(tmp_path / "out", tmp_path / "t.csv")


def test_two_plain_columns_that_determine_it_together_are_found(tmp_path: Path, state: Path) -> None:
    frame = pd.DataFrame({"a": [i % 4 for i in range(800)], "b": [i // 4 % 5 for i in range(800)]})
    frame["x"] = [f"c{(a + b) % 3}" for a, b in zip(frame["a"], frame["b"], strict=True)]
    study = table(tmp_path / "t.csv", frame.astype(str))
    names = ("c0", "c1", "c2")
    with pytest.raises(PolicyError, match="a is released unchanged and with b tells x"):
        sf.disguise(study, [Channel(("x",), names, names, grr(3, 0.5))], tmp_path / "out", keep=["a", "b"])


def test_rows_of_one_person_do_not_make_a_column_determine_another(tmp_path: Path, state: Path) -> None:
    """Each person has twelve equal rows: a guess from the other eleven would always be right."""
    rng = np.random.default_rng(4)
    persons = pd.DataFrame({"person": [f"p{i}" for i in range(300)], "job": rng.choice(list("abc"), 300)})
    persons["age"] = [str(20 + i % 60) for i in range(300)]
    frame = pd.concat([persons] * 12)
    frame.to_csv(tmp_path / "t.csv", index=False)
    roles = {"person": {"role": "unit"}, "job": {"role": "sensitive"}, "age": {"role": "other"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv")}, columns=roles)
    sf.disguise(
        study, [Channel(("job",), ("a", "b", "c"), ("a", "b", "c"), grr(3, 0.5))], tmp_path / "out", keep=["age"]
    )


def test_numbers_of_persons_that_the_run_file_does_not_name_are_asked_about(tmp_path: Path, state: Path) -> None:
    """A channel needs no role of columns that it does not release; rows of one person would be reports of several."""
    frame = pd.DataFrame({"patient_id": [i // 4 for i in range(400)], "x": [f"c{i % 3}" for i in range(400)]})
    study = table(tmp_path / "t.csv", frame)
    near = Channel(("x",), ("c0", "c1", "c2"), ("c0", "c1", "c2"), grr(3, 1.0))
    with pytest.raises(PolicyError, match="patient_id repeats"):
        sf.disguise(study, [near], tmp_path / "out")
    assert not (tmp_path / "out").exists()
