"""The study, which is the frozen and checked content of a run file; reading and writing of run files.

The summaries of a study, one line or a card for a notebook, contain no value of any column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sfumato.base.files import new_file, new_folder
from sfumato.base.notebook import card, parts_picture, some
from sfumato.base.settings import MAX_BYTES, Settings, parse_toml, toml_text, too_large
from sfumato.base.trust import note_input, note_unsealed, sealed
from sfumato.data.frame import Frame, is_frame
from sfumato.data.open import open_source, write_frame
from sfumato.data.settings import FOREIGN, IN_MEMORY, DataSettings, Missing, Role, located
from sfumato.errors import SfumatoError, StudyError, counted, nearest
from sfumato.hierarchies.recipes import Declared, HierarchyFile, HierarchyPaths
from sfumato.study.declaration import (
    Declaration,
    Names,
    check_roles,
    declared_columns,
    declared_hierarchy,
    explained,
    table_settings,
)
from sfumato.study.methods import ALGORITHMS, METHODS, WITHIN
from sfumato.study.sections import ANY_SYSTEM, Acceptance, ColumnSettings

WORDS = {
    Role.QUASI_IDENTIFIER: "quasi-identifier",
    Role.SENSITIVE: "sensitive",
    Role.LABEL: "label",
    Role.WEIGHT: "weight",
    Role.OTHER: "kept",
    Role.IDENTIFIER: "identifier",
    Role.DROP: "dropped",
    Role.UNIT: "unit",
    Role.HOUSEHOLD: "household",
}
NOUNS = (Role.QUASI_IDENTIFIER, Role.IDENTIFIER)


def study_line(title: str, columns: Mapping[str, ColumnSettings]) -> str:
    """Return a study in one line: its table, and the number of columns by role.

    >>> study_line("people.csv", {"age": ColumnSettings(role=Role.QUASI_IDENTIFIER)})
    'Study of people.csv: 1 quasi-identifier'
    """
    counts = {role: sum(column.role is role for column in columns.values()) for role in WORDS}
    parts = [counted(n, WORDS[role]) if role in NOUNS else f"{n} {WORDS[role]}" for role, n in counts.items() if n]
    return f"Study of {title}: {', '.join(parts) or 'no columns declared'}"


def _tree_line(tree: Declared | None) -> str:
    if isinstance(tree, HierarchyPaths):
        return f"given, {counted(len(tree.paths[0]), 'level')}"
    if isinstance(tree, str | HierarchyFile):
        return Path(tree if isinstance(tree, str) else tree.path).name
    return "" if tree is None else str(tree.build)


def located_settings(study: Declaration) -> dict[str, Any]:
    """Return the settings that differ from the defaults, as a run file has them, with absolute paths."""
    settings = study.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    settings = {"version": study.version} | settings
    settings["data"]["path"] = located(study.data.path, study.folder)

    def there(path: object) -> str:
        return str((study.folder / str(path)).absolute())

    for name in ("data", "population"):
        for key in ("password_file", "codebook"):
            if settings.get(name, {}).get(key, FOREIGN) != FOREIGN:
                settings[name][key] = there(settings[name][key])
    if study.population is not None:
        settings["population"]["path"] = located(study.population.path, study.folder)
    if study.channel.prior is not None:
        settings["channel"]["prior"] = there(study.channel.prior)
    for given in settings.get("groups", {}).get("auxiliary", ()):
        given["path"] = located(given["path"], study.folder)
    for name, column in settings.get("columns", {}).items():
        tree = study.columns[name].hierarchy
        if FOREIGN in (tree, getattr(tree, "path", None)):
            continue
        if isinstance(tree, str):
            column["hierarchy"] = there(tree)
        elif isinstance(tree, HierarchyFile):
            column["hierarchy"]["path"] = there(tree.path)
    return settings


ROW = "row"  # as a unit, it states that every row is a person
SAVED = "table.parquet"  # the file of a table in memory, next to the run file


class Study(Declaration):
    """A table with the role of each column and the settings of a run file.

    The table is one of pandas, polars, pyarrow or DuckDB (anything with `__arrow_c_stream__`), or the path of a file.
    Every column is named once; `keep` are those released as they are, `drop` those left out. Other sections of a run
    file are given by their names.

    Args:
        table: the table, or a path. Left out, `data` says where it is.
        quasi_identifiers: columns that outsiders may know; these are recoded.
        sensitive: columns that must not be learned about a person.
        identifiers: columns that are never released because they name a person.
        drop: other columns that are never released.
        keep: columns that are released unchanged, and not counted in any measure.
        label: the column that an analyst predicts.
        weight: the column with the weight of each record.
        unit: the column that numbers the persons whom rows belong to, never released: figures then count persons. Or
            "row", which states that every row is a person of its own.
        household: the column that numbers households, never released.
        unit_reason: why every row is a person, with `unit="row"`; it goes into the report.
        na: texts that mean missing.
        missing: what is done with records that lack a value: "drop", "category" or "wildcard".
        **settings: other sections of a run file by their names, such as `policy={"k": 5}`.

    >>> import pyarrow
    >>> people = pyarrow.table({"age": [31, 35, 42], "ill": ["flu", "none", "flu"], "name": ["A", "B", "C"]})
    >>> Study(people, quasi_identifiers=["age"], sensitive=["ill"], drop=["name"])
    <Study of the table in memory: 1 quasi-identifier, 1 sensitive, 1 dropped>
    >>> visits = pyarrow.table({"age": [31, 31, 42], "ill": ["flu", "none", "flu"], "patient": [1, 1, 2]})
    >>> Study(visits, quasi_identifiers=["age"], sensitive=["ill"], unit="patient")
    <Study of the table in memory: 1 quasi-identifier, 1 sensitive, 1 unit>
    >>> study = Study(data={"path": "people.csv"}, columns={"age": {"role": "quasi_identifier"}})
    >>> study.columns["age"].role.value, study.data.missing
    ('quasi_identifier', 'category')
    """

    def __init__(
        self,
        table: object = None,
        /,
        *,
        quasi_identifiers: Names = (),
        sensitive: Names = (),
        identifiers: Names = (),
        drop: Names = (),
        keep: Names = (),
        label: str | None = None,
        weight: str | None = None,
        unit: str | None = None,
        household: str | None = None,
        unit_reason: str | None = None,
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
            Role.UNIT: unit if unit and unit != ROW else (),
            Role.HOUSEHOLD: household or (),
        }
        given_columns = settings.get("columns", {})
        columns = declared_columns(lists, given_columns) if isinstance(given_columns, Mapping) else None
        settings |= {"columns": columns} if columns else {}
        own = {"na": na, "missing": missing, "unit": ROW if unit == ROW else None, "unit_reason": unit_reason}
        given = {name: value for name, value in own.items() if value is not None}
        if table is not None or given:
            settings["data"] = table_settings(table, settings.get("data", {}), given)
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise explained(error, Study) from None
        if table is not None:
            self._frame = Frame(table) if is_frame(table) else None
            check_roles(self.columns, self.opened().names)

    def __repr__(self) -> str:
        return f"<{study_line(self.title, self.columns)}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        rows = [[name, str(column.role), _tree_line(column.hierarchy)] for name, column in self.columns.items()]
        counts = [(str(role).replace("_", "-"), float(len(self.named(role)))) for role in Role]
        return card(repr(self)[1:-1], ["column", "role", "hierarchy"], some(rows, 24), parts_picture(counts))

    def save(self, folder: str | Path) -> Path:
        """Write the study to a new folder that only its owner can read, and return its run file.

        The command line computes the same front from it. A table in memory is saved in the folder as Parquet with the
        same fingerprint, so a release of one is verified with the other.

        Args:
            folder: a folder that does not exist yet.

        Returns:
            The path of the run file.
        """
        folder = Path(folder).absolute()
        with new_folder(folder) as inside:
            settings = located_settings(self)
            if self._frame is not None:
                write_frame(self.opened(), inside / SAVED)
                settings["data"]["path"] = SAVED
            (inside / "run.toml").write_text(toml_text(settings), "utf-8")
            Study(**parse_toml((inside / "run.toml").read_bytes(), "run.toml"))  # raises if it cannot be read back
        return folder / "run.toml"

    def as_toml(self) -> str:
        """Return the study as the text of a run file with absolute paths, which is valid in any folder.

        Returns:
            The text of a run file.
        """
        return toml_text(located_settings(self))

    def with_table(self, table: object) -> Study:
        """Return the same study of another table.

        Args:
            table: a table in memory, or the path of a file.

        Returns:
            A new study.
        """
        settings = self.data.model_dump(exclude_unset=True, exclude={"table", "query", "password_file", "format"})
        changed = self._changed(data=table_settings(table, settings, {}))
        changed._frame = Frame(table) if is_frame(table) else None
        return changed

    def without_table(self) -> Study:
        """Return the same study without the table in memory, so that the result holds no records."""
        bare = self.model_copy()
        bare._frame = None
        return bare

    def with_hierarchies(self, given: Mapping[str, object] | None = None, /, **named: object) -> Study:
        """Return the same study with hierarchies for some columns.

        A hierarchy is the path of a file, a recipe (`sf.intervals(5, 10, 20)`, `sf.prefixes()`), a `Hierarchy`, a table
        whose columns are the levels, or a mapping from level to labels. Columns whose names are no Python names go into
        a mapping: `with_hierarchies({"marital-status": "marital.csv"})`.

        Args:
            given: hierarchies by column, where names are no Python names.
            **named: hierarchies by column.

        Returns:
            A new study; this one is unchanged.
        """
        columns: dict[str, object] = dict(self.columns)
        for name, hierarchy in {**(given or {}), **named}.items():
            if name not in self.columns:
                raise StudyError(
                    f'a hierarchy for "{name}", which is not a column of the study',
                    expected="columns that have a role",
                    remedy=nearest(name, self.columns),
                )
            tree = declared_hierarchy(name, hierarchy)
            columns[name] = self.columns[name].model_dump(exclude_unset=True) | {"hierarchy": tree}
        return self._changed(columns=columns)

    def with_search(self, **settings: object) -> Study:
        """Return the same study with other settings of [search].

        With another system, the settings that only the old system reads are left out.

        Args:
            **settings: settings of `[search]` by name.

        Returns:
            A new study.
        """
        system = settings.get("system") or self.system
        kept = self.search.model_dump(exclude_unset=True)
        if system != self.search.system:
            read = ANY_SYSTEM if system in ALGORITHMS else WITHIN.get(str(system), ())
            kept = {name: value for name, value in kept.items() if name in read} | {"system": system}
        return self._changed(search=kept | settings)

    def with_seed(self, seed: int) -> Study:
        """Return the same study with another seed, in the section that its system reads.

        Args:
            seed: a whole number from 0.

        Returns:
            A new study.
        """
        place = METHODS[self.system].seed
        return self.with_values([(place, seed)]) if place else self.with_search(seed=seed)

    def with_accepted(self, accepted: Sequence[Acceptance]) -> Study:
        """Return the same study with further acceptances, each with a reason.

        Args:
            accepted: rules of the policy that a release may break, each with its reason.

        Returns:
            A new study.
        """
        return self.replace(policy={"accept": (*self.policy.accept, *accepted)})

    def with_settings(self, settings: Mapping[str, object]) -> Study:
        """Return the same study with some settings changed: `{"channel": {"delta": 0.6}}`.

        Args:
            settings: sections of a run file, each with the settings that change.

        Returns:
            A new study.
        """
        return Study(**_merged(self.model_dump(exclude_unset=True, warnings=False), settings))._like(self)

    def with_values(self, values: Sequence[tuple[Sequence[str], object]]) -> Study:
        """Return the same study with single values changed, each by its path: `[(("channel", "delta"), 0.6)]`.

        Unlike with `with_settings`, a table replaces the old table. An empty table clears it.
        """
        settings = self.model_dump(exclude_unset=True, warnings=False)
        for path, value in values:
            inside = settings
            for name in path[:-1]:
                inside[name] = inside[name] if isinstance(inside.get(name), dict) else {}
                inside = inside[name]
            inside[path[-1]] = value
        return Study(**settings)._like(self)

    def replace(self, **sections: object) -> Study:
        """Return the same study with changed sections: `study.replace(channel={"delta": 0.6}, engine="spark")`.

        Args:
            **sections: sections of a run file by name. Settings in a mapping replace those of the same name and keep
                the others. A section object replaces the section.

        Returns:
            A new study.
        """
        for name, given in sections.items():
            held = getattr(self, name, None)
            if isinstance(given, Settings):
                sections[name] = given.model_dump(exclude_unset=True, warnings=False)
            elif isinstance(given, Mapping) and isinstance(held, Settings):
                sections[name] = held.model_dump(exclude_unset=True) | dict(given)
            elif name == "columns" and isinstance(given, Mapping):  # whole columns, checked like those of a run file
                changed = {column: one.model_dump(exclude_none=True, warnings=False) for column, one in given.items()}
                sections[name] = {**self.columns, **changed}
        return self._changed(**sections)

    def _changed(self, **sections: object) -> Study:
        """Return a copy with other sections, which are checked like those of a run file."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        return Study(**(kept | sections))._like(self)

    def placed(self, folder: Path) -> Study:
        """Return the same study with its paths relative to a folder."""
        copy = self.model_copy()
        copy._folder = folder
        return copy

    def _like(self, other: Study) -> Study:
        """Take the folder of another study, and its table if that is in memory."""
        self._folder = other._folder
        self._frame = other._frame if self.data.path == IN_MEMORY else None
        return self


