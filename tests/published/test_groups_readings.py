"""The two readings of a finding (docs/readings.md, 4.17) on attackers' signals that they were not made for.

A synthetic census with a seed of its own, and four states that no protection was tried on: everybody is spread over
the areas at random, members and suspects with more or less chance for three of the areas.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute
import pyarrow.parquet
import pytest
from tests.systems.groups.readings import bare, census_attacks, rates

from sfumato.study import read
from sfumato.systems.groups.attack.attack import Attack, attack

pytestmark = pytest.mark.published
STATES = "psam_2018_14states_noreplicates.parquet"
DRAWS = 100


def check(one: Attack, three: tuple[int, ...]) -> str:
    """What holds of every attack; the figures as a line."""
    chance = rates(one, three, 1.0, DRAWS)
    assert chance.high >= chance.high_bare - 0.02
    assert chance.low <= 0.03
    few, many = rates(one, three, 0.0, DRAWS), rates(one, three, 5.0, DRAWS)
    # What the bare tests find beyond what they find by chance is still found.
    assert few.low - chance.low >= 0.9 * (few.low_bare - chance.low_bare) - 0.03
    assert many.high >= 0.95 * many.high_bare
    shown = [(r.high_bare, r.high, r.low_bare, r.low) for r in (chance, few, many)]
    return f"{one.model.attacker}: " + "; ".join(" ".join(f"{value:.3f}" for value in row) for row in shown)


def test_a_census_with_areas_that_are_exchangeable_or_stand_out(tmp_path: Path) -> None:
    for one in census_attacks(tmp_path / "census", 60_000, 1_500, 12, ("exact", "logistic", "forest")):
        print(check(one, (0, 1, 2)))


@pytest.mark.parametrize("state", ["16", "23", "33", "54"], ids=["Idaho", "Maine", "New Hampshire", "West Virginia"])
def test_states_that_no_protection_was_tried_on(state: str, tmp_path: Path, shared: Path) -> None:
    data = shared / "data" / "acs-pums" / STATES
    table = pyarrow.parquet.read_table(data)
    pyarrow.parquet.write_table(table.filter(pyarrow.compute.equal(table["ST"], state)), tmp_path / "state.parquet")
    auxiliary = f'auxiliary = [{{ path = "{data}", leave_out = [{{ ST = "{state}" }}] }}]'
    text = (
        f'version = 1\n[data]\npath = "state.parquet"\n[groups]\nrecipe = "acs"\nother_columns = "release"\n{auxiliary}'
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
            hidden += len(high - {*shown.found["hinges"], *shown.found["mad"]})
    assert hidden == 0  # on the true file no reading hides a finding from above
