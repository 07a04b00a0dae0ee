"""`sfumato search`, `compare` and `map`: find a front and look at it.

`sfumato predict` estimates the cost of a run, and compares an earlier estimate with what the run took. `sfumato floor`
checks the lower bound of a saved front from the dual prices that are saved with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.base.files import refuse_existing
from sfumato.base.json_types import Json
from sfumato.base.text import number, percent
from sfumato.cli.show import (
    AsJson,
    Force,
    OwnRun,
    Watch,
    command,
    counted_plans,
    emit,
    given,
    later,
    note,
    put,
    same_command,
    table,
)
from sfumato.errors import InputError, StudyError
from sfumato.study.methods import ALGORITHMS, METHODS, USUAL, WITH_PROBLEMS, listed

with later():
    from sfumato.auditing.uniqueness import identifying_sentence, released_alone
    from sfumato.base.settings import parse_toml
    from sfumato.decide import floor as bound
    from sfumato.decide.floor import floor_levels, ratios, why_not, with_floor
    from sfumato.front import Front, compare_fronts
    from sfumato.measures.registry import K
    from sfumato.methods.local.floor import check_front, refuse_unpriced
    from sfumato.methods.publish import draw
    from sfumato.methods.registry import load_front, system_named
    from sfumato.methods.run import Run
    from sfumato.methods.search import foresee, run_search
    from sfumato.prediction import compared, predict
    from sfumato.study import SearchSettings, Study, read

MOST_ROWS = 40
SYSTEMS = listed(tuple(METHODS))
ALGORITHM_HELP = "; for ".join(
    f"{'' if name == USUAL else f'{name} '}{listed(known)}" for name, known in ALGORITHMS.items()
)


def search_command(
    run: Annotated[Path, typer.Argument(help="The run file.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new folder for the front.")] = None,
    algorithm: Annotated[str | None, typer.Option(help=f"{ALGORITHM_HELP}.")] = None,
    system: Annotated[str | None, typer.Option(help=f"{SYSTEMS}, instead of the run file's.")] = None,
    problem: Annotated[int | None, typer.Option(min=1, max=4, help="One of the four problems of cuts.")] = None,
    max_suppression: Annotated[
        float | None, typer.Option(help="Share of records that may be suppressed, instead of the run file's.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed, instead of the run file's.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; the front does not depend on them.")] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many seconds and keep the best so far.")
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this many evaluations; unlike a time limit, this is reproducible."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="Any setting of the run file, such as channel.delta=0.6."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a search that was stopped or killed (needs -o).")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Find the front of a table: every plan that no other one beats, by the system that the run file names."""
    if output is not None and output.exists() and not resume:
        raise InputError(f"{output} already exists", expected="a new folder", remedy="another name with -o")
    if output is not None and not output.absolute().parent.is_dir():
        raise InputError(f"there is no folder {output.absolute().parent}", expected="an existing folder to write to")
    state = None if output is None else output.absolute().parent / f".{output.name}.state"
    changed = given(algorithm=algorithm, threads=threads, evaluations=evaluations)
    study = _with_options(read(run).with_values(_settings(setting or ())), system, problem, max_suppression)
    study = study.with_search(**changed) if changed else study
    study = study if seed is None else study.with_seed(seed)
    if state is not None and state.exists() and not resume:
        note(f"an unfinished search of this name is started again; --resume would continue it ({state})")
    with Watch(system_named(study.system).unit(study), seconds) as watch:
        searched = Run(watch, checkpoint=state, resume=resume)
        front = run_search(study, searched)
    if output is not None:
        front.save(output, replace=resume)
    verdict = system_named(front.system).verdict(front)
    foreseen = None if searched.table is None else foresee(front, _shown(front), searched.table)
    if as_json:
        policy = {} if foreseen is None else {"policy": foreseen.as_dict()}
        emit(front.as_dict() | {"met": verdict.met, "sentences": list(verdict.sentences)} | policy)
    else:
        _print(front)
        foresight = "" if foreseen is None else foreseen.sentence()
        _print_next(front, [*filter(None, [foresight]), *verdict.sentences], output)
    unfinished = state is not None and state.exists()
    more = f". {same_command('--resume')} continues it" if unfinished else ""
    if watch.interrupted:
        note(f"stopped; the best so far was kept{more}")
        return 130
    # A proof may be complete when the time is over; what has nothing left to do is not cut short either.
    if (watch.cut or (watch.late and unfinished)) and not (front.recodes and front.exact):
        note(f"stopped by the time limit; the best so far was kept{more}")
    return 0 if verdict.met else 3


