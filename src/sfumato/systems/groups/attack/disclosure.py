"""What a signal gives away: which sensitive areas it shows, by both outlier tests and by rank."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Floats
from sfumato.systems.groups.attack.adequacy import Adequacy
from sfumato.systems.groups.attack.outliers import Outliers, beyond_counting_noise, find_outliers, ranks, spearman

WAYS = ("hinges", "mad", "rank")


@dataclass(frozen=True)
class Sensitive:
    """The areas that must not be found, those an expert set aside, and the outliers of the true signal."""

    areas: tuple[int, ...]
    excluded: tuple[int, ...]
    outliers: Mapping[str, Outliers]


def sensitive_areas(
    quantity: Floats, significance: float, expert: Collection[int] = (), exclude: Collection[int] = ()
) -> Sensitive:
    """The high outliers of the true signal less what is excluded, or the expert's areas.

    An expert's list also says which other true outliers do not matter: they count neither as truth nor as false.

    >>> sensitive_areas(np.array([1.0, 2, 3, 2, 1, 2, 3, 40]), 0.01).areas
    (7,)
    """
    ways = {"hinges": find_outliers(quantity, significance), "mad": find_outliers(quantity, significance, "mad")}
    high = set(ways["hinges"].high)
    areas = set(expert) or high - set(exclude)
    excluded = set(exclude) | (high - areas if expert else set())
    return Sensitive(tuple(sorted(areas)), tuple(sorted(excluded - areas)), ways)


@dataclass(frozen=True)
class Findings:
    """What an attacker with a signal finds. `found` maps each way to the sensitive areas it shows."""

    signal: Floats
    outliers: Mapping[str, Outliers]
    found: Mapping[str, tuple[int, ...]]
    adequacy: Mapping[str, Adequacy]

    @property
    def anyhow(self) -> tuple[int, ...]:
        """The sensitive areas that any way finds."""
        return tuple(sorted({area for areas in self.found.values() for area in areas}))


def findings(signal: Floats, sensitive: Sensitive, significance: float, sizes: Floats | None = None) -> Findings:
    """Only high values expose a place. With the areas' `sizes`, outliers within counting noise are set aside.

    By rank an area is found among the first k, k the number of sensitive areas.

    >>> true = sensitive_areas(np.array([1.0, 2, 3, 2, 1, 2, 3, 40]), 0.01)
    >>> dict(findings(np.array([5.0, 5, 6, 5, 5, 5, 6, 30]), true, 0.01).found)
    {'hinges': (7,), 'mad': (7,), 'rank': (7,)}
    """
    outliers = {
        "hinges": find_outliers(signal, significance),
        "mad": find_outliers(signal, significance, "mad"),
    }
    order = np.array(ranks(signal))
    top = np.flatnonzero((order <= len(sensitive.areas)) & (signal > 0)).tolist()
    counts = np.ones(len(signal), np.bool_) if sizes is None else beyond_counting_noise(signal, sizes, significance)
    high = {way: {i for i in o.high if counts[i]} for way, o in outliers.items()}
    shown = {way: areas - set(sensitive.excluded) for way, areas in high.items()} | {
        "rank": set(top) - set(sensitive.excluded)
    }
    return Findings(
        signal=signal,
        outliers=outliers,
        found={way: tuple(sorted(shown[way] & set(sensitive.areas))) for way in WAYS},
        adequacy={way: Adequacy.of(sensitive.areas, shown[way], len(signal)) for way in WAYS},
    )


def compared(quantity: Floats, shown_areas: Findings) -> dict[str, Any]:
    """The adequacy of a signal for print: by the paper's test, by the other scale and by rank, and Spearman's ρ."""
    return {
        **shown_areas.adequacy["hinges"].as_dict(),
        "mad": shown_areas.adequacy["mad"].as_dict(),
        "rank": shown_areas.adequacy["rank"].as_dict(),
        "spearman": spearman(quantity, shown_areas.signal),
    }
