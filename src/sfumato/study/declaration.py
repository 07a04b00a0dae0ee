"""The sections of a run file, checked together, and their declaration in Python.

In Python, columns are listed by role, the table is an object or a path, and hierarchies have any form. Errors of run
files are one sentence, with the nearest known key for an unknown one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from sfumato.base.notebook import KINDS
from sfumato.base.settings import Settings, toml_key
from sfumato.data.engine import open_engine
from sfumato.data.frame import Frame, is_frame
from sfumato.data.open import open_source
from sfumato.data.settings import IN_MEMORY, DataSettings, EngineOptions, Missing, Role, is_database, located
from sfumato.data.source import Source, refuse_disguised
from sfumato.data.treatment import Treatment, treated
from sfumato.errors import DataError, HierarchyError, StudyError, counted, nearest, shortened
from sfumato.hierarchies import Hierarchy, load
from sfumato.hierarchies.hierarchy import flat
from sfumato.hierarchies.recipes import BRANCHES, RECIPES, HierarchyFile, HierarchyPaths, builder
from sfumato.study.groups import GroupsSettings
from sfumato.study.methods import SECTIONS
from sfumato.study.sections import (
    REASON_EXPECTED,
    CellsSettings,
    ChannelSettings,
    ColumnSettings,
    LocalSettings,
    PolicySettings,
    ReleaseSettings,
    SearchSettings,
    reason_given,
)
from sfumato.tables.compress import Use, compress, secret_hierarchy
from sfumato.tables.domain import KEYED, Builder
from sfumato.tables.frequency import FrequencyTable


class Declaration(Settings):
    """The sections of a run file, the folder of its relative paths, and the table where it is in memory."""

    version: Literal[1] = Field(default=1, description="Version of the format of run files.")
    data: DataSettings = Field(description="The table, and how it is read.")
    columns: dict[str, ColumnSettings] = Field(
        default_factory=dict, description="The columns of the table, each with its role."
    )
    groups: GroupsSettings | None = Field(default=None, description="Settings of the method groups.")
    population: DataSettings | None = Field(
        default=None, description="A table of the population with the same quasi-identifiers."
    )
    policy: PolicySettings = Field(default=PolicySettings(), description="Rules that every release must keep to.")
    measures: dict[str, dict[str, float | str]] = Field(
        default_factory=dict, description="Parameters of measures, by the name of the measure."
    )
    engine: str = Field(default="duckdb", description="Engine that reads the records: duckdb or spark.")
    engine_options: EngineOptions = Field(default=EngineOptions(), description="Limits of the engine.")
    search: SearchSettings = Field(default=SearchSettings(), description="Method, objectives and limits of the search.")
    channel: ChannelSettings = Field(default=ChannelSettings(), description="Settings of the method channel.")
    local: LocalSettings = Field(default=LocalSettings(), description="Settings of the method local.")
    cells: CellsSettings = Field(default=CellsSettings(), description="Settings of the method cells.")
    release: ReleaseSettings = Field(default=ReleaseSettings(), description="Title and other metadata of the release.")
    _folder: Path = PrivateAttr(default_factory=Path)
    _frame: Frame | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _prior_alone(cls, settings: object) -> object:
        """Take the file of the prior as the table, because a search over a given prior needs none."""
        if isinstance(settings, dict) and "data" not in settings:
            channel = settings.get("channel")
            if isinstance(channel, dict) and isinstance(channel.get("prior"), str):
                return settings | {"data": {"path": channel["prior"]}}
        return settings

    @model_validator(mode="after")
    def _useful_keys(self) -> Self:
        """Refuse a key without effect: a publisher who gives a column a hierarchy expects that it is generalized."""
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
            unused = column.hierarchy and column.distance not in ("ordered", "hierarchical")
            if column.role is Role.SENSITIVE and unused:
                raise StudyError(
                    f"{name} is sensitive, so it is released as it is, and its hierarchy would have no effect",
                    expected='distance = "hierarchical" or "ordered", which read the hierarchy of a sensitive column',
                    remedy="leave hierarchy out; or give the role quasi_identifier, to release the column generalized",
                )
        return self

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        """Check that the unit of a row is declared once: by a column, or by unit = "row" with a reason."""
        stated, households = self.data.unit == "row", self.named(Role.HOUSEHOLD)
        units = self.named(Role.UNIT)
        if stated and units:
            raise StudyError(
                f'unit = "row" says that every row is a person, and {units[0]} has the role unit',
                expected="one of the two",
                remedy="leave unit out of [data], or give the column another role",
            )
        if self.data.unit_reason is not None and not (stated and reason_given(self.data.unit_reason)):
            raise StudyError(
                "unit_reason is not a reason" if stated else 'unit_reason is given without unit = "row"',
                expected=f'{REASON_EXPECTED}, beside unit = "row"',
            )
        if stated and self.data.unit_reason is None and not households:
            raise StudyError(
                'unit = "row" says that every row is a person, and no reason is given',
                expected=f"unit_reason: {REASON_EXPECTED}",
                remedy='unit_reason = "one interview per person" under [data], if that is so',
            )
        return self

    @property
    def system(self) -> str:
        """The system that searches: the one under [search], or the one with the only section in the run file."""
        named = [
            name for section, name in SECTIONS.items() if section in self.model_fields_set and getattr(self, section)
        ]
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

    @property
    def frame_kind(self) -> str | None:
        """The kind of frame that figures are given as: that of its table, if it is one of those."""
        kind = self._frame.kind if self._frame is not None else None
        return kind if kind in KINDS else None

    @property
    def title(self) -> str:
        """The name of its table in messages."""
        if self.data.path == IN_MEMORY:
            return "the table in memory"
        return self.data.table or "a query" if is_database(self.data.path) else Path(self.data.path).name

    def opened(self) -> Source:
        """Return the table with its treated columns. Columns may be without a role."""
        return treated(open_source(self.data, self._folder, self._frame), self.treatments)

    def source(self, path: object = None, *, undecided: bool = False) -> Source:
        """Return the table, or another one that is read in the same way, after a check that every column has a role.

        With `undecided`, columns may still be without a role.
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
        check_roles(self.columns, source.names, partial=path is not None, undecided=undecided)
        return treated(source, self.treatments)

    def table(
        self,
        path: object = None,
        *,
        trees: Mapping[str, Hierarchy] | None = None,
        distances: Mapping[str, str] | None = None,
    ) -> FrequencyTable:
        """Return the frequency table of the data, or of another table that is read in the same way.

        Recipes always build hierarchies from the study's own data, because a generalized file no longer has the values.
        `trees` and `distances` replace those that the study declares.
        """
        source = self.source(path)
        people = open_source(self.population, self._folder) if self.population else None
        built = trees if trees is not None else self._built() if path is not None else {}
        uses = [
            Use(
                name,
                column.role,
                self.missing_rule(name),
                built.get(name) or self._tree(name, source),
                (distances or {}).get(name) or column.distance or self._distance(name),
                column.order,
                column.along_tree,
                column.harmless or (),
            )
            for name, column in self.columns.items()
            if name in source.names
        ]
        with open_engine(self.engine, self.engine_options) as engine:
            return compress(engine, source, uses, people)

    def _tree(self, name: str, source: Source) -> Hierarchy | Builder | None:
        """Return the hierarchy of a column: declared, or the bands that its values are put in, in their order."""
        tree = declared_tree(name, self.columns[name], self._folder, source.decimal)
        labels = self.treatments[name].labels(source.decimal) if name in self.treatments else ()
        return flat(name, labels) if tree is None and labels else tree

    def _distance(self, name: str) -> str | None:
        """Return the distance of a treated column. Bands and parts of dates have an order, rounded numbers a value."""
        treatment = self.treatments.get(name)
        return "ordered" if treatment is not None and (treatment.bands or treatment.unit) else None

    def _built(self) -> dict[str, Hierarchy]:
        """Return the hierarchies of columns with a recipe, built from the study's own data."""
        built = tuple(RECIPES.values())
        recipes = [n for n, c in self.columns.items() if c.role in KEYED and isinstance(c.hierarchy, built)]
        if not recipes:
            return {}
        try:
            table = self.model_copy(update={"population": None}).table()
        except DataError as error:
            raise StudyError(
                f"the hierarchies of {shortened(recipes)} are built from the original table, which cannot be read",
                expected="the table under [data], or hierarchy files",
                remedy="sfumato hierarchy build writes a file to name instead",
            ) from error
        domains = [*table.domains, *(values.domain for values in table.sensitive.values())]
        domains += [] if table.label is None else [table.label.domain]
        return {domain.name: domain.hierarchy for domain in domains if domain.name in recipes}

    def weights_for(self, table: FrequencyTable) -> tuple[float, ...]:
        """Return the weight of each quasi-identifier of a table in its losses: 1 unless given."""
        return tuple(self.search.weights.get(name, 1.0) for name in table.columns)

    def named(self, role: Role) -> list[str]:
        """Return the columns of a role."""
        return [name for name, column in self.columns.items() if column.role is role]

    def missing_rule(self, name: str) -> Missing:
        """Return the missing rule of a column: its own, or else that of the table."""
        column = self.columns.get(name)
        return (column.missing if column is not None else None) or self.data.missing

    @property
    def treatments(self) -> dict[str, Treatment]:
        """The columns whose released values are rounded or put in bands."""
        declared = {name: Treatment.of(column.round, column.bands) for name, column in self.columns.items()}
        return {name: treatment for name, treatment in declared.items() if treatment is not None}

    @property
    def complete_columns(self) -> list[str]:
        """The columns whose missing values leave a row out."""
        return [n for n, c in self.columns.items() if c.role in KEYED and self.missing_rule(n) == "drop"]


