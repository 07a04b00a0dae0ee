"""Release a table with disguised columns: written completely, read back, measured; public and private parts apart.

The module also verifies a disguise: its files, figures and pages, and with the source whether the channel can have made
it. The draw is not recorded, so the reports of a file cannot be reproduced. What can be checked is that every plain
column equals that of the source, row by row, and that the reports have the distribution that the matrix implies.
"""

from __future__ import annotations

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
from sfumato.release.draft import Difference, Draft, Entries, Facts, ReleasedFolder, Verifier
from sfumato.release.format import Entry
from sfumato.release.history.description import Description, describe_disguise
from sfumato.release.manifest import MANIFEST, RUN, Content, file_settings, named_data, write_run_file
from sfumato.release.policy import acceptances
from sfumato.release.publish import Release, publish_draft
from sfumato.release.readback import table_of
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
    Columns with the role identifier, drop or vital are never kept.

    Args:
        study: the table, and what its columns are.
        channels: a channel for each disguised column or set of columns.
        folder: a folder that does not exist yet.
        keep: columns that are released as they are; None for all others.
        keep_order: whether rows keep their order.
        test_seed: makes the draw repeatable, and marks the file with another column. Never publish such a file.
        name: the name of the released file.
        reason: why, for the internal report.
        accept: rules that the release may break, each with a reason.
        state: the folder of the ledger, by default that of the user.

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
    given: Entry | None = field(init=False)

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
            torn, self.agreed, disguised = read_back(rows, self.what, table_of(own), self.study.policy)
        self.given = disguised.given
        with stage("look for dependences"):
            self.findings += determined_findings(rows, self.study, self.what.hidden, self.what.kept)
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

    def stated(self, _: Study) -> dict[str, object]:
        what = self.what
        return {
            "rows_read": self.rows_read,
            "dictionary": {"columns_left_out": len(self.source.columns) - len(what.hidden) - len(what.kept)},
            "own": {
                "kept": list(what.kept),
                "keep_order": what.keep_order,
                "test_seed": what.test_seed,
                "given": self.given,
                "agreement": self.agreed.as_dict(),
            },
        }


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
    return DisguiseDraft(
        study=study, source=source, fingerprint=source.fingerprint, data=data, verifier=DISGUISES, what=what
    )


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


def facts_of(folder: ReleasedFolder) -> Facts:
    """Return the facts of a disguised file: the counts of its reports, and every figure computed from them."""
    manifest, study, (what, counts, persons) = folder.manifest, folder.study, _stated(folder)
    given = manifest["own"]["given"]
    plain = plain_file(folder.written, Path(folder.data))
    expected = file_settings(plain, what.columns, folder.data, trim=study.data.trim)
    if folder.own.data != DataSettings(**expected):
        raise InputError(f"{RUN} does not read the file as analysts do", expected="Parquet, or plain CSV")
    with open_engine(folder.own.engine, folder.own.engine_options) as engine:
        disguised = count_file(engine, what, folder.written, counts, given, persons)
    cells = sum(len(channel.outputs) for channel in what.channels)
    chances = [
        chance_of(reports, truth, channel.matrix)
        for channel, truth, reports in zip(what.channels, counts, disguised.reports, strict=True)
    ]
    differences = _disagreement(folder, Agreement(min(min(chances) * cells, 1.0), cells))
    if not given_fits(given, disguised, study.policy):
        differences.append(
            Difference(MANIFEST, "its figures given the other columns do not fit the file and the policy")
        )
    warnings = disguised.warnings()
    left_out = manifest["source"]["rows_read"] - disguised.records
    return Facts(
        records=disguised.records,
        whole=disguised.whole,
        dictionary=disguised.dictionary(study, manifest["dictionary"]["columns_left_out"]),
        entries={
            "suppressed": 0,
            "loss": disguised.loss,
            "figures": disguised.figures,
            "point": disguised.point,
            "warnings": [*warnings, *manifest.get("warnings", [])[len(warnings) :]],
            **{f"own.{name}": entry for name, entry in disguised.as_dict().items()},
        },
        findings=disguised.findings(study.policy, left_out),
        differences=differences,
    )


def _stated(folder: ReleasedFolder) -> tuple[Disguise, tuple[Truth, ...], Persons | None]:
    """Return the disguise that the folder states, and its counts of the categories."""
    channels, counts, persons = read_private(folder.path)
    own = folder.manifest["own"]
    if not isinstance(own["keep_order"], bool) or not (own["test_seed"] is None or isinstance(own["test_seed"], int)):
        raise InputError("its manifest does not say how it was drawn", expected="keep_order and test_seed")
    what = Disguise(channels, tuple(own["kept"]), folder.data, own["keep_order"], own["test_seed"])
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


def _disagreement(folder: ReleasedFolder, agreed: Agreement) -> list[Difference]:
    if agreed.holds:
        return []
    what = f"the frequencies of its reports do not agree with the channel (probability below {LEVEL:g})"
    return [Difference(folder.data, what)]


def on_source(folder: ReleasedFolder, study: Study) -> tuple[Entries, list[Difference]]:
    """Compare the plain columns with the source row by row, and the reports with the channel's distribution."""
    what, counts, persons = _stated(folder)
    complete = tuple(complete_columns(study, what.hidden))
    with open_engine(study.engine, study.engine_options) as engine:
        source = Rows(engine, table_of(study), "raw", complete, unit_of(folder.study)).attach()
        torn, agreed, again = read_back(source, what, folder.written, folder.study.policy)
    differences = _disagreement(folder, agreed)
    if torn:
        differences.append(Difference(folder.data, f"{torn} rows differ from the source in their plain columns"))
    same = all(one.same(two) for one, two in zip(again.counts, counts, strict=True))
    if not same or again.persons != persons:
        differences.append(Difference(CHANNEL, "its counts are not those of the source"))
    return {"own.given": again.given, "own.agreement": agreed.as_dict()}, differences


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


DISGUISES = Verifier(
    pages=pages_of,
    facts=facts_of,
    on_source=on_source,
    says=says,
    files=lambda data: (CHANNEL, mark_of(Path(data)).as_posix()),
    own_records="its reports were drawn for its own records",
    close=CLOSE,
    least=1e-300,  # the errors of large tables are small figures, and must be compared too
)
