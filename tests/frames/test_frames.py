"""A table in memory is audited and searched like the same table in a file."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from tests.frames.kinds import MAKERS, ROLES, SIX, adult

import sfumato as sf
from sfumato.data.frame import Frame

KINDS = pytest.mark.parametrize("kind", list(MAKERS))


@KINDS
def test_six_people_by_hand(kind: str) -> None:
    """Classes of (age, zip): 2, 1, 2, 1 records, so k is 1; by age and two digits of the zip code 2, 1, 3."""
    study = sf.Study(MAKERS[kind](SIX), **ROLES)
    audit = sf.audit(study)
    assert audit.rows == 6
    assert audit.figures["k"].value == 1
    assert audit.figures["uniques"].value == pytest.approx(2 / 6)
    study = study.with_hierarchies(age=sf.intervals(20), zip=sf.prefixes(2))
    front = sf.search(study, objectives=["k", "general_loss"])
    assert [point.values["k"] for point in front.points][-1] == 6


def test_every_column_has_a_role() -> None:
    frame = polars.DataFrame(SIX)
    with pytest.raises(sf.StudyError, match="1 column has no role: name"):
        sf.Study(frame, quasi_identifiers=["age", "zip"], sensitive="disease")
    with pytest.raises(sf.StudyError, match="named more than once: age"):
        sf.Study(frame, quasi_identifiers=["age", "zip"], sensitive=["disease", "age"], drop=["name"])
    with pytest.raises(sf.StudyError, match="1 column that the table lacks: agee"):
        sf.Study(frame, quasi_identifiers=["agee", "zip"], sensitive="disease", drop=["name", "age"])


def fronts_of(sources: dict[str, Any], roles: dict[str, Any], trees: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {name: sf.search(sf.Study(s, **roles).with_hierarchies(trees), **settings) for name, s in sources.items()}


def same_fronts(fronts: dict[str, sf.Front]) -> None:
    first = next(iter(fronts.values()))
    assert first.points
    for front in fronts.values():
        assert front.points == first.points  # values, losses, suppressed records and plans
        assert front.certificate == first.certificate
        assert (front.rows, front.evaluations, front.space) == (first.rows, first.evaluations, first.space)


@pytest.mark.long
def test_front_of_a_frame_is_that_of_the_file(tmp_path: Path) -> None:
    """Done when, 2: points, plans and figures from frames, CSV and Parquet are identical."""
    run, frame = adult(tmp_path)
    frame = frame.head(1500).assign(age=lambda d: d["age"].astype(int))
    columns = sf.read(run).columns
    trees = {name: run.parent / c.hierarchy.path for name, c in columns.items() if c.hierarchy}
    frame.to_csv(tmp_path / "adult.csv", index=False)
    frame.to_parquet(tmp_path / "adult.parquet", index=False)
    roles = {
        "quasi_identifiers": [n for n, c in columns.items() if c.role == "quasi_identifier"],
        "sensitive": ["occupation"],
        "drop": [n for n, c in columns.items() if c.role == "drop"],
        "na": ["?"],
    }
    sources = {
        "csv": tmp_path / "adult.csv",
        "parquet": tmp_path / "adult.parquet",
        "pandas": frame,
        "categories": frame.astype({"sex": "category", "race": "category"}),
        "polars": polars.from_pandas(frame),
        "pyarrow": pyarrow.Table.from_pandas(frame, preserve_index=False),
        "relation": duckdb.from_arrow(pyarrow.Table.from_pandas(frame, preserve_index=False)),
    }
    same_fronts(fronts_of(sources, roles, trees, max_suppression=0.01))
    audits = [sf.audit(sf.Study(source, **roles).with_hierarchies(trees)).as_dict() for source in sources.values()]
    for audit in audits:
        assert audit | {"fingerprint": ""} == audits[0] | {"fingerprint": ""}
    two = fronts_of(
        {name: sources[name] for name in ("csv", "polars")}, roles, trees, system="cuts", generations=2, population=8
    )
    same_fronts(two)


def test_digest_is_of_the_content() -> None:
    """Chunks, encodings and the kind of frame make no difference; a value, a name, a type or an order does."""
    columns = {
        "a": ["x", None, "zz", ""],
        "n": [1, 2, None, 4],
        "d": [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)],
    }
    table = pyarrow.table(columns)
    digest = Frame(table).digest()
    same = {
        "two chunks": pyarrow.concat_tables([table.slice(0, 1), table.slice(1)]),
        "sliced": pyarrow.concat_tables([table, table]).slice(4),
        "dictionary": table.set_column(0, "a", table["a"].dictionary_encode()),
        "large": table.set_column(0, "a", table["a"].cast(pyarrow.large_string())),
        "views": table.set_column(0, "a", table["a"].cast(pyarrow.string_view())),
        "polars": polars.DataFrame(columns),
        "polars categories": polars.DataFrame(columns).with_columns(polars.col("a").cast(polars.Categorical)),
        "reader": pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "relation": duckdb.from_arrow(table),
    }
    assert {name: Frame(one).digest() for name, one in same.items()} == dict.fromkeys(same, digest)
    other = {
        "value": {**columns, "a": ["x", None, "zy", ""]},
        "shifted text": {**columns, "a": ["xz", None, "z", ""]},
        "missing is not empty": {**columns, "a": ["x", "", "zz", ""]},
        "name": {"b": columns["a"], "n": columns["n"], "d": columns["d"]},
        "order": {name: cells[::-1] for name, cells in columns.items()},
        "type": {**columns, "n": [1.0, 2.0, None, 4.0]},
    }
    digests = {Frame(pyarrow.table(one)).digest() for one in other.values()}
    assert len(digests | {digest}) == len(other) + 1


def test_index_is_no_column_and_objects_are_refused_without_a_value() -> None:
    frame = pandas.DataFrame(SIX).set_index(pandas.Index(list("uvwxyz"), name="id"))
    assert Frame(frame).table().column_names == list(SIX)
    mixed = pandas.DataFrame({"age": [1, 2], "ill": ["CANARY", 7]})
    with pytest.raises(sf.DataError, match="ill cannot be read") as caught:
        sf.Study(mixed, quasi_identifiers=["age"], sensitive=["ill"])
    assert "CANARY" not in str(caught.value)
    for wrong in (polars.DataFrame(SIX).lazy(), [1, 2], 7):
        with pytest.raises(sf.DataError, match="is not a table that can be read"):
            sf.Study(wrong, quasi_identifiers=["age"])
    with pytest.raises(sf.DataError, match="nested columns: a"):
        sf.Study(polars.DataFrame({"a": [[1], [2]]}), quasi_identifiers=["a"])
    with pytest.raises(sf.DataError, match="no rows"):
        sf.Study(polars.DataFrame({"a": []}), quasi_identifiers=["a"])


def test_changes_are_seen() -> None:
    frame = pandas.DataFrame(SIX)
    study = sf.Study(frame, **ROLES).with_hierarchies(age=sf.intervals(20), zip=sf.prefixes(2))
    front = sf.search(study)
    frame.loc[0, "age"] = 99
    with pytest.raises(sf.InputError, match="the table in memory has changed since the search"):
        sf.publish(sf.pick(front, point=0), "never")
    assert not Path("never").exists()


def test_hierarchies_of_any_form(tmp_path: Path) -> None:
    (tmp_path / "zip.csv").write_text("10115;1;*\n10117;1;*\n20095;2;*\n20097;2;*\n")
    study = sf.Study(pandas.DataFrame(SIX), **ROLES)
    levels = {0: SIX["zip"], 1: [z[0] for z in SIX["zip"]], 2: ["*"] * 6}
    frame = polars.DataFrame({f"level{level}": labels for level, labels in levels.items()})
    given: dict[str, Any] = {
        "file": tmp_path / "zip.csv",
        "levels": levels,
        "frame": frame,
        "tree": sf.Hierarchy.from_paths("zip", sorted(set(zip(*levels.values(), strict=True)))),
    }
    trees = {name: study.with_hierarchies(zip=one).table().domains[1].hierarchy.paths for name, one in given.items()}
    assert all(sorted(tree) == sorted(trees["file"]) for tree in trees.values())
    with pytest.raises(sf.StudyError, match='"zap", which is not a column'):
        study.with_hierarchies(zap=sf.prefixes())


def test_inspect_a_frame() -> None:
    seen = sf.inspect(polars.DataFrame(SIX))
    assert seen.rows == 6
    assert [column.name for column in seen.columns] == list(SIX)


def test_import_brings_no_frame_library_along() -> None:
    code = (
        "import sys, sfumato; sfumato.Study; "
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'sklearn', 'IPython', 'numpy') if m in sys.modules])"
    )
    bare = code.replace("sfumato.Study; ", "")
    printed = [
        subprocess.run([sys.executable, "-c", c], capture_output=True, text=True, check=True).stdout
        for c in (bare, code)
    ]
    assert printed[0].strip() == "[]"
    assert not {"pandas", "polars", "sklearn"} & set(eval(printed[1]))
