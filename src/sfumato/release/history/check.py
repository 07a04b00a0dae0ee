"""The comparison of a new release with each earlier one about the same people, before it is published.

Every kind of release uses it in the same way:

    comparison = check(engine, study, source, description, state=state)   # the source is attached as `raw`
    refuse_unaccepted(comparison.findings, study.policy.accept)
    with entered(comparison, folder) as warnings:                         # written down before, confirmed after
        part.rename(folder)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.auditing.uniqueness import HOUSEHOLD, PERSON, holder_cells
from sfumato.base.text import percent
from sfumato.data.engine import Engine
from sfumato.data.source import Source
from sfumato.errors import counted, shortened
from sfumato.release.history.compare import Joint, Places, Reports, add_up, compare_places, hashed_pairs, join_releases
from sfumato.release.history.description import Description
from sfumato.release.history.ledger import RELEASED, WITHDRAWN, Entry, Ledger, at_the_same_time, now
from sfumato.release.history.people import HashedRows, hashed_rows, own_hashes, recognize, sketches
from sfumato.release.policy import Finding, refuse_unaccepted
from sfumato.study import Study
from sfumato.study.sections import PolicySettings


@dataclass(frozen=True)
class Comparison:
    """What a new release reveals together with earlier ones: findings that need an acceptance, and warnings."""

    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    ledger: Ledger
    entry: Entry
    known: frozenset[str]


@dataclass(frozen=True)
class Match:
    """An earlier release about the same people. `rows` are its own if the table has changed since."""

    entry: Entry
    share: float = 1.0
    rows: HashedRows | None = None
    new: int = 0
    gone: int = 0
    renamed: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()

    @property
    def otherwise(self) -> bool:
        """Whether columns that the earlier release shows now have other names or values written in another way."""
        return any(name in self.entry.description.columns for name in (*self.renamed, *self.rewritten))


def check(
    engine: Engine, study: Study, source: Source, description: Description, *, state: str | Path | None = None
) -> Comparison:
    """Compare a planned release with every earlier one about the same people.

    The source is attached to the engine as `raw`. Nothing is written.
    """
    ledger = Ledger(state)
    key = ledger.key
    description = replace(description, swaps=hashed_pairs(engine, source, key, description), pairs=None)
    own = own_hashes(engine, source, description.person, key)
    seen = sketches(engine, source, key)
    entry = Entry(secrets.token_hex(8), now(), Path(), source.fingerprint, description, tuple(own), seen)
    reading = ledger.read()
    warnings = []
    if reading.unreadable:
        warnings.append(
            f"{counted(reading.unreadable, 'line')} of the ledger cannot be read, or another version wrote them: "
            "releases they were about were not compared."
        )
    warnings += [
        f"publishing to {folder} was interrupted, and the folder does not exist: it was not compared."
        for digest, folder in reading.interrupted
        if digest == source.fingerprint
    ]
    matches = _matches(engine, source, key, entry, reading.entries)
    findings: list[Finding] = []
    for match in _different(matches, entry):
        if match.otherwise:
            findings.append(Finding("earlier", _otherwise(match, source)))
        else:
            comparison, said = _compare(engine, source, key, study, match, description)
            findings += comparison
            warnings += said
    findings += _reports(engine, source, study, description, [match for match in matches if not match.otherwise])
    return Comparison(tuple(findings), tuple(dict.fromkeys(warnings)), ledger, entry, reading.ids)


@contextmanager
def entered(
    comparison: Comparison | None, folder: Path, again: Callable[[], Comparison | None] = lambda: None
) -> Iterator[list[str]]:
    """Enter a release in the ledger while its folder receives its name. None enters nothing.

    The ledger is locked from the last comparison until the release is confirmed. If another release was entered since
    the comparison, `again` runs a second time, and new findings are refused. The entry is written before the folder
    receives its name, confirmed after, and withdrawn if the folder did not receive it. A process that is killed in
    between leaves an entry, which counts if the folder exists, and no lock. The context yields a list that contains the
    warnings at the end.
    """
    warnings: list[str] = []
    if comparison is None:
        yield warnings
        return
    with comparison.ledger.locked():
        if comparison.ledger.changed(comparison.known, comparison.ledger.key):
            comparison = _compared_again(comparison, again)
        ledger, entry = comparison.ledger, replace(comparison.entry, folder=folder.absolute())
        existed = folder.exists()
        ledger.intend(entry)
        try:
            yield warnings
        except BaseException:
            if existed or not folder.exists():
                with suppress(OSError):  # even without this line, a folder that does not exist is not counted
                    ledger.end(entry, WITHDRAWN)
            raise
        try:
            ledger.end(entry, RELEASED)
        except OSError as error:
            warnings.append(
                f"the release could not be confirmed in the ledger ({error.strerror}); it is known by its folder."
            )


def _compared_again(before: Comparison, again: Callable[[], Comparison | None]) -> Comparison:
    """Return the comparison with a ledger that has new releases. The reports state what the first one found."""
    now = again()
    if now is None:
        raise at_the_same_time()
    new = [finding for finding in now.findings if finding not in before.findings]
    refuse_unaccepted(new, ())
    if now.findings != before.findings or now.warnings != before.warnings:
        raise at_the_same_time()
    return now


def _matches(engine: Engine, source: Source, key: str, entry: Entry, earlier: Sequence[Entry]) -> list[Match]:
    """Return the earlier releases about the same people: the same table, or at least half of the rows in common."""
    hashed = {rows.columns: rows for rows in entry.rows}
    matches = []
    for other in earlier:
        if other.source == entry.source:
            matches.append(Match(other))
            continue
        names, rewritten = recognize(other.sketches, entry.sketches)
        for rows in other.rows:
            if not set(rows.columns) <= set(names):
                continue
            columns = tuple(names[name] for name in rows.columns)
            if columns not in hashed:
                hashed[columns] = hashed_rows(engine, source, columns, key)
            own = hashed[columns]
            if rows.same_people(own):
                shared = rows.shared(own)
                common = round(shared * min(rows.rows, own.rows))
                known = replace(rows, columns=columns) if rows.whole else None
                renamed = tuple(old for old, new in names.items() if old != new)
                matches.append(Match(other, shared, known, own.rows - common, rows.rows - common, renamed, rewritten))
                break
    return matches


def _different(matches: Sequence[Match], entry: Entry) -> list[Match]:
    """Return the matches to compare: the last of each description of each source, without this same release."""
    last: dict[tuple[str, str], Match] = {}
    for match in matches:
        last[match.entry.source, match.entry.description.digest] = match
    same = (entry.source, entry.description.digest)
    return [match for name, match in last.items() if name != same or entry.description.random]


def _compare(
    engine: Engine, source: Source, key: str, study: Study, match: Match, description: Description
) -> tuple[list[Finding], list[str]]:
    """Compare one earlier release with the new one: return a finding, or a warning if nothing is refused."""
    first, policy, cells = match.entry.description, study.policy, holder_cells(source, study)
    person, household = cells.get(PERSON), cells.get(HOUSEHOLD)

    def joined(k: int, holder: str | None) -> Joint:
        known = match.rows
        return join_releases(engine, source, first, description, k=k, l=policy.l, known=known, key=key, holder=holder)

    joint = joined(policy.k, person)
    places = compare_places(engine, source, key, first.within(source.names), description)
    findings = []
    text = _about(match, source) + " " + _difference(first, description, joint, person)
    learned = []
    if joint.first_adds and joint.second_adds and joint.linking:
        learned = _learned(joint, policy.k, policy, ("person is", "people are"))
        if household is not None:
            learned += _learned(
                joined(policy.households, household), policy.households, policy, ("household is", "households are")
            )
    if learned:
        what = f"{text} Someone who links the two files learns: {'; '.join(learned)}. {_links(joint, person)}"
        findings.append(Finding("earlier", what))
    if places is not None and places.differing:
        findings.append(Finding("earlier", f"{_about(match, source)} {_places(places)}"))
    if findings or first.random or not (joint.first_adds or joint.second_adds):
        return findings, []
    follows = " It discloses nothing beyond the other release." if not joint.first_adds else ""
    follows = " This release discloses nothing beyond it." if not joint.second_adds else follows
    return [], [f"{text}{follows} {_links(joint, person)}"]


def _reports(engine: Engine, source: Source, study: Study, new: Description, matches: Sequence[Match]) -> list[Finding]:
    """Return columns that are disguised now or were before, and on which several files give information."""
    findings = []
    person = holder_cells(source, study).get(PERSON)
    for column in source.names:
        showing = [m for m in matches if column in m.entry.description.columns]
        kinds = [m.entry.description.columns[column].kind for m in showing]
        own = new.columns[column].kind if column in new.columns else None
        if own is None or not showing or "disguised" not in (own, *kinds):
            continue
        if own != "disguised":  # labels are the same however often they are shown
            showing = [m for m, kind in zip(showing, kinds, strict=True) if kind == "disguised"]
        descriptions = {m.entry.id if m.entry.description.random else m.entry.description.digest: m for m in showing}
        reports = add_up(engine, source, column, new, [m.entry.description for m in descriptions.values()])
        if reports is not None:
            joint = join_releases(engine, source, showing[-1].entry.description, new, k=0, l=0, holder=person)
            said = f"{_about(showing[-1], source)} {_guessed(reports, person)} {_links(joint, person)}"
            findings.append(Finding("earlier", said))
    return findings


def _learned(joint: Joint, k: int, policy: PolicySettings, are: tuple[str, str]) -> list[str]:
    """Return what the two files reveal together that violates the policy. `are` are the units with their verb."""
    learned = []
    if joint.small:
        learned.append(
            f"{counted(joint.small, *are)} in joint classes of fewer than {k} (the smallest has {joint.smallest:,})"
        )
    for column, people in joint.exact.items():
        nouns = (word.partition(" ")[0] for word in are)
        learned.append(f"the exact value of {column} follows for {counted(people, *nouns)}")
    for column, people in joint.alike.items():
        learned.append(f"{counted(people, *are)} in joint classes with fewer than {policy.l} values of {column}")
    if joint.unique > policy.uniques * joint.people:
        learned.append(f"{counted(joint.unique, *are)} unique in the two files together and in neither alone")
    return learned


def _otherwise(match: Match, source: Source) -> str:
    """Return a warning of an earlier release whose columns cannot be compared one by one with those of the table."""
    had = "had another name" if len(match.renamed) == 1 else "had other names"
    changed = ((match.renamed, had), (match.rewritten, "had values that were written otherwise"))
    said = [f"{shortened(names)} {how}" for names, how in changed if names]
    return (
        f"{_about(match, source)} In the earlier table {'; '.join(said)}, so what the two releases reveal together "
        "could not be counted."
    )


def _about(match: Match, source: Source) -> str:
    """Return a clause that identifies the earlier release and the reason why it is about the same people."""
    entry = match.entry
    text = f"The release of {entry.day} to {entry.folder} is of the same table."
    if entry.source != source.fingerprint:
        text = (
            f"The release of {entry.day} to {entry.folder} is about the same people: {percent(match.share)} of the "
            "rows of the smaller table are in both."
        )
        if match.new:
            new = counted(match.new, "row of this table is", "rows of this table are")
            text += f" {new} new" + ("." if match.rows else ", and could not be distinguished from the others.")
        if match.gone:
            text += f" {match.gone:,} of its rows are no longer in the table, and were not compared."
        lacking = [name for name in entry.description.columns if name not in source.names]
        if lacking:
            text += f" Its columns {shortened(lacking)} are not in this table, and were not compared."
    return text


def _difference(first: Description, second: Description, joint: Joint, person: str | None) -> str:
    """Return a clause on the columns in which two releases differ, and on people who are in one of them only."""
    labels = [name for name, column in second.columns.items() if first.columns.get(name, column) != column]
    lacking = [name for name in second.columns if name not in first.columns]
    more = [name for name in first.columns if name not in second.columns]
    parts = [f"shows {shortened(labels)} differently"] if labels else []
    parts += [f"lacks {shortened(lacking)}"] if lacking else []
    parts += [f"has {shortened(more)} as well"] if more else []
    text = f"It {', '.join(parts)}." if parts else "It has the same columns and labels."
    if joint.single:
        are = ("person is", "people are") if person is None else ("person has records", "people have records")
        text += f" {counted(joint.single, *are)} in only one of the two files."
    return text


def _links(joint: Joint, person: str | None) -> str:
    """Return a clause on how many rows link in fact. Rows are people unless `person` states whose they are."""
    if not joint.linking:
        return "The two files have nothing in common by which a row of one could be linked to a row of the other."
    text = (
        f"{'' if joint.counted else 'At least '}{joint.linked:,} of {joint.rows:,} "
        f"{'people' if person is None else 'records'} in both files link uniquely"
    )
    text += f" by the values in both ({shortened(joint.linking)})"
    if joint.affected:
        whose = "the people" if person is None else "the records of the people"
        text += f"; of {whose} named above, {joint.linked_affected:,} link uniquely"
    return text + "."


def _places(places: Places) -> str:
    """Return a clause on exchanged cells that differ."""
    return (
        f"{places.same:,} of {max(places.pairs):,} exchanged pairs are the same; {places.differing:,} rows show "
        f"another place in the two files ({shortened(places.columns)}), and an attacker who links them knows "
        f"that these were exchanged. {places.linked:,} of them link uniquely by the columns that both keep."
    )


def _guessed(reports: Reports, person: str | None) -> str:
    """Return a clause on what several reports of one column reveal together."""
    whose = "people" if person is None else "records"
    alone, name = reports.alone, "this file"
    if alone is None or alone.right >= reports.together.right - 1e-9:
        alone, name = reports.before, "the earlier file"
    more = f" ({reports.left_out} more were left out)" if reports.left_out else ""
    return (
        f"With it there are {reports.files} reports{more}: the best guess of {reports.column} is right for "
        f"{percent(reports.together.right)} of {whose}, with {name} alone for {percent(alone.right)}; after some "
        f"reports one can be {percent(reports.together.surest)} sure of it, with {name} alone {percent(alone.surest)}."
    )
