"""The channel commands from end to end, and what they say to bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.methods.channel.files import channel_run

from sfumato import cli

AGAIN = ("--accept", "earlier=drawn again for a test")
COUNTS = {"clerk": 400, "cook": 300, "driver": 200, "nurse": 100}


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 1,000 people with a job and a town."""
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    rows = [(job, "north" if i % 3 else "south") for job, n in COUNTS.items() for i in range(n)]
    path = tmp_path / "people.csv"
    path.write_text("job,town\n" + "".join(f"{job},{town}\n" for job, town in rows), "utf-8")
    return path


def _json(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, Any]:
    code = cli.run([str(word) for word in (*words, "--json")])
    out = capsys.readouterr().out
    return code, json.loads(out)


def test_search_prints_what_was_promised(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people.write_text(people.read_text("utf-8") + ",north\n" * 5, "utf-8")  # now and then no job
    run = channel_run(tmp_path, people, columns=["job"], delta=0.75, points=6, design="exact")
    run.write_text(run.read_text("utf-8").replace("[data]", '[data]\nmissing = "drop"'), "utf-8")
    code, found = _json(capsys, "search", run)
    assert (code, found["system"]) == (0, "channel")
    assert found["details"]["range"] == pytest.approx([0.25, 0.6])
    assert (found["rows"], found["details"]["dropped"], found["exact"]) == (1000, 5, True)
    for number, point in enumerate(found["points"]):
        assert {"id", "values", "bound", "outputs", "loss"} <= set(point)
        values = point["values"]
        assert {"privacy", "mse", "worst_posterior", "epsilon"} <= set(values)
        assert point["id"] == number
        assert point["bound"] <= values["mse"] <= point["bound"] * (1 + 1e-4)
        assert 0 <= point["loss"] <= 1
        assert point["outputs"] <= 11
        assert (values["epsilon"] is None) == ("epsilon" in point.get("infinite", []))
    assert any(point["values"]["epsilon"] is None for point in found["points"])
    assert cli.run(["search", str(run)]) == 0
    printed = capsys.readouterr()
    assert "6 channels: proven optimal, exact" in printed.out
    assert "4 categories of job, 1,000 records" in printed.err
    assert "keep it confidential" in printed.err


def test_disguise_and_estimate_from_end_to_end(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    front, channel, out = tmp_path / "front", tmp_path / "channel.json", tmp_path / "out"
    data = ["--data", people]
    assert _json(capsys, "search", channel_run(tmp_path, people, columns=["job"], points=5), "-o", front)[0] == 0
    code, picked = _json(capsys, "pick", front, "--limit", "min_privacy=0.4")
    assert (code, picked["reason"]) == (0, "least mse with privacy of at least 0.4")
    assert _json(capsys, "channel", "export", front, "--point", str(picked["point"]["id"]), "-o", channel)[0] == 0
    words = ["channel", "disguise", *data, "--channel", channel, "--keep", "town"]
    code, done = _json(capsys, *words, "-o", out)
    assert (code, done["released"], done["data"]) == (0, 1000, str(out / "public" / "data.csv"))
    assert _json(capsys, *words, "-o", tmp_path / "again", *AGAIN)[0] == 0
    files = [(folder / "public" / "data.csv").read_text("utf-8") for folder in (out, tmp_path / "again")]
    assert files[0] != files[1], "another draw, and another order"
    code, found = _json(capsys, "channel", "estimate", out)
    assert (code, found["records"], found["method"]) == (0, 1000, "wls")
    shares = {c["category"]: c for c in found["strata"][0]["categories"]}
    for job, count in COUNTS.items():
        assert abs(shares[job]["unbiased"] - count / 1000) < 6 * shares[job]["standard_error"]
        assert shares[job]["low"] <= shares[job]["unbiased"] <= shares[job]["high"] or shares[job]["unbiased"] < 0
    code, found = _json(capsys, "channel", "estimate", out, "--by", "town", "--method", "em")
    assert [s["values"] for s in found["strata"]] == [{"town": "north"}, {"town": "south"}]
    assert sum(s["records"] for s in found["strata"]) == 1000
    external = (out / "public" / "external.html").read_text("utf-8")
    assert "sfumato channel estimate data.csv" in external
    assert cli.run(["verify", str(out), "--source", str(people)]) == 0
    assert "the rows are those of the source" in capsys.readouterr().out


def test_disguise_prints_what_was_measured(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["channel", "make", "--data", people, "-c", "job", "--family", "grr", "--parameter", "2"]
    assert _json(capsys, *words, "-o", tmp_path / "grr.json")[0] == 0
    words = ["channel", "disguise", "--data", people, "--channel", tmp_path / "grr.json", "-o", tmp_path / "out"]
    assert cli.run([str(word) for word in words]) == 0
    printed = capsys.readouterr()
    assert "largest gain of a report over a share" in printed.out
    assert f"Hand out only {tmp_path / 'out' / 'public'}" in printed.err


def test_a_test_seed_repeats_and_marks_the_file(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = tmp_path / "warner.json"
    words = [
        "channel",
        "make",
        "--data",
        people,
        "-c",
        "job",
        "--family",
        "warner",
        "--parameter",
        "0.6",
        "-o",
        channel,
    ]
    code, figures = _json(capsys, *words)
    assert (code, figures["privacy"]) == (0, pytest.approx(0.4))
    texts = []
    words = ["channel", "disguise", "--data", people, "--channel", channel, "--test-seed", "7", *AGAIN]
    for name in ("a", "b"):
        assert _json(capsys, *words, "-o", tmp_path / name)[0] == 0
        texts.append((tmp_path / name / "public" / "data.csv").read_text("utf-8"))
    assert texts[0] == texts[1]
    with (tmp_path / "a" / "public" / "data.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["sfumato_test_seed"] for row in rows} == {"7"}
    assert "Not for release" in (tmp_path / "a" / "public" / "data.csv.channel.json").read_text("utf-8")
    assert _json(capsys, "channel", "estimate", tmp_path / "a", "--method", "inversion")[0] == 0


def test_parquet_two_channels_and_a_joint_one(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", people]
    for column in ("job", "town"):
        words = ["channel", "make", *data, "-c", column, "--family", "grr", "--parameter", "1.5"]
        assert _json(capsys, *words, "-o", tmp_path / f"{column}.json")[0] == 0
    both = ["--channel", tmp_path / "job.json", "--channel", tmp_path / "town.json"]
    out = tmp_path / "out"
    assert _json(capsys, "channel", "disguise", *data, *both, "--name", "survey.parquet", "-o", out)[0] == 0
    code, found = _json(capsys, "channel", "estimate", out)
    assert code == 0
    assert len(found["strata"][0]["categories"]) == 8
    assert sum(c["unbiased"] for c in found["strata"][0]["categories"]) == pytest.approx(1.0)
    run = channel_run(tmp_path, people, columns=["job", "town"], delta=0.6, points=3)
    code, found = _json(capsys, "search", run, "-o", tmp_path / "joint")
    assert code == 0
    point = found["points"][0]["details"]
    assert set(point["attributes"]) == {"job", "town"}
    assert point["attributes"]["town"]["worst_posterior"] >= 2 / 3 - 1e-9
    assert any("individual columns may exceed it" in sentence for sentence in found["sentences"])
    assert _json(capsys, "channel", "export", tmp_path / "joint", "--point", "1", "-o", tmp_path / "joint.json")[0] == 0
    words = ["channel", "disguise", *data, "--channel", tmp_path / "joint.json", "-o", tmp_path / "both", *AGAIN]
    assert list(_json(capsys, *words)[1]["figures"]) == ["job+town"]
    assert _json(capsys, "channel", "estimate", tmp_path / "both")[0] == 0
    mark = json.loads((tmp_path / "both" / "public" / "data.csv.channel.json").read_text("utf-8"))
    assert set(mark["channels"][0]["notes"]["attributes"]) == {"job", "town"}
    assert cli.run(["verify", str(tmp_path / "both"), "--source", str(people)]) == 0


def test_an_audit_of_a_disguised_column_is_refused(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run.toml"
    columns = '[columns]\njob = { role = "sensitive" }\ntown = { role = "quasi_identifier" }\n'
    run.write_text(
        f'version = 1\n[data]\npath = "people.csv"\n{columns}[channel]\ncolumns = ["job"]\npoints = 3\n', "utf-8"
    )
    assert _json(capsys, "search", run, "-o", tmp_path / "front")[0] == 0
    assert _json(capsys, "channel", "export", tmp_path / "front", "--point", "1", "-o", tmp_path / "c.json")[0] == 0
    words = ["channel", "disguise", "--run", run, "--channel", tmp_path / "c.json", "--keep-rest"]
    assert _json(capsys, *words, "-o", tmp_path / "out")[0] == 0
    code, said = _json(capsys, "audit", "--run", run, tmp_path / "out" / "public" / "data.csv")
    assert code == 2
    assert "not defined" in said["error"]["what"]
    other = _json(capsys, "search", run, "--set", 'channel.columns=["town"]')[1]
    assert other["error"]["what"].startswith("the role")


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        ("category,share\na,0.5\nb,0.4\n", "sums to 0.9"),
        ("category,share\na,1.5\nb,-0.5\n", "negative"),
        ("category,share\na,1\n", "1 category"),
        ("category,share\na,0.5\nb,0.5\nc,0\n", "share of 0"),
        ("category,share\na,0.5\na,0.5\n", "category twice"),
        ("category,share\na,x\n", "cannot be read"),
        ("", "cannot be read"),
        ("a,b\n1,2\n", "cannot be read"),
    ],
)
def test_bad_priors(prior: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prior.csv").write_text(prior, "utf-8")
    code, said = _json(capsys, "search", channel_run(tmp_path, prior="prior.csv", records=100))
    assert code == 2
    assert says in said["error"]["what"]


@pytest.mark.parametrize(
    ("setting", "code", "says"),
    [
        ("delta=0.3", 2, "commonest category has a share of 0.4"),
        ("delta=1.5", 2, "delta = 1.5 is not valid"),
        ("engine=magic", 2, "engine = 'magic' is not valid"),
        ("privacy=[0.9]", 3, "no channel has a privacy of 0.9"),
        ("privacy=[0.1]", 3, "no channel has a privacy of 0.1"),
        ("epsilon=1", 2, "cannot cap"),
        ('columns=["hob"]', 2, 'no column "hob"'),
        ("points=0", 2, "points = 0 is not valid"),
    ],
)
def test_bad_requests(
    setting: str, code: int, says: str, people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = "optrr" if setting.startswith("epsilon") else "exact"
    run = channel_run(tmp_path, people, columns=["job"], engine=engine)
    found, said = _json(capsys, "search", run, "--set", f"channel.{setting}")
    assert found == code, said
    assert says in said["error"]["what"]
    if code == 3:
        assert said["error"]["try"].startswith("privacy = [0.")


@pytest.mark.parametrize("command", ["make", "measure"])
def test_a_table_and_a_prior_are_two_tables(
    command: str, people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make = ["channel", "make", "--data", people, "-c", "job", "--family", "grr", "--parameter", "1"]
    assert _json(capsys, *make, "-o", tmp_path / "c.json")[0] == 0
    words = make if command == "make" else ["channel", "measure", tmp_path / "c.json", "--data", people]
    words += ["-o", tmp_path / "d.json"] if command == "make" else []
    code, said = _json(capsys, *words, "--prior", "nowhere.csv")
    assert (code, "given twice" in said["error"]["what"]) == (2, True), said


def test_delta_names_the_least_possible_and_large_domains_another_engine(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = _json(capsys, "search", channel_run(tmp_path, people, columns=["job"], delta=0.3))
    assert "0.4" in said["error"]["expected"]
    rows = "".join(f"c{i},{1 / 17}\n" for i in range(17))
    (tmp_path / "wide.csv").write_text("category,share\n" + rows, "utf-8")
    _, said = _json(capsys, "search", channel_run(tmp_path, prior="wide.csv", records=50))
    assert "17 categories are too many" in said["error"]["what"]
    assert "square" in said["error"]["try"]


def test_bad_channel_files_and_strange_reports(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = tmp_path / "c.json"
    words = ["channel", "make", "--data", people, "-c", "job", "--family", "warner", "-o", channel, "--parameter"]
    assert _json(capsys, *words, "0.25", "--force")[1]["infinite"] == ["mse", "mse_to_file"]
    disguise = ["channel", "disguise", "--data", people, "--channel", channel, "-o"]
    assert _json(capsys, *disguise, tmp_path / "flat")[0] == 0
    code, said = _json(capsys, "channel", "estimate", tmp_path / "flat")
    assert (code, "singular" in said["error"]["what"]) == (2, True)
    assert "singular" in (tmp_path / "flat" / "public" / "external.html").read_text("utf-8")
    assert _json(capsys, *words, "0.7", "--force")[0] == 0
    out, never = tmp_path / "out.csv", tmp_path / "never"
    out.write_text("job\nclerk\npilot\npilot\n", "utf-8")
    code, said = _json(capsys, "channel", "estimate", out, "--channel", channel)
    assert code == 2
    assert "in 2 rows" in said["error"]["what"]
    assert "row 2" in said["error"]["what"]
    assert "pilot" not in json.dumps(said)
    people.write_text(people.read_text("utf-8") + "pilot,north\n", "utf-8")
    code, said = _json(capsys, *disguise, never)
    assert (code, "unknown to the channel" in said["error"]["what"], "pilot" in json.dumps(said)) == (2, True, False)
    broken = json.loads(channel.read_text("utf-8"))
    broken["matrix"][0][0] = 0.9
    channel.write_text(json.dumps(broken), "utf-8")
    code, said = _json(capsys, *disguise, never)
    assert (code, "not sum to 1" in said["error"]["what"]) == (2, True)
    assert not never.exists()
    assert _json(capsys, "channel", "estimate", out, "--channel", tmp_path / "no.json")[0] == 2


def test_picks_that_cannot_be_met_name_the_nearest(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    front = tmp_path / "front"
    assert _json(capsys, "search", channel_run(tmp_path, people, columns=["job"], points=4), "-o", front)[0] == 0
    for words, tries in (
        (["--limit", "min_privacy=0.9"], "--limit min_privacy=0.6"),
        (["--limit", "max_epsilon=1"], "square"),
        (["--limit", "max_error=1e-9"], "--limit max_error="),
        (["--max-loss", "0.01"], "--max-loss"),
        (["--limit", "min_privacy=0.5", "--max-loss", "0.01"], "--max-loss"),
    ):
        code, said = _json(capsys, "pick", front, *words)
        assert code == 3, said
        assert tries in said["error"]["try"]
    assert _json(capsys, "pick", front)[0] == 2
    assert _json(capsys, "pick", front, "--knee")[0] == 0
    code, found = _json(capsys, "pick", front, "--max-loss", "0.9")
    assert (code, found["point"]["loss"] <= 0.9) == (0, True)
    code, said = _json(capsys, "pick", front, "--min-k", "5")
    assert (code, "min_privacy" in said["error"]["expected"]) == (2, True), said


def test_several_limits_are_kept_at_once(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Limits on privacy and on error together: what binds is said, and what cannot be had together is refused."""
    front = tmp_path / "front"
    points = _json(capsys, "search", channel_run(tmp_path, people, columns=["job"], points=6), "-o", front)[1]["points"]
    privacy, error = points[2]["values"]["privacy"], points[4]["values"]["mse"]
    limits = ["--limit", f"min_privacy={privacy}", "--limit", f"max_error={error}"]
    code, found = _json(capsys, "pick", front, *limits)
    assert (code, found["point"]["id"], found["binding"]) == (0, 2, ["min_privacy"])
    limits = ["--limit", f"min_privacy={points[4]['values']['privacy']}", "--limit", f"max_error={error / 2}"]
    code, said = _json(capsys, "pick", front, *limits)
    assert (code, said["error"]["expected"]) == (3, "limits that a point meets at once")


@pytest.mark.long
def test_square_with_a_cap_and_optrr(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def points(found: Any) -> list[dict[str, Any]]:
        return [{**point, **point["values"]} for point in found["points"]]

    base = ["search", channel_run(tmp_path, people, columns=["job"], points=3)]
    square = [word for one in ("engine=square", "epsilon=1.5", "sweeps=1") for word in ("--set", f"channel.{one}")]
    code, found = _json(capsys, *base, *square)
    assert code == 0
    assert all(p["epsilon"] <= 1.5 + 1e-6 and p["outputs"] == 4 for p in points(found))
    assert all(p["mse"] >= p["bound"] for p in points(found))
    optrr = ["--set", "channel.engine=optrr", "--set", "channel.generations=100"]
    code, found = _json(capsys, *base, *optrr)
    assert (code, found["exact"], found["how"]) == (0, False, "best found, optrr, seed 1")
    code, other = _json(capsys, *base, *optrr, "--seed", "2")
    assert (code, other["system"], other["how"]) == (0, "channel", "best found, optrr, seed 2")
    code, capped = _json(capsys, *base, "--set", "channel.epsilon=1.5")
    assert (code, capped["exact"]) == (0, False)
    assert all(p["epsilon"] <= 1.5 + 1e-6 for p in points(capped))


@pytest.mark.parametrize("words", [["--max-suppression", "0.1"], ["--algorithm", "exact"], ["--threads", "2"]])
def test_settings_of_other_systems_are_refused(
    words: list[str], people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run file of a channel stays one, whatever else is asked of the search."""
    code, said = _json(capsys, "search", channel_run(tmp_path, people, columns=["job"]), *words)
    assert code == 2
    assert "and the system is channel" in said["error"]["what"]


def test_another_system_than_the_run_file_has(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run file with roles and a channel can be searched for levels as well, if that is asked for."""
    columns = '[columns]\njob = { role = "sensitive" }\n'
    columns += 'town = { role = "quasi_identifier", hierarchy = { build = "flat" } }\n'
    text = channel_run(tmp_path, people, columns=["job"], points=2).read_text("utf-8")
    (tmp_path / "run.toml").write_text(text + columns, "utf-8")
    assert _json(capsys, "search", tmp_path / "run.toml")[1]["system"] == "channel"
    assert _json(capsys, "search", tmp_path / "run.toml", "--system", "lattice")[1]["system"] == "lattice"


def test_a_front_of_given_shares_is_no_table_to_publish(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of the shares must not be taken for the table: its channel disguises a table that is named."""
    rows = "".join(f"{job},{count / 1000}\n" for job, count in COUNTS.items())
    (tmp_path / "prior.csv").write_text("job,share\n" + rows, "utf-8")
    front = tmp_path / "front"
    assert _json(capsys, "search", channel_run(tmp_path, prior="prior.csv", records=1000), "-o", front)[0] == 0
    code, said = _json(capsys, "publish", front, "--point", "1", "-o", tmp_path / "out")
    assert (code, "no table is declared" in said["error"]["what"]) == (2, True), said
    assert not (tmp_path / "out").exists()
    assert _json(capsys, "channel", "export", front, "--point", "1", "-o", tmp_path / "c.json")[0] == 0
    words = ["channel", "disguise", "--data", people, "--channel", tmp_path / "c.json", "-o", tmp_path / "out"]
    assert _json(capsys, *words)[0] == 0


@pytest.mark.long
def test_reports_are_drawn_with_the_probabilities_of_the_matrix(people: Path, tmp_path: Path) -> None:
    from sfumato.methods.channel.release import disguise
    from sfumato.plans.channel import Channel
    from sfumato.study import Study

    matrix = np.array([[0.7, 0.1, 0.0, 0.2], [0.1, 0.9, 0.3, 0.2], [0.2, 0.0, 0.7, 0.6]])
    channel = Channel(("job",), tuple(COUNTS), ("x", "y", "z"), matrix)
    study = Study(data={"path": str(people)}, columns={})
    counts = np.zeros(3)
    for seed in range(20):
        accept = {"earlier": "drawn again for a test"}
        release = disguise(study, [channel], tmp_path / f"out{seed}", test_seed=seed, accept=accept)
        with release.data.open(encoding="utf-8") as stream:
            drawn = [row["job"] for row in csv.DictReader(stream)]
        counts += [drawn.count(name) for name in "xyz"]
    expected = matrix @ np.array(list(COUNTS.values())) * 20
    assert np.abs((counts - expected) / np.sqrt(expected)).max() < 4
