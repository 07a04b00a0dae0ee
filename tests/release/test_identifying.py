"""A number, date or text that is released and unique for many records identifies them, whatever its role."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import front_of, publish, write_csv

import sfumato as sf
from sfumato.release.policy import PolicyError

ROWS = 400


def exact_income(number: int, rng: random.Random) -> Any:
    return 20_000 + 137 * number + rng.random()


def wage(number: int, rng: random.Random) -> Any:
    return repr(round(rng.lognormvariate(2.4, 0.4), 15))


def booked(number: int, rng: random.Random) -> Any:
    start = datetime.datetime(2013, 1, 1)
    return (start + datetime.timedelta(seconds=rng.randrange(60_000_000))).isoformat(sep=" ")


def spoken(number: int, rng: random.Random) -> Any:
    return " ".join(rng.choice(["pain", "left", "arm", "cough", "since", "monday"]) for _ in range(6)) + f" {number}"


def grade(number: int, rng: random.Random) -> Any:
    return rng.choice(["good", "fair", "poor"])


def rare_code(number: int, rng: random.Random) -> Any:
    return "rare" if number == 0 else rng.choice(["good", "fair"])


def one_in_ten(number: int, rng: random.Random) -> Any:
    return 1_000_000 + number if number % 10 == 0 else rng.randint(1, 20)


def one_in_fifty(number: int, rng: random.Random) -> Any:
    return 1_000_000 + number if number % 50 == 0 else rng.randint(1, 20)


def table(folder: Path, made: Callable[[int, random.Random], Any], role: str, rows: int = ROWS) -> sf.Study:
    rng = random.Random(5)
    cells: list[Sequence[Any]] = [["area", "sex", "x"]]
    cells += [[number % 4, rng.choice("FM"), made(number, rng)] for number in range(rows)]
    path = write_csv(folder / "inc.csv", cells)
    roles = {"area": "quasi_identifier", "sex": "quasi_identifier", "x": role}
    return sf.Study(data={"path": str(path)}, columns={name: {"role": role} for name, role in roles.items()})


def broken(study: sf.Study, folder: Path, **accept: str) -> dict[str, str]:
    """The rules that its release with one column hidden breaks."""
    front = front_of(study, [{"area": 1, "sex": 0}], anything=False)
    try:
        publish(front, 0, folder / "out", accept=accept, state=folder / "state")
    except PolicyError as error:
        return {finding.key: finding.what for finding in error.findings}
    return {}


@pytest.mark.parametrize("role", ["sensitive", "other", "label"])
@pytest.mark.parametrize("made", [exact_income, wage, booked, spoken, one_in_ten])
def test_values_of_their_own_identify(tmp_path: Path, made: Callable[..., Any], role: str) -> None:
    study = table(tmp_path, made, role)
    found = broken(study, tmp_path)
    assert "identifying:x" in found
    values = [line.split(",")[2] for line in (tmp_path / "inc.csv").read_text().splitlines()[1:]]
    alone = sum(count for count in Counter(values).values() if count == 1)
    assert f"{100 * alone / ROWS:.1f}".rstrip("0").rstrip(".") in found["identifying:x"]
    assert not any(value in found["identifying:x"] for value in values if len(value) > 4)


def padded(number: int, rng: random.Random) -> Any:
    return f"{10 + number // 2}.5{' ' * (number % 2)}"


def padded_words(number: int, rng: random.Random) -> Any:
    return f"{' ' * (number % 2)}a note on case {number // 2}"


@pytest.mark.parametrize("role", ["sensitive", "other"])
@pytest.mark.parametrize("made", [padded, padded_words])
def test_values_count_as_they_are_released(tmp_path: Path, made: Callable[..., Any], role: str) -> None:
    """Two records of one amount, one of them with a blank at an end that the file keeps: each differs from all."""
    assert "100.0 %" in broken(table(tmp_path, made, role), tmp_path).get("identifying:x", "")


@pytest.mark.parametrize("made", [grade, rare_code, one_in_fifty])
def test_few_values_pass(tmp_path: Path, made: Callable[..., Any]) -> None:
    assert "identifying:x" not in broken(table(tmp_path, made, "sensitive"), tmp_path)


def test_a_nominal_column_of_a_small_table_passes(tmp_path: Path) -> None:
    """One of ten records has a rare grade: that is a value of a short list, and no text of its own."""
    assert "identifying:x" not in broken(table(tmp_path, rare_code, "sensitive", rows=16), tmp_path)


def test_the_threshold_is_the_policys(tmp_path: Path) -> None:
    study = table(tmp_path, one_in_fifty, "sensitive").with_settings({"policy": {"identifying": 0.01}})
    assert "identifying:x" in broken(study, tmp_path)
    study = table(tmp_path, one_in_ten, "sensitive").with_settings(
        {"policy": {"identifying": 0.5, "reason": "made up for a test"}}
    )
    assert "identifying:x" not in broken(study, tmp_path)


def test_it_can_be_accepted_with_a_reason(tmp_path: Path) -> None:
    study = table(tmp_path, exact_income, "sensitive")
    reason = {"identifying:x": "incomes are drawn at random for a course"}
    assert broken(study, tmp_path, **reason) == {}
    release = sf.verify(tmp_path / "out", source=str(tmp_path / "inc.csv"))
    assert release.differences == ()
