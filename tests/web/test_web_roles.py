"""Roles on the page: a column that nobody has decided about stops every search, and codes for missing are offered."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.bench import Server

NAMES = "age,zip,sex,ill,LT3,Q10A"
DECIDED = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}


def write_undecided(path: Path, rows: int = 400) -> Path:
    """Two columns that no name tells anything about, and codes for missing in two others."""
    chance = random.Random(1)
    lines = [NAMES]
    for _ in range(rows):
        age = chance.choice([-9, *range(20, 69)])
        cells = [age, chance.choice(["8001", "8002"]), chance.choice("FM"), chance.choice(["flu", "cold", "none"])]
        lines.append(",".join(map(str, [*cells, chance.randint(1, 5), chance.choice([1, 2, 3, "N"])])))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module", autouse=True)
def written(root: Path) -> None:
    """The table, in a folder of its own among those that other tests open."""
    folder = root / "undecided"
    folder.mkdir()
    write_undecided(folder / "people.csv")
    run_file = 'version = 1\n[data]\npath = "people.csv"\n[columns]\nage = { role = "quasi_identifier" }\n'
    (folder / "half.toml").write_text(run_file, "utf-8")


def opened(bench: httpx.Client, path: str = "undecided/people.csv") -> dict[str, Any]:
    answer = bench.post("/api/studies", json={"path": path})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_nothing_is_confirmed_or_searched_while_a_column_has_no_role(bench: httpx.Client) -> None:
    study = opened(bench)
    at = f"/api/studies/{study['id']}"
    confirmed = bench.put(at, json={"reviewed": True})
    assert confirmed.status_code == 422
    assert "2 columns have no role yet: LT3, Q10A" in confirmed.json()["error"]["what"]
    assert study["undecided"] == ["LT3", "Q10A"]
    assert set(study["study"]["columns"]) == {"age", "zip", "sex", "ill"}
    for path, body in (("jobs", {}), ("channels", {"column": "ill"}), ("groups", {})):
        refused = bench.post(f"{at}/{path}", json=body)
        assert refused.status_code == 422, path
        assert "no role yet" in refused.json()["error"]["what"]
    columns = study["study"]["columns"] | {"LT3": DECIDED}
    half = bench.put(at, json={"columns": columns}).json()  # one decision at a time
    assert half["undecided"] == ["Q10A"]
    whole = bench.put(at, json={"columns": columns | {"Q10A": {"role": "drop"}}, "reviewed": True}).json()
    assert (whole["undecided"], whole["reviewed"]) == ([], True)


def test_a_column_without_a_role_counts_as_known_to_outsiders(bench: httpx.Client) -> None:
    study = opened(bench)
    at = f"/api/studies/{study['id']}"
    audit = bench.get(f"{at}/audit").json()
    assert audit["undecided"] == ["LT3", "Q10A"]
    assert audit["whole"]["columns_in_no_figure"] == []
    columns = study["study"]["columns"] | {"LT3": {"role": "drop"}, "Q10A": {"role": "other"}}
    assert bench.put(at, json={"columns": columns}).status_code == 200
    decided = bench.get(f"{at}/audit").json()
    assert decided["undecided"] == []
    assert decided["whole"]["columns_in_no_figure"] == ["Q10A"]
    assert audit["measures"]["uniques"]["value"] > decided["measures"]["uniques"]["value"]


def test_a_run_file_without_all_roles_is_opened_to_be_decided(bench: httpx.Client) -> None:
    study = opened(bench, "undecided/half.toml")
    assert (len(study["undecided"]), study["reviewed"]) == (5, False)


def test_profiles_name_what_may_mean_missing(bench: httpx.Client) -> None:
    study = opened(bench)
    columns = bench.get(f"/api/studies/{study['id']}/profile").json()["columns"]
    found = {column["name"]: column["missing_candidates"] for column in columns}
    assert (found["age"], found["Q10A"], found["sex"]) == (["-9"], ["N"], [])
    assert {column["name"]: column["suggested_role"] for column in columns}["LT3"] is None


def test_keys_without_effect_are_refused_and_the_page_knows_which(bench: httpx.Client) -> None:
    study = opened(bench)
    at = f"/api/studies/{study['id']}"
    columns = study["study"]["columns"] | {"LT3": {"role": "other", "hierarchy": {"build": "flat"}}}
    refused = bench.put(at, json={"columns": columns})
    assert refused.status_code == 422
    assert "LT3 has the role other, which does not read hierarchy" in refused.json()["error"]["what"]
    roles = {role["name"]: role["keys"] for role in bench.get("/api/about").json()["roles"]}
    assert (roles["other"], "hierarchy" in roles["quasi_identifier"]) == (["round", "bands"], True)
    assert {"area", "basic"}.isdisjoint(roles)


@pytest.fixture
def undecided(workbench: Server, page: Any, tmp_path: Path) -> Any:
    """The table opened on the page, at its second step."""
    with workbench.client() as client_:
        text = write_undecided(tmp_path / "t.csv").read_bytes()
        path = client_.put("/api/uploads/undecided.csv", content=text).json()["path"]
        study = client_.post("/api/studies", json={"path": path}).json()["id"]
    page.goto(f"{workbench.origin}/#/declare/{study}")
    page.wait_for_selector("#review")
    return page


@pytest.mark.long
def test_the_page_asks_for_every_role(undecided: Any) -> None:
    page = undecided
    assert "2 columns have no role yet: LT3, Q10A" in page.inner_text("#review")
    assert page.locator("#reviewed").is_disabled()
    assert page.locator("select.open").count() == 2
    assert page.locator("[data-column=LT3] select option:checked").inner_text() == "choose …"
    page.wait_for_selector("#counted-too")
    assert "2 columns without a role are counted as known to outsiders" in page.inner_text("#counted-too")
    page.click("#to-search")  # leads to what is missing instead
    assert "/declare/" in page.url
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Role of LT3"
    assert "2 columns still without a role" in page.inner_text("#blocked")
    page.select_option("[data-column=LT3] select", "quasi_identifier")
    page.wait_for_selector("#review:has-text('1 column has no role yet: Q10A')")
    page.select_option("[data-column=Q10A] select", "drop")
    page.wait_for_selector("#reviewed:not([disabled])")
    page.click("#reviewed")
    page.wait_for_selector("#review", state="detached")
    page.click("#to-search")
    page.wait_for_selector("#estimate small[title]")


@pytest.mark.long
def test_a_role_takes_its_keys_with_it(undecided: Any) -> None:
    """A column that was generalized and is kept instead loses its hierarchy: left there it would be refused."""
    page = undecided
    page.wait_for_selector("[data-tree=zip]")
    for role in ("other", "quasi_identifier", "sensitive", "drop", "quasi_identifier"):
        with page.expect_response(lambda answer: answer.request.method == "PUT") as answered:
            page.select_option("[data-column=zip] select", role)
        assert answered.value.status == 200
    page.wait_for_selector("[data-tree=zip]")


@pytest.mark.long
def test_codes_for_missing_are_offered(undecided: Any) -> None:
    page = undecided
    assert "perhaps missing: -9" in page.inner_text("[data-column=age]")
    page.wait_for_selector("[data-missing='-9'][data-rule=category]:not([disabled])")
    said = page.locator("#candidates [role=group]").all_inner_texts()
    assert [text.split(",")[0] for text in said] == ["-9 in 1 column", "N in 1 column"]
    page.click("[data-missing='-9'][data-rule=category]")
    page.wait_for_selector("[data-missing='-9']", state="detached")
    assert page.locator("input[value='-9']").count() == 1
    assert page.locator("[data-missing='N']").count() == 3  # one button for each rule
