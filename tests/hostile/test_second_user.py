"""Another user of the machine learns nothing: no file of ours can be read, and no process tells a secret."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfumato.web.access import new_key

OTHER = 65534
FLAT = '{ role = "quasi_identifier", hierarchy = { build = "flat" } }'
RUN = f"""\
version = 1
[data]
path = "people.csv"
[columns]
age = {{ role = "quasi_identifier", hierarchy = {{ build = "interval", widths = [10, 20] }} }}
sex = {FLAT}
ill = {{ role = "sensitive" }}
[search]
system = "cuts"
generations = 3
population = 8
[policy]
k = 1
l = 1
t = 1
uniques = 1
identifying = 1
reason = "a table made for a test"
accept = [{{ rule = "raw", reason = "a table made for a test" }}]
"""
BECOME = """
import json, os, sys
user, given = int(sys.argv[1]), sys.argv[2:]
os.setgroups([])
os.setgid(user)
os.setuid(user)  # the interpreter may be where the other user cannot start it
"""
LOOK = """
found = []
for here, folders, files in os.walk(given[0]):
    for path in (os.path.join(here, name) for name in (*folders, *files)):
        if os.access(path, os.R_OK) and not os.path.islink(path):
            found.append(path)
print(json.dumps(found))
"""
READ = """
try:
    with open(given[0], errors="replace") as stream:
        print(json.dumps(stream.read()))
except OSError:
    print(json.dumps(None))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that everybody may enter, of a user who lets everybody read what they make."""
    if os.getuid() != 0:
        pytest.skip("only root can act as two users")
    folder = Path(tempfile.mkdtemp(prefix="two-users-"))
    folder.chmod(0o755)
    for name in ("temp", "work"):
        (folder / name).mkdir()
        (folder / name).chmod(0o755)
    ages = [(20 + number % 40, "FM"[number % 2], ["flu", "cold", "none"][number % 3]) for number in range(240)]
    (folder / "work" / "people.csv").write_text("age,sex,ill\n" + "".join(f"{a},{s},{i}\n" for a, s, i in ages))
    (folder / "work" / "run.toml").write_text(RUN, "utf-8")
    (folder / "own.txt").touch(0o600)
    yield folder
    shutil.rmtree(folder)


def started(home: Path, *words: str) -> subprocess.Popen[str]:
    """A process of the owner, under the most generous umask."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG")}
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=home / "work",
        env=kept | {"HOME": str(home), "TMPDIR": str(home / "temp")},
        umask=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def done(home: Path, *words: str) -> str:
    with started(home, *words) as process:
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def by_the_other(home: Path, program: str, given: str) -> Any:
    """What a program of the other user finds."""
    return json.loads(done(home, "-c", BECOME + program, str(OTHER), given))


def readable(home: Path, inputs: set[str]) -> set[str]:
    """What the other user can read or list, beside what the owner had laid open."""
    found = by_the_other(home, LOOK, str(home))
    return {str(Path(path).relative_to(home)) for path in found} - inputs


@pytest.mark.published
def test_another_user_reads_nothing_but_what_is_for_everybody(home: Path) -> None:
    inputs = {str(path.relative_to(home)) for path in home.rglob("*")}
    assert readable(home, set()) == inputs - {"own.txt"}  # the look sees what there is to see
    done(home, "-m", "sfumato", "search", "run.toml", "-o", "front")
    done(home, "-m", "sfumato", "search", "run.toml", "-o", "stopped", "--seconds", "0")  # leaves a checkpoint
    assert (home / "work" / ".stopped.state").is_file()
    accept = ["--accept", "uniques=a table made for a test"]
    done(home, "-m", "sfumato", "publish", "front", "--point", "0", "-o", "release", *accept)
    assert (home / ".local/state/sfumato/seal.key").is_file()
    made = {str(path.relative_to(home)) for path in home.rglob("*")} - inputs
    assert len(made) > 15
    seen = readable(home, inputs)
    # Folders on the way may be listed, where the owner's umask says so; what is in them may not be read.
    ways = {name for name in seen if (home / name).is_dir()}
    assert ways <= {".local", ".local/state", ".cache", "work/release", "work/release/public"}, ways
    assert all(name.startswith("work/release/public/") for name in seen - ways), seen - ways


def test_another_user_learns_no_key_of_the_page(home: Path) -> None:
    inputs = {str(path.relative_to(home)) for path in home.rglob("*")}
    with started(home, "-m", "sfumato", "serve", str(home / "work"), "--no-browser", "--port", "0") as process:
        try:
            assert process.stdout is not None
            found = re.search(r"workbench: (http://\S+)/\n", process.stdout.readline())
            assert found
            key = new_key(home / "work" / "workbench", f"{found[1]}/")  # as `sfumato serve --link` makes it
            assert by_the_other(home, READ, str(key.page)) is None
            assert key.text not in by_the_other(home, READ, f"/proc/{process.pid}/cmdline")
            assert by_the_other(home, READ, f"/proc/{process.pid}/environ") is None  # the system refuses it
            answer = httpx.post(f"{found[1]}/api/session", json={"key": key.text}, timeout=60)
            assert answer.status_code == 200
            assert "set-cookie" not in answer.headers  # which other ports would be sent
            headers = {"authorization": f"Bearer {answer.json()['secret']}"}
            assert httpx.post(
                f"{found[1]}/api/studies", json={"path": "people.csv"}, headers=headers, timeout=60
            ).is_success
            seen = readable(home, inputs)
            ways = {name for name in seen if (home / name).is_dir()}
            assert seen - ways == set()
            assert ways <= {".local", ".local/state", ".cache"}, ways
            assert httpx.get(f"{found[1]}/api/studies").status_code in (401, 403)
        finally:
            process.terminate()
            process.wait(30)
