"""The release pack of a protected group: the folder of any release. The swaps are in none of its files."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.data.engine import open_engine
from sfumato.data.group_settings import GroupsSettings
from sfumato.data.source import Source
from sfumato.data.toml import toml_text
from sfumato.errors import InputError, SfumatoError, StudyError
from sfumato.front import versions
from sfumato.plans.swaps import SwapPlan
from sfumato.release import ledger, pack
from sfumato.release.facts import guarded_share
from sfumato.release.publish import Release, flush, refuse_taken, refuse_torn
from sfumato.release.rows import differing_rows, write_mixed
from sfumato.release.swapped import Swapped, changed_marginals, exchange
from sfumato.report.groups_pages import protection_page, swapped_page
from sfumato.report.release_pages import dictionary_page, json_block
from sfumato.study import Study, read

Check = Callable[[Study], None]


def publish_swaps(
    study: Study,
    plan: SwapPlan,
    told: Mapping[str, Any],
    folder: str | Path,
    *,
    check: Check | None = None,
    reason: str = "",
    state: str | Path | None = None,
) -> Release:
    """Write a protected file as a new release folder, whole or not at all; `check` looks at the file once more."""
    folder = Path(folder).absolute()
    refuse_taken(folder)
    settings = study.groups
    if settings is None:
        raise StudyError("the run file has no [groups] section", expected="the run file that was protected")
    source = study_source(study)
    if source.fingerprint != told["fingerprint"]:
        raise InputError(
            f"{source.title} has changed since it was protected",
            expected="the file that was protected",
            remedy="protect it again",
        )
    point = told["points"][told["chosen"]]
    release = {"system": "groups", "level": point["level"], "swaps": point["swaps"], "cost": point["cost"]}
    warnings = ledger.warnings_for(source.fingerprint, release, state)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        inside = part / folder.name
        inside.mkdir()
        manifest = _build(inside, study, settings, source, plan, told, reason, check)
        flush(inside)
        refuse_taken(folder)
        inside.rename(folder)
    except OSError as error:
        raise InputError(
            f"the release could not be written: {error.strerror}", expected="a folder that can be written to, with room"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    late = ledger.record(source.fingerprint, release, folder, state)
    return Release(folder, folder / manifest["data"], manifest, (*warnings, *late))


def study_source(study: Study) -> Source:
    """The table, without asking a role of every column: the groups section says what matters."""
    from sfumato.data.source import open_source

    return open_source(study.data, study.folder)


def _build(
    folder: Path,
    study: Study,
    settings: GroupsSettings,
    source: Source,
    plan: SwapPlan,
    told: Mapping[str, Any],
    reason: str,
    check: Check | None,
) -> dict[str, Any]:
    data = pack.data_name(source.path)
    with open_engine(study.engine, study.engine_options) as engine:
        swapped = exchange(engine, source, study, settings, plan)
        write_mixed(engine, swapped, folder / data)
        own = write_run_file(folder, study, settings, swapped, data)
        written = study_source(own)
        refuse_torn(differing_rows(engine, swapped, written))
        changed = changed_marginals(engine, source, written, swapped.names)
    if changed:
        raise SfumatoError(f"{len(changed)} columns changed their counts", expected="only places exchanged")
    if check is not None:
        check(own)
    dictionary = _dictionary(swapped, data)
    point = told["points"][told["chosen"]]
    outside = {
        "released": swapped.rows,
        "exchanged_share": guarded_share(2 * swapped.swaps, swapped.rows),
        "loss_share": round(point["loss"], 3),
    }
    figures = {"found_before": told["found_before"], "found_after": point["found"], "cost": point["cost"]}
    inside = {"records": swapped.rows, "swaps": swapped.swaps, "loss": point["loss"], "figures": figures}
    pages = {
        pack.DICTIONARY[0]: json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n",
        pack.DICTIONARY[1]: dictionary_page(dictionary),
        pack.EXTERNAL: swapped_page(outside, dictionary),
        pack.INTERNAL: protection_page(told, json_block(inside)),
    }
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    content = {
        "format": pack.FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": {"name": source.title, "sha256": source.fingerprint, "rows_read": swapped.rows},
        "data": data,
        "files": {name: pack.digest(folder / name) for name in names},
        "hierarchies": {},
        "versions": versions(),
        "run_file": study.as_toml(),
        "system": "groups",
        "algorithm": told["method"],
        "exact": point["exact"],
        "point": {key: value for key, value in point.items() if key != "residual"},
        "reason": reason,
        "records": swapped.rows,
        "suppressed": 0,
        "released": swapped.rows,
        "loss": point["loss"],
        "figures": figures,
        "columns": swapped.names,
        "exchanged": sorted(swapped.exchanged),
        "left_out": len(source.columns) - len(swapped.columns),
        "reports": {pack.INTERNAL: inside, pack.EXTERNAL: outside},
    }
    return pack.write_manifest(folder, content)


def write_run_file(folder: Path, study: Study, settings: GroupsSettings, swapped: Swapped, data: str) -> Study:
    """The run file that reads the released file: its dialect, and the mapping without those who are in the group."""
    dialect = swapped.source.dialect
    given: dict[str, Any] = {"path": data, "format": swapped.source.format}
    if dialect is not None:
        given |= {"separator": dialect.separator, "quote": dialect.quote, "decimal": dialect.decimal}
        given |= {"header": dialect.header}
    if (dialect is not None and not dialect.header) or pack.clashing(swapped.names):
        given["names"] = swapped.names
    given |= {"trim": study.data.trim, "na": list(study.data.na)}
    mapping = settings.mapping().model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    groups = {name: mapping[name] for name in ("area", "attributes", "vital", "leave_out", "only") if name in mapping}
    (folder / pack.RUN).write_text(toml_text({"version": 1, "data": given, "groups": groups}), encoding="utf-8")
    return read(folder / pack.RUN).model_copy(update={"engine": study.engine, "engine_options": study.engine_options})


def _dictionary(swapped: Swapped, data: str) -> dict[str, Any]:
    kept, moved = (
        "Kept as it is.",
        "Exchanged between some pairs of similar records; how often each value occurs is unchanged.",
    )
    columns = [
        {
            "name": column.name,
            "role": "place" if column.name in swapped.exchanged else "other",
            "meaning": "where the record is counted" if column.name in swapped.exchanged else "kept as it is",
            "done": "exchanged" if column.name in swapped.exchanged else "kept",
            "words": moved if column.name in swapped.exchanged else kept,
        }
        for column in swapped.columns
    ]
    return {"file": data, "columns": columns, "columns_left_out": len(swapped.source.columns) - len(columns)}
