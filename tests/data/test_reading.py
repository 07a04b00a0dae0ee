"""Reading tables: dialects, encodings, missing rules, round trips, frequency tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import sfumato as sf
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, EngineOptions
from sfumato.errors import DataError, SfumatoError, StudyError

Write = Callable[[str, str], Path]
QUASI = {"role": "quasi_identifier"}


def table_of(path: Path, columns: dict[str, object], **data: object) -> sf.FrequencyTable:
    return sf.Study(data={"path": str(path), **data}, columns=columns).table()


def labels(table: sf.FrequencyTable) -> list[tuple[str, ...]]:
    """The rows of a table as labels, in order."""
    rows = []
    for codes, count in zip(table.codes.T, table.counts, strict=True):
        rows += [tuple(d.labels[code] for d, code in zip(table.domains, codes, strict=True))] * int(count)
    return rows


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_separator_is_detected(write: Write, separator: str) -> None:
    path = write(
        "t.csv", "\n".join(separator.join(row) for row in [("a", "b"), ("1", "x"), ("2", '"y y"'), ("1", "x")])
    )
    assert labels(table_of(path, {"a": QUASI, "b": QUASI})) == [("1", "x"), ("1", "x"), ("2", "y y")]


def test_quotes_line_breaks_and_a_given_quote(write: Write) -> None:
    path = write("t.csv", 'a,b\n"x, ""y""",1\n"two\nlines",2\n')
    assert labels(table_of(path, {"a": QUASI, "b": QUASI})) == [("two\nlines", "2"), ('x, "y"', "1")]
    path = write("u.csv", "a,b\n'x,y',1\nz,2\n")
    assert labels(table_of(path, {"a": QUASI, "b": QUASI}, quote="'")) == [("x,y", "1"), ("z", "2")]


def test_decimal_comma_is_detected(write: Write) -> None:
    path = write("t.csv", "w;g\n1,5;a\n2,5;a\n3,25;b\n")
    table = table_of(path, {"w": {"role": "weight"}, "g": QUASI})
    assert table.weights is not None
    assert table.weights.tolist() == [4.0, 3.25]


@pytest.mark.parametrize("least", ["-1", "-0.5"])
def test_a_weight_below_zero_is_refused(write: Write, least: str) -> None:
    """Even where the weights of the rows that look alike add up to more than 0."""
    columns: dict[str, object] = {"w": {"role": "weight"}, "g": QUASI}
    with pytest.raises(DataError, match="the weight column w cannot be used: there are negative values"):
        table_of(write("t.csv", f"w,g\n2,a\n{least},a\n3,b\n"), columns)
    kept = table_of(write("u.csv", "w,g\n2,a\n0,a\n3,b\n"), columns)
    assert kept.weights is not None
    assert kept.weights.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("encoding", "text"), [("latin-1", "Zoë"), ("cp1252", "5 €"), ("utf-16", "Łódź"), ("utf-8", "Łódź")]
)
def test_encodings(tmp_path: Path, encoding: str, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"a,b\n{text},1\nx,2\n".encode(encoding))
    assert (text, "1") in labels(table_of(path, {"a": QUASI, "b": QUASI}, encoding=encoding))
    assert (text, "1") in labels(table_of(path, {"a": QUASI, "b": QUASI}, encoding="auto"))


@pytest.mark.parametrize("encoding", ["utf-8", "auto"])
@pytest.mark.parametrize(("letter", "inside"), [("é", 1), ("😀", 3)])
def test_a_letter_across_the_end_of_the_sample_is_read_whole(
    tmp_path: Path, letter: str, inside: int, encoding: str
) -> None:
    """The sample is the first 1,048,576 bytes: the first bytes of the letter are its last."""
    path = tmp_path / "t.csv"
    start = b"a,b\n" + b"x,1\n" * 262_142 + b"wxyz"[inside:]
    assert len(start) == (1 << 20) - inside
    path.write_bytes(start + f"{letter},2\n".encode())
    table = table_of(path, {"a": QUASI, "b": QUASI}, encoding=encoding)
    assert [domain.labels for domain in table.domains] == [("x", "wxyz"[inside:] + letter), ("1", "2")]


