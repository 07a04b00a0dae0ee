"""What a data dictionary says of columns beyond what was done to them: labels, labels of values that occur, kinds.

All is taken from the written file, so that nothing is described that is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.release.layout import layout_of
from sfumato.sources.cells import cleaned
from sfumato.sources.codebook import Codebook, ColumnLabels, group_label
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Column, Source
from sfumato.study import Study

UNLISTED = ("sensitive", "disguised")  # roles whose values no dictionary lists
MOST_VALUES = 5_000
KINDS = {
    "whole": "^-?(0|[1-9][0-9]*)$",
    "number": "^-?(0|[1-9][0-9]*)([.][0-9]+)?$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
}


def described(
    engine: Engine, written: Source, dictionary: Mapping[str, Any], book: Codebook, study: Study
) -> dict[str, Any]:
    """A dictionary with the labels of its columns, the labels of values that occur, the kind of each column, how a text
    file is laid out, and what the study says of the release as a whole."""
    engine.attach(written, "described")
    columns = []
    kinds = _kinds(engine, written)
    for entry in dictionary["columns"]:
        about = book.column(entry["name"])
        column = written.column(entry["name"])
        result: dict[str, Any] = {"kind": kinds[entry["name"]]}
        if about.label:
            result["label"] = about.label
        if about.values and entry["role"] not in UNLISTED:
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


def codebook_of(dictionary: Mapping[str, Any]) -> Codebook:
    """The labels that a dictionary lists: with them it can be made again from the file it describes."""
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
    """A cell as text, codes that mean missing included."""
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
    """The kind of each column: whole, number, date or text, the narrowest that all cells are. One scan for all."""
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
