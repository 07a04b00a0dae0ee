"""The settings that a search uses: where other columns are released, ε is limited unless the study sets ε or `given`.

A bound that holds under the shares of the whole table may fail under the shares of a group, such as women. A limit on ε
holds for every group: whatever is known of a person, a report changes the odds of a category by a factor of at most
e^ε. From a share p the posterior is at most max(δ, g·p) if e^ε ≤ odds(max(δ, g·p)) / odds(p). The least of these
values over all p is at p = δ/g: (g − δ)/(1 − δ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.data.engine import open_engine
from sfumato.data.value_counts import require
from sfumato.errors import InputError, UnreachableError
from sfumato.methods.channel.draw import Rows
from sfumato.methods.channel.given import cell_counts
from sfumato.methods.channel.prior import Prior, coarse, complete_columns, unit_of
from sfumato.methods.channel.square import CellLimit
from sfumato.study import ChannelSettings, Study
from sfumato.study.sections import PolicySettings

LEAST = 0.01  # least ε of a search
MOST_CELLS = 64  # largest number of cells with separate limits


def safe_epsilon(delta: float, gain: float) -> float:
    """Return the largest ε with which max(δ, g·p) holds whatever else is known; infinite if δ allows everything.

    >>> round(safe_epsilon(0.75, 1.5), 6) == round(math.log(3), 6)
    True
    """
    return math.log((gain - delta) / (1.0 - delta)) if delta < 1 else math.inf


def rule_delta(policy: PolicySettings, delta: float | None) -> float:
    """Return δ of the rule `response`: that of the design, and at most that of the policy."""
    return policy.response_posterior if delta is None else min(delta, policy.response_posterior)


def used_settings(study: Study, prior: Prior | None = None) -> ChannelSettings:
    """Return the settings that a search uses, with a limit on ε where other columns are released.

    The exact engine then limits ε alone, so that its optimum is proven. The limit on ε implies the limits δ and gain of
    the study. The `prior` is needed for that case only.
    """
    settings = study.channel
    if not settings.keep or settings.epsilon is not None or settings.given or settings.engine == "optrr":
        return settings
    policy = study.policy
    epsilon = min(safe_epsilon(rule_delta(policy, settings.delta), policy.response), policy.response_epsilon)
    alone = settings.engine == "exact" and not settings.invariant and not settings.privacy
    if alone and settings.gain is not None:
        epsilon = min(epsilon, math.log(settings.gain))
    if alone and settings.delta is not None and prior is not None:
        # The share of the design differs from the true one by a factor of at most 1 + step in the odds.
        top = float(prior.designed.max())
        factor = 1.0 + settings.step if settings.designed_for == "coarse" else 1.0
        epsilon = min(epsilon, math.log(max(_odds(settings.delta) / (_odds(top) * factor), 1e-300)))
    if epsilon < LEAST:
        raise UnreachableError(
            f"no ε above {LEAST:g} keeps the limits for whatever the columns {', '.join(settings.keep)} reveal",
            expected="delta well above the largest share, or a policy that allows a gain above 1",
            remedy=f"given = [{', '.join(repr(name) for name in settings.keep)}] under [channel] searches for these "
            "columns alone, or leave keep out",
        )
    changed: dict[str, object] = {"epsilon": epsilon}
    if alone:
        changed |= {"delta": None, "gain": None}
    elif settings.delta is None:
        changed["delta"] = settings.most_posterior
    return settings.model_copy(update=changed)


@dataclass(frozen=True, eq=False)
class GivenCells:
    """The cells of the columns in `given`: a limit for each large one, and the numbers of all and of small ones."""

    limits: tuple[CellLimit, ...]
    cells: int
    small: int
    epsilon: float  # the ε that implies all limits


def given_cells(study: Study, prior: Prior) -> GivenCells | None:
    """Return the limits of a matrix for records with the same values of the columns in `given`.

    Where the design rounds the shares, the shares of the cells are rounded too, and the limits are tightened by the
    effect of rounding on the odds.
    """
    settings, policy = study.channel, study.policy
    if not settings.given:
        return None
    with open_engine(study.engine, study.engine_options) as engine:
        source = study.opened()
        require(source, settings.given)
        rows = Rows(engine, source, "raw", tuple(complete_columns(study, settings.columns)), unit_of(study)).attach()
        counts = cell_counts(rows, [(prior.columns, prior.cells)], settings.given)
    large = np.flatnonzero(counts.sizes >= policy.response_records)
    delta, step = rule_delta(policy, settings.delta), settings.step if settings.designed_for == "coarse" else 0.0
    limits, epsilon = [], math.inf
    for row in counts.table(large):
        shares = np.zeros(len(row))
        shares[row > 0] = coarse(row[row > 0] / row.sum(), step) if step else row[row > 0] / row.sum()
        top = float(shares.max())
        wide = max(delta, policy.response * top / (1.0 + step))
        if wide >= 1.0:
            continue
        cap = wide / (wide + (1.0 - wide) * (1.0 + step))
        if _odds(cap) < _odds(top) * math.exp(LEAST):
            raise UnreachableError(
                f"the shares given {', '.join(settings.given)} leave no room between {top:.3f} and {cap:.3f}",
                expected="a larger delta or allowed gain, or a design closer to the true shares",
                remedy=f"coarsen = {settings.step / 10:g} under [channel], or leave given out and set keep",
            )
        limits.append(CellLimit(shares / prior.designed, cap))
        epsilon = min(epsilon, math.log(_odds(cap) / _odds(top)))
    if len(limits) > MOST_CELLS:
        least = policy.response_records
        raise InputError(
            f"{', '.join(settings.given)} make {len(limits)} combinations with {least} records or more",
            expected=f"at most {MOST_CELLS} combinations with limits of their own",
            remedy="fewer columns in given; keep bounds ε for any number of combinations",
        )
    return GivenCells(tuple(limits), len(counts.names), len(counts.names) - len(large), epsilon)


def _odds(share: float) -> float:
    return share / (1.0 - share) if share < 1 else math.inf
