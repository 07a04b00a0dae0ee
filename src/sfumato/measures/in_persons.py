"""The words of measures where persons are counted: a share "of records" is then one of persons."""

from __future__ import annotations

import re

from sfumato.measures.measure import Measure

WORDS = (("records", "persons"), ("(?<!survey )record", "person"))
IN_PERSONS = ("sizes", "sensitive")  # what measures read that count persons; losses count records always


def title_of(measure: Measure, persons: bool) -> str:
    """The title of a measure, where persons are counted or not.

    >>> from sfumato.measures.registry import measure
    >>> title_of(measure("uniques"), persons=True), title_of(measure("uniques"), persons=False)
    ('unique persons, share', 'unique records, share')
    """
    return in_persons(measure.title) if persons and counts_persons(measure) else measure.title


def sentence_of(measure: Measure, persons: bool) -> str:
    """What a measure says, where persons are counted or not.

    >>> from sfumato.measures.registry import measure
    >>> sentence_of(measure("k"), persons=True)
    'Every released person has the same quasi-identifiers as at least k − 1 others.'
    >>> sentence_of(measure("own_share"), persons=True)
    "The mean share of a person's own sensitive value in its class."
    """
    return in_persons(measure.sentence) if persons and counts_persons(measure) else measure.sentence


def counts_persons(measure: Measure) -> bool:
    """Whether a measure counts persons where the table says which person a row belongs to."""
    return measure.kind == "privacy" and measure.reads in IN_PERSONS


def in_persons(text: str) -> str:
    """A text about records as one about persons."""
    for word, other in WORDS:
        text = re.sub(rf"\b{word}\b", other, text)
    return text
