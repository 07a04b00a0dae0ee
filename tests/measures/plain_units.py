"""The privacy measures of persons and households by loops over rows of text, by their definitions.

Nothing here reads the tables, classes or oracles of the package: the rows are those of the file.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

INFINITE = math.inf
EXEMPT = 1 << 40  # what ℓ is at least in a class from which no value can be learned
C, L = 3.0, 2  # the defaults of recursive ℓ

Key = tuple[str | None, ...]
Held = tuple[int, Mapping[str | None, int], Mapping[str | None, float]]


@dataclass(frozen=True)
class Rows:
    """Recoded rows: a missing quasi-identifier that matches anything is None, and so is a missing sensitive value."""

    keys: Sequence[Key]
    kept: Sequence[bool]
    person: Sequence[str]
    household: Sequence[str] | None
    secret: Sequence[str | None]
    harmless: frozenset[str]
    weights: Sequence[float]
    population: Sequence[Key] | None
    ordered: bool


def agree(one: Key, other: Key) -> bool:
    return all(a == b or a is None or b is None for a, b in zip(one, other, strict=True))


def crowds(rows: Rows) -> dict[Key, list[int]]:
    """The released rows that those of a class hide among."""
    classes = defaultdict(list)
    for row, key in enumerate(rows.keys):
        if rows.kept[row]:
            classes[key].append(row)
    return {key: [row for other in classes if agree(key, other) for row in classes[other]] for key in classes}


def sizes(rows: Rows) -> dict[Key, int]:
    """n of every class."""
    return {key: len({rows.person[row] for row in crowd}) for key, crowd in crowds(rows).items()}


def holders(rows: Rows) -> Sequence[str]:
    """Whose values the sensitive ones are: the household's where it is constant in all of them, else the person's."""
    if rows.household is None:
        return rows.person
    held = defaultdict(set)
    for household, value in zip(rows.household, rows.secret, strict=True):
        held[household].add(value)
    return rows.household if all(len(values) == 1 for values in held.values()) else rows.person


def tally(rows: Rows, some: Iterable[int]) -> Held:
    """n, h and w of some rows."""
    owner, members = holders(rows), list(some)
    each = Counter(owner[row] for row in members)
    held, shares = defaultdict(set), Counter[str | None]()
    for row in members:
        held[rows.secret[row]].add(owner[row])
        shares[rows.secret[row]] += 1.0 / each[owner[row]]  # type: ignore[assignment]
    return len(each), {value: len(those) for value, those in held.items()}, shares


def known(rows: Rows, some: Iterable[int]) -> list[int]:
    return [row for row in some if rows.secret[row] is not None]


def ways(rows: Rows, crowd: Sequence[int]) -> list[tuple[Held, Held]]:
    """A class and its reference, over all rows and over those whose value is known."""
    everyone = [row for row, kept in enumerate(rows.kept) if kept]
    result = [(tally(rows, crowd), tally(rows, everyone))]
    if None in rows.secret and known(rows, crowd):
        result.append((tally(rows, known(rows, crowd)), tally(rows, known(rows, everyone))))
    return result


def harmful(rows: Rows, values: Iterable[str | None]) -> list[str]:
    return [value for value in values if value is not None and value not in rows.harmless]


def distinct(rows: Rows, crowd: Sequence[int]) -> float:
    both = ways(rows, crowd)
    n, h, _ = both[0][0]
    bad = harmful(rows, h)
    if not bad:
        return EXEMPT
    if any(held.get(value, 0) == number for (number, held, _), _ in both for value in bad):
        return 1.0
    return float(min(len(bad) + any(value in rows.harmless for value in h), n))


def alpha(rows: Rows, crowd: Sequence[int]) -> float:
    shares = [h[value] / n for (n, h, _), _ in ways(rows, crowd) for value in harmful(rows, h)]
    return max(shares, default=0.0)


def frequency(rows: Rows, crowd: Sequence[int]) -> float:
    share = alpha(rows, crowd)
    return 1.0 / share if share else INFINITE


def pairs(rows: Rows, crowd: Sequence[int]) -> list[tuple[float, float]]:
    """The share of each harmful value in a class and in the reference."""
    return [
        (h.get(value, 0) / n, everyone[value] / number)
        for (n, h, _), (number, everyone, _) in ways(rows, crowd)
        for value in harmful(rows, everyone)
    ]


def beta(rows: Rows, crowd: Sequence[int]) -> float:
    return max((q / p - 1.0 for q, p in pairs(rows, crowd) if q > p), default=0.0)


def enhanced(rows: Rows, crowd: Sequence[int]) -> float:
    broken = any(q / p - 1.0 > -math.log(p) + 1e-9 for q, p in pairs(rows, crowd) if q > p)
    return INFINITE if broken else beta(rows, crowd)


def delta(rows: Rows, crowd: Sequence[int]) -> float:
    if not harmful(rows, [rows.secret[row] for row in crowd]):
        return 0.0
    return max((abs(math.log(q / p)) if q else INFINITE for q, p in pairs(rows, crowd)), default=0.0)


def entropy(rows: Rows, crowd: Sequence[int]) -> float:
    return min(math.exp(-sum(s / n * math.log(s / n) for s in w.values())) for (n, _, w), _ in ways(rows, crowd))


def ranked(rows: Rows, crowd: Sequence[int]) -> list[list[float]]:
    return [sorted(w.values(), reverse=True) for (_, _, w), _ in ways(rows, crowd)]


def recursive_l(rows: Rows, crowd: Sequence[int]) -> float:
    """The largest ℓ with r₁ < c·(r_ℓ + … + r_m); sums that are equal but for rounding are not below."""
    each = ranked(rows, crowd)
    return min(max([l + 1 for l in range(len(r)) if r[0] < C * sum(r[l:]) * (1 - 1e-9)], default=0) for r in each)


def recursive_c(rows: Rows, crowd: Sequence[int]) -> float:
    return max(r[0] / sum(r[L - 1 :]) if len(r) >= L else INFINITE for r in ranked(rows, crowd))


def closeness(rows: Rows, crowd: Sequence[int]) -> float:
    worst = 0.0
    for (n, _, w), (number, _, whole) in ways(rows, crowd):
        gaps = [w.get(value, 0.0) / n - whole.get(value, 0.0) / number for value in sorted(whole, key=place)]
        if rows.ordered:
            sums = [abs(sum(gaps[: end + 1])) for end in range(len(gaps))]
            worst = max(worst, sum(sums) / max(len(gaps) - 1, 1))
        else:
            worst = max(worst, sum(map(abs, gaps)) / 2)
    return worst


def place(value: str | None) -> tuple[bool, str]:
    return value is None, value or ""


def mean(rows: Rows, owner: Sequence[str], numbers: Mapping[int, float], worst: Callable[..., float]) -> float:
    """The mean over owners, each with the worst of their rows; a row that is not released has 0."""
    each: dict[str, list[float]] = defaultdict(list)
    for row, name in enumerate(owner):
        each[name].append(numbers.get(row, 0.0))
    return sum(worst(values) for values in each.values()) / len(each)


def of_rows(rows: Rows, numbers: Mapping[Key, float]) -> dict[int, float]:
    return {row: numbers[key] for row, key in enumerate(rows.keys) if rows.kept[row]}


def individual(rows: Rows) -> dict[Key, float]:
    """Benedetti and Franconi: the expected 1/F, given n persons and their mean weight."""
    result = {}
    for key, crowd in crowds(rows).items():
        n = len({rows.person[row] for row in crowd})
        p = min(1.0, len(crowd) / sum(rows.weights[row] for row in crowd))
        if n > 3:
            result[key] = p / (n - 1 + p)
            continue
        total, mass, j = 0.0, p**n, n  # F is n plus a negative binomial number
        while mass > 1e-16 or j < n / p:
            total += mass / j
            mass *= (1 - p) * j / (j - n + 1)
            j += 1
        result[key] = total
    return result


def household_risk(rows: Rows, risks: Mapping[Key, float]) -> float:
    """The mean over households of 1 − Π(1 − r); a person with several rows has the largest of their risks."""
    assert rows.household is not None
    member: dict[tuple[str, str], float] = defaultdict(float)
    for row, key in enumerate(rows.keys):
        one = (rows.household[row], rows.person[row])
        member[one] = max(member[one], risks[key] if rows.kept[row] else 0.0)
    safe = dict.fromkeys(rows.household, 1.0)
    for (household, _), risk in member.items():
        safe[household] *= 1.0 - risk
    return sum(1.0 - each for each in safe.values()) / len(safe)


def figures(rows: Rows) -> dict[str, float]:
    """The value of every privacy measure that is defined for these rows."""
    crowd, n = crowds(rows), sizes(rows)
    persons, risk = len(set(rows.person)), {key: 1.0 / number for key, number in n.items()}

    def average(numbers: Mapping[Key, float], worst: Callable[..., float]) -> float:
        return mean(rows, rows.person, of_rows(rows, numbers), worst)

    result = {"k": float(min(n.values())), "prosecutor_risk": max(risk.values())}
    for name, least in (("uniques", 2), ("below_3", 3), ("below_5", 5), ("below_10", 10)):
        result[name] = average({key: float(number < least) for key, number in n.items()}, max)
    result["weighted_k"] = average({key: float(number) for key, number in n.items()}, min)
    result["sum_k"] = result["weighted_k"] * persons
    result["marketer_risk"] = average(risk, max)
    if rows.population is not None:
        people = Counter(rows.population)
        result["journalist_risk"] = max(1.0 / people[key] for key in n)
        result["marketer_risk"] = average({key: 1.0 / people[key] for key in n}, max)
    expected = individual(rows)
    result["individual_risk"] = average(expected, max)
    if rows.household is not None:
        families = {key: len({rows.household[row] for row in crowd[key]}) for key in crowd}
        result["households"] = float(min(families.values()))
        single = of_rows(rows, {key: float(number == 1) for key, number in families.items()})
        result["household_uniques"] = mean(rows, rows.household, single, max)
        gone = dict.fromkeys(rows.keys, 0.0)
        result["household_risk"] = household_risk(rows, gone | risk)
        result["household_individual_risk"] = household_risk(rows, gone | expected)
    classes = list(crowd.values())
    for name, function, worst in PER_CLASS:
        result[name] = worst(function(rows, members) for members in classes)
    diverse = {key: distinct(rows, members) for key, members in crowd.items()}
    few = of_rows(rows, {key: 1.0 if value == EXEMPT else value for key, value in diverse.items()})
    own: dict[int, float] = {}
    shares: dict[int, float] = {}
    for key, members in crowd.items():
        number, h, _ = tally(rows, members)
        for row in (row for row in members if rows.keys[row] == key):
            own[row], shares[row] = h[rows.secret[row]], h[rows.secret[row]] / number
    result["weighted_l"] = mean(rows, rows.person, few, min)
    result["sum_l"] = mean(rows, rows.person, own, max) * persons
    result["own_share"] = mean(rows, rows.person, shares, max)
    return result


PER_CLASS: tuple[tuple[str, Callable[[Rows, Sequence[int]], float], Callable[..., float]], ...] = (
    ("distinct_l", distinct, min),
    ("frequency_l", frequency, min),
    ("entropy_l", entropy, min),
    ("recursive_l", recursive_l, min),
    ("recursive_c", recursive_c, max),
    ("t_closeness", closeness, max),
    ("alpha_k", alpha, max),
    ("beta_likeness", beta, max),
    ("enhanced_beta", enhanced, max),
    ("delta_disclosure", delta, max),
)
