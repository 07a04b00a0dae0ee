"""The study: what a run file says, checked, frozen and replayable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from sfumato.errors import DataError, HierarchyError, SfumatoError, StudyError, counted, nearest, shortened
from sfumato.hierarchies import Hierarchy, load
from sfumato.hierarchies.recipes import BRANCHES, RECIPES, Declared, HierarchyFile, HierarchyPaths, builder
from sfumato.notebook.card import card, some
from sfumato.notebook.pictures import parts_picture
from sfumato.notebook.tabular import KINDS
from sfumato.runtime.atomic import new_file, new_folder
from sfumato.runtime.inputs import note_input, note_unsealed
from sfumato.runtime.seal import sealed
from sfumato.runtime.settings import Settings
from sfumato.runtime.toml import MAX_BYTES, parse_toml, toml_key, toml_text, too_large
from sfumato.sources.address import IN_MEMORY, is_database, located
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.frames import Frame, is_frame
from sfumato.sources.mark import refuse_disguised
from sfumato.sources.opening import open_source
from sfumato.sources.roles import Role
from sfumato.sources.saving import write_frame
from sfumato.sources.settings import FOREIGN, DataSettings, EngineOptions, Missing, Seed, Threads
from sfumato.sources.source import Source
from sfumato.study.cells import CellsSettings
from sfumato.study.channel import ChannelSettings
from sfumato.study.declaring import Names, declared_columns, declared_hierarchy, table_settings
from sfumato.study.file_mapping import Attribute, Case, TermSettings
from sfumato.study.groups import AttackSettings, AuxiliarySettings, GroupsSettings, ProtectSettings
from sfumato.study.local import LocalSettings
from sfumato.study.policy import Acceptance, PolicySettings
from sfumato.tables.compress import Use, compress, secret_hierarchy
from sfumato.tables.domain import Builder
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.missing import KEYED

SAVED = "table.parquet"  # what a table in memory is called beside its run file
BUILT = tuple(RECIPES.values())
ALGORITHMS = {"lattice": ("exact", "exhaustive", "pbg_ea", "best_first"), "cuts": ("memetic", "nsga2")}
SYSTEM_OF = {  # settings of [search] that only one system reads
    **dict.fromkeys(("problem", "prefer", "generations", "local_search"), "cuts"),
    **dict.fromkeys(("iterations", "evaluations"), "lattice"),
}
SUPPRESSION = {"lattice": ("threshold", "paper"), "cuts": ("none", "within", "below_mean", "safe")}
ANY_SYSTEM = ("objectives", "max_suppression", "constraints", "weights", "seed", "threads")  # mean the same in both
WITHIN = dict.fromkeys(("local", "cells"), ("max_suppression", "constraints", "weights", "seed"))  # beside a section


class ColumnSettings(Settings):
    """What is declared about one column."""

    role: Role
    hierarchy: Declared | None = None
    missing: Missing | None = None
    distance: Literal["equal", "ordered", "hierarchical"] | None = None
    constrained: bool | None = None
    order: tuple[str, ...] | None = None
    breaks: tuple[float, ...] | None = None

    @property
    def along_tree(self) -> bool:
        """Whether cuts keep to the column's hierarchy: they do where it has one, unless free cuts are asked for."""
        return self.hierarchy is not None if self.constrained is None else self.constrained


class ObjectiveSettings(Settings):
    """A measure to search over; its direction may be turned round."""

    name: str
    direction: Literal["max", "min"] | None = None