def _print_next(front: Front, sentences: Sequence[str], output: Path | None) -> None:
    """Print sentences on a front, the columns that make `publish` refuse any of its points, and commands to go on."""
    for sentence in sentences:
        note(sentence)
    if front.recodes or METHODS[front.system].by_record:  # what else goes into the file is said when it is published
        limit = front.study.policy.identifying
        for one in released_alone(front.study):
            note(f"warning: publish will refuse this (rule identifying): {identifying_sentence(one, limit)}")
    if output is not None:
        then = command("publish", output, "--point", "ID", "-o", "release")
        note(f"front: {output}. Next: {command('map', output)}, then {then}")


def _settings(texts: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
    """Return the settings that a command line gives as SECTION.KEY=VALUE, where the value is TOML or plain text."""
    settings = []
    for text in texts:
        key, equals, value = text.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise InputError(f'"{text}" is not a setting', expected="SECTION.KEY=VALUE", remedy="channel.delta=0.6")
        try:
            read = parse_toml(f"value = {value}".encode(), "--set")["value"]
        except StudyError:
            read = value.strip()
        settings.append((tuple(parts), read))
    return settings


def compare_command(
    one: Annotated[Path, typer.Argument(help="The folder of a front.")],
    two: Annotated[Path, typer.Argument(help="The folder of another.")],
    as_json: AsJson = False,
) -> None:
    """Compare two fronts: hypervolume, who dominates whom, and how far each is from a floor that one of them has."""
    fronts = load_front(one), load_front(two)
    comparison = compare_fronts(*fronts)
    floors = [_ratios(front, fronts) for front in fronts]
    if as_json:
        emit(comparison.as_dict() | {"loss_to_floor": [None if pair is None else list(pair) for pair in floors]})
        return
    rows = [
        ["points", str(comparison.points[0]), str(comparison.points[1])],
        ["hypervolume, share of the box", f"{comparison.hypervolume[0]:.4f}", f"{comparison.hypervolume[1]:.4f}"],
        ["dominated by the other", str(comparison.dominated[0]), str(comparison.dominated[1])],
        ["also in the other", str(comparison.shared), str(comparison.shared)],
    ]
    if any(floors):
        rows.append(
            [f"loss / floor ({bound.BELOW})", *("–" if p is None else f"{p[0]:.2f} to {p[1]:.2f}" for p in floors)]
        )
    table("Two fronts", ["", str(one), str(two)], rows, right={1, 2})


def _ratios(front: Front, fronts: tuple[Front, Front]) -> tuple[float, float] | None:
    """Return the ratios of a front to the lower bound of the first front whose bound holds for it."""
    holding = [other for other in fronts if not why_not(front, other)]
    return ratios(front, floor_levels(holding[0])) if holding else None


def map_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a front.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page to write [map.html in the folder].")
    ] = None,
    point: Annotated[int | None, typer.Option(help="The chosen point, to be marked.")] = None,
    compare: Annotated[tuple[int, int] | None, typer.Option(help="Two points whose class sizes are compared.")] = None,
    floor: Annotated[
        Path | None, typer.Option(help="A front of local recodings of the same study, whose floor is drawn.")
    ] = None,
    force: Force = False,
    run: OwnRun = None,
    as_json: AsJson = False,
) -> None:
    """Draw the risk–utility map of a front as a page."""
    target = output or folder / "map.html"
    front = load_front(folder, run)
    if floor is not None:
        front = with_floor(front, load_front(floor))
    refuse_existing(target, overwrite=force)
    for wanted in (*([] if point is None else [point]), *(compare or ())):
        front.point(wanted)
    draw(front, target, point, compare=compare)
    if as_json:
        emit({"map": str(target)})
    else:
        note(f"map: {target}")


