"""Run files: read, written, and taken from a folder that may come from anybody."""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import SfumatoError, StudyError
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.runtime.atomic import new_file
from sfumato.runtime.inputs import note_input, note_unsealed
from sfumato.runtime.seal import sealed
from sfumato.runtime.toml import MAX_BYTES, parse_toml, too_large
from sfumato.sources.settings import FOREIGN
from sfumato.study.study import Study


def read(path: str | Path) -> Study:
    """Read a run file. Its paths are relative to the folder it stands in.

    Args:
        path: the run file.

    Returns:
        The study that it declares.
    """
    path = Path(path)
    if path.is_dir() or not path.exists():
        kind = "a folder" if path.is_dir() else "not there"
        raise StudyError(
            f"the run file {path} is {kind}",
            expected="a TOML file",
            remedy="sfumato inspect FILE writes one to start from",
        )
    if note_input(path).stat().st_size > MAX_BYTES:
        raise too_large(path.name)
    return Study(**parse_toml(path.read_bytes(), path.name)).placed(path.parent)


def write_run_file(path: Path, text: str, *, overwrite: bool = False, private: bool = False) -> Path:
    """Write a run file and read it back before it gets its name: none is kept that cannot be read."""
    with new_file(path, overwrite=overwrite, private=private) as part:
        part.write_text(text, "utf-8")
        try:
            read(part)
        except StudyError as error:
            raise SfumatoError(
                f"the run file could not be read back: {error.what}", expected="a run file", remedy="please report it"
            ) from error
    return path


def read_kept(path: str | Path, run: str | Path | None = None) -> Study:
    """The run file inside a folder that was written before, for what it declares; or one's own, if that is given.

    The folder may come from anybody. Unless this user sealed it, its run file decides nothing beyond what it declares
    of columns and searches: the engine is the default one, and no table, hierarchy or address that it names is opened.
    """
    path = Path(path)
    known = sealed(path)
    if not known:
        note_unsealed(path.parent)
    study = read(path)
    if run is not None:
        own = read(run)
        return own.with_search(study.search)
    return study if known else _foreign(study)


def without_trees(study: Study) -> Study:
    """The study with hierarchy files that are not opened; whether they are public stays."""
    closed = {}
    for name, column in study.columns.items():
        if isinstance(column.hierarchy, str | HierarchyFile):
            public = isinstance(column.hierarchy, HierarchyFile) and column.hierarchy.public
            closed[name] = column.model_copy(update={"hierarchy": HierarchyFile(path=FOREIGN, public=public)})
    return study.with_columns(closed)


def _foreign(study: Study) -> Study:
    settings = study.model_dump(exclude_unset=True, exclude={"engine", "engine_options", "population"})
    elsewhere = ("password_file", "table", "query", "codebook")
    settings["data"] = {n: v for n, v in settings["data"].items() if n not in elsewhere} | {"path": FOREIGN}
    for auxiliary in (settings.get("groups") or {}).get("auxiliary", ()):
        auxiliary["path"] = FOREIGN
    settings.get("channel", {}).pop("prior", None)
    for name, column in settings.get("columns", {}).items():
        if isinstance(study.columns[name].hierarchy, str | HierarchyFile):
            column["hierarchy"] = FOREIGN
    return Study(**settings)
