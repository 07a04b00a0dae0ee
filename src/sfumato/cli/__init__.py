"""The command line: parse, call, show. No arithmetic lives here.

Being asked to end (SIGTERM, or a terminal that goes away) is Ctrl-C under another name.
"""

from __future__ import annotations

import copy
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Annotated, Any

import typer
import typer.main

from sfumato.base import trust as trust
from sfumato.base.files import sweep as sweep
from sfumato.base.progress import recording as recording
from sfumato.base.trust import kept_inputs as kept_inputs
from sfumato.base.trust import unsealed_inputs as unsealed_inputs
from sfumato.base.wording import as_options as as_options
from sfumato.cli import channel as channel
from sfumato.cli import choose as choose
from sfumato.cli import data as data
from sfumato.cli import groups as groups
from sfumato.cli import hierarchy as hierarchy
from sfumato.cli import publish as publish
from sfumato.cli import reproduce as reproduce
from sfumato.cli import search as search
from sfumato.cli import serve as serve
from sfumato.cli.show import StageLine as StageLine
from sfumato.cli.show import emit as emit
from sfumato.cli.show import given_words as given_words
from sfumato.cli.show import note as note
from sfumato.cli.show import say as say
from sfumato.cli.show import stage_summary as stage_summary
from sfumato.cli.show import warnings_noted as warnings_noted
from sfumato.errors import InputError as InputError
from sfumato.errors import SfumatoError as SfumatoError
from sfumato.errors import reason_of as reason_of
from sfumato.version import __version__ as __version__

ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_received: list[int] = []


@contextmanager
def ended_as_stopped() -> Iterator[None]:
    """Treat those signals as Ctrl-C while a command runs: the same clean end, the same best so far."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    # What is ignored stays so: a command that was started with nohup outlives its terminal.
    before = {one: signal.signal(one, _end) for one in ENDS if signal.getsignal(one) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def exit_code(code: int) -> int:
    """130 for Ctrl-C; a command that another signal stopped ends with 128 and its number: 143 for SIGTERM."""
    return 128 + _received[0] if code == 130 and _received else code


def _end(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # Ctrl-C is ignored, as it is in the background of some shells
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


# Typer carries click inside itself or beside itself, depending on its version.
UsageError = typer.BadParameter.__bases__[0]
ClickError = UsageError.__bases__[0]

app = typer.Typer(
    name="sfumato",
    rich_markup_mode=None,  # brackets in help texts are text
    help="See the whole trade-off between privacy and loss of a table about people; choose, publish, verify.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they print local variables, and with them people's records
    add_completion=False,
)
app.command("audit")(data.audit_command)
app.command("inspect")(data.inspect_command)
app.command("sample")(data.sample_command)
app.command("predict")(search.predict_command)
app.command("search")(search.search)
app.command("pick")(choose.pick_command)
app.command("ask")(choose.ask_command)
app.command("compare")(search.compare)
app.command("map")(search.draw_map)
app.command("floor")(choose.floor_command)
app.command("baselines")(search.baselines_command)
app.command("publish")(publish.publish_command)
app.command("verify")(publish.verify_command)
app.command("apply")(publish.apply_command)
app.command("releases")(publish.releases_command)
app.command("doctor")(serve.doctor_command)
app.command("serve")(serve.serve_command)
app.command("measures")(data.list_measures)
app.add_typer(channel.app, name="channel")
app.add_typer(hierarchy.app, name="hierarchy")
app.add_typer(groups.app, name="groups")
app.add_typer(data.app, name="import")
app.add_typer(reproduce.app, name="reproduce")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


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
    except OSError:  # whoever read our output has gone, or the disk is full
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
    except SfumatoError as error:
        if debug:
            traceback.print_exc()
        return _failed(error, as_json)
    except (typer.Abort, KeyboardInterrupt):
        say("")
        note("stopped")
        return 130
    except typer.Exit as ended:
        return ended.exit_code
    except SystemExit as ended:
        gone = isinstance(ended.__context__, BrokenPipeError)  # so a page of help or a table ends if its reader does
        return 0 if gone else 1
    except BrokenPipeError:
        return 0
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        what = InputError(
            f"cannot use{where}: {reason_of(error)}",
            expected="paths that can be read and written",
            remedy="check the path",
        )
        return _failed(what, as_json)
    except Exception as error:  # noqa: BLE001  the last door: a fault must not print people's records
        if isinstance(error, ClickError):
            usage = _usage(error)
            return _failed(usage, as_json) if usage.what else usage.exit_code  # a page of help says it all
        if debug:
            traceback.print_exc()
        if folders := unsealed_inputs():
            damaged = InputError(
                f"{folders[0]} was made elsewhere, or was changed, and its content is not as expected "
                f"({type(error).__name__})",
                expected="an unchanged folder",
            )
            return _failed(damaged, as_json)
        fault = SfumatoError(
            f"internal error: {type(error).__name__}", remedy="--debug shows the trace; please report it"
        )
        return _failed(fault, as_json)
    return result if isinstance(result, int) else 0


def _invoke(words: list[str]) -> Any:
    """Call the command. Its own way of doing so would turn Ctrl-C, a closed pipe and the end of a file into others."""
    command = _command(words[0] if words else "")
    with command.make_context("sfumato", words) as context:
        return command.invoke(context)


@cache
def _command(name: str) -> Any:
    """The tree of commands, of which only the named one is built: the signatures of all take long to read."""
    commands = [command for command in app.registered_commands if command.name == name]
    groups = [group for group in app.registered_groups if group.name == name]
    if not commands and not groups:  # help, an option, a mistyped name
        return typer.main.get_command(app)
    part = copy.copy(app)
    part.registered_commands, part.registered_groups = commands, groups
    return typer.main.get_command(part)


def _usage(error: Any) -> SfumatoError:
    """A mistake in the words of a command, in our form."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "sfumato"
    return InputError(error.format_message(), expected="the options of this command", remedy=f"{where} --help")


def _failed(error: SfumatoError, as_json: bool) -> int:
    if as_json:
        emit({"error": {k: as_options(v) if isinstance(v, str) else v for k, v in error.as_dict().items()}})
    else:
        note(f"error: {as_options(str(error))}")
    return error.exit_code
