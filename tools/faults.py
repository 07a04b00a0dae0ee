"""Put small faults into a copy of the package, one at a time, and find out whether a test fails with each.

python -m tools.faults list                    # the faults: what is changed, and where
python -m tools.faults run [F001 …]            # run the quick tests with each fault; print what caught it
python -m tools.faults run --long [F001 …]     # the long tests too
python -m tools.faults run --coverage=FILE …   # first the tests that reach the changed lines, the quickest first

The faults are in `faults.json`: places drawn at random (comparisons, conditions, bounds, guards), with half of them in
release, decide, channel and groups. Places where the change makes no difference were left out before any test was read.
A fault whose text is no longer in its file is listed as such: write another one in its place. FILE is a data file of
coverage.py with one context for each test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAULTS = Path(__file__).with_suffix(".json")
QUICK = "not long and not published and not scale and not site and not package"
LONG = "not published and not scale and not site and not package"
LIMIT = 1800.0  # seconds for the tests of one fault: an endless loop counts as caught
MOST = 60  # tests that reach the changed lines and run before all others


@dataclass(frozen=True)
class Fault:
    """A small change of one file of the package."""

    id: str
    room: str
    file: str
    function: str
    line: int
    old: str
    new: str

    def apply(self, source: Path) -> bool:
        """Change the file below a copy of `src`; return whether the text was there, once."""
        path = source / self.file
        text = path.read_text("utf-8") if path.is_file() else ""
        if text.count(self.old) != 1:
            return False
        path.write_text(text.replace(self.old, self.new), "utf-8")
        return True


def faults(chosen: list[str]) -> list[Fault]:
    """Return the recorded faults, or those chosen by their ids."""
    every = [Fault(**entry) for entry in json.loads(FAULTS.read_text("utf-8"))]
    return [fault for fault in every if not chosen or fault.id in chosen]


def tests_of_lines(data: Path, fault: Fault) -> list[str]:
    """Return the tests that reach the changed lines or else the function, by a data file of coverage.py."""
    from coverage import CoverageData

    measured = CoverageData(basename=str(data))
    measured.read()
    name = next((name for name in measured.measured_files() if name.endswith("/src/" + fault.file)), None)
    if name is None:
        return []
    lines = range(fault.line, fault.line + fault.old.count("\n") + 1)
    contexts = measured.contexts_by_lineno(name)
    return sorted({context for line in lines for context in contexts.get(line, ()) if "::" in context})


def folders_of(fault: Fault) -> list[str]:
    """Return the folder of tests that mirrors the room of a fault, and the doctests of its file."""
    place = ROOT / "tests" / fault.room
    return [*([str(place.relative_to(ROOT))] if place.is_dir() else []), f"src/{fault.file}"]


def failed_test(source: Path, tests: list[str], marks: str) -> str:
    """Run tests with a changed copy of the package; return the first that fails, or an empty text."""
    with tempfile.TemporaryDirectory() as state:
        surroundings = os.environ | {"PYTHONPATH": str(source), "SFUMATO_STATE": state}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks, *tests]
        try:
            done = subprocess.run(
                command, cwd=source.parent, env=surroundings, text=True, capture_output=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return "ran past the limit"
    if done.returncode in (0, 5):  # 5: no test was chosen
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else f"exit code {done.returncode}"


def run(fault: Fault, marks: str, coverage: Path | None, everything: bool) -> tuple[str, str]:
    """Return whether a fault was caught, and by which test: first those near it, then all."""
    with tempfile.TemporaryDirectory(prefix="sfumato-fault-") as folder:
        copy = Path(folder)
        for name in ("src", "tests", "tools", "docs"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "mkdocs.yml"):
            shutil.copy2(ROOT / name, copy / name)
        if not fault.apply(copy / "src"):
            return "not applicable", ""
        near = tests_of_lines(coverage, fault)[:MOST] if coverage is not None else []
        for tests in ([near] if near else []) + [folders_of(fault)] + ([[]] if everything else []):
            caught = failed_test(copy / "src", tests, marks)
            if caught:
                return "caught", caught
    return "survived", ""


def main(arguments: list[str]) -> int:
    """List the faults, or run the tests with each; exit code 1 if one survives."""
    chosen = faults([word for word in arguments[1:] if not word.startswith("--")])
    if arguments[:1] != ["run"]:
        for fault in chosen:
            print(f"{fault.id} {fault.file}:{fault.line} {fault.function}")
            print(f"  - {fault.old.strip()}")
            print(f"  + {fault.new.strip()}")
        return 0
    options = dict(word.partition("=")[::2] for word in arguments if word.startswith("--"))
    coverage = Path(options["--coverage"]) if "--coverage" in options else None
    results: dict[str, int] = {}
    for fault in chosen:
        began = time.monotonic()
        outcome, by = run(fault, LONG if "--long" in options else QUICK, coverage, "--near" not in options)
        results[outcome] = results.get(outcome, 0) + 1
        print(
            f"{fault.id} {outcome:15} {time.monotonic() - began:5.0f} s  {fault.file} {fault.function}  {by}",
            flush=True,
        )
    print(", ".join(f"{number} {outcome}" for outcome, number in results.items()))
    return int("survived" in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
