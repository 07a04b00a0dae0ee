"""Local recodings as files: counted with plain pandas, read back, applied, compared in the ledger, and spoiled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.release.fronts import ANYTHING, small, write_csv
from tests.release.pairs import Pair

import sfumato as sf
from sfumato.data.engine import open_engine
from sfumato.errors import InputError, StudyError, UnreachableError
from sfumato.front import Front
from sfumato.plans.boxes import BoxPlan
from sfumato.release import manifest as pack
from sfumato.release.classes_rows import FILE, Assigned, Division, bounded
from sfumato.release.history.compare import join_releases
from sfumato.release.history.description import Description, describe_classes
from sfumato.release.publish import Release

ACCEPT = {"identifying:id": "a number made for a test", "uniques": "a small table made for a test"}
ACCEPT |= {f"dependence:{name}": "a small table made for a test" for name in ("id", "ill")}
KEYS = ["age", "job", "sex"]
JOBS = ["clerk", "cook", "driver", "nurse", "smith"]


def table_of(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """People with an age, a job and a sex; many share all three, so that tuples are divided."""
    columns = {
        "id": np.arange(rows),
        "age": rng.integers(20, 28, rows),
        "job": rng.choice(JOBS[: int(rng.integers(2, 6))], rows),
        "sex": rng.choice(["F", "M"], rows),
        "ill": rng.choice(["flu", "cold", "gout"], rows),
    }
    return pd.DataFrame(columns)


def study_of(frame: pd.DataFrame, path: Path, **settings: Any) -> sf.Study:
    frame.to_csv(path, index=False)
    tree = [[job, "office" if job in ("clerk", "nurse") else "yard", "*"] for job in JOBS if job in set(frame["job"])]
    columns = {
        "id": {"role": "other"},
        "age": {"role": "quasi_identifier"},
        "job": {"role": "quasi_identifier", "hierarchy": {"paths": tree}},
        "sex": {"role": "quasi_identifier"},
        "ill": {"role": "sensitive"},
    }
    search = {"system": "local"} | settings.pop("search", {})
    return sf.Study(data={"path": str(path)}, columns=columns, search=search, policy=ANYTHING, **settings)


def covers(label: str, value: str) -> bool:
    """Whether a label is true of a value, by reading it."""
    if label in ("*", value):
        return True
    if label.startswith("["):
        low, high = label.strip("[]").split(" .. ")
        return int(low) <= int(value) <= int(high)
    if label.startswith("{"):
        return value in label.strip("{}").split(" | ")
    return {"office": value in ("clerk", "nurse"), "yard": value not in ("clerk", "nurse")}.get(label, False)


def checked(frame: pd.DataFrame, release: Release, k: int) -> pd.DataFrame:
    """The released file, after plain code has counted its classes and compared every record with the source."""
    out = (
        pd.read_csv(release.data, dtype=str, keep_default_na=False)
        .set_index("id")
        .sort_index(key=lambda i: i.astype(int))
    )
    assert out.groupby(KEYS).size().min() >= k
    source = frame.astype(str).set_index("id").loc[out.index]
    for name in KEYS:
        assert all(map(covers, out[name], source[name]))
    assert (out["ill"] == source["ill"]).all()
    return out


def lost(frame: pd.DataFrame, out: pd.DataFrame) -> float:
    """The loss of a released file, by its definition."""
    total = float(len(frame) - len(out)) * len(KEYS)
    for name in KEYS:
        values = frame[name].astype(str).unique()
        for label, count in out[name].value_counts().items():
            held = len(values) if label == "*" else sum(covers(str(label), value) for value in values)
            total += count * (held - 1) / max(len(values) - 1, 1)
    return total / len(KEYS) / len(frame)


def published(study: sf.Study, front: Front, point: int, folder: Path) -> Release:
    return sf.publish(sf.pick(front, point=point), folder, accept=ACCEPT, state=folder.parent / f"{folder.name}-state")


def random_releases(folder: Path, tables: int, first: int) -> None:
    for number in range(first, first + tables):
        rng = np.random.default_rng(number)
        frame = table_of(rng, int(rng.integers(12, 60)))
        k = int(rng.integers(2, 6))
        search = {"max_suppression": float(rng.choice([0.0, 0.1])), "seed": number}
        study = study_of(frame, folder / f"{number}.csv", search=search, local={"k": [k], "passes": 1, "effort": 1})
        front = sf.search(study)
        release = published(study, front, 0, folder / f"release{number}")
        out = checked(frame, release, k)
        assert release.manifest["figures"]["k"]["value"] == out.groupby(KEYS).size().min()
        assert release.manifest["loss"] == pytest.approx(lost(frame, out))
        assert len(frame) - len(out) <= search["max_suppression"] * len(frame)


def test_every_class_of_random_tables_has_k_records(tmp_path: Path) -> None:
    random_releases(tmp_path, 2, 1)


@pytest.mark.published
@pytest.mark.parametrize("first", range(100, 300, 25))
def test_every_class_of_200_random_tables_has_k_records(tmp_path: Path, first: int) -> None:
    """In eight lots: a table is searched, published and read again in less than a CPU second."""
    random_releases(tmp_path, 25, first)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, sf.Study, Front, Path]:
    folder = tmp_path_factory.mktemp("boxes")
    frame = table_of(np.random.default_rng(5), 160)
    study = study_of(frame, folder / "people.csv", local={"k": [3, 6], "passes": 1, "effort": 1})
    front = sf.search(study)
    for point in (0, 1):
        published(study, front, point, folder / f"release{point}")
    return frame, study, front, folder


def test_two_releases_are_compared_as_plain_pandas_does(made: tuple[pd.DataFrame, sf.Study, Front, Path]) -> None:
    """Tuples are divided differently, so people hide among fewer in the two files together."""
    frame, study, _, folder = made
    shown, descriptions = [], []
    for point in (0, 1):
        plan = Assigned.load(folder / f"release{point}")
        names = ["id", *KEYS, "ill"]
        source = study.source()
        division = Division.of(plan, names)
        described = describe_classes("local", study, source, names, plan, division)
        again = Description.from_dict(json.loads(json.dumps(described.as_dict())))
        assert again.digest == described.digest
        descriptions.append(again)
        shown.append(pd.read_csv(folder / f"release{point}" / "public" / "data.csv", dtype=str, keep_default_na=False))
    assert len(Assigned.load(folder / "release0").split) > 0
    first, second = (out.set_index(out["id"].astype(int)).sort_index()[[*KEYS, "ill"]] for out in shown)
    people = frame.set_index("id")
    pair = Pair(people, first, second, pd.Series(True, people.index), pd.Series(True, people.index))
    with open_engine() as engine:
        engine.attach(study.source(), "raw")
        joint = join_releases(engine, study.source(), *descriptions, k=3, l=1)
    assert joint.small == int(pair.small(KEYS, 3).sum()) > 0
    assert joint.smallest == pair.joint_sizes(KEYS)["joint"].min()
    for name in KEYS:
        values = frame[name].astype(str).unique()
        exact = 0
        for a, b in zip(first[name], second[name], strict=True):
            held = [{v for v in values if covers(label, v)} for label in (a, b)]
            exact += len(held[0] & held[1]) == 1 and min(map(len, held)) > 1
        assert joint.exact.get(name, 0) == exact


def test_a_second_release_of_the_same_people_is_compared_with_the_first(
    made: tuple[pd.DataFrame, sf.Study, Front, Path], tmp_path: Path
) -> None:
    _, study, front, _ = made
    state = tmp_path / "state"
    strict = study.model_copy(update={"policy": study.policy.model_copy(update={"k": 3})})
    front = Front(**{**front.__dict__, "study": strict})
    accept = {"identifying:id": "a number made for a test", "uniques": "a small table made for a test"}
    sf.publish(sf.pick(front, point=0), tmp_path / "one", accept=ACCEPT | accept, state=state)
    with pytest.raises(UnreachableError, match="Someone who links the two files learns"):
        sf.publish(sf.pick(front, point=1), tmp_path / "two", accept=ACCEPT | accept, state=state)


def test_diversity_is_demanded_of_every_class(tmp_path: Path) -> None:
    frame = table_of(np.random.default_rng(8), 120)
    study = study_of(frame, tmp_path / "p.csv", search={"constraints": {"distinct_l": 3}}, local={"k": [2, 4]})
    front = sf.search(study)
    release = published(study, front, 0, tmp_path / "release")
    out = checked(frame, release, 2)
    least = out.groupby(KEYS)["ill"].nunique().min()
    assert release.manifest["figures"]["distinct_l"]["value"] == least >= 3
    assert front.points[0].values["distinct_l"] == least
    assert all(point.loss >= point.details["floor"] for point in front.points)


def test_a_constraint_that_no_class_can_meet(tmp_path: Path) -> None:
    frame = table_of(np.random.default_rng(8), 40)
    study = study_of(frame, tmp_path / "p.csv", search={"constraints": {"distinct_l": 4}}, local={"k": [2]})
    with pytest.raises(UnreachableError, match="meets the constraints"):
        sf.search(study)
    with pytest.raises(StudyError, match="demanded of classes"):
        sf.search(study_of(frame, tmp_path / "p.csv", search={"constraints": {"marketer_risk": 0.1}}))


def test_another_table_gets_the_cheapest_box_that_holds_each_record(tmp_path: Path) -> None:
    """Two boxes by hand, ages 20 to 22 and 21: the record of 21 takes the smaller one if it has k, a 25 none."""
    write_csv(tmp_path / "one.csv", [["age"], *[[a] for a in (20, 20, 22, 22, 21, 21, 30, 30)]])
    study = sf.Study(
        data={"path": str(tmp_path / "one.csv")},
        columns={"age": {"role": "quasi_identifier"}},
        search={"system": "local"},
        local={"k": [2], "passes": 0},
        policy=ANYTHING,
    )
    front = sf.search(study)
    labels = (("20", "22"),), (("21", "21"),), (("30", "30"),)
    plan = BoxPlan(("age",), labels, ((0, 0, 2), (1, 1, 2), (2, 0, 2), (3, 2, 2)))
    point = front.points[0]
    values = {"k": 2.0, "general_loss": 8 / 3}
    forged = type(point)(0, values, 1 / 3, 0, plan, None, {})
    front = Front(**{**front.__dict__, "points": (forged,)})
    sf.publish(sf.pick(front, point=0), tmp_path / "release", state=tmp_path / "state", accept=ACCEPT)
    write_csv(tmp_path / "two.csv", [["age"], *[[a] for a in (20, 21, 21, 22, 22, 25)]])
    applied = sf.apply_plan(
        tmp_path / "release", tmp_path / "two.csv", tmp_path / "next", unseen="star", state=tmp_path / "s2"
    )
    assert sorted(applied.data.read_text().splitlines()[1:]) == ["21", "21", "[20 .. 22]", "[20 .. 22]", "[20 .. 22]"]
    assert applied.manifest["suppressed"] == 1
    write_csv(tmp_path / "three.csv", [["age"], *[[a] for a in (20, 21, 22)]])
    applied = sf.apply_plan(tmp_path / "release", tmp_path / "three.csv", tmp_path / "third", state=tmp_path / "s3")
    assert applied.data.read_text().splitlines()[1:] == ["[20 .. 22]"] * 3  # 21 alone is no class of two
    with pytest.raises(sf.DataError, match="does not know values"):
        sf.apply_plan(tmp_path / "release", tmp_path / "two.csv", tmp_path / "no", state=tmp_path / "s4")


def test_ranges_are_released_with_their_ends(tmp_path: Path) -> None:
    frame = table_of(np.random.default_rng(11), 60)
    study = study_of(frame, tmp_path / "p.csv", local={"k": [4], "passes": 0, "bounds": True})
    release = published(study, sf.search(study), 0, tmp_path / "release")
    out = pd.read_csv(release.data, dtype=str, keep_default_na=False)
    assert list(out.columns) == ["id", *KEYS, "ill", "age_low", "age_high"]
    for label, low, high in zip(out["age"], out["age_low"], out["age_high"], strict=True):
        assert label in (f"[{low} .. {high}]", low if low == high else "", "*" if not low and not high else "")
    assert sf.verify(release.folder, study.data.path)
    assert release.manifest["whole"]["columns_in_no_figure"] == ["id"]
    clash = study.replace(columns={"age_low": study.columns["id"]})
    with pytest.raises(StudyError, match="which bounds would add"):
        bounded(clash, Assigned.load(release.folder))


def test_a_sensitive_column_with_a_hierarchy_of_its_own(tmp_path: Path) -> None:
    """Its file is gone when the release is verified and applied: the release has its own copy."""
    frame = table_of(np.random.default_rng(12), 80)
    write_csv(tmp_path / "ill.csv", [["flu", "mild", "*"], ["cold", "mild", "*"], ["gout", "hard", "*"]])
    tree = {"role": "sensitive", "distance": "hierarchical"}
    tree |= {"hierarchy": {"path": str(tmp_path / "ill.csv"), "header": False, "separator": ","}}
    study = study_of(frame, tmp_path / "p.csv", search={"constraints": {"t_closeness": 0.5}}, local={"k": [4]})
    study = study.with_settings({"columns": {"ill": tree}})
    front = sf.search(study)
    release = published(study, front, 0, tmp_path / "release")
    assert release.manifest["figures"]["t_closeness"]["value"] <= 0.5
    (tmp_path / "ill.csv").unlink()
    assert sf.verify(release.folder, tmp_path / "p.csv")
    applied = sf.apply_plan(release.folder, tmp_path / "p.csv", tmp_path / "next", state=tmp_path / "s", accept=ACCEPT)
    assert applied.manifest["figures"]["k"]["value"] >= 4
    assert applied.manifest["loss"] <= release.manifest["loss"] + 1e-9 or applied.manifest["suppressed"]
    assert sf.verify(applied.folder, tmp_path / "p.csv")


def test_a_plan_that_is_not_true_of_its_table_is_not_released(tmp_path: Path) -> None:
    write_csv(tmp_path / "one.csv", [["age"], *[[a] for a in (20, 20, 22, 22)]])
    study = sf.Study(
        data={"path": str(tmp_path / "one.csv")},
        columns={"age": {"role": "quasi_identifier"}},
        search={"system": "local"},
        local={"k": [2], "passes": 0},
        policy=ANYTHING,
    )
    front = sf.search(study)
    point = front.points[0]
    for labels, members in [
        (((("20", "20"),),), ((0, 0, 2), (1, 0, 2))),  # 22 is not 20
        (((("20", "22"),),), ((0, 0, 2), (1, 0, 1))),  # a record is nowhere
        (((("20", "99"),),), ((0, 0, 2), (1, 0, 2))),  # no such value
    ]:
        forged = type(point)(0, point.values, point.loss, 0, BoxPlan(("age",), labels, members), None, {})
        lying = Front(**{**front.__dict__, "points": (forged,)})
        with pytest.raises(InputError, match="does not fit the table"):
            sf.publish(sf.pick(lying, point=0), tmp_path / "out", state=tmp_path / "state")
        assert not (tmp_path / "out").exists()


def test_changed_classes_are_not_verified(made: tuple[pd.DataFrame, sf.Study, Front, Path], tmp_path: Path) -> None:
    """Resealed after labels were widened in the list of classes: the file no longer agrees with it."""
    _, study, _, folder = made
    shutil.copytree(folder / "release0", tmp_path / "release")
    saved = json.loads((tmp_path / "release" / FILE).read_text("utf-8"))
    entries = saved["entries"]
    entries[2][0] -= 1  # one record fewer
    (tmp_path / "release" / FILE).chmod(0o600)
    (tmp_path / "release" / FILE).write_text(json.dumps(saved), "utf-8")
    manifest = pack.read_manifest(tmp_path / "release")
    (tmp_path / "release" / pack.MANIFEST).unlink()
    pack.write_manifest(tmp_path / "release", {n: v for n, v in manifest.items() if n != "checksum"})  # type: ignore[arg-type]
    assert not sf.verify(tmp_path / "release")
    assert sf.verify(folder / "release0", study.data.path)


def test_a_search_that_was_stopped_goes_on_to_the_same_front(tmp_path: Path) -> None:
    study = (
        small(tmp_path, rows=120).with_search(system="local").with_settings({"local": {"k": [2, 4, 8], "passes": 0}})
    )
    whole = sf.search(study)
    asked: list[int] = []

    def stop(done: int, _: int) -> bool:
        asked.append(done)
        return done == 1

    sf.search(study, stop, checkpoint=tmp_path / "state.npz")
    assert (tmp_path / "state.npz").exists()
    resumed = sf.search(study, checkpoint=tmp_path / "state.npz", resume=True)
    assert [point.saved() for point in resumed.points] == [point.saved() for point in whole.points]
    assert not (tmp_path / "state.npz").exists()


def test_missing_values_that_match_anything_are_refused(tmp_path: Path) -> None:
    study = small(tmp_path, missing="wildcard", rows=60).with_search(system="local")
    with pytest.raises(StudyError, match="match anything"):
        sf.search(study)