Names = str | Sequence[str]


def declared_columns(lists: Mapping[Role, Names], columns: Mapping[str, object]) -> dict[str, object]:
    """Return the columns of a study from lists of names by role, and those that are declared one by one.

    >>> declared_columns({Role.SENSITIVE: "ill", Role.DROP: ["name", "phone"]}, {})
    {'ill': {'role': 'sensitive'}, 'name': {'role': 'drop'}, 'phone': {'role': 'drop'}}
    """
    named = [(name, role) for role, names in lists.items() for name in ([names] if isinstance(names, str) else names)]
    seen = list(columns)
    twice: list[str] = []
    for name, _ in named:
        (twice if name in seen else seen).append(name)
    if twice:
        raise StudyError(
            f"{counted(len(twice), 'column')} {'is' if len(twice) == 1 else 'are'} named more than once: "
            f"{shortened(dict.fromkeys(map(str, twice)))}",
            expected="one role for every column",
        )
    return {**columns, **{str(name): {"role": str(role)} for name, role in named}}


def table_settings(
    table: object, settings: Settings | Mapping[str, object], given: Mapping[str, object]
) -> dict[str, object]:
    """Return the [data] section of a study of a table: one in memory, or a path."""
    kept = {**(settings.model_dump(exclude_unset=True) if isinstance(settings, Settings) else settings), **given}
    if table is None:
        return kept
    if is_frame(table):
        return kept | {"path": IN_MEMORY, "digest": "content"}
    if isinstance(table, str | Path):
        return kept | {"path": located(str(table), Path())}
    Frame(table)  # raises with the reason
    return kept


