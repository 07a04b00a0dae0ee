#!/usr/bin/env python3
"""A check of the public part of a release, for a recipient who has nothing else. It needs only Python 3.11.

    python checker.py public/

The folder holds a certificate, `certificate.json`: the digests of all other files, how the data file is read, the roles
of its columns, and the figures that the publisher states. The check compares the digests. From a data file in CSV (also
compressed by gzip) it recomputes the number of records, k, the smallest number of sensitive values (l) and the largest
distance from the whole file (t). It also compares the data file with the labels in the data dictionary. What cannot be
recomputed is listed.

A person who can write to the folder can also write a certificate that agrees with it. The last line is therefore the
digest of the certificate: compare it with the digest that the publisher states elsewhere.

Exit codes: 0 if everything that was recomputed agrees, 4 if something differs, 2 if the folder cannot be checked.

`sfumato verify public/` runs this same file, and also recomputes the figures of Parquet files.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CERTIFICATE = "certificate.json"
FORMAT, VERSION = "sfumato-certificate", 1
REPORT, DICTIONARY = "external.html", "dictionary.json"
NEEDED = (REPORT, DICTIONARY, "dictionary.html", "croissant.json", "ddi.xml")
MOST_BYTES = 64 << 20  # of a JSON file or a page, but not of the data file
SMALL = 10  # smaller counts are not stated in a public file
KEY, SENSITIVE = "quasi_identifier", "sensitive"
MISSING = ""  # the cell of a missing value
BLOCK = re.compile(r'<script type="application/json" id="figures">(.*?)</script>', re.DOTALL)
KINDS = {"whole": r"-?(0|[1-9][0-9]*)", "number": r"-?(0|[1-9][0-9]*)([.][0-9]+)?", "date": r"[0-9]{4}(-[0-9]{2}){2}"}
WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError)

Row = tuple[str, ...]
Reader = Callable[[Mapping[str, Any], Sequence[Path]], Iterable[tuple[Row, int]]]


class CheckError(Exception):
    """An error for a folder or a file that cannot be checked."""


@dataclass
class Outcome:
    """The result of a check: the differences, what was compared, what was not, and the digest of the certificate."""

    differences: list[tuple[str, str]] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    records: int | None = None
    digest: str = ""

    def expect(self, agrees: bool, file: str, what: str) -> None:
        """Note a difference unless something agrees."""
        if not agrees:
            self.differences.append((file, what))


def check(folder: Path, read: Reader | None = None) -> Outcome:
    """Check a public folder. `read` gives the rows of a Parquet file, each with how often it occurs."""
    outcome = Outcome()
    path = folder / CERTIFICATE
    if not path.is_file() or path.is_symlink():
        raise CheckError(f"{folder} has no {CERTIFICATE}")
    outcome.digest = digest(path)
    try:
        certificate = read_json(path)
        if certificate["format"] != FORMAT or certificate["version"] != VERSION:
            raise CheckError("it has another format")
        parts = _check_files(outcome, folder, certificate)
    except (CheckError, OSError, *WRONG) as error:
        why = str(error) if isinstance(error, CheckError) else type(error).__name__
        outcome.differences.append((CERTIFICATE, f"it cannot be read as a certificate ({why})"))
        return outcome
    if parts:
        try:
            dictionary = _check_texts(outcome, folder, certificate)
            _check_data(outcome, certificate, dictionary, parts, read)
        except (CheckError, OSError, EOFError, zlib.error, csv.Error, *WRONG) as error:
            what = str(error) if isinstance(error, CheckError) else f"it cannot be measured ({type(error).__name__})"
            outcome.differences.append((str(certificate["data"]), what))
    outcome.not_compared.append("the sentences of the pages, the catalogue files, and shares of removed records")
    return outcome


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    sha = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()


def read_json(path: Path) -> Any:
    """Return what a JSON file of a limited size holds."""
    return json.loads(_text(path))


def _text(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        raise CheckError(f"{path.name} is larger than {MOST_BYTES >> 20} megabytes")
    return path.read_text(encoding="utf-8")


def _check_files(outcome: Outcome, folder: Path, certificate: Mapping[str, Any]) -> list[Path]:
    """Compare the files of the folder with the certificate. Return the data file, or its parts, if it is complete."""
    stated, data = certificate["files"], certificate["data"]
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")} - {CERTIFICATE}
    whole = {name for name in stated if name == data or name.startswith(f"{data}/")}
    for name in sorted({*NEEDED} - set(stated)):
        outcome.differences.append((name, "the certificate does not list it"))
    outcome.expect(bool(whole), str(data), "the certificate does not list the data file")
    for name in sorted(names - set(stated)):
        if name != data or (folder / name).is_symlink() or not (folder / name).is_dir():
            outcome.differences.append((name, "it is not part of the release"))
    found = []
    for name in sorted(stated):
        path = folder / name
        if name not in names or path.is_symlink() or not path.is_file():
            outcome.differences.append((name, "it is missing"))
        elif digest(path) != stated[name]:
            outcome.differences.append((name, "its bytes have changed"))
        else:
            found.append(name)
    outcome.compared.append("digests")
    complete = {*whole, *NEEDED} <= set(found)
    return [folder / name for name in sorted(whole)] if complete else []


def _check_texts(outcome: Outcome, folder: Path, certificate: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compare the figures of the report, and the columns of the dictionary, with the certificate."""
    match = BLOCK.search(_text(folder / REPORT))
    same = match is not None and json.loads(match[1]) == certificate["report"]
    outcome.expect(same, REPORT, "its figures are not those of the certificate")
    dictionary: Mapping[str, Any] = read_json(folder / DICTIONARY)
    described = [(column["name"], column["role"]) for column in dictionary["columns"]]
    stated = [(column["name"], column["role"]) for column in certificate["columns"]]
    outcome.expect(described == stated, DICTIONARY, "its columns are not those of the certificate")
    outcome.expect(dictionary["file"] == certificate["data"], DICTIONARY, "it describes another file")
    return dictionary


