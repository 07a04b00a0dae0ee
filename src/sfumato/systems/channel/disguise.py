"""Disguise columns of a table, and release the result: written whole, read back, measured, public and private apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import InputError, SfumatoError, StudyError, counted, shortened
from sfumato.plans.channel import Channel
from sfumato.release import pack
from sfumato.release.draft import Draft, Measured
from sfumato.release.history.shown import Description, describe_disguise
from sfumato.release.manifest import Content
from sfumato.release.policy import Finding, acceptances
from sfumato.release.publish import Release, publish_draft
from sfumato.release.sources import table_of
from sfumato.runtime.atomic import refuse_existing_folder
from sfumato.runtime.stages import stage
from sfumato.sources.engines.engine import Engine, require_order
from sfumato.sources.source import Source
from sfumato.sources.value_counts import require, tally
from sfumato.study import Study
from sfumato.study.policy import Acceptance, PolicySettings
from sfumato.systems.channel import draw
from sfumato.systems.channel.contents import CHANNEL, Disguise, Disguised, count_file, pages_of, private_text
from sfumato.systems.channel.determined import determined_findings
from sfumato.systems.channel.given import given_others
from sfumato.systems.channel.prior import check_beside, complete_columns, unit_of
from sfumato.systems.channel.readback import Agreement, Rows, Truth, agreement, differing_rows

ENDINGS = (".csv", ".csv.gz", ".parquet")


def disguise(
    study: Study,
    channels: Sequence[Channel],
    folder: str | Path,
    *,
    keep: Sequence[str] | None = (),
    keep_order: bool = False,
    test_seed: int | None = None,
    name: str = "data.csv",
    reason: str = "",
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    state: str | Path | None = None,
) -> Release:
    """Release a table in which the channels' columns are disguised, beside columns to `keep` (None keeps all others).

    The new folder has a part `public` for analysts and a part `private` with the true shares. The file is read back:
    its plain columns are compared with the source, its reports with what the channels make of the truth.
    Columns with the role identifier, drop or vital are never kept. A `test_seed` makes the draw repeatable, and marks
    the file with a column of its own; never publish such a file. `accept` gives a reason for each rule of the policy
    that the release may break; `state` is the folder of the ledger, the user's own unless given.

    Args:
        study: the table, and what its columns are.
        channels: a channel for each disguised column or set of columns.
        folder: a folder that does not exist yet.
        keep: columns that are released as they are; None for all others.
        keep_order: whether rows keep their order.
        test_seed: makes the draw repeatable, for tests alone.
        name: the name of the released file.
        reason: why, for the internal report.
        accept: rules that the release may break, each with a reason.
        state: the folder of the ledger.

    Returns:
        The release.
    """
    refuse_existing_folder(Path(folder).absolute())
    study = study.with_accepted(acceptances(accept))
    draft = disguise_draft(study, channels, keep, keep_order, test_seed, name)
    return publish_draft(draft, folder, reason=reason, state=state)


@dataclass(eq=False, kw_only=True)
class DisguiseDraft(Draft):
    """What is to be disguised, and what goes along.

    A channel is made for shares, not for a table: the fingerprint is that of the table when it was first read.
    """

    system: str = "channel"
    what: Disguise

    rows_read: int = field(init=False)
    agreed: Agreement = field(init=False)
    disguised: Disguised = field(init=False)
    determined: list[Finding] = field(init=False)

    @property
    def complete(self) -> tuple[str, ...]:
        """The disguised columns whose missing values leave a row out."""
        return tuple(complete_columns(self.study, self.what.hidden))

    def describe(self, engine: Engine) -> Description | None:
        """A file for tests is not compared with others, and never released."""
        what = self.what
        if what.test_seed is not None:
            return None
        engine.attach(self.source, "raw")
        return describe_disguise(
            self.study, self.source, what.channels, what.kept, self.complete, ordered=what.keep_order
        )

    def write(self, engine: Engine, folder: Path) -> Study:
        what = self.what
        path, unit = folder / what.data, unit_of(self.study)
        self.rows_read = write_reports(engine, self.source, what, self.complete, path, unit)
        rows = Rows(engine, self.source, "raw", self.complete, unit_of(self.study)).attach()
        counts, persons = true_counts(rows, what.channels), rows.persons(what.hidden)
        (folder / CHANNEL).write_text(private_text(what.channels, counts, persons), encoding="utf-8")
        like = draw.plain_file(self.source, Path(what.data))
        return pack.write_run_file(folder, self.study, like, what.columns, what.data, {})

    def compare(self, engine: Engine, own: Study) -> None:
        rows = Rows(engine, self.source, "raw", self.complete, unit_of(self.study)).attach()
        with stage("compare every row"):
            torn, self.agreed, self.disguised = read_back(rows, self.what, table_of(own), self.study.policy)
        with stage("look for dependences"):
            self.determined = determined_findings(rows, self.study, self.what.hidden, self.what.kept)
        if torn:
            raise SfumatoError(
                f"{counted(torn, 'row of the file does', 'rows of the file do')} not have the "
                "plain columns of the source",
                expected="the rows of the source; nothing was released",
            )
        if not self.agreed.holds:
            raise SfumatoError(
                "the frequencies of reports in the written file do not agree with the channel",
                expected=f"counts with a probability of {self.agreed.level:g} or more; nothing was released",
                remedy="disguise the table again; if that fails too, please report it",
            )

    def measure(self, _: Study) -> Measured:
        """All was counted while the file was compared."""
        what, disguised = self.what, self.disguised
        return Measured(
            columns=what.columns,
            rows_read=self.rows_read,
            records=disguised.records,
            suppressed=0,
            left_out=self.rows_read - disguised.records,
            loss=disguised.loss,
            figures=disguised.figures,
            whole=disguised.whole,
            point=disguised.point,
            dictionary=disguised.dictionary(self.study, len(self.source.columns) - len(what.hidden) - len(what.kept)),
            own=disguised.as_dict() | {"agreement": self.agreed.as_dict()},
            findings=[
                *disguised.findings(self.study.policy, self.rows_read - disguised.records),
                *self.determined,
            ],
            warnings=disguised.warnings(),
        )

    def pages(self, folder: Path, manifest: Content) -> Mapping[str, str]:
        return pages_of(folder, manifest)


def disguise_draft(
    study: Study,
    chosen: Sequence[Channel],
    keep: Sequence[str] | None,
    keep_order: bool = False,
    test_seed: int | None = None,
    name: str = "data.csv",
) -> DisguiseDraft:
    """The release of a disguised table, to be written, read back and measured."""
    data = pack.named_data(name, ENDINGS)
    channels = tuple(chosen)
    source = table_of(study)
    own = [column for channel in channels for column in channel.columns]
    require(source, own)
    what = Disguise(channels, tuple(_kept(study, source, own, keep)), data, keep_order, test_seed)
    if not channels or len(set(own)) < len(own) or len(set(what.columns)) < len(what.columns):
        raise InputError(
            "a column is listed twice" if channels else "no channel is given",
            expected="at least one channel, and each column once",
        )
    return DisguiseDraft(study=study, source=source, fingerprint=source.fingerprint, data=data, what=what)


def _kept(study: Study, source: Source, own: Sequence[str], keep: Sequence[str] | None) -> list[str]:
    """The plain columns. All others are kept only where each has a role; a named one only if its role allows it."""
    if keep is None:
        undecided = [name for name in source.names if name not in own and name not in study.columns]
        if undecided:
            raise StudyError(
                f"{counted(len(undecided), 'column')} without a role: {shortened(undecided)}",
                expected="a role for every column before all others are kept as they are",
                remedy="name the columns to keep, or declare the roles in a run file",
            )
        return [name for name in source.names if name not in own and study.columns[name].role.released]
    require(source, keep)
    check_beside(study, keep)
    disguised = [name for name in keep if name in own]
    if disguised:
        raise StudyError(
            f"{shortened(disguised)} would be released beside its own disguise",
            expected="columns other than the disguised ones",
            remedy=f"leave {disguised[0]} out of the columns to keep",
        )
    return list(keep)


def write_reports(
    engine: Engine, source: Source, what: Disguise, complete: Sequence[str], path: Path, unit: str | None = None
) -> int:
    """Draw a report for every record (every person and value) and write the file; how many rows the source has."""
    seed = what.test_seed
    numbers = draw.system_draw if seed is None else draw.seeded_draw(seed)
    if what.keep_order or seed is not None:  # one stream of rows, one stream of numbers
        require_order(engine, "keeping the order of the rows" if what.keep_order else "a test seed")
    truth = tally(engine, source, what.hidden, complete)
    for channel in what.channels:
        draw.check_known(engine, source, channel, truth)
    sql = draw.reading(source, what.channels, what.kept, complete, unit)
    secret = None if unit is None else draw.secret(seed)
    change = draw.changer(what.channels, len(what.kept), numbers, what.keep_order, seed, secret)
    engine.stream(sql, change, "disguised")
    listed = ", ".join(f"x{i} AS c{i}" for i in range(len(what.columns)))
    ordered = f"SELECT {listed} FROM disguised ORDER BY place"
    engine.write(ordered, path, draw.plain_file(source, path), what.columns)
    return truth.records + truth.dropped


def true_counts(source: Rows, channels: Sequence[Channel]) -> tuple[Truth, ...]:
    """How many records (and persons) of the source have each category, channel by channel."""
    counts = tuple(source.everybody(channel.columns, channel.cells) for channel in channels)
    if any((truth.rows > 0).sum() < 2 for truth in counts):
        raise InputError("a column has fewer than two values in the table", expected="something to disguise")
    return counts


def read_back(source: Rows, what: Disguise, file: Source, policy: PolicySettings) -> tuple[int, Agreement, Disguised]:
    """Read a written file: rows whose plain columns differ from the source's, whether the reports can be the channels',
    and all that is counted."""
    written = Rows(source.engine, file, "written").attach()
    counts = true_counts(source, what.channels)
    given = given_others(source, written, what.channels, what.kept, policy)
    disguised = count_file(source.engine, what, file, counts, given, source.persons(what.hidden))
    torn = differing_rows(source, written, what.kept)
    return torn, agreement(source, written, what.channels, what.kept), disguised
