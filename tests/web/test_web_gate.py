"""Who may talk to the workbench, and which files it may touch."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.web.bench import Server, server, write_table

from sfumato.web.access import Keys


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench")
    write_table(root / "people.csv")
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.csv"
    secret.write_text("a,b\nTOPSECRET1,2\nTOPSECRET2,3\n", "utf-8")
    (root / "link.csv").symlink_to(secret)
    (root / "folder").symlink_to(secret.parent)
    (root / "parts").mkdir()
    (root / "parts" / "one.csv").symlink_to(secret)
    (root / "mixed").mkdir()
    (root / "mixed" / "a.csv").write_text("a,b\n1,2\n", "utf-8")
    (root / "mixed" / "b.csv").symlink_to(secret)
    (root / "outside.toml").write_text(f'version = 1\n[data]\npath = "{secret}"\n[columns]\na = {{ role = "drop" }}\n')
    return root


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Server]:
    with server(root, "--upload-limit", "0.001") as found:
        yield found


@pytest.fixture
def bench(served: Server) -> Iterator[httpx.Client]:
    with served.client() as found:
        yield found


def test_only_the_page_itself_is_open_to_whoever_asks(served: Server) -> None:
    with httpx.Client(base_url=served.origin) as bare:
        for path in ("/", "/static/main.js"):
            assert bare.get(path).status_code == 200
        for path in ("/api/files", "/api/openapi.json", "/api/events", "/nothing", "/api/files?ticket=x"):
            assert bare.get(path).status_code == 401, path
        for method, path in (("PUT", "/api/uploads/a.csv"), ("POST", "/"), ("POST", "/api/tickets"), ("DELETE", "/")):
            assert bare.request(method, path, headers={"origin": served.origin}).status_code == 401
        answer = bare.post("/start", data={"key": served.key}, headers={"origin": "null"})
        assert answer.status_code == 200
        assert 'name="session"' in answer.text
        assert "set-cookie" not in answer.headers
        assert bare.post("/start", data={"key": "used"}, headers={"origin": "null"}).headers["location"] == "/"
        assert (
            bare.post("/start", data={"key": served.key}, headers={"origin": "http://evil.example"}).status_code == 403
        )


def test_a_ticket_opens_one_path_once_and_only_for_a_while(tmp_path: Path) -> None:
    clock = [0.0]
    keys = Keys(tmp_path, lambda: clock[0])
    path = "/api/studies/a/releases/b/pack.zip"
    ticket = keys.new_ticket(path)
    assert not keys.redeem(ticket, "/api/files")
    assert not keys.redeem(ticket, path)  # whoever tried it elsewhere has used it up
    ticket = keys.new_ticket(path)
    assert keys.redeem(ticket, path)
    assert not keys.redeem(ticket, path)
    ticket = keys.new_ticket(path)
    clock[0] += 61
    assert not keys.redeem(ticket, path)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_a_ticket_is_for_fetching_alone(served: Server, bench: httpx.Client, method: str) -> None:
    path = "/api/studies/none/releases/none/pack.zip"
    opened = f"{path}?ticket={bench.post('/api/tickets', json={'path': path}).json()['ticket']}"
    with httpx.Client(base_url=served.origin, headers={"origin": served.origin}) as bare:
        assert bare.request(method, opened).status_code == 401
        assert bare.get(opened).status_code != 401  # what was refused has not used it up
        assert bare.get(opened).status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8377", "127.0.0.1:1", "localhost.evil.example:8377"])
def test_other_names_of_this_machine_are_refused(bench: httpx.Client, host: str) -> None:
    assert bench.get("/api/files", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost:1", "http://127.0.0.1:9999"])
def test_other_pages_are_refused(bench: httpx.Client, origin: str) -> None:
    assert bench.get("/api/files", headers={"origin": origin}).status_code == 403
    assert bench.post("/api/studies", json={"sample": "adult"}, headers={"origin": origin}).status_code == 403
    assert bench.get("/api/files", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_every_answer_has_the_policy(bench: httpx.Client) -> None:
    for path in ("/", "/api/files", "/static/main.js", "/api/nothing"):
        policy = bench.get(path).headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe-eval" not in policy
    page = bench.get("/").text
    assert "<script>" not in page
    assert "http" not in page.replace("http-equiv", "")


PATHS = ["../secret.csv", "/etc/passwd", "folder/secret.csv", "link.csv", "a/../../x.csv", "people.csv\0", "x" * 999]
LINKED = [
    "link*.csv",
    "lin?.csv",
    "*.csv",
    "parts",
    "parts/*.csv",
    "mixed",
    "mixed/?.csv",
    "fold*",
    "folder/*.csv",
    "**x",
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_outside_the_folder_are_refused(bench: httpx.Client, path: str) -> None:
    answer = bench.post("/api/studies", json={"path": path})
    assert answer.status_code in (404, 422), answer.text
    assert answer.json()["error"]["what"]
    assert bench.get("/api/files", params={"folder": path}).status_code in (404, 422)


@pytest.mark.parametrize("path", LINKED)
def test_patterns_and_folders_that_lead_outside_are_refused(bench: httpx.Client, path: str) -> None:
    answer = bench.post("/api/studies", json={"path": path})
    assert answer.status_code in (404, 422), answer.text
    assert "TOPSECRET" not in answer.text
    population = {"population": {"path": path}}
    study = bench.post("/api/studies", json={"path": "people.csv"}).json()["id"]
    assert bench.put(f"/api/studies/{study}", json=population).status_code in (404, 422)


def test_a_link_that_is_made_later_is_refused_too(bench: httpx.Client, root: Path) -> None:
    write_table(root / "later.csv", rows=5)
    study = bench.post("/api/studies", json={"path": "later.csv"}).json()["id"]
    (root / "later.csv").unlink()
    (root / "later.csv").symlink_to((root / "link.csv").resolve())
    answer = bench.get(f"/api/studies/{study}/preview")
    (root / "later.csv").unlink()
    assert answer.status_code == 422, answer.text
    assert "TOPSECRET" not in answer.text


def test_a_run_file_cannot_name_files_outside(bench: httpx.Client) -> None:
    answer = bench.post("/api/studies", json={"path": "outside.toml"})
    assert answer.status_code == 422
    assert "not in the folder" in answer.json()["error"]["what"]
    study = bench.post("/api/studies", json={"path": "people.csv"}).json()
    columns = study["study"]["columns"]
    for tree in ("/etc/passwd", "../x.csv", "link.csv", {"path": "/etc/passwd"}):
        changed = {**columns, "age": {"role": "quasi_identifier", "hierarchy": tree}}
        assert bench.put(f"/api/studies/{study['id']}", json={"columns": changed}).status_code == 422
    told = bench.put(f"/api/studies/{study['id']}", json={"data": {"path": "/etc/passwd"}})
    assert told.json()["study"]["data"]["path"] == "people.csv"


def test_links_out_of_the_folder_are_not_listed(bench: httpx.Client) -> None:
    found = bench.get("/api/files").json()
    assert [file["name"] for file in found["files"]] == ["outside.toml", "people.csv"]
    assert "folder" not in found["folders"]


def test_uploads_are_limited_and_plainly_named(bench: httpx.Client, root: Path) -> None:
    with socket.create_connection(("127.0.0.1", bench.base_url.port or 80)) as raw:
        key, size = bench.headers["authorization"], 3 << 30
        head = f"PUT /api/uploads/big.csv HTTP/1.1\r\nHost: 127.0.0.1:{bench.base_url.port}\r\n"
        raw.sendall(f"{head}Authorization: {key}\r\nContent-Length: {size}\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 413")  # before a byte of the 3 GB was sent
    stream = (b"x" * 100_000 for _ in range(20))  # without a length: counted as it comes
    assert bench.put("/api/uploads/big.csv", content=stream).status_code == 413
    for name in ("..%2Fevil.csv", ".hidden.csv", "page.html", "a%00.csv", "a%5Cb.csv"):
        assert bench.put(f"/api/uploads/{name}", content=b"x").status_code in (404, 422), name
    assert list((root / "workbench" / "uploads").iterdir()) == []
    stored = bench.put("/api/uploads/new.csv", content=b"a,b\n1,2\n").json()
    assert stored["path"] == f"workbench/uploads/{stored['sha256']}/new.csv"


def test_other_addresses_are_refused_and_the_server_imports_no_kernels(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sfumato", "serve", str(tmp_path), "--host", "0.0.0.0", "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "ssh -L" in done.stderr
    program = "import sys, sfumato.web.serve; sys.exit('numba' in sys.modules or 'duckdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
