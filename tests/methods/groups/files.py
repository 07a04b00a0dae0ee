"""Small microfiles for the tests of the groups system."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.front import Front
from sfumato.methods.groups.attack.rules import Term, Variable
from sfumato.methods.groups.front import front_of
from sfumato.methods.groups.microfile import Dropped, Microfile
from sfumato.methods.groups.search import protect
from sfumato.methods.run import Run
from sfumato.study import read

VARIABLES = (
    Variable("a", (Term("low a", "pi", (0, 0, 3, 6)), Term("high a", "pi", (3, 6, 9, 9)))),
    Variable("b", (Term("b one", "crisp", (1, 1)), Term("b two", "crisp", (2, 2)), Term("b more", "crisp", (3, 4)))),
    Variable("c", (Term("about five", "gaussian", (2.0, 5.0)),)),
)


def microfile(rng: np.random.Generator, records: int, areas: int = 5, share: float = 0.3) -> Microfile:
    """Random records; members lean towards low a and b = 1."""
    members = rng.random(records) < share
    members[:2] = True, False
    columns = [
        np.where(members, rng.integers(0, 6, records), rng.integers(0, 10, records)),
        np.where(members & (rng.random(records) < 0.5), 1, rng.integers(1, 5, records)),
        rng.integers(0, 10, records),
    ]
    coded = [np.unique(column.astype(np.float64), return_inverse=True) for column in columns]
    where = np.where(members & (rng.random(records) < 0.5), 0, rng.integers(0, areas, records))
    return Microfile(
        name="random",
        attributes=("a", "b", "c"),
        values=tuple(values for values, _ in coded),
        codes=np.stack([codes for _, codes in coded]).astype(np.int32),
        areas=tuple(f"area{i}" for i in range(areas)),
        area_of=where.astype(np.int32),
        members={"g": members},
        rows=np.arange(records, dtype=np.int64) * 2 + 1,
        dropped=Dropped(2 * records + 1, 0, records, {}, {}),
        everyone={"g": np.bincount(where[members], minlength=areas).astype(np.int64)},
        inside=np.ones(records, np.bool_),
    )


GOOD = (
    'version = 1\n[data]\npath = "t.csv"\n[groups]\nother_columns = "release"\narea = ["town"]\n'
    'auxiliary = [{ path = "aux.csv" }]\n'
    '[groups.vital]\nsecret = [{ job = "55*" }]\n[groups.attributes]\n'
    'age = { column = "age", ordinal = true }\nsex = { column = "sex" }\n'
)


def rows(rng: np.random.Generator, towns: str = "ABCDEF", job: str = "55") -> str:
    lines = ["age,sex,town,job"]
    for _ in range(300):
        member = rng.random() < 0.2
        town = "A" if member and rng.random() < 0.8 and "A" in towns else rng.choice(list(towns))
        age = rng.integers(18, 25) if member else rng.integers(18, 60)
        lines.append(f"{age},{rng.integers(1, 3)},{town},{job if member else 11}")
    return "\n".join(lines) + "\n"


PROTECT = (
    '[groups.protect]\nattackers = ["exact"]\nlevels = 1\nknown_seeds = 1\nfresh_seeds = 1\nsealed_attackers = []\n'
)


def protected_study(folder: Path, attack: str = "", attackers: str = '["exact"]') -> None:
    """A run file with two small tables, ready to be protected."""
    for name, seed in (("t.csv", 1), ("aux.csv", 2)):
        (folder / name).write_text(rows(np.random.default_rng(seed)), encoding="utf-8")
    given = "[groups.attack]\nruns = 1\n" + attack + PROTECT.replace('["exact"]', attackers)
    text = GOOD.replace("[groups.vital]", given.replace("levels = 1", "levels = 2") + "[groups.vital]")
    (folder / "run.toml").write_text(text, encoding="utf-8")


def protected_front(folder: Path, test_seed: int = 1) -> Front:
    """The front of such a study, always the same."""
    return front_of(protect(read(folder / "run.toml"), Run(), test_seed=test_seed))
