"""Codebook of a table: labels of columns and values, and missing codes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

WHOLE = 1e15  # whole numbers below it are written without a fraction, as the engine does


def code_text(value: object) -> str:
    """Return a code as the clean text that a table is measured in: whole numbers without a fraction.

    >>> code_text(1.0), code_text(2.5), code_text(" M ")
    ('1', '2.5', 'M')
    """
    if isinstance(value, float) and value == value and abs(value) < WHOLE and value == int(value):
        return str(int(value))
    return str(value).strip()


@dataclass(frozen=True)
class ColumnLabels:
    """Labels of one column and its values, and the codes and ranges that mean missing.

    `format` is the display format of the file (`F8.2`, `%td`), `measure` the level of measurement as in SPSS.
    """

    label: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    format: str = ""
    measure: str = ""

    def only(self, occurring: Collection[str]) -> ColumnLabels:
        """Return the same with nothing about values that do not occur.

        >>> ColumnLabels(values={"1": "male", "2": "female"}, missing=("9",)).only({"1"})
        ColumnLabels(label='', values={'1': 'male'}, missing=(), ranges=(), format='', measure='')
        """
        return replace(
            self,
            values={value: label for value, label in self.values.items() if value in occurring},
            missing=tuple(code for code in self.missing if code in occurring),
            ranges=tuple(span for span in self.ranges if any(_inside(value, span) for value in occurring)),
        )

    def means_missing(self, value: str) -> bool:
        """Return whether a value means missing."""
        return value in self.missing or any(_inside(value, span) for span in self.ranges)


def _inside(value: str, span: tuple[float, float]) -> bool:
    try:
        return span[0] <= float(value) <= span[1]
    except ValueError:
        return False


NOTHING = ColumnLabels()


@dataclass(frozen=True)
class Codebook:
    """The labels of a table's columns, by name; a column without an entry has none.

    >>> book = Codebook({"sex": ColumnLabels("Sex", {"1": "male"})})
    >>> book.column("sex").label, book.shown("sex", "1"), book.shown("sex", "2"), bool(Codebook())
    ('Sex', '1 (male)', '2', False)
    """

    columns: Mapping[str, ColumnLabels] = field(default_factory=dict)
    title: str = ""

    def __bool__(self) -> bool:
        return any(column != NOTHING for column in self.columns.values())

    def column(self, name: str) -> ColumnLabels:
        return self.columns.get(name, NOTHING)

    def shown(self, column: str, value: str) -> str:
        """Return a value followed by its label, where the label differs from it."""
        return shown_value(value, self.column(column).values)

    def with_names(self, names: Mapping[str, str]) -> Codebook:
        """Return the same with columns renamed from old to new names."""
        return replace(self, columns={names.get(name, name): column for name, column in self.columns.items()})

    def over(self, other: Codebook) -> Codebook:
        """Return both codebooks together. This one takes precedence where both describe a column."""
        columns = dict(other.columns)
        for name, column in self.columns.items():
            below = columns.get(name, NOTHING)
            silent = not (column.missing or column.ranges)
            columns[name] = ColumnLabels(
                label=column.label or below.label,
                values={**below.values, **column.values},
                missing=below.missing if silent else column.missing,
                ranges=below.ranges if silent else column.ranges,
                format=column.format or below.format,
                measure=column.measure or below.measure,
            )
        return Codebook(columns, self.title or other.title)

    def without_formats(self) -> Codebook:
        """Return the same without display formats, for a file of another program."""
        return replace(self, columns={name: replace(column, format="") for name, column in self.columns.items()})

    @property
    def declares_missing(self) -> bool:
        """Whether any value is declared to mean missing."""
        return any(column.missing or column.ranges for column in self.columns.values())

    def as_dict(self) -> dict[str, dict[str, object]]:
        """Return the labels for machines."""
        return {
            name: {"label": column.label, "values": dict(column.values), "missing": list(column.missing)}
            for name, column in self.columns.items()
            if column != NOTHING
        }


def shown_value(value: str, labels: Mapping[str, str]) -> str:
    """Return a value followed by its label. A group `{1 | 2}` has the labels of its members, `[1 .. 4]` of its ends.

    >>> shown_value("1", {"1": "male"}), shown_value("{1 | 3}", {"1": "single", "3": "widowed"})
    ('1 (male)', '{1 | 3} (single | widowed)')
    """
    label = group_label(value, labels)
    return f"{value} ({label})" if label and label != value else value


def shown_values(values: Iterable[str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return how values are shown, for those that have a label.

    >>> shown_values(["1", "2"], {"1": "male"})
    {'1': '1 (male)'}
    """
    if not labels:
        return {}
    return {value: shown for value in values if (shown := shown_value(value, labels)) != value}


def group_label(value: str, labels: Mapping[str, str]) -> str:
    """Return the label of a value, or of a group as its members' or its ends' labels; empty where there is none.

    >>> group_label("{1 | 3}", {"1": "single", "3": "widowed"}), group_label("{1 | 4}", {"1": "single"})
    ('single | widowed', '')
    """
    if value in labels:
        return labels[value]
    if value.startswith("{") and value.endswith("}") and " | " in value:
        members = value[1:-1].split(" | ")
        if all(member in labels for member in members):
            return " | ".join(labels[member] for member in members)
    if value.startswith("[") and value.endswith("]") and " .. " in value:
        low, high = value[1:-1].split(" .. ", 1)
        if low in labels and high in labels:
            return f"{labels[low]} .. {labels[high]}"
    return ""
