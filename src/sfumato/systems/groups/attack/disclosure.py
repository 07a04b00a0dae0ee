"""What a signal gives away: which sensitive areas it shows, by both outlier tests and by rank."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Floats
from sfumato.systems.groups.attack.adequacy import Adequacy
from sfumato.systems.groups.attack.outliers import (
    Outliers,
    below_counting_noise,
    beyond_counting_noise,
    find_outliers,
    ranks,
    spearman,
)

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
    """What an attacker with a signal finds. `by_way` maps each way to the sensitive areas it shows; `low` are those
    that show strikingly little."""

    signal: Floats
    outliers: Mapping[str, Outliers]
    by_way: Mapping[str, tuple[int, ...]]
    adequacy: Mapping[str, Adequacy]
    low: tuple[int, ...]

    @property
    def high(self) -> tuple[int, ...]:
        """The sensitive areas that any way finds by how much they show."""
        return tuple(sorted({area for areas in self.by_way.values() for area in areas}))

    @property
    def anyhow(self) -> tuple[int, ...]:
        """The sensitive areas that are found from above or from below."""
        return tuple(sorted({*self.high, *self.low}))


def findings(
    signal: Floats,
    sensitive: Sensitive,
    significance: float,
    sizes: Floats | None = None,
    per_record: float = 1.0,
) -> Findings:
    """What a signal shows. With the areas' `sizes`, high outliers within counting noise are set aside. `per_record` is
    what one record adds to the signal, for the noise of low values.

    By rank an area is found among the first k, k the number of sensitive areas. The outlier tests peel, so that what is
    left may have outliers on its high side that most areas surpass: these are not high values, and not found.

    >>> true = sensitive_areas(np.array([1.0, 2, 3, 2, 1, 2, 3, 40]), 0.01)
    >>> dict(findings(np.array([5.0, 5, 6, 5, 5, 5, 6, 30]), true, 0.01).by_way)
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
    above = set(np.flatnonzero(signal >= np.median(signal)).tolist())
    return Findings(
        signal=signal,
        outliers=outliers,
        by_way={way: tuple(sorted(shown[way] & set(sensitive.areas) & above)) for way in WAYS},
        adequacy={way: Adequacy.of(sensitive.areas, shown[way], len(signal)) for way in WAYS},
        low=strikingly_low(signal, outliers.values(), sensitive.areas, significance, per_record),
    )


def strikingly_low(
    signal: Floats,
    outliers: Iterable[Outliers],
    sensitive: Sequence[int],
    significance: float,
    per_record: float = 1.0,
) -> tuple[int, ...]:
    """Sensitive areas that someone finds who looks for areas with strikingly little.

    They are low outliers by either scale that are also less than chance explains (`below_counting_noise`), or so many
    of them are among the last by rank that chance would not have it: of m areas k are sensitive, and as many as are
    last (k, or more if some are equal) hold at least so many of them with a probability of at most the significance.

    >>> signal = np.array([1.0, 2, 3, 40, 44, 51, 39, 60, 48, 55])
    >>> none = [find_outliers(np.zeros(10))]
    >>> strikingly_low(signal, none, [0, 1, 2], 0.01), strikingly_low(signal, none, [0, 1, 5], 0.01)
    ((0, 1, 2), ())
    """
    few = below_counting_noise(signal, significance, per_record)
    low = {area for one in outliers for area in one.low if few[area]} & set(sensitive)
    last = {area for area, rank in enumerate(ranks(-signal)) if rank <= len(sensitive)}
    mine = last & set(sensitive)
    if mine and chance_of(len(mine), len(signal), len(sensitive), len(last)) <= significance:
        low |= mine
    return tuple(sorted(low))


def chance_of(least: int, total: int, marked: int, drawn: int) -> float:
    """The probability that at least so many of the drawn are marked, drawn without putting back.

    >>> round(chance_of(3, 10, 3, 3), 5), chance_of(1, 4, 1, 4)
    (0.00833, 1.0)
    """
    ways = sum(comb(marked, x) * comb(total - marked, drawn - x) for x in range(least, min(marked, drawn) + 1))
    return ways / comb(total, drawn)


def compared(quantity: Floats, shown_areas: Findings) -> dict[str, Any]:
    """The adequacy of a signal for print: by the paper's test, by the other scale and by rank, and Spearman's ρ."""
    return {
        **shown_areas.adequacy["hinges"].as_dict(),
        "mad": shown_areas.adequacy["mad"].as_dict(),
        "rank": shown_areas.adequacy["rank"].as_dict(),
        "spearman": spearman(quantity, shown_areas.signal),
    }
