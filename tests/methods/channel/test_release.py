"""A disguise is a release: measured on the written file, public and private apart, verified, known to the ledger."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import cli
from sfumato.methods.channel.estimate import warner
from sfumato.methods.channel.system import channel_of
from sfumato.plans.channel import Channel
from sfumato.release import manifest as pack

COUNTS = {"clerk": 397, "cook": 301, "driver": 199, "nurse": 103}
JOBS = tuple(COUNTS)
RECORDS = sum(COUNTS.values())
ROWS = [(job, "north" if i % 3 else "south") for job, n in COUNTS.items() for i in range(n)]
COIN = Channel(("job",), JOBS, JOBS, warner(4, 0.6))
Capture = pytest.CaptureFixture[str]


def table(path: Path, rows: list[tuple[str, ...]], heads: str = "job,town") -> sf.Study:
    path.write_text(heads + "\n" + "".join(",".join(row) + "\n" for row in rows), "utf-8")
    return sf.Study(data={"path": str(path), "missing": "drop"}, columns={})  # the channels here know no blank


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sf.Study:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    return table(tmp_path / "canary-people.csv", [*ROWS, ("", "north")])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with one plain column, beside its source; never changed."""
    folder = tmp_path_factory.mktemp("disguise")
    people = table(folder / "canary-people.csv", [*ROWS, ("", "north")])
    sf.disguise(people, [COIN], folder / "release", keep=["town"], state=folder / "state")
    return folder


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    """A copy of the release that a test may spoil."""
    shutil.copytree(made / "release", tmp_path / "release")
    return tmp_path / "release"


def said(capsys: Capture, *words: str | Path) -> tuple[int, dict[str, Any]]:
    code = cli.run([str(word) for word in (*words, "--json")])
    return code, json.loads(capsys.readouterr().out)


