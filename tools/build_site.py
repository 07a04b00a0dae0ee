"""The source of the documentation site: `docs/`, the project's own pages, and pages that are generated from the code.

Everything is put into `build/docs`, from which Zensical (or MkDocs with its Material theme) builds `build/site` by
`mkdocs.yml`. A link in `docs/` may lead to any file that is part of the site; any other is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

from tools import site_api, site_cli, site_llms, site_measures

ROOT = Path(__file__).parents[1]
SOURCE, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
# Pages of the repository that stand outside docs/, and what they are called on the site.
PROJECT = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/RESULTS.md": "project/benchmarks.md",
}
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*?$", re.DOTALL | re.MULTILINE)


class SiteError(Exception):
    """Something in the documentation that leads nowhere."""


def pages(root: Path = ROOT) -> dict[str, str]:
    """Every file of the site that is written by hand: its path in the repository, and its path on the site."""
    own = [path for path in sorted((root / "docs").rglob("*")) if path.is_file() and path.suffix != ".py"]
    found = {path.relative_to(root).as_posix(): path.relative_to(root / "docs").as_posix() for path in own}
    found |= {source: target for source, target in PROJECT.items() if (root / source).is_file()}
    return {source: target for source, target in found.items() if "__pycache__" not in source}


def relinked(text: str, source: str, known: dict[str, str]) -> str:
    """The text of a page with its links as they are on the site. Raises where a link leads to no page of it.

    >>> relinked("[a](../SECURITY.md#b)", "docs/x.md", {"docs/x.md": "x.md", "SECURITY.md": "project/security.md"})
    '[a](project/security.md#b)'
    """

    def link(match: re.Match[str]) -> str:
        target, anchor = match[2], match[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        there = os.path.normpath(PurePosixPath(source).parent / target)
        here = PurePosixPath(known[source]).parent
        if there in known:
            return f"{match[1]}{os.path.relpath(known[there], here)}{anchor}{match[4]}"
        inside = os.path.normpath(here / target)
        if inside in GENERATED:
            return match[0]
        raise SiteError(f"{source} links to {target}, which is no page of the site")

    parts, last = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(link, text[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*parts, LINK.sub(link, text[last:])])


def generated() -> dict[str, str]:
    """The pages that are made from the code: paths on the site, and texts."""
    return {**site_api.pages(), **site_cli.pages(), **site_measures.pages()}


GENERATED = frozenset(["llms.txt", *site_api.NAMES, *site_cli.NAMES, *site_measures.NAMES])


def assemble(target: Path = SOURCE, root: Path = ROOT) -> dict[str, str]:
    """Write the whole source of the site into a new folder, and give its Markdown pages: paths and texts."""
    shutil.rmtree(target, ignore_errors=True)
    known = pages(root)
    texts: dict[str, str] = {}
    for source, name in known.items():
        if name.endswith(".md"):
            texts[name] = relinked((root / source).read_text("utf-8"), source, known)
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / source, target / name)
    texts |= generated()
    for name, text in texts.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, "utf-8")
    (target / "llms.txt").write_text(site_llms.text((root / "mkdocs.yml").read_text("utf-8"), texts), "utf-8")
    return texts


def main() -> int:
    assemble()
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--strict", "--clean", "--config-file", str(ROOT / "mkdocs.yml")]
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode == 0:
        print(f"the site: {SITE / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
