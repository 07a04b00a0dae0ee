"""Random hierarchies and tables for the laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from sfumato.data.cells import MISSING
from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.tables.domain import Domain, domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes


@st.composite
def hierarchies(draw: st.DrawFn, name: str = "h", most_leaves: int = 5, numeric: bool | None = None) -> Hierarchy:
    """A random hierarchy: each level joins labels of the one below."""
    size = draw(st.integers(1, most_leaves))
    by_number = draw(st.booleans()) if numeric is None else numeric
    places = draw(st.permutations(range(size)))  # leaves need not stand in the order of their numbers
    paths = [[str(3 * leaf) if by_number else f"v{leaf}"] for leaf in places]
    for level in range(draw(st.integers(0, 2))):
        below = sorted({path[-1] for path in paths})
        groups = {label: f"L{level}-{draw(st.integers(0, 2))}" for label in below}
        paths = [[*path, groups[path[-1]]] for path in paths]
    return Hierarchy.from_paths(name, [(*path, "*") for path in paths])


@st.composite
def domains(draw: st.DrawFn, name: str, wildcard: bool = False) -> Domain:
    """A random domain, with a missing value that matches anything if asked."""
    tree = draw(hierarchies(name))
    observed = dict.fromkeys(tree.leaves, 1)
    if wildcard:
        observed[MISSING] = 1
    return domain_of(name, observed, tree, missing="wildcard" if wildcard else "drop")


@st.composite
def tables(draw: st.DrawFn, wildcards: bool = False, removed: bool = False, most_rows: int = 24) -> FrequencyTable:
    """A random table with up to three quasi-identifiers, a sensitive column and a label."""
    columns = [draw(domains(f"q{j}", wildcards and draw(st.booleans()))) for j in range(draw(st.integers(1, 3)))]
    rows = draw(st.integers(2, most_rows))

    def codes(domain: Domain) -> np.ndarray:
        return np.array(
            draw(st.lists(st.integers(0, len(domain.labels) - 1), min_size=rows, max_size=rows)), dtype=np.int32
        )

    tree = draw(hierarchies("s"))
    distance = draw(st.sampled_from(["equal", "ordered", "hierarchical"]))
    secret = domain_of("s", dict.fromkeys(tree.leaves, 1), tree, distance=distance)
    label = domain_of("y", {"no": 1, "yes": 1})
    records = np.stack([codes(domain) for domain in columns])
    counted = [recount(domain, column) for domain, column in zip(columns, records, strict=True)]
    gone = draw(st.integers(0, 3)) if removed else 0
    table = from_codes(counted, records, {"s": (secret, codes(secret))}, (label, codes(label)), removed=gone)
    each = draw(st.lists(st.integers(1, 40), min_size=table.tuples, max_size=table.tuples))
    return replace(table, weights=table.counts * np.array(each, dtype=np.float64))


def recount(domain: Domain, codes: np.ndarray) -> Domain:
    """The same domain with the counts of a column."""
    return replace(domain, counts=np.bincount(codes, minlength=len(domain.labels)).astype(np.int64))


@st.composite
def levels(draw: st.DrawFn, table: FrequencyTable) -> tuple[int, ...]:
    """A random node of a table's lattice."""
    return tuple(draw(st.integers(0, domain.hierarchy.height)) for domain in table.domains)
