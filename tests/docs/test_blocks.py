"""Every command and every Python block of the tutorial, the recipes and the pages for users of other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import Block, Runner, blocks, same

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("tutorial", "howto", "coming-from", "explanation")
# Pages that take more than a few processor seconds are run with the site, by make test-docs.
LONG = dict.fromkeys(
    [
        "howto/finer-recodings.md",
        "howto/next-year.md",
        "howto/policy.md",
        "howto/randomized-response.md",
        "howto/review-board.md",
        "howto/several-releases.md",
        "howto/skewed-sensitive.md",
        "howto/verify.md",
        "howto/what-others-lose.md",
    ],
    pytest.mark.site,
)
LONG |= dict.fromkeys(["howto/spark.md", "howto/database.md"], pytest.mark.scale)  # they need other extras
PAGES = sorted(path.relative_to(DOCS).as_posix() for folder in FOLDERS for path in (DOCS / folder).glob("*.md"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], Path]:
    """What pages begin with, made once."""
    return {}, tmp_path_factory.mktemp("before")


def test_blocks_of_a_page() -> None:
    page = '# A\n\n```toml title="run.toml"\nversion = 1\n```\n\n```sh\nls\n```\n\n```text\nrun.toml\n```\n'
    page += "\nText.\n\n```text\nno\n```\n"
    found = blocks(page)
    assert [(one.kind, one.title, one.text) for one in found] == [
        ("toml", "run.toml", "version = 1\n"),
        ("sh", "", "ls\n"),
    ]
    assert found[1].printed is not None
    assert found[1].printed.text == "run.toml\n"
    inside = blocks('=== "Python"\n\n    ```python\n    print(1)\n    ```\n\n    ```text\n    1\n    ```\n')
    assert inside[0].text == "print(1)\n"
    assert inside[0].printed is not None


def test_a_page_that_is_wrong_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = Runner()
    assert runner.run(Block("python", "", "print(1 + 1)", 1)) == "2\n"
    assert not same("3", "2\n")
    with pytest.raises(AssertionError, match="ended with 2"):
        runner.run(Block("sh", "", "sfumato audit --run none.toml", 1))
    with pytest.raises(AssertionError, match="ended with 1"):
        runner.run(Block("sh", "", "false", 1))


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in PAGES])
def test_the_page_is_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: tuple[dict[str, Path], Path]
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = Runner(*kept)
    for block in blocks((DOCS / name).read_text("utf-8")):
        printed = runner.run(block)
        if block.printed is not None:
            assert same(block.printed.text, printed), f"line {block.line}:\n{printed}"


def test_there_are_two_dozen_recipes() -> None:
    recipes = [path for path in (DOCS / "howto").glob("*.md") if path.name != "index.md"]
    assert len(recipes) >= 24
    for path in recipes:
        text = path.read_text("utf-8")
        assert any(one.kind in ("sh", "python") for one in blocks(text)), path
        assert len(text.splitlines()) <= 120, f"{path} is more than a screen"
