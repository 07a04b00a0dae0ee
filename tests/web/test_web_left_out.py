"""Missing codes and left-out records on the page; the form of a group."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.bench import Server, client, server, wait

ROWS = 400
COLUMNS = {
    "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20]}},
    "zip": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "work": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "ill": {"role": "sensitive"},
}
ENOUGH = "a table that was made for a test"
ACCEPT = dict.fromkeys(("k", "l", "t", "uniques", "raw", "left_out"), ENOUGH)


def write_people(path: Path, names: str = "age,zip,sex,work,ill") -> int:
    """People of whom 99 or more have -9 as their work: children, as in a census. Returns how many have it."""
    chance = random.Random(4)
    lines, coded = [names], 0
    for _ in range(ROWS):
        child = chance.random() < 0.4
        coded += child
        cells = [chance.randint(20, 60), chance.choice(["8001", "8002"]), chance.choice("FM")]
        work = -9 if child else chance.randint(1, 4)
        lines.append(",".join(map(str, [*cells, work, chance.choice(["flu", "cold", "none"])])))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return coded


def write_students(folder: Path) -> None:
    """Two files with the same columns, in which students are concentrated in one region."""
    chance = random.Random(2)
    for name in ("students.csv", "others.csv"):
        lines = ["Region,Age,Sex,Student"]
        for _ in range(600):
            region = chance.choice(["North", "South", "East", "West"])
            student = chance.random() < (0.5 if region == "North" else 0.1)
            age = chance.randint(1, 2) if student else chance.randint(1, 8)
            lines.append(f"{region},{age},{chance.randint(1, 2)},{1 if student else 2}")
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    write_people(folder / "people.csv")
    write_students(folder)
    return folder


@pytest.fixture(scope="module")
def coded(root: Path) -> int:
    return sum(line.split(",")[3] == "-9" for line in (root / "people.csv").read_text("utf-8").splitlines())


@pytest.fixture
def bench(root: Path) -> Iterator[httpx.Client]:
    with client(root) as found:
        yield found


def opened(bench: httpx.Client, path: str = "people.csv", **changes: Any) -> str:
    study = str(bench.post("/api/studies", json={"path": path}).json()["id"])
    if changes:
        answer = bench.put(f"/api/studies/{study}", json=changes)
        assert answer.status_code == 200, answer.text
    return study


def test_a_code_says_what_each_rule_would_do(bench: httpx.Client, coded: int) -> None:
    """C1: before it is accepted, with the roles as they are; a column that is not measured costs nothing."""
    study = opened(bench, columns=COLUMNS)
    cost = bench.get(f"/api/studies/{study}/missing").json()
    assert cost["rule"] == "category"
    found = cost["codes"]["-9"]
    assert (found["records"], found["cells"], found["left_out"], found["rows"]) == (coded, coded, coded, ROWS)
    assert found["rules"]["drop"].startswith(f"{coded} of {ROWS} records are left out")
    assert found["rules"]["category"].startswith("no record is left out")
    kept = {**COLUMNS, "work": {"role": "other"}}
    assert bench.put(f"/api/studies/{study}", json={"columns": kept}).status_code == 200
    assert bench.get(f"/api/studies/{study}/missing").json()["codes"]["-9"]["left_out"] == 0


@pytest.mark.long
def test_left_out_records_are_in_every_answer(bench: httpx.Client, coded: int, root: Path) -> None:
    """The risk card, the front, the last look, the release and the list of releases."""
    data = bench.get(f"/api/studies/{opened(bench)}").json()["study"]["data"]
    data = {name: value for name, value in data.items() if name != "path"} | {"na": ["-9"], "missing": "drop"}
    study = opened(bench, columns=COLUMNS, data=data, reviewed=True)
    at = f"/api/studies/{study}"
    assert bench.get(f"{at}/audit").json()["left_out"] == coded
    job = bench.post(f"{at}/jobs", json={}).json()["id"]
    assert wait(bench, study, job)["status"] == "done"
    front = bench.get(f"{at}/jobs/{job}/front").json()
    assert (front["left_out"], front["rows"]) == (coded, ROWS - coded)
    assert min(point["loss"] for point in front["points"]) >= coded / ROWS
    number = next(p["id"] for p in front["points"] if p["values"]["k"] >= 3)
    look = bench.post(f"{at}/look", json={"job": job, "point": number}).json()
    assert look["left_out"] == coded
    assert "left_out" in [finding["rule"] for finding in look["findings"]]
    made = bench.post(f"{at}/releases", json={"job": job, "point": number, "accept": ACCEPT, "reason": ENOUGH})
    assert made.status_code in (200, 201, 202), made.text
    wait(bench, study, made.json()["id"])
    (release,) = bench.get(f"{at}/releases").json()
    assert release["left_out"] == coded


@pytest.mark.long
def test_a_group_is_checked_when_it_is_kept(bench: httpx.Client) -> None:
    """M7: what an attack would refuse is refused when the group is declared, in words of the form; no job fails."""
    columns = {"Age": {"role": "other"}, "Sex": {"role": "other"}, "Student": {"role": "sensitive"}}
    columns["Region"] = {"role": "other"}
    study = opened(bench, "students.csv", columns=columns, reviewed=True)
    at = f"/api/studies/{study}"
    group: dict[str, Any] = {"vital": {"student": [{"Student": ["1"]}]}, "auxiliary": [{"path": "others.csv"}]}
    lacking = bench.put(at, json={"groups": group})
    assert lacking.status_code == 422
    said = lacking.json()["error"]
    assert "the columns that distinguish areas" in said["what"]
    assert "the characteristics that both files have" in said["what"]
    assert "recipe" not in str(said)
    group |= {"area": ["Region"], "other_columns": "release"}
    group |= {"attributes": {name: {"column": name, "ordinal": True, "quantiles": 3} for name in ("Age", "Sex")}}
    refused = bench.put(at, json={"groups": group})
    assert refused.status_code == 422
    assert "the vital columns Student are declared for release" in refused.json()["error"]["what"]
    elsewhere = {**group, "withhold": ["Student"], "area": ["Town"]}
    assert "no column Town" in bench.put(at, json={"groups": elsewhere}).json()["error"]["what"]
    kept = bench.put(at, json={"groups": {**group, "withhold": ["Student"]}})
    assert kept.status_code == 200, kept.text
    job = bench.post(f"{at}/groups", json={"protect": False}).json()
    done = wait(bench, study, job["id"], 200)
    assert done["status"] == "done", done


@pytest.fixture
def page(browser: Any, root: Path) -> Iterator[Any]:
    """A page over the folder."""
    with server(root) as started:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        found = context.new_page()
        found.set_default_timeout(60_000)
        started.enter(found)
        yield Entered(found, started)
        context.close()


class Entered:
    """A page, and someone who asks its server."""

    def __init__(self, page: Any, started: Server) -> None:
        self.page, self.server = page, started

    def declare(self, path: str = "people.csv", columns: Any = COLUMNS, step: str = "declare") -> str:
        with self.server.client() as bench:
            study = opened(bench, path, columns=columns, reviewed=True)
        self.at(step, study)
        return study

    def at(self, *parts: str) -> None:
        self.page.goto(f"{self.server.origin}/#/{'/'.join(parts)}")
        self.page.reload()


@pytest.mark.long
def test_the_page_asks_before_it_leaves_records_out(page: Any, coded: int) -> None:
    """C1: three buttons, each with what it does; the risk card says what was left out."""
    page.declare()
    found = page.page
    found.wait_for_selector("[data-missing='-9'][data-rule=drop]:not([disabled])")
    said = found.locator("[data-missing='-9']").all_inner_texts()
    assert len(said) == 3
    assert said[0].startswith("A separate category: no record is left out")
    assert said[1].replace("\u00a0", " ").startswith(f"Exclude the record: {coded} of {ROWS} records are left out")
    found.click("[data-missing='-9'][data-rule=category]")
    found.wait_for_selector("#candidates", state="detached")
    found.wait_for_selector(f"#risk:has-text('{ROWS} records in')")
    assert found.locator("#left-out").count() == 0
    found.click("#undo-role")
    found.wait_for_selector("[data-missing='-9'][data-rule=drop]:not([disabled])")
    found.click("[data-missing='-9'][data-rule=drop]")
    found.wait_for_selector("#left-out")
    assert f"{coded} of {ROWS} records" in found.inner_text("#left-out")


@pytest.mark.long
def test_counts_of_missing_values_follow_the_codes(page: Any, coded: int) -> None:
    """M10: a code that is taken back gives back the suggestion, and no column still has missing values."""
    page.declare()
    found = page.page
    found.wait_for_selector("[data-missing='-9'][data-rule=category]:not([disabled])")
    found.click("[data-missing='-9'][data-rule=category]")
    found.wait_for_selector(f"[data-column=work]:has-text('{coded} missing')")
    assert "4 values" in found.inner_text("[data-column=work]")
    found.fill("input[value='-9']", "")
    found.locator("label:has-text('Codes for missing values') input").press("Tab")
    found.wait_for_selector("[data-missing='-9']")
    assert "missing" not in re.sub("perhaps missing", "", found.inner_text("[data-column=work]"))
    assert "5 values" in found.inner_text("[data-column=work]")
    codes = found.locator("label:has-text('Codes for missing values') input")  # typed by hand, it counts the same
    codes.fill("-9")
    codes.press("Tab")
    found.wait_for_selector(f"[data-column=work]:has-text('{coded} missing')")


@pytest.mark.long
def test_a_group_cannot_be_kept_before_it_is_whole(page: Any) -> None:
    """M7: the form says what is still to be filled in, and its boxes for columns that are not released work."""
    columns = {name: {"role": "other"} for name in ("Region", "Age", "Sex")} | {"Student": {"role": "sensitive"}}
    page.declare("students.csv", columns, "search")
    found = page.page
    found.click("text=Protect a group")
    found.wait_for_selector("#group-form")
    found.click("#keep-groups")
    said = found.inner_text("#group-form .error")
    for part in ("the column that says who is in the group", "the columns that distinguish areas", "characteristics"):
        assert part in said
    found.select_option("#group-column", "Student")
    found.fill("#group-values", "1")
    found.fill("#group-auxiliary", "others.csv")
    found.check("#group-area label:has-text('Region') input")
    found.click("#keep-groups")
    assert "characteristics" in found.inner_text("#group-form .error")
    assert "areas" not in found.inner_text("#group-form .error")
    for name in ("Age", "Sex"):
        found.check(f"#group-attributes label:has-text('{name}') input")
    box = found.locator("#group-withhold label:has-text('Student') input")
    assert box.is_checked()
    assert box.is_disabled()
    found.click("#keep-groups")
    found.wait_for_selector("#start-groups")
    found.click("#start-groups")
    found.wait_for_selector(".job[data-status=done]", timeout=200_000)
    assert found.locator(".job[data-status=failed]").count() == 0
