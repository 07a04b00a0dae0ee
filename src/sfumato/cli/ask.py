"""`sfumato ask`: the publisher's questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.show import AsJson, OwnRun, emit, note, offer_presets, put

if TYPE_CHECKING:
    from sfumato.decide import Answer

LIMITS = {
    "max_loss": "the loss",
    "max_suppression": "the suppression",
    "min_k": "the minimum k",
    "min_l": "the minimum ℓ",
}


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a front.")],
    max_loss: Annotated[float | None, typer.Option(help="Maximum loss, as a share such as 0.25.")] = None,
    max_suppression: Annotated[
        float | None, typer.Option(help="Maximum share of records suppressed, such as 0.10 [the limit of the search].")
    ] = None,
    min_k: Annotated[float | None, typer.Option(help="Minimum k; without --max-loss, finds the lowest loss.")] = None,
    min_l: Annotated[float | None, typer.Option(help="Minimum ℓ; without --max-loss, finds the lowest loss.")] = None,
    prefer: Annotated[
        str | None, typer.Option(help="Which to maximise if both are objectives: k or l [a balance of the two].")
    ] = None,
    floor: Annotated[
        Path | None, typer.Option(help="A front of local recodings of the same study, whose floor is shown.")
    ] = None,
    run: OwnRun = None,
    as_json: AsJson = False,
) -> None:
    """The best release within limits, the binding limits, worthwhile relaxations, and four common questions."""
    from sfumato.systems.ask import ask
    from sfumato.systems.registry import load_front

    answer = ask(
        load_front(folder, run),
        max_loss=max_loss,
        max_suppression=max_suppression,
        min_k=min_k,
        min_l=min_l,
        prefer=prefer,
        folder=folder,
        floor=None if floor is None else load_front(floor),
    )
    if as_json:
        emit(answer.as_dict())
        return
    _print(answer)


def _print(answer: Answer) -> None:
    from sfumato.decide.sentences import safe
    from sfumato.runtime.figures import percent

    if answer.presets:
        offer_presets(answer.presets)
    else:
        put(answer.says)
        put(f"  limits: {answer.limits.says()}")
        if answer.front.left_out:
            put(f"  {answer.front.left_out_says}; they are in the loss")
        binds = [LIMITS[name] for name in answer.binds]
        put(f"  binding limits: {', '.join(binds) or 'none: this is the best in the front'}")
        if answer.searched is not None:
            better = answer.searched.says if answer.improved else "nothing better"
            put(f"  a search for exactly this finds {better}")
        if answer.floor_says:
            put(f"  {answer.floor_says}")
        for text in answer.notes:
            put(f"  {text}")
        _section("Worthwhile relaxations", [relaxation.says for relaxation in answer.relaxations] or ["none nearby"])
    if answer.choices:
        _section("Choices", ["; ".join(f"{safe(o)} at {percent(o.loss)}" for o in answer.choices)])
    stretches = answer.stretches()
    shape = [f"knee: {answer.knee}"] if answer.knee else []
    shape += [f"flat, much privacy for little loss: {text}" for text in stretches["flat"]]
    shape += [f"steep, much loss for little privacy: {text}" for text in stretches["steep"]]
    _section(f"The trade-off of {answer.about} and loss", [*shape, f"curve: {answer.fit.says(answer.about)}"])
    if answer.presets:
        put()
    else:
        _section("The recoding", list(answer.words))
    put("The four questions")
    for question in answer.questions:
        put(f"  {question.number}. {question.asks}")
        put(f"     {question.says}")
        for text in question.relaxed[:2]:
            put(f"     {text}")
        if question.command:
            put(f"     a search for exactly this: {question.command}")
    if not answer.presets and answer.offer.k > 1:  # the raw table is nothing to publish
        note(f"publish it: {answer.publish}")
    if answer.command:
        note(f"search with this limit: {answer.command}")
        if answer.searched is not None and answer.improved:
            note(f"publish what it finds: {answer.searched.publish}")


def _section(title: str, lines: list[str]) -> None:
    put(f"\n{title}")
    for line in lines:
        put(f"  {line}")
    if title == "The recoding":
        put()
