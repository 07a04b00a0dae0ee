"""What is wrong with a run file is said in words; a table that is set takes the place of the old one."""

from __future__ import annotations

from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import StudyError

BASE: dict[str, Any] = {"data": {"path": "t.csv"}, "columns": {"a": {"role": "quasi_identifier"}}}
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"local": {"k": [0]}}, "entry 1 of local.k = 0 is not valid", "a number of at least 1"),
    ({"local": {"k": 3}}, "local.k = 3 is not valid", "a list in square brackets"),
    ({"local": {"k": []}}, "local.k is not valid", "a list of at least 1 entry"),
    ({"local": {"effort": 1.5}}, "local.effort = 1.5 is not valid", "a whole number"),
    ({"local": {"bounds": "x"}}, "local.bounds = 'x' is not valid", "true or false"),
    ({"local": {"method": "x"}}, "local.method = 'x' is not valid", "one of: 'boxes' or 'runs'"),
    ({"search": {"max_suppression": 5.0}}, "search.max_suppression = 5.0 is not valid", "a number below 1"),
    ({"search": {"objectives": [3]}}, "entry 1 of search.objectives = 3 is not valid", "a text in quotation marks"),
    ({"search": 3}, "search = 3 is not valid", "a table of keys and values"),
    ({"columns": 3}, "columns = 3 is not valid", "a table of keys and values"),
    ({"data": {"path": "t", "separator": "ab"}}, "data.separator = 'ab'", "a text of at most 1 character"),
    ({"channel": {"delta": 2.0}}, "channel.delta = 2.0 is not valid", "a number of at most 1"),
]


@pytest.mark.parametrize(("settings", "what", "expected"), CASES)
def test_no_words_of_a_validator(settings: dict[str, Any], what: str, expected: str) -> None:
    with pytest.raises(StudyError) as error:
        sf.Study(**(BASE | settings))
    assert what in error.value.what
    assert error.value.expected == expected


def test_a_table_that_is_set_takes_the_place_of_the_old_one() -> None:
    study = sf.Study(**BASE, search={"seed": 3, "constraints": {"k": 2, "t_closeness": 0.5}})
    path = ("search", "constraints")
    assert study.with_values([(path, {})]).search.constraints == {}
    assert study.with_values([(path, {"t_closeness": 0.3})]).search.constraints == {"t_closeness": 0.3}
    both = study.with_values([((*path, "t_closeness"), 0.3), (("local", "k"), [4])])
    assert (both.search.constraints, both.local.k) == ({"k": 2, "t_closeness": 0.3}, (4,))
    assert both.search.seed == study.search.seed == 3
    assert study.search.constraints == {"k": 2, "t_closeness": 0.5}
    with pytest.raises(StudyError, match=r"local\.k is not valid"):
        study.with_values([(("local", "k"), [])])
