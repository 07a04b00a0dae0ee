"""Commands that are printed for people: quoted, so that they can be pasted into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_given: ContextVar[tuple[str, ...]] = ContextVar("given", default=())


@contextmanager
def given_words(words: Sequence[str]) -> Iterator[None]:
    """Remember the words of the command that runs, for hints that repeat it."""
    token = _given.set(tuple(words))
    try:
        yield
    finally:
        _given.reset(token)


def same_command(*more: str) -> str:
    """The command that runs, as it was given, with options that it lacks.

    >>> with given_words(["search", "my run.toml", "--set", "local.k=[2, 3]"]):
    ...     same_command("--resume")
    "sfumato search 'my run.toml' --set 'local.k=[2, 3]' --resume"
    """
    words = _given.get()
    return command(*words, *(word for word in more if word not in words))


def command(*words: str | Path) -> str:
    """A command of ours, quoted where a shell needs it.

    >>> command("map", Path("my front"))
    "sfumato map 'my front'"
    """
    return shlex.join(["sfumato", *map(str, words)])


def counted_plans(number: int, plans: str) -> str:
    """A number of plans, by what a system calls many of them.

    >>> counted_plans(1, "suppressions of cells"), counted_plans(2, "plans of swaps"), counted_plans(1, "channels")
    ('1 suppression of cells', '2 plans of swaps', '1 channel')
    """
    return f"{number:,} {re.sub('s(?= of |$)', '', plans, count=1) if number == 1 else plans}"
