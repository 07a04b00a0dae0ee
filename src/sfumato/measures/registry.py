"""The registry of all measures, and each measure as a function of a table: `sf.measures.k(df, ["age", "zip"])`.

A new measure is a new file in `privacy/` or `loss/`, or a new `Measure` in the file of its family. Code for one
particular measure, such as a rule of the policy, imports it from here. All other code reads the properties of measures.

A function has the name of its measure, one of its aliases, or the short name `l` or `t`. The table is a frame or the
path of a file, and is measured without a change to it. Only the named columns are read.

>>> import pyarrow
>>> people = pyarrow.table({"age": [31, 31, 42, 42], "zip": [1, 1, 2, 2], "ill": ["flu", "none", "flu", "flu"]})
>>> import sfumato as sf
>>> sf.measures.k(people, ["age", "zip"]), sf.measures.l(people, ["age", "zip"], "ill")
(2, 1)
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import MeasureError, nearest
from sfumato.measures import loss, privacy
from sfumato.measures.classes import classify
from sfumato.measures.fast_paths import Form
from sfumato.measures.loss.cells import GENERAL_LOSS as GENERAL_LOSS
from sfumato.measures.loss.cells import GENERALIZATION_LOSS as GENERALIZATION_LOSS
from sfumato.measures.loss.cells import SUPPRESSION_LOSS as SUPPRESSION_LOSS
from sfumato.measures.loss.table_error import TABLE_ERROR as TABLE_ERROR
from sfumato.measures.measure import Measure
from sfumato.measures.privacy.class_size import WEIGHTED_K as WEIGHTED_K
from sfumato.measures.privacy.class_size import K as K
from sfumato.measures.privacy.closeness import T_CLOSENESS as T_CLOSENESS
from sfumato.measures.privacy.diversity import DISTINCT_L as DISTINCT_L
from sfumato.measures.privacy.diversity import WEIGHTED_L as WEIGHTED_L
from sfumato.measures.privacy.risk import HOUSEHOLDS as HOUSEHOLDS
from sfumato.measures.privacy.risk import PROSECUTOR_RISK as PROSECUTOR_RISK

if TYPE_CHECKING:
    from sfumato.data.settings import Missing
    from sfumato.study.declaration import Names


@cache
def modules() -> tuple[ModuleType, ...]:
    """Return the modules that define measures, sorted by name, privacy first."""
    result = []
    for package in (privacy, loss):
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
            result.append(importlib.import_module(f"{package.__name__}.{info.name}"))
    return tuple(result)


def measures_of(module: ModuleType) -> tuple[Measure, ...]:
    """Return the measures of a module in their order: its variables, and those in `MEASURES`."""
    named = [value for value in vars(module).values() if isinstance(value, Measure)]
    named += getattr(module, "MEASURES", ())
    return tuple({measure.name: measure for measure in named}.values())


@cache
def known_measures() -> dict[str, Measure]:
    """Return all measures by name: first of class sizes and risk, then of sensitive values, then of loss.

    Returns:
        The measures by name.

    >>> known_measures()["k"].direction
    'max'
    """
    result: list[Measure] = []
    for module in modules():
        result.extend(measures_of(module))
    result.sort(key=lambda measure: (measure.kind != "privacy", measure.reads == "sensitive"))
    return {measure.name: measure for measure in result}


@cache
def names() -> dict[str, str]:
    """Return the name of the measure for each name and alias.

    >>> names()["p_sensitive"]
    'distinct_l'
    """
    return {name: result.name for result in known_measures().values() for name in result.names}


def measure(name: str) -> Measure:
    """Return a measure by its name or an alias.

    Args:
        name: a name or an alias.

    Returns:
        The measure.

    >>> measure("distinct_l").about.title
    'distinct ℓ-diversity'
    >>> measure("below_2").name
    'uniques'
    """
    if name not in names():
        raise MeasureError(f'unknown measure "{name}"', expected="a measure", remedy=nearest(name, names()))
    return known_measures()[names()[name]]


def with_settings(given: Mapping[str, Mapping[str, float | str]]) -> dict[str, Measure]:
    """Return every measure with its parameters in a run file. Raise if the run file names an unknown measure."""
    for name in given:
        if name not in names():
            what = f'unknown measure "{name}" in [measures]'
            raise MeasureError(what, expected="a measure", remedy=nearest(name, names()))
    return {name: result.with_settings(given) for name, result in known_measures().items()}


def headlines() -> list[Measure]:
    """Return the measures that an audit shows first, in their order."""
    found = [(measure.about.headline, measure) for measure in known_measures().values() if measure.about.headline]
    return [measure for _, measure in sorted(found, key=lambda pair: pair[0])]


def attackers() -> list[Measure]:
    """Return the measures of an attacker's success."""
    return [measure for measure in known_measures().values() if measure.about.attacker]


def documented() -> dict[str, list[str]]:
    """Return the rows of docs/measures.md for each kind of measure, with the header first."""
    heads = ["| name | measure | better | moves | what it says | source |", "|---|---|---|---|---|---|"]
    rows: dict[str, list[str]] = {"privacy": [*heads], "loss": [*heads]}
    for result in known_measures().values():
        called, about = ", ".join(f"`{name}`" for name in result.names), result.about
        better = "more" if result.direction == "max" else "less"
        cells = [called, about.title, better, result.monotone or "either way", about.sentence, about.citation]
        rows[result.kind].append(f"| {' | '.join(cells)} |")
    return rows


# The measure of each figure of a histogram.
OF_FORM: dict[Form, Measure] = {
    Form.SIZE: K,
    Form.DIVERSITY: DISTINCT_L,
    Form.MEAN_SIZE: WEIGHTED_K,
    Form.MEAN_DIVERSITY: WEIGHTED_L,
}


SHORT = {"l": DISTINCT_L.name, "t": T_CLOSENESS.name}


def function_names() -> list[str]:
    """Return the names of all functions."""
    return sorted({*names(), *SHORT})


@cache
def function_named(name: str) -> Callable[..., float]:
    """Return the function of a measure."""
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
        hierarchies: Mapping[str, object] | None = None,
        **parameters: float | str,
    ) -> float:
        from sfumato.study.study import named_columns, study_of_columns  # the properties of measures need no tables

        roles: dict[str, Any] = {"quasi_identifiers": quasi_identifiers, "sensitive": sensitive}
        roles |= {"label": label, "weight": weight, "na": tuple(na), "missing": missing}
        study = study_of_columns(table, roles).with_hierarchies(hierarchies or {})
        if distance is not None:
            stated = {name: {"role": "sensitive", "distance": distance} for name in named_columns(sensitive)}
            study = study.with_settings({"columns": stated})
        figure = result.with_parameters(parameters).value(classify(study.table()))
        whole = result.about.unit == "count" and figure == figure and abs(figure) < 1e300
        return int(figure) if whole else float(figure)

    value.__name__ = value.__qualname__ = name
    value.__doc__ = _described(result)
    return value


def _described(result: Measure) -> str:
    own = "".join(f"\n    {name}: {default!r} unless given." for name, default in result.parameters.items())
    return (
        f"{result.about.title}: {result.about.sentence}\n\n"
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
        f"{own}\n\nReturns:\n    The figure. {result.about.citation}"
    )
