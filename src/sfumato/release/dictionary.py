"""The data dictionary of a release: each column, its role, what was done to it, and which value became which label."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sfumato.hierarchies.labels import interval, number
from sfumato.measures.classes import ClassTable
from sfumato.release.columns import ColumnRecode
from sfumato.release.labels import is_public
from sfumato.sources.cells import MISSING
from sfumato.sources.roles import Role
from sfumato.study import Study

UNLISTED = (
    "The original values in each group are not listed, because the list would show which of them occur in the data."
)
HOW = {
    "level": "",
    "nodes": " of its hierarchy, which need not be on one level of it",
    "neighbours": " of neighbouring values",
}
MEANT = {Role.OTHER: "released rounded or in bands, and not counted in any privacy measure"}
SAID = {
    Role.SENSITIVE: "Unchanged. Its values are not listed here.",
    Role.LABEL: "Unchanged.",
    Role.WEIGHT: "Unchanged.",
    Role.OTHER: "Unchanged.",
}


def data_dictionary(
    study: Study,
    released: Sequence[str],
    columns: Mapping[str, ColumnRecode],
    data: str,
    left_out: int,
    occurring: Mapping[str, Collection[str]],
) -> dict[str, Any]:
    """The dictionary as JSON: labels that occur in the file, and what they stand for where that is public.

    Sensitive columns have no list of values.
    """
    described = []
    for name in released:
        role = study.columns[name].role
        entry: dict[str, Any] = {"name": name, "role": str(role), "meaning": role.meaning}
        if name in columns:
            entry |= _recoded(columns[name], occurring[name], is_public(study.columns[name]))
        else:
            entry |= kept_entry(study, name)
        described.append(entry)
    return {"file": data, "columns": described, "columns_left_out": left_out}


def kept_entry(study: Study, name: str) -> dict[str, str]:
    """What is said of a column that no plan recodes: it is released as it is, rounded or in bands."""
    role, treatment = study.columns[name].role, study.treatments.get(name)
    if treatment is None:
        return {"done": "kept", "words": SAID.get(role, "Unchanged.")}
    words = treatment.words() + (" Its values are not listed here." if role is Role.SENSITIVE else "")
    return {"done": treatment.done, "words": words, "meaning": MEANT.get(role, role.meaning)}


def treated_entries(study: Study, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The columns among some that are kept rounded or in bands, as `plain_dictionary` describes them."""
    treated = [name for name in names if name in study.treatments]
    return {name: {"role": "other", **kept_entry(study, name), "meaning": MEANT[Role.OTHER]} for name in treated}


def plain_dictionary(
    names: Sequence[str], changed: Mapping[str, Mapping[str, Any]], data: str, left_out: int
) -> dict[str, Any]:
    """The dictionary of a file most of whose columns are kept as they are; `changed` describes the others.

    >>> plain_dictionary(["age"], {}, "data.csv", 2)["columns"][0]["words"]
    'Unchanged.'
    """
    kept = {"role": "other", "meaning": "released unchanged", "done": "kept", "words": "Unchanged."}
    described = [{"name": name, **changed.get(name, kept)} for name in names]
    return {"file": data, "columns": described, "columns_left_out": left_out}


def labels_in(released: ClassTable) -> dict[str, set[str]]:
    """The labels of each quasi-identifier that occur in a released file."""
    return {
        domain.name: {label for label, count in zip(domain.labels, domain.counts.tolist(), strict=True) if count}
        for domain in released.table.domains
    }


def words_for(column: ColumnRecode, occurring: Collection[str]) -> str:
    """What was done to a quasi-identifier, in a sentence.

    >>> from sfumato.hierarchies.hierarchy import flat
    >>> words_for(ColumnRecode("sex", flat("sex", ["F", "M"]), 1), {"*"})
    'Hidden: every value is replaced by *.'
    """
    if column.hidden:
        return f"Hidden: every value is replaced by {column.tree.root}."
    if column.level == 0:
        return "Unchanged."
    groups = len(_shown(column, occurring))
    return f"Grouped into {'one group' if groups == 1 else f'{groups:,} groups'}{HOW[column.joined]}."


def _recoded(column: ColumnRecode, occurring: Collection[str], public: bool) -> dict[str, Any]:
    done = "hidden" if column.hidden else "kept" if column.level == 0 else "generalized"
    entry: dict[str, Any] = {"done": done, "words": words_for(column, occurring)}
    if column.missing_stays and column.labels[column.kept_group] in occurring:
        entry["missing"] = "Missing values remain missing."
    if done != "generalized":
        return entry
    shown = _shown(column, occurring)
    if not public:
        return entry | {"labels": shown, "note": UNLISTED}
    pairs = zip(column.tree.leaves, column.released, strict=True)
    return entry | {"recode": {leaf: label for leaf, label in pairs if label in shown and leaf != MISSING}}


def _shown(column: ColumnRecode, occurring: Collection[str]) -> list[str]:
    """The labels that occur, a missing value apart, in an order that depends on them alone: numbers, then words."""
    kept = column.labels[column.kept_group] if column.missing_stays else MISSING
    labels = sorted(label for label in column.labels if label in occurring and label not in (MISSING, kept))
    lows = {label: _low(label) for label in labels}
    coded = sorted((low, label) for label, low in lows.items() if low is not None)
    return [*(label for _, label in coded), *(label for label, low in lows.items() if low is None)]


def _low(label: str) -> float | None:
    bounds = interval(label)
    return number(label) if bounds is None else bounds.low
