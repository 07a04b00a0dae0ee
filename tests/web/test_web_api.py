"""The interface of the workbench: from a table to a verified release, without a browser."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.points import points_in
from tests.web.bench import Server, client, declare, server, until, wait, write_table

from sfumato.cli import run
from sfumato.methods.registry import load_front
from sfumato.web.workspace import Places

PUBLIC = ["certificate.json", "croissant.json", "data.csv", "ddi.xml"]
PUBLIC += ["dictionary.html", "dictionary.json", "external.html"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv")
    return root


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Server]:
    with server(root) as found:
        yield found


@pytest.fixture(scope="module")
def bench(served: Server) -> Iterator[httpx.Client]:
    with served.client() as found:
        yield found


@pytest.fixture(scope="module")
def searched(bench: httpx.Client) -> tuple[str, str]:
    """A study and a search of it that has ended."""
    study = declare(bench)
    job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
    ended = wait(bench, study, job)
    assert ended["status"] == "done", ended
    return study, job


def safe_point(bench: httpx.Client, study: str, job: str) -> int:
    """A point that meets the default policy."""
    points = bench.get(f"/api/studies/{study}/jobs/{job}/front").json()["points"]
    return int(next(point["id"] for point in points if point["values"]["k"] >= 20))


def test_a_table_is_profiled_and_its_roles_are_only_suggestions(bench: httpx.Client) -> None:
    study = bench.post("/api/studies", json={"path": "people.csv"}).json()
    assert study["reviewed"] is False
    profile = bench.get(f"/api/studies/{study['id']}/profile").json()
    age = next(column for column in profile["columns"] if column["name"] == "age")
    assert age["suggested_role"] == "quasi_identifier"
    assert sum(age["spread"]["counts"]) == 400
    preview = bench.get(f"/api/studies/{study['id']}/preview", params={"rows": 3}).json()
    assert [len(row) for row in preview["rows"]] == [4, 4, 4]
    refused = bench.post(f"/api/studies/{study['id']}/jobs", json={})
    assert refused.status_code == 422
    assert "not been confirmed" in refused.json()["error"]["what"]


def test_errors_are_sentences_with_a_remedy(bench: httpx.Client) -> None:
    study = declare(bench)
    told = bench.put(f"/api/studies/{study}", json={"search": {"objectives": ["kk"]}}).json()["error"]
    assert 'unknown objective "kk"' in told["what"]
    assert 'did you mean "k"' in told["try"]
    told = bench.put(f"/api/studies/{study}", json={"search": {"sytem": "lattice"}}).json()["error"]
    assert "system" in told["try"]
    assert bench.get("/api/studies/nothing-here").status_code == 404
    assert bench.get(f"/api/studies/{study}/audit").json()["measures"]["k"]["value"] == 1


def test_hierarchies_are_built_edited_imported_and_kept(bench: httpx.Client) -> None:
    study = declare(bench)
    at = f"/api/studies/{study}/hierarchy"
    built = bench.post(
        f"{at}/build", json={"column": "age", "recipe": {"build": "interval", "widths": [10, 20]}}
    ).json()
    assert built["covers"]
    assert sum(count for _, count in built["levels"][1]["bars"]) == 400
    tree = bench.get(at, params={"column": "zip"}).json()
    paths = tree["paths"]
    edit = {"column": "zip", "paths": paths, "do": "join", "level": 1, "labels": ["800*", "900*"], "to": "all"}
    edited = bench.post(f"{at}/edit", json=edit).json()
    assert {path[1] for path in edited["paths"]} == {"all"}
    assert (
        bench.post(f"{at}/edit", json={**edit, "labels": ["8??"]}).json()["error"]["expected"] == "labels of that level"
    )
    kept = bench.put(at, json={"column": "zip", "paths": edited["paths"]})
    assert kept.status_code == 200
    assert bench.get(at, params={"column": "zip"}).json()["paths"] == edited["paths"]
    told = bench.post(f"{at}/import", json={"column": "sex", "text": "F;*\n"}).json()
    assert not told["covers"]
    assert "M" in told["badge"]
    assert bench.put(at, json={"column": "sex", "paths": told["paths"]}).status_code == 422


@pytest.mark.long
def test_orders_breaks_weights_and_a_population_are_declared_or_refused(bench: httpx.Client, root: Path) -> None:
    study = declare(bench)
    at = f"/api/studies/{study}"
    columns = bench.get(at).json()["study"]["columns"]
    assert bench.get(f"{at}/order", params={"column": "zip"}).json()["by"] == "value"
    assert bench.get(f"{at}/order", params={"column": "sex"}).json() | {"order": ["F", "M"], "by": "alphabet"} == (
        bench.get(f"{at}/order", params={"column": "sex"}).json()
    )

    def put(**changes: Any) -> httpx.Response:
        return bench.put(at, json={"columns": columns | {name: columns[name] | new for name, new in changes.items()}})

    assert put(sex={"order": ["M", "F"]}).status_code == 200
    found = bench.get(f"{at}/order", params={"column": "sex"}).json()
    assert (found["order"], found["by"]) == (["M", "F"], "given")
    assert "does not name each" in put(sex={"order": ["M"]}).json()["error"]["what"]
    assert "“Cuts may join”: no" in put(age={"breaks": [30, 40]}).json()["error"]["try"]  # it has a hierarchy
    assert "are not ascending" in put(age={"breaks": [40, 30], "constrained": False}).json()["error"]["what"]
    assert put(age={"breaks": [30, 40], "constrained": False}).status_code == 200
    assert bench.get(f"{at}/order", params={"column": "age"}).json()["units"] == 3
    assert bench.put(at, json={"search": {"weights": {"age": 2.0}}}).json()["study"]["search"]["weights"] == {
        "age": 2.0
    }
    assert bench.put(at, json={"search": {"weights": {"ill": 2.0}}}).status_code == 422
    write_table(root / "everybody.csv", rows=900)
    (root / "other.csv").write_text("a,b\n1,2\n", "utf-8")
    assert "lacks age, zip, sex" in bench.put(at, json={"population": {"path": "other.csv"}}).json()["error"]["what"]
    assert bench.put(at, json={"population": {"path": "../x.csv"}}).status_code == 422
    kept = bench.put(at, json={"population": {"path": "everybody.csv"}}).json()
    assert kept["study"]["population"]["path"] == "everybody.csv"
    assert bench.get(f"{at}/audit").json()["measures"]["journalist_risk"]["value"] > 0
    assert "population" not in bench.put(at, json={"population": {}}).json()["study"]


@pytest.mark.long
def test_a_front_is_explored(bench: httpx.Client, searched: tuple[str, str]) -> None:
    study, job = searched
    at = f"/api/studies/{study}/jobs/{job}"
    front = bench.get(f"{at}/front").json()
    assert front["exact"]
    assert front["knee"] in range(len(front["points"]))
    assert "scale of k" in front["knee_scale"]
    assert [each["value"] for each in front["presets"]] == [3, 5, 10, 20, 0.2, 0.09, 0.05]
    assert bench.get(f"{at}/live").json()["number"] == len(front["points"])
    point = bench.get(f"{at}/points/1").json()
    assert len(point["words"]) == 3
    assert point["attackers"]["prosecutor_risk"]["before"] == 1
    assert point["attackers"]["journalist_risk"]["reason"] == "needs a population table"
    assert sum(point["sizes"]["before"]) == 400
    assert point["sample"]["sensitive"] == ["ill"]
    assert not any(word in json.dumps(point["sample"]) for word in ("flu", "cold"))
    asked = bench.get(f"{at}/ask", params={"max_loss": 0.5}).json()
    assert asked["answer"]["loss"] <= 0.5
    assert bench.get(f"{at}/ask", params={"max_loss": 0.0, "min_k": 50}).json()["nothing"]["nearest"]
    paid = bench.get(f"{at}/compare", params={"one": 0, "two": len(front["points"]) - 1}).json()
    assert paid["better"] + paid["worse"] + paid["same"] == 400
    assert bench.get(f"{at}/points/99999").status_code == 422


@pytest.mark.long
def test_run_file_and_program_replay_to_the_same_front(
    bench: httpx.Client, searched: tuple[str, str], tmp_path: Path, root: Path
) -> None:
    study, job = searched
    found = Places(root).job(study, job) / "front"
    (tmp_path / "run.toml").write_text(bench.get(f"/api/studies/{study}/run.toml", params={"job": job}).text, "utf-8")
    assert run(["search", str(tmp_path / "run.toml"), "-o", str(tmp_path / "front")]) == 0
    assert points_in(tmp_path / "front") == points_in(found)
    number = safe_point(bench, study, job)
    program = bench.get(f"/api/studies/{study}/run.py", params={"job": job, "point": number}).text
    (tmp_path / "run.py").write_text(program, "utf-8")
    state = {**os.environ, "SFUMATO_STATE": str(tmp_path / "state")}
    subprocess.run([sys.executable, "run.py"], cwd=tmp_path, check=True, timeout=120, env=state)
    manifest = json.loads((tmp_path / "release" / "private" / "manifest.json").read_text("utf-8"))
    point = load_front(found).point(number)
    assert manifest["point"]["values"] == dict(point.values)
    assert manifest["loss"] == pytest.approx(point.loss, abs=1e-12)


@pytest.mark.long
def test_a_channel_replays_with_its_settings(
    bench: httpx.Client, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = declare(bench)
    asked = {"column": "ill", "delta": 0.8, "points": 3}
    job = bench.post(f"/api/studies/{study}/channels", json=asked).json()["id"]
    assert wait(bench, study, job)["status"] == "done"
    shown = {"job": job, "point": 1}
    (tmp_path / "run.toml").write_text(bench.get(f"/api/studies/{study}/run.toml", params=shown).text, "utf-8")
    assert "delta = 0.8\npoints = 3\n" in (tmp_path / "run.toml").read_text("utf-8")
    _, first, second, third = bench.get(f"/api/studies/{study}/run.sh", params=shown).text.splitlines()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    assert run(first.split()[1:]) == 0
    again, found = (load_front(f) for f in (tmp_path / "front", Places(root).job(study, job) / "front"))
    assert [point.saved() for point in again.points] == [point.saved() for point in found.points]
    assert "--point 1" in second
    assert run(second.split()[1:]) == 0
    assert third.startswith("sfumato verify release --source ")
    assert run(third.split()[1:]) == 0
    program = bench.get(f"/api/studies/{study}/run.py", params=shown).text
    assert "sf.pick(front, point=1)" in program
    (tmp_path / "run.py").write_text(program.replace('"release"', '"other"'), "utf-8")
    state = {**os.environ, "SFUMATO_STATE": str(tmp_path / "again")}
    subprocess.run([sys.executable, "run.py"], cwd=tmp_path, check=True, timeout=120, env=state)
    assert (tmp_path / "other" / "public" / "data.csv").is_file()


@pytest.mark.long
def test_a_channel_is_published_and_verified(bench: httpx.Client, root: Path) -> None:
    study = declare(bench)
    job = bench.post(f"/api/studies/{study}/channels", json={"column": "ill", "points": 3, "keep": ["sex"]}).json()[
        "id"
    ]
    assert wait(bench, study, job)["status"] == "done"
    assert bench.get(f"/api/studies/{study}/jobs/{job}/channel").json()["keep"] == ["sex"]
    body = {"job": job, "point": 1, "reason": "for a test"}
    made = bench.post(f"/api/studies/{study}/releases", json=body).json()["id"]
    ended = wait(bench, study, made)
    assert ended["status"] == "done", ended
    assert ended["found"]["verified"], ended["found"]
    (release,) = bench.get(f"/api/studies/{study}/releases").json()
    assert release["says"].startswith("ill, given sex: privacy 0.")
    data = Places(root).release(study, release["name"]) / "public" / "data.csv"
    assert sorted(data.read_text("utf-8").splitlines()[0].split(",")) == ["ill", "sex"]


@pytest.mark.long
def test_a_point_is_published_verified_and_packed(bench: httpx.Client, searched: tuple[str, str]) -> None:
    study, job = searched
    body = {"job": job, "point": safe_point(bench, study, job), "reason": "for <b>tests</b>"}
    body["accept"] = {"earlier": "other tests publish the same table"}
    made = bench.post(f"/api/studies/{study}/releases", json=body).json()["id"]
    ended = wait(bench, study, made)
    assert ended["status"] == "done", ended
    assert ended["found"]["verified"], ended["found"]
    name = ended["found"]["release"]
    at = f"/api/studies/{study}/releases"
    assert [release["name"] for release in bench.get(at).json()] == [name]
    assert bench.post(f"{at}/{name}/verify").json() == {"verified": True, "differences": [], "not_compared": []}
    pack = zipfile.ZipFile(io.BytesIO(bench.get(f"{at}/{name}/public.zip").content))
    assert sorted(pack.namelist()) == [f"{name}/{file}" for file in PUBLIC]
    record = zipfile.ZipFile(io.BytesIO(bench.get(f"{at}/{name}/record.zip").content))
    assert {f"{name}/private/manifest.json", f"{name}/public/{PUBLIC[1]}"} < set(record.namelist())
    report = bench.get(f"{at}/{name}/internal.html")
    assert report.headers["content-security-policy"].startswith("sandbox")
    assert "for &lt;b&gt;tests" in report.text


@pytest.mark.long
def test_state_survives_a_restart(tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv")
    with client(tmp_path) as bench:
        study = declare(bench, system="cuts", problem=2, generations=100_000)
        job = bench.post(f"/api/studies/{study}/jobs", json={}).json()["id"]
        until(bench, job, lambda found: found["status"] == "running")
    with client(tmp_path) as bench:
        assert [found["id"] for found in bench.get("/api/studies").json()] == [study]
        told = bench.get(f"/api/studies/{study}/jobs/{job}").json()
        assert told["status"] == "interrupted"
        assert "server stopped" in told["error"]["what"]
        bench.post(f"/api/studies/{study}/jobs/{job}/again")
        until(bench, job, lambda found: bool(found.get("live")))
        bench.post(f"/api/studies/{study}/jobs/{job}/stop")
        ended = wait(bench, study, job)
        assert ended["status"] == "stopped"
        assert ended["front"]


def test_a_worker_that_dies_is_replaced_and_the_server_stays_small(bench: httpx.Client, served: Server) -> None:
    assert bench.get("/api/about").status_code == 200
    tasks = Path(f"/proc/{served.process.pid}/task")
    children = {int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()}
    workers = [pid for pid in children if b"\0worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    answers = [bench.get("/api/studies").status_code for _ in range(4)]
    assert answers[-1] == 200
    assert served.resident < 250
