"""Detection of encoding, separator and quote of a text table from its first megabyte."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.data.settings import DataSettings
from sfumato.errors import DataError
from sfumato.hierarchies.labels import number

SAMPLE_BYTES = 1 << 20
SEPARATORS = (",", ";", "\t", "|", " ")
COMMA_NUMBER = re.compile(r"[-+]?\d+,\d+$")
POINT_NUMBER = re.compile(r"[-+]?\d+\.\d+$")
# DuckDB decodes these itself; any other encoding is transcoded in a stream before it reads.
NATIVE_ENCODINGS = {"utf-8": "utf-8", "latin-1": "latin-1"}
# Ways to write text in other text, which Python lists among the encodings.
ESCAPES = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined")


@dataclass(frozen=True)
class Dialect:
    """The way in which a CSV file is written. `skip` blank lines precede its first row."""

    separator: str
    quote: str
    decimal: str
    encoding: str
    header: bool
    skip: int = 0
    mixed_ends: bool = False

    @property
    def native(self) -> bool:
        """Whether the engine reads the file without a conversion."""
        return self.encoding in NATIVE_ENCODINGS and not self.mixed_ends


def detect(path: Path, settings: DataSettings) -> tuple[Dialect, list[list[str]]]:
    """Return the dialect of a file, and the rows of its first megabyte (for names and hints)."""
    raw, whole = _sample(path)
    if not raw.strip():
        raise _empty(path.name)
    encoding = detect_encoding(raw, whole) if settings.encoding == "auto" else _known(settings.encoding)
    text = _decode(raw, encoding, path.name, whole)
    if not whole:
        text = text[: text.rfind("\n") + 1] or text  # the last line may be cut in the middle
    quote = '"' if settings.quote is None else settings.quote
    separator = settings.separator or _separator(text, quote)
    if separator == quote or separator in "\r\n" or not (separator + quote).isascii():
        raise DataError(
            f"separator {separator!r} with quote {quote!r}",
            expected="two different plain characters",
            remedy='separator = ";" and quote = \'"\'',
        )
    rows = _parse(text, separator, quote)
    if not rows:
        raise _empty(path.name)
    skip = next(position for position, line in enumerate(text.splitlines()) if line.strip())
    mixed = "\r\n" in text and "\n" in text.replace("\r\n", "")
    header = not looks_headless(rows) if settings.header == "auto" else settings.header
    return Dialect(separator, quote, settings.decimal or _decimal(rows), encoding, header, skip, mixed), rows


def _empty(name: str) -> DataError:
    return DataError(
        f"{name} is empty", expected="a table with a header and rows", remedy="check that the export finished"
    )


def looks_headless(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is data: a cell of it is a number where the cells below are numbers too.

    >>> looks_headless([["39", "Private"], ["50", "Private"]]), looks_headless([["age"], ["39"]])
    (True, False)
    """
    head, body = rows[0], rows[1:101]
    for position, cell in enumerate(head):
        below = [row[position] for row in body if len(row) > position]
        if (
            number(cell.strip()) is not None
            and below
            and all(number(other.strip() or "0") is not None for other in below)
        ):
            return True
    return False


def _decimal(rows: Sequence[Sequence[str]]) -> str:
    """Return the decimal mark that more numbers are written with."""
    cells = Counter(cell.strip() for row in rows[:1000] for cell in row)
    commas = sum(count for cell, count in cells.items() if COMMA_NUMBER.match(cell))
    points = sum(count for cell, count in cells.items() if POINT_NUMBER.match(cell))
    return "," if commas > points else "."


def detect_encoding(raw: bytes, whole: bool = True) -> str:
    """UTF-8 where it decodes, UTF-16 by its mark, else Windows' or plain Latin-1.

    >>> detect_encoding("Zoë".encode("latin-1")), detect_encoding("5 €".encode("cp1252"))
    ('latin-1', 'cp1252')
    """
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if not whole and error.start > len(raw) - 4:  # a character that the end of the sample cuts
            return "utf-8"
        return "cp1252" if any(0x80 <= byte <= 0x9F for byte in raw) else "latin-1"
    return "utf-8"


def _sample(path: Path) -> tuple[bytes, bool]:
    """Return the first bytes of a file, unzipped, and whether that is all of it."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read(SAMPLE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"cannot read {path.name}: {error}",
            expected="a readable file",
            remedy="check that it is complete and that you may read it",
        ) from error
    return raw[:SAMPLE_BYTES], len(raw) <= SAMPLE_BYTES


def _known(name: str) -> str:
    aliases = {"utf8": "utf-8", "latin1": "latin-1", "iso-8859-1": "latin-1", "windows-1252": "cp1252"}
    lowered = name.lower().replace("_", "-")
    lowered = aliases.get(lowered, lowered)
    try:
        "a".encode(lowered)
        if codecs.lookup(lowered).name in ESCAPES:
            raise LookupError(lowered)
    except (LookupError, UnicodeError, ValueError) as error:
        raise DataError(
            f'unknown encoding "{name}"',
            expected="utf-8, latin-1, cp1252, utf-16, auto, or one Python knows",
            remedy='encoding = "auto"',
        ) from error
    return lowered


def _decode(raw: bytes, encoding: str, name: str, whole: bool) -> str:
    if b"\0" in raw and not encoding.startswith(("utf-16", "utf-32")):
        mark = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise DataError(
            f"{name} is not a text file (it contains NUL bytes)",
            expected="CSV text or a Parquet file",
            remedy='encoding = "utf-16"' if mark else "export the table as CSV or Parquet",
        )
    try:
        return raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        if not whole and error.start > len(raw) - 4:
            return raw[: error.start].decode(encoding)
        raise not_in_encoding(name, encoding, raw[: error.start].count(b"\n") + 1, detect_encoding(raw)) from None


def not_in_encoding(name: str, encoding: str, line: int, guess: str = "latin-1") -> DataError:
    """Return the error for text that is not in its declared encoding."""
    return DataError(
        f"{name} is not {encoding.upper()}: line {line} holds bytes that do not decode",
        expected=f"text in {encoding.upper()}",
        remedy=f'encoding = "{guess}" under [data], after checking that its letters look right',
    )


def _parse(text: str, separator: str, quote: str, limit: int | None = None) -> list[list[str]]:
    lines = io.StringIO(text, newline="")
    if quote:
        reader = csv.reader(lines, delimiter=separator, quotechar=quote)
    else:
        reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    rows: list[list[str]] = []
    csv.field_size_limit(SAMPLE_BYTES * 4)
    try:
        for row in reader:
            if row:
                rows.append(row)
            if limit is not None and len(rows) >= limit:
                break
    except csv.Error as error:
        raise DataError(f"line {reader.line_num} is not valid CSV: {error}", expected="CSV text") from error
    return rows


def _separator(text: str, quote: str) -> str:
    """Return the separator that splits the first lines into the same number of fields, most fields first."""
    best, best_score = ",", (False, 0.0, 0)
    for separator in SEPARATORS:
        widths = [len(row) for row in _parse(text, separator, quote, limit=200)]
        common = max(set(widths), key=lambda width: (widths.count(width), width)) if widths else 1
        if common < 2:
            continue
        agreement = widths.count(common) / len(widths)
        score = (widths[0] == common, round(agreement, 1), common)  # the header is never ragged
        if score > best_score:
            best, best_score = separator, score
    return best
