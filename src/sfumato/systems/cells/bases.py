"""What cells are blanked after: nothing, or a recoding of the table that another system found.

Values become groups; a group is released as one label, a run of the column's ordered values, so that a blank and a
group can stand in one plan of boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.front import Front
from sfumato.measures.standard import GENERAL_LOSS, K
from sfumato.plans.plan import RecodingPlan
from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.study import Study
from sfumato.systems.registry import system_named
from sfumato.systems.run import Run
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, value_counts

Span = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Base:
    """The groups of a recoding: `codes[t, j]` is the group of tuple t in column j, `spans[j][g]` its first and last
    value in order, and `losses[j][g]` what a cell of it loses."""

    name: str
    codes: Codes
    spans: tuple[tuple[Span, ...], ...]
    losses: tuple[Floats, ...]

    @property
    def recodes(self) -> bool:
        return any(bool(np.any(lost > 0)) for lost in self.losses)


def raw(table: FrequencyTable) -> Base:
    """The values as they are."""
    spans = tuple(tuple((label, label) for label in domain.labels) for domain in table.domains)
    return Base("", table.codes.T.copy(), spans, tuple(np.zeros(len(own)) for own in spans))


def recoded(name: str, table: FrequencyTable, plan: RecodingPlan) -> Base | None:
    """The groups of a plan; None where one of them is not a run of the column's ordered values."""
    codes, spans, losses = [], [], []
    for domain, own in zip(table.domains, table.codes, strict=True):
        groups, covers = plan.grouped(domain)
        order = np.array(domain.order)
        runs = groups[order]
        if int(np.count_nonzero(np.diff(runs))) + 1 != len(covers):
            return None
        first = np.searchsorted(np.cumsum(np.concatenate([[0], np.diff(runs) != 0])), np.arange(len(covers)))
        ends = np.concatenate([first[1:], [len(runs)]]) - 1
        named = {
            int(runs[a]): (domain.labels[order[a]], domain.labels[order[b]]) for a, b in zip(first, ends, strict=True)
        }
        codes.append(groups[own])
        spans.append(tuple(named[group] for group in range(len(covers))))
        losses.append((covers - 1) / max(len(order) - 1, 1))
    return Base(name, np.stack(codes, axis=1).astype(np.int32), tuple(spans), tuple(losses))


def bases_of(study: Study, table: FrequencyTable) -> list[Base]:
    """The raw table, and recodings of the system that cells are to follow, an even choice of its front."""
    settings = study.cells
    bases = [raw(table)]
    if settings.after is None or settings.bases == 0:
        return bases
    searched = study.with_search(system=settings.after).with_search(
        max_suppression=0.0, constraints={}, objectives=(K.name, GENERAL_LOSS.name)
    )
    front: Front = system_named(settings.after).search(searched, Run(), table)
    points = [point for point in front.points if point.loss > 0]
    chosen = (
        sorted({round(i) for i in np.linspace(0, len(points) - 1, min(settings.bases, len(points)))}) if points else []
    )
    for at in chosen:
        base = recoded(f"{settings.after} point {points[at].id}", table, points[at].recoding_plan)
        bases += [] if base is None else [base]
    return bases


def grouped_table(table: FrequencyTable, base: Base, inside: Flags) -> tuple[FrequencyTable, Counts64]:
    """The table of a recoding, with groups as values; and the tuple of it that each tuple `inside` is in.

    Other tuples of the source are suppressed; where rows belong to persons, all are inside.
    """
    codes, of = np.unique(base.codes[inside], axis=0, return_inverse=True)
    of = of.reshape(-1)
    counts = np.bincount(of, weights=table.counts[inside]).astype(np.int64)
    gone = int(table.counts[~inside].sum())
    place = np.cumsum(inside) - 1
    domains = []
    for j, domain in enumerate(table.domains):
        width = len(base.spans[j])
        digits = len(str(width))
        held = np.bincount(codes[:, j], weights=counts, minlength=width)
        labels = {f"g{group:0{digits}d}": int(held[group]) for group in range(width)}
        domains.append(domain_of(domain.name, labels))
    sensitive = {}
    for name, values in table.sensitive.items():
        width = len(values.domain.labels)
        there = inside[values.tuple_of]
        own = of[place[values.tuple_of[there]]] * width + values.values[there]
        keys, at = np.unique(own, return_inverse=True)
        summed = np.bincount(at.reshape(-1), weights=values.counts[there]).astype(np.int64)
        sensitive[name] = value_counts(values.domain, keys // width, keys % width, summed, len(counts))
    grouped = replace(
        table,
        domains=tuple(domains),
        codes=np.ascontiguousarray(codes.T.astype(np.int32)),
        counts=counts,
        removed=table.removed + gone,
        sensitive=sensitive,
        units=None if table.units is None else table.units.regrouped(of, len(counts)),
        households=None if table.households is None else table.households.regrouped(of, len(counts)),
        label=None,
        weights=None,
        population=None,
    )
    return grouped, of


def spread(of: Counts64, counts: Counts64, members: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Members of grouped tuples as members of the tuples of the source, in their order."""
    waiting: dict[int, list[list[int]]] = {}
    for group, mask, count in members:
        waiting.setdefault(group, []).append([mask, count])
    parts = []
    for t, group in enumerate(of.tolist()):
        left, queue = int(counts[t]), waiting.get(group, [])
        while left and queue:
            taken = min(left, queue[0][1])
            parts.append((t, queue[0][0], taken))
            left -= taken
            queue[0][1] -= taken
            if not queue[0][1]:
                queue.pop(0)
    return parts
