"""A search for channels, from settings to a front. The certified bound is always computed where it can be."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.errors import InputError, UnreachableError
from sfumato.front import Front, Objective, Point
from sfumato.measures import channel as measures
from sfumato.plans.channel import Channel
from sfumato.runtime.arrays import Floats
from sfumato.runtime.stages import Progress
from sfumato.study import ChannelSettings, Study
from sfumato.systems.channel.engines.exact import MOST_CATEGORIES, ExactSearch
from sfumato.systems.channel.engines.optrr import Archive, OptrrSettings, optrr
from sfumato.systems.channel.engines.square import SquareSearch, SquareSettings
from sfumato.systems.channel.posteriors import capped_corners, output_name
from sfumato.systems.channel.prior import Prior, prior_of
from sfumato.systems.run import Run

CLOSE = 1e-6  # a privacy that was asked for is reached so closely
OBJECTIVES = (
    Objective("privacy", "max", title="privacy: one minus the accuracy of the best guess", privacy=True),
    Objective("mse", "min", title="mean squared error of an estimated share", privacy=False),
)
SEEDING = 2_000  # generations of OptRR whose archive the square engine polishes
BOUND_LEVELS = 16
CAPPED_CATEGORIES = 12


@dataclass(frozen=True, eq=False)
class _Found:
    """A matrix, names of its outputs if they are not the categories, and a bound of its own if there is one."""

    matrix: Floats
    names: tuple[str, ...] | None = None
    bound: float | None = None


def search_channel(study: Study, run: Run, prior: Prior | None = None) -> Front:
    """Find the channels of a study. The same study, data and seed give the same front on any number of threads."""
    settings, began = study.channel, time.process_time()
    fingerprint = "" if settings.prior is not None else study.opened().fingerprint
    prior = prior_of(study) if prior is None else prior
    span = measures.attainable(prior.shares, settings.delta)
    measures.require_room(prior.shares, settings.delta)
    levels = levels_of(prior, settings, span)
    # These matrices are small: more threads would only wait for each other, and change the last digits.
    with threadpool_limits(1):
        found = list(_found(prior, settings, levels, run.tell))
        bound = _bounds(prior, settings, span)
        points = _points(prior, settings, found, bound)
    exact = settings.engine == "exact" and settings.epsilon is None
    seed = "" if settings.engine == "exact" else f", seed {settings.seed}"
    return Front(
        study=study,
        objectives=OBJECTIVES,
        points=points,
        algorithm=settings.engine,
        exact=exact,
        evaluations=len(found),
        space=0,
        seconds=round(time.process_time() - began, 3),
        fingerprint=fingerprint,
        rows=prior.records,
        system="channel",
        details={
            "columns": list(prior.columns),
            "categories": len(prior.categories),
            "dropped": prior.dropped,
            "delta": settings.delta,
            "epsilon_cap": settings.epsilon,
            "range": list(span),
            "tolerance": CLOSE,
        },
        found_how=f"{'proven optimal' if exact else 'best found'}, {settings.engine}{seed}",
    )


def levels_of(prior: Prior, settings: ChannelSettings, span: tuple[float, float]) -> Floats:
    """The levels of privacy to look at: evenly over the range, and those asked for.

    The ceiling is left out where it is tied, and where an engine needs room beside it.
    """
    low, high = span
    for wanted in settings.privacy:
        if not low - 1e-9 <= wanted <= high + 1e-9:
            raise UnreachableError(
                f"no channel has a privacy of {wanted:g} with posteriors of at most {settings.delta:g}",
                expected=f"privacy from {low:.6g} to {high:.6g}",
                remedy=f"privacy = [{min(max(wanted, low), high):.6g}] under [channel]",
            )
    open_end = int(np.sum(prior.shares > prior.shares.max() - 1e-6)) > 1
    open_end |= settings.engine == "square" or settings.epsilon is not None
    even = np.linspace(low, high, settings.points + open_end)[: settings.points]
    return np.unique(np.clip(np.append(even, settings.privacy), low, high))


def _found(prior: Prior, settings: ChannelSettings, levels: Floats, progress: Progress) -> Iterator[_Found]:
    """What the engine finds, level by level."""
    shares, delta = prior.shares, settings.delta
    if settings.engine == "exact":
        search = ExactSearch(shares, delta, _candidates(prior, settings))
        for place, level in enumerate(levels):
            optimum = search.at(float(level))
            names = tuple(output_name(row, prior.categories) for row in optimum.posteriors)
            yield _Found(optimum.matrix, names, optimum.lower_bound if settings.epsilon is None else None)
            if progress(place + 1, len(levels)):
                return
        return
    if settings.engine == "square":
        seeding = OptrrSettings(generations=SEEDING, seed=settings.seed, records=prior.records)
        archive = optrr(shares, delta, seeding) if settings.epsilon is None else None
        yield from map(_Found, square_matrices(prior, settings, levels, archive, progress))
        return
    if settings.epsilon is not None:
        raise InputError(
            "OptRR cannot cap ε", expected="an engine that can", remedy='engine = "square" under [channel]'
        )
    chosen = OptrrSettings(generations=settings.generations, seed=settings.seed, records=prior.records)
    archive = optrr(shares, delta, chosen, progress)
    places = [archive.best_at(float(level)) for level in levels]
    yield from (_Found(archive.matrices[place]) for place in dict.fromkeys(places) if place is not None)


def square_matrices(
    prior: Prior, settings: ChannelSettings, levels: Floats, archive: Archive | None, progress: Progress
) -> list[Floats]:
    """The square engine's matrix for each level, or none; levels between them lead the way to the ceiling."""
    low, high = float(1.0 - settings.delta), float(1.0 - prior.shares.max())
    between = high - (high - low) * 0.1 * 0.55 ** np.arange(6)
    wanted = np.unique(np.append(levels, between[between > low]))
    seeds: list[list[Floats]] = [[] for _ in wanted]
    if archive is not None:
        for place, level in enumerate(wanted):
            best = archive.best_at(float(level))
            if best is not None:
                seeds[place].append(archive.matrices[best])
    search = SquareSearch(
        prior.shares,
        settings.delta,
        wanted,
        SquareSettings(sweeps=settings.sweeps, seed=settings.seed),
        settings.epsilon,
    )
    found = search.run(seeds, progress)
    return [m for level, m in zip(wanted, found, strict=True) if m is not None and np.abs(levels - level).min() < 1e-12]


