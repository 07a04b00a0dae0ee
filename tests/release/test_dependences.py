"""A kept column that gives back what a release hides is refused, with the columns and the shares, unless accepted."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import front_of, publish, write_csv

import sfumato as sf
from sfumato.errors import UnreachableError
from sfumato.release.policy import PolicyError

PLACES = {"place": 1, "sex": 0}
REASON = "the file stays in the safe room"


def study_of(folder: Path, kept: str = "density", accept: tuple[dict[str, str], ...] = (), **roles: str) -> sf.Study:
    """NIST's case: 30 places in 4 regions, and a density that is one-to-one with the place."""
    rng = random.Random(3)
    densities = rng.sample(range(100, 999), 30)
    rows: list[list[Any]] = [["place", "sex", "density", "region", "ill", "income", "hours"]]
    for number in range(900):
        place = rng.randrange(30)
        ill = rng.choice(["flu", "cold", "gout"])
        rows.append(
            [f"{place:02d}", rng.choice("FM"), densities[place], place // 8, ill, 5000 + number, rng.randint(1, 60)]
        )
    write_csv(folder / "t.csv", rows)
    tree = [[f"{p:02d}", f"region {p // 8}", "*"] for p in range(30)]
    write_csv(folder / "place.csv", tree)
    columns: dict[str, Any] = {name: {"role": "drop"} for name in rows[0]}
    columns["place"] = {"role": "quasi_identifier", "hierarchy": str(folder / "place.csv")}
    columns |= {"sex": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}, kept: {"role": "other"}}
    columns |= {name: {"role": role} for name, role in roles.items()}
    policy = {"k": 1, "l": 1, "t": 1.0, "uniques": 1.0, "reason": "made for a test", "accept": list(accept)}
    return sf.Study(data={"path": str(folder / "t.csv")}, columns=columns, policy=policy)


def test_a_code_that_is_one_to_one_with_a_generalized_place_is_refused(tmp_path: Path) -> None:
    front = front_of(study_of(tmp_path), [PLACES])
    with pytest.raises(UnreachableError, match=r"density is released unchanged and tells place.*100 %.*one-to-one"):
        publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    assert not (tmp_path / "out").exists()


def test_accepted_with_a_reason(tmp_path: Path) -> None:
    given = {"rule": "dependence", "column": "density", "reason": REASON}
    front = front_of(study_of(tmp_path, accept=(given,)), [PLACES])
    assert publish(front, 0, tmp_path / "out", state=tmp_path / "state").data.exists()


def test_an_acceptance_of_one_column_does_not_cover_another(tmp_path: Path) -> None:
    """Both density and region give back a place that is hidden; the reason is about density alone."""
    given = {"rule": "dependence", "column": "density", "reason": REASON}
    front = front_of(study_of(tmp_path, accept=(given,), region="other"), [{"place": 2, "sex": 0}])
    with pytest.raises(PolicyError) as refused:
        publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    assert [finding.key for finding in refused.value.findings] == ["dependence:region"]


def test_a_column_that_gives_back_a_withheld_one_is_refused(tmp_path: Path) -> None:
    """No plan recodes the place: it is dropped, and the density that is released has one value for each place."""
    raw = {"rule": "raw", "reason": REASON}
    study = study_of(tmp_path, accept=(raw,), place="drop", region="quasi_identifier")
    with pytest.raises(PolicyError) as refused:
        publish(front_of(study, [{"region": 0, "sex": 0}]), 0, tmp_path / "out", state=tmp_path / "state")
    (finding,) = (finding for finding in refused.value.findings if finding.rule == "dependence")
    assert finding.column == "density"
    assert "tells place, which is withheld: right for 100 % of the records" in finding.what
    assert finding.figures["place"] == 1.0


def test_a_copy_as_coarse_as_the_release_is_published(tmp_path: Path) -> None:
    front = front_of(study_of(tmp_path, "region"), [PLACES])
    assert publish(front, 0, tmp_path / "out", state=tmp_path / "state").data.exists()


def test_the_same_copy_is_refused_beside_a_hidden_place(tmp_path: Path) -> None:
    front = front_of(study_of(tmp_path, "region"), [{"place": 2, "sex": 0}])
    with pytest.raises(UnreachableError, match="region is released unchanged"):
        publish(front, 0, tmp_path / "out", state=tmp_path / "state")


def test_a_column_that_tells_every_record_apart_is_refused(tmp_path: Path) -> None:
    front = front_of(study_of(tmp_path, "income"), [PLACES])
    with pytest.raises(UnreachableError, match=r"income has a value that no other record has in 100.0 %") as refused:
        publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    assert 'accept = {"identifying:income"' in str(refused.value)


def test_a_sensitive_column_that_tells_every_record_apart_is_refused_too(tmp_path: Path) -> None:
    front = front_of(study_of(tmp_path, "hours", income="sensitive", density="drop"), [PLACES])
    with pytest.raises(UnreachableError, match=r"income has a value that no other record has in 100.0 %"):
        publish(front, 0, tmp_path / "out", state=tmp_path / "state")


def test_generalized_columns_are_not_said_to_be_released_unchanged(tmp_path: Path) -> None:
    """Three numbers that add up, all generalized: none undoes another. One that is unchanged does, with the third."""
    rng = random.Random(6)
    rows: list[list[Any]] = [["begin", "days", "end", "ill"]]
    for _ in range(800):
        begin, days = rng.randint(0, 300), rng.randint(0, 40)
        rows.append([begin, days, begin + days, rng.choice("abc")])
    write_csv(tmp_path / "t.csv", rows)
    tree = {"build": "interval", "widths": [60, 120]}
    columns: dict[str, Any] = {n: {"role": "quasi_identifier", "hierarchy": tree} for n in ("begin", "days", "end")}
    policy = {"k": 1, "l": 1, "t": 1.0, "uniques": 1.0, "reason": "made for a test"}
    study = sf.Study(
        data={"path": str(tmp_path / "t.csv")}, columns=columns | {"ill": {"role": "sensitive"}}, policy=policy
    )
    accept = {"raw": "made up for a test"}
    all_of_them = publish(front_of(study, [{"begin": 1, "days": 1, "end": 1}]), 0, tmp_path / "all", accept=accept)
    assert not [warning for warning in all_of_them.warnings if "without effect" in warning]
    some = publish(front_of(study, [{"begin": 1, "days": 0, "end": 1}]), 0, tmp_path / "some", accept=accept)
    warned = [warning for warning in some.warnings if "without effect" in warning]
    assert {warning.split()[0] for warning in warned} == {"begin", "end"}
    assert all(": days, released unchanged, determines" in warning for warning in warned)
    assert all(" with end for" in w or " with begin for" in w for w in warned)


def test_a_quasi_identifier_that_is_released_unchanged_is_a_warning(tmp_path: Path) -> None:
    study = study_of(tmp_path, "hours", density="quasi_identifier")
    front = front_of(study, [PLACES | {"density": 0}])
    release = publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    assert [w for w in release.warnings if "without effect" in w and w.startswith("place is generalized")]