def declared_hierarchy(name: str, given: object) -> object:
    """Return a hierarchy in the form that a run file has it.

    >>> declared_hierarchy("sex", {0: ["F", "M"], 1: ["*", "*"]})
    {'paths': [['F', '*'], ['M', '*']]}
    """
    if isinstance(given, (str, HierarchyFile, HierarchyPaths, *RECIPES.values())):
        return given
    if isinstance(given, Path):
        return str(given)
    if isinstance(given, Hierarchy):
        return {"paths": [list(path) for path in given.paths]}
    if isinstance(given, Mapping) and ("build" in given or "path" in given or "paths" in given):
        return dict(given)
    if isinstance(given, Mapping):
        return {"paths": _rows([list(given[level]) for level in sorted(given)])}
    if is_frame(given):
        return {"paths": _rows([column.to_pylist() for column in Frame(given).table().columns])}
    raise HierarchyError(
        f"the hierarchy of {name} is of the kind {type(given).__name__}",
        expected="the path of a file, a recipe such as sf.intervals(5, 10), a table whose columns are the levels, "
        "or a mapping from level to labels",
    )


def declared_tree(name: str, column: ColumnSettings, folder: Path, decimal: str) -> Hierarchy | Builder | None:
    """Return the declared hierarchy of a column, from its file or paths, or the function of its recipe."""
    tree = column.hierarchy
    if tree is None or not isinstance(tree, str | HierarchyFile | HierarchyPaths):
        return None if tree is None else builder(name, tree, decimal)
    try:
        if isinstance(tree, HierarchyPaths):
            return Hierarchy.from_paths(name, tree.paths)
        file = HierarchyFile(path=tree) if isinstance(tree, str) else tree
        return load(folder / file.path, name=name, header=file.header, separator=file.separator)
    except HierarchyError:
        if column.role is Role.SENSITIVE:  # its labels are values that must not be shown
            raise secret_hierarchy(name) from None
        raise


