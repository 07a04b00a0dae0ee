"""`sfumato channel`: what only channels have: families, figures, several at once, estimates from reports."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.base.json_types import Json
from sfumato.cli.publish import Accept, parse_accepted, show_release
from sfumato.cli.show import AsJson, Force, emit, given, later, note, put, table
from sfumato.errors import InputError, counted

with later():
    from sfumato.decide.pick import pick
    from sfumato.methods.channel.estimate import Estimate
    from sfumato.methods.channel.estimate import estimate as recover
    from sfumato.methods.channel.prior import prior_of
    from sfumato.methods.channel.release import disguise as draw
    from sfumato.methods.channel.search import channel_figures, family_channel
    from sfumato.methods.channel.system import chosen_channel
    from sfumato.methods.registry import load_front
    from sfumato.plans.channel import load_channel, load_channels
    from sfumato.study import Study, read

app = typer.Typer(
    rich_markup_mode=None,
    help="Randomized response: find matrices, disguise a column, estimate from it.",
    no_args_is_help=True,
)

Run = Annotated[Path | None, typer.Option("--run", "-r", help="A run file that declares the table.")]
Data = Annotated[Path | None, typer.Option("--data", help="The table, instead of a run file.")]
Missing = Annotated[list[str] | None, typer.Option("--na", help="A code for missing values; may be repeated.")]
Columns = Annotated[
    list[str] | None, typer.Option("--column", "-c", help="The sensitive column; several make one joint channel.")
]
PriorFile = Annotated[Path | None, typer.Option("--prior", help="CSV with category and share, instead of a table.")]
Records = Annotated[int | None, typer.Option(min=1, help="Number of respondents [the rows of the table].")]
ChannelFiles = Annotated[list[Path], typer.Option("--channel", help="A channel file; may be repeated.")]


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="The folder of a front that sfumato search wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The channel file to write.")],
    point: Annotated[int, typer.Option("--point", "-p", help="The id of the point.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a channel of a front as a channel file, to disguise with it beside others."""
    channel = chosen_channel(pick(load_front(folder), point=point))
    channel.save(output, overwrite=force)
    if as_json:
        emit({"channel": str(output)})
        return
    note(f"channel: {output} (confidential: it reveals the shares)")
    note(f"next: sfumato channel disguise … --channel {shlex.quote(str(output))} -o release")


