"""Which rows of two releases link: those that fit each other and no other row, by what both files show."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.release.history.side_by_side import SideBySide

MANY_PAIRS = 50_000_000  # of rows to set side by side; beyond it, links are counted by parts only, which are fewer


def linking(pair: SideBySide) -> tuple[str, ...]:
    """The columns by which rows of the two files can be linked."""
    if pair.first.ordered and pair.second.ordered:
        return ("the order of the rows",)
    telling = [pair.names[i] for i, overlapped in pair.overlaps.items() if overlapped.telling]
    return tuple(name for name in pair.source.names if name in {*pair.shared, *telling})


def links(pair: SideBySide) -> tuple[int, int, bool]:
    """People whose rows fit each other and no other row, how many of them are affected, and if all are counted."""
    if pair.first.ordered and pair.second.ordered:
        row = pair.engine.rows("SELECT sum(n), sum(n * f) FROM ledger_seen WHERE ia = 1 AND ib = 1")[0]
        return int(row[0] or 0), int(row[1] or 0), True
    crossing = [i for i, overlapped in pair.overlaps.items() if overlapped.crossing]
    keys = ["x", *pair.listed("c")]
    if crossing and _pairs(pair, keys, crossing) <= MANY_PAIRS:
        return (*_links_across(pair, keys, crossing), True)
    sums = "sum(n * ia) AS na, sum(n * ib) AS nb, sum(n * ia * ib) AS nn, sum(n * ia * ib * f) AS nf"
    grouped = f"SELECT {sums} FROM ledger_seen GROUP BY {', '.join(keys)}"
    row = pair.engine.rows(f"SELECT count(*), sum(nf) FROM ({grouped}) AS g WHERE na = 1 AND nb = 1 AND nn = 1")[0]
    return int(row[0] or 0), int(row[1] or 0), not crossing


def _pairs(pair: SideBySide, keys: Sequence[str], crossing: Sequence[int]) -> int:
    """How many pairs of rows stand to be compared; on the way, the different rows of each file."""
    listed = ", ".join(keys)
    for side in "ab":
        own = ", ".join([*keys, *pair.listed(side, crossing)])
        pair.table(f"view_{side}", f"SELECT {own}, sum(n) AS n FROM ledger_seen WHERE i{side} = 1 GROUP BY {own}")
    own = ", ".join([*keys, *pair.listed("ab", crossing)])
    single = f"SELECT {own}, sum(n) AS n, sum(n * f) AS f FROM ledger_seen WHERE ia = 1 AND ib = 1 GROUP BY {own}"
    joins = " ".join(
        f"JOIN ledger_view_{s} AS v{s} ON "
        + " AND ".join(f"t.{name} = v{s}.{name}" for name in [*keys, *pair.listed(s, crossing)])
        for s in "ab"
    )
    cells = ", ".join(f"t.{name}" for name in [*keys, *pair.listed("ab", crossing), "f"])
    pair.table("single", f"SELECT {cells} FROM ({single}) AS t {joins} WHERE t.n = 1 AND va.n = 1 AND vb.n = 1")
    counted = "SELECT {0}, count(*) AS {1} FROM {2} GROUP BY {0}"
    parts = [counted.format(listed, "m", "ledger_single")]
    parts += [counted.format(listed, f"m{side}", f"ledger_view_{side}") for side in "ab"]
    on = " AND ".join(f"s.{name} = {{0}}.{name}" for name in keys)
    return pair.number(
        f"SELECT CAST(sum(CAST(s.m AS DOUBLE) * (a.ma + b.mb)) AS BIGINT) FROM ({parts[0]}) AS s "
        f"JOIN ({parts[1]}) AS a ON {on.format('a')} JOIN ({parts[2]}) AS b ON {on.format('b')}"
    )


def _links_across(pair: SideBySide, keys: Sequence[str], crossing: Sequence[int]) -> tuple[int, int]:
    """Rows that are single in both files, and whose labels fit no other row of either."""
    own = [*keys, *pair.listed("ab", crossing)]
    fitting = []
    for side, other in (("a", "b"), ("b", "a")):
        joins = f"JOIN ledger_view_{other} AS v ON " + " AND ".join(f"s.{name} = v.{name}" for name in keys)
        joins += "".join(
            f" JOIN ledger_fits{i} AS f{i} ON f{i}.{side} = s.{side}{i} AND f{i}.{other} = v.{other}{i}"
            for i in crossing
        )
        listed = ", ".join(f"s.{name}" for name in own)
        fitting.append(f"SELECT {listed}, s.f, sum(v.n) AS d FROM ledger_single AS s {joins} GROUP BY {listed}, s.f")
    on = " AND ".join(f"p.{name} = q.{name}" for name in own)
    row = pair.engine.rows(
        f"SELECT count(*), sum(p.f) FROM ({fitting[0]}) AS p JOIN ({fitting[1]}) AS q ON {on} WHERE p.d = 1 AND q.d = 1"
    )[0]
    return int(row[0] or 0), int(row[1] or 0)
