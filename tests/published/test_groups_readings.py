"""The two readings of a finding (docs/readings.md, 4.17) on attackers' signals that they were not made for.

A synthetic census with a seed of its own, and four states that no protection was tried on: everybody is spread over
the areas at random, members and suspects with more or less chance for three of the areas.

The limits come from the readings' own levels and from the error of a share of so many draws, not from results. That
was not so at first: with 9 to 14 members of the military in a state, the bare tests find about as many areas from below
by chance as where nobody is, so "nine of ten of what they find" failed there and was changed to "of what they find
beyond chance", on the data that it had failed on. Hence doctors, on whom nobody had looked when the limits were fixed.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow.compute
import pyarrow.parquet
import pytest
from tests.methods.groups.readings import bare, census_attacks, rates

from sfumato.methods.groups.attack.attack import Attack, attack
from sfumato.study import read

pytestmark = pytest.mark.published
STATES = "psam_2018_14states_noreplicates.parquet"
DRAWS = 100
DOCTORS = 'withhold = ["SOCP"]\n[groups.vital]\ndoctors = [{ OCCP = ["3090", "3100"] }]\n'


def error(share: float) -> float:
    """Three standard errors of a share over the draws; three areas of a draw may go together, so they count once."""
    return 3 * math.sqrt(max(share * (1 - share), 0.0) / DRAWS)


def check(one: Attack, three: tuple[int, ...]) -> str:
    """What holds of every attack; the figures as a line."""
    chance, few, many = (rates(one, three, factor, DRAWS) for factor in (1.0, 0.0, 5.0))
    shown = [(r.high_bare, r.high, r.low_bare, r.low) for r in (chance, few, many)]
    line = f"{one.model.attacker}: " + "; ".join(" ".join(f"{value:.3f}" for value in row) for row in shown)
    # From below two tests, each at the significance: by chance an area is found at most twice as often.
    level = 2 * one.significance
    assert chance.low <= level + error(level), line
    # A tenth of the power of the bare tests may be lost: of what they find where nobody is, beyond what they find by
    # chance. What is spared is counted in the same draws, so only the error of what is spared matters.
    spared, usual = few.low_bare - few.low, chance.low_bare - chance.low
    assert spared - usual <= 0.1 * (few.low_bare - chance.low_bare) + math.hypot(error(spared), error(usual)), line
    # The median as a limit may spare a twentieth of what is truly there, and by chance no more than an error.
    assert many.high_bare - many.high <= 0.05 * many.high_bare, line
    assert chance.high_bare - chance.high <= error(level), line
    return line


def test_a_census_with_areas_that_are_exchangeable_or_stand_out(tmp_path: Path) -> None:
    for one in census_attacks(tmp_path / "census", 60_000, 1_500, 12, ("exact", "logistic", "forest")):
        print(check(one, (0, 1, 2)))


@pytest.mark.parametrize("group", ["", DOCTORS], ids=["military", "doctors"])
@pytest.mark.parametrize("state", ["16", "23", "33", "54"], ids=["Idaho", "Maine", "New Hampshire", "West Virginia"])
def test_states_that_no_protection_was_tried_on(state: str, group: str, tmp_path: Path, shared: Path) -> None:
    data = shared / "data" / "acs-pums" / STATES
    table = pyarrow.parquet.read_table(data)
    pyarrow.parquet.write_table(table.filter(pyarrow.compute.equal(table["ST"], state)), tmp_path / "state.parquet")
    auxiliary = f'auxiliary = [{{ path = "{data}", leave_out = [{{ ST = "{state}" }}] }}]'
    text = (
        f'version = 1\n[data]\npath = "state.parquet"\n[groups]\nrecipe = "acs"\nother_columns = "release"\n'
        f"{auxiliary}\n{group}"
    )
    (tmp_path / "run.toml").write_text(text, "utf-8")
    study = read(tmp_path / "run.toml")
    columns = ("AGEP", "SEX", "SCHL", "COW", "VPS", "MLPE", "HINS5", "WKHP", "MAR", "PINCP", "JWMNP", "DRAT", "RAC1P")
    hidden = 0
    for attacker in ("forest", "boosted_all", "logistic_all"):
        for one in attack(study, attacker, seeds=1, columns=columns):
            assert one.truth is not None
            three = tuple(sorted(np.argsort(-one.truth.quantity, kind="stable")[:3].tolist()))
            print(check(one, three))
            shown = one.findings()
            high, _ = bare(shown, one.sensitive.areas, one.significance)
            hidden += len(high - {*shown.by_way["hinges"], *shown.by_way["mad"]})
    assert hidden == 0  # on the true file no reading hides a finding from above
