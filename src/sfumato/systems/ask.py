"""The publisher's questions, with the search at hand that answers what a front cannot."""

from __future__ import annotations

from pathlib import Path

from sfumato.decide.ask import Answer
from sfumato.decide.ask import ask as asked
from sfumato.decide.floor import with_floor
from sfumato.front import Front
from sfumato.systems.search import search as find
from sfumato.tables.frequency import FrequencyTable


def ask(
    front: Front,
    *,
    max_loss: float | None = None,
    max_suppression: float | None = None,
    min_k: float | None = None,
    min_l: float | None = None,
    prefer: str | None = None,
    table: FrequencyTable | None = None,
    folder: Path | None = None,
    search: bool = True,
    floor: Front | None = None,
) -> Answer:
    """The best release within limits: most privacy, or with `min_k` or `min_l` and no loss limit the least loss.

    A question outside of the limits that the front was searched with is answered from its recodings. Where a search
    for exactly that question takes seconds, `answer.searched` is what it finds (`answer.improved` says if it is
    better), and a question that the recodings cannot answer is answered by it.

    Args:
        front: the front that is asked.
        max_loss: the largest loss, as a share.
        max_suppression: the largest share of suppressed records; the searched one unless given.
        min_k: the smallest k.
        min_l: the smallest distinct ℓ.
        prefer: "k" or "l", where both were sought; they are balanced otherwise.
        table: the front's table, where it is at hand: it is not read again then.
        folder: the folder of the front, for the commands that are offered.
        search: whether a search may be run.
        floor: a front of local recodings of the same study, whose floor the answer is compared with.

    Returns:
        The answer, with what binds it and what relaxing a limit would give.

    >>> import sfumato as sf
    >>> front = sf.search(sf.read(sf.sample("adult")))
    >>> answer = sf.ask(front, max_loss=0.30, max_suppression=0.05)
    >>> answer.offer.k, answer.searched.offer.k, answer.improved
    (9, 13, True)
    """
    return asked(
        front if floor is None else with_floor(front, floor),
        max_loss=max_loss,
        max_suppression=max_suppression,
        min_k=min_k,
        min_l=min_l,
        prefer=prefer,
        table=table,
        folder=folder,
        search=find if search else None,
    )
