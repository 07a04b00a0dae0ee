"""Settings that would do nothing are refused, in a run file and in every copy of a study."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest

import sfumato as sf
from sfumato.data.settings import Role
from sfumato.errors import InputError, StudyError
from sfumato.study import ColumnSettings, SearchSettings, read
from sfumato.study.groups import GroupsSettings

KEYS: dict[str, Any] = {
    "hierarchy": {"build": "interval", "widths": [10_000]},
    "missing": "category",
    "distance": "ordered",
    "constrained": True,
    "order": ["a", "b"],
    "breaks": [10.0],
}
USED = {
    Role.QUASI_IDENTIFIER: {"hierarchy", "missing", "constrained", "order", "breaks"},
    Role.SENSITIVE: {"missing", "distance"},
    Role.LABEL: {"missing"},
}
CUTS = {"problem": 2, "prefer": "l", "suppression": "safe", "generations": 5, "local_search": 3}
LATTICE = {"iterations": 3, "evaluations": 10}


def study_of(role: str = "other", **keys: Any) -> sf.Study:
    return sf.Study(data={"path": "t.csv"}, columns={"PINCP": {"role": role} | keys})


def made_by_hand(settings: dict[str, Any]) -> sf.Study:
    return sf.Study(data={"path": "t.csv"}, search=settings)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("role", Role)
def test_a_key_that_the_role_does_not_read_is_refused(role: Role, key: str) -> None:
    """Somebody who gives an income a hierarchy believes that it is released in bands."""
    if key in USED.get(role, set()):
        study_of(role, **{key: KEYS[key]})
        return
    with pytest.raises(StudyError, match=f"PINCP.*{key}") as caught:
        study_of(role, **{key: KEYS[key]})
    assert str(role) in caught.value.what
    assert "10000" not in str(caught.value)  # nothing of the column but its name


def test_the_hierarchy_of_a_sensitive_column_is_for_distances_alone() -> None:
    tree = KEYS["hierarchy"]
    study_of("sensitive", hierarchy=tree, distance="hierarchical")
    study_of("sensitive", hierarchy=tree, distance="ordered")
    for distance in (None, "equal"):
        with pytest.raises(StudyError, match=r"PINCP.*hierarchy") as caught:
            study_of("sensitive", hierarchy=tree, **({"distance": distance} if distance else {}))
        assert "released as it is" in str(caught.value)


@pytest.mark.parametrize(("system", "keys"), [("lattice", CUTS), ("cuts", LATTICE)])
def test_a_setting_of_another_system_is_refused(system: str, keys: dict[str, Any]) -> None:
    other = "cuts" if system == "lattice" else "lattice"
    for key, value in keys.items():
        words = f"{key}.*{'for lattice' if key == 'suppression' else other}"  # both have it, with other values
        with pytest.raises(StudyError, match=words):
            made_by_hand({"system": system, key: value})
        with pytest.raises(StudyError, match=words):
            made_by_hand({}).with_search(system=system, **{key: value})
        made_by_hand({"system": other, key: value})
    with pytest.raises(StudyError, match="problem"):
        SearchSettings(system="lattice", problem=2)


def test_an_algorithm_of_another_system_is_refused() -> None:
    with pytest.raises(StudyError, match='algorithm = "memetic"'):
        made_by_hand({"system": "lattice", "algorithm": "memetic"})
    with pytest.raises(StudyError, match='algorithm = "exact"'):
        made_by_hand({"system": "cuts", "algorithm": "exact"})


def test_turning_to_another_system_leaves_what_belonged_to_the_old_one() -> None:
    """Whoever asks for another system by name is not asked to take the old one's settings away first."""
    cuts = made_by_hand({"system": "cuts", "problem": 2, "generations": 5, "max_suppression": 0.1, "seed": 7})
    lattice = cuts.with_search(system="lattice").search
    assert lattice == SearchSettings(max_suppression=0.1, seed=7)
    back = made_by_hand({"algorithm": "pbg_ea", "iterations": 3, "seed": 7}).with_search(system="cuts").search
    assert back == SearchSettings(system="cuts", seed=7)


