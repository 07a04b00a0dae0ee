"""Check a disguise again: its files, its figures, its pages; and with the source whether the channel can have made it.

The draw itself is recorded nowhere, so the reports of a file cannot be made again. What can be checked is that every
plain column is the source's, row by row, and that the reports occur as the matrix makes them of the source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.engine import Engine, open_engine
from sfumato.data.settings import EngineOptions
from sfumato.data.source import Source, open_source
from sfumato.data.tally import require
from sfumato.errors import InputError, SfumatoError
from sfumato.release import pack
from sfumato.release.sources import reading
from sfumato.release.verification import (
    BROKEN,
    Difference,
    Verification,
    file_differences,
    manifest_differences,
    page_differences,
    unaccepted,
)
from sfumato.release.verify import study_of
from sfumato.systems.channel.contents import CHANNEL, Disguised, columns_of, pages_of, read_private, whole_of
from sfumato.systems.channel.disguise import Plan, measured
from sfumato.systems.channel.readback import LEVEL, Agreement, Rows, chance_of, open_disguised

CLOSE = 1e-6  # of a figure that is worked out again; the certified bound comes from an iteration


def verify_disguise(
    folder: Path, manifest: Mapping[str, Any], source: str | None, engine: str, options: EngineOptions
) -> Verification:
    """Compare the folder of a disguise with what was published, and with its source if that is given."""
    found = manifest_differences(manifest)
    found += file_differences(folder, manifest, (CHANNEL, pack.INTERNAL, pack.EXTERNAL))
    try:
        channels, counts = read_private(folder / CHANNEL)
        found += page_differences(folder, manifest, pages_of(manifest, channels))
        with open_engine(engine, options) as opened:
            disguised = _counted(opened, folder, manifest, channels, counts)
            found += _figures(manifest, disguised)
            if source is not None:
                found += _compared(opened, folder, manifest, disguised, source)
    except SfumatoError as error:
        found.append(Difference(str(manifest["data"]), f"it cannot be measured: {error.what}"))
    except (*BROKEN, OSError):
        found.append(Difference(pack.MANIFEST, "its figures cannot be compared"))
    compared = ("files", "figures", "reports", *(("rows",) if source is not None else ()))
    return Verification(folder, tuple(found), compared)


def _file(folder: Path, manifest: Mapping[str, Any]) -> Source:
    """The data file of the manifest, inside the public part of the folder, and nothing else."""
    path = (folder / manifest["data"]).resolve()
    if path.parent != (folder / pack.PUBLIC).resolve():
        raise InputError(f"{manifest['data']} is not in {pack.PUBLIC}", expected="the released file")
    return open_disguised(path, trim=study_of(manifest).data.trim)


def _counted(
    engine: Engine, folder: Path, manifest: Mapping[str, Any], channels: tuple[Any, ...], counts: tuple[Any, ...]
) -> Disguised:
    """The disguise as the folder has it, with the reports counted again."""
    kept, seed = tuple(manifest["kept"]), manifest["test_seed"]
    if not isinstance(manifest["keep_order"], bool) or not (seed is None or isinstance(seed, int)):
        raise InputError("its manifest does not say how it was drawn", expected="keep_order and test_seed")
    file = _file(folder, manifest)
    require(file, columns_of(channels, kept, seed))
    if list(file.names) != columns_of(channels, kept, seed):
        raise InputError("it has other columns than were published", expected="the columns of the manifest")
    written = Rows(engine, file, "written").attach()
    reports = tuple(written.everybody([channel.name], channel.output_cells) for channel in channels)
    whole = whole_of(engine, file, kept)
    return Disguised(channels, kept, manifest["data"], manifest["keep_order"], seed, counts, reports, whole)


def _figures(manifest: Mapping[str, Any], disguised: Disguised) -> list[Difference]:
    """Work every figure out again, and compare it with the manifest; and the reports with the recorded shares."""
    again = disguised.as_dict()
    found = [
        Difference(pack.MANIFEST, f"its {name} {'is' if name == 'loss' else 'are'} not what the file shows")
        for name, value in again.items()
        if not alike(value, manifest[name])
    ]
    if manifest["warnings"] != disguised.warnings():
        found.append(Difference(pack.MANIFEST, "its warnings are not those of this release"))
    policy = study_of(manifest).policy
    if manifest["policy"] != policy.model_dump(mode="json", exclude={"accept"}):
        found.append(Difference(pack.MANIFEST, "its policy is not that of its run file"))
    found += unaccepted(disguised.findings(policy), manifest)
    cells = sum(len(channel.outputs) for channel in disguised.channels)
    chances = [
        chance_of(reports, counts, channel.matrix)
        for channel, counts, reports in zip(disguised.channels, disguised.counts, disguised.reports, strict=True)
    ]
    return found + _disagreement(manifest, Agreement(min(min(chances) * cells, 1.0), cells))


def _disagreement(manifest: Mapping[str, Any], agreed: Agreement) -> list[Difference]:
    if agreed.holds:
        return []
    what = f"its reports do not occur as often as the channel makes them (probability below {LEVEL:g})"
    return [Difference(str(manifest["data"]), what)]


def _compared(
    engine: Engine, folder: Path, manifest: Mapping[str, Any], disguised: Disguised, source: str
) -> list[Difference]:
    """Compare the file with the source that the user names."""
    data, study = str(manifest["data"]), reading(study_of(manifest), source)
    table = open_source(study.data, study.folder)
    if table.fingerprint != manifest["source"]["sha256"]:
        return [Difference(table.title, "it is not the source of this release: its SHA-256 is another")]
    plan = Plan(
        study,
        table,
        disguised.channels,
        disguised.kept,
        disguised.data,
        disguised.keep_order,
        disguised.test_seed,
    )
    torn, agreed, again = measured(engine, plan, folder / data)
    found = _disagreement(manifest, agreed)
    if torn:
        found.append(Difference(data, f"{torn} rows differ from the source in their plain columns"))
    if not all(np.array_equal(one, two) for one, two in zip(again.counts, disguised.counts, strict=True)):
        found.append(Difference(CHANNEL, "its counts are not those of the source"))
    if not alike(agreed.as_dict(), manifest["agreement"]):
        found.append(Difference(pack.MANIFEST, "its agreement of reports and matrix is not what the file shows"))
    return found


def alike(one: Any, two: Any) -> bool:
    """Whether two records are the same but for the rounding of their numbers.

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
