"""Channels that need no search, and the figures of any channel on a prior."""

from __future__ import annotations

import math
from typing import Any

from threadpoolctl import threadpool_limits

from sfumato.base.arrays import Floats
from sfumato.base.formats import without_infinities
from sfumato.errors import InputError
from sfumato.measures.channel import Figures, error_of, figures
from sfumato.methods.channel.estimate import response_matrix
from sfumato.methods.channel.exact import MOST_CATEGORIES, ExactSearch
from sfumato.methods.channel.local_dp import LocalSearch
from sfumato.methods.channel.prior import Prior
from sfumato.methods.channel.search import guarantees
from sfumato.plans.channel import Channel
from sfumato.study import ChannelSettings

EPSILONS = (0.01, 20.0)  # below, a report is no information; above, it is no disguise


def family_channel(prior: Prior, family: str, parameter: float) -> tuple[Channel, dict[str, Any]]:
    """Return a channel of a family for a prior's categories, and its figures; only these need the shares."""
    matrix = response_matrix(family, len(prior.categories), parameter)
    said = figures(matrix, prior.shares, prior.records)
    notes = guarantees(ChannelSettings(delta=min(said.worst_posterior, 1.0)), prior, said)
    notes |= {"engine": f"{family} {parameter:g}", "designed_for": "no shares", "gain_cap": None}
    channel = Channel(prior.columns, prior.categories, prior.categories, matrix, None, notes, prior.cells)
    return channel, channel_figures(channel, prior)


def channel_figures(channel: Channel, prior: Prior) -> dict[str, Any]:
    """Return all figures of a channel, with the certified lower bound on the error at the same privacy."""
    if set(channel.categories) != set(prior.categories):
        raise InputError(
            "the channel's categories are not those of the prior",
            expected="the same categories",
            remedy="check the column, and how missing values are declared",
        )
    places = [prior.categories.index(name) for name in channel.categories]
    shares = prior.shares[places]
    said = figures(channel.matrix, shares, prior.records)
    lower = least_error(shares, said, prior.records)
    return without_infinities(
        {
            "privacy": said.privacy,
            "worst_posterior": said.worst_posterior,
            "gain": said.gain,
            "epsilon": said.epsilon,
            "mse": said.error,
            "mse_to_file": said.error_to_file,
            "lower_bound": lower,
            "loss": said.loss,
            "outputs": len(channel.outputs),
            "records": prior.records,
        }
    )


def least_error(shares: Floats, said: Figures, records: int) -> float | None:
    """Return the proven minimum error at the privacy, worst posterior and ε of this channel, or None."""
    if len(shares) < 2 or len(shares) > MOST_CATEGORIES or said.error == math.inf:
        return None
    with threadpool_limits(1):
        search = ExactSearch(shares, min(said.worst_posterior, 1.0))
        low, high = search.range
        search.at(min(max(said.privacy, low), high - 1e-3 * (high - low)))
        least = search.lower_bound(said.privacy)
        if EPSILONS[0] <= said.epsilon <= EPSILONS[1]:
            least = max(least, LocalSearch(shares).at(said.epsilon).lower_bound)
        return error_of(least, shares, records)
