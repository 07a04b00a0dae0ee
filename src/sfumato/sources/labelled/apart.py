"""Read files of SPSS, Stata and SAS in a process of their own.

ReadStat is written in C, and some broken files bring it down. What dies then is this process, and its caller says that
the file cannot be read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from sfumato.errors import DataError, InputError
from sfumato.runtime.scratch import Scratch
from sfumato.sources.codebook import Codebook, ColumnLabels
from sfumato.sources.labelled.extra import TITLES, require

RESULT = "result.json"
Table = tuple[list[str], list[str], Codebook]


def read_apart(path: Path, kind: str, folder: Path, encoding: str | None = None) -> Table:
    """The rows of a file as `rows.parquet` in a scratch folder; names and types of its columns, and its labels."""
    result = _asked(path, kind, folder, encoding)
    columns = {
        name: ColumnLabels(
            **{**about, "missing": tuple(about["missing"]), "ranges": tuple(map(tuple, about["ranges"]))}
        )
        for name, about in result["columns"].items()
    }
    return result["names"], result["types"], Codebook(columns, result["title"])


def catalogue_apart(path: Path) -> dict[str, dict[str, str]]:
    """The labels of a SAS catalogue, by the names of its formats."""
    with Scratch() as scratch:
        labels: dict[str, dict[str, str]] = _asked(path, "sas7bcat", scratch.path, None)
        return labels


def _asked(path: Path, kind: str, folder: Path, encoding: str | None) -> Any:
    require("pyreadstat", f"a file of {TITLES[kind]}")
    link = folder / f"original.{kind}"  # whatever the file is called
    link.symlink_to(path.absolute())
    call = [sys.executable, "-m", "sfumato.sources.labelled.apart", str(link), kind, str(folder), encoding or ""]
    ended = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    result = folder / RESULT
    if ended.returncode != 0 or not result.is_file():
        raise _unreadable(path, kind)
    outcome = json.loads(result.read_text("utf-8"))
    result.unlink()
    if "error" in outcome:
        raise DataError(outcome["error"].replace(link.name, path.name), **outcome["advice"])
    return outcome["read"]


def _unreadable(path: Path, kind: str) -> DataError:
    return DataError(
        f"{path.name} cannot be read as a file of {TITLES[kind]}",
        expected="a complete file in a version that ReadStat knows, without a password",
        remedy="check that it is complete, or save it again in its program",
    )


def _read(path: Path, kind: str, folder: Path, encoding: str | None) -> Any:
    from sfumato.sources.labelled import statistical

    if kind == "sas7bcat":
        return statistical.catalogue(path)
    names, types, book = statistical.convert(path, kind, folder / "rows.parquet", encoding)
    columns = {name: asdict(about) for name, about in book.columns.items()}
    return {"names": names, "types": types, "columns": columns, "title": book.title}


class WithoutPandas(MetaPathFinder):
    """Arrow would load pandas, which takes longer than reading most files does, and is not needed here."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        if name == "pandas":
            raise ImportError(name)


def main(arguments: list[str]) -> int:
    """Read a file, and write what it says of itself beside its rows."""
    path, kind, folder, encoding = arguments
    result: dict[str, Any]
    try:
        result = {"read": _read(Path(path), kind, Path(folder), encoding or None)}
    except InputError as error:
        result = {"error": error.what, "advice": {"expected": error.expected, "remedy": error.remedy}}
    text = json.dumps(result, ensure_ascii=True)
    (Path(folder) / RESULT).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas())
    sys.exit(main(sys.argv[1:]))
