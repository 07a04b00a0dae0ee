"""Release a table with disguised columns: written completely, read back, measured; public and private parts apart.

The module also verifies a disguise: its files, figures and pages, and with the source whether the channel can have made
it. The draw is not recorded, so the reports of a file cannot be reproduced. What can be checked is that every plain
column equals that of the source, row by row, and that the reports have the distribution that the matrix implies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.base.files import refuse_existing_folder
from sfumato.base.progress import stage
from sfumato.data.engine import Engine, open_engine, require_order
from sfumato.data.settings import DataSettings
from sfumato.data.source import Source, mark_of
from sfumato.data.value_counts import require, tally
from sfumato.errors import InputError, SfumatoError, StudyError, counted, shortened
from sfumato.methods.channel import draw
from sfumato.methods.channel.draw import (
    LEVEL,
    Agreement,
    Persons,
    Rows,
    Truth,
    agreement,
    chance_of,
    differing_rows,
    plain_file,
)
from sfumato.methods.channel.given import LIMITS, determined_findings, given_others, others_words
from sfumato.methods.channel.pages import CHANNEL, Disguise, Disguised, count_file, pages_of, private_text, read_private
from sfumato.methods.channel.prior import check_beside, complete_columns, unit_of
from sfumato.plans.channel import Channel
from sfumato.release.draft import Draft, Measured
from sfumato.release.history.description import Description, describe_disguise
from sfumato.release.manifest import MANIFEST, RUN, Content, file_settings, named_data, write_run_file
from sfumato.release.policy import Finding, acceptances
from sfumato.release.publish import Release, publish_draft
from sfumato.release.readback import table_of
from sfumato.release.verify import Again, Check, Difference, Verifier
from sfumato.study import Study
from sfumato.study.sections import Acceptance, PolicySettings

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
    """Release a table in which the channels' columns are disguised, with columns to `keep` (None keeps all others).

    The new folder has a part `public` for analysts and a part `private` with the true shares. The file is read back.
    Its plain columns are compared with the source, and its reports with the distribution that the channels imply.
    Columns with the role identifier, drop or vital are never kept. A `test_seed` makes the draw repeatable, and marks
    the file with an additional column. Never publish such a file. A reason for each rule of the policy that the release
    may break is given by `accept`. The folder of the ledger is `state`, by default that of the user.

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
    """The draft of a release with disguised columns.

    A channel is made for shares, not for a table. The fingerprint is that of the table when it was first read.
    """

    system: str = "channel"
    what: Disguise

    rows_read: int = field(init=False)
    agreed: Agreement = field(init=False)
    disguised: Disguised = field(init=False)
    determined: list[Finding] = field(init=False)

    @property
    def complete(self) -> tuple[str, ...]:
        """The disguised columns whose missing values exclude a row."""
        return tuple(complete_columns(self.study, self.what.hidden))

    def describe(self, engine: Engine) -> Description | None:
        """Return the description for the ledger. A file for tests is not compared with others, and never released."""
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
        return write_run_file(folder, self.study, like, what.columns, what.data, {})

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
        """Return the measured figures; everything was counted while the file was compared."""
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
    """Return the draft of a disguised table, to be written, read back and measured."""
    data = named_data(name, ENDINGS)
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
    """Return the plain columns: those named if their roles allow it, else all others, which then need a role."""
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
    """Draw a report for every record (every person and value) and write the file; return the number of rows."""
    seed = what.test_seed
    numbers = draw.system_draw if seed is None else draw.seeded_draw(seed)
    if what.keep_order or seed is not None:  # one stream of rows, so that each row has the same random number
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
    """Return the number of records (and persons) of the source with each category, channel by channel."""
    counts = tuple(source.everybody(channel.columns, channel.cells) for channel in channels)
    if any((truth.rows > 0).sum() < 2 for truth in counts):
        raise InputError("a column has fewer than two values in the table", expected="something to disguise")
    return counts


def read_back(source: Rows, what: Disguise, file: Source, policy: PolicySettings) -> tuple[int, Agreement, Disguised]:
    """Read a written file and return what was counted.

    The results are the rows whose plain columns differ from the source, the agreement of the reports with the channels,
    and the counted file.
    """
    written = Rows(source.engine, file, "written").attach()
    counts = true_counts(source, what.channels)
    given = given_others(source, written, what.channels, what.kept, policy)
    disguised = count_file(source.engine, what, file, counts, given, source.persons(what.hidden))
    torn = differing_rows(source, written, what.kept)
    return torn, agreement(source, written, what.channels, what.kept), disguised


CLOSE = 1e-6  # tolerance of recomputed figures, because the certified bound comes from an iteration


