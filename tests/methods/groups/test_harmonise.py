"""Harmonising: the ACS recipe cell by cell, patterns, units, and what is dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.errors import DataError, StudyError
from sfumato.methods.groups.microfile import Microfile, read_microfile
from sfumato.study.census_mapping import Attribute, Case, FileMapping, recipe
from sfumato.study.groups import AuxiliarySettings, GroupsSettings

Write = Callable[[str, str], Path]


def harmonised(path: Path, mapping: FileMapping) -> Microfile:
    with open_engine() as engine:
        return read_microfile(engine, open_source(DataSettings(path=str(path))), mapping, path.name)


def test_the_acs_recipe_cell_by_cell(shared: Path) -> None:
    found = harmonised(shared / "data" / "acs-pums" / "ss15phi.csv.gz", recipe("acs"))
    expected = pyarrow.parquet.read_table(shared / "fronts" / "groups" / "hi15.parquet").to_pydict()
    for name in recipe("acs").attributes:
        assert found.column(name).tolist() == expected[name], name
    assert found.rows.tolist() == expected["rownum"]
    assert [found.areas[i] for i in found.area_of] == expected["puma"]
    assert found.members["military"].astype(int).tolist() == expected["military"]
    assert found.quantity("military").tolist() == [4, 0, 85, 41, 1, 4, 3, 81, 17, 17]


@pytest.mark.parametrize(
    ("file", "ranges", "records", "members"),
    [
        ("ss15phi.csv.gz", "acs_paper", 1040, 213),
        ("psam_p15_2018.csv.gz", "acs", 3347, 277),
        ("psam_p15_2018.csv.gz", "acs_paper", 1019, 220),
        ("psam_2018_14states_noreplicates.parquet", "acs", 32833, 167),
        ("psam_2018_14states_noreplicates.parquet", "acs_paper", 29713, 154),
    ],
)
def test_the_other_files(shared: Path, file: str, ranges: str, records: int, members: int) -> None:
    mapping = recipe(ranges)
    if file.endswith("parquet"):
        mapping = mapping.model_copy(update={"leave_out": ({"ST": "15"},)})
    found = harmonised(shared / "data" / "acs-pums" / file, mapping)
    assert (found.records, int(found.members["military"].sum())) == (records, members)


TEXT = """id,age,income,factor,job,town,state
1,30,1000,1500000,551010,A,1
2,17,2000,1000000,552010,A,1
3,40,,1000000,11,B,1
4,50,3,500000,55,B,2
5,,7,1000000,56,,2
06,44,5,500000,5_5x,B,2
"""
MAPPING = FileMapping(
    vital={"g": ({"job": ("55*", "5_6*")},)},
    area=("state", "town"),
    attributes={
        "age": Attribute(column="age", range=(18, 60)),
        "income": Attribute(
            column="income", multiply=("factor",), divide=1e6, rounded=True, blank=0, range=(0, 5000), ordinal=True
        ),
        "kind": Attribute(
            column="job", cases=(Case(when={"job": "55*", "age": "45.."}, value=9),), blank=0,
            recode={"0..99": 1, "5_5x": 7},
        ),
    },
)  # fmt: skip


def test_patterns_units_and_drops(write: Write) -> None:
    mapping = MAPPING.model_copy(update={"attributes": {k: v for k, v in MAPPING.attributes.items() if k != "kind"}})
    found = harmonised(write("t.csv", TEXT), mapping)
    assert found.rows.tolist() == [0, 2, 3, 5]
    assert found.column("income").tolist() == [1500, 0, 2, 2]  # 1.5 and 2.5 both round to the even 2
    assert found.areas == ("1-A", "1-B", "2-B")
    assert found.members["g"].tolist() == [True, False, True, False]  # an underscore is no wildcard
    assert found.dropped.reasons == {"area missing": 1, "age outside 18..60": 2}
    assert found.dropped.only_reason == {"area missing": 0, "age outside 18..60": 1}
    assert found.everyone["g"].tolist() == [2, 0, 1]
    kinds = harmonised(write("k.csv", TEXT), MAPPING)
    assert kinds.rows.tolist() == [2, 3, 5]  # 551010 has no kind
    assert kinds.column("kind").tolist() == [1, 9, 7]


def test_conditions_leave_rows_out(write: Write) -> None:
    only = MAPPING.model_copy(update={"only": ({"state": "1"},), "leave_out": ({"id": ("2", "9")},)})
    found = harmonised(write("t.csv", TEXT), only)
    assert (found.dropped.rows_read, found.dropped.left_out) == (6, 4)


def test_what_cannot_be_harmonised(write: Write) -> None:
    path = write("t.csv", TEXT)
    with pytest.raises(StudyError, match=r"lacks 1 column.*agee \(for the attribute age\)"):
        harmonised(path, MAPPING.model_copy(update={"attributes": {"age": Attribute(column="agee")}}))
    none = MAPPING.model_copy(update={"attributes": {"age": Attribute(column="age", range=(90, 99))}})
    with pytest.raises(DataError, match="the ranges drop all 6 rows") as error:
        harmonised(path, none)
    assert "age outside 90..99" in error.value.remedy
    with pytest.raises(DataError, match="lacks the vital columns work"):
        harmonised(path, MAPPING.model_copy(update={"vital": {"g": ({"work": "1"},)}}))


def test_rows_come_in_the_order_of_the_file(write: Write) -> None:
    rng = np.random.default_rng(3)
    ages = rng.integers(0, 90, 5000)
    path = write("many.csv", "age,job,town,state\n" + "".join(f"{a},55,A,1\n" for a in ages))
    found = harmonised(path, MAPPING.model_copy(update={"attributes": {"age": MAPPING.attributes["age"]}}))
    assert np.array_equal(found.column("age"), ages[found.rows])
    assert np.array_equal(found.rows, np.flatnonzero((ages >= 18) & (ages <= 60)))


def test_an_auxiliary_file_has_the_ranges_and_the_mapping_of_the_file_to_publish() -> None:
    given = GroupsSettings(
        vital={"g": ({"job": "1"},)},
        area=("town",),
        attributes={"age": Attribute(column="age", range=(18, 65)), "sex": Attribute(column="sex")},
        auxiliary=(AuxiliarySettings(path="x.csv", attributes={"age": Attribute(column="alter")}),),
    )
    found = given.mapping(given.auxiliary[0]).attributes
    assert (found["age"].column, found["age"].range) == ("alter", (18, 65))
    assert found["sex"] == given.attributes["sex"]
