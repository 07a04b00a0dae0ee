"""The source of the site, without building it: every page is in the navigation, every link leads to a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import build_site, site_llms, site_measures
from tools.build_site import PROJECT, ROOT, SiteError, assemble, relinked

NAV = [path for _, _, path in site_llms.listed(site_llms.navigation((ROOT / "mkdocs.yml").read_text("utf-8")))]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages of the site by path, links checked."""
    return assemble(tmp_path_factory.mktemp("site") / "docs")


def test_links_to_files_that_are_no_pages_are_refused() -> None:
    known = {"docs/a.md": "a.md", "SECURITY.md": "project/security.md"}
    assert relinked("[s](../SECURITY.md)", "docs/a.md", known) == "[s](project/security.md)"
    assert relinked("```\n[s](no.md)\n```", "docs/a.md", known) == "```\n[s](no.md)\n```"
    with pytest.raises(SiteError, match=r"docs/a\.md links to b\.md"):
        relinked("[b](b.md)", "docs/a.md", known)


def test_every_page_is_in_the_navigation(texts: dict[str, str]) -> None:
    assert len(NAV) == len(set(NAV))
    assert set(NAV) == set(texts)
    assert set(PROJECT.values()) <= set(texts)


def test_pages_are_generated_from_the_code(texts: dict[str, str]) -> None:
    assert "## sfumato publish\n" in texts["reference/cli.md"]
    assert "--suppress-below" in texts["reference/cli.md"]
    assert "::: sfumato.auditing.audit.audit\n" in texts["reference/api/measuring.md"]
    for name in build_site.GENERATED - {"llms.txt"}:
        assert name in texts


def test_every_measure_has_a_formula_an_example_and_a_use(texts: dict[str, str]) -> None:
    page = texts[site_measures.PAGE]
    for measure, example in site_measures.described():
        assert measure.about.formula, measure.name
        assert measure.about.use, measure.name
        assert ">>> " in example
        assert f"{{ #{measure.name} }}" in page
        assert measure.about.formula in page


def test_examples_of_measures_are_true() -> None:
    """What the page shows, run as it is shown: by name, not by the constant of a file."""
    import doctest

    for measure, example in site_measures.described():
        test = doctest.DocTestParser().get_doctest(example, {}, measure.name, None, 0)
        assert doctest.DocTestRunner(verbose=False).run(test).failed == 0, example


def test_llms_lists_every_page(tmp_path: Path, texts: dict[str, str]) -> None:
    listed = site_llms.text((ROOT / "mkdocs.yml").read_text("utf-8"), texts)
    assert all(f"({path.removesuffix('.md')}.html): " in listed for path in NAV)
