"""The permitted contents of a release folder: its files, its pages, and the bytes of its data file.

A page may hold only what this program writes into the same page. A page of another version cannot be compared word by
word. Its tags must be plain text tags in plain form, its scripts and styles must have the digests of those in our own
page, and no attribute may hold an address or a script. Browsers read broken HTML in different ways, so anything that is
not in the plain form of our templates is refused and not interpreted.

A data file must not hold more than the rows that are read from it, such as another sheet or a hidden table. The
structure of packed text is inspected. For other formats the rows are written a second time: a file that is larger than
the result holds something else. A text file can hold only rows.

The files of a release are a closed list that follows from its method and its data file.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from xml.parsers import expat

from sfumato.base.files import Scratch
from sfumato.data.codebook import Codebook, ColumnLabels
from sfumato.data.engine import open_engine
from sfumato.data.labelled_write import LABELS
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, Role
from sfumato.data.source import Source
from sfumato.errors import InputError
from sfumato.release.format import write_rows
from sfumato.release.manifest import (
    CERTIFICATE,
    DICTIONARY,
    EXTERNAL,
    INTERNAL,
    METADATA,
    OWN,
    PLAIN,
    PUBLIC,
    RUN,
    Content,
    hierarchy_names,
)
from sfumato.study import Study

SCRIPT_OR_STYLE = re.compile(r"<(script|style)\b([^<>]*)>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
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
    """The contents of a page that are not plain text: scripts and styles by their digests, and tags."""

    blocks: frozenset[str]
    tags: frozenset[str]


def active_in(text: str) -> Active:
    """Return the contents of a page that are not plain text."""
    blocks: set[str] = set()

    def taken(match: re.Match[str]) -> str:
        figures = match[1].lower() == "script" and DATA.fullmatch(match[2]) and "<" not in match[3]
        if not figures:
            blocks.add(hashlib.sha256(match[0].encode("utf-8")).hexdigest())
        return ""

    rest = DOCTYPE.sub("", SCRIPT_OR_STYLE.sub(taken, text), count=1)
    tags = {tag for tag in map(_not_plain, TAG.finditer(rest)) if tag}
    if "<" in TAG.sub("", rest):
        tags.add("what is no plain tag")
    return Active(frozenset(blocks), frozenset(tags))


def _not_plain(tag: re.Match[str]) -> str:
    """Return a tag as it is written, if it can be more than text."""
    name, attributes = tag[2].lower(), tag[3]
    plain = PLAIN_TAGS.fullmatch(name) and all(
        PLAIN_ATTRIBUTES.fullmatch(key.lower()) or (key.lower() == "style" and PLAIN_STYLE.fullmatch(value))
        for key, value in ATTRIBUTE.findall(attributes)
    )
    return "" if plain else tag[0]


def strange_in(text: str, drawn: str) -> str:
    """Return what a page holds that can run or load and that our own page lacks, empty if there is nothing.

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
    """Return whether XML declares a type, entities or a style sheet, or has a namespace that our own file lacks.

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


BLOCK = 1 << 16
MORE, BYTES = 0.01, 256  # by which a file may be larger than the same rows written again
OTHERS = "the version of the engine that the manifest names did not write it"
HIDDEN = "it holds more than the rows that are read from it"


def larger_than_rows(written: Source, path: Path, made: Mapping[str, str]) -> tuple[str, str]:
    """Return how a data file differs because it holds more than its rows, and what could not be compared.

    `made` are the versions of the programs that made the release, as its manifest states.
    """
    if path.is_dir():
        parts = sorted(part for part in path.iterdir() if part.suffix == ".gz")
        wrong = [part.name for part in parts if not plain_gzip(part)]
        return (HIDDEN if wrong else ""), ("" if written.format == "csv" else _unknown(path))
    if written.format == "csv":
        return (HIDDEN if path.suffix == ".gz" and not plain_gzip(path) else ""), ""
    if written.format == "parquet" and not _by(path, _engine_version()):
        ours = "pyspark" not in made and made.get("duckdb") == _engine_version()
        return (OTHERS, "") if ours else ("", _unknown(path))
    names = list(written.names)
    if written.format == "xlsx":
        written = replace(written, codebook=_sheet_of_labels(path))
    with Scratch() as scratch, open_engine() as engine:
        engine.attach(written, "written")
        again = scratch.path / f"again.{written.format}"
        cells = ", ".join(f"{written.column(name).sql} AS c{place}" for place, name in enumerate(names))
        write_rows(engine, f"SELECT {cells} FROM written", again, written, names, frozenset(written.settings.codes))
        most = again.stat().st_size * (1 + MORE) + BYTES
    return (HIDDEN if path.stat().st_size > most else ""), ""


def _sheet_of_labels(path: Path) -> Codebook:
    """Return the second sheet of a workbook, made from the columns and the values that occur."""
    try:
        source = open_source(DataSettings(path=str(path), sheet=LABELS))
    except InputError:  # no such sheet
        return Codebook()
    if len(source.native_names) != 3:
        return Codebook()
    found: dict[str, tuple[str, dict[str, str]]] = {}
    with open_engine() as engine:
        engine.attach(source, LABELS)
        for name, value, label in engine.rows(f"SELECT {', '.join(source.native_names)} FROM {LABELS}"):
            about, values = found.get(name, ("", {}))
            found[name] = (about, {**values, value: label}) if value else (label, values)
    return Codebook({name: ColumnLabels(about, values) for name, (about, values) in found.items()})


def _unknown(path: Path) -> str:
    return f"what {path.name} can hold beside its rows: another program wrote it"


def _engine_version() -> str:
    return version("duckdb")


def _by(path: Path, engine: str) -> bool:
    """Return whether this version of the engine wrote a Parquet file, so that the same rows have the same size."""
    import pyarrow.parquet

    return str(pyarrow.parquet.read_metadata(path).created_by).startswith(f"DuckDB version v{engine} ")


def plain_gzip(path: Path) -> bool:
    """Return whether a packed file is one stream without a name, a comment, other fields or trailing bytes."""
    stream = zlib.decompressobj(31)
    with path.open("rb") as file:
        head = file.read(10)
        if len(head) < 10 or head[3] != 0:
            return False
        try:
            stream.decompress(head)
            while not stream.eof and (block := file.read(BLOCK)):
                stream.decompress(block)
        except zlib.error:
            return False
        return stream.eof and not stream.unused_data and not file.read(1)


REQUIRED = (RUN, *DICTIONARY, *METADATA, INTERNAL, EXTERNAL, CERTIFICATE)
PART = re.compile(r"part-(\d{5})(\.csv|\.csv\.gz|\.parquet)")
WITH_TREES = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)


def files_of(manifest: Content, study: Study, own: Iterable[str]) -> set[str]:
    """Return the files that a release must have, by its data file, its columns, and the files of its method (`own`).

    A data file that is a folder has parts that are numbered without a gap. Their number is not known before.
    """
    return {*REQUIRED, *own, *_hierarchies(manifest, study), manifest["data"]}


def _hierarchies(manifest: Content, study: Study) -> set[str]:
    """Return the files of hierarchies. Their names follow from the columns that have a hierarchy."""
    names = hierarchy_names(manifest["hierarchies"])
    other = other_hierarchies(manifest, study)
    return {
        names[column]
        for column, entry in manifest["hierarchies"].items()
        if column not in other and entry["file"] == names[column]
    }


def other_hierarchies(manifest: Content, study: Study) -> set[str]:
    """Return columns with a hierarchy in the manifest whose role permits none."""
    return {
        name
        for name in manifest["hierarchies"]
        if name not in study.columns or study.columns[name].role not in WITH_TREES
    }


def parts_of(data: str, names: Iterable[str]) -> set[str]:
    """Return the parts of a data file that is a folder: numbered from 0 without a gap, with the same ending.

    >>> sorted(parts_of("public/d", ["public/d/part-00000.csv", "public/d/part-00002.csv", "public/d/more.csv"]))
    ['public/d/part-00000.csv']
    """
    inside = {Path(name).name for name in names if Path(name).parent.as_posix() == data}
    matched = [match for name in sorted(inside) if (match := PART.fullmatch(name))]
    first = [match for match in matched if match[2] == matched[0][2]]
    return {f"{data}/{match[0]}" for number, match in enumerate(first) if int(match[1]) == number}


def plain_data(data: str) -> bool:
    """Return whether a data file has a name that a release can have.

    >>> plain_data("public/data.csv"), plain_data("public/*.csv"), plain_data("private/data.csv")
    (True, False, False)
    """
    folder, _, name = data.partition("/")
    return folder == PUBLIC and bool(PLAIN.fullmatch(name)) and name.lower() not in OWN
