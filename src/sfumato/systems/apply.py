"""Use a saved plan on another table, where its system can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sfumato.data.policy import Acceptance
from sfumato.data.settings import EngineOptions
from sfumato.errors import InputError
from sfumato.release import pack
from sfumato.release.apply import apply_plan as apply_recoding
from sfumato.release.publish import Release
from sfumato.systems.registry import load_front, system_named


def apply_plan(
    folder: str | Path,
    new_file: str | Path,
    target: str | Path,
    *,
    point: int | None = None,
    unseen: str = "error",
    reason: str = "",
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    state: str | Path | None = None,
    engine: str = "duckdb",
    engine_options: EngineOptions | None = None,
    run: str | Path | None = None,
) -> Release:
    """Publish `new_file` with the plan of a release folder, or with a point of a front's folder.

    It is a release like any other: measured on its file, held to the policy, entered in the ledger, verifiable.
    Values that the plan's hierarchies do not know are an error, or with `unseen="star"` released as `*`.
    `run` is a run file of one's own, needed for a front that was made elsewhere. Channels and swaps are about the
    records of one table, so that their folders are refused.
    """
    folder = Path(folder)
    plan_from = folder if (folder / pack.MANIFEST).is_file() else load_front(folder, run)
    name = pack.read_manifest(folder)["system"] if isinstance(plan_from, Path) else plan_from.system
    system = system_named(name)
    if system.not_applied:
        raise InputError(
            f"{folder} is of the {name} system: {system.not_applied}",
            expected="a release or a front of lattice or cuts",
        )
    return apply_recoding(
        plan_from,
        new_file,
        target,
        point=point,
        unseen=unseen,
        reason=reason,
        accept=accept,
        state=state,
        engine=engine,
        engine_options=engine_options,
    )
