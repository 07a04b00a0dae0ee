"""The oracle: the definitions of measures applied record by record, slowly, and easy to check by reading.

It shares no code with the kernels. The table is a list of records, and records are in one class if their labels match.
The oracle of each measure computes its definition for one record.

The docstring of every measure has an example with these six rows:

| age | zip | disease | smokes |
|---|---|---|---|
| 20-39 | 476** | flu    | no  |
| 20-39 | 476** | flu    | no  |
| 20-39 | 476** | cancer | yes |
| 20-39 | 479** | flu    | no  |
| 40-59 | 479** | cancer | yes |
| 40-59 | 479** | ulcer  | no  |

There are three classes, of 3, 1 and 2 records. Column `age` has the leaves 24, 35, 47 and 51, and column `zip` the
leaves 47602, 47678 and 47905. The raw table has age 24, 24, 35, 35, 47, 51 and zip 47602, 47678, 47678, 47905, 47905,
47905.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from sfumato.base.arrays import Codes, Flags, Floats
from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.measure import Measure
from sfumato.plans.recodings import Recoding, at_levels
from sfumato.tables.domain import Domain, domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes


@dataclass(frozen=True, eq=False)
class Records:
    """A recoded table with one entry for each record, in the order of the frequency table."""

    table: FrequencyTable
    recoding: Recoding
    kept: Flags

    @cached_property
    def labels(self) -> Codes:
        """Return the group of each record in each column."""
        groups = [part.groups[codes] for part, codes in zip(self.recoding, self.table.codes, strict=True)]
        return np.repeat(np.stack(groups), self.table.counts, axis=1)

    @cached_property
    def originals(self) -> Codes:
        return np.repeat(self.table.codes, self.table.counts, axis=1)

    def crowd(self, record: int) -> Flags:
        """Return the released records that match a record, itself included."""
        same = np.ones(self.labels.shape[1], dtype=np.bool_)
        for j, (domain, part) in enumerate(zip(self.table.domains, self.recoding, strict=True)):
            agree = self.labels[j] == self.labels[j, record]
            if domain.wildcard and domain.missing is not None:
                wild = part.groups[domain.missing]
                if np.count_nonzero(part.groups == wild) == 1:
                    agree |= (self.labels[j] == wild) | (self.labels[j, record] == wild)
            same &= agree
        same &= self.kept == self.kept[record]
        return same

    def values(self, column: str) -> Codes:
        """Return the value of each record in a sensitive column or the label."""
        source = self.table.values_of(column)
        return np.repeat(source.values, source.counts)

    @cached_property
    def units(self) -> Codes:
        """Return the unit of each record, which is the record itself in a table without units."""
        units = self.table.units
        if units is None:
            return np.arange(self.labels.shape[1], dtype=np.int32)
        return np.repeat(units.unit, units.rows)

    @cached_property
    def households(self) -> Codes:
        """Return the household of each record."""
        households = self.table.households
        return self.units if households is None else np.repeat(households.unit, households.rows)

    def people(self, members: Flags) -> float:
        """Return the number of distinct units of some records."""
        return float(len(set(self.units[members].tolist())))

    def household_risk(self, household: int, risk: Callable[[Records, int], float]) -> float:
        """Return 1 − Π(1 − r) over the members of a household, where r is the largest risk of a member's records."""
        if self.table.household_of is None:
            members = [[record] for record in np.flatnonzero(self.households == household).tolist()]
        else:
            persons = np.flatnonzero(self.table.household_of == household)
            members = [np.flatnonzero(self.units == person).tolist() for person in persons]
        risks = [max((risk(self, record) for record in own if self.kept[record]), default=0.0) for own in members]
        return 1.0 - float(np.prod([1.0 - risk for risk in risks]))

    def holders(self, column: str) -> Codes:
        """Return the unit of each record in the order of the column; the household if the column is constant in it."""
        units = self.table.units_for(column)
        if units is None:
            return np.arange(self.labels.shape[1], dtype=np.int32)
        entries = units.values[column]
        order = np.lexsort((entries.unit, entries.values, entries.tuple_of))
        return np.repeat(entries.unit[order], entries.rows[order])

    def held(self, column: str, members: Flags) -> Floats:
        """Return the share of the units of some records that have each value of a column."""
        owners, values = self.holders(column)[members], self.values(column)[members]
        everyone = len(set(owners.tolist()))
        counts = [len(set(owners[values == value].tolist())) for value in range(len(self.domain(column).labels))]
        return np.array(counts, dtype=np.float64) / max(everyone, 1)

    def domain(self, column: str) -> Domain:
        return self.table.values_of(column).domain

    def shares(self, column: str, members: Flags) -> Floats:
        """Return the share of each value of a column among some records: the mean over their units."""
        owners, values = self.holders(column)[members], self.values(column)[members]
        each = [
            np.bincount(values[owners == owner], minlength=len(self.domain(column).labels)) / np.sum(owners == owner)
            for owner in sorted(set(owners.tolist()))
        ]
        return np.asarray(np.mean(each, axis=0))

    def learnable(self, column: str, members: Flags) -> tuple[set[int], bool]:
        """Return the values of some records that may not be learned, and whether they have a harmless value."""
        domain, held = self.domain(column), set(self.values(column)[members].tolist())
        harmful = {v for v in held if v != domain.missing and v not in domain.harmless}
        return harmful, any(v in domain.harmless and v != domain.missing for v in held)

    def ways(self, column: str, members: Flags) -> list[Flags]:
        """Return some records and, if the table has missing values, those of them whose value is known, if any."""
        known = self.values(column) != self.domain(column).missing
        return [members, members & known] if not known.all() and np.any(members & known) else [members]

    def largest_harmful_share(self, column: str, members: Flags) -> float:
        """Return the largest share of units with a value that may not be learned, in either way of counting."""
        harmful, _ = self.learnable(column, members)
        shares = [self.held(column, some) for some in self.ways(column, members)]
        return max((float(share[v]) for share in shares for v in harmful), default=0.0)

    def harmful_shares(self, column: str, members: Flags) -> list[tuple[float, float]]:
        """Return each share of a value that may not be learned, among some records and in all, by way of counting."""
        everyone, _ = self.learnable(column, self.kept)
        pairs = zip(self.ways(column, members), self.ways(column, self.kept), strict=False)
        both = [(self.held(column, some), self.held(column, rest)) for some, rest in pairs]
        return [(float(q[v]), float(p[v])) for q, p in both for v in sorted(everyone)]

    def population(self, record: int) -> int:
        """Return the number of people of the population who match a record."""
        people = self.table.population
        if people is None or any(domain.wildcard for domain in self.table.domains):
            return 0
        groups = [part.groups[codes] for part, codes in zip(self.recoding, people.codes, strict=True)]
        same = np.all(np.stack(groups) == self.labels[:, [record]], axis=0)
        return int(people.counts[same].sum())

    def each(self, measure: Measure, column: str | None = None) -> Floats:
        """Return the number of a measure's oracle for every kept record, and NaN for the others."""
        result = np.full(self.labels.shape[1], np.nan)
        for record in np.flatnonzero(self.kept):
            given = (self, int(record)) if column is None else (self, int(record), column)
            result[record] = measure.oracle(*given, **measure.parameters)
        return result


