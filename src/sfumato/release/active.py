"""What in a page can run, load or lead elsewhere. A page of a release may hold only what our own drawing of it holds.

A page that another version drew cannot be compared word by word. Whatever the version, its tags must be plain text tags
in plain form, its scripts and styles must be, by their digests, among those that we put into the same page, and no
attribute may name an address or hold a script. A browser reads broken HTML in its own way, so anything that is not in
the plain form in which our templates write is refused, not interpreted.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from xml.parsers import expat

BLOCK = re.compile(r"<(script|style)\b([^<>]*)>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
DATA = re.compile(r'\s*type="application/json"\s+id="figures"\s*')
ATTRIBUTE = re.compile(r'\s+([a-zA-Z][a-zA-Z0-9-]*)(?:="([^"<>]*)")?')
TAG = re.compile(r'<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9-]*(?:="[^"<>]*")?)*)\s*(/?)>')
DOCTYPE = re.compile(r"<!doctype html>", re.IGNORECASE)
PLAIN_TAGS = re.compile(
    "html|head|meta|title|body|main|header|footer|section|article|h[1-6]|p|div|span|b|i|em|strong|small|table|caption|"
    "thead|tbody|tfoot|tr|th|td|ul|ol|li|dl|dt|dd|pre|code|br|hr|details|summary|sub|sup|button"
)
PLAIN_ATTRIBUTES = re.compile(
    "class|id|lang|scope|colspan|rowspan|role|title|tabindex|open|aria-(?:label|hidden|live|describedby)"
)
PLAIN_STYLE = re.compile(r"[\w\s:;.,#%-]*(?:var\(--[a-z]+\)[\w\s:;.,#%-]*)*")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # ESC can change how a browser reads what follows
XML_ACTIVE = re.compile(r"<!(?:DOCTYPE|ENTITY)|<\?(?!xml )", re.IGNORECASE)


@dataclass(frozen=True)
class Active:
    """Scripts and styles by their digests, and tags with attributes that are not plain."""

    blocks: frozenset[str]
    tags: frozenset[str]


def active_in(text: str) -> Active:
    """What of a page is not plain text."""
    blocks: set[str] = set()

    def taken(match: re.Match[str]) -> str:
        figures = match[1].lower() == "script" and DATA.fullmatch(match[2]) and "<" not in match[3]
        if not figures:
            blocks.add(hashlib.sha256(match[0].encode("utf-8")).hexdigest())
        return ""

    rest = DOCTYPE.sub("", BLOCK.sub(taken, text), count=1)
    tags = {tag for tag in map(_not_plain, TAG.finditer(rest)) if tag}
    if "<" in TAG.sub("", rest):
        tags.add("what is no plain tag")
    return Active(frozenset(blocks), frozenset(tags))


def _not_plain(tag: re.Match[str]) -> str:
    """A tag as it is written, if it can be more than text."""
    name, attributes = tag[2].lower(), tag[3]
    plain = PLAIN_TAGS.fullmatch(name) and all(
        PLAIN_ATTRIBUTES.fullmatch(key.lower()) or (key.lower() == "style" and PLAIN_STYLE.fullmatch(value))
        for key, value in ATTRIBUTE.findall(attributes)
    )
    return "" if plain else tag[0]


def strange_in(text: str, drawn: str) -> str:
    """What a page holds that our own drawing of it does not and that can do more than be read; empty if nothing.

    >>> strange_in("<p>k is 5</p>", "<p>k is 4</p>")
    ''
    >>> strange_in('<p onclick="send()">k</p>', "<p>k</p>")
    'the tag <p>'
    """
    if CONTROL.search(text) and not CONTROL.search(drawn):
        return "a control character"
    there, ours = active_in(text), active_in(drawn)
    if there.blocks - ours.blocks:
        return "a script or style that is not ours"
    strange = sorted(there.tags - ours.tags)
    if not strange:
        return ""
    match = re.match(r"</?([a-zA-Z0-9]+)", strange[0])
    return f"the tag <{match[1].lower()}>" if match else strange[0]


def strange_xml(text: str, drawn: str) -> bool:
    """Whether XML declares a type or entities, names a style sheet, or has a namespace that our own drawing has not.

    A browser runs a script of the namespace of XHTML in any XML file.

    >>> strange_xml('<a xmlns="b"><h:script xmlns:h="http://www.w3.org/1999/xhtml"/></a>', '<a xmlns="b"/>')
    True
    """
    if XML_ACTIVE.search(text) or CONTROL.search(text):
        return True
    spaces: list[set[str]] = [set(), set()]
    for found, content in zip(spaces, (text, drawn), strict=True):
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartNamespaceDeclHandler = lambda _, uri, found=found: found.add(uri)
        try:
            parser.Parse(content.encode("utf-8"), True)
        except expat.ExpatError:
            return True
    return not spaces[0] <= spaces[1]
