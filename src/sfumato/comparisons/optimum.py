"""The classes of a node without those that fall short of a k and an ℓ."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.suppression import suppress_planned
from sfumato.plans.recoding import at_levels
from sfumato.tables.frequency import FrequencyTable


def classes_at(
    table: FrequencyTable, levels: Sequence[int], k: int, l: int, weights: Sequence[float] = ()
) -> ClassTable:
    """The classes of a node without those that have fewer than k records or l different sensitive values."""
    return suppress_planned(classify(table, at_levels(table, levels), weights), k, l)
