"""The mark that a disguised file carries beside itself: FILE.channel.json, with the channel that made it."""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import InputError, MeasureError, shortened
from sfumato.runtime.json_files import read_json

SUFFIX = ".channel.json"


def mark_of(path: Path) -> Path:
    """Where the mark of a file stands.

    >>> mark_of(Path("out/survey.csv")).name
    'survey.csv.channel.json'
    """
    return path.with_name(path.name + SUFFIX)


def disguised_columns(path: Path) -> list[str]:
    """The columns of a file that a channel has disguised, by the mark beside it."""
    try:
        return [str(name) for name in read_json(mark_of(path))["notes"]["disguised"]]
    except (InputError, KeyError, TypeError):
        return []


def refuse_disguised(path: Path, measured: list[str]) -> None:
    """Frequency-based measures are not defined where values were drawn at random (docs/readings.md, 3.7)."""
    result = [name for name in disguised_columns(path) if name in measured]
    if result:
        raise MeasureError(
            f"{shortened(result)} in {path.name} is disguised by randomized response: k-anonymity and the other "
            "measures of equivalence classes are not defined for it",
            expected="columns whose values are the records' own; a class of equal reports is no class of equal people",
            remedy='external.html beside it says what the disguise guarantees; role = "drop" measures the others',
        )
