"""What a run file says, section by section: the fields of a study, checked together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from sfumato.errors import StudyError
from sfumato.notebook.tabular import KINDS
from sfumato.runtime.settings import Settings
from sfumato.sources.address import IN_MEMORY, is_database
from sfumato.sources.frames import Frame
from sfumato.sources.opening import open_source
from sfumato.sources.roles import Role
from sfumato.sources.settings import DataSettings, EngineOptions, Missing
from sfumato.sources.source import Source
from sfumato.sources.treatment import Treatment, treated
from sfumato.study.cells import CellsSettings
from sfumato.study.channel import ChannelSettings
from sfumato.study.groups import GroupsSettings
from sfumato.study.local import LocalSettings
from sfumato.study.policy import REASON_EXPECTED, PolicySettings, reason_given
from sfumato.study.sections import ColumnSettings, ReleaseSettings, SearchSettings
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.missing import KEYED


class Declaration(Settings):
    """The sections of a run file, the folder its paths are relative to, and the table where it is in memory."""

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

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        """What a row is, is said once: by a column, or by the statement that every row is a person."""
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

    def opened(self) -> Source:
        """The table, without asking a role of every column; treated where columns are."""
        return treated(open_source(self.data, self._folder, self._frame), self.treatments)

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
    def treatments(self) -> dict[str, Treatment]:
        """The columns whose released values are rounded or put in bands."""
        declared = {name: Treatment.of(column.round, column.bands) for name, column in self.columns.items()}
        return {name: treatment for name, treatment in declared.items() if treatment is not None}

    @property
    def complete_columns(self) -> list[str]:
        """The columns whose missing values leave a row out."""
        return [n for n, c in self.columns.items() if c.role in KEYED and self.missing_rule(n) == "drop"]
