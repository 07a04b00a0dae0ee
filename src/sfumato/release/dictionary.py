"""The data dictionary of a release: each column, its role, its treatment, and which value became which label.

All entries are taken from the written file, so nothing is described that the file does not contain. The codebook of the
study adds the labels of columns and of the values that occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sfumato.base.text import percent
from sfumato.data.cells import cleaned
from sfumato.data.codebook import Codebook, ColumnLabels, group_label
from sfumato.data.engine import Engine
from sfumato.data.settings import Role
from sfumato.data.source import Column, Source
from sfumato.measures.classes import ClassTable
from sfumato.release.columns import ReleasedColumn, is_public
from sfumato.release.format import Entry, layout_of
from sfumato.study import Study

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
    columns: Mapping[str, ReleasedColumn],
    data: str,
    left_out: int,
    occurring: Mapping[str, Mapping[str, int]],
) -> dict[str, object]:
    """Return the dictionary as JSON: the labels that occur in the file, and their values if these are public.

    Sensitive columns have no list of values. `occurring` holds the number of records of each label.
    """
    described = []
    for name in released:
        if name not in study.columns:
            described.append(_bound_entry(name))
            continue
        role = study.columns[name].role
        entry: dict[str, object] = {"name": name, "role": str(role), "meaning": role.meaning}
        if name in columns:
            column, counts = columns[name], occurring[name]
            entry |= column.entry(counts, is_public(study.columns[name]), blanked_share(column, counts))
        else:
            entry |= kept_entry(study, name)
        described.append(entry)
    return {"file": data, "columns": described, "columns_left_out": left_out}


def _bound_entry(name: str) -> dict[str, object]:
    """Return the entry of a column that holds one end of the ranges of another column."""
    column, _, end = name.rpartition("_")
    words = f"The {'lowest' if end == 'low' else 'highest'} value of the label of {column}; empty where all is hidden."
    return {
        "name": name,
        "role": "other",
        "meaning": f"end of the range of {column}",
        "done": "derived",
        "words": words,
    }


def blanked_share(column: ReleasedColumn, counts: Mapping[str, int]) -> str:
    """Return the share of released records with a blank in a column, in words, empty if there are none."""
    share = guarded_share(counts.get(column.root or "", 0), sum(counts.values())) if column.root else 0.0
    if share == 0.0:
        return ""
    words = share if isinstance(share, str) else percent(share)
    return words if words.endswith("records") else f"{words} of the records"


def kept_entry(study: Study, name: str) -> dict[str, str]:
    """Return the entry of a column that no plan recodes: it is released unchanged, rounded or in bands."""
    role, treatment = study.columns[name].role, study.treatments.get(name)
    if treatment is None:
        return {"done": "kept", "words": SAID.get(role, "Unchanged.")}
    words = treatment.words() + (" Its values are not listed here." if role is Role.SENSITIVE else "")
    return {"done": treatment.done, "words": words, "meaning": MEANT.get(role, role.meaning)}


def treated_entries(study: Study, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the entries of columns that are rounded or in bands, as `plain_dictionary` describes them."""
    treated = [name for name in names if name in study.treatments]
    return {name: {"role": "other", **kept_entry(study, name), "meaning": MEANT[Role.OTHER]} for name in treated}


def plain_dictionary(names: Sequence[str], changed: Mapping[str, Entry], data: str, left_out: int) -> dict[str, object]:
    """Return the dictionary of a file with mostly unchanged columns. `changed` describes the others.

    >>> plain_dictionary(["age"], {}, "data.csv", 2)["columns"][0]["words"]
    'Unchanged.'
    """
    kept = {"role": "other", "meaning": "released unchanged", "done": "kept", "words": "Unchanged."}
    described = [{"name": name, **changed.get(name, kept)} for name in names]
    return {"file": data, "columns": described, "columns_left_out": left_out}


def labels_in(released: ClassTable) -> dict[str, dict[str, int]]:
    """Return the labels of each quasi-identifier that occur in a released file, with their records."""
    return {
        domain.name: {label: n for label, n in zip(domain.labels, domain.counts.tolist(), strict=True) if n}
        for domain in released.table.domains
    }


SMALL = 10


def guarded(count: int) -> int | str:
    """Return a count, or words in place of a small one.

    >>> guarded(120), guarded(3), guarded(0)
    (120, 'fewer than 10', 0)
    """
    return "fewer than 10" if 0 < count < SMALL else count


