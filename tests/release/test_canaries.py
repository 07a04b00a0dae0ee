"""Nothing in the public part of a release tells where it comes from, how it was drawn, or who was suppressed."""

from __future__ import annotations

import getpass
import gzip
import os
import platform
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.release.fronts import front_of, people, publish, small, write_csv

import sfumato as sf
from sfumato.methods.apply import apply_plan
from sfumato.release.publish import Release
from sfumato.study import SearchSettings

LEVELS = {"age": 2, "post code": 2, "sex": 0}
SEED = 918273645
REASON = "the board agreed on Monday"
OUTLIER = ["zzcanaryname", "97", "9Q9", "F", "flu", "31337"]


def canaries(release: Release, source: Path) -> dict[str, str]:
    """What may not be read in any public file, by what it is."""
    manifest = release.manifest
    return {
        "the path of the source": str(source),
        "the name of the source": source.stem,
        "the folder": str(release.folder.parent),
        "the user": f"/{getpass.getuser()}/" if getpass.getuser() == "root" else getpass.getuser(),
        "the machine": platform.node(),
        "the digest of the source": manifest["source"]["sha256"],
        "the start of that digest": manifest["source"]["sha256"][:16],
        "the seed": str(SEED),
        "the reason": REASON,
        "the time": manifest["created"],
        "the process": f"pid {os.getpid()}",
        "a name": OUTLIER[0],
        "a suppressed postcode": OUTLIER[2],
        "a suppressed income": OUTLIER[5],
        "the checksum": manifest["checksum"],
    }


def texts(folder: Path) -> dict[str, str]:
    """Every file of a folder as text, compressed ones opened, with all names in front."""
    found = {"names": "\n".join(path.relative_to(folder).as_posix() for path in folder.rglob("*"))}
    for path in folder.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
            assert not zipfile.is_zipfile(path) or path.suffix == ".xlsx"
            if path.suffix == ".xlsx":
                with zipfile.ZipFile(path) as packed:
                    raw = b"\n".join([*map(packed.read, packed.namelist()), "\n".join(packed.namelist()).encode()])
            found[path.name] = raw.decode("utf-8", "replace")
            if path.suffix == ".gz":
                found[f"{path.name} (packed)"] = path.read_bytes().decode("latin-1")
    return found


def assert_hidden(hidden: Mapping[str, str], name: str, text: str) -> None:
    """None of the canaries stands in a file. Short ones, such as the name of a machine, are looked for in texts."""
    for what, canary in hidden.items():
        if len(canary) > 4 or name.endswith((".csv", ".html", ".json", ".xml")):
            assert canary not in text, (name, what)


def study_with_an_outlier(folder: Path, suffix: str = ".csv") -> sf.Study:
    study = small(folder, rows=400)
    rows = [*people(400), OUTLIER]
    source = folder / f"secretproject{suffix}"
    write_csv(folder / "secretproject.csv", rows)
    if suffix == ".csv.gz":
        source.write_bytes(gzip.compress((folder / "secretproject.csv").read_bytes()))
    if suffix == ".parquet":
        import pyarrow.csv
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.csv.read_csv(folder / "secretproject.csv"), source)
    if suffix in (".sav", ".dta", ".xlsx"):
        write_labelled(folder / "secretproject.csv", source)
    return study.replace(data={"path": str(source)}).with_search(seed=SEED)


def write_labelled(table: Path, target: Path) -> None:
    """The table as a labelled file, with labels of values that only the outlier has, a title and a note."""
    import pandas
    import pyreadstat

    frame = pandas.read_csv(table).rename(columns={"post code": "post_code"})
    labels = {"income": {31337: "zzcanarylabel", 1000: "a thousand"}, "age": {97: "zzcanarylabel"}}
    if target.suffix == ".xlsx":
        frame.rename(columns={"post_code": "post code"}).to_excel(target, index=False, engine="xlsxwriter")
    elif target.suffix == ".sav":
        pyreadstat.write_sav(
            frame, target, file_label="zzcanarytitle", note="zzcanarynote", variable_value_labels=labels
        )
    else:
        pyreadstat.write_dta(frame, target, file_label="zzcanarytitle", variable_value_labels=labels)


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xlsx"])
def test_a_labelled_release(tmp_path: Path, suffix: str) -> None:
    study = study_with_an_outlier(tmp_path, suffix)
    if suffix != ".xlsx":
        study = study.replace(data={"names": ("name", "age", "post code", "sex", "ill", "income")})
    front = front_of(study, [LEVELS], 30)
    release = publish(front, 0, tmp_path / "out", reason=REASON, state=tmp_path / "state")
    assert {path.suffix for path in release.public.iterdir()} == {suffix, ".json", ".html", ".xml"}
    hidden = canaries(release, tmp_path / f"secretproject{suffix}") | {
        "a label that only a suppressed value has": "zzcanarylabel",
        "the title of the source": "zzcanarytitle",
        "a note in the source": "zzcanarynote",
    }
    for name, text in texts(release.public).items():
        assert_hidden(hidden, name, text)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_release(tmp_path: Path, suffix: str) -> None:
    study = study_with_an_outlier(tmp_path, suffix)
    front = front_of(study, [LEVELS], 30)
    assert front.points[0].suppressed > 0
    release = publish(front, 0, tmp_path / "out", reason=REASON, state=tmp_path / "state")
    hidden = canaries(release, tmp_path / f"secretproject{suffix}")
    for name, text in texts(release.public).items():
        assert_hidden(hidden, name, text)
    assert {path.name for path in release.folder.iterdir()} == {"public", "private"}
    private = "".join(path.read_text("utf-8") for path in (release.folder / "private").glob("*.*"))
    assert release.manifest["source"]["sha256"] in private  # the search can find what is there


def test_a_plan_applied_to_another_table(tmp_path: Path) -> None:
    study = study_with_an_outlier(tmp_path)
    first = publish(front_of(study, [LEVELS], 30), 0, tmp_path / "out", reason=REASON, state=tmp_path / "state")
    rows = [*people(300, seed=11), OUTLIER]
    write_csv(tmp_path / "nextsecret.csv", rows)
    release = apply_plan(
        first.folder, tmp_path / "nextsecret.csv", tmp_path / "next", reason=REASON, unseen="star", state=tmp_path / "s"
    )
    for name, text in texts(release.public).items():
        assert_hidden(canaries(release, tmp_path / "nextsecret.csv"), name, text)


def test_cuts(tmp_path: Path) -> None:
    study = study_with_an_outlier(tmp_path)
    study = study.replace(
        search=SearchSettings(system="cuts", max_suppression=0.05, generations=3, population=8, seed=SEED)
    )
    front = sf.search(study)
    point = next(p for p in front.points if p.suppressed and p.values["k"] >= 4)
    policy = {"k": "made up for a test", "l": "made up for a test", "t": "made up for a test"}
    policy |= {"uniques": "made up for a test", "identifying:income": "made up for a test"}
    release = publish(front, point.id, tmp_path / "out", reason=REASON, accept=policy, state=tmp_path / "state")
    for name, text in texts(release.public).items():
        assert_hidden(canaries(release, tmp_path / "secretproject.csv"), name, text)
        assert re.search(r"(?<!\d)97(?!\d)", re.sub("[0-9a-f]{64}", "", text)) is None or name == "data.csv", name
