"""What a worker keeps at hand: studies and fronts by the bytes of their files, and the tables it has read.

Which table a study is of: the SHA-256 of its files when it was opened, and whether they are still those.

Whether what is declared is still what a search was started with, and if not, what has changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sfumato.base.json_types import Json
from sfumato.data.open import matching_files, open_source
from sfumato.data.settings import POSTGRESQL, SQLITE, DataSettings
from sfumato.errors import InputError, SfumatoError
from sfumato.front import Front
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.methods.registry import load_front
from sfumato.study import ColumnSettings, Study, read, write_run_file
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.workspace import ConflictError, Places, read_json, version_of

_digests: dict[tuple[Any, ...], str] = {}


def table_of_now(study: Study) -> Json:
    """Return the digest of the table, and the sizes and times of its files, which show a change without reading."""
    return {"sha256": _digest(study), "files": _files(study)}


def is_changed(study: Study, about: Json) -> bool:
    """Return whether the table differs from the one that the study was declared for."""
    known = about.get("table")
    if not known:
        return False
    return bool(_files(study) != known["files"] and _digest(study) != known["sha256"])


def refuse_changed(study: Study, about: Json) -> None:
    """Raise if the table is no longer the one that the study was declared for."""
    if is_changed(study, about):
        raise ConflictError(
            f"{about.get('name', 'the table')} has changed since this study was declared",
            expected="the table that the roles and hierarchies were declared for",
            remedy="accept the table as it is now and check the roles again, or open it as a new study",
        )


def table_path(settings: DataSettings, folder: Path) -> Path:
    """Return where the rows of a table are read from: a file, a folder of parts, a pattern, or a database file."""
    return folder / settings.path.removeprefix(SQLITE)


def _files(study: Study) -> list[list[Any]]:
    try:
        files = matching_files(table_path(study.data, study.folder))
        states = [(file, file.stat()) for file in files]
    except (InputError, OSError):
        return []
    return [[file.name, state.st_size, state.st_mtime_ns, state.st_ctime_ns] for file, state in states]


def _digest(study: Study) -> str:
    files = (study.data.model_dump_json(), *map(tuple, _files(study)))
    if files not in _digests:
        try:
            _digests[files] = open_source(study.data, study.folder).fingerprint
        except (InputError, OSError):  # gone, or no table any more
            return ""
    return _digests[files]


KEPT = 4
T = TypeVar("T")


class Cache(OrderedDict[tuple[object, ...], T]):
    """The results of the last few keys."""

    def of(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return the result of a key, which is made at the first time."""
        if key not in self:
            self[key] = make()
        self.move_to_end(key)
        if len(self) > KEPT:
            self.popitem(last=False)
        return self[key]


_tables, _fronts = Cache[FrequencyTable](), Cache[Front]()
WHOLES, _profiles = Cache[Json](), Cache[Json]()


def study_of(places: Places, study: str) -> Study:
    """Return a study as it is declared now; what it names is still in the allowed folder."""
    return checked(places, read(places.study(study) / "run.toml"))


def checked(places: Places, study: Study) -> Study:
    """The same study, once every file that it names is in the allowed folder, links and patterns followed."""
    for path in _tables_of(study):
        places.table(str(path))
    for path in paths_of(study):
        places.allowed(str(path))
    return study


def keep_study(places: Places, study: str, declared: Study) -> None:
    """Write what is declared, whole: another worker may read it at the same moment."""
    write_run_file(places.study(study) / "run.toml", declared.as_toml(), overwrite=True)


def run_file(places: Places, study: str) -> Json:
    """Return a study for the page: what is declared, with paths as the page calls them."""
    version = version_of(places.study(study))  # first: if a change comes in between, it is the older one
    declared = study_of(places, study)
    settings = dumped(declared)
    settings["data"]["path"] = places.shown(table_path(declared.data, declared.folder))
    if declared.data.codebook is not None:
        settings["data"]["codebook"] = places.shown(declared.folder / declared.data.codebook)
    if declared.population is not None:
        settings["population"]["path"] = places.shown(table_path(declared.population, declared.folder))
    for file in (settings.get("groups") or {}).get("auxiliary", ()):
        file["path"] = places.shown(declared.folder / file["path"])
    for name, column in settings["columns"].items():
        tree = declared.columns[name].hierarchy
        if isinstance(tree, str):
            column["hierarchy"] = places.shown(declared.folder / tree)
        elif isinstance(tree, HierarchyFile):
            column["hierarchy"]["path"] = places.shown(declared.folder / tree.path)
    about = read_json(places.study(study) / "study.json")
    changed = is_changed(declared, about)
    about.pop("table", None)
    return about | {"id": study, "study": settings, "table_changed": changed, "version": version}


def dumped(study: Study) -> Json:
    """Return what is declared as JSON, and of the search what was set."""
    search = study.search.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return study.model_dump(mode="json", exclude_none=True) | {"search": search}


def refuse_stale(places: Places, study: str, version: str) -> None:
    """Raise if a study is no longer as it was read. The server makes the changes of one study one after another."""
    if version_of(places.study(study)) != version:
        raise ConflictError(
            "this study was changed in another tab or program after it was loaded",
            expected="a change based on the current version of the study",
            remedy="reload, and make the change again",
        )


def undecided_columns(study: Study) -> list[str]:
    """Return the columns of a study's table that have no role. A study about groups need not declare any."""
    if study.groups is not None and not study.columns:
        return []
    return [name for name in study.source(undecided=True).names if name not in study.columns]


