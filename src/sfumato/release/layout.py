"""How a released text file is laid out, in the terms of its dictionary: separator, quote, decimal mark, header line.

A file called .csv with commas, double quotes, decimal points and a line of names needs no entry of its own: that is
what the name says, and what `layout_in` answers then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.release.formats import PLAIN
from sfumato.sources.dialect import Dialect, detect
from sfumato.sources.source import Source

ENDINGS = (".csv", ".csv.gz")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "blank", "|": "vertical bar", ":": "colon"}
QUOTES = {'"': "double quotes", "'": "single quotes"}
ENCODING = "UTF-8"  # every engine writes it, whatever the source had


def layout_of(written: Source, file: str) -> dict[str, Any]:
    """The entry of a dictionary about a text file; empty where the name says all, and for other formats."""
    if written.dialect is None:
        return {}
    layout = _entry(written.dialect)
    if written.dialect.header and written.settings.names and written.files:
        heads = [cell.strip() for cell in detect(written.files[0], written.settings)[1][0]]
        layout |= {"header_names": heads} if heads != list(written.names) else {}
    plain = layout == _entry(PLAIN) and file.endswith(ENDINGS)
    return {} if plain else {**layout, "words": layout_words(layout)}


def layout_in(dictionary: Mapping[str, Any]) -> Mapping[str, Any]:
    """The layout of the file that a dictionary describes; empty where it is no text file.

    >>> layout_in({"file": "data.csv"})["separator"], layout_in({"file": "data.parquet"})
    (',', {})
    """
    if "layout" in dictionary:
        return dict(dictionary["layout"])
    if not str(dictionary["file"]).endswith(ENDINGS):
        return {}
    plain = _entry(PLAIN)
    return {**plain, "words": layout_words(plain)}


def layout_words(layout: Mapping[str, Any]) -> str:
    """The layout in sentences, for readers of the file.

    >>> layout_words(_entry(Dialect(" ", "", ".", "utf-8", header=False)))[:60]
    'Fields are separated by blanks and never quoted. There is no'
    """
    sign = layout["quote"]
    marks = QUOTES.get(sign, f"the sign {sign}")
    quoted = (
        f". Fields that need it, such as those that hold the separator, stand in {marks}; such a sign inside is doubled"
        if sign
        else " and never quoted"
    )
    if "header_names" in layout:
        header = "The first line names the columns, some of them otherwise than here"
    else:
        header = "The first line has the names of the columns" if layout["header"] else "There is no header line"
    name = SEPARATORS.get(layout["separator"])
    separators = f"{name}s" if name else f"the sign {layout['separator']}"
    decimal = {".": "a point", ",": "a comma"}.get(layout["decimal"], f"the sign {layout['decimal']}")
    return (
        f"Fields are separated by {separators}{quoted}. {header}; columns stand in the order in which they are listed "
        f"here. Decimals are written with {decimal}. The text is encoded in {layout['encoding']}."
    )


def file_type(layout: Mapping[str, Any], packed: bool) -> str:
    """The kind of a text file in a few words.

    >>> file_type(_entry(Dialect("|", '"', ".", "utf-8", header=False)), packed=True)
    'text separated by vertical bars, without a header line, compressed by gzip'
    """
    name = SEPARATORS.get(layout["separator"])
    kind = f"{name}-separated text" if name and " " not in name else ""
    kind = kind or f"text separated by {f'{name}s' if name else layout['separator']}"
    return kind + ("" if layout["header"] else ", without a header line") + (", compressed by gzip" if packed else "")


def media_type(layout: Mapping[str, Any]) -> str:
    """The media type of a text file that is not packed: one by whose rules a reader finds every column, else text."""
    if not read_by_name(layout):
        return "text/plain"
    return "text/csv" if layout["separator"] == "," else "text/tab-separated-values"


def read_by_name(layout: Mapping[str, Any]) -> bool:
    """Whether a reader who knows only commas or tabs, double quotes and a line of names finds the columns."""
    return bool(layout["header"]) and layout["quote"] == '"' and layout["separator"] in (",", "\t")


def _entry(dialect: Dialect) -> dict[str, Any]:
    return {
        "separator": dialect.separator,
        "quote": dialect.quote,
        "decimal": dialect.decimal,
        "header": dialect.header,
        "encoding": ENCODING,
    }
