"""The search for channels, from settings to a front, with a certified lower bound wherever it can be computed.

The errors of known mechanisms of local differential privacy at one ε are listed next to the optimum. Every error is
that of the usual unbiased estimate against the population that the records were drawn from. If a mechanism is a matrix,
the error is that of its best linear estimate. Unary encodings and local hashing have too many reports to list, so their
error is the published variance. For a share f it is (f·p(1−p) + (1−f)·q(1−q))/(N·(p−q)²), plus the sampling error.
Here p and q are the probabilities that a report supports the true value and any other category.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from sfumato.algorithms.dominance import comparable, first_non_dominated
from sfumato.base.arrays import Floats
from sfumato.base.formats import without_infinities
from sfumato.errors import InputError
from sfumato.front import Front, Objective, Point
from sfumato.measures.channel import Figures, attainable, attribute_figures, error, error_of, figures, undisguised_error
from sfumato.methods.channel.estimate import grr, response_matrix
from sfumato.methods.channel.exact import MOST_CATEGORIES, ExactSearch, LocalSearch
from sfumato.methods.channel.matrices import (
    CLOSE,
    Candidate,
    GivenCells,
    bounds_of,
    designed_for_text,
    given_cells,
    is_proven,
    matrices_of,
    used_settings,
)
from sfumato.methods.channel.prior import Prior, prior_of
from sfumato.methods.run import Run
from sfumato.plans.channel import Channel
from sfumato.study import ChannelSettings, Study

SUBSETS = 20_000  # sizes with more subsets are left out of the comparison


def subset_selection(categories: int, size: int, epsilon: float) -> Floats:
    """Return the matrix that reports a set of `size` categories, e^ε times as likely if it holds the true value.

    >>> subset_selection(2, 1, math.log(3)).round(9).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    members = np.zeros((math.comb(categories, size), categories))
    for row, chosen in enumerate(itertools.combinations(range(categories), size)):
        members[row, list(chosen)] = 1.0
    likely = np.exp(epsilon * members)
    return np.asarray(likely / likely.sum(axis=0))


def hadamard_response(categories: int, epsilon: float) -> Floats:
    """Return the matrix of one of K reports, e^ε times as likely if the true value's row has a one there.

    The rows are those of a Hadamard matrix.
    """
    size = 2 ** math.ceil(math.log2(categories + 1))
    signs = scipy.linalg.hadamard(size)[1 : categories + 1].T
    likely = np.where(signs > 0, math.exp(epsilon), 1.0)
    return np.asarray(likely / likely.sum(axis=0))


def best_subset(prior: Floats, records: int, epsilon: float) -> tuple[float, int]:
    """Return the least error of subset selection over all sizes, and the size."""
    n = len(prior)
    sizes = [size for size in range(1, n) if math.comb(n, size) <= SUBSETS]
    return min((error(subset_selection(n, size, epsilon), prior, records), size) for size in sizes)


def supported(prior: Floats, records: int, truth: float, other: float) -> float:
    """Return the error of a mechanism whose reports support the true value and any other with two probabilities."""
    variance = prior * truth * (1.0 - truth) + (1.0 - prior) * other * (1.0 - other)
    return float(variance.mean() / (records * (truth - other) ** 2)) + undisguised_error(prior, records)


def mechanism_errors(prior: Floats, records: int, epsilon: float) -> dict[str, float]:
    """Return the error of each known mechanism at an ε.

    >>> sorted(mechanism_errors(np.full(3, 1 / 3), 1000, 1.0))
    ['GRR', 'Hadamard response', 'OLH', 'OUE', 'SUE', 'subset selection']
    """
    e, half = math.exp(epsilon), math.exp(epsilon / 2.0)
    buckets = max(round(e + 1.0), 2)
    return {
        "GRR": error(grr(len(prior), epsilon), prior, records),
        "subset selection": best_subset(prior, records, epsilon)[0],
        "Hadamard response": error(hadamard_response(len(prior), epsilon), prior, records),
        "SUE": supported(prior, records, half / (half + 1.0), 1.0 / (half + 1.0)),
        "OUE": supported(prior, records, 0.5, 1.0 / (e + 1.0)),
        "OLH": supported(prior, records, e / (e + buckets - 1.0), 1.0 / buckets),
    }