def guarded_share(part: int, whole: int, what: str = "records") -> float | str:
    """Return a share in thousandths, or words if few records, or few persons, are behind it.

    >>> guarded_share(301, 30162), guarded_share(4, 30162), guarded_share(0, 100)
    (0.01, 'fewer than 10 records', 0.0)
    """
    if 0 < part < SMALL:
        return f"fewer than 10 {what}"
    share = round(part / max(whole, 1), 3)
    return "less than 0.1 %" if part and not share else share


UNLISTED_ROLES = ("sensitive", "disguised")  # roles whose values no dictionary lists
MOST_VALUES = 5_000
KINDS = {
    "whole": "^-?(0|[1-9][0-9]*)$",
    "number": "^-?(0|[1-9][0-9]*)([.][0-9]+)?$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
}


def described(engine: Engine, written: Source, dictionary: Entry, book: Codebook, study: Study) -> dict[str, object]:
    """Return a dictionary completed by the codebook and by the cells of the file.

    The codebook has the labels of columns and values. The file shows which values occur, the kind of each column, and
    how a text file is written. The study describes the release.
    """
    engine.attach(written, "described")
    columns = []
    kinds = _kinds(engine, written)
    for entry in dictionary["columns"]:
        about = book.column(entry["name"])
        column = written.column(entry["name"])
        result: dict[str, object] = {"kind": kinds[entry["name"]]}
        if about.label:
            result["label"] = about.label
        if about.values and entry["role"] not in UNLISTED_ROLES:
            occurring = _values(engine, written, column)
            labels = {value: group_label(value, about.values) for value in occurring}
            result |= {"values": labels} if (labels := {v: label for v, label in labels.items() if label}) else {}
            missing = [value for value in labels if about.means_missing(value)]
            result |= {"missing_values": missing} if missing else {}
        columns.append({**entry, **result})
    title = study.release.model_dump(mode="json", exclude_none=True)
    layout = layout_of(written, str(dictionary["file"]))
    said = {"layout": layout, "about": title}
    return {**dictionary, "columns": columns, **{name: entry for name, entry in said.items() if entry}}


def codebook_of(dictionary: Entry) -> Codebook:
    """Return the labels in a dictionary, from which it can be made a second time for the same file."""
    return Codebook(
        {
            str(entry["name"]): ColumnLabels(
                str(entry.get("label", "")),
                {str(value): str(label) for value, label in entry.get("values", {}).items()},
                tuple(map(str, entry.get("missing_values", ()))),
            )
            for entry in dictionary["columns"]
        }
    )


def _text(written: Source, column: Column) -> str:
    """Return a cell as text, including codes that mean missing."""
    plain = replace(written, codebook=Codebook(), settings=written.settings.model_copy(update={"na": ()}))
    return cleaned(plain, column)


def _values(engine: Engine, written: Source, column: Column) -> list[str]:
    text = _text(written, column)
    rows = engine.rows(
        f"SELECT DISTINCT v FROM (SELECT {text} AS v FROM described) AS t WHERE v IS NOT NULL "
        f"ORDER BY v LIMIT {MOST_VALUES}"
    )
    return [str(value) for (value,) in rows]


def _kinds(engine: Engine, written: Source) -> dict[str, str]:
    """Return the kind of each column, the narrowest that fits all cells, in one scan: whole, number, date or text."""
    sums = []
    for position in range(len(written.columns)):
        sums.append(f"count(v{position})")
        sums += [
            f"sum(CASE WHEN regexp_replace(v{position}, '{pattern}', '') = '' THEN 1 ELSE 0 END)"
            for pattern in (pattern.replace("[.]", f"[{written.decimal}]") for pattern in KINDS.values())
        ]
    cells = ", ".join(f"{cleaned(written, column)} AS v{position}" for position, column in enumerate(written.columns))
    counts = engine.rows(f"SELECT {', '.join(sums)} FROM (SELECT {cells} FROM described) AS t")[0]
    width = 1 + len(KINDS)
    result = {}
    for position, column in enumerate(written.columns):
        if written.format == "parquet" and column.is_text:  # typed: digits in a column of text are text
            result[column.name] = "text"
            continue
        there, *fitting = counts[position * width : (position + 1) * width]
        narrow = (kind for kind, count in zip(KINDS, fitting, strict=True) if there and count == there)
        result[column.name] = next(narrow, "text")
    return result
