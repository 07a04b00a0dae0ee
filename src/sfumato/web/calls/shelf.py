"""What a worker keeps at hand: studies and fronts by the bytes of their files, and the tables it has read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.sources.address import POSTGRESQL
from sfumato.study import Study, read, write_run_file
from sfumato.systems.registry import load_front
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.calls.binding import is_changed, table_path
from sfumato.web.places import ConflictError, Places, read_json, version_of

KEPT = 4
T = TypeVar("T")
_tables: OrderedDict[tuple[Any, ...], FrequencyTable] = OrderedDict()
_profiles: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
_fronts: OrderedDict[tuple[Any, ...], Front] = OrderedDict()
_wholes: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()


def study_of(places: Places, study: str) -> Study:
    """A study as it is declared now; what it names is still in the allowed folder."""
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


def run_file(places: Places, study: str) -> dict[str, Any]:
    """A study for the page: what is declared, with paths as the page calls them."""
    version = version_of(places.study(study))  # first: if a change comes in between, it is the older one
    declared = study_of(places, study)
    settings = declared.model_dump(mode="json", exclude_none=True)
    settings["search"] = declared.search.model_dump(mode="json", exclude_unset=True, exclude_none=True)
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


def refuse_stale(places: Places, study: str, version: str) -> None:
    """Raise if a study is no longer as it was read. The server makes the changes of one study one after another."""
    if version_of(places.study(study)) != version:
        raise ConflictError(
            "this study was changed in another tab or program after it was loaded",
            expected="a change based on the current version of the study",
            remedy="reload, and make the change again",
        )


def undecided_columns(study: Study) -> list[str]:
    """The columns of a study's table that nobody has given a role. A study about groups need not declare any."""
    if study.groups is not None and not study.columns:
        return []
    return [name for name in study.source(undecided=True).names if name not in study.columns]


def paths_of(study: Study) -> list[Path]:
    """Every path that a study names."""
    settings = [study.data, *([study.population] if study.population is not None else [])]
    read = [study.channel.prior, *(one.codebook for one in settings)]
    paths = [path for path in read if path is not None]
    for column in study.columns.values():
        tree = column.hierarchy
        if isinstance(tree, str):
            paths.append(tree)
        elif isinstance(tree, HierarchyFile):
            paths.append(tree.path)
    return [*_tables_of(study), *((study.folder / path).absolute() for path in paths)]


def _tables_of(study: Study) -> list[Path]:
    """The tables that a study reads: its own, the population, files that attackers learn from."""
    read = [study.data, *([study.population] if study.population is not None else [])]
    if study.engine != "duckdb" or any(settings.path.startswith(POSTGRESQL) for settings in read):
        raise InputError(
            "the workbench reads files of its folder, and with DuckDB",
            expected="a run file with a file or an SQLite database as its path, and no other engine",
            remedy="the command line reads PostgreSQL and runs on Spark",
        )
    read += list(study.groups.auxiliary) if study.groups is not None else []
    return [table_path(settings, study.folder).absolute() for settings in read]


def front_of(places: Places, study: str, job: str) -> tuple[Front, FrequencyTable]:
    """The front that a job found, and its table."""
    folder = places.job(study, job) / "front"
    if not (folder / "front.json").is_file():
        raise InputError("this search has no front yet", expected="a search that has ended", remedy="wait, or stop it")
    key = (str(folder), (folder / "front.json").stat().st_mtime_ns)
    front = _kept(_fronts, key) or _keep(_fronts, key, load_front(folder))
    return front, table_of(checked(places, front.study))


def table_of(study: Study) -> FrequencyTable:
    """The frequency table of a study, read once while its files stay as they are."""
    files = tuple((str(path), path.stat().st_mtime_ns) for path in paths_of(study) if path.is_file())
    key = (study.as_toml().split("\n[search]")[0], files)
    return _kept(_tables, key) or _keep(_tables, key, study.table())


def whole_of(key: tuple[Any, ...], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a point would be as a whole file, measured once."""
    return _kept(_wholes, key) or _keep(_wholes, key, make())


def profile_of(study: Study, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The profile of a study's table, made once while the file and how it is read stay as they are: two steps ask."""
    path = table_path(study.data, study.folder)
    key = (study.data.model_dump_json(), str(path), path.stat().st_mtime_ns if path.is_file() else None)
    return _kept(_profiles, key) or _keep(_profiles, key, make())


def _kept(shelf: OrderedDict[tuple[Any, ...], T], key: tuple[Any, ...]) -> T | None:
    if key in shelf:
        shelf.move_to_end(key)
    return shelf.get(key)


def _keep(shelf: OrderedDict[tuple[Any, ...], T], key: tuple[Any, ...], value: T) -> T:
    shelf[key] = value
    while len(shelf) > KEPT:
        shelf.popitem(last=False)
    return value