def _check_data(
    outcome: Outcome,
    certificate: Mapping[str, Any],
    dictionary: Mapping[str, Any],
    parts: Sequence[Path],
    read: Reader | None,
) -> None:
    """Read the data file once, and compare everything that follows from its rows."""
    kind = str(certificate["reading"]["format"])
    if kind != "csv" and (read is None or kind != "parquet"):
        names = ", ".join(["the number of records", *certificate["figures"], "the dictionary"])
        outcome.not_compared.append(f"{names}: the data file is a {kind} file, of which only the digest was compared")
        return
    columns: list[Mapping[str, Any]] = certificate["columns"]
    used = [place for place, column in enumerate(columns) if column["role"] in (KEY, SENSITIVE)]
    groups: Counter[Row] = Counter()
    values: list[Counter[str]] = [Counter() for _ in columns]
    rows = csv_rows(certificate, parts) if read is None or kind == "csv" else read(certificate, parts)
    for row, count in rows:
        groups[tuple(row[place] for place in used)] += count
        for place, cell in enumerate(row):
            values[place][cell] += count
    outcome.records = groups.total()
    released = certificate["report"].get("released", outcome.records)
    few = isinstance(released, str) and 0 < outcome.records < SMALL
    outcome.expect(few or released == outcome.records, parts[0].name, f"it has {outcome.records} records")
    outcome.compared.append("counts")
    Figures(certificate, [columns[place] for place in used], groups).compare(outcome)
    _check_labels(outcome, certificate, dictionary, values)


