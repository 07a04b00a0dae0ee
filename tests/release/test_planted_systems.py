"""Two people who stand out, released by systems that suppress nobody: a protected group and a disguised column.

Both release every record, so less can be asked than of a recoding. In a protected file the cells of the two are as in
the source, and the policy refuses them unless the publisher accepts unique records; every other public file is the same
whoever the two are, but for the shares of swapped records and cells, because other people can mean another plan. Of a
disguise, the public channel lists the values of the column; a value of fewer people than the policy's k is refused, and
nothing else of the two reaches a public file.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.methods.groups.files import GOOD, PROTECT, protected_front
from tests.release.fronts import publish_protection
from tests.release.planted import HIGH, JOBS, LOW, Person, people, public_files, rows_of, write_people
from tests.release.test_planted import strangers

import sfumato as sf
from sfumato.data.settings import Role
from sfumato.front import Front
from sfumato.methods.channel.system import chosen_channel
from sfumato.release.policy import PolicyError
from sfumato.study import ColumnSettings
from sfumato.study.sections import PolicySettings

REASON = "a table made for a test"
SWAPPED = re.compile(r'[0-9.]+\s%</b>of the (records|cells) carry|"(exchanged|loss)_share": [0-9.]+')
PAIRS = st.tuples(*(strangers(number, number % 2 == 0) for number in range(4)))
ILLNESSES = ("flu", "cold", "gout", "cough")


def beside_the_data(release: Any) -> dict[str, str]:
    """Return the public files as text without the data file, its digest in the metadata, and digests of such files."""
    digest = hashlib.sha256(release.data.read_bytes()).hexdigest()
    texts = {p.name: p.read_text("utf-8").replace(digest, "") for p in public_files(release) if p != release.data}
    certificate = json.loads(texts["certificate.json"])
    texts["certificate.json"] = json.dumps(certificate | {"files": sorted(certificate["files"])})
    return texts


def mentioned(texts: Mapping[str, str], strange: Sequence[Person]) -> list[tuple[str, str]]:
    words = [word for person in strange for word in person.words if len(word) > 4]
    return [(name, word) for name, text in texts.items() for word in words if word in text]


def drawn(quick: int) -> Callable[..., Any]:
    """So many examples; a failing one is shown as it was drawn, because every try is two releases."""
    return lambda test: settings(
        max_examples=quick,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )(given(strange=PAIRS)(test))


def write_group(folder: Path, strange: Sequence[Person]) -> Front:
    """A protection of 1,000 ordinary people, many of each kind, of whom members gather in one town; and of the two."""
    ranged = GOOD.replace('column = "age", ordinal', 'column = "age", range = [18, 60], ordinal')
    attack = "[groups.attack]\nruns = 1\n" + PROTECT
    (folder / "run.toml").write_text(ranged.replace("[groups.vital]", attack + "[groups.vital]"), "utf-8")
    for name, seed in (("t.csv", 1), ("aux.csv", 2)):
        rng = random.Random(seed)
        rows: list[Sequence[str]] = []
        for _ in range(1000):
            member = rng.random() < 0.2
            town = "A" if member and rng.random() < 0.6 else rng.choice("ABCD")
            age = rng.choice(["20", "24"] if member else ["20", "24", "48"])
            rows.append((age, rng.choice("12"), town, "55" if member else "11", rng.choice(JOBS[:2])))
        for person in strange if name == "t.csv" else ():
            age = str(int(float(person.age)) * 100)
            rows.insert(rng.randrange(len(rows)), (age, "1", person.town, "11", person.job))
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("age", "sex", "town", "job", "work"), *rows])
    return protected_front(folder)


def same_group_files(strange: tuple[Person, ...], tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = []
    for two in (strange[:2], strange[2:]):
        folder = tmp_path_factory.mktemp("planted")
        out = write_group(folder, two)
        accept = {"attacks": REASON, "uniques": REASON}
        release = publish_protection(out, folder / "release", accept=accept, state=folder / "state")
        assert release.manifest["whole"]["all_columns"]["unique"] in range(2, 10)
        texts.append(beside_the_data(release))
        assert "fewer than 10 records" in texts[-1]["external.html"]
        assert not mentioned(texts[-1], two)
        with (folder / "t.csv").open(newline="", encoding="utf-8") as file:
            before = list(csv.DictReader(file))
        for name in ("age", "sex", "town", "work"):
            assert Counter(row[name] for row in before) == Counter(row[name] for row in rows_of(release))
        texts[-1]["external.html"], shares = SWAPPED.subn("", texts[-1]["external.html"])
        texts[-1]["certificate.json"], certified = SWAPPED.subn("", texts[-1]["certificate.json"])
        assert (shares, certified) == (4, 2)
    pages = {"dictionary.html", "dictionary.json", "external.html"}
    assert set(texts[0]) == {"certificate.json", "croissant.json", "ddi.xml"} | pages
    for name in texts[0]:
        assert texts[0][name] == texts[1][name], name


test_a_group_release_says_nothing_of_the_two_beside_their_rows = pytest.mark.long(drawn(2)(same_group_files))
test_a_group_release_says_nothing_of_forty_pairs = pytest.mark.published(drawn(40)(same_group_files))


@pytest.mark.long
def test_a_group_release_with_the_two_is_refused_unless_unique_records_are_accepted(tmp_path: Path) -> None:
    out = write_group(tmp_path, (LOW, HIGH))
    with pytest.raises(PolicyError) as refused:
        publish_protection(out, tmp_path / "release", accept={"attacks": REASON}, state=tmp_path / "state")
    assert [finding.rule for finding in refused.value.findings] == ["uniques"]
    assert not mentioned({"the error": str(refused.value)}, (LOW, HIGH))
    assert not (tmp_path / "release").exists()


def same_draws(size: int, number: Iterator[int]) -> bytes:
    """Bytes for a draw, the same in each release: a figure of the drawn reports is rounded, and may differ by draw."""
    return hashlib.shake_256(b"%d" % next(number)).digest(size)


def disguised(folder: Path, two: Sequence[Person]) -> Any:
    """The illness disguised by a channel that was designed for this table, beside the jobs."""
    write_people(folder / "people.csv", two)
    study = people(folder, {}).replace(columns={"job": ColumnSettings(role=Role.OTHER)})
    wanted = study.replace(channel={"columns": ("ill",), "engine": "exact", "points": 2}).with_search(system="channel")
    chosen = chosen_channel(sf.pick(sf.search(wanted), point=1))
    usual = study.model_copy(update={"policy": PolicySettings()})
    number = count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.urandom", lambda size: same_draws(size, number))
        return sf.disguise(usual, [chosen], folder / "out", keep=["job"], state=folder / "state")


def same_disguise(strange: tuple[Person, ...], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two who stand out in every column that stays at home."""
    texts = []
    for two in (strange[:2], strange[2:]):
        folder = tmp_path_factory.mktemp("planted")
        ordinary = [
            replace(person, job=JOBS[place], ill=ILLNESSES[place], visits=f"7{place}77{place}")
            for place, person in enumerate(two)
        ]
        release = disguised(folder, ordinary)
        texts.append(beside_the_data(release))
        hidden = [replace(person, job="", ill="") for person in ordinary]
        assert not mentioned(texts[-1] | {"data": release.data.read_text("utf-8")}, hidden)
        reports = " | ".join(row["ill"].replace(" > ", " | ") for row in rows_of(release))
        assert set(reports.split(" | ")) == set(ILLNESSES)
    metadata = {"certificate.json", "croissant.json", "ddi.xml"}
    assert set(texts[0]) == {"data.csv.channel.json", "dictionary.html", "dictionary.json", "external.html"} | metadata
    for name in texts[0]:
        assert texts[0][name] == texts[1][name], name


test_a_disguise_says_nothing_of_the_two = drawn(3)(same_disguise)
test_a_disguise_says_nothing_of_forty_pairs = pytest.mark.published(drawn(40)(same_disguise))


@pytest.mark.parametrize(("own", "rule"), [("ill", "k"), ("job", "k")])
def test_a_value_that_only_one_has_is_not_disguised_nor_kept_beside(own: str, rule: str, tmp_path: Path) -> None:
    """The public channel would list an illness of one person; a plain column would show a job."""
    ordinary = {"job": JOBS[0], "ill": ILLNESSES[0]}
    two = [replace(person, **{**ordinary, own: getattr(person, own)}) for person in (LOW, HIGH)]
    with pytest.raises(PolicyError) as refused:
        disguised(tmp_path, two)
    assert rule in [finding.rule for finding in refused.value.findings]
    assert not mentioned({"the error": str(refused.value)}, two)
    assert not (tmp_path / "out").exists()