AGE = Hierarchy.from_paths(
    "age", [("24", "20-39", "*"), ("35", "20-39", "*"), ("47", "40-59", "*"), ("51", "40-59", "*")]
)
ZIP = Hierarchy.from_paths("zip", [("47602", "476**", "*"), ("47678", "476**", "*"), ("47905", "479**", "*")])


@cache
def six_records() -> FrequencyTable:
    """Return the raw six-row table."""
    age = domain_of("age", {"24": 2, "35": 2, "47": 1, "51": 1}, AGE)
    zip_code = domain_of("zip", {"47602": 1, "47678": 2, "47905": 3}, ZIP)
    disease = domain_of("disease", {"cancer": 2, "flu": 3, "ulcer": 1})
    smokes = domain_of("smokes", {"no": 4, "yes": 2})
    records = np.array([[0, 0, 1, 1, 2, 3], [0, 1, 1, 2, 2, 2]], dtype=np.int32)
    return from_codes(
        [age, zip_code],
        records,
        {"disease": (disease, np.array([1, 1, 0, 1, 0, 2], dtype=np.int32))},
        (smokes, np.array([0, 0, 1, 0, 1, 0], dtype=np.int32)),
    )


@cache
def six_rows() -> ClassTable:
    """Return the six-row table with both columns at level 1: classes of 3, 1 and 2 records."""
    return classify(six_records(), at_levels(six_records(), (1, 1)))
