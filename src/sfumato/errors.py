"""The errors that a user can meet.

All are a SfumatoError, which states what is wrong, what was expected, and what to try.

- InputError: the user can correct the input (exit 2). Its kinds say what is wrong: DataError the table, HierarchyError
  a hierarchy, StudyError the run file. MeasureError is raised for a measure that needs what the table does not have.
  MemoryLimitError is raised for work that does not fit the memory that it may use.
- UnreachableError: no release meets the limits (exit 3).
- StoppedError: the work was stopped before there was a result to keep (exit 130).

No message contains a value of a sensitive column.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from typing import Any


class SfumatoError(Exception):
    """An error with what is wrong, what was expected, and what to try.

    >>> print(SfumatoError("k is -1", expected="a whole number from 1", remedy="set k = 5"))
    k is -1
      expected: a whole number from 1
      try: set k = 5
    """

    exit_code = 1

    def __init__(self, what: str, *, expected: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.remedy = remedy

    def __str__(self) -> str:
        expected, remedy = self.expected and f"\n  expected: {self.expected}", self.remedy and f"\n  try: {self.remedy}"
        return self.what + expected + remedy

    def as_dict(self) -> dict[str, Any]:
        """Return the parts of the error for JSON.

        Returns:
            A dictionary with what, expected and try.
        """
        return {"what": self.what, "expected": self.expected, "try": self.remedy}


class SfumatoWarning(UserWarning):
    """Something that the work goes on without."""


class InputError(SfumatoError):
    """Something the user gave is wrong."""

    exit_code = 2


class DataError(InputError):
    """The table cannot be read as declared."""


class HierarchyError(InputError):
    """A hierarchy is malformed or does not fit its column."""


class StudyError(InputError):
    """The run file says something that cannot be understood."""


class MeasureError(InputError):
    """A measure was asked for that this table cannot answer."""


class MemoryLimitError(InputError):
    """The work does not fit the memory that it may use."""


class UnreachableError(SfumatoError):
    """The request is understood but cannot be met."""

    exit_code = 3


class StoppedError(SfumatoError):
    """The work was asked to stop before there was anything to keep."""

    exit_code = 130


def reason_of(error: OSError) -> str:
    """Why the operating system refused something, in its words; libraries put the number into their own text.

    >>> reason_of(OSError("[Errno 28] Error writing bytes to file"))
    'No space left on device'
    """
    if error.strerror:
        return error.strerror
    number = re.search(r"errno (\d+)", str(error), re.IGNORECASE)
    return os.strerror(int(number[1])) if number else str(error) or type(error).__name__


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known word and lists the rest.

    >>> nearest("sensitiv", ["sensitive", "label"])
    'did you mean "sensitive"? known: label, sensitive'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    listed = "known: " + shortened(names, 24)
    return f'did you mean "{close[0]}"? {listed}' if close else listed


def counted(number: int, noun: str, many: str = "") -> str:
    """A number and what is counted.

    >>> counted(1, "column"), counted(1200, "column"), counted(2, "class", "classes")
    ('1 column', '1,200 columns', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def shortened(names: Iterable[str], limit: int = 6) -> str:
    """The first few names, and how many more there are.

    >>> shortened("abcdefgh", 3)
    'a, b, c and 5 more'
    """
    listed = list(names)
    rest = len(listed) - limit
    return ", ".join(listed[:limit]) + (f" and {rest} more" if rest > 0 else "")
