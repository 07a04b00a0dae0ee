"""The command line: the table of commands, and how errors and signals become messages and exit codes.

SIGTERM and SIGHUP (a closed terminal) have the effect of Ctrl-C.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Annotated, Any

import typer
import typer.main

from sfumato.base import trust
from sfumato.base.files import sweep
from sfumato.base.progress import recording
from sfumato.base.trust import kept_inputs, unsealed_inputs
from sfumato.base.wording import as_options
from sfumato.cli.show import StageLine, emit, given_words, note, say, stage_summary, warnings_noted
from sfumato.errors import InputError, SfumatoError, reason_of
from sfumato.version import __version__

ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_received: list[int] = []


@contextmanager
def ended_as_stopped() -> Iterator[None]:
    """Treat the signals as Ctrl-C while a command runs, so that it cleans up and keeps the best so far."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    # An ignored signal stays ignored, because a command that was started with nohup outlives its terminal.
    before = {one: signal.signal(one, _end) for one in ENDS if signal.getsignal(one) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def exit_code(code: int) -> int:
    """Return 130 for Ctrl-C, and 128 plus the number of another signal that stopped the command: 143 for SIGTERM."""
    return 128 + _received[0] if code == 130 and _received else code


def _end(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # Ctrl-C is ignored, as it is in the background of some shells
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


# Some versions of Typer contain click and others import it, so the classes of errors are found through Typer.
UsageError = typer.BadParameter.__bases__[0]
ClickError = UsageError.__bases__[0]

# Each command with the first sentence of its help, and the commands of each module. Only the module of the command that
# runs is imported, so no other command waits for it.
COMMANDS = {
    "audit": "Measure a table: k, ℓ, t, risks, uniques, losses, and which columns make the risk.",
    "inspect": "Profile a table: values, what may mean missing, suggested roles, sets of columns that "
    "single people out.",
    "sample": "Write a sample with a run file into a new folder: UCI Adult, or a synthetic census of any size.",
    "predict": "Predict rows, distinct tuples, evaluations, processor time and memory of a run, stage by stage.",
    "search": "Find the front of a table: every plan that no other one beats, by the system that the run file names.",
    "pick": "Choose a point of a front by one or several limits, by its knee, or by its id.",
    "ask": "The best release within limits, the binding limits, worthwhile relaxations, and four common questions.",
    "compare": "Compare two fronts: hypervolume, who dominates whom, and how far each is from a floor "
    "that one of them has.",
    "map": "Draw the risk–utility map of a front as a page.",
    "floor": "Check the floor of a saved front from its prices, without the code that searched for them.",
    "baselines": "Compare with Mondrian, Datafly and the best node of the lattice: what each kind of recoding costs.",
    "publish": "Write a point of a front as a release: change the table, read the file back, measure it, "
    "write the reports.",
    "verify": "Check a release again: every file, every figure, and with the source every row. Exit 4 on a difference.",
    "apply": "Publish another table with a saved plan: a release of its own, measured and held to the policy.",
    "releases": "List the releases that new ones are compared with; withdraw one that was never handed out.",
    "doctor": "Say which versions are installed, where things are kept, and what is missing for which feature.",
    "serve": "Open the workbench: explore, decide and release in a browser, on this machine alone.",
    "measures": "List every measure, with its other names, its direction and what it says.",
    "channel": "Randomized response: find matrices, disguise a column, estimate from it.",
    "hierarchy": "Check, build and show generalization hierarchies.",
    "groups": "Find where a group of people stands out, and protect it.",
    "import": "Read a project of another tool into a run file.",
    "reproduce": "Reproduce the tables of the papers.",
}
MODULES = {
    "data": ("audit", "import", "inspect", "measures", "sample"),
    "search": ("compare", "floor", "map", "predict", "search"),
    "choose": ("ask", "pick"),
    "reproduce": ("baselines", "reproduce"),
    "publish": ("apply", "publish", "releases", "verify"),
    "serve": ("doctor", "serve"),
    "channel": ("channel",),
    "hierarchy": ("hierarchy",),
    "groups": ("groups",),
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


def _empty_application() -> typer.Typer:
    return typer.Typer(
        name="sfumato",
        rich_markup_mode=None,  # brackets in help texts are text
        help="See the whole trade-off between privacy and loss of a table about people; choose, publish, verify.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # they print local variables, and with them people's records
        add_completion=False,
        callback=_options,
    )


def application(names: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the application with the named commands, whose modules are imported."""
    application = _empty_application()
    for name in names:
        holding = next(module for module, held in MODULES.items() if name in held)
        module = importlib.import_module(f"{__name__}.{holding}")
        if command := getattr(module, f"{name}_command", None):
            application.command(name)(command)
        else:
            application.add_typer(module.app, name=name)
    return application


def _listing() -> typer.Typer:
    """Return an application that lists all commands and suggests names, and cannot run any of them."""
    listing = _empty_application()
    for name, text in COMMANDS.items():
        listing.command(name, help=text)(lambda: None)
    return listing


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 internal error, 2 user error, 3 cannot be met, 130 stopped.

    Stopped by SIGTERM it is 143, by SIGHUP 129.
    """
    given = sys.argv[1:] if arguments is None else arguments
    trust.ours = True
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not end the work
    with ended_as_stopped():
        code = exit_code(run(given))
    try:
        sys.stdout.flush()
    except OSError:  # the reader of the output has ended, or the disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(given: list[str]) -> int:
    as_json, debug = "--json" in given, "--debug" in given
    try:
        sweep()
        line = StageLine() if sys.stderr.isatty() else None
        with given_words(given), kept_inputs(), warnings_noted(), recording(line) as recorder:
            result = _invoke([word for word in given if word != "--debug"])
        say("")
        if not as_json and (text := stage_summary(recorder.done)):
            note(text)
    except (typer.Abort, KeyboardInterrupt):
        say("")
        note("stopped")
        return 130
    except typer.Exit as ended:
        return ended.exit_code
    except SystemExit as ended:
        gone = isinstance(ended.__context__, BrokenPipeError)  # the reader of a page of help or of a table has ended
        return 0 if gone else 1
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001  a trace could print people's records
        if isinstance(error, ClickError):
            usage = _usage(error)
            return _failed(usage, as_json) if usage.what else usage.exit_code  # a page of help is not an error
        if debug and not isinstance(error, OSError):
            traceback.print_exc()
        return _failed(_explained(error), as_json)
    return result if isinstance(result, int) else 0


def _explained(error: Exception) -> SfumatoError:
    """Return an error in the words of the package. Those of an unexpected one may contain people's records."""
    if isinstance(error, SfumatoError):
        return error
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        return InputError(
            f"cannot use{where}: {reason_of(error)}",
            expected="paths that can be read and written",
            remedy="check the path",
        )
    if folders := unsealed_inputs():
        return InputError(
            f"{folders[0]} was made elsewhere, or was changed, and its content is not as expected "
            f"({type(error).__name__})",
            expected="an unchanged folder",
        )
    return SfumatoError(f"internal error: {type(error).__name__}", remedy="--debug shows the trace; please report it")


def _invoke(words: list[str]) -> Any:
    """Call the command, without click's own handling of Ctrl-C, a closed pipe and the end of a file."""
    command = _command(next((word for word in words if word != "--"), ""))
    with command.make_context("sfumato", words) as context:
        return command.invoke(context)


@cache
def _command(name: str) -> Any:
    """Return the tree of commands with the named one alone; for help, an option or a mistyped name, the listing."""
    return typer.main.get_command(application([name]) if name in COMMANDS else _listing())


def _usage(error: Any) -> SfumatoError:
    """Return a mistake in the words of a command as an error of the package."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "sfumato"
    return InputError(error.format_message(), expected="the options of this command", remedy=f"{where} --help")


def _failed(error: SfumatoError, as_json: bool) -> int:
    if as_json:
        emit({"error": {k: as_options(v) if isinstance(v, str) else v for k, v in error.as_dict().items()}})
    else:
        note(f"error: {as_options(str(error))}")
    return error.exit_code
