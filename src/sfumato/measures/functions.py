"""Every measure as a plain function of a table: `sf.measures.k(df, ["age", "zip"])`.

A function has the name of its measure, one of its other names, or `l` and `t` for short. The table is
measured as it stands. It may be a frame or the path of a file, and only the columns that are named are read.

>>> import pyarrow
>>> people = pyarrow.table({"age": [31, 31, 42, 42], "zip": [1, 1, 2, 2], "ill": ["flu", "none", "flu", "flu"]})
>>> import sfumato as sf
>>> sf.measures.k(people, ["age", "zip"]), sf.measures.l(people, ["age", "zip"], "ill")
(2, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from sfumato.errors import StudyError, nearest
from sfumato.measures.classes import classify
from sfumato.measures.measure import Measure
from sfumato.measures.registry import measure, names
from sfumato.measures.standard import DISTINCT_L, T_CLOSENESS
from sfumato.sources.frames import Frame, is_frame
from sfumato.sources.opening import open_source
from sfumato.sources.settings import DataSettings, Missing
from sfumato.study import Study
from sfumato.study.declaring import Names, table_settings

SHORT = {"l": DISTINCT_L.name, "t": T_CLOSENESS.name}


def function_names() -> list[str]:
    """Every name that a function can be called by."""
    return sorted({*names(), *SHORT})


@cache
def function_named(name: str) -> Callable[..., float]:
    """The function of a measure."""
    result = measure(SHORT.get(name, name))

    def value(
        table: Any,
        quasi_identifiers: Names,
        sensitive: Names = (),
        *,
        label: str | None = None,
        weight: str | None = None,
        na: Sequence[str] = (),
        missing: Missing = "category",
        distance: Literal["equal", "ordered", "hierarchical"] | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> float:
        roles: dict[str, Any] = {"quasi_identifiers": quasi_identifiers, "sensitive": sensitive}
        roles |= {"label": label, "weight": weight, "na": tuple(na), "missing": missing}
        study = _study(table, roles).with_hierarchies(hierarchies or {})
        if distance is not None:
            stated = {name: {"role": "sensitive", "distance": distance} for name in _listed(sensitive)}
            study = study.with_settings({"columns": stated})
        figure = result.with_parameters(parameters).value(classify(study.table()))
        return int(figure) if result.unit == "count" and figure == figure and abs(figure) < 1e300 else float(figure)

    value.__name__ = value.__qualname__ = name
    value.__doc__ = _described(result)
    return value


def _described(result: Measure) -> str:
    own = "".join(f"\n    {name}: {default!r} unless given." for name, default in result.parameters.items())
    return (
        f"{result.title}: {result.sentence}\n\n"
        "A record whose quasi-identifiers are all `*` counts as suppressed, as in a release.\n\n"
        "Args:\n"
        "    table: a frame (pandas, polars, pyarrow, …) or the path of a file.\n"
        "    quasi_identifiers: the columns that outsiders may know.\n"
        "    sensitive: the sensitive columns; of several, the worst figure counts.\n"
        "    label: the label column, for measures of classification.\n"
        "    weight: the column with survey weights.\n"
        "    na: texts that mean missing.\n"
        "    missing: a missing value is a value of its own unless given, as in pandas with dropna=False.\n"
        "    distance: of t-closeness: equal, ordered or hierarchical.\n"
        "    hierarchies: a hierarchy for each quasi-identifier, for measures of loss."
        f"{own}\n\nReturns:\n    The figure. {result.citation}"
    )


def _listed(given: Names) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _study(table: Any, roles: Mapping[str, Any]) -> Study:
    """A study of the named columns; nothing is released, so the others are left out."""
    if is_frame(table):
        there = Frame(table).table().column_names
    else:
        there = list(open_source(DataSettings.checked(**table_settings(table, {}, {}))).names)
    named = [*_listed(roles["quasi_identifiers"]), *_listed(roles["sensitive"])]
    named += [name for name in (roles["label"], roles["weight"]) if name is not None]
    absent = [name for name in named if name not in there]
    if absent:
        raise StudyError(
            f'the table has no column "{absent[0]}"', expected="columns of the table", remedy=nearest(absent[0], there)
        )
    return Study(table, **roles, drop=[name for name in there if name not in named])
