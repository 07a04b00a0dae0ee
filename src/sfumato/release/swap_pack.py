"""The release of a protected group: the folder of any release. The swaps are in none of its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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
from sfumato.measures.whole import WholeFile, whole_file
from sfumato.plans.swaps import SwapPlan
from sfumato.release import pack
from sfumato.release.earlier import Comparison, check, entered
from sfumato.release.facts import guarded, guarded_share
from sfumato.release.policy import Finding, accepted_findings, refuse_unaccepted, unique_findings
from sfumato.release.publish import Release, refuse_torn
from sfumato.release.rows import differing_rows, write_mixed
from sfumato.release.shown import describe_swaps
from sfumato.release.swapped import Swapped, changed_marginals, exchange
from sfumato.report.groups_pages import protection_page, swapped_page
from sfumato.report.release_pages import dictionary_page, json_block
from sfumato.study import Study, read


@dataclass(frozen=True)
class Protected:
    """A protection that was worked out again.

    `told` is what it says of all points with the chosen one named, and `auxiliary` the files that its attackers learn
    from, by name and digest. `attack` attacks the file that a study reads: a row for each attack, or an error if they
    are not what `told` says.
    """

    told: Mapping[str, Any]
    auxiliary: Sequence[Mapping[str, str]]
    attack: Callable[[Study], list[dict[str, Any]]]

    @property
    def point(self) -> Mapping[str, Any]:
        chosen: Mapping[str, Any] = self.told["points"][self.told["chosen"]]
        return chosen


def publish_swaps(
    study: Study,
    plan: SwapPlan,
    fingerprint: str,
    folder: str | Path,
    work_out: Callable[[], Protected],
    *,
    reason: str = "",
    state: str | Path | None = None,
) -> Release:
    """Write a protected file as a new release folder, whole or not at all; the written file is attacked again.

    `fingerprint` is that of the source the plan was made for. `work_out` may take long, so that it is asked only when
    everything that is quickly seen has been looked at.
    """
    folder = Path(folder).absolute()
    refuse_existing_folder(folder)
    settings = study.groups
    if settings is None:
        raise StudyError("the run file has no [groups] section", expected="the run file that was protected")
    source = study_source(study)
    if source.fingerprint != fingerprint:
        raise InputError(
            f"{source.title} has changed since it was protected",
            expected="the file that was protected",
            remedy="protect it again",
        )
    with ExitStack() as stack, new_folder(folder, private=False) as inside:
        manifest, comparison = _build(inside, study, settings, source, plan, work_out, reason, state)
        late = stack.enter_context(entered(comparison, folder))  # ends after the folder has its name
    return Release(folder, folder / manifest["data"], manifest, (*manifest["warnings"], *late))


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
    work_out: Callable[[], Protected],
    reason: str,
    state: str | Path | None,
) -> tuple[dict[str, Any], Comparison]:
    """Everything in the folder: exchange, write, read back, compare, attack, check against the policy, report."""
    pack.make_parts(folder)
    data = pack.data_name(source)
    with open_engine(study.engine, study.engine_options) as engine:
        swapped = exchange(engine, source, study, settings, plan)
        described = describe_swaps(study, source, swapped.names, sorted(swapped.exchanged), plan)
        comparison = check(engine, study, source, described, state=state)
        write_mixed(engine, swapped, folder / data)
        own = write_run_file(folder, study, settings, swapped, data)
        written = study_source(own)
        refuse_torn(differing_rows(engine, swapped, written))
        changed = changed_marginals(engine, source, written, swapped.names)
        whole = whole_file(engine, study, written)
    if changed:
        raise SfumatoError(f"{len(changed)} columns changed their counts", expected="only places exchanged")
    protected = work_out()
    attacks = protected.attack(own)
    findings = [*comparison.findings, *attack_findings(attacks), *unique_findings(study.policy, whole)]
    refuse_unaccepted(findings, study.policy.accept)
    content = _manifest(swapped, protected, attacks, whole) | {
        "data": data,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "run_file": study.as_toml(),
        "reason": reason,
        "policy": study.policy.model_dump(mode="json", exclude={"accept"}),
        "accepted": accepted_findings(findings, study.policy.accept),
        "warnings": list(comparison.warnings),
        "dictionary": dictionary_of(swapped.names, swapped.exchanged, Path(data).name, len(source.columns)),
    }
    for name, text in pages_of(content).items():
        (folder / name).write_text(text, encoding="utf-8")
    return pack.write_manifest(folder, content), comparison


def _manifest(
    swapped: Swapped, protected: Protected, attacks: list[dict[str, Any]], whole: WholeFile
) -> dict[str, Any]:
    """What was measured on the written file, and what the plan was made from."""
    source, point = swapped.source, protected.point
    return {
        "format": pack.FORMAT,
        "system": "groups",
        "source": {"name": source.title, "sha256": source.fingerprint, "rows_read": swapped.rows},
        "auxiliary": [dict(file) for file in protected.auxiliary],
        "hierarchies": {},
        "algorithm": protected.told["method"],
        "exact": point["exact"],
        "point": {key: value for key, value in point.items() if key != "residual"},
        "records": swapped.rows,
        "suppressed": 0,
        "released": swapped.rows,
        "loss": point["loss"],
        "figures": figures_of(attacks, point["cost"]),
        "whole": whole.as_dict(),
        "columns": swapped.names,
        "exchanged": sorted(swapped.exchanged),
        "attacks": attacks,
        "protection": dict(protected.told),
    }


def figures_of(attacks: Sequence[Mapping[str, Any]], cost: float) -> dict[str, Any]:
    """How many findings there are over all attacks, before and after, and what the swaps cost."""
    return {
        "found_before": sum(row["areas_before"] for row in attacks),
        "found_after": sum(row["areas_after"] for row in attacks),
        "cost": cost,
    }


def attack_findings(attacks: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Attacks that still find an area that must not be found."""
    still = sum(not row["protected"] for row in attacks)
    if not still:
        return []
    what = f"{still} of {len(attacks)} attacks on the written file still find an area that must not be found."
    return [Finding("attacks", what)]


