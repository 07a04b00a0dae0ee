"""Ctrl-C while the engine works ends the command with 130, and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys, threading, time
from sfumato.cli import main
from sfumato.data import duck

sys.stdout.write("ready\\n")
plain = duck.DuckEngine.run
def slow(self, sql):
    if "TEMP TABLE cells" in sql:
        sys.stdout.write("working\\n")
        sys.stdout.flush()
        plain(self, "CREATE OR REPLACE TEMP TABLE long AS SELECT sum(CAST(hash(a.range, b.range) AS DOUBLE)) AS n "
                    "FROM range(100000) AS a, range(100000) AS b")
    plain(self, sql)
duck.DuckEngine.run = slow
main(sys.argv[1:])
"""


def test_ctrl_c_inside_a_statement(tmp_path: Path) -> None:
    from sfumato.data.sample import sample

    (tmp_path / "temp").mkdir()
    run = tmp_path / "run.toml"
    text = sample("adult").read_text("utf-8").replace('path = "', f'path = "{sample("adult").parent}/')
    text = text.replace('hierarchy = "', f'hierarchy = "{sample("adult").parent}/')
    run.write_text(text + f'\n[engine_options]\ntemp_folder = "{tmp_path}/temp"\n', "utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "search", str(run), "-o", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        assert running.stdout is not None
        while running.stdout.readline() != "working\n":
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
    assert running.returncode == 130, said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.toml", "temp"]
    assert not list((tmp_path / "temp").iterdir())
