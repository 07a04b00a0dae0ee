"""What a release is made of says the same everywhere: versions, dependencies, licence; the image runs without root."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from tools import sbom

import sfumato as sf

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCKERFILE = (ROOT / "packaging" / "Dockerfile").read_text("utf-8")


def test_one_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    recipe = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text("utf-8"))
    label = re.search(r'image\.version="([^"]+)"', DOCKERFILE)
    assert label is not None
    said = {PROJECT["version"], sf.__version__, citation["version"], recipe["context"]["version"], label[1]}
    assert said == {sf.__version__}
    assert f"## [{sf.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert citation["license"] == PROJECT["license"] == recipe["about"]["license"]


def test_the_conda_recipe_has_the_same_bounds() -> None:
    recipe = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text("utf-8"))
    given = dict(line.split(" ", 1) for line in recipe["requirements"]["run"])
    assert given.pop("python") == PROJECT["requires-python"]
    given["duckdb"] = given.pop("python-duckdb")
    wanted = {Requirement(line).name: Requirement(line).specifier for line in PROJECT["dependencies"]}
    assert {name: Requirement(f"{name}{bounds}").specifier for name, bounds in given.items()} == wanted


def complaints(dockerfile: str) -> list[str]:
    """What is wrong with a Dockerfile, by the rules that matter here; Docker itself is not needed."""
    lines = [line for line in re.sub(r"\\\n", " ", dockerfile).splitlines() if line and not line.startswith("#")]
    words = [line.split(None, 1) for line in lines]
    stages = [number for number, word in enumerate(words) if word[0] == "FROM"]
    last = words[stages[-1] :]
    users = [rest for order, rest in last if order == "USER"]
    found = [] if users and users[-1].split(":")[0].isdigit() and users[-1][0] != "0" else ["runs as root"]
    found += [f"no fixed version: {rest}" for order, rest in words if order == "FROM" and not re.search(r":\d", rest)]
    found += ["ADD" for order, _ in words if order == "ADD"]
    found += [f"a shell as {order}" for order, rest in last if order in ("ENTRYPOINT", "CMD") and rest[0] != "["]
    found += (
        ["work after USER" for order, _ in last[last.index(["USER", users[-1]]) :] if order == "RUN"] if users else []
    )
    found += ["pip keeps its cache" for _, rest in words if "pip install" in rest and "--no-cache-dir" not in rest]
    known = ("FROM", "WORKDIR", "COPY", "RUN", "LABEL", "ENV", "USER", "HEALTHCHECK", "ENTRYPOINT", "CMD", "ADD")
    return [*found, *(f"unknown: {order}" for order, _ in words if order not in known)]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("USER 10001:10001\n", ""), "runs as root"),
        (("python:3.12-slim AS", "python AS"), "no fixed version: python AS build"),
        (("COPY src", "ADD src"), "ADD"),
        (('["sfumato"]', "sfumato"), "a shell as ENTRYPOINT"),
        (("--no-cache-dir ", ""), "pip keeps its cache"),
        (("WORKDIR /tables", "WORKDIRR /tables"), "unknown: WORKDIRR"),
    ],
)
def test_a_bad_dockerfile_is_noticed(change: tuple[str, str], complaint: str) -> None:
    assert complaint in complaints(DOCKERFILE.replace(*change))


def test_the_image_runs_without_root() -> None:
    assert complaints(DOCKERFILE) == []
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, ROOT / "packaging/Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    for line in re.findall(r"^COPY ([^-].*)$", DOCKERFILE, re.MULTILINE):
        allowed = (ROOT / ".dockerignore").read_text("utf-8")
        assert all((ROOT / name).exists() and f"!{name}\n" in allowed for name in line.split()[:-1]), line


def test_the_bill_of_materials() -> None:
    found = sbom.bill()
    names = {part["name"] for part in found["components"]}
    assert {"numpy", "duckdb", "numba", "llvmlite"} <= names, "dependencies of dependencies are in it"
    assert "fastapi" not in names
    assert "fastapi" in {part["name"] for part in sbom.bill(["web"])["components"]}
    references = {part["bom-ref"] for part in found["components"]} | {found["metadata"]["component"]["bom-ref"]}
    assert all(set(entry["dependsOn"]) <= references for entry in found["dependencies"])
    assert sbom.bill() == found
