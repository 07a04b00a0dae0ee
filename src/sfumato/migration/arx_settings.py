"""The settings of an ARX project in the words of a run file: privacy models, quality model, limits."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

NUMBER = r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)"
FOR = r" for attribute '(.*)'"
ENTROPY = r"(?:shannon-|grassberger-)?entropy-"


@dataclass
class Demands:
    """What the privacy models of a project ask for, and what of them could not be carried over."""

    constraints: dict[str, float] = field(default_factory=dict)
    measures: dict[str, dict[str, float | str]] = field(default_factory=dict)
    distances: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def demand(self, name: str, value: float, attribute: str | None = None, *, lower: bool = False) -> None:
        """A limit on a measure; of two, the stricter one holds."""
        before = self.constraints.get(name)
        stricter = value if before is None else (min if lower else max)(before, value)
        if before is not None and before != value:
            self.notes.append(f"{name} was asked for as {before:g} and as {value:g}: the stricter one holds for all")
        self.constraints[name] = int(stricter) if stricter == int(stricter) else stricter
        if attribute is not None:
            self.attributes.setdefault(name, set()).add(attribute)


def demands(criteria: Sequence[str]) -> Demands:
    """The privacy models of a project, as its `config.xml` writes them.

    >>> found = demands(["5-anonymity", "recursive-(3.0,2)-diversity for attribute 'ill'", "(0.1,0.2)-presence"])
    >>> found.constraints, found.measures, found.notes
    ({'k': 5, 'recursive_l': 2}, {'recursive_l': {'c': 3.0}}, ['not carried over: (0.1,0.2)-presence'])
    """
    result = Demands()
    for criterion in criteria:
        if not _carried(result, criterion):
            result.notes.append(f"not carried over: {criterion}")
    return result


def _carried(result: Demands, criterion: str) -> bool:
    """Whether there is the same here; if so, it is demanded."""
    if match := re.fullmatch(rf"{NUMBER}-anonymity", criterion):
        result.demand("k", float(match[1]))
    elif match := re.fullmatch(rf"distinct-{NUMBER}-diversity{FOR}", criterion):
        result.demand("distinct_l", float(match[1]), match[2])
    elif match := re.fullmatch(rf"{ENTROPY}{NUMBER}-diversity{FOR}", criterion):
        if criterion.startswith("grassberger"):
            return False
        result.demand("entropy_l", float(match[1]), match[2])
    elif match := re.fullmatch(rf"recursive-\({NUMBER}, ?{NUMBER}\)-diversity{FOR}", criterion):
        result.demand("recursive_l", float(match[2]), match[3])
        result.measures["recursive_l"] = {"c": float(match[1])}
    elif match := re.fullmatch(rf"{NUMBER}-closeness with (equal|hierarchical|ordered) distance{FOR}", criterion):
        result.demand("t_closeness", float(match[1]), match[3], lower=True)
        result.distances[match[3]] = match[2]
    elif match := re.fullmatch(rf"{NUMBER}-(basic|enhanced)[- ](?:beta-)?likeness{FOR}", criterion):
        name = "beta_likeness" if match[2] == "basic" else "enhanced_beta"
        result.demand(name, float(match[1]), match[3], lower=True)
    elif match := re.fullmatch(rf"{NUMBER}-disclosure privacy{FOR}", criterion):
        result.demand("delta_disclosure", float(match[1]) * math.log(2), match[2], lower=True)
        result.measures["delta_disclosure"] = {"absent": "ignored"}
        result.notes.append("δ is in bits in ARX: it was multiplied by ln 2; values that a class lacks are ignored")
    else:
        return False
    return True


QUALITY = {  # a word of ARX's quality model, and the measure that is the same or nearest
    "loss": "arx_loss",
    "precision": "precision",
    "discernab": "discernibility",
    "non-uniform entropy": "non_uniform_entropy",
    "average equivalence class": "average_class_size",
    "aecs": "average_class_size",
}


def objective(metric: str) -> tuple[str, list[str]]:
    """The measure to search by, and what should be known of the choice.

    >>> objective("Discernability")
    ('discernibility', [])
    """
    name = next((measure for word, measure in QUALITY.items() if word in metric.lower()), None)
    if name is None:
        return "general_loss", [f"the quality model {metric!r} has no like here: general loss is searched"]
    if name == "arx_loss":
        return name, ["the readable part of a project does not say how Loss is aggregated: the geometric mean is taken"]
    return name, []