DIGITS = 9  # accuracy of the engines, when channels are compared
ERROR = Objective("mse", "min", title="mean squared error of an estimated share", privacy=False)
OBJECTIVES = (
    Objective(
        "privacy", "max", title="privacy: one minus the accuracy of the best guess", privacy=True, scale="linear"
    ),
    ERROR,
)
LOCAL_OBJECTIVES = (
    Objective("epsilon", "min", title="ε of local differential privacy", privacy=True, scale="linear"),
    ERROR,
)


def search_channel(study: Study, run: Run, prior: Prior | None = None) -> Front:
    """Find the channels of a study. The same study, data and seed give the same front on any number of threads."""
    began = time.process_time()
    fingerprint = "" if study.channel.prior is not None else study.opened().fingerprint
    prior = prior_of(study) if prior is None else prior
    settings = used_settings(study, prior)
    cells = given_cells(study, prior)
    if cells is not None and cells.small and settings.epsilon is None:  # ε covers cells that are too small for a limit
        bounded = {"epsilon": study.policy.response_epsilon, "delta": settings.most_posterior}
        settings = settings.model_copy(update=bounded)
    # The limits of the study are stated, even if a limit on ε implies them.
    delta = study.channel.delta or settings.delta
    stated = settings.model_copy(update={"delta": delta, "gain": study.channel.gain})
    # One BLAS thread: these matrices are small, so more threads would wait for each other and change last digits.
    with threadpool_limits(1):
        candidates = matrices_of(prior, settings, run.tell, cells)
        points = _points(prior, settings, stated, candidates, bounds_of(prior, settings))
    exact = is_proven(prior, settings)
    seed = "" if settings.engine == "exact" else f", seed {settings.seed}"
    return Front(
        study=study,
        objectives=LOCAL_OBJECTIVES if settings.local else OBJECTIVES,
        points=points,
        algorithm=settings.engine,
        exact=exact,
        evaluations=len(candidates),
        space=0,
        seconds=round(time.process_time() - began, 3),
        fingerprint=fingerprint,
        rows=prior.records,
        system="channel",
        details=_details(prior, settings, stated, cells),
        found_how=f"{_proof(settings, exact)}, {settings.engine}{seed}",
    )


def _details(
    prior: Prior, settings: ChannelSettings, stated: ChannelSettings, cells: GivenCells | None
) -> dict[str, object]:
    given = None
    if cells is not None:
        given = {"columns": list(settings.given), "limited": len(cells.limits), "small": cells.small}
    return {
        "columns": list(prior.columns),
        "categories": len(prior.categories),
        "dropped": prior.dropped,
        "delta": stated.most_posterior,
        "gain_cap": stated.gain,
        "epsilon_cap": settings.epsilon,
        "range": list(attainable(prior.shares, settings.most_posterior)),
        "tolerance": CLOSE,
        "designed_for": designed_for_text(settings),
        "given": given,
    }


def over_epsilon(front: Front) -> bool:
    """Return whether a front is over ε, and not over privacy."""
    return front.objectives[0].name == LOCAL_OBJECTIVES[0].name


def _proof(settings: ChannelSettings, exact: bool) -> str:
    if exact:
        return "proven optimal"
    if settings.invariant:
        return "optimal among reversible invariant matrices"
    if settings.engine == "exact" and (settings.epsilon is None or settings.local):
        return f"optimal for {designed_for_text(settings)}"
    return "best found"


def _points(
    prior: Prior,
    settings: ChannelSettings,
    stated: ChannelSettings,
    candidates: Sequence[Candidate],
    bound: Callable[[float, float], float] | None,
) -> tuple[Point, ...]:
    """Return channels with all their figures, the least private first, without dominated ones."""
    measured = [figures(one.matrix, prior.shares, prior.records) for one in candidates]
    private = [-one.epsilon if settings.local else one.privacy for one in measured]
    finite = [i for i in range(len(candidates)) if np.isfinite(measured[i].error)]
    values = np.array([(-private[i], measured[i].error) for i in finite]).reshape(-1, 2)
    kept = [i for i, best in zip(finite, first_non_dominated(comparable(values, DIGITS)), strict=True) if best]
    points = []
    for number, i in enumerate(sorted(kept, key=lambda i: private[i])):
        said, own = measured[i], candidates[i].bound
        spread = own if own is not None or bound is None else bound(said.privacy, said.epsilon)
        lower = None if spread is None else error_of(spread, prior.shares, prior.records)
        channel = _channel(prior, stated, candidates[i], said)
        points.append(point_of(prior, number, channel, lower, beside=settings.local))
    return tuple(points)


