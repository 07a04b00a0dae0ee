"""Disguise columns of a table, and release the result: written whole, read back, measured, public and private apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.data.atomic import new_folder, refuse_existing_folder
from sfumato.data.engine import Engine, open_engine, require_order
from sfumato.data.policy import Acceptance
from sfumato.data.source import Source, open_source
from sfumato.data.tally import require, tally
from sfumato.errors import InputError, SfumatoError, StudyError, shortened
from sfumato.front import versions
from sfumato.plans.channel import Channel
from sfumato.release import pack
from sfumato.release.earlier import Comparison, check, entered
from sfumato.release.policy import acceptances, accepted_findings, refuse_unaccepted
from sfumato.release.publish import Release
from sfumato.release.shown import describe_disguise
from sfumato.study import Study
from sfumato.systems.channel import draw
from sfumato.systems.channel.contents import CHANNEL, Disguised, columns_of, pages_of, whole_of
from sfumato.systems.channel.prior import complete_columns
from sfumato.systems.channel.readback import Agreement, Rows, agreement, differing_rows, open_disguised

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.(csv|csv\.gz|parquet)")
RESERVED = tuple(Path(name).name for name in (pack.EXTERNAL, *pack.DICTIONARY))


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
    """
    folder = Path(folder).absolute()
    refuse_existing_folder(folder)
    study = study.with_accepted(acceptances(accept))
    plan = _plan(study, channels, keep, keep_order, test_seed, name)
    with ExitStack() as stack, new_folder(folder, private=False) as inside:
        pack.make_parts(inside)
        manifest, comparison = _build(inside, plan, reason, state)
        late = stack.enter_context(entered(comparison, folder))  # ends after the folder has its name
    return Release(folder, folder / plan.data, manifest, (*manifest["warnings"], *manifest["earlier"], *late))


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be disguised, and what goes along."""

    study: Study
    source: Source
    channels: tuple[Channel, ...]
    kept: tuple[str, ...]
    data: str
    keep_order: bool
    test_seed: int | None

    @property
    def disguised(self) -> list[str]:
        """The columns of the source that are disguised."""
        return [name for channel in self.channels for name in channel.columns]

    @property
    def complete(self) -> tuple[str, ...]:
        """Those of them whose missing values leave a row out."""
        return tuple(complete_columns(self.study, self.disguised))


def _plan(
    study: Study,
    chosen: Sequence[Channel],
    keep: Sequence[str] | None,
    keep_order: bool,
    test_seed: int | None,
    name: str,
) -> Plan:
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise InputError(
            f'the file cannot be called "{name}"',
            expected="letters, digits, '.', '_' and '-', and the ending .csv, .csv.gz or .parquet",
        )
    channels = tuple(chosen)
    source = open_source(study.data, study.folder)
    own = [column for channel in channels for column in channel.columns]
    require(source, own)
    kept = _kept(study, source, own, keep)
    names = columns_of(channels, kept, test_seed)
    if not channels or len(set(own)) < len(own) or len(set(names)) < len(names):
        raise InputError(
            "a column would stand twice in the disguised file" if channels else "no channel is given",
            expected="at least one channel, and each column once",
        )
    return Plan(study, source, channels, tuple(kept), f"{pack.PUBLIC}/{name}", keep_order, test_seed)


def _kept(study: Study, source: Source, own: Sequence[str], keep: Sequence[str] | None) -> list[str]:
    """The plain columns. All others are kept only where each has a role; a named one only if its role allows it."""
    if keep is None:
        undecided = [name for name in source.names if name not in own and name not in study.columns]
        if undecided:
            raise StudyError(
                f"{len(undecided)} columns have no role: {shortened(undecided)}",
                expected="a role for every column before all others are kept as they are",
                remedy="name the columns to keep, or declare the roles in a run file",
            )
        return [name for name in source.names if name not in own and study.columns[name].role.released]
    require(source, keep)
    private = [name for name, column in study.columns.items() if not column.role.released]
    refused = [name for name in keep if name in private or name in own]
    if refused:
        raise StudyError(
            f"{shortened(refused)} cannot be kept beside the disguised column",
            expected="columns other than the disguised ones, and none with the role identifier, drop or vital",
        )
    return list(keep)


def _build(folder: Path, plan: Plan, reason: str, state: str | Path | None) -> tuple[dict[str, Any], Comparison | None]:
    """Everything in the folder: draw, write, read back, compare, report."""
    study, source = plan.study, plan.source
    with open_engine(study.engine, study.engine_options) as engine:
        comparison = _compared(engine, plan, state)
        rows_read = write_reports(engine, plan, folder / plan.data)
        torn, agreed, disguised = measured(engine, plan, folder / plan.data)
    _refuse_wrong(torn, agreed)
    findings = [*(comparison.findings if comparison is not None else ()), *disguised.findings(study.policy)]
    refuse_unaccepted(findings, study.policy.accept)
    content = disguised.as_dict() | {
        "format": pack.FORMAT,
        "system": "channel",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": {"name": source.title, "sha256": source.fingerprint, "rows_read": rows_read},
        "hierarchies": {},
        "versions": versions(study.engine),
        "run_file": study.as_toml(),
        "reason": reason,
        "agreement": agreed.as_dict(),
        "policy": study.policy.model_dump(mode="json", exclude={"accept"}),
        "accepted": accepted_findings(findings, study.policy.accept),
        "warnings": disguised.warnings(),
        "earlier": list(comparison.warnings) if comparison is not None else [],
    }
    (folder / CHANNEL).write_text(disguised.private_text(), encoding="utf-8")
    for name, text in pages_of(content, plan.channels).items():
        (folder / name).write_text(text, encoding="utf-8")
    if open_source(study.data, study.folder).fingerprint != source.fingerprint:
        raise InputError(
            f"{source.title} changed while it was disguised", expected="a table that nobody writes to meanwhile"
        )
    return pack.write_manifest(folder, content), comparison


def _compared(engine: Engine, plan: Plan, state: str | Path | None) -> Comparison | None:
    """What this disguise tells together with earlier releases; one for tests is not compared, and never released."""
    if plan.test_seed is not None:
        return None
    engine.attach(plan.source, "raw")
    described = describe_disguise(
        plan.study, plan.source, plan.channels, plan.kept, plan.complete, ordered=plan.keep_order
    )
    return check(engine, plan.study, plan.source, described, state=state)


def write_reports(engine: Engine, plan: Plan, path: Path) -> int:
    """Draw a report for every record and write the file; how many rows the source has."""
    numbers = draw.system_draw if plan.test_seed is None else draw.seeded_draw(plan.test_seed)
    if plan.keep_order or plan.test_seed is not None:  # one stream of rows, one stream of numbers
        require_order(engine, "keeping the order of the rows" if plan.keep_order else "a test seed")
    truth = tally(engine, plan.source, plan.disguised, plan.complete)
    for channel in plan.channels:
        draw.check_known(engine, plan.source, channel, truth)
    sql = draw.reading(plan.source, plan.channels, plan.kept, plan.complete)
    change = draw.changer(plan.channels, len(plan.kept), numbers, plan.keep_order, plan.test_seed)
    engine.stream(sql, change, "disguised")
    names = columns_of(plan.channels, plan.kept, plan.test_seed)
    listed = ", ".join(f"x{i} AS c{i}" for i in range(len(names)))
    ordered = f"SELECT {listed} FROM disguised ORDER BY place"
    engine.write(ordered, path, draw.plain_file(plan.source, path), names)
    return truth.records + truth.dropped


def measured(engine: Engine, plan: Plan, path: Path) -> tuple[int, Agreement, Disguised]:
    """Read a written file back: rows whose plain columns differ from the source's, whether the reports can be the
    channels', and all that is counted."""
    source = Rows(engine, plan.source, "raw", plan.complete).attach()
    counts = tuple(source.everybody(channel.columns, channel.cells) for channel in plan.channels)
    if any((found > 0).sum() < 2 for found in counts):
        raise InputError("a column has fewer than two values in the table", expected="something to disguise")
    file = open_disguised(path, trim=plan.study.data.trim)
    require(file, columns_of(plan.channels, plan.kept, plan.test_seed))
    written = Rows(engine, file, "written").attach()
    disguised = Disguised(
        plan.channels,
        plan.kept,
        plan.data,
        plan.keep_order,
        plan.test_seed,
        counts,
        tuple(written.everybody([channel.name], channel.output_cells) for channel in plan.channels),
        whole_of(engine, file, plan.kept),
    )
    torn = differing_rows(source, written, plan.kept)
    return torn, agreement(source, written, plan.channels, plan.kept), disguised


def _refuse_wrong(torn: int, agreed: Agreement) -> None:
    if torn:
        raise SfumatoError(
            f"{torn} rows of the written file do not have the plain columns of the source",
            expected="the rows of the source; nothing was released",
        )
    if not agreed.holds:
        raise SfumatoError(
            "the reports in the written file do not occur as often as the channel makes them",
            expected=f"counts that it makes with a probability of {agreed.level:g} or more; nothing was released",
            remedy="disguise the table again; if that fails too, it is a fault of ours to report",
        )