def measure_again(check: Check) -> Again:
    """Count the reports of the released file, and compute every figure anew."""
    manifest, (what, counts, persons) = check.manifest, _stated(check)
    given = manifest["own"]["given"]
    plain = plain_file(check.written, Path(check.data))
    expected = file_settings(plain, what.columns, check.data, trim=check.study.data.trim)
    if check.own.data != DataSettings(**expected):
        raise InputError(f"{RUN} does not read the file as analysts do", expected="Parquet, or plain CSV")
    with open_engine(check.own.engine, check.own.engine_options) as engine:
        disguised = count_file(engine, what, check.written, counts, given, persons)
    warnings = disguised.warnings()
    again = {"records": disguised.records, "suppressed": 0, "loss": disguised.loss, "figures": disguised.figures}
    stated = {**manifest, **manifest["own"], "warnings": manifest["warnings"][: len(warnings)]}
    differences = [
        Difference(MANIFEST, f"its {name} {'is' if name in ('loss', 'point') else 'are'} not what the file shows")
        for name, value in {**again, "point": disguised.point, "warnings": warnings, **disguised.as_dict()}.items()
        if not alike(value, stated[name])
    ]
    cells = sum(len(channel.outputs) for channel in what.channels)
    chances = [
        chance_of(reports, truth, channel.matrix)
        for channel, truth, reports in zip(what.channels, counts, disguised.reports, strict=True)
    ]
    differences += _disagreement(check, Agreement(min(min(chances) * cells, 1.0), cells))
    if not given_fits(given, disguised, check.study.policy):
        differences.append(
            Difference(MANIFEST, "its figures given the other columns do not fit the file and the policy")
        )
    return Again(
        whole=disguised.whole,
        dictionary=disguised.dictionary(check.study, manifest["dictionary"]["columns_left_out"]),
        findings=disguised.findings(check.study.policy, manifest["left_out"]),
        differences=differences,
    )


def _stated(check: Check) -> tuple[Disguise, tuple[Truth, ...], Persons | None]:
    """Return the disguise that the folder states, and its counts of the categories."""
    channels, counts, persons = read_private(check.folder)
    own = check.manifest["own"]
    if not isinstance(own["keep_order"], bool) or not (own["test_seed"] is None or isinstance(own["test_seed"], int)):
        raise InputError("its manifest does not say how it was drawn", expected="keep_order and test_seed")
    what = Disguise(channels, tuple(own["kept"]), check.data, own["keep_order"], own["test_seed"])
    return what, counts, persons


def given_fits(given: Any, disguised: Disguised, policy: PolicySettings) -> bool:
    """Return whether the figures given the other columns can be true, as far as this is known without the source."""
    what = disguised.what
    if not what.kept and len(what.channels) < 2:
        return given is None
    blind = {name: 1.0 - figures["privacy"] for name, figures in disguised.figures.items()}
    if not isinstance(given, dict) or list(given["channels"]) != list(blind) or given["columns"] != list(what.kept):
        return False
    known = all(said["best_guess"] >= blind[name] - CLOSE for name, said in given["channels"].items())
    return known and given["limits"] == {name: getattr(policy, name) for name in LIMITS}


def _disagreement(check: Check, agreed: Agreement) -> list[Difference]:
    if agreed.holds:
        return []
    what = f"the frequencies of its reports do not agree with the channel (probability below {LEVEL:g})"
    return [Difference(check.data, what)]


def rows_again(check: Check, study: Study) -> list[Difference]:
    """Compare the plain columns with the source row by row, and the reports with the channel's distribution."""
    what, counts, persons = _stated(check)
    complete = tuple(complete_columns(study, what.hidden))
    with open_engine(study.engine, study.engine_options) as engine:
        source = Rows(engine, table_of(study), "raw", complete, unit_of(check.study)).attach()
        torn, agreed, again = read_back(source, what, check.written, check.study.policy)
    differences = _disagreement(check, agreed)
    if torn:
        differences.append(Difference(check.data, f"{torn} rows differ from the source in their plain columns"))
    same = all(one.same(two) for one, two in zip(again.counts, counts, strict=True))
    if not same or again.persons != persons:
        differences.append(Difference(CHANNEL, "its counts are not those of the source"))
    if not alike(again.given, check.manifest["own"]["given"]):
        differences.append(
            Difference(MANIFEST, "its figures given the other columns are not those of the file and the source")
        )
    if not alike(agreed.as_dict(), check.manifest["own"]["agreement"]):
        differences.append(Difference(MANIFEST, "its agreement of reports and matrix is not what the file shows"))
    return differences


def says(manifest: Content) -> str:
    """Return how often the best guess is right for each channel, given the other columns if there are any."""
    said = []
    for name, figures in manifest["figures"].items():
        given = figures["given"]
        if given is None:
            said.append(f"{name}: privacy {figures['privacy']:.3f}, worst posterior {figures['worst_posterior']:.3f}")
            continue
        others = others_words(manifest["own"]["given"]["columns"])
        worst = given["worst_posterior"]
        largest = "" if worst is None else f", worst posterior {worst:.3f}"
        said.append(f"{name}, given {others}: privacy {1 - given['best_guess']:.3f}{largest}")
    return "; ".join(said)


def alike(one: Any, two: Any) -> bool:
    """Return whether two records are equal up to the rounding of their numbers.

    >>> alike({"a": [1.0, None]}, {"a": [1.0 + 1e-12, None]}), alike({"a": 1}, {"a": "1"})
    (True, False)
    """
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(alike(value, two[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, float) and isinstance(two, int | float) and not isinstance(two, bool):
        return math.isclose(one, two, rel_tol=CLOSE, abs_tol=1e-300)
    return type(one) is type(two) and bool(one == two)


DISGUISES = Verifier(
    pages=pages_of,
    measure=measure_again,
    rows=rows_again,
    says=says,
    files=lambda data: (CHANNEL, mark_of(Path(data)).as_posix()),
    own_records="its reports were drawn for its own records",
)
