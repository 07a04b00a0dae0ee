"""The files that a release has: a closed list, by its method and its data file. No other file belongs to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sfumato.release import pack
from sfumato.release.manifest import Content
from sfumato.sources.roles import Role
from sfumato.study import Study

REQUIRED = (pack.RUN, *pack.DICTIONARY, *pack.METADATA, pack.INTERNAL, pack.EXTERNAL)
PART = re.compile(r"part-(\d{5})(\.csv|\.csv\.gz|\.parquet)")
WITH_TREES = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)


def files_of(manifest: Content, study: Study, own: Iterable[str]) -> set[str]:
    """The files that a release must have, by its data file, its columns, and what its method writes beside (`own`).

    A data file that is a folder has parts, which are numbered without a gap; their number is not known beforehand.
    """
    return {*REQUIRED, *own, *_hierarchies(manifest, study), manifest["data"]}


def _hierarchies(manifest: Content, study: Study) -> set[str]:
    """The files of hierarchies, which have the names that columns give them; only columns with a hierarchy have one."""
    names = pack.hierarchy_names(manifest["hierarchies"])
    other = other_hierarchies(manifest, study)
    return {
        names[column]
        for column, entry in manifest["hierarchies"].items()
        if column not in other and entry["file"] == names[column]
    }


def other_hierarchies(manifest: Content, study: Study) -> set[str]:
    """The columns that have a hierarchy in the manifest, and can have none by their role."""
    return {
        name
        for name in manifest["hierarchies"]
        if name not in study.columns or study.columns[name].role not in WITH_TREES
    }


def parts_of(data: str, names: Iterable[str]) -> set[str]:
    """The parts of a data file that is a folder: numbered from 0 without a gap, and all with one ending.

    >>> sorted(parts_of("public/d", ["public/d/part-00000.csv", "public/d/part-00002.csv", "public/d/more.csv"]))
    ['public/d/part-00000.csv']
    """
    inside = {Path(name).name for name in names if Path(name).parent.as_posix() == data}
    matched = [match for name in sorted(inside) if (match := PART.fullmatch(name))]
    first = [match for match in matched if match[2] == matched[0][2]]
    return {f"{data}/{match[0]}" for number, match in enumerate(first) if int(match[1]) == number}


def plain_data(data: str) -> bool:
    """Whether a data file has a name that a release can have.

    >>> plain_data("public/data.csv"), plain_data("public/*.csv"), plain_data("private/data.csv")
    (True, False, False)
    """
    folder, _, name = data.partition("/")
    return folder == pack.PUBLIC and bool(pack.PLAIN.fullmatch(name)) and name.lower() not in pack.OWN