def _candidates(prior: Prior, settings: ChannelSettings) -> Floats | None:
    if settings.epsilon is None:
        return None
    if len(prior.shares) > CAPPED_CATEGORIES:
        raise InputError(
            f"{len(prior.shares)} categories are too many for the exact engine with a cap on ε",
            expected=f"at most {CAPPED_CATEGORIES}",
            remedy='engine = "square" under [channel]',
        )
    return capped_corners(prior.shares, settings.delta, settings.epsilon)


def _bounds(prior: Prior, settings: ChannelSettings, span: tuple[float, float]) -> ExactSearch | None:
    """What other engines' points are measured against: bounds proved at a few levels hold at all."""
    if len(prior.shares) > MOST_CATEGORIES or (settings.engine == "exact" and settings.epsilon is None):
        return None
    search = ExactSearch(prior.shares, settings.delta)
    for level in np.linspace(span[0], span[1], BOUND_LEVELS + 1)[:-1]:
        search.at(float(level))
    return search


def _points(
    prior: Prior,
    settings: ChannelSettings,
    found: Sequence[_Found],
    bound: ExactSearch | None,
) -> tuple[Point, ...]:
    """Channels with all their figures, by privacy; those that another one beats are left out."""
    measured = [measures.figures(one.matrix, prior.shares, prior.records) for one in found]
    order = sorted(range(len(found)), key=lambda i: (measured[i].privacy, -measured[i].error))
    kept: list[int] = []
    for i in reversed(order):
        if measured[i].error == np.inf:
            continue
        if not kept or measured[i].error < measured[kept[-1]].error * (1 - 1e-9):
            kept.append(i)
    points = []
    for number, i in enumerate(reversed(kept)):
        said, own = measured[i], found[i].bound
        spread = own if own is not None or bound is None else bound.lower_bound(said.privacy)
        lower = None if spread is None else measures.error_of(spread, prior.shares, prior.records)
        points.append(point_of(prior, number, _channel(prior, settings, found[i], said), lower))
    return tuple(points)


def point_of(prior: Prior, number: int, channel: Channel, lower: float | None) -> Point:
    """A channel with every figure that it has on a prior."""
    said = measures.figures(channel.matrix, prior.shares, prior.records)
    attributes = {
        name: measures.attribute_figures(channel.matrix, prior.shares, [cell[place] for cell in prior.cells])
        for place, name in enumerate(prior.columns)
        if prior.joint
    }
    values = {"privacy": said.privacy, "mse": said.error}
    values |= {"worst_posterior": said.worst_posterior, "epsilon": said.epsilon}
    details: dict[str, Any] = {"mse_to_file": said.error_to_file}
    if attributes:
        details["attributes"] = {
            name: {"privacy": private, "worst_posterior": worst} for name, (private, worst) in attributes.items()
        }
    return Point(number, values, said.loss, 0, channel, lower, details)


def _channel(prior: Prior, settings: ChannelSettings, found: _Found, said: measures.Figures) -> Channel:
    outputs = prior.categories if found.names is None else _unique(found.names)
    # More reports than categories are weighted by the design's own prior, which such a matrix shows anyway.
    reference = prior.shares if len(outputs) != len(prior.categories) else None
    return Channel(
        prior.columns,
        prior.categories,
        outputs,
        found.matrix,
        reference,
        guarantees(settings, prior, said),
        prior.cells,
    )


def guarantees(settings: ChannelSettings, prior: Prior, said: measures.Figures) -> dict[str, object]:
    """What a channel was designed with. It stays with the publisher: exact figures tell of the shares."""
    return {
        "engine": settings.engine,
        "delta": settings.delta,
        "privacy": round(said.privacy, 6),
        "worst_posterior": round(said.worst_posterior, 6),
        "epsilon": round(said.epsilon, 6) if np.isfinite(said.epsilon) else None,
        "expected_error": float(f"{said.error:.4g}") if np.isfinite(said.error) else None,
        "designed_for_records": prior.records,
        "designed_for": "shares from elsewhere" if settings.prior is not None else "the shares of the table",
    }


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names with a number where two are alike: a category may itself be called "a | b"."""
    return tuple(name if names.count(name) == 1 else f"{name} #{place + 1}" for place, name in enumerate(names))
