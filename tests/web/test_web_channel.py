"""The page and the run file say the same of a search for channels."""

from __future__ import annotations

from sfumato.study import Study
from sfumato.web.api.systems import changed
from sfumato.web.schema import ChannelSearch


def test_what_the_page_does_not_ask_for_is_as_the_run_file_has_it() -> None:
    study = Study(
        data={"path": "t.csv"},
        columns={"job": {"role": "sensitive"}},
        channel={"points": 7, "delta": 0.6, "engine": "square"},
    )
    found = changed(study, ChannelSearch(column="job").model_dump())
    assert (found.channel.points, found.channel.delta, found.channel.engine) == (7, 0.6, "square")
    asked = changed(study, ChannelSearch(column="job", points=3, delta=0.9).model_dump())
    assert (asked.channel.points, asked.channel.delta, asked.channel.engine) == (3, 0.9, "square")
    plain = changed(Study(data={"path": "t.csv"}, columns=study.columns), ChannelSearch(column="job").model_dump())
    assert plain.channel.points == 24
