"""llms.txt: the pages of the site in one list for programs that read it, with a sentence about each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

HEAD = """# Sfumato

> The whole trade-off between privacy and information loss of a table about people: measure it, search it, choose,
> publish, verify. A Python package with a command line and a page in the browser.

Paths are relative to the root of the site; the Markdown source of a page is its path with .md instead of .html.
"""


class _Loader(yaml.SafeLoader):
    """YAML of a configuration, whose tags for Python names mean nothing here."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, suffix, node: suffix)
_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def navigation(configuration: str) -> list[Any]:
    """The navigation of a configuration file."""
    return list(yaml.load(configuration, _Loader)["nav"])


def listed(nav: list[Any], section: str = "") -> Iterator[tuple[str, str, str]]:
    """Section, title and path of each page of a navigation.

    >>> list(listed([{"Home": "index.md"}, {"How to": ["howto/a.md", {"B": "howto/b.md"}]}]))
    [('', 'Home', 'index.md'), ('How to', '', 'howto/a.md'), ('How to', 'B', 'howto/b.md')]
    """
    for entry in nav:
        if isinstance(entry, str):
            yield section, "", entry
            continue
        for title, content in entry.items():
            if isinstance(content, str):
                yield section, title, content
            else:
                yield from listed(content, title if not section else f"{section}: {title}")


def text(configuration: str, pages: Mapping[str, str]) -> str:
    """The list: sections of the navigation, titles, paths, and the first sentence of each page."""
    lines, last = [HEAD], ""
    for section, title, path in listed(navigation(configuration)):
        if section != last:
            lines += ["", f"## {section}", ""]
            last = section
        page = pages[path]
        lines.append(f"- [{title or heading(page)}]({path.removesuffix('.md')}.html): {first_sentence(page)}")
    return "\n".join(lines) + "\n"


def heading(page: str) -> str:
    """The title of a page."""
    found = re.search(r"^# (.+)$", page, re.MULTILINE)
    return found[1] if found else ""


def first_sentence(page: str) -> str:
    """The first sentence of the first paragraph.

    >>> first_sentence("# Title\\n\\nOne [thing](a.md), `k`. Another.\\n")
    'One thing, k.'
    """
    for block in re.split(r"\n\s*\n", page):
        if not block.lstrip().startswith(("#", "|", "```", "!", ":::", "-", "<", "---")):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(block.split())).replace("`", "").replace("*", "")
            return re.split(r"(?<=[.:?]) ", plain, maxsplit=1)[0]
    return ""