def _with_options(study: Study, system: str | None, problem: int | None, max_suppression: float | None) -> Study:
    """Return the study with another method, problem or limit."""
    settings: Json = {} if max_suppression is None else {"max_suppression": max_suppression}
    if problem is not None:
        named = system or (study.system if "system" in study.search.model_fields_set else WITH_PROBLEMS)
        if named != WITH_PROBLEMS:
            raise InputError(
                f"the system is {named}, which has no problems",
                expected=f"the system {WITH_PROBLEMS}, which has the four problems",
                remedy=f"--system {WITH_PROBLEMS}, or leave --problem {problem} out",
            )
        system = named
        settings |= {"problem": problem, "objectives": SearchSettings().objectives, "suppression": None}
    if system is not None and system != study.system:
        settings |= {"system": system}
    return study.with_search(**settings) if settings else study


def _shown(front: Front) -> list[int]:
    """Return the ids of the points that are printed: all, or an even choice."""
    last = len(front.points) - 1
    if last < MOST_ROWS:
        return list(range(last + 1))
    return [round(i * last / (MOST_ROWS - 1)) for i in range(MOST_ROWS)]


def _print(front: Front) -> None:
    system = system_named(front.system)
    put(f"{counted_plans(len(front.points), system.plans)}: {front.how}, in {front.seconds:.1f} s")
    put(f"{front.left_out_says}; they are in every loss\n" if front.left_out else "")
    ids = _shown(front)
    columns = system.columns(front)
    rows = [
        [
            str(point.id),
            *[number(point.values[o.name]) for o in front.objectives],
            percent(point.loss),
            *(cells[point.id] for cells in columns.values()),
        ]
        for point in (front.points[i] for i in ids)
    ]
    heads = ["id", *[o.name for o in front.objectives], "loss", *columns]
    some = "" if len(ids) == len(front.points) else f" ({len(ids)} of {len(front.points)} shown)"
    table(f"Front{some}", heads, rows, right=set(range(len(heads) - front.recodes)))


def predict_command(
    run: Annotated[Path, typer.Argument(help="The run file.")],
    against: Annotated[
        Path | None, typer.Option(help="The folder of its front, to compare with what happened.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict rows, distinct tuples, evaluations, processor time and memory of a run, stage by stage."""
    happened: Json | None = None
    if against is not None:
        happened = load_front(against).as_dict()
    predicted = predict(read(run)).as_dict()
    pairs = [] if happened is None else compared(predicted, happened)
    if as_json:
        beside = [{"figure": name, "predicted": guess, "actual": fact} for name, guess, fact in pairs]
        emit(predicted | ({"compared": beside} if happened is not None else {}))
        return
    whole = (
        "all of them read" if predicted["sampled_rows"] == predicted["rows"] else f"{predicted['sampled_rows']:,} read"
    )
    put(f"{predicted['rows']:,} rows ({whole}), about {predicted['tuples']:,} distinct tuples")
    put(f"about {predicted['evaluations']:,} evaluations in a space of {number(predicted['nodes'])}\n")
    rows = [[part["stage"], f"{part['cpu_seconds']:,.1f}"] for part in predicted["stages"]]
    rows.append(["together", f"{predicted['cpu_seconds']:,.1f}"])
    table("Processor seconds", ["stage", "expected"], rows, right={1})
    put(f"at most {predicted['peak_bytes'] / 2**30:.1f} GiB of memory")
    if pairs:
        rows = [[name, f"{guess:,.1f}", f"{fact:,.1f}", _times(guess, fact)] for name, guess, fact in pairs]
        put()
        table("Expected and measured", ["", "expected", "measured", "ratio"], rows, right={1, 2, 3})


def _times(guess: float, fact: float) -> str:
    return f"{guess / fact:.2f}" if fact else "–"


def floor_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a front of local recodings.")],
    run: OwnRun = None,
    as_json: AsJson = False,
) -> None:
    """Check the floor of a saved front from its prices, without the code that searched for them."""
    front = load_front(folder, run)
    refuse_unpriced(front)  # before the table is read
    proven = check_front(front, front.study.table())
    if as_json:
        emit({"proven": {str(k): loss for k, loss in proven.items()}})
        return
    losses = {int(point.values[K.name]): point.loss for point in front.points}
    rows = [[number(k), f"{proven[k]:.3%}", f"{losses[k]:.3%}"] for k in proven]
    table("Floors, proven by their prices", [K.name, "proven minimum loss", "best found"], rows, right={0, 1, 2})
    put("Checked: in every box of the labels that holds k records, the k highest prices add up to at most what k")
    put("records lose in it. So no recoding with these labels loses less than the sum of all prices: the floor.")
