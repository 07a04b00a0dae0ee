"""Check a release again, whichever system made it."""

from __future__ import annotations

from pathlib import Path

from sfumato.data.settings import EngineOptions
from sfumato.errors import SfumatoError
from sfumato.release import pack
from sfumato.release.verification import BROKEN, Difference, Verification, unfinished_release
from sfumato.release.verify import verify as verify_recoded
from sfumato.systems.channel.verify import verify_disguise
from sfumato.systems.groups.verify import verify_swaps


def verify(
    folder: str | Path,
    source: str | Path | None = None,
    *,
    engine: str = "duckdb",
    engine_options: EngineOptions | None = None,
) -> Verification:
    """Compare a release folder with what was published, and with its source if that is given.

    `source` is the table, or a run file of one's own that says how to read it. The files that an attack on a
    protected group learns from are never taken from the folder: such a release is attacked again if `source` is the
    run file that names them.
    """
    folder = Path(folder)
    incomplete = unfinished_release(folder)
    if incomplete is not None:
        return incomplete
    named = None if source is None else str(source)
    options = engine_options or EngineOptions()
    try:
        manifest = pack.read_manifest(folder)
        if manifest["system"] == "channel":
            return verify_disguise(folder, manifest, named, engine, options)
        if manifest["system"] == "groups":
            return verify_swaps(folder, manifest, named, engine, options)
    except SfumatoError as error:
        return Verification(folder, (Difference(pack.MANIFEST, error.what),))
    except BROKEN:
        return Verification(folder, (Difference(pack.MANIFEST, "it lacks entries, or has some of another kind"),))
    return verify_recoded(folder, source, engine=engine, engine_options=options)
