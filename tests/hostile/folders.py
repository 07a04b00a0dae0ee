"""One of each kind of folder and file that a command opens, and the commands that open them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sfumato as sf
from sfumato.methods.channel.estimate import warner
from sfumato.plans.channel import Channel
from tests.methods.groups.files import protected_front, protected_study
from tests.release.fronts import front_of, publish, publish_protection, small

LEVELS = {"age": 3, "post code": 3, "sex": 0}
ACCEPT = {"uniques": "a small table made for a test", "attacks": "a small table made for a test"}
JOBS = ("clerk", "cook", "nurse")
RUN = """\
version = 1
[data]
path = "people.csv"
na = ["?"]
missing = "category"
[columns]
name = { role = "identifier" }
age = { role = "quasi_identifier", hierarchy = { build = "interval", widths = [10, 20] } }
"post code" = { role = "quasi_identifier", hierarchy = "codes.csv" }
sex = { role = "quasi_identifier", hierarchy = { build = "flat" } }
ill = { role = "sensitive" }
income = { role = "other" }
[search]
system = "SYSTEM"
seed = 1
LENGTH
max_suppression = 0.1
[policy]
k = 2
reason = "a table made for a test"
"""


def make_folders(folder: Path) -> None:
    """A front, cuts, releases, protections, channels, run files with their tables, files for analysts."""
    front = front_of(small(folder, rows=400), [LEVELS, LEVELS | {"age": 2}])
    front.save(folder / "front")
    publish(front, 0, folder / "release", state=folder / "state")
    (folder / "own.toml").write_text(front.study.as_toml(), "utf-8")
    cuts = front.study.with_search(system="cuts", generations=2, population=8)
    sf.search(cuts).save(folder / "cuts")
    (folder / "groups").mkdir()
    protected_study(folder / "groups")
    protection = protected_front(folder / "groups")
    protection.save(folder / "protection")
    publish_protection(protection, folder / "swapped", accept=ACCEPT, state=folder / "state")
    (folder / "jobs.csv").write_text("job\n" + "".join(f"{JOBS[i % 3]}\n" for i in range(300)), "utf-8")
    people = sf.Study(data={"path": str(folder / "jobs.csv")}, columns={})
    coin = Channel(("job",), JOBS, JOBS, warner(3, 0.6))
    sf.disguise(people, [coin], folder / "disguise", state=folder / "state")
    sf.search(people.replace(channel={"columns": ["job"], "points": 3})).save(folder / "channel")
    _files_of_ones_own(folder, coin)


def _files_of_ones_own(folder: Path, coin: Channel) -> None:
    """Run files with their tables, and what an analyst is handed."""
    (folder / "analyst").mkdir()
    for path in (folder / "disguise" / "public").iterdir():
        if path.name.startswith("data."):
            (folder / "analyst" / path.name).write_bytes(path.read_bytes())
    coin.save(folder / "analyst" / "coin.json")
    table = (folder / "people.csv").read_bytes()
    codes = sorted({line.split(",")[2] for line in table.decode().splitlines()[1:]})
    lengths = {"lattice": "evaluations = 200", "cuts": "generations = 6\npopulation = 8", "local": "", "cells": ""}
    for system, length in lengths.items():
        inside = folder / f"run-{system}"
        inside.mkdir()
        (inside / "people.csv").write_bytes(table)
        (inside / "codes.csv").write_text("".join(f"{code},{code[:2]},*\n" for code in codes), "utf-8")
        (inside / "run.toml").write_text(RUN.replace("SYSTEM", system).replace("LENGTH", length), "utf-8")
    inside = folder / "run-channel"
    inside.mkdir()
    (inside / "jobs.csv").write_bytes((folder / "jobs.csv").read_bytes())
    text = 'version = 1\n[data]\npath = "jobs.csv"\n[channel]\ncolumns = ["job"]\npoints = 3\n'
    (inside / "run.toml").write_text(text, "utf-8")


Command = Callable[[Path, Path, Path], list[str]]  # of a folder, where everything was made, and where to write


def command_of(line: str) -> Command:
    """A command from a line: FOLDER, MADE and OUT are paths."""

    def filled(folder: Path, made: Path, out: Path) -> list[str]:
        paths = {"FOLDER": str(folder), "MADE": str(made), "OUT": str(out)}
        words = line.split()
        for name, path in paths.items():
            words = [word.replace(name, path) for word in words]
        return words

    return filled


FRONT = """
        pick FOLDER --max-loss 0.9
        ask FOLDER --max-loss 0.9
        map FOLDER -o OUT
        compare FOLDER MADE/front
        publish FOLDER --point 0 -o OUT
        publish FOLDER --point 0 -o OUT --run MADE/own.toml
        apply FOLDER MADE/people.csv --point 0 -o OUT
        predict MADE/own.toml --against FOLDER
"""
LINES = {
    "front": FRONT,
    "release": """
        verify FOLDER
        verify FOLDER --source MADE/people.csv
        apply FOLDER MADE/people.csv -o OUT
    """,
    "protection": f"""{FRONT}
        pick FOLDER --limit max_findings=1e9 --limit max_cost=1e9
        compare FOLDER MADE/protection
        publish FOLDER -o OUT
        publish FOLDER -o OUT --run MADE/groups/run.toml
    """,
    "channel": f"""{FRONT}
        pick FOLDER --limit min_privacy=0.1 --limit max_error=1
        pick FOLDER --knee
        compare FOLDER MADE/channel
        channel export FOLDER --point 0 -o OUT
        publish FOLDER --point 0 -o OUT --run MADE/run-channel/run.toml
    """,
    "analyst": """
        channel estimate FOLDER/data.csv
        channel estimate FOLDER/data.csv --channel FOLDER/coin.json
        channel measure FOLDER/coin.json --data MADE/jobs.csv
        channel disguise --channel FOLDER/coin.json --data MADE/jobs.csv -o OUT --accept uniques=made-for-a-test
    """,
    "table run": """
        search FOLDER/run.toml -o OUT
        audit --run FOLDER/run.toml
        predict FOLDER/run.toml
        baselines FOLDER/run.toml
        groups attack FOLDER/run.toml
        search FOLDER/run.toml --system channel -o OUT
    """,
    "groups run": """
        groups harmonise FOLDER/run.toml
        groups variables FOLDER/run.toml
        groups attack FOLDER/run.toml
        search FOLDER/run.toml -o OUT
        audit --run FOLDER/run.toml
    """,
    "channel run": """
        channel measure MADE/analyst/coin.json --run FOLDER/run.toml
        search FOLDER/run.toml -o OUT
    """,
}
COMMANDS = {
    kind: [command_of(line.strip()) for line in lines.splitlines() if line.strip()] for kind, lines in LINES.items()
}
KINDS = {
    "front": "front",
    "cuts": "front",
    "release": "release",
    "swapped": "release",
    "disguise": "release",
    "protection": "protection",
    "channel": "channel",
    "analyst": "analyst",
    "run-lattice": "table run",
    "run-cuts": "table run",
    "groups": "groups run",
    "run-channel": "channel run",
}
