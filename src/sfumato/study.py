"""The study: what a run file says, checked, frozen and replayable."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, ValidationError

from sfumato.data.compress import Use, compress
from sfumato.data.domain import Builder
from sfumato.data.engine import open_engine
from sfumato.data.frequency import FrequencyTable
from sfumato.data.hierarchies import Hierarchy, load
from sfumato.data.hierarchies.recipes import BRANCHES, RECIPES, Declared, HierarchyFile, builder
from sfumato.data.roles import Role
from sfumato.data.settings import DataSettings, EngineOptions, Missing, Settings
from sfumato.data.source import Source, open_source
from sfumato.errors import StudyError, nearest, shortened


class ColumnSettings(Settings):
    """What is declared about one column."""

    role: Role
    hierarchy: Declared | None = None
    missing: Missing | None = None
    distance: Literal["equal", "ordered", "hierarchical"] | None = None


class Study(Settings):
    """A whole run file. Make one with `sfumato.read`, or in Python.

    >>> study = Study(data={"path": "people.csv"}, columns={"age": {"role": "quasi_identifier"}})
    >>> study.columns["age"].role.value, study.data.missing
    ('quasi_identifier', 'drop')
    """

    version: Literal[1] = 1
    data: DataSettings
    columns: dict[str, ColumnSettings]
    population: DataSettings | None = None
    measures: dict[str, dict[str, float | str]] = Field(default_factory=dict)
    engine: str = "duckdb"
    engine_options: EngineOptions = EngineOptions()
    search: dict[str, Any] = Field(default_factory=dict)
    _folder: Path = PrivateAttr(default_factory=Path)

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise _explained(error) from None

    @property
    def folder(self) -> Path:
        """The folder its paths are relative to."""
        return self._folder

    def with_data(self, **settings: Any) -> Study:
        """The same study with other settings of its [data] section."""
        study = self.model_copy(update={"data": self.data.model_copy(update=settings)})
        study._folder = self._folder
        return study

    def named(self, role: Role) -> list[str]:
        """The columns of a role."""
        return [name for name, column in self.columns.items() if column.role is role]

    def source(self, path: str | Path | None = None) -> Source:
        """The table, or another file read the same way, after checking that every column has a role."""
        settings = self.data
        if path is not None:
            settings = settings.model_copy(update={"path": str(Path(path).absolute()), "format": None})
        source = open_source(settings, self._folder)
        check_roles(self, source, partial=path is not None)
        return source

    def table(self, path: str | Path | None = None) -> FrequencyTable:
        """The frequency table of the data, or of another file read the same way."""
        source = self.source(path)
        people = open_source(self.population, self._folder) if self.population else None
        uses = [
            self._use(name, column, source.decimal) for name, column in self.columns.items() if name in source.names
        ]
        with open_engine(self.engine, self.engine_options) as engine:
            return compress(engine, source, uses, people)

    def _use(self, name: str, column: ColumnSettings, decimal: str) -> Use:
        tree = column.hierarchy
        hierarchy: Hierarchy | Builder | None = None
        if isinstance(tree, str):
            hierarchy = load(self._folder / tree, name=name)
        elif isinstance(tree, HierarchyFile):
            hierarchy = load(self._folder / tree.path, name=name, header=tree.header, separator=tree.separator)
        elif tree is not None:
            hierarchy = builder(name, tree, decimal)
        return Use(name, column.role, column.missing or self.data.missing, hierarchy, column.distance)


def read(path: str | Path) -> Study:
    """Read a run file. Its paths are relative to the folder it stands in."""
    path = Path(path)
    if path.is_dir() or not path.exists():
        kind = "a folder" if path.is_dir() else "not there"
        raise StudyError(
            f"the run file {path} is {kind}",
            expected="a TOML file",
            remedy="sfumato inspect FILE writes one to start from",
        )
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path.name} is not TOML: {error}", expected="a run file") from None
    study = Study(**settings)
    study._folder = path.parent
    return study


def check_roles(study: Study, source: Source, partial: bool = False) -> None:
    """Every column has a role, and every role a column. Released files lack what is never released."""
    undeclared = [name for name in source.names if name not in study.columns]
    if undeclared:
        raise StudyError(
            f"{len(undeclared)} columns have no role: {shortened(undeclared)}",
            expected="a role for every column under [columns]",
            remedy=f'{undeclared[0]!r} = {{ role = "drop" }}, or another of: {", ".join(Role)}',
        )
    absent = [name for name in study.columns if name not in source.names]
    if partial:
        absent = [name for name in absent if study.columns[name].role not in (Role.IDENTIFIER, Role.DROP)]
    if absent:
        raise StudyError(
            f"a role is declared for {len(absent)} columns that the table lacks: {shortened(absent)}",
            expected="columns of the table",
            remedy=nearest(absent[0], source.names),
        )
    for role in (Role.LABEL, Role.WEIGHT):
        if len(study.named(role)) > 1:
            raise StudyError(
                f"{len(study.named(role))} columns have the role {role}: {shortened(study.named(role))}",
                expected=f"at most one {role}",
                remedy='role = "other" for the rest',
            )


def _explained(error: ValidationError) -> StudyError:
    """The first problem of a run file as a sentence; an unknown key names the nearest known one.

    A key that is missing is often one that is misspelt, so an unknown key is told first.
    """
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    place = list(problem["loc"])
    if len(place) > 3 and place[2] == "hierarchy":  # behind it stand the names of the union's branches
        place = place[:3] + [part for part in place[3:] if part not in BRANCHES]
    where = ".".join(str(part) for part in place)
    if problem["type"] == "extra_forbidden":
        known = _keys_at(place[:-1])
        return StudyError(
            f'unknown key "{place[-1]}"' + (f" in [{'.'.join(map(str, place[:-1]))}]" if place[:-1] else ""),
            expected="a key of the run file",
            remedy=nearest(str(place[-1]), known),
        )
    if problem["type"] == "missing":
        return StudyError(f'the key "{where}" is missing', expected=f"a value for {where}")
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return StudyError(f"{where} is not understood", expected="a file, or build = one of: " + ", ".join(RECIPES))
    given = problem["input"]
    shown = f" = {given!r}" if isinstance(given, str | int | float) else ""
    remedy = nearest(given, [str(role) for role in Role]) if place[-1:] == ["role"] and isinstance(given, str) else ""
    return StudyError(f"{where}{shown} is not valid", expected=problem["msg"], remedy=remedy)


def _keys_at(place: Sequence[str | int]) -> list[str]:
    """The keys known at a place of the run file."""
    sections: Mapping[str, type[Settings]] = {
        "data": DataSettings,
        "population": DataSettings,
        "engine_options": EngineOptions,
    }
    if not place:
        return list(Study.model_fields)
    if place[0] == "columns":
        if len(place) > 2:
            known: list[type[Settings]] = [*RECIPES.values(), HierarchyFile]
            return sorted({key for recipe in known for key in recipe.model_fields})
        return list(ColumnSettings.model_fields)
    model = sections.get(str(place[0]))
    return list(model.model_fields) if model else []