class SearchSettings(Settings):
    """What to search for, how, and within which limits."""

    system: Literal["lattice", "cuts", "channel", "groups", "local", "cells"] = "lattice"
    problem: Literal[1, 2, 3, 4] | None = None
    prefer: Literal["k", "l"] = "k"
    suppression: Literal["threshold", "paper", "none", "within", "below_mean", "safe"] | None = None
    algorithm: Literal["exact", "exhaustive", "pbg_ea", "best_first", "memetic", "nsga2"] | None = None
    objectives: tuple[str | ObjectiveSettings, ...] = Field(default=("k", "general_loss"), min_length=1)
    max_suppression: float = Field(default=0.0, ge=0, lt=1)
    constraints: dict[str, Annotated[float, Field(ge=-1e15, le=1e15)]] = Field(default_factory=dict)
    weights: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = Field(default_factory=dict)
    epsilon: tuple[Annotated[float, Field(ge=1e-12, le=1e12)], ...] | None = None
    seed: Seed = 1
    population: int | None = Field(default=None, ge=4, le=100_000)
    iterations: int = Field(default=100, ge=1, le=10**9)
    generations: int = Field(default=250, ge=1, le=10**9)
    local_search: int = Field(default=16, ge=1, le=10**6)
    evaluations: int | None = Field(default=None, ge=1, le=10**15)
    reproduction: bool = False
    threads: Threads | None = None

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        own = {"system", *WITHIN.get(self.system, ())}
        if self.system not in ALGORITHMS and self.model_fields_set - own:
            extra = sorted(self.model_fields_set - own)
            raise StudyError(
                f"{shortened(extra)} under [search], and the system is {self.system}",
                expected=f"the settings of the {self.system} system under [{self.system}]",
                remedy=f"leave {extra[0]} out",
            )
        for name in self.model_fields_set & set(SYSTEM_OF):
            if SYSTEM_OF[name] != self.system and getattr(self, name) is not None:
                raise StudyError(
                    f"{name} under [search] belongs to the {SYSTEM_OF[name]} system, and the system is {self.system}",
                    expected=f"settings that the {self.system} system reads",
                    remedy=f'leave {name} out, or set system = "{SYSTEM_OF[name]}"',
                )
        if self.suppression is not None and self.suppression not in SUPPRESSION.get(self.system, ()):
            raise StudyError(
                f'suppression = "{self.suppression}" for {self.system}',
                expected="one of: " + ", ".join(SUPPRESSION[self.system]),
                remedy="leave suppression out",
            )
        if self.algorithm is not None and self.algorithm not in ALGORITHMS.get(self.system, ()):
            raise StudyError(
                f'algorithm = "{self.algorithm}" for {self.system}',
                expected="one of: " + ", ".join(ALGORITHMS[self.system]),
                remedy=f"leave algorithm out to take {ALGORITHMS[self.system][0]}",
            )
        return self

    @property
    def method(self) -> str:
        """The algorithm: as given, else the system's own."""
        return self.algorithm or ALGORITHMS[self.system][0]

    @property
    def paper(self) -> bool:
        """Whether suppression follows the paper of the lattice: the whole limit is spent on the smallest classes."""
        return self.suppression == "paper"

    @property
    def named(self) -> tuple[ObjectiveSettings, ...]:
        """The objectives, each as a name and a direction that may be open."""
        return tuple(ObjectiveSettings(name=o) if isinstance(o, str) else o for o in self.objectives)


class ReleaseSettings(Settings):
    """What the metadata of a release say of it as a whole. All of it is public."""

    title: str | None = Field(default=None, min_length=1, max_length=500)
    description: str | None = Field(default=None, min_length=1, max_length=20_000)
    creator: str | None = Field(default=None, min_length=1, max_length=500)
    license: str | None = Field(default=None, min_length=1, max_length=500)
    url: str | None = Field(default=None, min_length=1, max_length=2_000)
    version: str | None = Field(default=None, min_length=1, max_length=100)