def point_of(prior: Prior, number: int, channel: Channel, lower: float | None, beside: bool = False) -> Point:
    """Return a channel with every figure on a prior, and the errors of known mechanisms of the same ε."""
    said = figures(channel.matrix, prior.shares, prior.records)
    values = {"privacy": said.privacy, "mse": said.error}
    values |= {"worst_posterior": said.worst_posterior, "gain": said.gain, "epsilon": said.epsilon}
    details: dict[str, object] = {"mse_to_file": said.error_to_file}
    if prior.joint:
        attributes = details["attributes"] = {}
        for position, name in enumerate(prior.columns):
            of_cells = [cell[position] for cell in prior.cells]
            private, worst = attribute_figures(channel.matrix, prior.shares, of_cells)
            attributes[name] = {"privacy": private, "worst_posterior": worst}
    if beside:
        details["beside"] = mechanism_errors(prior.shares, prior.records, said.epsilon)
    return Point(number, values, said.loss, 0, channel, lower, details)


def _channel(prior: Prior, settings: ChannelSettings, candidate: Candidate, said: Figures) -> Channel:
    names = candidate.names or prior.categories
    # A category may itself be called "a | b".
    outputs = tuple(f"{name} #{y + 1}" if names.count(name) > 1 else name for y, name in enumerate(names))
    # More reports than categories are weighted by the design's own prior, which such a matrix reveals in any case.
    reference = prior.designed if len(outputs) != len(prior.categories) else None
    notes = guarantees(settings, prior, said)
    return Channel(prior.columns, prior.categories, outputs, candidate.matrix, reference, notes, prior.cells)


def guarantees(settings: ChannelSettings, prior: Prior, said: Figures) -> dict[str, object]:
    """Return the limits of a channel's design, for the publisher only: exact figures reveal the shares."""
    return {
        "engine": settings.engine,
        "delta": settings.most_posterior,
        "gain_cap": settings.gain,
        "privacy": round(said.privacy, 6),
        "worst_posterior": round(said.worst_posterior, 6),
        "epsilon": round(said.epsilon, 6) if np.isfinite(said.epsilon) else None,
        "expected_error": float(f"{said.error:.4g}") if np.isfinite(said.error) else None,
        "designed_for_records": prior.records,
        "designed_for": designed_for_text(settings),
    }


EPSILONS = (0.01, 20.0)  # below, a report is no information; above, it is no disguise


def family_channel(prior: Prior, family: str, parameter: float) -> tuple[Channel, dict[str, object]]:
    """Return a channel of a family for a prior's categories, and its figures, which alone need the shares."""
    matrix = response_matrix(family, len(prior.categories), parameter)
    said = figures(matrix, prior.shares, prior.records)
    notes = guarantees(ChannelSettings(delta=min(said.worst_posterior, 1.0)), prior, said)
    notes |= {"engine": f"{family} {parameter:g}", "designed_for": "no shares", "gain_cap": None}
    channel = Channel(prior.columns, prior.categories, prior.categories, matrix, None, notes, prior.cells)
    return channel, channel_figures(channel, prior)


def channel_figures(channel: Channel, prior: Prior) -> dict[str, object]:
    """Return all figures of a channel, with the certified lower bound on the error at the same privacy."""
    if set(channel.categories) != set(prior.categories):
        raise InputError(
            "the channel's categories are not those of the prior",
            expected="the same categories",
            remedy="check the column, and how missing values are declared",
        )
    shares = prior.shares[[prior.categories.index(name) for name in channel.categories]]
    said = figures(channel.matrix, shares, prior.records)
    return without_infinities(
        {
            **{name: getattr(said, name) for name in ("privacy", "worst_posterior", "gain", "epsilon")},
            "mse": said.error,
            "mse_to_file": said.error_to_file,
            "lower_bound": least_error(shares, said, prior.records),
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