def test_a_mark_at_the_start_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\n1,2\n3,4\n".encode("utf-8-sig"))
    assert open_source(DataSettings(path=str(path))).names == ("a", "b")
    assert len(labels(table_of(path, {"a": QUASI, "b": QUASI}))) == 2


def test_other_encodings_are_never_assumed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\nZoë,1\nx,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8: line 2") as caught:
        table_of(path, {"a": QUASI, "b": QUASI})
    assert "latin-1" in caught.value.remedy


@pytest.mark.long
def test_bad_bytes_beyond_the_sample_are_found(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"x,1\n" * 400_000 + "Zoë,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8: line 400002"):
        table_of(path, {"a": QUASI, "b": QUASI})


def test_headerless_files_take_names(write: Write) -> None:
    path = write("t.csv", "1,x\n2,y\n")
    assert len(labels(table_of(path, {"n": QUASI, "l": QUASI}, header=False, names=["n", "l"]))) == 2
    with pytest.raises(DataError, match="1 name for 2 columns"):
        table_of(path, {"n": QUASI}, header=False, names=["n"])


def test_blanks_are_trimmed_unless_declared(write: Write) -> None:
    path = write("t.csv", "a,b\n x ,1\nx,2\n")
    columns: dict[str, object] = {"a": QUASI, "b": {"role": "drop"}}
    assert labels(table_of(path, columns)) == [("x",), ("x",)]
    assert labels(table_of(path, columns, trim=False)) == [(" x ",), ("x",)]


def test_missing_rules(write: Write) -> None:
    path = write("t.csv", "a,s\n?,flu\nx,flu\nx,ulcer\ny,\n")
    columns: dict[str, object] = {"a": QUASI, "s": {"role": "sensitive"}}
    dropped = table_of(path, columns, na=["?"], missing="drop")
    assert (dropped.rows, dropped.rows_read, dropped.left_out) == (2, 4, 2)
    kept = table_of(path, columns, na=["?"], missing="category")
    assert kept.rows == 4
    assert sorted(labels(kept)) == [("",), ("x",), ("x",), ("y",)]
    wild = table_of(path, columns, na=["?"], missing="wildcard")
    assert sorted(sf.classify(wild).size.tolist()) == [2, 3, 4]  # y and ?; x, x and ?; ? and all
    assert table_of(path, columns, na=["?"]).rows == 4  # a category of its own, unless another rule is given
    both: dict[str, object] = {"a": QUASI | {"missing": "category"}, "s": {"role": "sensitive"}}
    mixed = table_of(path, both, na=["?"], missing="drop")
    assert mixed.rows == 3


def test_missing_in_a_column_that_is_not_measured_drops_nothing(write: Write) -> None:
    path = write("t.csv", "a,b\nx,\nx,1\n")
    assert table_of(path, {"a": QUASI, "b": {"role": "other"}}).rows == 2


