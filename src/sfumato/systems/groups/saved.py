"""A protection as a folder: what was found, the report, and the swaps, which are secret."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from sfumato.data.atomic import new_folder, refuse_existing_folder
from sfumato.data.json_files import read_json
from sfumato.data.parquet_files import read_parquet
from sfumato.data.seal import seal
from sfumato.data.source import open_source
from sfumato.errors import InputError
from sfumato.measures.disclosure import WAYS
from sfumato.measures.outliers import find_outliers
from sfumato.plans.swaps import SwapPlan
from sfumato.report.groups_pages import protection_page
from sfumato.study import Study, read_kept
from sfumato.systems.groups.bounds import Signal
from sfumato.systems.groups.files import settings_of
from sfumato.systems.groups.protect import Level, Protection, signals_of

FILE, SWAPS, RUN, REPORT = "protection.json", "swaps.parquet", "run.toml", "report.html"
EXPECTED = "the file that sfumato groups protect wrote"


def as_dict(protection: Protection) -> dict[str, Any]:
    """Everything about a protection but the swaps themselves."""
    target = protection.target
    order = sorted(protection.levels, key=lambda level: (level.plan.cost, level.level))
    moved = protection.moved()
    names = np.array(target.areas)
    sensitive = sorted({a for truth in protection.truths for a in truth.sensitive.areas})
    groups = [truth.group for truth in protection.truths]
    signals = signals_of(target, protection.truths, protection.known, counted_only=False)
    return {
        "file": target.name,
        "groups": groups,
        "sensitive": names[sensitive].tolist(),
        "method": settings_of(protection.study).protect.method,
        "holds": protection.holds,
        "silent": list(protection.silent),
        "chosen": next(i for i, level in enumerate(order) if level is protection.choice),
        "found_before": sum(len(r.before.anyhow) for r in protection.choice.residual),
        "points": [_point(protection, level, place) for place, level in enumerate(order)],
        "areas": [
            {
                "area": area,
                "records": int(size),
                "q": {group: int(target.quantity(group)[i]) for group in groups},
                "q_after": {group: int(moved.quantity(group)[i]) for group in groups},
            }
            for i, (area, size) in enumerate(zip(target.areas, target.sizes(), strict=True))
        ],
        "signals": [_signal(protection, signal, moved.area_of) for signal in signals],
    }


def _point(protection: Protection, level: Level, place: int) -> dict[str, Any]:
    cells = protection.columns * protection.target.dropped.read
    return {
        "id": place,
        "level": level.level,
        "swaps": level.plan.swaps,
        "cost": level.plan.cost,
        "bound": level.plan.bound,
        "exact": level.plan.exact,
        "loss": level.plan.cost / cells,
        "found": level.found,
        "low": level.low,
        "found_known": sum(len(r.after.anyhow) for r in level.residual if r.known),
        "found_after": {way: sum(len(r.after.found[way]) for r in level.residual) for way in WAYS},
        "residual": [row.as_dict() for row in level.residual],
    }


def _signal(protection: Protection, signal: Signal, area_of: np.ndarray[Any, Any]) -> dict[str, Any]:
    target = protection.target
    areas = len(target.areas)
    before, after = signal.per_area(target.area_of, areas), signal.per_area(area_of, areas)
    significance = settings_of(protection.study).attack.significance
    out = sorted({i for scale in ("hinges", "mad") for i in find_outliers(after, significance, scale).high})
    return {
        "name": signal.name,
        "before": before.round(6).tolist(),
        "after": after.round(6).tolist(),
        "outliers_after": [target.areas[i] for i in out],
    }


def save(protection: Protection, folder: str | Path) -> dict[str, Any]:
    """Write a protection as a new folder, whole or not at all."""
    folder = Path(folder).absolute()
    refuse_existing_folder(folder)
    told = as_dict(protection)
    source = open_source(protection.study.data, protection.study.folder)
    with new_folder(folder) as inside:
        kept = told | {"fingerprint": source.fingerprint}
        (inside / FILE).write_text(json.dumps(kept, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        (inside / RUN).write_text(protection.study.as_toml(), encoding="utf-8")
        (inside / REPORT).write_text(protection_page(told), encoding="utf-8")
        _write_swaps(protection, inside / SWAPS)
        seal(inside)
    return told


def _write_swaps(protection: Protection, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    order = sorted(protection.levels, key=lambda level: (level.plan.cost, level.level))
    columns = {
        "point": np.concatenate([np.full(level.plan.swaps, i) for i, level in enumerate(order)]),
        "giver": np.concatenate([level.plan.givers for level in order]),
        "taker": np.concatenate([level.plan.takers for level in order]),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


@dataclass(frozen=True)
class Saved:
    """A protection read back: the study, what was found, and the plan of each point."""

    study: Study
    told: Mapping[str, Any]
    plans: tuple[SwapPlan, ...]

    def point(self, number: int | None) -> int:
        """A point by its id; the chosen one unless given."""
        if number is None:
            return int(self.told["chosen"])
        if not 0 <= number < len(self.plans):
            raise InputError(f"there is no point {number}", expected=f"an id from 0 to {len(self.plans) - 1}")
        return number


def load(folder: str | Path, run: str | Path | None = None) -> Saved:
    """Read a protection back; `run` is a run file of one's own, needed where the folder was made elsewhere.

    What a protection says is checked where it is used; what it is made of is checked here.
    """
    folder = Path(folder)
    if not (folder / FILE).is_file():
        raise InputError(f"{folder} holds no protection", expected="a folder that sfumato groups protect wrote")
    told = read_json(folder / FILE, expected=EXPECTED, remedy="protect again")
    try:
        points = [_Point.model_validate(point, strict=True) for point in told["points"]]
        whole = [point.id for point in points] == list(range(len(points)))
        if not whole or told["chosen"] not in range(len(points)) or not isinstance(told["fingerprint"], str):
            raise ValueError("numbers of points")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _unreadable(folder / FILE) from None
    plans = _read_swaps(folder / SWAPS, points)
    return Saved(read_kept(folder / RUN, run), told, plans)


class _Point(BaseModel):
    """What a plan is made from; all other entries of a point are compared with what is worked out again."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    id: int
    level: float = Field(ge=0, le=1)
    swaps: int = Field(ge=0)
    cost: float = Field(ge=0)
    bound: float | None
    exact: bool


def _unreadable(path: Path) -> InputError:
    return InputError(f"{path} cannot be read", expected=EXPECTED, remedy="protect again")


def _read_swaps(path: Path, points: Sequence[_Point]) -> tuple[SwapPlan, ...]:
    names = ("point", "giver", "taker")
    table = read_parquet(path, names, limit=sum(point.swaps for point in points), expected=EXPECTED)
    number, giver, taker = (np.asarray(table[name]).astype(np.int64) for name in names)
    plans = tuple(
        SwapPlan(giver[number == point.id], taker[number == point.id], point.cost, point.bound, point.exact)
        for point in points
    )
    if [plan.swaps for plan in plans] != [point.swaps for point in points] or len(number) != sum(
        p.swaps for p in plans
    ):
        raise _unreadable(path)
    return plans
