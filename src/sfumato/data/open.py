"""Opening of tables: the columns are found at the beginning of a file, or in a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet

from sfumato.base.files import Scratch
from sfumato.base.settings import UNPRINTABLE
from sfumato.base.trust import note_input
from sfumato.data.codebook_files import read_codebook
from sfumato.data.csv import SAMPLE_BYTES, detect
from sfumato.data.database import Database
from sfumato.data.engine import open_engine
from sfumato.data.frame import Frame, without_categories
from sfumato.data.labelled_read import converted
from sfumato.data.settings import ENDINGS, FOREIGN, IN_MEMORY, LABELLED, TITLES, DataSettings, is_database
from sfumato.data.source import TEXT, Column, Source, engine_name
from sfumato.errors import DataError, counted, shortened

MOST_COLUMNS = 4_000  # each is looked at by itself, so that many take minutes


def open_source(settings: DataSettings, folder: Path | None = None, frame: Frame | None = None) -> Source:
    """Read the beginning of a file, and return its source with the columns.

    A relative path is relative to `folder`, which is that of the run file. `frame` is the table itself where the
    settings say that it is in memory.
    """
    if settings.path == IN_MEMORY:
        return _open_frame(settings, frame)
    if settings.path == FOREIGN:
        raise DataError(
            "the folder was made elsewhere, or was changed since, so no table that it names is opened",
            expected="a run file of your own that names the table",
            remedy='give run = "run.toml", a run file of your own',
        )
    if is_database(settings.path):
        return _open_database(settings, folder or Path())
    if settings.table is not None or settings.query is not None or settings.password_file is not None:
        raise DataError(
            "table, query and password_file are for databases, and the path is that of a file",
            expected='a path such as "postgresql://host/name" or "sqlite:people.db"',
        )
    path = Path(settings.path)
    path = path if path.is_absolute() else (folder or Path()) / path
    files = [note_input(file) for file in matching_files(path)]
    parquet = files[0].suffix in (".parquet", ".pq")
    kind = settings.format or ("parquet" if parquet else ENDINGS.get(files[0].suffix.lower(), "csv"))
    if kind in LABELLED:
        source = _open_labelled(path, files, settings, kind)
    else:
        source = _open_parquet(path, files, settings) if kind == "parquet" else _open_csv(path, files, settings)
    return _with_codebook(source, folder or Path())


def matching_files(path: Path) -> list[Path]:
    """Return the file of this name, the parts in the folder of this name, or else the files that match a pattern.

    A name that no file has is a pattern if it has `*` or `?`. Brackets are never special. Files are sorted by name.
    """
    if path.is_dir():
        return _parts(path)
    if not path.exists() and ("*" in path.name or "?" in path.name):
        files = sorted(path.parent.glob(path.name.replace("[", "[[]")))
        if not files:
            raise DataError(f"no file matches {path.name}", expected="at least one file")
        return files
    if not path.exists():
        near = sorted(p.name for p in path.parent.glob("[!.]*") if p.is_file()) if path.parent.is_dir() else []
        raise DataError(
            f"there is no file {path}",
            expected="an existing CSV or Parquet file",
            remedy=f"one of: {shortened(near)}" if near else "check the path; it is relative to the run file",
        )
    return [path]


def _parts(folder: Path) -> list[Path]:
    """Return the files of a table in parts. A name that starts with a dot or an underline is no part."""
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    if any(path.is_dir() for path in inside):
        raise DataError(
            f"{folder.name or folder} has folders inside",
            expected="a file, or a folder with the parts of one table and nothing else",
            remedy=f'path = "{folder / "*.parquet"}", or write the table without partition folders',
        )
    kinds = {path.suffix.removesuffix(".gz") or path.with_suffix("").suffix for path in inside}
    if len(kinds) != 1:
        raise DataError(
            f"{folder.name or folder} is a folder with {len(inside)} files of {len(kinds)} kinds",
            expected="a file, or a folder with the parts of one table and nothing else",
            remedy=f'path = "{folder / "*.parquet"}"',
        )
    return inside


def _open_csv(path: Path, files: list[Path], settings: DataSettings) -> Source:
    dialect, rows = detect(files[0], settings)
    header = [name.strip() for name in rows[0]]
    names = header if dialect.header else [f"column{i + 1}" for i in range(len(header))]
    _refuse_wide(len(names), path.name)
    if not rows[dialect.header :]:
        if files[0].stat().st_size > SAMPLE_BYTES:
            raise DataError(
                f"the first row of {path.name} is longer than 1 MB",
                expected="rows of ordinary length, or a Parquet file",
            )
        raise DataError(f"{path.name} has a header and no rows", expected="a table with rows")
    columns = _columns(settings, names, [TEXT] * len(names), trimmed=True)
    if dialect.header:
        for other in files[1:]:
            if [name.strip() for name in detect(other, settings)[1][0]] != header:
                raise DataError(
                    f"{other.name} has different columns from {files[0].name}",
                    expected="the same header in every file",
                    remedy="put the columns in the same order",
                )
    return Source(path, "csv", columns, settings, dialect, files=tuple(files))


def _open_parquet(path: Path, files: list[Path], settings: DataSettings) -> Source:
    import duckdb

    try:
        _refuse_wide(pyarrow.parquet.read_metadata(files[0]).num_columns, path.name)
        with Scratch() as scratch, duckdb.connect() as connection:
            first = engine_name(files[0], scratch.path)
            relation = connection.read_parquet(first)
            natives, types = list(relation.columns), [str(type_) for type_ in relation.types]
            query = "SELECT name FROM parquet_schema(?) WHERE num_children IS NULL"
            leaves = [row[0] for row in connection.execute(query, [first]).fetchall()]
    except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path.name} is not a Parquet file", expected="CSV text or a Parquet file") from error
    # The engine renames names that differ only in case; the file's own spelling is what a user knows.
    columns = _columns(settings, leaves if len(leaves) == len(natives) else natives, types)
    return Source(path, "parquet", columns, settings, native_names=tuple(natives), files=tuple(files))


def _open_frame(settings: DataSettings, frame: Frame | None) -> Source:
    import duckdb

    if frame is None:
        raise DataError(
            "the table was in memory, so it cannot be opened from a run file",
            expected="the table itself",
            remedy="give it as source, or write it beside its run file with study.save(folder)",
        )
    table = frame.table()
    _refuse_wide(table.num_columns, "the table in memory")
    if table.num_columns == 0 or table.num_rows == 0:
        raise DataError("the table in memory has no rows", expected="a table with rows")
    head = table.slice(0, 0).rename_columns([f"c{position}" for position in range(table.num_columns)])
    with duckdb.connect() as connection:
        types = [str(type_) for type_ in connection.from_arrow(head).types]
    columns = _columns(settings, table.column_names, types)
    return Source(Path("table.parquet"), "parquet", columns, settings, frame=frame)


def _open_labelled(path: Path, files: list[Path], settings: DataSettings, kind: str) -> Source:
    """Return the source of a file of SPSS, Stata, SAS or Excel, whose rows are read from its conversion to Parquet."""
    if len(files) > 1:
        raise DataError(
            f"{path.name} stands for {len(files)} files of {TITLES[kind]}",
            expected="one file; only CSV and Parquet may come in parts",
        )
    result = converted(files[0], kind, settings)
    _refuse_wide(len(result.names), path.name)
    columns = _columns(settings, result.names, result.types, trimmed=True)
    renamed = {old: column.name for old, column in zip(result.names, columns, strict=True)}
    return Source(
        path,
        kind,
        columns,
        settings if result.sheet is None else settings.model_copy(update={"sheet": result.sheet}),
        native_names=tuple(f"c{position}" for position in range(len(columns))),
        files=(result.file,),
        originals=tuple(files),
        held=result,
        codebook=result.codebook.with_names(renamed),
    )


def _with_codebook(source: Source, folder: Path) -> Source:
    """Return the source with the codebook of its settings, which takes precedence over the labels of the file."""
    given = source.settings.codebook
    if given is None:
        return source
    if given == FOREIGN:
        raise DataError("the folder was made by another user, so no codebook that it names is opened")
    formats = {name: source.codebook.column(name).format for name in source.names}
    book = read_codebook(folder / given, formats)
    if not set(book.columns) & set(source.names):
        raise DataError(
            f"the codebook {Path(given).name} describes no column of {source.title}",
            expected="names of columns as the table has them",
            remedy=f"columns of the table: {shortened(source.names)}",
        )
    return replace(source, codebook=book.over(source.codebook))


def _scan(source: Source) -> None:
    """Read a table of a database once, so that its digest is known."""
    with open_engine() as engine:
        engine.attach(source, "raw")


def _open_database(settings: DataSettings, folder: Path) -> Source:
    database = Database(settings, folder, _scan)
    _refuse_wide(len(database.names), database.title)
    columns = _columns(settings, database.names, database.types)
    source = Source(Path(database.file_name), "parquet", columns, settings, database=database)
    return _with_codebook(source, folder)


def _columns(
    settings: DataSettings, found: Sequence[str], types: Sequence[str], *, trimmed: bool = False
) -> tuple[Column, ...]:
    """Return the columns of a table by the declared names, if any, or else by those that were found."""
    names = found if settings.names is None else settings.names
    if len(names) != len(found):
        raise DataError(
            f"{counted(len(names), 'name')} for {counted(len(found), 'column')}",
            expected=f"{counted(len(found), 'name')} under [data] names",
            remedy="check the separator" if len(found) == 1 else "give one name for each column, in order",
        )
    nested = [n for n, t in zip(names, types, strict=True) if t.endswith("]") or t.startswith(("STRUCT", "MAP"))]
    if nested:
        raise DataError(
            f"nested columns: {shortened(nested)}",
            expected="one plain value per cell",
            remedy="flatten them first",
        )
    names = [name.strip() for name in names] if trimmed else names
    _check_names(names)
    return tuple(Column(name, type_, i) for i, (name, type_) in enumerate(zip(names, types, strict=True)))


def _refuse_wide(columns: int, name: str) -> None:
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{name} has {columns:,} columns",
            expected=f"at most {MOST_COLUMNS:,}",
            remedy="keep the columns that describe people, and check the separator",
        )


def _check_names(names: Sequence[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise DataError(
            f"{counted(len(repeated), 'column name')} {'is' if len(repeated) == 1 else 'are'} repeated: "
            f"{shortened(repeated)}",
            expected="every column name once",
            remedy="rename them in the file, or give names = [...] under [data]",
        )
    odd = next((position for position, name in enumerate(names, start=1) if UNPRINTABLE.search(name)), 0)
    if odd:
        raise DataError(
            f"the name of column {odd} holds control characters, or is not UTF-8",
            expected="names of printable characters",
            remedy="rename it in the file, or give names = [...] under [data]",
        )
    if "" in names:
        where = names.index("") + 1
        raise DataError(
            f"column {where} has no name",
            expected="a header with a name for every column",
            remedy="header = false with names = [...] if the file has no header",
        )


def write_frame(source: Source, path: Path) -> Path:
    """Write a table in memory as Parquet. Raise a `DataError` if a column would be read back differently."""
    if source.frame is None:
        raise DataError(f"{source.title} is not in memory", expected="a table in memory")
    cells = source.frame.table().columns
    columns = [pyarrow.chunked_array([without_categories(chunk) for chunk in column.chunks]) for column in cells]
    table = pyarrow.Table.from_arrays(columns, names=list(source.names))
    try:
        pyarrow.parquet.write_table(table, path)
    except (pyarrow.ArrowException, OSError) as error:  # its text may hold values
        raise DataError(
            f"the table could not be written as Parquet ({type(error).__name__})",
            expected="columns that Parquet has a type for, and a folder with free space",
        ) from None
    written = open_source(DataSettings(path=str(path), digest="content"))
    pairs = zip(source.columns, written.columns, strict=True)
    changed = [ours.name for ours, theirs in pairs if ours.type != theirs.type]
    if changed or written.fingerprint != source.fingerprint:
        raise DataError(
            f"{shortened(changed) or 'the table'} would not be read back from Parquet as it is in memory",
            expected="columns of numbers, text, dates, times, true or false, categories",
            remedy="turn the column into text or a number first",
        )
    return path
