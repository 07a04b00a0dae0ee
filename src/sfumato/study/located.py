"""A study as the settings of a run file that can stand anywhere."""

from __future__ import annotations

from typing import Any

from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.sources.address import located
from sfumato.sources.settings import FOREIGN
from sfumato.study.declaration import Declaration


def located_settings(study: Declaration) -> dict[str, Any]:
    """The settings that differ from the defaults, as a run file has them; every path is absolute."""
    settings = study.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    settings = {"version": study.version} | settings
    settings["data"]["path"] = located(study.data.path, study.folder)
    for name, given in (("data", study.data), ("population", study.population)):
        if given is not None and given.password_file is not None:
            settings[name]["password_file"] = str((study.folder / given.password_file).absolute())
        if given is not None and given.codebook not in (None, FOREIGN):
            settings[name]["codebook"] = str((study.folder / str(given.codebook)).absolute())
    if study.population is not None:
        settings["population"]["path"] = located(study.population.path, study.folder)
    if study.channel.prior is not None:
        settings["channel"]["prior"] = str((study.folder / study.channel.prior).absolute())
    for given in settings.get("groups", {}).get("auxiliary", ()):
        given["path"] = located(given["path"], study.folder)
    for name, column in settings.get("columns", {}).items():
        tree = study.columns[name].hierarchy
        if FOREIGN in (tree, getattr(tree, "path", None)):
            continue
        if isinstance(tree, str):
            column["hierarchy"] = str((study.folder / tree).absolute())
        elif isinstance(tree, HierarchyFile):
            column["hierarchy"]["path"] = str((study.folder / tree.path).absolute())
    return settings