def _merged(one: Mapping[str, Any], two: Mapping[str, object]) -> dict[str, Any]:
    """Return the entries of both, also inside sections. The second's value is taken where both have one."""
    both = dict(one)
    for name, value in two.items():
        inside = both.get(name)
        both[name] = _merged(inside, value) if isinstance(inside, Mapping) and isinstance(value, Mapping) else value
    return both


def read(path: str | Path) -> Study:
    """Read a run file. Its paths are relative to its folder.

    Args:
        path: the run file.

    Returns:
        The study that it declares.
    """
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
    return Study(**parse_toml(path.read_bytes(), path.name)).placed(path.parent)


def write_run_file(path: Path, text: str, *, overwrite: bool = False, private: bool = False) -> Path:
    """Write a run file. It gets its name only if it can be read back."""
    with new_file(path, overwrite=overwrite, private=private) as part:
        part.write_text(text, "utf-8")
        try:
            read(part)
        except StudyError as error:
            raise SfumatoError(
                f"the run file could not be read back: {error.what}", expected="a run file", remedy="please report it"
            ) from error
    return path


def named_columns(given: Names) -> list[str]:
    """Return the names of columns as a list. A text is one name."""
    return [given] if isinstance(given, str) else list(given)


def study_of_columns(table: object, roles: Mapping[str, Any]) -> Study:
    """Return a study of the named columns. Nothing is released, so all other columns are left out."""
    if is_frame(table):
        there = Frame(table).table().column_names
    else:
        there = list(open_source(DataSettings.checked(**table_settings(table, {}, {}))).names)
    named = [*named_columns(roles["quasi_identifiers"]), *named_columns(roles["sensitive"])]
    named += [name for name in (roles["label"], roles["weight"]) if name is not None]
    absent = [name for name in named if name not in there]
    if absent:
        raise StudyError(
            f'the table has no column "{absent[0]}"', expected="columns of the table", remedy=nearest(absent[0], there)
        )
    return Study(table, **roles, drop=[name for name in there if name not in named])


def read_kept(path: str | Path, run: str | Path | None = None) -> Study:
    """Read the run file in a saved folder, or another one (`run`) with the search of the folder's.

    The folder may come from an attacker. Unless this user sealed it, only its columns and searches are taken. The
    engine is the default one, and no table, hierarchy or address that it names is opened.
    """
    path = Path(path)
    known = sealed(path)
    if not known:
        note_unsealed(path.parent)
    study = read(path)
    if run is not None:
        return read(run).replace(search=study.search)
    return study if known else _foreign(study)


def without_trees(study: Study) -> Study:
    """Return the study without its hierarchy files. Whether a file is public is kept."""
    closed = {}
    for name, column in study.columns.items():
        if isinstance(column.hierarchy, str | HierarchyFile):
            public = isinstance(column.hierarchy, HierarchyFile) and column.hierarchy.public
            closed[name] = column.model_copy(update={"hierarchy": HierarchyFile(path=FOREIGN, public=public)})
    return study.replace(columns=closed)


def _foreign(study: Study) -> Study:
    """Return the study of a folder that this user did not seal, without anything that names a file or address."""
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
