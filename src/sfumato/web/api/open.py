"""Open a table or a run file as a study of the workspace, and look at it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.auditing.inspect import inspect, repeating_in
from sfumato.base.files import new_folder
from sfumato.base.json_types import Json
from sfumato.base.settings import parse_toml
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.profile import as_text, first_rows, missing_costs, spread
from sfumato.data.profile import profile as profiled
from sfumato.data.repeating import with_holders
from sfumato.data.settings import SQLITE, Role
from sfumato.data.source import Source
from sfumato.data.suggest import suggest_all
from sfumato.errors import InputError
from sfumato.release.manifest import MANIFEST
from sfumato.samples.samples import sample
from sfumato.study import Study, read, write_run_file
from sfumato.tables.domain import KEYED
from sfumato.web.api.shelf import checked, profile_of, run_file, study_of, table_of_now, undecided_columns
from sfumato.web.workspace import DATABASES, AbsentError, Places, new_id, read_json, write_json

USUAL_SUPPRESSION = 0.01  # of a new table: without any, a handful of records cost all others much detail


def open_study(places: Places, path: str | None = None, sample: str | None = None, **settings: Any) -> Json:
    """Open a table, a run file or a bundled sample as a new study."""
    if path is not None and sample is None:
        return open_run(places, path) if path.endswith(".toml") else open_table(places, path, settings)
    if sample is None or path is not None:
        raise InputError("a path or a sample", expected="one of them")
    return open_sample(places, sample)


def open_table(places: Places, path: str, settings: Json) -> Json:
    """Open a table as a new study: profiled, with suggested roles that still have to be confirmed."""
    table = places.table(path)
    address = f"{SQLITE}{table}" if table.suffix.lower() in DATABASES else str(table)
    book = settings.get("codebook")
    if book is not None:
        settings = settings | {"codebook": str(places.allowed(str(book)))}
    inspection = inspect(address, **settings)
    text = inspection.run_file(address, codebook=settings.get("codebook"))
    study = Study(**parse_toml(text.encode("utf-8"), "run.toml")).with_search(max_suppression=USUAL_SUPPRESSION)
    single = [{"columns": list(c.columns), "unique": c.unique} for c in inspection.combinations]
    name = f"{table.name}: {settings['table']}" if settings.get("table") else table.name
    about = {"name": name, "reviewed": False, "undecided": inspection.undecided, "rows": inspection.rows}
    about |= {"combinations": single, "unique": inspection.everything.unique_share}
    with _new(places, table.name) as (folder, target):
        _write(folder, study, about)
    return run_file(places, target.name)


def open_run(places: Places, path: str) -> Json:
    """Open a run file as a new study; every file that it names must be in the allowed folder."""
    file = places.allowed(path)
    study = read(file)
    if file.is_relative_to(places.uploads):  # it came without its folder
        study = study.placed(places.root)
    undecided = undecided_columns(checked(places, study))
    folder_name = file.parent.name if file.parent != places.root else ""
    named = folder_name if file.stem == "run" and folder_name else file.stem
    about = {"name": named, "reviewed": not undecided, "undecided": undecided}
    with _new(places, file.parent.name or file.name) as (folder, target):
        _write(folder, study, about)
    return run_file(places, target.name)


def open_sample(places: Places, name: str) -> Json:
    """Open a bundled sample, copied into the workspace, as a new study."""
    about = {"name": f"{name} (sample)", "reviewed": True, "undecided": []}
    with _new(places, name) as (folder, target):
        shutil.copytree(sample(name).parent, folder / "data")
        study = read(folder / "data" / "run.toml")
        _write(folder, study.placed(target / "data"), about | {"table": table_of_now(study)})
    return run_file(places, target.name)


def studies(places: Places) -> list[Json]:
    """Return every study of the workspace, the latest first."""
    listed = [
        read_json(path) | {"id": path.parent.name, "releases": len(list(path.parent.glob(f"releases/*/{MANIFEST}")))}
        for path in places.studies.glob("*/study.json")
    ]
    return sorted(listed, key=lambda about: -float(about.get("opened", 0)))


def tables(places: Places, path: str) -> Json:
    """Return the tables and views of an SQLite database."""
    file = places.allowed(path)
    if not file.is_file():
        raise AbsentError(f'there is no file "{path[:120]}"', expected="a database of the workbench's folder")
    try:
        with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
            return {"tables": [str(name) for (name,) in rows if not str(name).startswith("sqlite_")]}
    except sqlite3.Error:
        raise InputError("the file is not an SQLite database", expected="a file that SQLite can read") from None


def preview(places: Places, study: str, rows: int) -> Json:
    """Return the first rows as they are read."""
    source = _source(study_of(places, study))
    with open_engine() as engine:
        return {"columns": list(source.names), "rows": first_rows(engine, source, rows)}


def profile(places: Places, study: str) -> Json:
    """Return every column: its figures, how its values are spread, a suggested role and why."""
    declared = study_of(places, study)
    return profile_of(declared, lambda: _profile(_source(declared)))


def missing(places: Places, study: str) -> Json:
    """Count what each value that may mean missing would cost under each missing rule, with the roles as they are.

    A column without a role counts as measured.
    """
    declared = study_of(places, study)
    source = _source(declared)
    roles = {name: column.role for name, column in declared.columns.items()}
    measured = [name for name in source.names if name not in roles or roles[name] in KEYED]
    known = profile_of(declared, lambda: _profile(source))
    words = sorted({word for column in known["columns"] for word in column["missing_candidates"]})
    with open_engine() as engine:
        as_text(engine, source, measured)
        costs = missing_costs(engine, source, words, measured)
    return {"rule": declared.data.missing, "codes": {word: cost.as_dict() for word, cost in costs.items()}}


def _profile(source: Source) -> Json:
    with open_engine() as engine:
        columns = profiled(engine, source)
        shapes = [spread(engine, source, column) for column in columns]
        suggested = suggest_all(columns)
        found = repeating_in(engine, source, columns, suggested)
    repeats = {each.column: each.sentence for each in found}
    profiles = []
    for column, shape, suggestion in zip(columns, shapes, with_holders(suggested, columns, found), strict=True):
        about = column.as_dict() | {"name": column.name, "lowest": column.lowest, "highest": column.highest}
        about |= {"spread": shape, "repeats": repeats.get(column.name, "")}
        profiles.append(about | suggestion.as_dict())
    return {"rows": columns[0].rows if columns else 0, "columns": profiles}


def roles(places: Places) -> list[Json]:  # noqa: ARG001
    """Return every role, what it means, and which keys of a column do something in it."""
    return [{"name": str(role), "meaning": role.meaning, "keys": list(role.keys)} for role in Role]


def _source(study: Study) -> Source:
    """Return the table without a look at the roles: it must be seen before they are right."""
    return open_source(study.data, study.folder)


@contextmanager
def _new(places: Places, stem: str) -> Iterator[tuple[Path, Path]]:
    """Return the folder of a new study, whole or not at all: where it is filled, and where it will be."""
    target = places.studies / new_id(stem)
    with new_folder(target) as folder:
        for part in ("jobs", "releases"):
            (folder / part).mkdir()
        yield folder, target


def _write(folder: Path, study: Study, about: Json) -> None:
    write_run_file(folder / "run.toml", study.as_toml())
    write_json(folder / "study.json", {"table": table_of_now(study), "opened": time.time()} | about)
