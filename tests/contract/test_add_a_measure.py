"""A new measure is one file: it is searched for, picked by, drawn, published, verified and audited as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import small

import sfumato as sf
from sfumato.measures import loss, registry

REPOSITORY = Path(__file__).parents[2]
NAME = "squared_loss"
FLAT = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
FILE = '''
"""Squared loss: the mean over records of the squared share of its cells that a record loses.

>>> from sfumato.measures.oracle import six_rows
>>> round(MEASURE.value(six_rows()), 4)  # three lose (1/3 + 1/2)/2, three 1/3 / 2
0.1007
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.loss.cells import general_loss_oracle as cells_of
from sfumato.measures.measure import Measure, Texts
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def squares(classes: ClassTable) -> Property:
    share = (classes.covers - 1) / np.maximum(classes.leaves - 1, 1)[:, None]
    weights = classes.attribute_weights
    return classes.per_class((weights @ share / weights.sum()) ** 2, hidden=1.0)


def oracle(records: Records, record: int) -> float:
    return (cells_of(records, record) / len(records.recoding)) ** 2


MEASURE = Measure(
    name="squared_loss",
    function=squares,
    oracle=oracle,
    fold="mean",
    kind="loss",
    direction="min",
    reads="cells",
    monotone="rises",
    texts=Texts(
        title="squared loss",
        sentence="The squared share of its detail that a record loses, on average.",
        citation="made for a test",
        aliases=("mean_square",),
        unit="share",
    ),
)
'''
PLUGIN = "from sfumato.measures import loss\nloss.__path__.append({folder!r})\n"


def forget() -> None:
    for cached in (registry.modules, registry.known_measures, registry.names):
        cached.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one file: the measure."""
    folder = tmp_path / "one_file"
    folder.mkdir()
    (folder / f"{NAME}.py").write_text(FILE.lstrip(), "utf-8")
    return folder


@pytest.fixture
def added(folder: Path) -> Iterator[None]:
    """The same as if the file were in measures/loss."""
    loss.__path__.append(str(folder))
    forget()
    yield
    loss.__path__.remove(str(folder))
    sys.modules.pop(f"{loss.__name__}.{NAME}", None)
    forget()


@pytest.mark.long
@pytest.mark.usefixtures("added")
@pytest.mark.parametrize(
    "settings",
    [
        {"objectives": ("k", NAME)},
        {"objectives": ("k", "mean_square", "distinct_l")},
        {"objectives": (NAME,), "constraints": {"k": 3}},
        {"objectives": ("k", "general_loss"), "constraints": {NAME: 0.5}},
        {"objectives": ("k", NAME), "system": "cuts", "generations": 3, "population": 8},
    ],
    ids=["lattice", "by its other name", "alone", "as a limit", "cuts"],
)
def test_one_file_and_everything_works(settings: dict[str, Any], tmp_path: Path) -> None:
    assert sf.measure("mean_square").name == NAME
    study = small(tmp_path, sex=FLAT).with_search(**{"max_suppression": 0.1} | settings)
    found = sf.search(study)
    found.save(tmp_path / "front")
    front = sf.load_front(tmp_path / "front")
    assert front.objectives == found.objectives
    assert [point.values for point in front.points] == [point.values for point in found.points]
    sought = NAME in {objective.name for objective in front.objectives}
    assert sought is (settings.get("constraints", {}).keys() != {NAME})

    private = any(objective.name == "k" for objective in front.objectives)
    choice = sf.pick(front, min_k=3)
    if private:
        assert sf.ask(front, min_k=3).offer.k >= 3
    page = sf.draw(front, tmp_path / "map.html", choice.point.id).read_text("utf-8")
    assert ("squared loss" in page) is sought

    accept = dict.fromkeys(
        ("uniques", "t", "l", "suppressed", "identifying:income"), "a table that was made for a test"
    )
    release = sf.publish(choice, tmp_path / "release", accept=accept)
    measured = release.manifest["figures"][NAME]["value"]
    if sought:
        assert measured == pytest.approx(choice.point.values[NAME], rel=1e-9)
    verified = sf.verify(tmp_path / "release", tmp_path / "people.csv")
    assert verified, verified.differences

    audit = sf.audit(study)
    assert audit.figures[NAME].value == 0.0
    assert audit.as_dict()["measures"][NAME]["title"] == "squared loss"


@pytest.mark.long
def test_one_file_and_no_test_fails(folder: Path, tmp_path: Path) -> None:
    """The tests that go over all measures, over the docs and over the source, with the file in place."""
    (tmp_path / "one_more_measure.py").write_text(PLUGIN.format(folder=str(folder)), "utf-8")
    tests = ["tests/contract/test_measures.py", "tests/contract/test_measure_names.py", "tests/test_package.py"]
    chosen = f"{NAME} or names or docs or counted"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "pytest", "-v", "-p", "one_more_measure", "-p", "no:cacheprovider", "-k", chosen]
    done = subprocess.run(
        [*command, *tests], capture_output=True, text=True, check=False, cwd=REPOSITORY, env=environment
    )
    assert done.returncode == 0, done.stdout
    assert f"test_equals_the_oracle_record_by_record[{NAME}] PASSED" in done.stdout
    assert f"test_column_with_weight_0_counts_as_absent[{NAME}] PASSED" in done.stdout
    assert "test_docs_say_of_measures_and_roles_what_is_so PASSED" in done.stdout
    assert "test_no_module_goes_by_the_name_of_a_measure PASSED" in done.stdout
