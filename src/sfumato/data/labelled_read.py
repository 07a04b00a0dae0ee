"""Conversion of a labelled file or spreadsheet to private Parquet, once for its bytes and kept while it is used."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.base.files import Scratch, sweep
from sfumato.data.codebook import Codebook, code_text
from sfumato.data.readstat_process import read_apart
from sfumato.data.settings import DataSettings
from sfumato.data.spreadsheet import refuse_bomb
from sfumato.data.statistical import STATISTICAL, TYPES, PrivateParquet
from sfumato.errors import DataError

KEPT = 4  # conversions that are held for the next opening of the same file


@dataclass(frozen=True, eq=False)
class Converted:
    """The rows of a file as Parquet in a scratch folder, which lives as long as this does."""

    scratch: Scratch
    names: tuple[str, ...]
    types: tuple[str, ...]
    codebook: Codebook
    sheet: str | None = None

    @property
    def file(self) -> Path:
        return self.scratch.path / "rows.parquet"


_kept: OrderedDict[str, Converted] = OrderedDict()
_lock = threading.Lock()


def converted(path: Path, kind: str, settings: DataSettings) -> Converted:
    """Return the rows of a file as Parquet. The same bytes, read the same way, are converted once."""
    digest = _digest(path)
    read = {"sheet", "header", "header_row", "encoding", "codes", "names"}
    key = json.dumps([kind, digest, settings.model_dump(mode="json", include=read)])
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    result = _decoded(_convert(path, kind, settings), settings.codes, settings.names)
    if _digest(path) != digest:
        raise DataError(
            f"{path.name} was changed while it was read", expected="a file at rest", remedy="try again when it is done"
        )
    with _lock:
        _kept[key] = result
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return result


def _convert(path: Path, kind: str, settings: DataSettings) -> Converted:
    sweep()
    scratch = Scratch()
    try:
        if kind not in STATISTICAL:
            refuse_bomb(path)
        names, types, codebook, sheet = read_apart(path, kind, scratch.path, settings)
    except BaseException:
        scratch.close()
        raise
    return Converted(scratch, tuple(names), tuple(TYPES[type_] for type_ in types), codebook, sheet)


def _decoded(result: Converted, codes: Mapping[str, Mapping[str, str]], names: Sequence[str] | None) -> Converted:
    """Return the same with the values that codes mean, in the columns where that is declared."""
    if not codes:
        return result
    import pyarrow
    import pyarrow.parquet

    called = names if names is not None and len(names) == len(result.names) else result.names
    places = {position: codes[name] for position, name in enumerate(called) if name in codes}
    scratch = Scratch()
    file = pyarrow.parquet.ParquetFile(result.file)
    types = [pyarrow.string() if position in places else field.type for position, field in enumerate(file.schema_arrow)]
    with PrivateParquet(scratch.path / "rows.parquet", types) as out:
        for batch in file.iter_batches():
            columns = [
                pyarrow.array([_value(cell, places[position]) for cell in column.to_pylist()], pyarrow.string())
                if position in places
                else column
                for position, column in enumerate(batch.columns)
            ]
            out.write(columns)
    return replace(result, scratch=scratch, types=tuple(TYPES[str(type_)] for type_ in types))


def _value(cell: object, codes: Mapping[str, str]) -> str | None:
    return None if cell is None else codes.get(code_text(cell), code_text(cell))


def _digest(path: Path) -> str:
    result = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 22):
                result.update(block)
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror}", expected="a readable file") from None
    return result.hexdigest()
