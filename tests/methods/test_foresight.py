"""A search says which points the policy will refuse, so that a refusal at publication is no surprise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.methods.search import Foreseen, foresee
from sfumato.release.policy import PolicyError

SYSTEMS = {
    "lattice": {},
    "cuts": {"search": {"population": 20, "generations": 5}},
    "local": {"local": {"k": [2, 3, 5], "passes": 0}},
    "cells": {"cells": {"k": [2, 3], "effort": 0, "passes": 0, "exact": 0}},
}
KNOWN = {"raw", "k", "l", "t", "suppressed"}


def study_of(folder: Path, system: str, **policy: object) -> sf.Study:
    """Ages and sexes, where illness follows from age nearly always: small classes have one value."""
    rng = np.random.default_rng(5)
    age = rng.integers(20, 32, 90)
    ill = np.where(age < 26, "no", "yes").astype(object)
    ill[rng.random(90) < 0.1] = "perhaps"
    frame = pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], 90), "ill": ill})
    frame.to_csv(folder / "p.csv", index=False)
    known = {"role": "quasi_identifier"}
    columns = {
        "age": known | {"hierarchy": {"build": "interval", "widths": [3, 6]}},
        "sex": known | {"hierarchy": {"build": "flat"}},
        "ill": {"role": "sensitive"},
    }
    search = {"system": system, **SYSTEMS[system].get("search", {})}
    given = {name: settings for name, settings in SYSTEMS[system].items() if name != "search"}
    return sf.Study(data={"path": str(folder / "p.csv")}, columns=columns, search=search, policy=policy, **given)


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_foreseen_is_what_publication_refuses(system: str, tmp_path: Path) -> None:
    study = study_of(tmp_path, system)
    front = sf.search(study)
    found = foresee(front, [point.id for point in front.points], study.table())
    assert found is not None
    refused: dict[str, set[int]] = {}
    for point in front.points:
        try:
            sf.publish(sf.pick(front, point=point.id), tmp_path / f"out{point.id}", state=tmp_path / f"s{point.id}")
        except PolicyError as error:
            for finding in error.findings:
                refused.setdefault(finding.key, set()).add(point.id)
    assert refused
    expected = {key: points for key, points in refused.items() if key in KNOWN}
    divided = system in ("local", "cells")  # there ℓ and t depend on a draw; k does not
    for key in ("raw", "k", "suppressed") if divided else KNOWN:
        assert set(found.broken.get(key, ())) == expected.get(key, set()), key
    assert set(found.broken) <= KNOWN


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_command_says_it_and_names_the_rules(
    system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study_of(tmp_path, system).save(tmp_path / "run.toml")
    assert run(["search", str(path), "-o", str(tmp_path / "front")]) == 0
    said = capsys.readouterr().err
    (line,) = [line for line in said.splitlines() if line.startswith("policy: ")]
    assert "publish refuses" in line
    assert " k (" in line
    assert run(["search", str(path), "--json"]) == 0
    policy = json.loads(capsys.readouterr().out)["policy"]
    assert set(policy) <= KNOWN
    assert 0 in policy["k"]


def test_it_is_about_the_rules_of_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weak = study_of(tmp_path, "local", k=1, l=1, t=1.0, uniques=1.0, reason="a table made for a test only")
    assert run(["search", str(weak.save(tmp_path / "weak.toml"))]) == 0
    assert "policy:" not in capsys.readouterr().err
    strong = study_of(tmp_path, "local", l=4)
    assert run(["search", str(strong.save(tmp_path / "strong.toml"))]) == 0
    said = capsys.readouterr().err
    assert "points break a rule" in said
    assert " l (all)" in said


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (
            Foreseen((0,), {"l": (0,)}),
            "policy: the point breaks a rule; publish refuses it without an acceptance: l (all)",
        ),
        (Foreseen((0, 1), {"k": (0,)}), "policy: 1 of 2 points breaks a rule; publish refuses it"),
        (Foreseen((0, 2, 4, 6), {"k": (0, 2, 4), "t": (0, 4)}), "k (0–4), t (0, 4)"),
        (Foreseen((0, 1), {}), ""),
    ],
)
def test_points_are_listed_shortly(found: Foreseen, says: str) -> None:
    assert says in found.sentence()
    assert bool(found.sentence()) is bool(says)