def csv_rows(certificate: Mapping[str, Any], parts: Sequence[Path]) -> Iterator[tuple[Row, int]]:
    """Read the rows of a CSV file, cell by cell. A missing value is the empty text."""
    reading = certificate["reading"]
    names = [column["name"] for column in certificate["columns"]]
    missing, trim, header = set(reading["na"]), reading["trim"], reading["header"]
    how: dict[str, Any] = {"delimiter": reading["separator"]}
    how |= {"quotechar": reading["quote"]} if reading["quote"] else {"quoting": csv.QUOTE_NONE, "quotechar": None}
    csv.field_size_limit(1 << 24)  # a released text may be longer than Python expects
    for part in parts:
        opened = gzip.open if part.suffix == ".gz" else open
        with opened(part, "rt", encoding="utf-8", newline="") as stream:
            for number, cells in enumerate(csv.reader(stream, **how)):
                if number == 0 and header:
                    if not reading.get("names") and [cell.strip() for cell in cells] != names:
                        raise CheckError("its first line does not hold the names of the columns")
                    continue
                row = cells or [MISSING]  # an empty line is one empty cell
                if len(row) != len(names):
                    raise CheckError(f"line {number + 1} has {len(row)} cells, not {len(names)}")
                plain = (cell.strip(" ") for cell in row) if trim else row
                yield tuple(MISSING if cell in missing else cell for cell in plain), 1


@dataclass
class Figures:
    """The figures of the groups of equal key values. In `columns` are those of a group's cells, keys and sensitive."""

    certificate: Mapping[str, Any]
    columns: Sequence[Mapping[str, Any]]
    groups: Counter[Row]

    def compare(self, outcome: Outcome) -> None:
        """Compare every stated figure, or state why it cannot be recomputed."""
        keys = [place for place, column in enumerate(self.columns) if column["role"] == KEY]
        classes: dict[Row, Counter[Row]] = {}
        for cells, count in self.groups.items():
            classes.setdefault(tuple(cells[place] for place in keys), Counter())[cells] += count
        wild = [at for at, place in enumerate(keys) if self.columns[place].get("missing") == "wildcard"]
        matching = any(group[at] == MISSING for group in classes for at in wild)
        for name, stated in self.certificate["figures"].items():
            why = str(stated.get("why", ""))
            if matching and not why:
                why = "a missing key value counts as equal to any value"
            found = None if why else getattr(self, f"_{name}")(list(classes.values()))
            if found is None:
                outcome.not_compared.append(f"{name}: {why or 'the certificate does not describe how'}")
                continue
            outcome.compared.append(name)
            least, value = stated["compare"] == "at least", stated["value"]
            agrees = found >= value if least else math.isclose(found, value, rel_tol=1e-9, abs_tol=1e-9)
            more = "at least " if least else ""
            outcome.expect(
                agrees,
                str(self.certificate["data"]),
                f"its {name} is {found:.10g}, not {more}{value:.10g} as certified",
            )

    def _k(self, classes: Sequence[Counter[Row]]) -> float:
        return min((rows.total() for rows in classes), default=0)

    def _l(self, classes: Sequence[Counter[Row]]) -> float | None:
        return min((_fewest(_cells(rows, place)) for place in self._sensitive for rows in classes), default=None)

    def _t(self, classes: Sequence[Counter[Row]]) -> float | None:
        distances = [self._farthest(classes, place) for place in self._sensitive]
        return max((one for one in distances if one is not None), default=None) if None not in distances else None

    @property
    def _sensitive(self) -> list[int]:
        return [place for place, column in enumerate(self.columns) if column["role"] == SENSITIVE]

    def _farthest(self, classes: Sequence[Counter[Row]], place: int) -> float | None:
        """Return the largest distance of a class from the file in one column: over all values, and over known ones."""
        distance = {"equal": _equal, "numbers": _ordered}.get(self.columns[place]["distance"])
        if distance is None:
            return None
        decimal = self.certificate["reading"].get("decimal") or "."
        held = [_cells(rows, place) for rows in classes]
        known = [one for one in map(_known, held) if one]
        whole, rest = (sum(some, Counter()) for some in (held, known))
        order = sorted(whole, key=lambda value: (value == MISSING, *_by_number(value, decimal)))
        found = [distance(one, whole, order) for one in held]
        present = [value for value in order if value != MISSING]
        return max([*found, *(distance(one, rest, present) for one in known)], default=0.0)


def _cells(rows: Counter[Row], place: int) -> Counter[str]:
    """Count the values of one column in a class."""
    counted: Counter[str] = Counter()
    for cells, count in rows.items():
        counted[cells[place]] += count
    return counted


