"""Conversion of a labelled file or spreadsheet to private Parquet, once for its bytes and kept while it is used.

Files are read in a separate process with limited memory. The readers are not written in Python, and some broken files
crash them or make them allocate more memory than exists. Then only this process ends, and its caller reports that the
file cannot be read.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from sfumato.base.files import Scratch, sweep
from sfumato.data import spreadsheet, statistical
from sfumato.data.codebook import Codebook, ColumnLabels, code_text
from sfumato.data.settings import TITLES, DataSettings
from sfumato.data.statistical import TYPES, private_parquet, require
from sfumato.errors import DataError, InputError

KEPT = 4  # conversions that are held for the next opening of the same file
READ_BY = {"sheet", "header", "header_row", "encoding", "codes", "names"}  # settings that a conversion depends on
RESULT = "result.json"
MOST_MEMORY = 6 << 30  # bytes that the process may use, where the system can limit them


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
    key = json.dumps([kind, digest, settings.model_dump(mode="json", include=READ_BY)])
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
        if kind == "xlsx":
            spreadsheet.refuse_bomb(path)
        result = _read_apart(path, kind, scratch.path, settings)
    except BaseException:
        scratch.close()
        raise
    columns = {
        name: ColumnLabels(**about | {"missing": tuple(about["missing"]), "ranges": tuple(map(tuple, about["ranges"]))})
        for name, about in result["columns"].items()
    }
    types = tuple(TYPES[type_] for type_ in result["types"])
    return Converted(scratch, tuple(result["names"]), types, Codebook(columns, result["title"]), result["sheet"])


def _decoded(result: Converted, codes: Mapping[str, Mapping[str, str]], names: Sequence[str] | None) -> Converted:
    """Return the same with the values that codes mean, in the columns where that is declared."""
    if not codes:
        return result
    called = names if names is not None and len(names) == len(result.names) else result.names
    places = {position: codes[name] for position, name in enumerate(called) if name in codes}
    scratch = Scratch()
    file = pyarrow.parquet.ParquetFile(result.file)
    types = [pyarrow.string() if position in places else field.type for position, field in enumerate(file.schema_arrow)]
    with private_parquet(scratch.path / "rows.parquet", types) as write:
        for batch in file.iter_batches():
            columns = list(batch.columns)
            for position, meant in places.items():
                texts = (None if cell is None else code_text(cell) for cell in columns[position].to_pylist())
                values = [None if text is None else meant.get(text, text) for text in texts]
                columns[position] = pyarrow.array(values, pyarrow.string())
            write(columns)
    return replace(result, scratch=scratch, types=tuple(TYPES[str(type_)] for type_ in types))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror}", expected="a readable file") from None


def catalogue_apart(path: Path) -> dict[str, dict[str, str]]:
    """Return the labels of a SAS catalogue, by the names of its formats."""
    with Scratch() as scratch:
        labels: dict[str, dict[str, str]] = _read_apart(path, "sas7bcat", scratch.path, DataSettings(path=str(path)))
        return labels


def _read_apart(path: Path, kind: str, folder: Path, settings: DataSettings) -> Any:
    """Return what a separate process read, which writes the rows as `rows.parquet` in a scratch folder."""
    if kind == "xlsx":
        require("python_calamine", f"a workbook of {TITLES[kind]}")
    else:
        require("pyreadstat", f"a file of {TITLES[kind]}")
    link = folder / (f"original{path.suffix.lower()}" if kind == "xlsx" else f"original.{kind}")
    link.symlink_to(path.absolute())  # whatever the file is called
    given = settings.model_dump_json(include={"path", *READ_BY} - {"codes"})
    call = [sys.executable, "-m", "sfumato.data.labelled_read", str(link), kind, str(folder), str(MOST_MEMORY)]
    ended = subprocess.run(call, input=given.encode(), capture_output=True, check=False)
    result = folder / RESULT
    if ended.returncode != 0 or not result.is_file():
        if b"memory allocation" in ended.stderr or b"MemoryError" in ended.stderr:
            raise _too_large(path, kind)
        raise spreadsheet.unreadable(path) if kind == "xlsx" else statistical.unreadable_file(path, kind)
    outcome = json.loads(result.read_text("utf-8"))
    result.unlink()
    if "error" in outcome:
        raise DataError(outcome["error"].replace(link.name, path.name), **outcome["advice"])
    return outcome["read"]


def _too_large(path: Path, kind: str) -> DataError:
    return DataError(
        f"{path.name} needs more than {MOST_MEMORY >> 30} GB of memory to be read as a "
        f"{'workbook' if kind == 'xlsx' else 'file'} of {TITLES[kind]}",
        expected="a table of ordinary size, and no cells far from it",
        remedy="save the table as CSV or Parquet",
    )


def _read(path: Path, kind: str, folder: Path, settings: DataSettings) -> Any:
    target = folder / "rows.parquet"
    if kind == "sas7bcat":
        return statistical.catalogue(path)
    if kind == "xlsx":
        names, types, sheet = spreadsheet.convert(path, target, settings)
        return {"names": names, "types": types, "columns": {}, "title": "", "sheet": sheet}
    encoding = None if settings.encoding in ("utf-8", "auto") else settings.encoding
    names, types, book = statistical.convert(path, kind, target, encoding)
    columns = {name: asdict(about) for name, about in book.columns.items()}
    return {"names": names, "types": types, "columns": columns, "title": book.title, "sheet": None}


def limit_memory(most: int) -> None:
    """Limit the writable memory of this process, where the system can."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class WithoutPandas(MetaPathFinder):
    """Import hook that hides pandas from Arrow, because importing it takes longer than reading most files."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        if name == "pandas":
            raise ImportError(name)


def main(arguments: list[str]) -> int:
    """Read a file, and write its rows and its description."""
    path, kind, folder, most = arguments
    limit_memory(int(most))
    settings = DataSettings.model_validate_json(sys.stdin.buffer.read())
    result: dict[str, Any]
    try:
        result = {"read": _read(Path(path), kind, Path(folder), settings)}
    except InputError as error:
        result = {"error": error.what, "advice": {"expected": error.expected, "remedy": error.remedy}}
    text = json.dumps(result, ensure_ascii=True)
    (Path(folder) / RESULT).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas())
    sys.exit(main(sys.argv[1:]))
