"""Tables as studies and users name them; of a folder that anybody may send, nothing that it names is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.sources.address import is_database, located
from sfumato.sources.frames import is_frame
from sfumato.sources.source import Source
from sfumato.study import Study, read


def reading(study: Study, path: Any) -> Study:
    """The study with the table that the user names, or has in memory, in place of its own.

    A run file of the user's names everything: that is how a query of a database is given, which no folder may bring
    along.
    """
    if is_frame(path):
        return study.with_table(path).model_copy(update={"population": None})
    if path.endswith(".toml"):
        own = read(path)
        return study.model_copy(update={"data": own.data, "population": own.population}).placed(own.folder)
    if study.data.codebook is not None:
        raise InputError(
            "the release was made with a codebook, which is not read from a folder",
            expected="a run file of your own that names the codebook",
            remedy="give the run file as the source",
        )
    elsewhere = {"path": located(path, Path()), "format": None, "password_file": None}
    if not is_database(path):
        elsewhere |= {"table": None, "query": None}
    elif study.data.query is not None:
        raise InputError(
            "the release was made from a query of a database, which is not run from a folder",
            expected="a run file of your own that holds the query",
            remedy="give the run file as the source",
        )
    return study.with_data(**elsewhere).model_copy(update={"population": None})


def table_of(study: Study) -> Source:
    """The table of a study, without asking a role of every column."""
    return study.opened()


def require_source(source: Source, fingerprint: str, *, remedy: str = "search again") -> None:
    """Raise unless a table is the one that a plan was made for."""
    if source.fingerprint != fingerprint:
        raise InputError(
            f"{source.title} has changed since the search",
            expected="the table that the plan was made for: its SHA-256 is known",
            remedy=remedy,
        )
