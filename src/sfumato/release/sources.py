"""The source of a release as the user names it again: a table, or a run file of the user's own."""

from __future__ import annotations

from pathlib import Path

from sfumato.data.address import is_database, located
from sfumato.data.source import Source
from sfumato.errors import InputError
from sfumato.study import Study, read


def given_source(study: Study, path: str) -> Source:
    """Open the table that the user names, read as the study says; nothing of the study's own addresses is used.

    A run file names everything: that is how a query of a database is given, which no folder may bring along.
    """
    if path.endswith(".toml"):
        own = read(path)
        return study.model_copy(update={"data": own.data})._placed(own.folder).source()
    if is_database(path) and study.data.query is not None:
        raise InputError(
            "the release was made from a query of a database, which is not taken from a folder",
            expected="a run file of your own that holds the query",
            remedy="name the run file as the source",
        )
    return study.with_data(path=located(path, Path()), password_file=None).source()
