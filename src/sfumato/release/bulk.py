"""Whether a data file can hold more than the rows that are read from it, such as another sheet or a table behind them.

Packed text is looked at by its structure. In other formats the rows that were read are written again: what is larger
than that holds something else. A text file has no place for anything but rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from sfumato.errors import InputError
from sfumato.release.formats import write_rows
from sfumato.runtime.scratch import Scratch
from sfumato.sources.codebook import Codebook, ColumnLabels
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.labelled.workbook import LABELS
from sfumato.sources.opening import open_source
from sfumato.sources.settings import DataSettings
from sfumato.sources.source import Source

BLOCK = 1 << 16
MORE, BYTES = 0.01, 256  # by which a file may be larger than the same rows written again
OTHERS = "the version of the engine that the manifest names did not write it"
HIDDEN = "it holds more than the rows that are read from it"


def larger_than_rows(written: Source, path: Path, made: Mapping[str, str]) -> tuple[str, str]:
    """How a data file differs because it holds more than its rows, or what of it could not be compared.

    `made` are the versions of the programs that made the release, as its manifest says.
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
    """What the second sheet of a workbook says: it is written again for the columns and values that occur."""
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
    """Whether a version of the engine wrote a Parquet file: this one writes the same rows as large again."""
    import pyarrow.parquet

    return str(pyarrow.parquet.read_metadata(path).created_by).startswith(f"DuckDB version v{engine} ")


def plain_gzip(path: Path) -> bool:
    """Whether a packed file is one stream without a name, a comment or other fields, and ends where the stream ends."""
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
