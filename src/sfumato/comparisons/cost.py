"""What a recoding costs and what it gives: one row of a comparison of methods, measured the same way for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sfumato.measures.classes import ClassTable
from sfumato.measures.standard import DISTINCT_L, GENERAL_LOSS

TITLES = {
    "cuts": "cuts (ours)",
    "lattice": "lattice front (ours)",
    "lattice_optimum": "lattice optimum",
    "datafly": "Datafly",
    "mondrian_strict": "Mondrian, strict",
    "mondrian_relaxed": "Mondrian, relaxed",
    "mondrian_even": "Mondrian, evenly divided",
    "arx_local": "ARX 3.9.2, local",
}
LOCAL = (
    "mondrian_strict",
    "mondrian_relaxed",
    "mondrian_even",
    "arx_local",
)  # a value may carry different labels in different classes


@dataclass(frozen=True)
class Cost:
    """What a method reaches where a k is asked for, and at which price. Everything is None where it does not reach it.

    `loss` is the share of d·N, suppressed records with full loss; `l` the least number of different values of a
    sensitive column in a class; `labels_per_value` how many different labels a value carries on average (1 if the
    recoding is global), `table_error` the mean error of two-way tables where the recoding is local.
    """

    method: str
    asked: int
    k: int | None = None
    l: int | None = None
    loss: float | None = None
    suppressed: int | None = None
    classes: int | None = None
    labels_per_value: float | None = None
    table_error: float | None = None
    note: str = ""

    @property
    def title(self) -> str:
        return TITLES[self.method]

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON knows it.

        Returns:
            A dictionary.
        """
        return asdict(self)


@dataclass(frozen=True)
class Costs:
    """Methods side by side: a row for each method and each required k.

    `allowed` records may be suppressed; `l` is the diversity asked for; `notes` say what was left out and why; `how`
    says how each front was made; `labels` says which labels Mondrian may use: only recodings with the same labels
    compare.
    """

    rows: tuple[Cost, ...]
    records: int
    allowed: int
    l: int = 1
    notes: tuple[str, ...] = ()
    how: Mapping[str, str] = field(default_factory=dict)
    labels: str = ""

    def __iter__(self) -> Iterator[Cost]:
        return iter(self.rows)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of their titles' list."""
        held = {row.method for row in self.rows}
        return tuple(name for name in TITLES if name in held)

    @property
    def asked(self) -> tuple[int, ...]:
        """The required k, rising."""
        return tuple(sorted({row.asked for row in self.rows}))

    def row(self, method: str, asked: int) -> Cost:
        """The row of a method and a required k.

        Args:
            method: the name of a method.
            asked: the k that was asked for.

        Returns:
            The row.
        """
        return next(row for row in self.rows if (row.method, row.asked) == (method, asked))

    def as_dict(self) -> dict[str, Any]:
        """As `sfumato baselines --json` prints it.

        Returns:
            A dictionary.
        """
        return {
            "records": self.records,
            "max_suppressed": self.allowed,
            "l": self.l,
            "rows": [row.as_dict() for row in self.rows],
            "found": dict(self.how),
            "labels": self.labels,
            "notes": list(self.notes),
        }


def cost_of(method: str, asked: int, classes: ClassTable) -> Cost:
    """The cost of a global recoding, from its classes after suppression."""
    full = float(classes.attribute_weights.sum()) * classes.records
    return Cost(
        method,
        asked,
        k=int(classes.size[classes.kept].min()),
        l=int(DISTINCT_L.value(classes)) if classes.table.sensitive else None,
        loss=GENERAL_LOSS.value(classes) / full,
        suppressed=classes.suppressed_rows,
        classes=int(classes.kept.sum()),
        labels_per_value=1.0,
    )
