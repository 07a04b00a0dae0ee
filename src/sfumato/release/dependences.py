"""What the columns that a release keeps tell of those that it generalizes, withholds or calls sensitive."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.auditing.own_values import PERSON, holder_cells
from sfumato.errors import shortened
from sfumato.release.columns import ColumnRecode
from sfumato.release.policy import Finding
from sfumato.release.recode import complete_rows
from sfumato.runtime.figures import percent_down
from sfumato.sources.engines.engine import Engine
from sfumato.sources.roles import Role
from sfumato.sources.source import Source
from sfumato.study import Study
from sfumato.tables.dependence import Dependence, Dependences, Protected, dependences

LISTED = 5  # columns that a sentence names
FIRST = "one_record_each"


def release_dependences(engine: Engine, source: Source, study: Study, columns: Sequence[ColumnRecode]) -> Dependences:
    """Search the source, attached as `raw`, as it will be released: every record that the missing rule keeps.

    Of a person with several records the first is searched. The others would repeat what is constant within persons, so
    that a value of one's own would seem to be guessed from other people.
    """
    roles = {name: study.columns[name].role for name in source.names}
    kept = [n for n, role in roles.items() if role.released and role is not Role.QUASI_IDENTIFIER]
    protected = [generalized(column) for column in columns if column.level > 0]
    protected += [Protected(n, "withheld") for n, role in roles.items() if not role.released]
    protected += [Protected(n, "sensitive") for n, role in roles.items() if role is Role.SENSITIVE]
    beside = [column.name for column in columns if column.level == 0]
    rows, unit = complete_rows(source, study), holder_cells(source, study).get(PERSON)
    raw = "raw" if unit is None else first_records(engine, "raw", unit, rows)
    return dependences(engine, source, kept, protected, beside, rows=rows, raw=raw)


def first_records(engine: Engine, view: str, key: str, rows: str) -> str:
    """The name of a view with the first of the records of another that are equal in a key."""
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE first_records AS SELECT min(r) AS first FROM {view}_numbered WHERE {rows} "
        f"GROUP BY {key}"
    )
    for ending in ("_numbered", ""):
        chosen = f"SELECT * FROM {view}_numbered WHERE r IN (SELECT first FROM first_records)"
        engine.run(f"CREATE OR REPLACE TEMP VIEW {FIRST}{ending} AS {chosen}")
    return FIRST


def generalized(column: ColumnRecode) -> Protected:
    """A quasi-identifier with the labels of every level up to the one that is released."""
    steps = [
        {key: column.tree.levels[level][group] for key, group in zip(column.keys, column.tree.maps[level], strict=True)}
        for level in range(1, column.level + 1)
    ]
    return Protected(column.name, "generalized", tuple(steps))


def dependence_findings(
    engine: Engine, source: Source, study: Study, columns: Sequence[ColumnRecode]
) -> tuple[list[Finding], list[str]]:
    """What breaks the rule `dependence`, and what else the publisher should know.

    A quasi-identifier that is released unchanged and reveals a generalized one breaks no rule: records that differ in
    it are in different classes, so every figure counts what it reveals. The publisher is warned that the
    generalization has no effect.
    """
    searched = release_dependences(engine, source, study, columns)
    kept = [n for n in source.names if study.columns[n].role is not Role.QUASI_IDENTIFIER]
    vain = [dependence for dependence in searched.dependences if dependence.kept[0] not in kept]
    noun = "persons" if study.named(Role.UNIT) else "records"
    return findings_of(searched, study, kept, noun), [_in_vain(dependence, noun) for dependence in vain]


def findings_of(searched: Dependences, study: Study, kept: Sequence[str], noun: str = "records") -> list[Finding]:
    """The findings about kept columns that give a protected one away, one for each column."""
    by_column: dict[str, list[Dependence]] = {}
    for dependence in searched.dependences:
        by_column.setdefault(dependence.kept[0], []).append(dependence)
    return [
        Finding(
            "dependence",
            sentence(name, by_column[name], released_as(study, name), noun),
            name,
            _figures(by_column[name]),
        )
        for name in kept
        if name in by_column
    ]


def _figures(listed: Sequence[Dependence]) -> dict[str, float]:
    """For how many of the records each protected column follows, as a share."""
    shares: dict[str, float] = {}
    for one in listed:
        shares[one.protected] = max(one.right, shares.get(one.protected, 0.0))
    return shares


def released_as(study: Study, name: str) -> str:
    """How a column that no plan recodes is released."""
    treatment = study.treatments.get(name)
    return "unchanged" if treatment is None else "in bands" if treatment.bands else "rounded"


def sentence(name: str, listed: Sequence[Dependence], how: str = "unchanged", noun: str = "records") -> str:
    """What a kept column reveals, for the publisher."""
    return f"{name} is released {how} and {'; '.join(_clause(d, noun) for d in listed[:LISTED])}" + (
        f"; and {len(listed) - LISTED} more columns: {shortened([d.protected for d in listed[LISTED:]])}"
        if len(listed) > LISTED
        else ""
    )


def _clause(d: Dependence, noun: str) -> str:
    exact = {"one_to_one": ", one-to-one", "many_to_one": "", "nearly": ""}[d.kind]
    if d.way == "follows":
        return (
            f"is finer than the released labels of {d.protected}: it follows from {d.protected} for "
            f"{percent_down(d.right)} of the {noun}, from its released label for {percent_down(d.base)}{exact}"
        )
    if d.way == "finds":
        return f"finds {percent_down(d.right)} of the {noun} that {d.protected} is to hide, and is mostly right"
    helped = f"with {d.kept[1]} " if len(d.kept) > 1 else ""
    what = d.protected if not d.step else f"a finer label of {d.protected}"
    how = "gives, by a sum," if d.way == "computes" else "tells"
    return (
        f"{helped}{how} {what}, which is {d.status}: right for {percent_down(d.right)} of the {noun}, "
        f"{percent_down(d.base)} without it{exact}"
    )


def _in_vain(d: Dependence, noun: str) -> str:
    what = "it" if not d.step else "a finer label of it"
    helped = f" with {d.kept[1]}" if len(d.kept) > 1 else ""
    return (
        f"{d.protected} is generalized without effect: {d.kept[0]}, released unchanged, determines {what}{helped} for "
        f"{percent_down(d.right)} of the {noun}."
    )
