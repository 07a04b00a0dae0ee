"""`sfumato pick` chooses a point of a front; `sfumato ask` answers the questions of a publisher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sfumato.base.text import number, percent
from sfumato.cli.show import AsJson, OwnRun, emit, later, note, put
from sfumato.errors import InputError

with later():
    from sfumato.decide.ask import Answer
    from sfumato.decide.pick import Preset, as_dict, presets
    from sfumato.decide.pick import pick as choose
    from sfumato.decide.sentences import k_and_l
    from sfumato.methods.registry import load_front
    from sfumato.methods.search import ask


def pick_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a front.")],
    max_loss: Annotated[float | None, typer.Option(help="Highest privacy with at most this loss, such as 0.3.")] = None,
    min_k: Annotated[float | None, typer.Option(help="Lowest loss with at least this k.")] = None,
    max_risk: Annotated[float | None, typer.Option(help="Lowest loss with at most this prosecutor risk.")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A limit on any figure of the front, such as min_privacy=0.4 or max_cost=100; may be repeated.",
        ),
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="The knee of the front.")] = False,
    point: Annotated[int | None, typer.Option(help="A point by its id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Choose a point of a front by one or several limits, by its knee, or by its id.

    Without any of them, common limits on k and on the prosecutor risk are listed with the points they lead to.
    """
    front = load_front(folder)
    limits = {"max_loss": max_loss, "min_k": min_k, "max_risk": max_risk} | _limits(limit or ())
    none = not knee and point is None and all(value is None for value in limits.values())
    if none and (common := presets(front)):
        if as_json:
            emit({"point": None, "presets": [preset.as_dict() for preset in common]})
        else:
            _print_presets(common)
        return
    choice = choose(front, knee=knee, point=point, **limits)
    if as_json:
        emit(dict(as_dict(choice)))
        return
    chosen = choice.point
    values = ", ".join(f"{o.name} {number(chosen.values[o.name])}" for o in front.objectives)
    gone = f", {chosen.suppressed:,} suppressed" if front.recodes else ""
    gone += f", {front.left_out:,} left out because of missing values" if front.left_out else ""
    put(f"point {chosen.id}: {values}, loss {percent(chosen.loss)}{gone} ({choice.reason})")


def _print_presets(presets: Sequence[Preset]) -> None:
    """Print common limits with the points they lead to, where no limit was given."""
    put("No limit was given, so nothing is recommended. Common limits, and the release of least loss within each:")
    for preset in presets:
        option = f"--{preset.limit.replace('_', '-')} {preset.value:g}"
        put(f"  {option:<16} {preset.says}")


def _limits(given: Sequence[str]) -> dict[str, float | None]:
    """Return the limits that a command line gives as NAME=VALUE."""
    limits: dict[str, float | None] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            limits[name.strip().replace("-", "_")] = float(value)
        except ValueError:
            raise InputError(
                f'"{text}" is not a limit', expected="NAME=VALUE with a number", remedy="min_k=5"
            ) from None
    return limits


LIMITS = {
    "max_loss": "the loss",
    "max_suppression": "the suppression",
    "min_k": "the minimum k",
    "min_l": "the minimum ℓ",
}


def ask_command(
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
    if answer.presets:
        _print_presets(answer.presets)
    else:
        _print_answer(answer)
    if answer.choices:
        _section("Choices", ["; ".join(f"{k_and_l(o)} at {percent(o.loss)}" for o in answer.choices)])
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


def _print_answer(answer: Answer) -> None:
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


def _section(title: str, lines: list[str]) -> None:
    put(f"\n{title}")
    for line in lines:
        put(f"  {line}")
    if title == "The recoding":
        put()
