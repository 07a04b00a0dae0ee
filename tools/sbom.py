"""A bill of materials (CycloneDX 1.6, JSON) of an installation: what `sfumato` and its dependencies are made of.

    python -m tools.sbom > dist/sbom.cdx.json

lists what is installed in this environment and needed by Sfumato without extras; names of extras after it add them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sfumato.version import __version__

ROOT = "sfumato"


def needed(extras: Iterable[str] = ()) -> dict[str, list[str]]:
    """Every package that is installed and needed, with what it needs itself."""
    found: dict[str, list[str]] = {}
    ahead: list[tuple[str, tuple[str, ...]]] = [(ROOT, tuple(extras))]
    while ahead:
        name, wanted = ahead.pop()
        if name in found:
            continue
        found[name] = []
        for line in metadata.requires(name) or []:
            requirement = Requirement(line)
            marker = requirement.marker
            if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                continue
            other = canonicalize_name(requirement.name)
            try:
                metadata.version(other)
            except metadata.PackageNotFoundError:
                continue  # for another system or another Python
            found[name].append(other)
            ahead.append((other, tuple(requirement.extras)))
    return found


def component(name: str) -> dict[str, Any]:
    """One package: name, version, licence as its metadata state it."""
    about = metadata.metadata(name)
    version = __version__ if name == ROOT else about["Version"]
    reference = f"pkg:pypi/{name}@{version}"
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": reference,
    }
    said = about.get("License-Expression") or next(
        (line.rsplit(" :: ", 1)[-1] for line in about.get_all("Classifier") or [] if line.startswith("License ::")), ""
    )
    if about.get("License-Expression"):
        entry["licenses"] = [{"expression": said}]
    elif said:
        entry["licenses"] = [{"license": {"name": said}}]
    return entry


def bill(extras: Iterable[str] = ()) -> dict[str, Any]:
    """The bill of materials. It has no time and no serial number: the same installation gives the same bytes."""
    graph = needed(extras)
    parts = {name: component(name) for name in sorted(graph)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": parts[ROOT] | {"type": "application"}},
        "components": [part for name, part in parts.items() if name != ROOT],
        "dependencies": [
            {"ref": parts[name]["bom-ref"], "dependsOn": sorted(parts[other]["bom-ref"] for other in set(graph[name]))}
            for name in sorted(graph)
        ],
    }


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1:]), indent=1))
