"""Shared fixtures. Data beside the bundled sample are found through SFUMATO_SHARED."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

import sfumato as sf
from sfumato.base.trust import KEY

EXAMPLES = int(os.environ.get("SFUMATO_EXAMPLES", "12"))  # of a law; make test-published tries more
hypothesis.settings.register_profile("sfumato", deadline=None, max_examples=EXAMPLES, derandomize=True)
hypothesis.settings.load_profile("sfumato")


@pytest.fixture(scope="session", autouse=True)
def _own_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder of the tests' own, and one key for all: no test reads or writes the user's ledger and keys."""
    folder = tmp_path_factory.mktemp("state")
    key = folder / KEY
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE", str(folder))
        yield key


@pytest.fixture(autouse=True)
def _own_ledger(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, _own_key: Path) -> None:
    """A ledger for each test, so that what others published is not compared."""
    folder = tmp_path_factory.mktemp("state")
    shutil.copy(_own_key, folder / KEY)
    monkeypatch.setenv("SFUMATO_STATE", str(folder))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data, or a visible skip."""
    folder = os.environ.get("SFUMATO_SHARED")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SFUMATO_SHARED does not name the folder of shared data")
    return Path(folder)


@pytest.fixture(scope="session")
def adult() -> sf.FrequencyTable:
    """The bundled Adult table: eight quasi-identifiers, occupation sensitive."""
    return sf.read(sf.sample("adult-complete")).table()


@pytest.fixture(scope="session")
def arx_adult(shared: Path) -> sf.Study:
    """ARX's Adult: nine quasi-identifiers with its own hierarchies."""
    folder = shared / "data" / "arx" / "adult"
    order = "sex age race marital-status education native-country workclass occupation salary-class"
    columns = {
        c: {"role": "quasi_identifier", "hierarchy": str(folder / f"adult_hierarchy_{c}.csv")} for c in order.split()
    }
    return sf.Study(data={"path": str(folder / "adult.csv")}, columns=columns)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a small file in a folder of the test's own."""

    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


LONG = ("tests/web", "tests/hostile", "tests/release", "tests/methods", "tests/frames", "tests/labelled")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The folders that take longest come first, so that no worker is left alone with one of their files at the end.

    With SFUMATO_ONLY, a file that SFUMATO_SKIPPED wrote, only the tests run that were skipped then.
    """
    if os.environ.get("SFUMATO_ONLY"):
        skipped = tuple(Path(os.environ["SFUMATO_ONLY"]).read_text("utf-8").split("\n"))
        chosen = [item for item in items if item.nodeid in skipped or item.nodeid.partition("::")[0] in skipped]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    items.sort(key=lambda item: next((n for n, folder in enumerate(LONG) if item.nodeid.startswith(folder)), len(LONG)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests ran and how many were skipped."""
    ran = sum(len(terminalreporter.stats.get(kind, [])) for kind in ("passed", "failed", "error"))
    skipped = len(terminalreporter.stats.get("skipped", []))
    terminalreporter.write_line(f"sfumato: {ran} tests ran, {skipped} skipped")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With SFUMATO_NO_SKIPS a skip is a failure: CI has all the data. SFUMATO_SKIPPED names a file for the skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("SFUMATO_SKIPPED") and reporter is not None and not hasattr(session.config, "workerinput"):
        skipped = [report.nodeid for report in reporter.stats.get("skipped", [])]
        Path(os.environ["SFUMATO_SKIPPED"]).write_text("\n".join(skipped), "utf-8")
    if os.environ.get("SFUMATO_NO_SKIPS") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"])
def _generous(request: pytest.FixtureRequest) -> Iterator[None]:
    """A umask under which new files can be read, or even written, by others."""
    before = os.umask(request.param)
    yield
    os.umask(before)