def _known(values: Counter[str]) -> Counter[str]:
    return Counter({value: count for value, count in values.items() if value != MISSING})


def _fewest(values: Counter[str]) -> float:
    """Return the number of different values of a class. A class without a known value is exempt."""
    known = _known(values)
    if not known:
        return math.inf
    return len(known)


def _equal(some: Counter[str], whole: Counter[str], order: Sequence[str]) -> float:
    """Return half the sum of the differences between two distributions."""
    few, all_ = some.total(), whole.total()
    return sum(abs(some[value] / few - whole[value] / all_) for value in order) / 2


def _ordered(some: Counter[str], whole: Counter[str], order: Sequence[str]) -> float:
    """Return the earth mover's distance of two distributions. Neighbouring values are equally far apart."""
    few, all_ = some.total(), whole.total()
    ahead = total = 0.0
    for value in order:
        ahead += some[value] / few - whole[value] / all_
        total += abs(ahead)
    return total / max(len(order) - 1, 1)


def _by_number(value: str, decimal: str) -> tuple[bool, float, str]:
    """Sort numbers by value, then other values by letter."""
    try:
        number = float(value.replace(",", ".") if decimal == "," else value)
    except ValueError:
        number = math.inf
    return (not math.isfinite(number), number if math.isfinite(number) else 0.0, value)


def _check_labels(
    outcome: Outcome,
    certificate: Mapping[str, Any],
    dictionary: Mapping[str, Any],
    values: Sequence[Counter[str]],
) -> None:
    """Compare what the dictionary says of the labels and the kind of each column with the cells of the file."""
    decimal = certificate["reading"].get("decimal") or "."
    typed = certificate["reading"]["format"] != "csv"
    for column, held in zip(dictionary["columns"], values, strict=True):
        known = set(_known(held))
        listed = column["recode"].values() if "recode" in column else column.get("labels")
        agrees = listed is None or set(listed) == known
        outcome.expect(agrees, DICTIONARY, f"its labels of {column['name']} are not those of the file")
        if "missing" not in column and listed is not None:
            outcome.expect(MISSING not in held, DICTIONARY, f"it does not mention missing values of {column['name']}")
        outcome.expect(
            column["done"] != "hidden" or len(held) <= 1, DICTIONARY, f"it says that {column['name']} is hidden"
        )
        kind = column.get("kind")
        agrees = typed or kind is None or kind == _kind(known, decimal)
        outcome.expect(agrees, DICTIONARY, f"its kind of {column['name']} is not that of the file")
    outcome.compared.append("dictionary")


def _kind(values: Iterable[str], decimal: str) -> str:
    """Return the narrowest kind that all values have."""
    values = list(values)
    for kind, pattern in KINDS.items():
        if values and all(re.fullmatch(pattern.replace("[.]", f"[{decimal}]"), value) for value in values):
            return kind
    return "text"


def lines_of(folder: Path, outcome: Outcome) -> list[str]:
    """Return what a check found as lines of text."""
    if outcome.differences:
        lines = [f"{folder} does not agree with its certificate:"]
        lines += [f"  {file}: {what}" for file, what in outcome.differences]
    else:
        lines = [f"{folder} agrees with its certificate: {', '.join(outcome.compared)}."]
    lines += [f"not recomputed: {what}" for what in outcome.not_compared]
    return [
        *lines,
        f"SHA-256 of the certificate: {outcome.digest}",
        "Compare it with the one that the publisher states: a certificate proves only that the files belong together.",
    ]


def main(arguments: Sequence[str]) -> int:
    """Check the folder that a command line names."""
    if len(arguments) != 1:
        print("usage: python checker.py public/", file=sys.stderr)
        return 2
    try:
        outcome = check(Path(os.fspath(arguments[0])))
    except (CheckError, OSError) as error:
        print(f"error: {error}. Name the public folder of a release.", file=sys.stderr)
        return 2
    print("\n".join(lines_of(Path(arguments[0]), outcome)))
    return 4 if outcome.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
