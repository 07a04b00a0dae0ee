"""Changes of a study: none is lost without a word, and what is run is what was shown."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.bench import Server, confirmed, declare, wait

MANY = 50


def with_word(study: dict[str, Any], word: str) -> dict[str, Any]:
    """A change that adds a word for missing values to those of a study as it was read."""
    data = {name: value for name, value in study["study"]["data"].items() if name != "path"}
    return {"data": {**data, "na": [*data.get("na", []), word]}}


@pytest.mark.long
def test_of_changes_to_one_version_one_is_made_and_the_others_are_told(bench: httpx.Client) -> None:
    at = f"/api/studies/{declare(bench)}"
    read = bench.get(at)
    version = {"if-match": read.headers.get("etag", "")}

    def change(number: int) -> int:
        return bench.put(at, json=with_word(read.json(), f"w{number}"), headers=version).status_code

    with ThreadPoolExecutor(MANY) as pool:
        codes = list(pool.map(change, range(MANY)))
    assert sorted(set(codes)) == [200, 409]
    assert codes.count(200) == 1
    kept = bench.get(at).json()["study"]["data"]["na"]
    assert kept == [f"w{codes.index(200)}"]


def test_changes_that_are_made_again_after_a_conflict_all_arrive(bench: httpx.Client) -> None:
    at = f"/api/studies/{declare(bench)}"

    def change(number: int) -> int:
        for tries in range(1, MANY):
            read = bench.get(at)
            version = {"if-match": read.headers.get("etag", "")}
            answer = bench.put(at, json=with_word(read.json(), f"w{number}"), headers=version)
            if answer.status_code == 200:
                return tries
            assert answer.status_code == 409
        raise AssertionError("a change never arrives")

    with ThreadPoolExecutor(8) as pool:
        tries = list(pool.map(change, range(8)))
    assert sorted(bench.get(at).json()["study"]["data"]["na"]) == [f"w{number}" for number in range(8)]
    assert sum(tries) >= 8


def test_a_change_without_a_version_is_refused(served: Server, bench: httpx.Client) -> None:
    study = declare(bench)
    headers = {"authorization": bench.headers["authorization"]}
    with httpx.Client(base_url=served.origin, headers=headers, timeout=60) as plain:
        for method, path, body in (
            ("PUT", "", {"reviewed": True}),
            ("PUT", "/hierarchy", {"column": "sex", "recipe": {"build": "flat"}}),
            ("POST", "/jobs", {}),
        ):
            answer = plain.request(method, f"/api/studies/{study}{path}", json=body)
            assert answer.status_code == 428, (path, answer.text)
            assert "If-Match" in answer.json()["error"]["expected"]


@pytest.mark.long
def test_what_is_run_is_what_was_read(bench: httpx.Client, root: Path) -> None:
    study = declare(bench, max_suppression=0.02)
    at = f"/api/studies/{study}"
    shown = bench.get(at).headers.get("etag", "")
    bench.put(at, json={"search": {"max_suppression": 0.07}})  # in another tab
    stale = bench.post(f"{at}/jobs", json={}, headers={"if-match": shown})
    assert stale.status_code == 409
    assert "changed" in stale.json()["error"]["what"]
    job = bench.post(f"{at}/jobs", json={}).json()
    assert job["settings"]["max_suppression"] == 0.07
    wait(bench, study, job["id"])


def test_an_earlier_hierarchy_stays_for_the_fronts_that_use_it(bench: httpx.Client, root: Path) -> None:
    study = declare(bench)
    at = f"/api/studies/{study}"
    paths = bench.get(f"{at}/hierarchy", params={"column": "sex"}).json()["paths"]
    deep = [[path[0], "one" if path[0] == "F" else "two", path[-1]] for path in paths]
    bench.put(f"{at}/hierarchy", json={"column": "sex", "paths": deep})
    first = root / bench.get(at).json()["study"]["columns"]["sex"]["hierarchy"]
    before = first.read_bytes()
    bench.put(f"{at}/hierarchy", json={"column": "sex", "paths": paths})
    assert first.read_bytes() == before
    assert root / bench.get(at).json()["study"]["columns"]["sex"]["hierarchy"] != first


@pytest.mark.long
def test_many_uploads_at_one_time_are_each_kept_whole(served: Server, root: Path) -> None:
    contents = [b"a,b\n" + b"".join(b"%d,%d\n" % (number, row) for row in range(20_000)) for number in range(MANY)]

    def send(number: int) -> tuple[int, dict[str, Any]]:
        with served.client() as own:
            answer = own.put("/api/uploads/same.csv", content=iter([contents[number][:999], contents[number][999:]]))
        return answer.status_code, answer.json()

    with ThreadPoolExecutor(MANY) as pool:
        answers = list(pool.map(send, range(MANY)))
    for content, (status, answer) in zip(contents, answers, strict=True):
        assert status == 200
        assert answer["sha256"] == hashlib.sha256(content).hexdigest()
        assert (root / answer["path"]).read_bytes() == content
    left = [path for path in (root / "workbench" / "uploads").iterdir() if len(path.name) != 64]
    assert left == []


@pytest.mark.long
def test_a_change_in_another_tab_is_told_on_the_page(browser: Any, workbench: Server) -> None:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    workbench.enter(page)
    confirmed(page, "people.csv")
    page.click("#to-search")
    page.wait_for_selector("#suppression")
    study = page.url.split("/")[-1]
    with workbench.client() as bench:
        bench.put(f"/api/studies/{study}", json={"search": {"max_suppression": 0.07}})
    assert page.input_value("#suppression") == "1"
    page.wait_for_selector("#elsewhere")  # told before anything is started
    page.click("#start")
    page.wait_for_selector("text=changed in another tab")
    page.click("#reload")
    while page.input_value("#suppression") != "7":
        page.wait_for_timeout(50)
    page.click("#start")
    page.wait_for_selector(".job[data-status=done]")
    assert "at most 7 % suppressed" in page.inner_text(".job")
    page.close()


@pytest.mark.long
def test_two_quick_changes_on_a_page_are_both_made(page: Any) -> None:
    confirmed(page, "people.csv")
    answered: list[Any] = []
    page.on("response", lambda answer: answered.append(answer) if answer.request.method == "PUT" else None)
    page.evaluate(
        """() => { for (const [at, value] of [[".field select", "category"], [".field input", "?, none"]]) {
          const field = document.querySelector(at);
          field.value = value;
          field.dispatchEvent(new Event("change"));
        } }"""
    )
    while len(answered) < 2:
        page.wait_for_timeout(50)
    page.reload()
    page.wait_for_selector(".declared")
    assert page.locator(".field select").first.input_value() == "category"
    assert page.locator(".field input").first.input_value() == "?, none"