def check_roles(
    columns: Mapping[str, ColumnSettings], names: Sequence[str], *, partial: bool = False, undecided: bool = False
) -> None:
    """Check that every column of a table has a role, and that every declared column exists.

    Released files lack columns that are never released (`partial`). With `undecided`, columns may be without a role.
    """
    undeclared = [name for name in names if name not in columns]
    if undeclared and not undecided:
        raise StudyError(
            f"{counted(len(undeclared), 'column')} {'has' if len(undeclared) == 1 else 'have'} no role: "
            f"{shortened(undeclared, 12)}",
            expected="a role for every column under [columns]",
            remedy=f'{toml_key(undeclared[0])} = {{ role = "drop" }}, or: {", ".join(Role)}',
        )
    absent = [name for name, column in columns.items() if name not in names and (column.role.released or not partial)]
    if absent:
        raise StudyError(
            f"a role is declared for {counted(len(absent), 'column')} that the table lacks: {shortened(absent)}",
            expected="columns of the table",
            remedy=nearest(absent[0], names),
        )
    for role in (Role.LABEL, Role.WEIGHT, Role.UNIT, Role.HOUSEHOLD):
        named = [name for name, column in columns.items() if column.role is role]
        if len(named) > 1:
            raise StudyError(
                f"{len(named)} columns have the role {role}: {shortened(named)}",
                expected=f"at most one {role}",
                remedy='role = "drop" for the rest',
            )


def _rows(levels: list[list[object]]) -> list[list[str]]:
    """Return each value once, with its labels from fine to coarse."""
    if len({len(level) for level in levels}) > 1:
        raise HierarchyError("the levels of a hierarchy have different lengths", expected="one label for every value")
    rows = dict.fromkeys(
        tuple("" if label is None else str(label) for label in row) for row in zip(*levels, strict=True)
    )
    return [list(row) for row in rows]


WORDS = {  # the validator's name of a problem, and what was expected
    "greater_than_equal": "a number of at least {ge}",
    "greater_than": "a number above {gt}",
    "less_than_equal": "a number of at most {le}",
    "less_than": "a number below {lt}",
    "finite_number": "a finite number",
    "literal_error": "one of: {expected}",
    "enum": "one of: {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "a text in quotation marks",
    "string_too_short": "a text of at least {min_length}",
    "string_too_long": "a text of at most {max_length}",
    **dict.fromkeys(("tuple_type", "list_type", "set_type"), "a list in square brackets"),
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "a table of keys and values"),
}