def paths_of(study: Study) -> list[Path]:
    """Return every path that a study names."""
    settings = [one for one in (study.data, study.population) if one is not None]
    trees = [column.hierarchy for column in study.columns.values()]
    files = [tree.path if isinstance(tree, HierarchyFile) else tree for tree in trees]
    read = [study.channel.prior, *(one.codebook for one in settings), *files]
    return [*_tables_of(study), *((study.folder / path).absolute() for path in read if isinstance(path, str))]


def _tables_of(study: Study) -> list[Path]:
    """Return the tables that a study reads: its own, the population, files that attackers learn from."""
    read = [one for one in (study.data, study.population) if one is not None]
    if study.engine != "duckdb" or any(settings.path.startswith(POSTGRESQL) for settings in read):
        raise InputError(
            "the workbench reads files of its folder, and with DuckDB",
            expected="a run file with a file or an SQLite database as its path, and no other engine",
            remedy="the command line reads PostgreSQL and runs on Spark",
        )
    read += list(study.groups.auxiliary) if study.groups is not None else []
    return [table_path(settings, study.folder).absolute() for settings in read]


def front_of(places: Places, study: str, job: str) -> tuple[Front, FrequencyTable]:
    """Return the front that a job found, and its table."""
    folder = places.job(study, job) / "front"
    if not (folder / "front.json").is_file():
        raise InputError("this search has no front yet", expected="a search that has ended", remedy="wait, or stop it")
    key = (str(folder), (folder / "front.json").stat().st_mtime_ns)
    front = _fronts.of(key, lambda: load_front(folder))
    return front, table_of(checked(places, front.study))


def table_of(study: Study) -> FrequencyTable:
    """Return the frequency table of a study, read once while its files stay as they are."""
    files = tuple((str(path), path.stat().st_mtime_ns) for path in paths_of(study) if path.is_file())
    key = (study.as_toml().split("\n[search]")[0], files)
    return _tables.of(key, study.table)


def profile_of(study: Study, make: Callable[[], Json]) -> Json:
    """Return the profile of a study's table, made once for one state of the file and its settings: two steps ask."""
    path = table_path(study.data, study.folder)
    key = (study.data.model_dump_json(), str(path), path.stat().st_mtime_ns if path.is_file() else None)
    return _profiles.of(key, make)


LIMIT = 8  # sentences about columns


def changes_since(places: Places, study: str, searched: Study) -> list[str]:
    """What was declared differently when a front was searched, in sentences; none if nothing has changed."""
    try:
        now = study_of(places, study)
    except SfumatoError as error:
        return [f"The study can no longer be read: {error.what}."]
    return changes_between(searched, now)


def changes_between(before: Study, now: Study) -> list[str]:
    """What differs between two declarations of one table, without what is searched for.

    >>> one = Study(data={"path": "p.csv"}, columns={"sex": {"role": "quasi_identifier"}, "job": {"role": "other"}})
    >>> two = one.replace(columns={"sex": ColumnSettings(role="sensitive")})
    >>> changes_between(one, two)
    ['sex was quasi-identifier, and is now sensitive.']
    """
    columns = []
    for name in [*before.columns, *(name for name in now.columns if name not in before.columns)]:
        columns += _column(name, before.columns.get(name), now.columns.get(name), before, now)
    if len(columns) > LIMIT:
        columns = [*columns[:LIMIT], f"{len(columns) - LIMIT} more columns differ."]
    return [*columns, *_reading(before, now)]


def _column(
    name: str, before: ColumnSettings | None, now: ColumnSettings | None, first: Study, second: Study
) -> list[str]:
    if before is None or now is None:
        return [
            f"{name} had {'no role' if before is None else 'a role'}, and now has {'none' if now is None else 'one'}."
        ]
    if before.role is not now.role:
        return [f"{name} was {_plain(before.role)}, and is now {_plain(now.role)}."]
    if _tree(before, first) != _tree(now, second):
        return [f"The hierarchy of {name} is another."]
    first_rest, second_rest = (column.model_dump(exclude={"role", "hierarchy"}) for column in (before, now))
    if first_rest != second_rest:
        return [f"The settings of {name} (order, breaks, missing values …) are others."]
    return []


def _reading(before: Study, now: Study) -> list[str]:
    first, second = before.data, now.data
    rules = f"Missing values were treated as “{first.missing}”, and are now treated as “{second.missing}”."
    differs = {
        rules: first.missing != second.missing,
        "Other codes mean that a value is missing.": first.na != second.na,
        "The table is read in another way.": _described(before) != _described(now),
        "The population table is another.": (before.population is None) != (now.population is None),
        "Parameters of measures are others.": before.measures != now.measures,
    }
    return [sentence for sentence, holds in differs.items() if holds]


def _described(study: Study) -> Json:
    settings = study.data.model_dump(exclude={"missing", "na"})
    return settings | {"path": str((study.folder / study.data.path).absolute())}


def _tree(column: ColumnSettings, study: Study) -> Any:
    tree = column.hierarchy
    if isinstance(tree, str):
        tree = HierarchyFile(path=tree)
    if isinstance(tree, HierarchyFile):
        return tree.model_dump() | {"path": str((study.folder / tree.path).absolute())}
    return None if tree is None else tree.model_dump()


def _plain(role: Any) -> str:
    return str(role).replace("_", "-")
