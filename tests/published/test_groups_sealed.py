"""States of the American Community Survey: what sealed attacks find after protection, on all columns and rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute
import pyarrow.parquet
import pytest

from sfumato.study import read
from sfumato.systems.groups.search import Protection, protect
from sfumato.systems.run import Run

pytestmark = pytest.mark.published
STATES = "psam_2018_14states_noreplicates.parquet"
MILITARY = 'recipe = "acs"\nother_columns = "release"\n'
DOCTORS = MILITARY + 'withhold = ["SOCP"]\n[groups.vital]\ndoctors = [{ OCCP = ["3090", "3100"] }]\n'
EARLIER = ["ss15phi.csv.gz"]


def protected(folder: Path, data: Path, state: str, groups: str, files: list[str]) -> Protection:
    """A state's rows protected against attackers who learned from the other states, and from other files."""
    table = pyarrow.parquet.read_table(data / STATES)
    pyarrow.parquet.write_table(table.filter(pyarrow.compute.equal(table["ST"], state)), folder / "state.parquet")
    listed = [f'{{ path = "{data / STATES}", leave_out = [{{ ST = "{state}" }}] }}']
    listed += [f'{{ path = "{data / name}" }}' for name in files]
    text = f'version = 1\n[data]\npath = "state.parquet"\n[groups]\nauxiliary = [{", ".join(listed)}]\n{groups}'
    (folder / "run.toml").write_text(text, "utf-8")
    return protect(read(folder / "run.toml"), Run(), test_seed=1)


@pytest.mark.parametrize(
    ("state", "groups", "files", "sensitive", "still"),
    [
        ("15", MILITARY + 'expert = ["00301", "00302", "00306"]\n', EARLIER, 3, 1),
        ("35", MILITARY, EARLIER, 3, 0),
        ("31", MILITARY, EARLIER, 3, 1),
        ("35", DOCTORS, [], 2, 2),
    ],
    ids=["Hawaii", "New Mexico", "Nebraska", "doctors in New Mexico"],
)
def test_what_sealed_attacks_find_after_protection(
    state: str, groups: str, files: list[str], sensitive: int, still: int, tmp_path: Path, shared: Path
) -> None:
    """What is still found (docs/groups.md says by whom) is known; before, all sealed attacks but one found an area."""
    made = protected(tmp_path, shared / "data" / "acs-pums", state, groups, files)
    assert len(made.truths[0].sensitive.areas) == sensitive
    assert sum(not row.before.anyhow for row in made.choice.sealed) <= 1
    assert sum(bool(row.after.anyhow) for row in made.choice.sealed) <= still
    assert {row.attacker.split(",")[0] for row in made.choice.sealed} >= {
        *("exact", "forest", "boosted_all", "logistic_all", "boosted", "forest_all")
    }
    assert all(baseline.found > made.choice.found for baseline in made.baselines)
