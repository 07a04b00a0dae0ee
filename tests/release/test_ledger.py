"""Several releases of one table: what somebody who holds both learns, confirmed with plain pandas."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.methods.groups.files import protected_study
from tests.release.fronts import front_of, people, publish, write_csv
from tests.release.pairs import Pair

import sfumato as sf
from sfumato.cli import run
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.errors import InputError, UnreachableError
from sfumato.methods.apply import apply_plan
from sfumato.methods.groups.front import swaps_of
from sfumato.release import publish as release_publish
from sfumato.release.history import people as row_hashes
from sfumato.release.history.check import Comparison
from sfumato.release.history.ledger import Ledger
from sfumato.release.policy import PolicyError

ALONE = {"k": "years at work are hard to learn", "uniques": "years at work are hard to learn"}
ACCEPT = {"rule": "earlier", "reason": "the two files stay in one safe room"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def study_of(path: Path, columns: dict[str, Any], *accepted: dict[str, str], **policy: Any) -> sf.Study:
    """A study whose policy looks at nothing but k and earlier releases."""
    rules = {"k": 3, "l": 1, "t": 1.0, "uniques": 1.0, "identifying": 1.0, "reason": "a table made for a test"} | policy
    reasons = [
        {"rule": rule, "column": name, "reason": "kept to link the rows"}
        for rule in ("identifying", "dependence")
        for name, column in columns.items()
        if column["role"] in ("other", "sensitive")
    ]
    data = {"path": str(path), "na": ["?"], "missing": "category"}
    return sf.Study(data=data, columns=columns, policy=rules | {"accept": [*reasons, *accepted]})


def number(pattern: str, text: str) -> int:
    """The number in a sentence of a finding."""
    match = re.search(pattern.replace("#", r"([\d,]+)"), text)
    assert match, f"{pattern!r} is not in: {text}"
    return int(match[1].replace(",", ""))


def source_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


Side = tuple[pd.DataFrame, pd.Series]


def shown_of(source: pd.DataFrame, recoded: dict[str, pd.Series], kept: Sequence[str], below: int) -> Side:
    """What a release shows of each person: labels and kept cells; and who is in it: classes of at least `below`."""
    shown = pd.DataFrame(recoded, index=source.index).assign(**{name: source[name] for name in kept})
    return shown, shown.groupby(list(recoded))[next(iter(recoded))].transform("size") >= below


def pair_of(source: pd.DataFrame, first: Side, second: Side) -> Pair:
    return Pair(source, first[0], second[0], first[1], second[1])


def banded(values: pd.Series, width: int, origin: int = 0) -> pd.Series:
    return (values.astype(int) - origin) // width


def cut(values: pd.Series, breaks: Sequence[int]) -> pd.Series:
    """The band of each number: how many breaks it has reached."""
    return pd.Series(np.searchsorted(breaks, values.astype(int), side="right"), index=values.index)


PEOPLE: dict[str, Any] = {
    "name": {"role": "identifier"},
    "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20]}},
    "post code": {"role": "quasi_identifier", "hierarchy": {"build": "prefix"}},
    "sex": {"role": "quasi_identifier"},
    "ill": {"role": "sensitive"},
    "income": {"role": "other"},
}
LEVELS = {"age": 1, "post code": 1, "sex": 0}
QUASI = ["age", "post code", "sex"]
MOST = 40


def people_file(folder: Path, rows: int = 240) -> Path:
    return write_csv(folder / "people.csv", people(rows))


def released(path: Path, folder: Path, columns: dict[str, Any], *accepted: dict[str, str], **policy: Any) -> sf.Release:
    """The people under LEVELS, without their smallest classes."""
    return publish(front_of(study_of(path, columns, *accepted, **policy), [LEVELS], MOST), 0, folder)


def with_origin(origin: int) -> dict[str, Any]:
    hierarchy = {"build": "interval", "widths": [10, 20], "origin": origin}
    return PEOPLE | {"age": {"role": "quasi_identifier", "hierarchy": hierarchy}}


def people_shown(path: Path, origin: int, kept: Sequence[str], below: int) -> Side:
    """What LEVELS shows of the people: decades from an origin, two digits of the post code, the sex."""
    source = source_of(path)
    labels = {"age": banded(source["age"], 10, origin), "post code": source["post code"].str[:2]}
    return shown_of(source, labels | {"sex": source["sex"]}, kept, below)


def limit_of(release: sf.Release) -> int:
    """Classes smaller than this are not in a release."""
    return int(release.manifest["point"]["suppress_below"])


BREAKS = [25, 35, 45, 55, 65]
ADULT = ["age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"]
ADULT += ["race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "salary-class"]


def adult_study(path: Path, breaks: Sequence[int], *accepted: dict[str, str]) -> sf.Study:
    columns: dict[str, Any] = {name: {"role": "drop"} for name in ADULT}
    columns |= {name: {"role": "quasi_identifier"} for name in ("sex", "race", "marital-status")}
    columns |= {name: {"role": "other"} for name in ("fnlwgt", "hours-per-week")}
    columns["age"] = {"role": "quasi_identifier", "hierarchy": {"build": "breaks", "levels": [list(breaks)]}}
    return study_of(path, columns, *accepted)


@pytest.mark.long
def test_breaks_shifted_by_a_year_reveal_exact_ages(shared: Path, tmp_path: Path) -> None:
    """Publisher A3, on UCI Adult: two k-anonymous releases with ages in bands that differ by one year."""
    raw = shared / "data" / "adult-uci" / "adult.data.gz"
    source = pd.read_csv(raw, names=ADULT, dtype=str, skipinitialspace=True).dropna().reset_index(drop=True)
    source.to_csv(tmp_path / "adult.csv", index=False)
    levels, shifted = {"age": 1, "sex": 0, "race": 0, "marital-status": 0}, [year + 1 for year in BREAKS]
    fronts = [front_of(adult_study(tmp_path / "adult.csv", breaks), [levels], 200) for breaks in (BREAKS, shifted)]
    first = publish(fronts[0], 0, tmp_path / "a")
    with pytest.raises(UnreachableError) as refused:
        publish(fronts[1], 0, tmp_path / "b")
    assert not (tmp_path / "b").exists()

    kept, plain_labels = ["fnlwgt", "hours-per-week"], ["sex", "race", "marital-status"]
    one, two = (
        shown_of(
            source,
            {"age": cut(source["age"], breaks), **{name: source[name] for name in plain_labels}},
            kept,
            front.points[0].plan.suppress_below,
        )
        for breaks, front in zip((BREAKS, shifted), fronts, strict=True)
    )
    pair = pair_of(source, one, two)
    exact, small = pair.exact("age"), pair.small(["age", *plain_labels], 3)
    linked = pair.linked(["age"], [*kept, *plain_labels])
    assert set(source["age"][exact[exact].index].astype(int)) == set(BREAKS)
    assert 1000 < exact.sum() < len(source)
    said = str(refused.value)
    assert number("the exact value of age follows for # people", said) == exact.sum()
    assert number("# people are in joint classes of fewer than 3", said) == small.sum()
    assert number("# of .* people in both files link uniquely", said) == len(linked)
    affected = set(exact[exact].index) | set(small[small].index)
    assert number("of the people named above, # link uniquely", said) == len(affected & set(linked)) > 1000

    # and with the two files alone, as somebody outside would do it: bands that overlap in one year only
    again = front_of(adult_study(tmp_path / "adult.csv", shifted, ACCEPT), [levels], 200)
    files = [
        pd.read_csv(release.data, dtype=str, keep_default_na=False)
        for release in (first, publish(again, 0, tmp_path / "b"))
    ]
    keys = [*kept, *plain_labels]
    plain = [file[~file.duplicated(keys, keep=False)] for file in files]
    merged = plain[0].merge(plain[1], on=keys, suffixes=("_a", "_b"))
    learned = sum(((merged["age_a"].str.startswith(f"{year}-")) | (merged["age_a"] == f">={year}")) & (
        (merged["age_b"].str.endswith(f"-{year}")) | (merged["age_b"] == f"<{year + 1}")
    ) for year in BREAKS).sum()  # fmt: skip
    assert 0 < learned <= len(set(exact[exact].index) & set(linked))


def test_another_hierarchy_on_the_same_levels(tmp_path: Path) -> None:
    """Security M-1: widths [10, 20] and the same from 5; each release hides everyone among at least three."""
    path = people_file(tmp_path)
    first = released(path, tmp_path / "a", with_origin(0))
    with pytest.raises(UnreachableError) as refused:
        released(path, tmp_path / "b", with_origin(5))
    second = released(path, tmp_path / "b", with_origin(5), ACCEPT)
    assert min(limit_of(first), limit_of(second)) >= 3
    kept = ["ill", "income"]
    shown = [people_shown(path, o, kept, limit_of(r)) for o, r in ((0, first), (5, second))]
    pair = pair_of(source_of(path), *shown)
    small = pair.small(QUASI, 3)
    assert small.sum() > 10
    said = str(refused.value)
    assert number("# people are in joint classes of fewer than 3", said) == small.sum()
    assert number(r"\(the smallest has #\)", said) == pair.joint_sizes(QUASI)["joint"].min() < 3
    linked = pair.linked(["age"], ["post code", "sex", *kept])
    assert number("# of .* people in both files link uniquely", said) == len(linked)
    assert number("of the people named above, # link uniquely", said) == len(set(small[small].index) & set(linked))
    # the files alone say the same: linked by what is unique in both, bands that meet in five years
    files = [pd.read_csv(r.data, dtype=str, keep_default_na=False) for r in (first, second)]
    keys = ["post code", "sex", *kept]
    plain = [file[~file.duplicated(keys, keep=False)] for file in files]
    assert len(plain[0].merge(plain[1], on=keys)) <= len(linked)
    (entry,) = [entry for entry in second.manifest["accepted"] if entry["rule"] == "earlier"]
    assert entry["what"] in said


def test_other_columns_beside_the_same_labels(tmp_path: Path) -> None:
    """Illness in one file, income in the other: linked, they stand side by side."""
    path = people_file(tmp_path)
    first = released(path, tmp_path / "a", PEOPLE | {"income": {"role": "drop"}})
    with pytest.raises(UnreachableError) as refused:
        released(path, tmp_path / "b", PEOPLE | {"ill": {"role": "drop"}}, uniques=0.001)
    shown = [people_shown(path, 0, kept, limit_of(first)) for kept in (["ill"], ["income"])]
    unique = pair_of(source_of(path), *shown).unique()
    assert unique.sum() > 0.001 * 240
    said = str(refused.value)
    assert number("# people are unique in the two files together and in neither alone", said) == unique.sum()
    assert "lacks income, has ill as well" in said


def test_one_more_column_adds_no_more_than_the_new_file_says_itself(tmp_path: Path) -> None:
    """The earlier file is part of the new one: a warning with the number of rows that link, no refusal."""
    path = people_file(tmp_path)
    first = released(path, tmp_path / "a", PEOPLE | {"income": {"role": "drop"}})
    (warning,) = released(path, tmp_path / "b", PEOPLE).warnings
    shown = [people_shown(path, 0, kept, limit_of(first)) for kept in (["ill"], ["ill", "income"])]
    linked = pair_of(source_of(path), *shown).linked([], [*QUASI, "ill"])
    assert number("# of .* people in both files link uniquely", warning) == len(linked)
    assert "lacks income" in warning


def test_another_suppression(tmp_path: Path) -> None:
    """The same labels, other classes left out: how many people are in one file only is said."""
    path = people_file(tmp_path)
    first = released(path, tmp_path / "a", PEOPLE)
    assert first.manifest["suppressed"] > 0
    whole = front_of(study_of(path, PEOPLE, {"rule": "k", "reason": "only for the comparison"}), [LEVELS])
    (warning,) = publish(whole, 0, tmp_path / "b").warnings
    assert number("# people are in only one of the two files", warning) == first.manifest["suppressed"]


def test_suppressed_in_one_file_and_shown_in_the_other(tmp_path: Path) -> None:
    """Who is missing from the first file is found in the second: coarser labels do not hide that."""
    path = people_file(tmp_path)
    first = released(path, tmp_path / "a", PEOPLE)
    front = front_of(study_of(path, PEOPLE, k=5), [{"age": 2, "post code": 1, "sex": 0}], 10)
    with pytest.raises(UnreachableError) as refused:
        publish(front, 0, tmp_path / "b")
    source = source_of(path)
    labels = {"age": banded(source["age"], 20), "post code": source["post code"].str[:2], "sex": source["sex"]}
    kept = ["ill", "income"]
    coarse = shown_of(source, labels, kept, front.points[0].plan.suppress_below)
    pair = pair_of(source, people_shown(path, 0, kept, limit_of(first)), coarse)
    small = pair.small(QUASI, 5)
    assert small.sum() > 0
    assert not pair.in_first[small[small].index].any()
    assert number("# people are in joint classes of fewer than 5", str(refused.value)) == small.sum()


def test_a_row_appended_is_the_same_people(tmp_path: Path) -> None:
    """The digest is another, the people are not: the newcomer is whoever is in the second file only."""
    path = people_file(tmp_path)
    released(path, tmp_path / "a", PEOPLE)
    with path.open("a") as file:
        file.write("newcomer,30,111,F,flu,500\n")
    with pytest.raises(UnreachableError) as refused:
        released(path, tmp_path / "b", PEOPLE)
    said = str(refused.value)
    assert number("# person is in joint classes of fewer than 3", said) == 1
    assert number(r"\(the smallest has #\)", said) == 1
    assert number("# row of this table is new", said) == 1


def test_other_people_are_no_finding(tmp_path: Path) -> None:
    path = people_file(tmp_path)
    released(path, tmp_path / "a", PEOPLE)
    other = write_csv(tmp_path / "other.csv", people(240, seed=11))
    assert released(other, tmp_path / "b", with_origin(5)).warnings == ()


def test_the_same_release_again_is_no_finding(tmp_path: Path) -> None:
    path = people_file(tmp_path)
    for name in "abc":
        assert released(path, tmp_path / name, PEOPLE).warnings == ()


def test_a_plan_applied_is_entered_and_compared(tmp_path: Path) -> None:
    path = people_file(tmp_path)
    release = released(path, tmp_path / "a", PEOPLE)
    grown = write_csv(tmp_path / "grown.csv", [*people(240), ["newcomer", 30, 111, "F", "flu", 500]])
    with pytest.raises(UnreachableError) as refused:
        apply_plan(release.folder, grown, tmp_path / "grown-out.csv")
    assert number("# row of this table is new", str(refused.value)) == 1
    assert not (tmp_path / "grown-out.csv").exists()
    fresh = write_csv(tmp_path / "fresh.csv", [row for row in people(240, seed=9) if row[1] != 97])
    apply_plan(release.folder, fresh, tmp_path / "fresh-out.csv")
    with pytest.raises(UnreachableError, match="fresh-out"):
        released(fresh, tmp_path / "b", with_origin(5))


JOBS = {"clerk": 0.4, "nurse": 0.3, "cook": 0.2, "spy": 0.1}


def survey(folder: Path, rows: int = 400) -> Path:
    rng = np.random.default_rng(5)
    jobs = rng.choice(list(JOBS), rows, p=list(JOBS.values()))
    cells = [[str(place), job, str(rng.integers(1, 90))] for place, job in enumerate(jobs)]
    return write_csv(folder / "survey.csv", [["person", "job", "years"], *cells])


def warner(stay: float) -> sf.Channel:
    matrix = np.full((4, 4), (1 - stay) / 3)
    np.fill_diagonal(matrix, stay)
    return sf.Channel(("job",), tuple(JOBS), tuple(JOBS), matrix)


def best_guess(shares: pd.Series, *channels: sf.Channel) -> tuple[float, float]:
    """How often the best guesser of a job is right who sees a report from each channel, and the most sure they get."""
    truths = pd.DataFrame({"job": shares.index, "p": shares.to_numpy(), "seen": ""})
    for channel in channels:
        matrix = pd.DataFrame(channel.matrix, index=channel.outputs, columns=channel.categories)
        chances = matrix.stack().rename("chance").rename_axis(["report", "job"]).reset_index()
        truths = truths.merge(chances, on="job")
        truths = truths.assign(p=truths["p"] * truths["chance"], seen=truths["seen"] + "|" + truths["report"])
        truths = truths.drop(columns=["chance", "report"])
    reports = truths.groupby("seen")["p"]
    return float(reports.max().sum()), float((reports.max() / reports.sum())[reports.sum() > 0].max())


def test_a_disguise_repeated(tmp_path: Path) -> None:
    """REVIEW F3: two reports of each person tell more than one, and the ledger says how much."""
    path = survey(tmp_path)
    study = sf.Study(data={"path": str(path)}, columns={})
    sf.disguise(study, [warner(0.7)], tmp_path / "one", keep=["years"], accept=ALONE)
    with pytest.raises(UnreachableError) as refused:
        sf.disguise(study, [warner(0.6)], tmp_path / "two", keep=["years"], accept=ALONE)
    assert not (tmp_path / "two").exists()
    source = source_of(path)
    shares = source["job"].value_counts(normalize=True)
    alone, both = best_guess(shares, warner(0.6)), best_guess(shares, warner(0.7), warner(0.6))
    assert both[0] > max(alone[0], best_guess(shares, warner(0.7))[0]) + 0.02
    said = str(refused.value)
    right, sure = ([f"{100 * one[i]:.1f} %" for one in (both, alone)] for i in (0, 1))
    assert f"the best guess of job is right for {right[0]} of people, with this file alone for {right[1]}" in said
    assert f"after some reports one can be {sure[0]} sure of it, with this file alone {sure[1]}" in said
    once = ~source["years"].duplicated(keep=False)
    assert number("# of .* people in both files link uniquely", said) == once.sum()
    accepted = sf.Study(data={"path": str(path)}, columns={}, policy={"accept": [ACCEPT]})
    sf.disguise(accepted, [warner(0.6)], tmp_path / "two", keep=["years"], accept=ALONE)
    with pytest.raises(UnreachableError) as refused:
        sf.disguise(study, [warner(0.6)], tmp_path / "three")
    three = best_guess(shares, warner(0.7), warner(0.6), warner(0.6))
    assert f"3 reports: the best guess of job is right for {100 * three[0]:.1f} % of people" in str(refused.value)


def test_every_disguise_with_one_channel_is_a_report_of_its_own(tmp_path: Path) -> None:
    """The same probabilities draw other reports each time, so that equal descriptions are not equal files."""
    path = survey(tmp_path)
    study = sf.Study(data={"path": str(path)}, columns={})
    accepted = sf.Study(data={"path": str(path)}, columns={}, policy={"accept": [ACCEPT]})
    shares = source_of(path)["job"].value_counts(normalize=True)
    for name in ("one", "two"):
        sf.disguise(accepted, [warner(0.7)], tmp_path / name)
    with pytest.raises(PolicyError) as refused:
        sf.disguise(study, [warner(0.7)], tmp_path / "three")
    (finding,) = refused.value.findings
    right, sure = best_guess(shares, *[warner(0.7)] * 3)
    assert f"3 reports: the best guess of job is right for {100 * right:.1f} % of people" in finding.what
    assert f"after some reports one can be {100 * sure:.1f} % sure of it" in finding.what


def test_a_disguise_beside_the_column_itself(tmp_path: Path) -> None:
    """What was released as it is cannot be disguised afterwards."""
    path = people_file(tmp_path)
    first = released(path, tmp_path / "a", PEOPLE)
    matrix = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    channel = sf.Channel(("ill",), ("cold", "flu", "gout"), ("cold", "flu", "gout"), matrix)
    with pytest.raises(UnreachableError) as refused:
        sf.disguise(study_of(path, PEOPLE), [channel], tmp_path / "told", keep=["income"])
    said = str(refused.value)
    assert "the best guess of ill is right for 100.0 % of people" in said
    source = source_of(path)
    everyone = source[["income"]], pd.Series(True, index=source.index)
    pair = pair_of(source, people_shown(path, 0, ["ill", "income"], limit_of(first)), everyone)
    assert number("# of .* people in both files link uniquely", said) == len(pair.linked([], ["income"]))


@pytest.mark.long
def test_other_swaps_than_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two protections with other partners: rows that differ between the two files are rows that were swapped."""
    protected_study(tmp_path)
    for number_, name in ((1, "p"), (2, "q")):
        words = ["search", str(tmp_path / "run.toml"), "-o", str(tmp_path / name)]
        assert run([*words, "--set", f"groups.protect.test_seed={number_}", "--json"]) in (0, 3)
    swaps = [_swaps_of(tmp_path / name) for name in "pq"]
    assert swaps[0] != swaps[1]
    capsys.readouterr()
    given = [w for rule in ("uniques", "attacks") for w in ("--accept", f"{rule}=small tables made for a test")]
    assert run(["publish", str(tmp_path / "p"), "-o", str(tmp_path / "a"), *given, "--json"]) == 0
    capsys.readouterr()
    assert run(["publish", str(tmp_path / "q"), "-o", str(tmp_path / "b"), *given, "--json"]) == 3
    said = json.loads(capsys.readouterr().out)["error"]["what"]
    source = source_of(tmp_path / "t.csv")
    towns = []
    for pairs in swaps:
        town = source["town"].copy()
        for giver, taker in pairs:
            town[giver], town[taker] = source["town"][taker], source["town"][giver]
        towns.append(town)
    rows = pd.DataFrame({"age": source["age"], "sex": source["sex"], "a": towns[0], "b": towns[1]})
    differ = 0
    for _, alike in source.groupby(list(source)):  # rows that are equal in the source cannot be told apart
        one, two = (rows.loc[alike.index, side].value_counts() for side in "ab")
        differ += len(alike) - int(one.combine(two, min, fill_value=0).sum())
    assert differ > 0
    assert number("# rows show another place in the two files", said) == differ
    texts = source.agg(",".join, axis=1)
    pairs = [Counter(tuple(sorted((texts[a], texts[b]))) for a, b in side) for side in swaps]
    assert number("# of .* exchanged pairs are the same", said) == (pairs[0] & pairs[1]).total()


