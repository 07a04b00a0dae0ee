"""Reading of SPSS, Stata and SAS files and workbooks in a separate process with limited memory.

Their readers are not written in Python. Some broken files crash them or make them allocate more memory than exists.
Then only this process ends, and its caller reports that the file cannot be read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from sfumato.base.files import Scratch
from sfumato.data.codebook import Codebook, ColumnLabels
from sfumato.data.settings import DataSettings
from sfumato.data.spreadsheet import convert, unreadable
from sfumato.data.statistical import TITLES, require
from sfumato.errors import DataError, InputError

RESULT = "result.json"
MOST_MEMORY = 6 << 30  # bytes that the process may use, where the system can limit them
Table = tuple[list[str], list[str], Codebook, str | None]


def read_apart(path: Path, kind: str, folder: Path, settings: DataSettings) -> Table:
    """Write the rows of a file as `rows.parquet` in a scratch folder.

    Return the names and types of its columns, its labels, and the name of the sheet that was read.
    """
    result = _asked(path, kind, folder, settings)
    columns = {
        name: ColumnLabels(
            **{**about, "missing": tuple(about["missing"]), "ranges": tuple(map(tuple, about["ranges"]))}
        )
        for name, about in result["columns"].items()
    }
    return result["names"], result["types"], Codebook(columns, result["title"]), result["sheet"]


def catalogue_apart(path: Path) -> dict[str, dict[str, str]]:
    """Return the labels of a SAS catalogue, by the names of its formats."""
    with Scratch() as scratch:
        labels: dict[str, dict[str, str]] = _asked(path, "sas7bcat", scratch.path, DataSettings(path=str(path)))
        return labels


def _asked(path: Path, kind: str, folder: Path, settings: DataSettings) -> Any:
    if kind == "xlsx":
        require("python_calamine", f"a workbook of {TITLES[kind]}")
    else:
        require("pyreadstat", f"a file of {TITLES[kind]}")
    link = folder / (f"original{path.suffix.lower()}" if kind == "xlsx" else f"original.{kind}")
    link.symlink_to(path.absolute())  # whatever the file is called
    given = settings.model_dump_json(include={"path", "sheet", "header", "header_row", "encoding", "names"})
    call = [sys.executable, "-m", "sfumato.data.readstat_process", str(link), kind, str(folder), str(MOST_MEMORY)]
    ended = subprocess.run(call, input=given.encode(), capture_output=True, check=False)
    result = folder / RESULT
    if ended.returncode != 0 or not result.is_file():
        if b"memory allocation" in ended.stderr or b"MemoryError" in ended.stderr:
            raise _too_large(path, kind)
        raise _unreadable(path, kind)
    outcome = json.loads(result.read_text("utf-8"))
    result.unlink()
    if "error" in outcome:
        raise DataError(outcome["error"].replace(link.name, path.name), **outcome["advice"])
    return outcome["read"]


def _unreadable(path: Path, kind: str) -> DataError:
    if kind == "xlsx":
        return unreadable(path)
    return DataError(
        f"{path.name} cannot be read as a file of {TITLES[kind]}",
        expected="a complete file in a version that ReadStat knows, without a password",
        remedy="check that it is complete, or save it again in its program",
    )


def _too_large(path: Path, kind: str) -> DataError:
    return DataError(
        f"{path.name} needs more than {MOST_MEMORY >> 30} GB of memory to be read as a "
        f"{'workbook' if kind == 'xlsx' else 'file'} of {TITLES[kind]}",
        expected="a table of ordinary size, and no cells far from it",
        remedy="save the table as CSV or Parquet",
    )


def _read(path: Path, kind: str, folder: Path, settings: DataSettings) -> Any:
    from sfumato.data import statistical

    target = folder / "rows.parquet"
    if kind == "sas7bcat":
        return statistical.catalogue(path)
    if kind == "xlsx":
        names, types, sheet = convert(path, target, settings)
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
