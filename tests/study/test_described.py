"""Every key of a run file has a description, and the tables of docs/run-file.md are made from them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools import prose, run_file

from sfumato.base.settings import Settings
from sfumato.study.declaration import Declaration


def sections(kind: type[Settings] = Settings) -> Iterator[type[Settings]]:
    for section in kind.__subclasses__():
        yield section
        yield from sections(section)


SECTIONS = sorted({section for section in sections() if not issubclass(section, Declaration)} | {Declaration}, key=str)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_key_has_a_description(section: type[Settings]) -> None:
    for key, text in run_file.descriptions(section).items():
        assert text.endswith("."), f"{section.__name__}.{key}"
        assert text[0].isupper(), f"{section.__name__}.{key}"
        assert not list(prose.findings(prose.Text(prose.ROOT / "description", 0, text, key)))


def test_the_page_has_every_section_and_is_as_the_settings_are() -> None:
    page = run_file.PAGE.read_text("utf-8")
    assert {block[1] for block in run_file.BLOCK.finditer(page)} == {*run_file.SECTIONS, "roles"} - {"hierarchy.flat"}
    assert page == run_file.written(page), "python -m tools.run_file writes the tables"


def test_no_section_is_forgotten() -> None:
    listed = {*run_file.SECTIONS.values(), *(base for one in run_file.SECTIONS.values() for base in one.__mro__)}
    assert not [section for section in SECTIONS if section not in listed]


def test_a_changed_table_is_seen() -> None:
    page = "<!-- keys: release -->\n\n| key |\n\n<!-- end -->\n"
    assert "Title of the released table." in run_file.written(page)
    assert run_file.written(page).count("<!-- end -->") == 1
