"""Top and bottom coding: single values between two ends, then intervals."""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato.errors import HierarchyError
from sfumato.hierarchies.build import ends
from sfumato.hierarchies.recipes import builder, recipe


def test_single_years_then_85_and_above() -> None:
    tree = ends("age", ["0", "17", "18", "71", "76", "84", "85", "102"], bottom=18, top=85, widths=[5, 10])
    assert tree.paths == [
        ("0", "<18", "<18", "<18", "*"),
        ("17", "<18", "<18", "<18", "*"),
        ("18", "18", "18-19", "18-19", "*"),  # an interval ends where an end begins
        ("71", "71", "70-74", "70-79", "*"),
        ("76", "76", "75-79", "70-79", "*"),
        ("84", "84", "80-84", "80-84", "*"),
        ("85", ">=85", ">=85", ">=85", "*"),
        ("102", ">=85", ">=85", ">=85", "*"),
    ]


def test_one_end_is_enough_and_none_is_refused() -> None:
    assert ends("age", ["1", "90"], top=85).paths == [("1", "1", "*"), ("90", ">=85", "*")]
    for given in ({}, {"bottom": 9.0, "top": 3.0}, {"top": 3.0, "widths": [2, 5]}, {"top": 3.0, "widths": [0]}):
        with pytest.raises(HierarchyError):
            ends("age", ["1", "5"], **given)


def test_the_recipe_in_a_run_file_and_in_python() -> None:
    assert sf.top_bottom(5, top=85) == recipe("ends", {"top": 85, "widths": [5]})
    made = builder("age", sf.top_bottom(bottom=2.5), ",")(["1,5", "2,5", "3"], [1, 1, 1])
    assert made.paths == [("1,5", "<2.5", "*"), ("2,5", "2,5", "*"), ("3", "3", "*")]
