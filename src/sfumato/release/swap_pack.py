"""The release pack of a protected group: the folder of any release. The swaps are in none of its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.data.atomic import new_folder, refuse_existing_folder
from sfumato.data.engine import open_engine
from sfumato.data.group_settings import GroupsSettings
from sfumato.data.source import Source
from sfumato.data.toml import toml_text
from sfumato.errors import InputError, SfumatoError, StudyError
from sfumato.front import versions
from sfumato.plans.swaps import SwapPlan
from sfumato.release import earlier, pack
from sfumato.release.facts import guarded_share
from sfumato.release.policy import refuse_unaccepted
from sfumato.release.publish import Release, refuse_torn
from sfumato.release.rows import differing_rows, write_mixed
from sfumato.release.shown import describe_swaps
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
    refuse_existing_folder(folder)
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
    with ExitStack() as stack, new_folder(folder, private=False) as inside:
        manifest, comparison = _build(inside, study, settings, source, plan, told, reason, check, state)
        late = stack.enter_context(earlier.entered(comparison, folder))  # ends after the folder has its name
    warnings = (*comparison.warnings, *(finding.what for finding in comparison.findings), *late)
    return Release(folder, folder / manifest["data"], manifest, warnings)


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
    state: str | Path | None,
) -> tuple[dict[str, Any], earlier.Comparison]:
    pack.make_parts(folder)
    data = pack.data_name(source)
    with open_engine(study.engine, study.engine_options) as engine:
        swapped = exchange(engine, source, study, settings, plan)
        described = describe_swaps(study, source, swapped.names, sorted(swapped.exchanged), plan)
        comparison = earlier.check(engine, study, source, described, state=state)
        refuse_unaccepted(comparison.findings, study.policy.accept)
        write_mixed(engine, swapped, folder / data)
        own = write_run_file(folder, study, settings, swapped, data)
        written = study_source(own)
        refuse_torn(differing_rows(engine, swapped, written))
        changed = changed_marginals(engine, source, written, swapped.names)
    if changed:
        raise SfumatoError(f"{len(changed)} columns changed their counts", expected="only places exchanged")
    if check is not None:
        check(own)
    dictionary = _dictionary(swapped, Path(data).name)
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
    content = {
        "format": pack.FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": {"name": source.title, "sha256": source.fingerprint, "rows_read": swapped.rows},
        "data": data,
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
    return pack.write_manifest(folder, content), comparison


def write_run_file(folder: Path, study: Study, settings: GroupsSettings, swapped: Swapped, data: str) -> Study:
    """The run file that reads the released file: its dialect, and the mapping without those who are in the group."""
    dialect = swapped.source.dialect
    given: dict[str, Any] = {"path": f"../{data}", "format": swapped.source.format}
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
