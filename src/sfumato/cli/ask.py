"""`sfumato ask`: the publisher's questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.show import AsJson, OwnRun, emit, note, put

if TYPE_CHECKING:
    from sfumato.decide import Answer

LIMITS = {"max_loss": "the loss", "max_suppression": "the suppression", "min_k": "the least k", "min_l": "the least ℓ"}


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a front.")],
    max_loss: Annotated[float | None, typer.Option(help="Most loss, as a share such as 0.25.")] = None,
    max_suppression: Annotated[
        float | None, typer.Option(help="Most records suppressed, as a share such as 0.10 [the searched limit].")
    ] = None,
    min_k: Annotated[float | None, typer.Option(help="Least k; without --max-loss, at least loss.")] = None,
    min_l: Annotated[float | None, typer.Option(help="Least ℓ; without --max-loss, at least loss.")] = None,
    prefer: Annotated[str | None, typer.Option(help="k or l, where both are sought [their balance].")] = None,
    run: OwnRun = None,
    as_json: AsJson = False,
) -> None:
    """What can be had within limits, what binds, which relaxations pay, and the four questions of a publisher."""
    from sfumato.decide import ask
    from sfumato.systems.registry import load_front

    answer = ask(
        load_front(folder, run),
        max_loss=max_loss,
        max_suppression=max_suppression,
        min_k=min_k,
        min_l=min_l,
        prefer=prefer,
        folder=folder,
    )
    if as_json:
        emit(answer.as_dict())
        return
    _print(answer)


def _print(answer: Answer) -> None:
    from sfumato.decide.sentences import safe, share

    put(answer.says)
    put(f"  asked for: {answer.limits.says()}")
    if answer.limits.given() == ["max_suppression"]:
        put("  this is the knee: a limit such as --max-loss 0.25 asks for more")
    else:
        binds = [LIMITS[name] for name in answer.binds]
        put(f"  what binds: {', '.join(binds) or 'nothing: there is no more in this front'}")
    for text in answer.notes:
        put(f"  {text}")
    _section("Relaxations that pay", [found.says for found in answer.relaxations] or ["none nearby"])
    if answer.choices:
        _section("Choices", [", ".join(f"{safe(o)} at {share(o.loss)}" for o in answer.choices)])
    stretches = answer.stretches()
    knee = answer.curve.knee()
    shape = [f"knee: {answer.step(knee)} (point {knee.point})"] if knee else []
    shape += [f"flat, much privacy for little loss: {text}" for text in stretches["flat"]]
    shape += [f"steep, much loss for little privacy: {text}" for text in stretches["steep"]]
    _section(f"The trade-off of {answer.about} and loss", [*shape, f"curve: {answer.fit.says(answer.about)}"])
    _section("The recoding", list(answer.words))
    put("The four questions")
    for question in answer.questions:
        put(f"  {question.number}. {question.asks}")
        put(f"     {question.says}")
        for text in question.relaxed[:2]:
            put(f"     {text}")
        if question.command:
            put(f"     a search for exactly this: {question.command}")
    note(f"publish it: {answer.publish}")
    if answer.command:
        note(f"search with this limit: {answer.command}")


def _section(title: str, lines: list[str]) -> None:
    put(f"\n{title}")
    for line in lines:
        put(f"  {line}")
    if title == "The recoding":
        put()