def public(release: Path) -> list[Path]:
    return sorted(path for path in (release / "public").rglob("*") if path.is_file())


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def written(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def resealed(release: Path, **changed: Any) -> None:
    """A manifest whose digests and checksum fit the folder again: what someone does who tampers well."""
    manifest = pack.read_manifest(release) | changed
    (release / pack.MANIFEST).unlink()
    pack.write_manifest(release, {name: value for name, value in manifest.items() if name != "checksum"})


def numbers_in(found: Any, skip: tuple[str, ...] = ("matrix", "epsilon")) -> list[float]:
    """The numbers of a public file, without those that the matrix itself shows."""
    if isinstance(found, dict):
        return [n for name, value in found.items() if name not in skip for n in numbers_in(value)]
    if isinstance(found, list):
        return [n for value in found for n in numbers_in(value)]
    return [float(found)] if isinstance(found, int | float) and not isinstance(found, bool) else []


@pytest.mark.long
@pytest.mark.parametrize(("engine", "design"), [("exact", "exact"), ("exact", "coarse"), ("square", "exact")])
def test_the_true_counts_are_in_no_public_file(study: sf.Study, tmp_path: Path, engine: str, design: str) -> None:
    """Shares to three digits are counts here: beside the matrix, no number of a public file may be one."""
    settings = {"columns": ("job",), "engine": engine, "design": design, "points": 3, "sweeps": 1, "keep": ("town",)}
    front = sf.search(study.replace(channel=settings))
    assert channel_of(front.point(1)).notes["designed_for_records"] == RECORDS  # it is there to be lost
    out = tmp_path / "out"
    sf.publish(sf.pick(front, point=1), out)
    names = ["certificate.json", "croissant.json", "data.csv", "data.csv.channel.json", "ddi.xml"]
    names += ["dictionary.html", "dictionary.json", "external.html"]
    assert [path.name for path in public(out)] == names
    told = numbers_in(json.loads((out / "public" / "data.csv.channel.json").read_text("utf-8")))
    assert all(n == int(n) or n == float(f"{n:.3g}") for n in told)
    for share in (n / RECORDS for n in COUNTS.values()):
        assert not any(math.isclose(n, share, abs_tol=1e-9) for n in told)
    text = re.sub(r"<h2>job: the matrix</h2>.*", "", (out / "public" / "external.html").read_text("utf-8"), flags=re.S)
    for count in COUNTS.values():
        assert f"{count / 10:.1f} %" not in text
        assert f"{count / RECORDS:.3f}" not in text
        assert str(count) not in text
    for path in public(out):
        assert "designed_for" not in path.read_text("utf-8")
    warnings = json.loads((out / "private" / "manifest.json").read_text("utf-8"))["warnings"]
    tells = "reveals them " + ("exactly" if engine == "exact" else "roughly")
    assert any(tells in warning for warning in warnings) == (design == "exact")
    kept = json.loads((out / "private" / "channel.json").read_text("utf-8"))
    assert dict(zip(JOBS, kept["counts"][0], strict=True)) == COUNTS
    assert kept["channels"][0]["notes"]["front"]["chosen"] == 1


def test_no_secret_is_in_the_public_part(release: Path, made: Path) -> None:
    manifest = pack.read_manifest(release)
    canaries = [str(made), "canary", str(Path.home()), socket.gethostname(), manifest["source"]["sha256"], "seed"]
    # The digests of the files that are handed out stand in their certificate; no other does.
    digests = [digest for name, digest in manifest["files"].items() if not name.startswith("public/")]
    canaries += ["designed_for", '"counts"', *digests]
    for path in public(release):
        text = path.read_text("utf-8")
        assert [canary for canary in canaries if canary in text] == [], path.name


def test_private_files_are_for_their_owner(study: sf.Study, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        sf.disguise(study, [COIN], tmp_path / "out")
        COIN.save(tmp_path / "coin.json")
    finally:
        os.umask(before)
    private = tmp_path / "out" / "private"
    assert {path.name for path in private.iterdir()} == {"channel.json", "internal.html", "manifest.json", "run.toml"}
    assert oct(private.stat().st_mode)[-3:] == "700"
    assert {oct(path.stat().st_mode)[-3:] for path in private.iterdir()} == {"600"}
    assert oct((tmp_path / "coin.json").stat().st_mode)[-3:] == "600"


def test_a_disguise_is_verified(release: Path, made: Path, capsys: Capture) -> None:
    code, found = said(capsys, "verify", release)
    assert (code, found["differences"]) == (0, [])
    code, found = said(capsys, "verify", release, "--source", made / "canary-people.csv")
    assert (code, found["differences"], "rows" in found["compared"]) == (0, [], True)
    code, found = said(capsys, "apply", release, made / "canary-people.csv", "-o", made / "never")
    assert code == 2, found


def changed_file(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(release: Path) -> None:
        text = (release / name).read_text("utf-8")
        assert old in text
        (release / name).write_text(text.replace(old, new, 1), "utf-8")

    return change


def changed_figure(release: Path) -> None:
    """Every copy of a figure, in manifest and pages alike."""
    from sfumato.methods.channel.pages import pages_of

    manifest = pack.read_manifest(release)
    manifest["own"]["channels"][0]["figures"]["privacy"] = manifest["figures"]["job"]["privacy"] = 0.9
    for name, text in pages_of(release, manifest).items():
        (release / name).write_text(text, "utf-8")
    resealed(release, **manifest)


def changed_counts(release: Path) -> None:
    path = release / "private" / "channel.json"
    about = json.loads(path.read_text("utf-8"))
    about["counts"][0] = about["counts"][0][::-1]
    path.write_text(json.dumps(about), "utf-8")


def changed_rows(change: Callable[[list[dict[str, str]]], None]) -> Callable[[Path], None]:
    def spoil(release: Path) -> None:
        rows = rows_of(release / "public" / "data.csv")
        change(rows)
        written(release / "public" / "data.csv", rows)

    return spoil


def report_everywhere(rows: list[dict[str, str]]) -> None:
    for row in rows[:150]:
        row["job"] = "nurse"


def strange_report(rows: list[dict[str, str]]) -> None:
    rows[0]["job"] = "pilot"


def other_town(rows: list[dict[str, str]]) -> None:
    next(row for row in rows if row["town"] == "north")["town"] = "south"


def one_row_less(rows: list[dict[str, str]]) -> None:
    rows.pop()


TAMPERED: dict[str, tuple[Callable[[Path], None], str, bool]] = {
    "a figure everywhere": (changed_figure, "channels.0.figures", False),
    "the true counts": (changed_counts, "do not agree with the channel", False),
    "reports": (changed_rows(report_everywhere), "do not agree with the channel", False),
    "a report that cannot be": (changed_rows(strange_report), "that the channel does not know", False),
    "a row less": (changed_rows(one_row_less), "do not agree with the channel", False),
    "a plain cell": (changed_rows(other_town), "differ from the source in their plain columns", True),
    "a public page": (changed_file("public/external.html", "steps of 5 %", "steps of 6 %"), "not agree with", False),
    "the mark": (changed_file("public/data.csv.channel.json", "0.6", "0.7"), "does not agree with", False),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("case", TAMPERED)
@pytest.mark.parametrize("sealed", [False, True])
def test_tampering_is_found(case: str, sealed: bool, release: Path, made: Path) -> None:
    """Also when every digest is made to fit again."""
    spoil, says, with_source = TAMPERED[case]
    spoil(release)
    if sealed:
        resealed(release)
    checked = sf.verify(release, made / "canary-people.csv" if with_source else None)
    assert not checked
    assert any("bytes have changed" in d.what for d in checked.differences) == (not sealed and spoil != changed_figure)
    assert any(says in d.what for d in checked.differences), [str(d) for d in checked.differences]


def test_the_truth_in_place_of_reports_is_found(tmp_path: Path) -> None:
    """With equal shares the truth occurs as often as reports do; beside a plain column it does not."""
    rows = [(job, town) for job in JOBS for town in ("north", "south") for _ in range(200)]
    rows = [(job, "north" if job in JOBS[:2] else town) for job, town in rows]
    people = table(tmp_path / "people.csv", rows)
    accepted = {"response": "the towns of a test"}
    sf.disguise(people, [COIN], tmp_path / "out", keep=["town"], state=tmp_path, accept=accepted)
    data = tmp_path / "out" / "public" / "data.csv"
    written(data, [{"job": job, "town": town} for job, town in rows])
    resealed(tmp_path / "out")
    checked = sf.verify(tmp_path / "out", tmp_path / "people.csv")
    assert any("do not agree with the channel" in d.what for d in checked.differences), [
        str(d) for d in checked.differences
    ]


def test_another_source_is_not_the_source(release: Path, made: Path, tmp_path: Path) -> None:
    table(tmp_path / "other.csv", ROWS)
    checked = sf.verify(release, tmp_path / "other.csv")
    assert [d.what for d in checked.differences] == ["it is not the source of this release: its SHA-256 differs"]


def test_figures_are_those_of_the_matrix_and_the_true_shares(release: Path) -> None:
    """Plain numpy: what the best guesser gets, and the most that a report tells."""
    manifest = pack.read_manifest(release)
    shares = np.array(list(COUNTS.values())) / RECORDS
    joint = warner(4, 0.6) * shares
    figures = manifest["figures"]["job"]
    assert figures["privacy"] == pytest.approx(1 - joint.max(axis=1).sum())
    assert figures["worst_posterior"] == pytest.approx((joint / joint.sum(axis=1, keepdims=True)).max())
    assert figures["epsilon"] == pytest.approx(np.log(0.6 / (0.4 / 3)))
    assert figures["mse_of_estimate"] == pytest.approx(figures["mse"])  # of a square matrix there is one estimate
    assert (manifest["records"], manifest["source"]["rows_read"]) == (RECORDS, RECORDS + 1)
    counted = Counter(row["job"] for row in rows_of(release / "public" / "data.csv"))
    assert {row["name"]: row["observed"] for row in manifest["own"]["channels"][0]["reports"]} == {
        job: counted[job] / RECORDS for job in JOBS
    }


def test_the_public_error_is_that_of_the_estimate_analysts_make(study: sf.Study, tmp_path: Path) -> None:
    """With more reports than categories the reference is equal shares; the error stated is of equal shares too."""
    front = sf.search(study.replace(channel={"columns": ("job",), "points": 3}))
    sf.publish(sf.pick(front, point=1), tmp_path / "out")
    mark = json.loads((tmp_path / "out" / "public" / "data.csv.channel.json").read_text("utf-8"))
    matrix = np.array(mark["channels"][0]["matrix"])
    assert "reference" not in mark["channels"][0]
    weights = matrix / matrix.sum(axis=1, keepdims=True)
    inverse = np.linalg.solve(weights.T @ matrix, weights.T)
    even = np.full(len(COUNTS), 1 / len(COUNTS))
    error = ((inverse**2 @ (matrix @ even)) - even**2).mean() / RECORDS
    assert mark["channels"][0]["notes"]["expected_error"] == pytest.approx(error, rel=0.006)
    found = sf.estimate(tmp_path / "out")
    shown = dict(zip(JOBS, found.strata[0].recovered.raw, strict=True))
    for job, count in COUNTS.items():
        assert abs(shown[job] - count / RECORDS) < 6 * error**0.5 * 2


def test_a_second_disguise_of_the_same_people_is_refused(study: sf.Study, tmp_path: Path, capsys: Capture) -> None:
    """What the two reports tell together is stated, and plain numpy confirms it."""
    COIN.save(tmp_path / "coin.json")
    table(tmp_path / "canary-people.csv", ROWS)
    words = ["channel", "disguise", "--data", tmp_path / "canary-people.csv", "--channel", tmp_path / "coin.json"]
    assert said(capsys, *words, "-o", tmp_path / "one")[0] == 0
    code, found = said(capsys, *words, "-o", tmp_path / "two")
    assert code == 3
    what = found["error"]["what"]
    assert f"to {tmp_path / 'one'} is of the same table" in what
    shares = np.array(list(COUNTS.values())) / RECORDS
    one = warner(4, 0.6)
    two = np.array([one[a] * one[b] for a in range(4) for b in range(4)])
    right = [(matrix * shares).max(axis=1).sum() for matrix in (two, one)]
    worst = [((m * shares) / (m * shares).sum(axis=1, keepdims=True)).max() for m in (two, one)]
    assert f"right for {right[0] * 100:.1f} % of people, with this file alone for {right[1] * 100:.1f} %" in what
    assert f"one can be {worst[0] * 100:.1f} % sure of it, with this file alone {worst[1] * 100:.1f} %" in what
    assert not (tmp_path / "two").exists()
    accepted = ["--accept", "earlier=the first file was never handed out"]
    assert said(capsys, *words, "-o", tmp_path / "two", *accepted)[0] == 0
    manifest = pack.read_manifest(tmp_path / "two")
    assert manifest["accepted"][0]["reason"] == "the first file was never handed out"
    assert "never handed out" in (tmp_path / "two" / "private" / "internal.html").read_text("utf-8")


def test_another_column_of_the_same_people_may_be_disguised(study: sf.Study, tmp_path: Path) -> None:
    sf.disguise(study, [COIN], tmp_path / "one")
    town = Channel(("town",), ("north", "south"), ("north", "south"), warner(2, 0.8))
    sf.disguise(study, [town], tmp_path / "two")


def test_categories_of_very_few_people_are_refused(tmp_path: Path) -> None:
    """That there is an emperor in the table is told by the channel's own categories."""
    people = table(tmp_path / "people.csv", [*ROWS, ("emperor", "north")])
    coin = Channel(("job",), (*JOBS, "emperor"), (*JOBS, "emperor"), warner(5, 0.6))
    with pytest.raises(sf.UnreachableError, match="1 category has fewer than 3 records in job") as raised:
        sf.disguise(people, [coin], tmp_path / "out", state=tmp_path)
    assert "emperor" not in str(raised.value)
    assert not (tmp_path / "out").exists()
    sf.disguise(people, [coin], tmp_path / "out", state=tmp_path, accept={"k": "the list of jobs is public"})


def test_people_alone_in_plain_columns_are_refused(tmp_path: Path) -> None:
    rows = [(job, town, str(i % 90)) for i, (job, town) in enumerate(ROWS)]
    people = table(tmp_path / "people.csv", [*rows, ("cook", "north", "104")], "job,town,age")
    sf.disguise(people, [COIN], tmp_path / "bare", state=tmp_path / "a")
    with pytest.raises(sf.UnreachableError, match="the smallest class has 1 records, below 3"):
        sf.disguise(people, [COIN], tmp_path / "out", keep=["age"], state=tmp_path / "b")


@pytest.mark.parametrize("role", ["vital", "identifier", "drop"])
def test_columns_that_are_never_released_are_never_kept(study: sf.Study, tmp_path: Path, role: str) -> None:
    roles = {"job": {"role": "sensitive"}, "town": {"role": role}}
    stated = {"unit": "row", "unit_reason": "every line is one person", "missing": "drop"}
    declared = sf.Study(data={"path": str(tmp_path / "canary-people.csv"), **stated}, columns=roles)
    with pytest.raises(sf.StudyError, match=f"town has the role {role} and cannot be kept"):
        sf.disguise(declared, [COIN], tmp_path / "out", keep=["town"])
    sf.disguise(declared, [COIN], tmp_path / "out", keep=None)
    assert list(rows_of(tmp_path / "out" / "public" / "data.csv")[0]) == ["job"]


def test_all_others_are_kept_only_if_each_has_a_role(study: sf.Study, tmp_path: Path) -> None:
    with pytest.raises(sf.StudyError, match="1 column without a role: town"):
        sf.disguise(study, [COIN], tmp_path / "out", keep=None)
    assert not (tmp_path / "out").exists()


def full_disk(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_disguise_that_fails_leaves_what_was_there(
    study: sf.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release keeps its file and its mark, and a refused one leaves nothing."""
    out = tmp_path / "out"
    sf.disguise(study, [COIN], out)
    before = {path.name: path.read_bytes() for path in public(out)}
    with pytest.raises(sf.InputError, match="already exists"):
        sf.disguise(study, [COIN], out, accept={"earlier": "only to try it again"})
    assert {path.name: path.read_bytes() for path in public(out)} == before
    monkeypatch.setattr(
        "sfumato.release.publish.write_manifest",
        lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    with pytest.raises(sf.InputError, match="No space left"):
        sf.disguise(study, [COIN], tmp_path / "full", accept={"earlier": "only to try it again"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["canary-people.csv", "out", "state"]


def test_a_file_that_the_channel_did_not_make_is_not_released(
    study: sf.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports that are shuffled against their rows have the right counts, but not beside the plain column."""
    from sfumato.methods.channel import draw

    rows = [("clerk", "north")] * 500 + [("nurse", "south")] * 500
    people = table(tmp_path / "two.csv", rows)
    coin = Channel(("job",), ("clerk", "nurse"), ("clerk", "nurse"), warner(2, 0.9))
    honest = draw.reported
    monkeypatch.setattr(draw, "reported", lambda *given: np.random.default_rng(1).permutation(honest(*given)))
    with pytest.raises(sf.SfumatoError, match="do not agree with the channel"):
        sf.disguise(people, [coin], tmp_path / "out", keep=["town"])
    assert not (tmp_path / "out").exists()
    sf.disguise(people, [coin], tmp_path / "out")  # without the plain column nothing can tell


def test_rows_torn_from_their_plain_columns_are_not_released(
    study: sf.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows exchange their towns: each column alone holds what it held, town and age together do not."""
    from sfumato.methods.channel import release as disguise

    rows = [(job, town, str(20 + i % 3)) for i, (job, town) in enumerate(ROWS)]
    people = table(tmp_path / "people.csv", rows, "job,town,age")
    honest = disguise.write_reports

    def torn(*given: Any) -> int:
        count = honest(*given)
        path = next(each for each in given if isinstance(each, Path))
        found = rows_of(path)
        one = next(row for row in found if (row["town"], row["age"]) == ("north", "21"))
        two = next(row for row in found if (row["town"], row["age"]) == ("south", "20"))
        one["town"], two["town"] = two["town"], one["town"]
        written(path, found)
        return count

    accept = {"response": "the towns of a test"}
    with monkeypatch.context() as patch:
        patch.setattr(disguise, "write_reports", torn)
        with pytest.raises(sf.SfumatoError, match="4 rows of the file do not have the plain columns of the source"):
            sf.disguise(people, [COIN], tmp_path / "out", keep=["town", "age"], accept=accept)
    assert not (tmp_path / "out").exists()
    sf.disguise(people, [COIN], tmp_path / "out", keep=["town", "age"], accept=accept)


def test_the_mark_is_found_by_estimate_and_audit(release: Path, tmp_path: Path, capsys: Capture) -> None:
    for where in (release, release / "public", release / "public" / "data.csv"):
        code, found = said(capsys, "channel", "estimate", where)
        assert (code, found["records"]) == (0, RECORDS)
    roles = '[columns]\njob = { role = "sensitive" }\ntown = { role = "quasi_identifier" }\n'
    (tmp_path / "run.toml").write_text(f'version = 1\n[data]\npath = "release/public/data.csv"\n{roles}', "utf-8")
    code, found = said(capsys, "audit", "--run", tmp_path / "run.toml")
    assert code == 2
    assert "not defined" in found["error"]["what"]


def test_two_channels_a_test_seed_and_a_name(study: sf.Study, tmp_path: Path) -> None:
    town = Channel(("town",), ("north", "south"), ("north", "south"), warner(2, 0.8))
    accept = {"earlier": "drawn again with the same seed, for a test"}
    for name in ("one", "two"):
        sf.disguise(study, [COIN, town], tmp_path / name, name="survey.parquet", test_seed=7, accept=accept)
        assert sf.verify(tmp_path / name, tmp_path / "canary-people.csv")
    files = [(tmp_path / name / "public" / "survey.parquet").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]
    assert "Not for release" in (tmp_path / "one" / "public" / "external.html").read_text("utf-8")
    assert len(sf.estimate(tmp_path / "one").channel.categories) == 8
    for name in ("../x.csv", "external.html", "x.txt", "x*.csv", ".csv"):
        with pytest.raises(sf.InputError, match="cannot be called"):
            sf.disguise(study, [COIN], tmp_path / "bad", name=name)


def test_a_channel_designed_elsewhere(study: sf.Study, tmp_path: Path) -> None:
    """Its categories need not all occur, its matrix tells nothing of this table, and δ may not hold here: say so."""
    jobs = (*JOBS, "pilot")
    notes = {"delta": 0.5, "designed_for": "shares from elsewhere"}
    coin = Channel(("job",), jobs, jobs, warner(5, 0.6), notes=notes)
    release = sf.disguise(study, [coin], tmp_path / "out")
    assert any("designed for posteriors of at most 0.5" in text for text in release.warnings)
    assert not any("reveals them" in text for text in release.warnings)
    assert sf.verify(tmp_path / "out", tmp_path / "canary-people.csv")
    assert "does not disclose them" in (tmp_path / "out" / "private" / "internal.html").read_text("utf-8")


@pytest.mark.long
@pytest.mark.parametrize("weird", [None, -1, "x", [], {"a": 1}])
def test_a_manifest_of_another_kind_is_a_difference_and_no_fault(release: Path, weird: Any) -> None:
    """Whatever stands in a sealed manifest, a verification ends with a sentence."""
    told = pack.read_manifest(release)
    for name in sorted(n for n in set(told) - {"checksum", "files", "format", "system"} if told[n] != weird):
        resealed(release, **{name: weird})
        checked = sf.verify(release)
        if name not in (
            "created",
            "reason",
            "versions",
            "test_seed",
            "point",
            "seal",
            "templates",
        ):  # nothing is measured for these
            assert not checked, name
        resealed(release, **{name: told[name]})
    assert sf.verify(release)