class Study(Settings):
    """A table, and what each of its columns is: made of a table and lists of columns, or read from a run file.

    The table is one of pandas, polars, pyarrow or DuckDB (anything with `__arrow_c_stream__`), or the path of a file.
    Every column is named once; `keep` are those released as they are, `drop` those left out. Other sections of a run
    file are given by their names.

    Parameters
    ----------
    table : the table, or a path. Left out, `data` says where it is.
    quasi_identifiers : columns that outsiders may know; these are recoded.
    sensitive : columns that must not be learned about a person.
    identifiers, drop : columns that are never released.
    keep : columns that are released unchanged, and not counted in any measure.
    label, weight : the column an analyst predicts; the column with the weight of each record.
    na, missing : texts that mean missing; what is done with records that lack a value.

    >>> import pyarrow
    >>> people = pyarrow.table({"age": [31, 35, 42], "ill": ["flu", "none", "flu"], "name": ["A", "B", "C"]})
    >>> Study(people, quasi_identifiers=["age"], sensitive=["ill"], drop=["name"])
    <Study of the table in memory: 1 quasi-identifier, 1 sensitive, 1 dropped>
    >>> study = Study(data={"path": "people.csv"}, columns={"age": {"role": "quasi_identifier"}})
    >>> study.columns["age"].role.value, study.data.missing
    ('quasi_identifier', 'drop')
    """

    version: Literal[1] = 1
    data: DataSettings
    columns: dict[str, ColumnSettings] = Field(default_factory=dict)
    groups: GroupsSettings | None = None
    population: DataSettings | None = None
    policy: PolicySettings = PolicySettings()
    measures: dict[str, dict[str, float | str]] = Field(default_factory=dict)
    engine: str = "duckdb"
    engine_options: EngineOptions = EngineOptions()
    search: SearchSettings = SearchSettings()
    channel: ChannelSettings = ChannelSettings()
    local: LocalSettings = LocalSettings()
    cells: CellsSettings = CellsSettings()
    release: ReleaseSettings = ReleaseSettings()
    _folder: Path = PrivateAttr(default_factory=Path)
    _frame: Frame | None = PrivateAttr(default=None)

    def __init__(
        self,
        table: Any = None,
        /,
        *,
        quasi_identifiers: Names = (),
        sensitive: Names = (),
        identifiers: Names = (),
        drop: Names = (),
        keep: Names = (),
        label: str | None = None,
        weight: str | None = None,
        na: Sequence[str] | None = None,
        missing: Missing | None = None,
        **settings: Any,
    ) -> None:
        lists = {
            Role.QUASI_IDENTIFIER: quasi_identifiers,
            Role.SENSITIVE: sensitive,
            Role.IDENTIFIER: identifiers,
            Role.DROP: drop,
            Role.OTHER: keep,
            Role.LABEL: label or (),
            Role.WEIGHT: weight or (),
        }
        columns = declared_columns(lists, settings.get("columns", {}))
        settings |= {"columns": columns} if columns else {}
        given = {name: value for name, value in (("na", na), ("missing", missing)) if value is not None}
        if table is not None or given:
            settings["data"] = table_settings(table, settings.get("data", {}), given)
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise _explained(error) from None
        if table is not None:
            self._frame = Frame(table) if is_frame(table) else None
            check_roles(self, self.opened())

    def __repr__(self) -> str:
        named = {"quasi-identifier": Role.QUASI_IDENTIFIER, "sensitive": Role.SENSITIVE, "label": Role.LABEL}
        named |= {"weight": Role.WEIGHT, "kept": Role.OTHER, "identifier": Role.IDENTIFIER, "dropped": Role.DROP}
        counts = {word: len(self.named(role)) for word, role in named.items()}
        plural = {"quasi-identifier", "identifier"}
        told = [counted(n, word) if word in plural else f"{n} {word}" for word, n in counts.items() if n]
        return f"<Study of {self.title}: {', '.join(told) or 'no columns declared'}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return study_card(self)

    @property
    def frame_kind(self) -> str | None:
        """The kind of frame that figures are given as: that of its table, if it is one of those."""
        kind = self._frame.kind if self._frame is not None else None
        return kind if kind in KINDS else None

    @property
    def title(self) -> str:
        """How messages call its table."""
        if self.data.path == IN_MEMORY:
            return "the table in memory"
        return self.data.table or "a query" if is_database(self.data.path) else Path(self.data.path).name

    @model_validator(mode="before")
    @classmethod
    def _prior_alone(cls, settings: Any) -> Any:
        """A search over a given prior needs no table: the prior's file stands for it."""
        if isinstance(settings, dict) and "data" not in settings:
            channel = settings.get("channel")
            if isinstance(channel, dict) and isinstance(channel.get("prior"), str):
                return settings | {"data": {"path": channel["prior"]}}
        return settings

    @model_validator(mode="after")
    def _useful_keys(self) -> Self:
        """Somebody who gives a column a hierarchy believes that it is generalized: a key without effect is refused."""
        for name, column in self.columns.items():
            given = [key for key in type(column).model_fields if key != "role" and getattr(column, key) is not None]
            useless = [key for key in given if key not in column.role.keys]
            if useless:
                read_by = [str(role) for role in Role if useless[0] in role.keys]
                raise StudyError(
                    f"{name} has the role {column.role}, which does not read {useless[0]}",
                    expected=f"{useless[0]} for columns with the role {' or '.join(read_by)}",
                    remedy=f"leave {useless[0]} out, or change the role",
                )
            if (
                column.role is Role.SENSITIVE
                and column.hierarchy
                and column.distance not in ("ordered", "hierarchical")
            ):
                raise StudyError(
                    f"{name} is sensitive, so it is released as it is, and its hierarchy would have no effect",
                    expected='distance = "hierarchical" or "ordered", which read the hierarchy of a sensitive column',
                    remedy="leave hierarchy out; or give the role quasi_identifier, to release the column generalized",
                )
        return self

    @property
    def system(self) -> str:
        """The system that searches: the one under [search], or the one whose section stands alone in the run file."""
        sections = ("channel", "groups", "local", "cells")
        named = [name for name in sections if name in self.model_fields_set and getattr(self, name)]
        if "search" in self.model_fields_set or not named:
            return self.search.system
        if len(named) > 1:
            raise StudyError(
                f"the run file has [{named[0]}] and [{named[1]}] and does not say which system is to search",
                expected="system under [search]",
                remedy=f'system = "{named[0]}" or system = "{named[1]}" under [search]',
            )
        return named[0]

    @property
    def folder(self) -> Path:
        """The folder its paths are relative to."""
        return self._folder

    @property
    def frame(self) -> Frame | None:
        """The table, where it is in memory."""
        return self._frame

    def opened(self) -> Source:
        """The table, without asking a role of every column."""
        return open_source(self.data, self._folder, self._frame)

    def with_table(self, table: Any) -> Study:
        """The same study of another table: one in memory, or the path of a file."""
        settings = self.data.model_dump(exclude_unset=True, exclude={"table", "query", "password_file", "format"})
        changed = self._changed(data=table_settings(table, settings, {}))
        changed._frame = Frame(table) if is_frame(table) else None
        return changed

    def without_table(self) -> Study:
        """The same study without the table in memory: what is left holds none of its rows."""
        bare = self.model_copy()
        bare._frame = None
        return bare

    def with_hierarchies(self, given: Mapping[str, Any] | None = None, /, **named: Any) -> Study:
        """The same study with hierarchies for some columns.

        A hierarchy is the path of a file, a recipe (`sf.intervals(5, 10, 20)`, `sf.prefixes()`), a `Hierarchy`, a table
        whose columns are the levels, or a mapping from level to labels. Columns whose names are no Python names go into
        a mapping: `with_hierarchies({"marital-status": "marital.csv"})`.
        """
        columns = {}
        for name, hierarchy in ({**(given or {}), **named}).items():
            if name not in self.columns:
                raise StudyError(
                    f'a hierarchy for "{name}", which is not a column of the study',
                    expected="columns that have a role",
                    remedy=nearest(name, self.columns),
                )
            declared = self.columns[name].model_dump(exclude_unset=True) | {
                "hierarchy": declared_hierarchy(name, hierarchy)
            }
            columns[name] = declared
        return self._changed(columns={**self.columns, **columns})

    def with_data(self, **settings: Any) -> Study:
        """The same study with other settings of its [data] section."""
        return self._changed(data=self.data.model_dump(exclude_unset=True) | settings)

    def save(self, folder: str | Path) -> Path:
        """Write the study as a new folder, readable by its owner alone, and return its run file: the command line
        replays it to the same front. A table in memory is written beside it as Parquet.

        Its fingerprint stays that of the table in memory, so what was published from one is verified with the other.
        """
        folder = Path(folder).absolute()
        with new_folder(folder) as inside:
            settings = self._located_settings()
            if self._frame is not None:
                write_frame(self.opened(), inside / SAVED)
                settings["data"]["path"] = SAVED
            (inside / "run.toml").write_text(toml_text(settings), "utf-8")
            read(inside / "run.toml")
        return folder / "run.toml"

    def as_toml(self) -> str:
        """The study as a run file that can stand anywhere: paths are absolute."""
        return toml_text(self._located_settings())

    def _located_settings(self) -> dict[str, Any]:
        settings = self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        settings = {"version": self.version} | settings
        settings["data"]["path"] = located(self.data.path, self._folder)
        for name, given in (("data", self.data), ("population", self.population)):
            if given is not None and given.password_file is not None:
                settings[name]["password_file"] = str((self._folder / given.password_file).absolute())
            if given is not None and given.codebook not in (None, FOREIGN):
                settings[name]["codebook"] = str((self._folder / str(given.codebook)).absolute())
        if self.population is not None:
            settings["population"]["path"] = located(self.population.path, self._folder)
        if self.channel.prior is not None:
            settings["channel"]["prior"] = str((self._folder / self.channel.prior).absolute())
        for given in settings.get("groups", {}).get("auxiliary", ()):
            given["path"] = located(given["path"], self._folder)
        for name, column in settings.get("columns", {}).items():
            tree = self.columns[name].hierarchy
            if FOREIGN in (tree, getattr(tree, "path", None)):
                continue
            if isinstance(tree, str):
                column["hierarchy"] = str((self._folder / tree).absolute())
            elif isinstance(tree, HierarchyFile):
                column["hierarchy"]["path"] = str((self._folder / tree.path).absolute())
        return settings

    def with_columns(self, columns: Mapping[str, ColumnSettings]) -> Study:
        """The same study with other settings for some columns."""
        given = {name: column.model_dump(exclude_none=True, warnings=False) for name, column in columns.items()}
        return self._changed(columns={**self.columns, **given})

    def with_search(self, section: SearchSettings | None = None, /, **settings: Any) -> Study:
        """The same study with another [search] section, or with other settings of the one it has.

        Turned to another system, it leaves out how the old one was to search.
        """
        kept = (section or self.search).model_dump(exclude_unset=True)
        system = settings.get("system") or (self.system if section is None else section.system)
        if section is None and system != self.search.system:
            read = ANY_SYSTEM if system in ALGORITHMS else WITHIN.get(str(system), ())
            kept = {name: value for name, value in kept.items() if name in read}
            kept["system"] = system
        return self._changed(search=kept | settings)

    def with_seed(self, seed: int) -> Study:
        """The same study with another seed, wherever its system has it."""
        match self.system:
            case "channel":
                return self.with_settings({"channel": {"seed": seed}})
            case "groups":
                return self.with_settings({"groups": {"attack": {"seed": seed}}})
        return self.with_search(seed=seed)

    def with_engine(self, engine: str, options: EngineOptions) -> Study:
        """The same study on another engine."""
        return self.model_copy(update={"engine": engine, "engine_options": options})._placed(self._folder)

    def with_accepted(self, accepted: Sequence[Acceptance]) -> Study:
        """The same study with more of its policy's rules accepted, each with a reason."""
        policy = self.policy.model_copy(update={"accept": (*self.policy.accept, *accepted)})
        return self.model_copy(update={"policy": policy})._placed(self._folder)

    def with_channel(self, **settings: Any) -> Study:
        """The same study with other settings of its [channel] section."""
        return self._changed(channel=self.channel.model_dump(exclude_unset=True) | settings)

    def with_settings(self, settings: Mapping[str, Any]) -> Study:
        """The same study with some settings changed, given by section: `{"channel": {"delta": 0.6}}`."""
        return Study(**_merged(self.model_dump(exclude_unset=True, warnings=False), settings))._like(self)

    def with_groups(self, groups: GroupsSettings) -> Study:
        """The same study with another [groups] section."""
        return self._changed(groups=groups.model_dump(exclude_unset=True, warnings=False))

    def _changed(self, **sections: Any) -> Study:
        """A copy with other sections, which are checked like those of a run file."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        return Study(**(kept | sections))._like(self)

    def weights_for(self, table: FrequencyTable) -> tuple[float, ...]:
        """The weight of each quasi-identifier of a table in its losses: 1 unless given."""
        return tuple(self.search.weights.get(name, 1.0) for name in table.columns)

    def named(self, role: Role) -> list[str]:
        """The columns of a role."""
        return [name for name, column in self.columns.items() if column.role is role]

    def missing_rule(self, name: str) -> Missing:
        """What is done with a missing value of a column: its own rule, else that of the table."""
        column = self.columns.get(name)
        return (column.missing if column is not None else None) or self.data.missing

    @property
    def complete_columns(self) -> list[str]:
        """The columns whose missing values leave a row out."""
        return [n for n, c in self.columns.items() if c.role in KEYED and self.missing_rule(n) == "drop"]

    def source(self, path: Any = None, *, undecided: bool = False) -> Source:
        """The table, or another (a file, or a table in memory) read the same way, after checking that every column has
        a role.

        With `undecided`, columns may still be without one: for whoever is about to decide.
        """
        settings, frame = self.data, self._frame
        if is_frame(path):
            settings, frame = settings.model_copy(update={"path": IN_MEMORY, "format": None}), Frame(path)
        elif path is not None:
            elsewhere = {"path": located(str(path), Path()), "format": None, "sheet": None}
            if not is_database(str(path)):
                elsewhere |= {"table": None, "query": None, "password_file": None}
            settings = settings.model_copy(update=elsewhere)
        measured = [name for name, column in self.columns.items() if column.role in KEYED]
        source = open_source(settings, self._folder, frame)
        for file in source.originals or source.files:
            refuse_disguised(file, measured)
        check_roles(self, source, partial=path is not None, undecided=undecided)
        return source

    def table(
        self,
        path: Any = None,
        *,
        trees: Mapping[str, Hierarchy] | None = None,
        distances: Mapping[str, str] | None = None,
    ) -> FrequencyTable:
        """The frequency table of the data, or of another table read the same way.

        Hierarchies that are built from values are always built from the values of the study's own data: a
        generalized file no longer has them. `trees` and `distances` stand in for those that the study declares.
        """
        source = self.source(path)
        people = open_source(self.population, self._folder) if self.population else None
        built = trees if trees is not None else self._built() if path is not None else {}
        uses = [
            self._use(name, column, source.decimal, built.get(name), (distances or {}).get(name))
            for name, column in self.columns.items()
            if name in source.names
        ]
        with open_engine(self.engine, self.engine_options) as engine:
            return compress(engine, source, uses, people)

    def _built(self) -> dict[str, Hierarchy]:
        """The hierarchies of columns with a recipe, built from the study's own data."""
        recipes = [n for n, c in self.columns.items() if c.role in KEYED and isinstance(c.hierarchy, BUILT)]
        if not recipes:
            return {}
        try:
            table = self.model_copy(update={"population": None})._placed(self._folder).table()
        except DataError as error:
            raise StudyError(
                f"the hierarchies of {shortened(recipes)} are built from the original table, which cannot be read",
                expected="the table under [data], or hierarchy files",
                remedy="sfumato hierarchy build writes a file to name instead",
            ) from error
        domains = [*table.domains, *(values.domain for values in table.sensitive.values())]
        if table.label is not None:
            domains.append(table.label.domain)
        return {domain.name: domain.hierarchy for domain in domains if domain.name in recipes}

    def placed(self, folder: Path) -> Study:
        """The same study with its paths relative to a folder."""
        return self.model_copy()._placed(folder)

    def _placed(self, folder: Path) -> Study:
        self._folder = folder
        return self

    def _like(self, other: Study) -> Study:
        """Relative to the same folder as another study, and of the same table if that is in memory."""
        self._folder = other._folder
        self._frame = other._frame if self.data.path == IN_MEMORY else None
        return self

    def _use(
        self,
        name: str,
        column: ColumnSettings,
        decimal: str,
        built: Hierarchy | None = None,
        distance: str | None = None,
    ) -> Use:
        tree = column.hierarchy
        hierarchy: Hierarchy | Builder | None = None
        if built is not None:
            hierarchy = built
        elif isinstance(tree, HierarchyPaths):
            hierarchy = self._own_tree(name, column, tree)
        elif isinstance(tree, str | HierarchyFile):
            file = HierarchyFile(path=tree) if isinstance(tree, str) else tree
            try:
                hierarchy = load(self._folder / file.path, name=name, header=file.header, separator=file.separator)
            except HierarchyError:
                if column.role is Role.SENSITIVE:  # its labels are values that must not be shown
                    raise secret_hierarchy(name) from None
                raise
        elif tree is not None:
            hierarchy = builder(name, tree, decimal)
        missing = self.missing_rule(name)
        return Use(name, column.role, missing, hierarchy, distance or column.distance, column.order, column.along_tree)

    def _own_tree(self, name: str, column: ColumnSettings, tree: HierarchyPaths) -> Hierarchy:
        try:
            return Hierarchy.from_paths(name, tree.paths)
        except HierarchyError:
            if column.role is Role.SENSITIVE:
                raise secret_hierarchy(name) from None
            raise