def _swaps_of(folder: Path) -> set[tuple[int, int]]:
    plan = swaps_of(sf.pick(sf.load_front(folder)).point)
    return {(int(a), int(b)) for a, b in zip(plan.givers, plan.takers, strict=True)}


KILL = """
import os, pathlib, signal, sys
from tests.release import test_ledger as t
when, folder = sys.argv[1], pathlib.Path(sys.argv[2])
real = pathlib.Path.rename

def rename(self, target):
    if pathlib.Path(target) != folder / "a":
        return real(self, target)
    if when == "after":
        real(self, target)
    os.kill(os.getpid(), signal.SIGKILL)

pathlib.Path.rename = rename
t.released(folder / "people.csv", folder / "a", t.PEOPLE)
"""


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_while_the_folder_gets_its_name(tmp_path: Path, when: str) -> None:
    """Security M-1: a release that got its name is known to the ledger, whenever the process ended."""
    path = people_file(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", KILL, when, str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == -9, done.stderr
    assert (tmp_path / "a").exists() == (when == "after")
    if when == "after":
        with pytest.raises(UnreachableError, match="joint classes of fewer than 3"):
            released(path, tmp_path / "b", with_origin(5))
    else:
        (warning,) = released(path, tmp_path / "b", with_origin(5)).warnings
        assert "was interrupted" in warning


def test_private_whatever_the_umask(tmp_path: Path, state: Path) -> None:
    path = people_file(tmp_path)
    before = os.umask(0)
    try:
        released(path, tmp_path / "a", PEOPLE)
    finally:
        os.umask(before)
    files = [state, *state.rglob("*")]
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == (0o700 if file.is_dir() else 0o600), file
    assert sum(file.is_file() for file in files) >= 2


def test_lines_that_cannot_be_read_are_said(tmp_path: Path, state: Path) -> None:
    path = people_file(tmp_path)
    released(path, tmp_path / "a", PEOPLE)
    (lines,) = state.rglob("*.jsonl")
    with lines.open("a") as file:
        file.write('{"source": "broken')
    (warning,) = released(path, tmp_path / "b", PEOPLE).warnings
    assert "1 line of the ledger cannot be read" in warning
    (warning,) = released(path, tmp_path / "c", PEOPLE).warnings
    assert "1 line of the ledger cannot be read" in warning


@pytest.mark.parametrize("part", ["size", "listed", "channels", "swaps", "columns", "ordered"])
def test_an_entry_that_lacks_a_part_is_said_to_be_unreadable(tmp_path: Path, state: Path, part: str) -> None:
    """A default in its place could hide what was released."""
    path = people_file(tmp_path)
    released(path, tmp_path / "a", PEOPLE)
    (entry,) = [file for file in state.rglob("*.json") if "description" in file.read_text("utf-8")]
    content = json.loads(entry.read_text("utf-8"))
    del content["description"][part]
    entry.write_text(json.dumps(content), "utf-8")
    (warning,) = released(path, tmp_path / "b", PEOPLE).warnings
    assert "cannot be read" in warning


@pytest.mark.parametrize(("torn", "unreadable"), [(1, 0), (30, 1)])
def test_a_release_after_a_torn_line_is_known(tmp_path: Path, state: Path, torn: int, unreadable: int) -> None:
    """The end of the last line is lost: what follows begins a line of its own, and is compared later."""
    path = people_file(tmp_path)
    released(path, tmp_path / "a", PEOPLE)
    (lines,) = state.rglob("*.jsonl")
    lines.write_bytes(lines.read_bytes()[:-torn])
    released(path, tmp_path / "b", PEOPLE)
    reading = Ledger(state).read()
    assert [entry.folder for entry in reading.entries] == [tmp_path / "a", tmp_path / "b"]
    assert reading.unreadable == unreadable


def test_no_release_without_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that later ones would not be compared with does not leave."""
    path = people_file(tmp_path)
    (tmp_path / "blocked").write_text("a file")
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "blocked"))
    with pytest.raises(InputError, match="nothing was released"):
        released(path, tmp_path / "a", PEOPLE)
    assert not (tmp_path / "a").exists()


def test_a_refused_release_leaves_no_ledger(tmp_path: Path, state: Path) -> None:
    path = people_file(tmp_path)
    front = front_of(study_of(path, PEOPLE), [LEVELS], MOST)
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError):
        publish(front, 0, tmp_path / "a")
    assert not state.exists()


def test_two_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were compared before either was entered, one of a shuffled copy: the second is compared again."""
    path = people_file(tmp_path)
    original = release_publish.entered

    def slow(comparison: Comparison, folder: Path, again: Any) -> Any:
        monkeypatch.setattr(release_publish, "entered", original)
        shutil.copy(path, tmp_path / "copy.csv")
        rows = source_of(path).sample(frac=1, random_state=3)
        rows.to_csv(tmp_path / "copy.csv", index=False)
        shifted = {**LEVELS, "age": 2, "post code": 0}
        front = front_of(study_of(tmp_path / "copy.csv", PEOPLE), [shifted], 100)
        publish(front, 0, tmp_path / "quick", accept={"k": "a table made for a test"})
        return original(comparison, folder, again)

    monkeypatch.setattr(release_publish, "entered", slow)
    with pytest.raises(PolicyError) as refused:
        released(path, tmp_path / "slow", PEOPLE)
    assert {finding.key for finding in refused.value.findings} == {"earlier"}
    assert (tmp_path / "quick").exists()
    assert not (tmp_path / "slow").exists()


REEXPORTS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "renamed": lambda t: t.rename(columns={"age": "Age", "sex": "gender"}),
    "all renamed": lambda t: t.rename(columns={name: f"v{place}" for place, name in enumerate(t)}),
    "with a fraction": lambda t: t.assign(age=t["age"] + ".0"),
    "zeros in front": lambda t: t.assign(age="0" + t["age"]),
    "capitals": lambda t: t.assign(ill=t["ill"].str.upper(), name=t["name"].str.upper()),
    "blanks": lambda t: t.assign(ill="  " + t["ill"] + " "),
    "a column less": lambda t: t.drop(columns="income"),
    "shuffled": lambda t: t.sample(frac=1, random_state=1),
    "half": lambda t: t.iloc[: len(t) // 2],
    "a row more": lambda t: pd.concat([t, t.iloc[:1].assign(name="someone else")]),
    "several": lambda t: (
        t.rename(columns={"age": "AGE"}).assign(ill=t["ill"].str.upper()).sample(frac=0.8, random_state=2)
    ),
}


@pytest.mark.parametrize("name", REEXPORTS)
def test_the_same_people_are_recognized_however_they_are_written(tmp_path: Path, name: str) -> None:
    path = people_file(tmp_path)
    table = source_of(path)
    REEXPORTS[name](table).to_csv(tmp_path / "again.csv", index=False)
    sources = [open_source(DataSettings(path=str(one), na=("?",)), Path()) for one in (path, tmp_path / "again.csv")]
    with open_engine("duckdb") as engine:
        engine.attach(sources[0], "raw")
        kept = row_hashes.own_hashes(engine, sources[0], QUASI, "key")
        before = row_hashes.sketches(engine, sources[0], "key")
    with open_engine("duckdb") as engine:
        engine.attach(sources[1], "raw")
        names, _ = row_hashes.recognize(before, row_hashes.sketches(engine, sources[1], "key"))
        found = []
        for rows in kept:
            if set(rows.columns) <= set(names):
                columns = [names[column] for column in rows.columns]
                found.append(rows.same_people(row_hashes.hashed_rows(engine, sources[1], columns, "key")))
    assert any(found), (name, names)


def test_other_people_are_not_recognized(tmp_path: Path) -> None:
    path = people_file(tmp_path)
    released(path, tmp_path / "one", PEOPLE)
    other = write_csv(
        tmp_path / "others.csv", [[*people()[0]], *[[f"x{row[0]}", *row[1:]] for row in people(240, 99)[1:]]]
    )
    assert released(other, tmp_path / "two", PEOPLE).warnings == ()


def test_columns_with_other_names_are_refused_as_the_same_people(tmp_path: Path) -> None:
    """What two releases reveal together cannot be counted where columns were renamed, so it needs a reason."""
    path = people_file(tmp_path)
    released(path, tmp_path / "one", PEOPLE)
    source_of(path).rename(columns={"age": "Age"}).to_csv(tmp_path / "again.csv", index=False)
    columns = {("Age" if name == "age" else name): column for name, column in PEOPLE.items()}
    levels = {("Age" if name == "age" else name): level for name, level in LEVELS.items()}
    front = front_of(study_of(tmp_path / "again.csv", columns), [levels], MOST)
    with pytest.raises(PolicyError, match="age had another name") as refused:
        publish(front, 0, tmp_path / "two")
    assert {finding.key for finding in refused.value.findings} == {"earlier"}


def test_the_lock_of_a_killed_process_does_not_block(tmp_path: Path, state: Path) -> None:
    """Another process holds the ledger and is killed; the lock file stays, the lock does not."""
    holder = (
        "import sys\nfrom sfumato.release.history.ledger import Ledger\n"
        "with Ledger(sys.argv[1]).locked():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", holder, str(state)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with (state / "ledger" / "lock").open() as handle, pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.kill()
    with Ledger(state).locked():
        pass


def test_the_share_of_a_table_beyond_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of large tables the smallest hashes are kept: what they share is close to what the tables share."""
    monkeypatch.setattr(row_hashes, "KEPT", 2000)
    rows = [[str(number), str(number % 7)] for number in range(20_000)]
    tables = {"whole": rows, "part": rows[4_000:12_000], "most": rows[9_000:] + [["x", str(i)] for i in range(11_000)]}
    tables |= {"coarse": [[str(number % 500), "0"] for number in range(20_000)], "few": rows[:1_900]}
    tables |= {"middle": [[str(number % 5_000), "0"] for number in range(20_000)]}
    hashed = {}
    with open_engine() as engine:
        for name, content in tables.items():
            write_csv(tmp_path / f"{name}.csv", [["a", "b"], *content])
            source = open_source(DataSettings(path=str(tmp_path / f"{name}.csv")))
            engine.attach(source, "raw")
            hashed[name] = row_hashes.hashed_rows(engine, source, source.names, "k" * 64)
            assert hashed[name].rows == len(content)
            assert (np.diff(hashed[name].hashes.astype(object)) > 0).all()
    assert {name for name, table in hashed.items() if table.whole} == {"coarse", "few"}
    assert [len(hashed[name].hashes) for name in ("coarse", "few")] == [500, 1_900]
    assert hashed["coarse"].counts.sum() == 20_000
    for name, distinct in (("whole", 20_000), ("part", 8_000), ("most", 22_000), ("middle", 5_000)):
        assert 1_000 <= len(hashed[name].hashes) <= 2_000
        assert hashed[name].distinct == pytest.approx(distinct, rel=0.1)
        assert int(hashed[name].hashes[-1]) <= hashed[name].limit
    assert hashed["whole"].shared(hashed["part"]) == hashed["few"].shared(hashed["whole"]) == 1.0
    assert hashed["whole"].shared(hashed["most"]) == pytest.approx(0.55, abs=0.05)
    assert hashed["part"].shared(hashed["most"]) == pytest.approx(3_000 / 8_000, abs=0.05)
    assert hashed["whole"].same_people(hashed["most"])
    assert not hashed["part"].same_people(hashed["most"])


def test_the_same_people_with_other_columns(tmp_path: Path) -> None:
    """Names and quasi-identifiers tell the people apart, so that another column does not hide who they are."""
    rows = people(240)
    path = write_csv(tmp_path / "people.csv", rows)
    released(path, tmp_path / "a", PEOPLE)
    more = [[*row, "height" if place == 0 else str(150 + place % 40)] for place, row in enumerate(rows)]
    for row in more[1:]:
        row[5] = 1000 - row[5]  # the incomes of another year
    other = write_csv(tmp_path / "other.csv", more)
    with pytest.raises(UnreachableError, match=r"about the same people: 100\.0 % of the rows"):
        released(other, tmp_path / "b", with_origin(5) | {"height": {"role": "other"}})


def test_a_release_that_never_left_is_withdrawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = people_file(tmp_path)
    released(path, tmp_path / "a", PEOPLE)
    capsys.readouterr()
    assert run(["releases", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["releases"]
    assert (entry["folder"], entry["system"], entry["rows"]) == (str(tmp_path / "a"), "lattice", 240)
    assert run(["releases", "--withdraw", entry["id"], "--json"]) == 2
    assert "without a reason" in json.loads(capsys.readouterr().out)["error"]["what"]
    assert run(["releases", "--withdraw", "none", "--reason", "a trial, deleted at once", "--json"]) == 2
    assert "no release" in json.loads(capsys.readouterr().out)["error"]["what"]
    with pytest.raises(UnreachableError):
        released(path, tmp_path / "b", with_origin(5))
    assert run(["releases", "--withdraw", entry["id"], "--reason", "a trial, deleted at once"]) == 0
    assert released(path, tmp_path / "b", with_origin(5)).warnings == ()


def test_a_column_released_after_its_disguise_is_compared_with_the_earlier_file(tmp_path: Path) -> None:
    """The new file alone reveals everything, so the sentence names what the earlier file alone revealed."""
    path = survey(tmp_path)
    study = sf.Study(data={"path": str(path)}, columns={})
    sf.disguise(study, [warner(0.7)], tmp_path / "one")
    shares = source_of(path)["job"].value_counts(normalize=True)
    years = tuple(sorted(source_of(path)["years"].unique()))
    other = sf.Channel(("years",), years, years, np.eye(len(years)) * 0.5 + 0.5 / len(years))
    with pytest.raises(UnreachableError) as refused:
        sf.disguise(study, [other], tmp_path / "two", keep=["job"], accept=ALONE)
    right = 100 * best_guess(shares, warner(0.7))[0]
    said = str(refused.value)
    assert f"is right for 100.0 % of people, with the earlier file alone for {right:.1f} %" in said