def external_facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the external report: no count under ten, nothing of the group or its areas."""
    everything, released = manifest["whole"]["all_columns"], manifest["released"]
    return {
        "released": guarded(released),
        "exchanged_share": guarded_share(2 * manifest["point"]["swaps"], released),
        "loss_share": round(manifest["loss"], 3),
        "unique_share": guarded_share(everything["unique"], everything["records"]),
        "columns": everything["columns"],
    }


def pages_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The pages of a release as its manifest has them: drawn at publication, and again when it is verified."""
    dictionary = manifest["dictionary"]
    inside = {name: manifest[name] for name in ("records", "loss", "figures", "whole", "attacks", "accepted")}
    return {
        pack.DICTIONARY[0]: json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n",
        pack.DICTIONARY[1]: dictionary_page(dictionary),
        pack.EXTERNAL: swapped_page(external_facts(manifest), dictionary),
        pack.INTERNAL: protection_page(manifest["protection"], manifest, json_block(inside)),
    }


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
    return read(folder / pack.RUN).with_engine(study.engine, study.engine_options)


def dictionary_of(
    names: Sequence[str], exchanged: Sequence[str] | frozenset[str], data: str, columns: int
) -> dict[str, Any]:
    """The data dictionary: which columns were exchanged; `columns` is how many the source has."""
    kept, moved = (
        "Kept as it is.",
        "Exchanged between some pairs of similar records; how often each value occurs is unchanged.",
    )
    described = [
        {
            "name": name,
            "role": "place" if name in exchanged else "other",
            "meaning": "where the record is counted" if name in exchanged else "kept as it is",
            "done": "exchanged" if name in exchanged else "kept",
            "words": moved if name in exchanged else kept,
        }
        for name in names
    ]
    return {"file": data, "columns": described, "columns_left_out": columns - len(described)}
