"""The certificate in the public part of a release: what a recipient needs to check it without the private part.

It holds nothing that is not in the public files, except the figures of the policy and how the data file is read. It
follows from the manifest and the run file of the release, so `verify` can draw it again and compare it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.data.cells import cleaned
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, EngineOptions, Role
from sfumato.errors import DataError, InputError, SfumatoError
from sfumato.measures.registry import DISTINCT_L, T_CLOSENESS, K
from sfumato.release import checker
from sfumato.release.manifest import CERTIFICATE, PUBLIC, Content
from sfumato.study import Study

READING = ("format", "separator", "quote", "decimal", "header", "names", "trim", "na")
ON_SOURCE = "it counts persons or households, whose numbers are not in the file"


def certificate_of(
    content: Content, study: Study, own: Study, report: Mapping[str, Any], files: Mapping[str, str]
) -> str:
    """Return the certificate as JSON.

    `study` is the one that was published, `own` the run file that reads the released file, `report` the figures in the
    report for readers of the file, and `files` the digests of all other public files.
    """
    reading = own.data.model_dump(mode="json", exclude_none=True)
    certificate = {
        "format": checker.FORMAT,
        "version": checker.VERSION,
        "data": Path(content["data"]).name,
        "reading": {name: reading[name] for name in READING if name in reading},
        "columns": [_column(own, entry) for entry in content["dictionary"]["columns"]],
        "figures": _figures(content, study, own),
        "report": dict(report),
        "files": dict(sorted(files.items())),
    }
    return json.dumps(certificate, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def public_digests(files: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of the public files among those of a release, by their names in the public folder."""
    inside = f"{PUBLIC}/"
    return {
        name.removeprefix(inside): digest
        for name, digest in files.items()
        if name.startswith(inside) and name != CERTIFICATE
    }


def _column(own: Study, entry: Mapping[str, Any]) -> dict[str, str]:
    """Describe a column as far as the figures need it: its role, its missing values, the distance of its values."""
    name, role = str(entry["name"]), str(entry["role"])
    column = {"name": name, "role": role}
    if role == Role.QUASI_IDENTIFIER:
        column["missing"] = own.missing_rule(name)
    if role == Role.SENSITIVE:
        settings = own.columns.get(name)
        column["distance"] = str((settings and settings.distance) or "equal")
        if settings is not None and column["distance"] == "ordered" and settings.hierarchy is None:
            column["distance"] = "numbers"  # without a hierarchy the order is that of the values themselves
    return column


def _figures(content: Content, study: Study, own: Study) -> dict[str, dict[str, Any]]:
    """Return k, l and t as the manifest states them, and how each can be compared with the rows of the file."""
    stated, figures = content["figures"], {}
    sensitive = own.named(Role.SENSITIVE)
    harmless = any(own.columns[name].harmless is not None for name in sensitive)
    numbered = {name: _column(own, {"name": name, "role": "sensitive"})["distance"] for name in sensitive}
    reasons = {
        "k": "",
        "l": "some sensitive values are declared harmless, and which ones is not public" if harmless else "",
        "t": ""
        if {*numbered.values()} <= {"equal", "numbers"}
        else "the hierarchy of a sensitive column is not public",
    }
    for short, measure in (("k", K), ("l", DISTINCT_L), ("t", T_CLOSENESS)):
        entry = stated.get(measure.name)
        if not isinstance(entry, Mapping) or entry.get("value") is None:
            continue
        counted = entry["measured_on"] == "source"
        if counted and short == "t":
            continue  # a figure of persons in full precision says more of the source than the file does
        why = "the run file gives parameters to this measure" if measure.name in study.measures else reasons[short]
        figures[short] = {"value": entry["value"], "compare": "at least" if counted else "equal"}
        figures[short] |= {"counts": content["unit"]["noun"] if counted else "record"} | ({"why": why} if why else {})
    return figures


def check_public(folder: Path, engine: str, options: EngineOptions) -> checker.Outcome:
    """Check the public part of a release as `checker.py` does. Figures of Parquet files are recomputed as well."""

    def rows(certificate: Mapping[str, Any], parts: Sequence[Path]) -> Iterable[tuple[checker.Row, int]]:
        reading = certificate["reading"]
        path = parts[0] if parts[0].name == certificate["data"] else parts[0].parent
        settings = DataSettings(path=str(path.absolute()), format="parquet", na=reading["na"], trim=reading["trim"])
        with open_engine(engine, options) as opened:
            source = open_source(settings, Path())
            names = [column["name"] for column in certificate["columns"]]
            if list(source.names) != names:
                raise DataError("it has other columns than the certificate", expected="the columns of the certificate")
            opened.attach(source, "certified")
            cells = ", ".join(
                f"coalesce({cleaned(source, column)}, '') AS c{i}" for i, column in enumerate(source.columns)
            )
            places = ", ".join(f"c{i}" for i in range(len(names)))
            for *row, count in opened.rows(
                f"SELECT {places}, count(*) AS n FROM (SELECT {cells} FROM certified) AS t GROUP BY {places}"
            ):
                yield tuple(map(str, row)), int(count)

    def read(certificate: Mapping[str, Any], parts: Sequence[Path]) -> Iterable[tuple[checker.Row, int]]:
        try:
            yield from rows(certificate, parts)
        except SfumatoError as error:
            raise checker.CheckError(error.what) from error

    try:
        return checker.check(folder, read)
    except checker.CheckError as error:
        raise InputError(str(error), expected="a release folder, or the public part of one") from None
