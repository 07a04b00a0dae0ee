"""Check packages against the recorded advisories, without a network: what is installed, and what the lock names.

Also that no lower bound in pyproject.toml allows a version with a known hole. Exit 1 names what is wrong.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def holes(versions: Mapping[str, str], advisories: Iterable[Mapping[str, str]], where: str) -> list[str]:
    """A sentence for each package that is older than the version without a hole.

    >>> holes({"h11": "0.14"}, [{"package": "h11", "id": "X-1", "fixed": "0.16", "about": "smuggling"}], "locked")
    ['locked: h11 0.14 has X-1 (smuggling); 0.16 has not']
    """
    found = []
    for one in advisories:
        version = versions.get(canonicalize_name(one["package"]))
        if version is not None and Version(version) < Version(one["fixed"]):
            found.append(
                f"{where}: {one['package']} {version} has {one['id']} ({one['about']}); {one['fixed']} has not"
            )
    return found


def installed() -> dict[str, str]:
    return {canonicalize_name(one.metadata["Name"]): one.version for one in distributions() if one.metadata["Name"]}


def locked(text: str) -> dict[str, str]:
    """The versions of a lock file.

    >>> locked("h11==0.16.0\\n# a remark\\n")
    {'h11': '0.16.0'}
    """
    pairs = [line.split("==") for line in text.split() if "==" in line]
    return {canonicalize_name(name): version for name, version in pairs}


def lowest(project: Mapping[str, Any]) -> dict[str, str]:
    """The lowest version that each declared dependency allows; one without a bound allows any."""
    listed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    found: dict[str, str] = {}
    for text in listed:
        requirement = Requirement(text)
        bounds = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==", "~=")]
        found[canonicalize_name(requirement.name)] = str(max(bounds, default=Version("0")))
    return found


def main() -> int:
    advisories = json.loads((ROOT / ".ci/advisories.json").read_text("utf-8"))["advisories"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = holes(installed(), advisories, "installed")
    found += holes(locked((ROOT / ".ci/requirements.lock").read_text("utf-8")), advisories, "locked")
    found += holes(lowest(project), advisories, "allowed by pyproject.toml")
    print("\n".join(found) or f"no known hole: {len(advisories)} advisories", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
