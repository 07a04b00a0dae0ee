"""Classes that fall short of any criterion are suppressed in the file too: published, verified, applied."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf

FLAT = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}


def table_at(path: Path) -> sf.Study:
    """Forty-four rows: two large mixed classes, and four records of `north, 3` who all have flu."""
    rows = [(("north", "south")[i % 2], str(i % 4 // 2), ("flu", "ulcer")[i // 4 % 2]) for i in range(40)]
    rows += [("north", "3", "flu")] * 4
    path.write_text("area,floor,illness\n" + "".join(",".join(row) + "\n" for row in rows), "utf-8")
    columns = {"area": FLAT, "floor": FLAT, "illness": {"role": "sensitive"}}
    return sf.Study(data={"path": str(path)}, columns=columns)


@pytest.mark.long
@pytest.mark.parametrize(
    ("criterion", "limit"),
    [("t_closeness", 0.3), ("entropy_l", 1.5), ("alpha_k", 0.8), ("beta_likeness", 0.5), ("distinct_l", 2)],
)
def test_a_class_that_fails_a_criterion_is_suppressed_in_the_file(tmp_path: Path, criterion: str, limit: float) -> None:
    """Without suppression the four cost a whole column; suppressed, everything else stays as it is."""
    path = tmp_path / "t.csv"
    study = table_at(path).with_search(
        objectives=["general_loss"], constraints={"k": 2, criterion: limit}, max_suppression=0.1
    )
    front = sf.search(study)
    (point,) = front.points
    assert point.suppressed == 4
    assert dict(point.plan.levels) == {"area": 0, "floor": 0}
    front.save(tmp_path / "front")
    again = sf.load_front(tmp_path / "front")
    assert again.points[0].plan == point.plan
    accept = {"raw": "a table made for a test"}
    release = sf.publish(sf.pick(again, point=0), tmp_path / "release", state=tmp_path / "state", accept=accept)
    assert release.manifest["suppressed"] == 4
    written = next((tmp_path / "release" / "public").glob("*.csv")).read_text("utf-8")
    assert "3" not in {line.split(",")[1] for line in written.splitlines()[1:]}
    sf.verify(tmp_path / "release", path).raise_if_failed()


def test_t_is_sought_against_the_whole_input_and_shown_against_what_is_kept(tmp_path: Path) -> None:
    """24 flu of 44: the mixed classes are 24/44 − 1/2 from the input, and nothing from the forty that are kept."""
    study = table_at(tmp_path / "t.csv").with_search(objectives=["t_closeness", "general_loss"], max_suppression=0.1)
    front = sf.search(study)
    chosen = next(point for point in front.points if point.suppressed == 4)
    assert chosen.values["t_closeness"] == pytest.approx(24 / 44 - 1 / 2)
    assert front.objectives[0].taken == "input"
    accept = {"raw": "a table made for a test"}
    choice = sf.pick(front, point=chosen.id)
    release = sf.publish(choice, tmp_path / "release", state=tmp_path / "state", accept=accept)
    assert release.manifest["figures"]["t_closeness"]["value"] == pytest.approx(0.0, abs=1e-12)
    sf.verify(tmp_path / "release", tmp_path / "t.csv").raise_if_failed()