def explained(error: ValidationError, root: type[Settings]) -> StudyError:
    """Return the first problem of a run file whose sections are the fields of `root`.

    A key that is missing is often one that is misspelt, so an unknown key comes first.
    """
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    path = list(problem["loc"])
    if len(path) > 3 and path[2] == "hierarchy":  # followed by the name of a branch of the union
        path = path[:3] + (path[4:] if path[3] in BRANCHES else path[3:])
    if len(path) > 1 and isinstance(path[-2], int) and path[-1] == "str":  # one branch of what an entry can be
        path = path[:-1]
    where = _place(path)
    if problem["type"] == "extra_forbidden":
        return StudyError(
            f'unknown key "{path[-1]}"' + (f" in [{'.'.join(map(str, path[:-1]))}]" if path[:-1] else ""),
            expected="a key of the run file",
            remedy=nearest(str(path[-1]), keys_at(root, path[:-1])),
        )
    if problem["type"] == "missing":
        return StudyError(f'the key "{where}" is missing', expected=f"a value for {where}")
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return StudyError(f"{where} is not understood", expected="a file, or build = one of: " + ", ".join(RECIPES))
    given = problem["input"]
    shown = f" = {given!r}" if isinstance(given, str | int | float) else ""
    remedy = nearest(given, [str(role) for role in Role]) if path[-1:] == ["role"] and isinstance(given, str) else ""
    return StudyError(f"{where}{shown} is not valid", expected=in_words(problem), remedy=remedy)


def _place(path: Sequence[str | int]) -> str:
    """Return the position of a value in a run file, where entries of a list are counted from 1.

    >>> _place(["local", "k", 0]), _place(["groups", "auxiliary", 1, "path"])
    ('entry 1 of local.k', 'path in entry 2 of groups.auxiliary')
    """
    last = max((place for place, part in enumerate(path) if isinstance(part, int)), default=-1)
    if last < 1:
        return ".".join(map(str, path))
    inside, behind = _place(path[:last]), ".".join(map(str, path[last + 1 :]))
    return f"{behind} in " * bool(behind) + f"entry {int(path[last]) + 1} of {inside}"


def in_words(problem: Mapping[str, Any]) -> str:
    """Return what a validator expected, in our words where there are some, or else in its own.

    >>> in_words({"type": "greater_than_equal", "ctx": {"ge": 1}, "msg": ""})
    'a number of at least 1'
    >>> in_words({"type": "other", "msg": "Input should be a valid date"})
    'a valid date'
    """
    context = dict(problem.get("ctx", {}))
    for name in ("ge", "gt", "le", "lt"):
        if isinstance(context.get(name), float):
            context[name] = f"{context[name]:g}"
    counts = ("character", "characters") if problem["type"].startswith("string") else ("entry", "entries")
    for name in ("min_length", "max_length"):
        if name in context:
            context[name] = counted(int(context[name]), *counts)
    if problem["type"] in WORDS:
        return WORDS[problem["type"]].format(**context)
    return str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")


def keys_at(root: type[Settings], path: Sequence[str | int]) -> list[str]:
    """Return the known keys at a path inside a section: those of every section that is possible there.

    >>> from sfumato.study.sections import ColumnSettings
    >>> keys_at(ColumnSettings, [])[:3]
    ['role', 'hierarchy', 'missing']
    >>> "bins" in keys_at(ColumnSettings, ["hierarchy"])
    True
    """
    kinds: list[object] = [root]
    for part in path:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Settings)]
    return list(dict.fromkeys(key for section in sections for key in section.model_fields))


def _inside(kind: object, part: str | int) -> Iterator[object]:
    """Yield the possible types after one part of a path. A part that is no field is the name of a union's branch."""
    if isinstance(kind, type) and issubclass(kind, Settings):
        field = kind.model_fields.get(str(part))
        yield from [kind] if field is None else _alternatives(field.annotation)
    elif get_args(kind):  # of a mapping the values, of a sequence the items
        yield from _alternatives(get_args(kind)[1 if get_origin(kind) is dict else 0])


def _alternatives(annotation: object) -> Iterator[object]:
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for one in get_args(annotation):
            yield from _alternatives(one)
    else:
        yield annotation