def study_card(study: Study) -> str:
    """The columns with their roles and hierarchies, as HTML. No value of any column is in it."""
    rows = [[name, str(column.role), _told(column.hierarchy)] for name, column in study.columns.items()]
    roles = [(str(role).replace("_", "-"), float(len(study.named(role)))) for role in Role]
    return card(repr(study)[1:-1], ["column", "role", "hierarchy"], some(rows, 24), parts_picture(roles))


def _told(tree: Any) -> str:
    match tree:
        case None:
            return ""
        case str():
            return Path(tree).name
        case HierarchyFile():
            return Path(tree.path).name
        case HierarchyPaths():
            return f"given, {len(tree.paths[0])} levels"
    return str(tree.build)


def _merged(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of both, inside sections too; where both have a value, the second's."""
    both = dict(one)
    for name, value in two.items():
        inside = both.get(name)
        both[name] = _merged(inside, value) if isinstance(inside, Mapping) and isinstance(value, Mapping) else value
    return both


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
    if note_input(path).stat().st_size > MAX_BYTES:
        raise too_large(path.name)
    study = Study(**parse_toml(path.read_bytes(), path.name))
    study._folder = path.parent
    return study


def write_run_file(path: Path, text: str, *, overwrite: bool = False, private: bool = False) -> Path:
    """Write a run file and read it back before it gets its name: none is kept that cannot be read."""
    with new_file(path, overwrite=overwrite, private=private) as part:
        part.write_text(text, "utf-8")
        try:
            read(part)
        except StudyError as error:
            raise SfumatoError(
                f"the run file could not be read back: {error.what}", expected="a run file", remedy="please report it"
            ) from error
    return path


def read_kept(path: str | Path, run: str | Path | None = None) -> Study:
    """The run file inside a folder that was written before, for what it declares; or one's own, if that is given.

    The folder may come from anybody. Unless this user sealed it, its run file decides nothing beyond what it declares
    of columns and searches: the engine is the default one, and no table, hierarchy or address that it names is opened.
    """
    path = Path(path)
    known = sealed(path)
    if not known:
        note_unsealed(path.parent)
    study = read(path)
    if run is not None:
        own = read(run)
        return own._changed(search=study.search.model_dump(exclude_unset=True))
    return study if known else _foreign(study)


def without_trees(study: Study) -> Study:
    """The study with hierarchy files that are not opened; whether they are public stays."""
    closed = {}
    for name, column in study.columns.items():
        if isinstance(column.hierarchy, str | HierarchyFile):
            public = isinstance(column.hierarchy, HierarchyFile) and column.hierarchy.public
            closed[name] = column.model_copy(update={"hierarchy": HierarchyFile(path=FOREIGN, public=public)})
    return study.with_columns(closed)


def _foreign(study: Study) -> Study:
    settings = study.model_dump(exclude_unset=True, exclude={"engine", "engine_options", "population"})
    elsewhere = ("password_file", "table", "query", "codebook")
    settings["data"] = {n: v for n, v in settings["data"].items() if n not in elsewhere} | {"path": FOREIGN}
    for auxiliary in (settings.get("groups") or {}).get("auxiliary", ()):
        auxiliary["path"] = FOREIGN
    settings.get("channel", {}).pop("prior", None)
    for name, column in settings.get("columns", {}).items():
        if isinstance(study.columns[name].hierarchy, str | HierarchyFile):
            column["hierarchy"] = FOREIGN
    return Study(**settings)


def check_roles(study: Study, source: Source, *, partial: bool = False, undecided: bool = False) -> None:
    """Every column has a role, and every role a column. Released files lack what is never released (`partial`)."""
    undeclared = [name for name in source.names if name not in study.columns]
    if undeclared and not undecided:
        raise StudyError(
            f"{counted(len(undeclared), 'column')} {'has' if len(undeclared) == 1 else 'have'} no role: "
            f"{shortened(undeclared, 12)}",
            expected="a role for every column under [columns]",
            remedy=f'{toml_key(undeclared[0])} = {{ role = "drop" }}, or: {", ".join(Role)}',
        )
    absent = [name for name in study.columns if name not in source.names]
    if partial:
        absent = [name for name in absent if study.columns[name].role.released]
    if absent:
        raise StudyError(
            f"a role is declared for {counted(len(absent), 'column')} that the table lacks: {shortened(absent)}",
            expected="columns of the table",
            remedy=nearest(absent[0], source.names),
        )
    for role in (Role.LABEL, Role.WEIGHT):
        if len(study.named(role)) > 1:
            raise StudyError(
                f"{len(study.named(role))} columns have the role {role}: {shortened(study.named(role))}",
                expected=f"at most one {role}",
                remedy='role = "drop" for the rest',
            )


def _explained(error: ValidationError) -> StudyError:
    """The first problem of a run file as a sentence; an unknown key names the nearest known one.

    A key that is missing is often one that is misspelt, so an unknown key is told first.
    """
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    place = list(problem["loc"])
    if len(place) > 3 and place[2] == "hierarchy":  # behind it stands the name of a branch of the union
        place = place[:3] + (place[4:] if place[3] in BRANCHES else place[3:])
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
        "search": SearchSettings,
        "channel": ChannelSettings,
        "local": LocalSettings,
        "cells": CellsSettings,
        "policy": PolicySettings,
        "release": ReleaseSettings,
    }
    if not place:
        return list(Study.model_fields)
    if place[0] == "columns":
        if len(place) > 2:
            known: list[type[Settings]] = [*RECIPES.values(), HierarchyFile]
            return sorted({key for recipe in known for key in recipe.model_fields})
        return list(ColumnSettings.model_fields)
    if place[:2] == ["policy", "accept"]:
        return list(Acceptance.model_fields)
    model = _groups_section(place) if place[0] == "groups" else sections.get(str(place[0]))
    return list(model.model_fields) if model else []


def _groups_section(place: Sequence[str | int]) -> type[Settings]:
    """The model whose keys are known at a place under [groups]."""
    inside: Mapping[str, type[Settings]] = {"attack": AttackSettings, "protect": ProtectSettings}
    words = [str(part) for part in place]
    if "terms" in words:
        return TermSettings
    if "cases" in words:
        return Case
    if "attributes" in words:
        return Attribute
    if "auxiliary" in words:
        return AuxiliarySettings
    return next((inside[word] for word in words if word in inside), GroupsSettings)