COPIES: dict[str, tuple[Callable[[sf.Study], sf.Study], str]] = {
    "data, wrong value": (lambda s: s.replace(data={"missing": "nonsense"}), "data.missing = 'nonsense' is not valid"),
    "data, unknown key": (lambda s: s.replace(data={"mising": "drop"}), 'unknown key "mising" in \\[data\\]'),
    "search, wrong value": (lambda s: s.with_search(max_suppression=2), "search.max_suppression = 2 is not valid"),
    "search, unknown key": (lambda s: s.with_search(suppresion="safe"), 'unknown key "suppresion" in \\[search\\]'),
    "channel, wrong value": (lambda s: s.replace(channel={"delta": 2}), "channel.delta = 2 is not valid"),
    "channel, unknown key": (lambda s: s.replace(channel={"delt": 0.5}), 'unknown key "delt" in \\[channel\\]'),
    "columns, no role": (
        lambda s: s.replace(columns={"a": s.columns["PINCP"].model_copy(update={"role": "nonsense"})}),
        "columns.a.role = 'nonsense' is not valid",
    ),
    "columns, useless key": (
        lambda s: s.replace(columns={"a": ColumnSettings(role=Role.OTHER, distance="equal")}),
        "a.*distance",
    ),
    "groups, wrong value": (
        lambda s: s.replace(groups=GroupsSettings.model_construct(withhold="age", _fields_set={"withhold"})),
        "groups.withhold",
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_checked_like_a_run_file(name: str) -> None:
    change, says = COPIES[name]
    with pytest.raises(InputError, match=says):
        change(study_of())


def test_copies_keep_what_they_do_not_change(tmp_path: Any) -> None:
    text = '[data]\npath = "t.csv"\nna = ["?"]\n[columns]\nage = { role = "quasi_identifier" }\n[search]\nseed = 3\n'
    (tmp_path / "run.toml").write_text(text)
    study = read(tmp_path / "run.toml")
    changed = study.replace(data={"removed": 2}).with_search(threads=1).replace(channel={"delta": 0.5})
    changed = changed.replace(columns={"sex": ColumnSettings(role=Role.SENSITIVE)})
    assert (changed.folder, changed.data.na, changed.data.removed) == (tmp_path, ("?",), 2)
    assert (changed.search.seed, changed.search.threads, changed.channel.delta) == (3, 1, 0.5)
    assert {name: str(column.role) for name, column in changed.columns.items()} == {
        "age": "quasi_identifier",
        "sex": "sensitive",
    }
    again = sf.Study(**tomllib.loads(changed.as_toml()))
    assert again.search == changed.search


SEEDS: dict[str, Callable[[sf.Study], int]] = {
    "lattice": lambda study: study.search.seed,
    "cuts": lambda study: study.search.seed,
    "local": lambda study: study.search.seed,
    "cells": lambda study: study.search.seed,
    "channel": lambda study: study.channel.seed,
    "groups": lambda study: study.groups.attack.seed,
}


@pytest.mark.parametrize("system", SEEDS)
def test_another_seed_stands_where_the_system_reads_it(system: str) -> None:
    study = made_by_hand({"system": system}).with_settings({"groups": {"attack": {"folds": 3}}})
    assert SEEDS[system](study) == 1
    changed = study.with_seed(7)
    assert SEEDS[system](changed) == 7
    assert (changed.system, changed.groups.attack.folds) == (system, 3)
    assert study.with_seed(1) == study.with_seed(7).with_seed(1)


@pytest.mark.parametrize("name", ["run.toml", "cuts.toml"])
def test_the_bundled_run_files_are_within_the_rules(name: str) -> None:
    study = read(sf.sample("adult-complete").with_name(name))
    other = "cuts" if study.search.system == "lattice" else "lattice"
    assert study.with_search(system=other).search.system == other