def test_parquet_keeps_types_and_reads_whole_floats(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows = "(39.0::DOUBLE, DATE '2020-01-02', true, 7), (40.5, NULL, false, 8)"
    query = f'SELECT * FROM (VALUES {rows}) AS t("Age", d, "a""b", n)'
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    source = open_source(DataSettings(path=str(path)))
    assert source.names == ("Age", "d", 'a"b', "n")
    assert [column.type for column in source.columns] == ["DOUBLE", "DATE", "BOOLEAN", "INTEGER"]
    table = table_of(path, {"Age": QUASI, "d": QUASI, 'a"b': QUASI, "n": QUASI}, missing="category")
    assert labels(table) == [("39", "2020-01-02", "true", "7"), ("40.5", "", "false", "8")]


def test_a_glob_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    for i in range(3):
        duckdb.sql(f"COPY (SELECT {i} AS a, 'x' AS b) TO '{tmp_path}/part{i}.parquet' (FORMAT parquet)")
    table = table_of(tmp_path / "*.parquet", {"a": QUASI, "b": QUASI})
    assert table.rows == 3
    assert len(table.fingerprint) == 64


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_round_trip_keeps_order_types_and_labels(tmp_path: Path, write: Write, suffix: str) -> None:
    names = ["z", "a b", 'q"t', "select", "😀"]
    first = write("t.csv", 'z;a b;"q""t";select;😀\n01;x;;"y; y";é\n02; w;2,5;n;ü\n')
    if suffix == "parquet":
        duckdb.sql(f"COPY (SELECT * FROM read_csv('{first}', delim=';')) TO '{tmp_path}/t.parquet' (FORMAT parquet)")
    source = open_source(DataSettings(path=str(tmp_path / f"t.{suffix}")))
    with open_engine() as engine:
        engine.attach(source, "raw")
        engine.write("SELECT * FROM raw", tmp_path / f"again.{suffix}", source, source.names)
    again = open_source(DataSettings(path=str(tmp_path / f"again.{suffix}")))
    assert list(again.names) == names
    assert [c.type for c in again.columns] == [c.type for c in source.columns]
    with open_engine() as engine:
        engine.attach(source, "one")
        engine.attach(again, "two")
        assert engine.rows("SELECT * FROM one") == engine.rows("SELECT * FROM two")
    assert not list(tmp_path.glob("*.part"))


def test_names_that_sql_would_trip_over(write: Write) -> None:
    names = ['a "quoted" one', "two words", "😀", "select", "Select", "semi;colon", "it's", "c0"]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    path = write("t.csv", f"{header}\n{','.join('12345678')}\n{','.join('abcdefgh')}\n")
    table = table_of(path, dict.fromkeys(names, QUASI))
    assert table.columns == tuple(names)
    assert labels(table) == [tuple("12345678"), tuple("abcdefgh")]


def test_three_hundred_columns(write: Write) -> None:
    names = [f"c{i}" for i in range(300)]
    path = write("t.csv", ",".join(names) + "\n" + "\n".join(",".join([str(r)] * 300) for r in range(3)))
    with pytest.raises(StudyError, match=r"299 columns have no role: c1, c2, .*, c12 and 287 more"):
        table_of(path, {"c0": QUASI})
    table = table_of(path, {name: QUASI if i < 40 else {"role": "drop"} for i, name in enumerate(names)})
    assert table.tuples == 3


def test_the_table_does_not_depend_on_threads(shared: Path) -> None:
    path = shared / "data/sdcmicro/testdata.csv"
    roles = dict.fromkeys(("urbrur", "roof", "sex", "age"), "quasi_identifier") | {
        "sampling_weight": "weight",
        "water": "sensitive",
    }
    tables = []
    for threads in (1, 4):
        names = open_source(DataSettings(path=str(path))).names
        columns = {name: {"role": roles.get(name, "drop")} for name in names}
        study = sf.Study(data={"path": str(path)}, columns=columns, engine_options=EngineOptions(threads=threads))
        tables.append(study.table())
    one, four = tables
    assert one.codes.tobytes() == four.codes.tobytes()
    assert one.counts.tobytes() == four.counts.tobytes()
    assert one.weights is not None
    assert four.weights is not None
    assert one.weights.tobytes() == four.weights.tobytes()


def test_population_and_journalist_risk(write: Write) -> None:
    path = write("t.csv", "a,b\nx,1\nx,2\ny,1\n")
    write("people.csv", "a,b,more\n" + "x,1,0\n" * 5 + "x,2,0\n" * 4 + "y,1,0\n" * 3 + "z,9,0\n")
    study = sf.Study(
        data={"path": str(path)},
        columns={"a": QUASI, "b": QUASI},
        population={"path": str(path.parent / "people.csv")},
    )
    audit = sf.audit(study)
    assert audit.figures["journalist_risk"].value == pytest.approx(1 / 3)
    assert audit.figures["marketer_risk"].value == pytest.approx((1 / 5 + 1 / 4 + 1 / 3) / 3)


def test_weights_that_are_no_numbers(write: Write) -> None:
    path = write("t.csv", "a,w\nx,1\ny,many\nz,\n")
    with pytest.raises(DataError, match="2 rows have no number"):
        table_of(path, {"a": QUASI, "w": {"role": "weight"}})


def test_engine_options_are_checked(write: Write, tmp_path: Path) -> None:
    path = write("t.csv", "a\n1\n2\n")
    with pytest.raises(SfumatoError, match="engine refuses"):
        sf.Study(data={"path": str(path)}, columns={"a": QUASI}, engine_options={"memory_limit": "lots"}).table()
    with pytest.raises(StudyError, match="no folder"):
        sf.Study(
            data={"path": str(path)}, columns={"a": QUASI}, engine_options={"temp_folder": str(tmp_path / "no")}
        ).table()
    with pytest.raises(StudyError, match="unknown engine"):
        sf.Study(data={"path": str(path)}, columns={"a": QUASI}, engine="duck").table()


def test_nothing_is_left_in_the_temp_folder(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a\n5 €\nx\n".encode("cp1252"))
    (tmp_path / "temp").mkdir()
    options = {"temp_folder": str(tmp_path / "temp")}
    sf.Study(data={"path": str(path), "encoding": "cp1252"}, columns={"a": QUASI}, engine_options=options).table()
    assert not list((tmp_path / "temp").iterdir())


def test_the_engine_reaches_for_no_network_and_draws_no_bar() -> None:
    settings = ("autoinstall_known_extensions", "autoload_known_extensions", "enable_progress_bar_print")
    with open_engine() as engine:
        assert engine.rows("SELECT " + ", ".join(f"current_setting('{name}')" for name in settings)) == [(False,) * 3]


def test_files_of_a_glob_must_have_the_same_columns(write: Write, tmp_path: Path) -> None:
    write("p1.csv", "a,b\n1,x\n2,x\n")
    write("p2.csv", "b,a\nx,1\nx,2\n")
    with pytest.raises(DataError, match=r"p2.csv has different columns from p1.csv"):
        table_of(tmp_path / "p*.csv", {"a": QUASI, "b": QUASI})


def test_recipes_are_built_from_the_original_table(write: Write) -> None:
    raw = write("raw.csv", "age\n" + "\n".join(str(20 + i) for i in range(20)) + "\n")
    released = write("released.csv", "age\n" + "20-29\n" * 10 + "30-39\n" * 10)
    tree = {"build": "interval", "widths": [5, 10]}
    study = sf.Study(data={"path": str(raw)}, columns={"age": QUASI | {"hierarchy": tree}})
    audit = sf.audit(study, released)
    assert audit.figures["general_loss"].value == pytest.approx(20 * 9 / 19)
    gone = sf.Study(data={"path": str(raw) + "x"}, columns={"age": QUASI | {"hierarchy": tree}})
    with pytest.raises(StudyError, match="built from the original table"):
        sf.audit(gone, released)


def test_blank_lines_before_the_header_and_mixed_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\n\na,b\r\n1,x\n1,x\r\n")
    assert labels(table_of(path, {"a": QUASI, "b": QUASI})) == [("1", "x"), ("1", "x")]


def test_parquet_numbers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT unnest([1.5, 'nan'::DOUBLE, 2.0, 2.0]) AS a) TO '{path}' (FORMAT parquet)")
    table = table_of(path, {"a": QUASI}, missing="drop")
    assert labels(table) == [("1.5",), ("2",), ("2",)]


def test_released_records_do_not_hide_among_starred_ones(write: Write) -> None:
    path = write("t.csv", "a,b\n*,*\n*,*\n,*\n1,x\n1,x\n")
    classes = sf.classify(table_of(path, {"a": QUASI, "b": QUASI}, missing="wildcard"))
    assert classes.suppressed_rows == 2
    assert sorted(classes.size[classes.kept].tolist()) == [1, 2]


def test_a_header_decides_between_separators(write: Write) -> None:
    path = write("t.csv", "a;b;c\n" + "1,5;2,5;3,5\n" * 5)
    assert open_source(DataSettings(path=str(path))).names == ("a", "b", "c")


def test_top_coded_labels_are_values(write: Write) -> None:
    path = write("t.csv", "size\n1\n2\n5+\n5+\n")
    assert len(table_of(path, {"size": QUASI | {"hierarchy": {"build": "flat"}}}).domains[0].labels) == 3