@app.command()
def make(
    output: Annotated[Path, typer.Option("--output", "-o", help="The channel file to write.")],
    family: Annotated[str, typer.Option(help="warner, uniform_perturbation, frapp or grr.")],
    parameter: Annotated[float, typer.Option(help="p, the retention, the ratio λ, or ε.")],
    run: Run = None,
    data: Data = None,
    na: Missing = None,
    column: Columns = None,
    prior: PriorFile = None,
    records: Records = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make a channel of a known family, for the categories of a column."""
    changed = given(columns=tuple(column) if column else None, records=records)
    study = _study(run, data, na, prior).replace(channel=changed)
    channel, figures = family_channel(prior_of(study), family, parameter)
    channel.save(output, overwrite=force)
    _print_figures(figures, f"{family} {parameter:g}", as_json)


@app.command()
def measure(
    channel: Annotated[Path, typer.Argument(help="A channel file.")],
    run: Run = None,
    data: Data = None,
    na: Missing = None,
    prior: PriorFile = None,
    records: Records = None,
    as_json: AsJson = False,
) -> None:
    """Every figure of a channel on the shares of a table or a prior, and the certified bound at its privacy."""
    loaded = load_channel(channel)
    study = _study(run, data, na, prior).replace(channel=given(columns=loaded.columns, records=records))
    _print_figures(channel_figures(loaded, prior_of(study)), channel.name, as_json)


@app.command()
def disguise(
    channel: ChannelFiles,
    output: Annotated[Path, typer.Option("--output", "-o", help="The new folder of the release.")],
    run: Run = None,
    data: Data = None,
    na: Missing = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to release unchanged; may be repeated.")] = None,
    keep_rest: Annotated[bool, typer.Option("--keep-rest", help="Release all other columns unchanged.")] = False,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Keep the order of the rows; it may disclose true values.")
    ] = False,
    name: Annotated[str, typer.Option(help="The name of the file: .csv, .csv.gz or .parquet.")] = "data.csv",
    reason: Annotated[str, typer.Option(help="Why this channel: kept in the internal report.")] = "",
    accept: Accept = None,
    test_seed: Annotated[int | None, typer.Option(help="For tests only: a fixed seed, recorded in the file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Release a table in which a column's values are replaced by reports drawn at random; the rows come out shuffled.

    The folder public is for analysts. The folder private holds the true shares and stays with you.
    """
    release = draw(
        _study(run, data, na, None),
        [load_channel(path) for path in channel],
        output,
        keep=None if keep_rest else keep or (),
        keep_order=keep_order,
        test_seed=test_seed,
        name=name,
        reason=reason,
        accept=parse_accepted(accept or ()),
    )
    show_release(release, as_json, run or data or "")


@app.command()
def estimate(
    file: Annotated[Path, typer.Argument(help="The disguised file, or the folder of its release.")],
    channel: Annotated[
        list[Path] | None, typer.Option("--channel", help="Its channel file [the one beside the data file].")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="An unperturbed column whose values are strata; may be repeated.")
    ] = None,
    method: Annotated[str, typer.Option(help="auto, inversion, wls or em.")] = "auto",
    level: Annotated[float, typer.Option(help="The confidence level of the intervals.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Estimate the true distribution from a disguised file, with intervals; also by strata or as a cross-table."""
    channels = [one for path in channel or [] for one in load_channels(path)]
    estimated = recover(file, channels, by=tuple(by or ()), method=method, level=level)
    if as_json:
        emit(estimated.as_dict())
    else:
        _print_estimate(estimated)


def _study(run: Path | None, data: Path | None, na: list[str] | None, prior: Path | None) -> Study:
    if len(given(run=run, data=data, prior=prior)) != 1:
        raise InputError(
            "no table is given" if not (run or data or prior) else "the table is given twice",
            expected="one of --run run.toml, --data FILE and --prior FILE",
            remedy="--data people.csv",
        )
    if run is not None:
        return read(run)
    if data is not None:
        return Study(data={"path": str(data.absolute()), "na": tuple(na or ()), "header": "auto"}, columns={})
    return Study(data={"path": str(prior)}, columns={}, channel={"prior": str(prior.absolute()) if prior else None})


def _print_figures(figures: Json, title: str, as_json: bool) -> None:
    if as_json:
        emit(figures)
        return
    endless = figures.get("infinite", [])
    rows = [[name, "∞" if name in endless else _shown(value)] for name, value in figures.items() if name != "infinite"]
    table(title, ["figure", "value"], rows, right={1})


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "–" if value is None else str(value)


def _print_estimate(estimated: Estimate) -> None:
    first = estimated.strata[0].recovered.method
    reports = counted(len(estimated.channel.outputs), "possible report")
    put(f"{counted(estimated.records, 'record')}, {reports}, method {first}\n")
    for stratum in estimated.strata:
        shares = stratum.recovered
        rows = [
            [
                name,
                f"{shares.shares[i]:.4f}",
                f"{shares.low[i]:.4f} – {shares.high[i]:.4f}",
                f"{shares.error[i]:.4f}",
                f"{shares.shares[i] * stratum.records:,.0f}",
                f"{stratum.most_likely.shares[i]:.4f}",
            ]
            for i, name in enumerate(estimated.channel.categories)
        ]
        where = ", ".join(f"{name} = {value}" for name, value in zip(estimated.by, stratum.values, strict=True))
        heads = ["category", "share", f"{estimated.level * 100:g} % interval", "standard error", "count", "EM"]
        table(f"{where or 'All records'} ({stratum.records:,})", heads, rows, right={1, 2, 3, 4, 5})
