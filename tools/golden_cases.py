"""The cases of the golden corpus: small tables that are made here, and what is done with each of them.

Nothing of Sfumato is imported here: tables and run files are written as a user would write them.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Settings = dict[str, Any]
Table = Callable[[Path], Settings]  # writes its files into a folder, and returns the sections of a run file
WHY = "a small table that a script made"
POLICY: Settings = {"k": 1, "l": 1, "t": 1.0, "left_out": 1.0, "uniques": 1.0, "identifying": 1.0, "reason": WHY}
POLICY["accept"] = [{"rule": "raw", "reason": WHY}]
SICK = ("asthma", "cold", "flu", "gout", "ulcer")
JOBS = ("clerk", "clerk", "clerk", "cook", "cook", "driver", "nurse", "teacher")
ADULT = Path(__file__).parents[1] / "src" / "sfumato" / "samples" / "adult"


RUN = ("--run", "run.toml")
ACCEPTED = ("--accept", f"k={WHY}", "--accept", f"uniques={WHY}", "--accept", f"response={WHY}")
ASKED = (("ask",), ("ask", "--min-k", "3"))


@dataclass(frozen=True)
class Case:
    """What is searched for in a table: further sections of its run file, and further commands after the usual ones.

    With `solver` the search goes through an iterative solver, so that its last digits differ between machines: figures
    are compared to 1e-6, and files drawn with them by their number of rows. `audit`, `search` and `released` say which
    of the usual commands are run: a table is audited once, and where only the search differs nothing is published.
    """

    system: str
    name: str
    table: Table
    sections: Settings
    more: tuple[tuple[str, ...], ...] = ()
    publish: tuple[str, ...] = ()
    choices: tuple[tuple[str, ...], ...] = (
        ("pick",),
        ("pick", "--knee"),
        ("pick", "--max-loss", "0.5"),
        ("ask", "--min-k", "3"),
    )
    solver: bool = False
    quick: bool = False
    audit: bool = False
    search: bool = True
    released: bool = True

    @property
    def title(self) -> str:
        return f"{self.system}/{self.name}"


def draw(seed: int) -> Callable[[Sequence[Any]], Any]:
    """A way to choose that is the same under every version of Python: only `random()` is promised to stay."""
    numbers = random.Random(seed)
    return lambda values: values[int(numbers.random() * len(values))]


def write_rows(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def roles(**changed: Settings | None) -> Settings:
    """The columns of the small table; a column that is given as None is not in it."""
    declared: dict[str, Any] = {
        "name": {"role": "identifier"},
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20, 40]}},
        "town": {"role": "quasi_identifier", "hierarchy": {"build": "prefix"}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "job": {"role": "sensitive"},
        "ill": {"role": "sensitive"},
        "income": {"role": "other", "round": 50.0},
    } | changed
    return {name: column for name, column in declared.items() if column is not None}


def people(count: int, seed: int, *, gaps: bool = False) -> list[list[Any]]:
    """A header and rows of people; with gaps, some ages, sexes and illnesses are not known."""
    choose = draw(seed)
    rows: list[list[Any]] = [["name", "age", "town", "sex", "job", "ill", "income"]]
    for number in range(count):
        young = choose((True, True, False))
        age: Any = choose(range(18, 45)) if young else choose(range(45, 80))
        sex: Any = choose("FM")
        ill: Any = choose(SICK[:3] if young else SICK)
        if gaps:
            age = choose((age,) * 14 + ("?",))
            sex = choose((sex,) * 11 + ("?",))
            ill = choose((ill,) * 20 + ("",))
        town = f"{choose('12')}{choose('0123')}{choose('05')}"
        rows.append([f"p{number:04d}", age, town, sex, choose(JOBS), ill, 10 * choose(range(10, 90))])
    return rows


def small(folder: Path, count: int = 160) -> Settings:
    write_rows(folder / "people.csv", people(count, 7))
    write_rows(folder / "others.csv", people(90, 8))  # to apply a plan to
    return {"data": {"path": "people.csv"}, "columns": roles()}


def weights(folder: Path) -> Settings:
    choose = draw(9)
    rows = people(160, 7)
    rows = [[*row, choose((1, 1.5, 2, 7.25)) if at else "weight"] for at, row in enumerate(rows)]
    write_rows(folder / "people.csv", rows)
    return {"data": {"path": "people.csv"}, "columns": roles(weight={"role": "weight"})}


def missing(rule: str) -> Table:
    def table(folder: Path) -> Settings:
        write_rows(folder / "people.csv", people(160, 11, gaps=True))
        return {"data": {"path": "people.csv", "na": ["?"], "missing": rule}, "columns": roles()}

    return table


def population(folder: Path) -> Settings:
    write_rows(folder / "everyone.csv", people(1200, 7))
    write_rows(folder / "people.csv", people(160, 7))  # the first rows of everyone
    return {"data": {"path": "people.csv"}, "population": {"path": "everyone.csv"}, "columns": roles()}


def visits(count: int, seed: int, *, houses: bool = False) -> list[list[Any]]:
    """Several rows of each person, whose illness changes and whose other values stay."""
    choose = draw(seed)
    rows: list[list[Any]] = [["person", *(["house"] if houses else []), *people(0, 0)[0][1:]]]
    for number, row in enumerate(people(count, seed)[1:]):
        for _ in range(choose((1, 1, 2, 4))):
            house = [f"h{number // 2:03d}"] if houses else []
            rows.append([f"v{number:04d}", *house, *row[1:5], choose(SICK), row[6]])
    return rows


def units(folder: Path) -> Settings:
    write_rows(folder / "visits.csv", visits(90, 13))
    return {"data": {"path": "visits.csv"}, "columns": roles(name=None, person={"role": "unit"})}


def households(folder: Path) -> Settings:
    write_rows(folder / "visits.csv", visits(90, 13, houses=True))
    declared: Settings = {"person": {"role": "unit"}, "house": {"role": "household"}}
    return {"data": {"path": "visits.csv"}, "columns": roles(name=None, **declared)}


def labelled(folder: Path) -> Settings:
    """A file of SPSS with labels of columns and values, and a code that means missing."""
    import pandas as pd
    import pyreadstat

    head, *rows = people(160, 17, gaps=True)
    sexes = {"F": 2.0, "M": 1.0, "?": -9.0}
    frame = pd.DataFrame(rows, columns=head)
    frame["sex"] = [sexes[row[3]] for row in rows]
    frame["age"] = [None if row[1] == "?" else float(row[1]) for row in rows]
    frame["job"] = [float(JOBS.index(row[4])) for row in rows]
    frame["income"] = frame["income"].astype(float)
    pyreadstat.write_sav(
        frame,
        folder / "people.sav",
        file_label="Made people",
        column_labels={"sex": "Sex of the person", "job": "What the person does"},
        variable_value_labels={
            "sex": {1: "male", 2: "female", -9: "refused"},
            "job": {JOBS.index(name): name for name in JOBS},
        },
        missing_ranges={"sex": [-9]},
        variable_measure={"sex": "nominal", "income": "scale"},
    )
    return {"data": {"path": "people.sav"}, "columns": roles(income={"role": "other", "round": 50.0})}


def adult(folder: Path, count: int = 400) -> Settings:
    """The first rows of the bundled sample, with its hierarchies."""
    names = "age workclass fnlwgt education education-num marital-status occupation relationship race sex"
    names += " capital-gain capital-loss hours-per-week native-country salary-class"
    known = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country", "salary-class")
    with gzip.open(ADULT / "adult.data.gz", "rt", encoding="utf-8") as file:
        (folder / "adult.data").write_text("".join(next(file) for _ in range(count)), "utf-8")
    (folder / "hierarchies").mkdir()
    for name in known:
        (folder / "hierarchies" / f"{name}.csv").write_bytes((ADULT / "hierarchies" / f"{name}.csv").read_bytes())
    columns: Settings = {name: {"role": "drop"} for name in names.split()} | {"occupation": {"role": "sensitive"}}
    columns |= {
        name: {"role": "quasi_identifier", "hierarchy": {"path": f"hierarchies/{name}.csv", "public": True}}
        for name in known
    }
    data = {"path": "adult.data", "header": False, "names": names.split(), "na": ["?"]}
    return {"data": data, "columns": columns}


def survey(name: str, seed: int, folder: Path, *, houses: bool = False, gaps: bool = False, w: bool = False) -> None:
    """People of six towns; most soldiers live in the first. With houses, those of a household are in one town."""
    choose = draw(seed)
    more = (["house"] if houses else []) + (["weight"] if w else [])
    rows: list[list[Any]] = [["age", "sex", "town", "job", *more]]
    seats = dict.fromkeys("ABCDEF", 0)
    for _ in range(240):
        soldier = choose((True, False, False, False, False))
        town = "A" if soldier and choose((True, True, True, False)) else choose("ABCDEF")
        age: Any = choose(range(18, 25)) if soldier else choose(range(18, 60))
        age = choose((age,) * 19 + ("",)) if gaps else age
        seats[town] += 1
        own = ([f"{town}{seats[town] // 2}"] if houses else []) + ([choose((1, 2.5, 4))] if w else [])
        rows.append([age, choose((1, 2)), town, 55 if soldier else 11, *own])
    write_rows(folder / name, rows)


def towns(*, houses: bool = False, gaps: bool = False, weighted: bool = False) -> Table:
    def table(folder: Path) -> Settings:
        survey("survey.csv", 1, folder, houses=houses, gaps=gaps, w=weighted)
        survey("census.csv", 2, folder)
        columns = {"columns": {"weight": {"role": "weight"}}} if weighted else {}
        return {"data": {"path": "survey.csv"}, "groups": group_settings(houses=houses)} | columns

    return table


def group_settings(*, houses: bool = False) -> Settings:
    return {
        "other_columns": "withhold" if houses else "release",
        "area": ["town"],
        "auxiliary": [{"path": "census.csv"}],
        "vital": {"soldiers": [{"job": "55*"}]},
        "attributes": {"age": {"column": "age", "ordinal": True}, "sex": {"column": "sex"}},
        "attack": {"runs": 1, "seeds": 2},
        "protect": {
            "attackers": ["exact"],
            "sealed_attackers": [],
            "levels": 2,
            "known_seeds": 1,
            "fresh_seeds": 1,
            "test_seed": 1,
        },
    } | ({"unit": "house"} if houses else {})


def labelled_towns(folder: Path) -> Settings:
    import pandas as pd
    import pyreadstat

    survey("survey.csv", 1, folder)
    survey("census.csv", 2, folder)
    frame = pd.read_csv(folder / "survey.csv", dtype={"town": str})
    frame[["age", "sex", "job"]] = frame[["age", "sex", "job"]].astype(float)
    labels = {"sex": {1: "male", 2: "female"}}
    pyreadstat.write_sav(frame, folder / "survey.sav", variable_value_labels=labels)
    (folder / "survey.csv").unlink()
    return {"data": {"path": "survey.sav"}, "groups": group_settings()}


UNRELEASED = {  # where another case releases the same, or the same in another system
    "lattice": ("weights of columns", "pbg_ea", "best_first", "paper"),
    "cuts": ("problem 1", "problem 3", "problem 4", "nsga2", "drop"),
    "local": ("runs", "population", "drop"),
    "cells": ("exact", "population", "drop"),
    "channel": ("gain", "local privacy", "weights", "population", "drop"),
}


def cases() -> list[Case]:
    """All cases. The system lattice audits each of the tables once."""
    return [
        replace(
            case,
            audit=case.system == "lattice" and case.table not in (each.table for each in found[:number]),
            released=case.name not in UNRELEASED.get(case.system, ()),
        )
        for found in (lattice(), cuts(), local(), cells(), channel(), groups())
        for number, case in enumerate(found)
    ]


def lattice() -> list[Case]:
    def case(name: str, table: Table, *more: tuple[str, ...], publish: tuple[str, ...] = (), **search: Any) -> Case:
        sections = {"search": {"system": "lattice", "max_suppression": 0.05} | search}
        return Case("lattice", name, table, sections, more, publish, quick=name == "small")

    three = ["k", "distinct_l", "non_uniform_entropy"]
    return [
        case("small", small),
        case(
            "adult",
            adult,
            ("baselines", "run.toml", "--front", "front", "--k", "3", "--k", "10"),
            weights={"native-country": 0.5},
        ),
        case(
            "three objectives",
            small,
            ("inspect", "people.csv", "-o", "inspected.toml"),
            ("apply", "front", "others.csv", "-o", "applied", "--point", "1", "--unseen", "star"),
            objectives=three,
            constraints={"t_closeness": 0.7},
        ),
        case("weights of columns", small, weights={"age": 2.0, "sex": 0.5}, algorithm="exhaustive"),
        case("pbg_ea", small, algorithm="pbg_ea", iterations=6, seed=3),
        case("best_first", small, algorithm="best_first", evaluations=200, objectives=["k", "arx_loss"]),
        case("paper", small, suppression="paper", objectives=["marketer_risk", "discernibility"]),
        case("weights", weights, objectives=["individual_risk", "general_loss"]),
        case("category", missing("category"), publish=("--format", "parquet")),
        case("wildcard", missing("wildcard")),
        case("drop", missing("drop")),
        case("population", population, objectives=["journalist_risk", "general_loss"]),
        case("units", units, objectives=["k", "general_loss"], constraints={"distinct_l": 2}),
        case("households", households, publish=("--suppress-below", "4")),
        case("labelled", labelled),
        case("labelled as csv", labelled, publish=("--format", "csv"), objectives=["prosecutor_risk", "width_loss"]),
    ]


def cuts() -> list[Case]:
    def case(name: str, table: Table, **search: Any) -> Case:
        few = {"system": "cuts", "max_suppression": 0.05, "generations": 3, "population": 12, "seed": 5}
        return Case("cuts", name, table, {"search": few | search}, quick=name == "small")

    def free(folder: Path) -> Settings:
        sections = small(folder)
        sections["columns"]["age"] = {"role": "quasi_identifier", "breaks": [30.0, 40.0, 50.0, 60.0]}
        sections["columns"]["town"] = {"role": "quasi_identifier"}
        sections["columns"]["sex"] = {"role": "quasi_identifier", "order": ["F", "M"]}
        return sections

    return [
        case("small", small),
        case("adult", adult, problem=2),
        case("problem 1", lambda folder: small(folder, 50), problem=1, max_suppression=0.0),
        case("problem 3", free, problem=3),
        case("problem 4", free, problem=4, prefer="l"),
        case("nsga2", free, algorithm="nsga2", objectives=["k", "average_class_size"]),
        case("weights", weights, objectives=["individual_risk", "general_loss"], constraints={"k": 3}),
        case("category", missing("category")),
        case("wildcard", missing("wildcard")),
        case("drop", missing("drop")),
        case("population", population, objectives=["journalist_risk", "general_loss"]),
        case("units", units, constraints={"distinct_l": 2}),
        case("households", households),
        case("labelled", labelled),
    ]


def local() -> list[Case]:
    def case(name: str, table: Table, search: Settings | None = None, **settings: Any) -> Case:
        sections = {
            "search": {"system": "local", "max_suppression": 0.05} | (search or {}),
            "local": {"k": [2, 3, 5, 10], "passes": 1, "test_seed": 1} | settings,
        }
        more = (("floor", "front"),) if name == "small" else ()
        return Case("local", name, table, sections, more, quick=name == "small")

    return [
        case("small", small),
        case("adult", adult, k=[2, 5, 10], method="runs"),
        case("runs", small, method="runs", effort=3),
        case("drawn", small, draw=0.1, bounds=True),
        case("criterion", small, {"constraints": {"k": 3, "distinct_l": 2}, "weights": {"age": 2.0}}),
        case("weights", weights),
        case("category", missing("category")),
        case("wildcard", missing("wildcard")),
        case("drop", missing("drop")),
        case("population", population),
        case("units", units),
        case("households", households),
        case("labelled", labelled),
    ]


def cells() -> list[Case]:
    def case(name: str, table: Table, search: Settings | None = None, **settings: Any) -> Case:
        sections = {
            "search": {"system": "cells"} | ({"max_suppression": 0.05} if search is None else search),
            "cells": {"k": [2, 3, 5], "passes": 1, "effort": 0, "exact": 0, "test_seed": 1} | settings,
        }
        return Case("cells", name, table, sections, quick=name == "small")

    return [
        case("small", small),
        case("adult", lambda folder: adult(folder, 200)),
        case("agreeing", lambda folder: small(folder, 60), {}, k=[2, 3], reading="agreeing", blank_records=0.1),
        case("exact", lambda folder: small(folder, 24), k=[2], exact=1500),
        case("after lattice", small, after="lattice", bases=3, never=["sex"], limits={"age": 0.5}),
        case("weights", weights, {"weights": {"age": 2.0}, "max_suppression": 0.1}),
        case("category", missing("category")),
        case("wildcard", missing("wildcard")),
        case("drop", missing("drop")),
        case("population", population),
        case("units", units),
        case("households", households),
        case("labelled", labelled),
    ]


def channel() -> list[Case]:
    sections = {"search": {"system": "channel"}}

    def case(name: str, table: Table, *, keep: Sequence[str] = (), **settings: Any) -> Case:
        own = {"columns": ["job"], "keep": list(keep), "points": 3} | settings
        choices: tuple[tuple[str, ...], ...] = (("pick", "--knee"), ("pick", "--limit", "max_error=0.003"))
        if name == "small":
            choices += (("pick",), *ASKED)
        return Case("channel", name, table, sections | {"channel": own}, choices=choices, solver=True)

    def closed(name: str, table: Table, family: str, parameter: str, *words: str) -> Case:
        """Matrices in closed form: the files drawn with them are compared to the byte."""
        more = (
            (
                "channel",
                "make",
                *RUN,
                "--column",
                "job",
                "-o",
                "made.json",
                "--family",
                family,
                "--parameter",
                parameter,
            ),
            ("channel", "measure", "made.json", *RUN),
            ("channel", "disguise", *RUN, "--channel", "made.json", "-o", "disguised", "--test-seed", "7", *words),
            ("verify", "disguised", "--source", "run.toml"),
            ("channel", "estimate", "disguised", "--method", "inversion"),
            *((("channel", "estimate", "disguised", "--by", "sex"),) if "sex" in words else ()),
        )
        return Case("channel", f"{family}, {name}", table, sections, more, quick=name == "small", search=False)

    def paired(folder: Path) -> Settings:
        given = small(folder)
        given["columns"]["sex"] = {"role": "sensitive"}
        return given

    return [
        closed("small", small, "grr", "1.5", "--keep", "sex", *ACCEPTED),
        closed("kept order", small, "warner", "0.7", "--keep-order", *ACCEPTED),
        closed("weights", weights, "frapp", "3", "--keep", "weight", *ACCEPTED),
        closed("category", missing("category"), "uniform_perturbation", "0.4", *ACCEPTED),
        closed("units", units, "grr", "2", "--keep", "sex", "--keep", "town", *ACCEPTED),
        closed("labelled", labelled, "grr", "1", *ACCEPTED),
        case("small", small),
        case("adult", adult, columns=["occupation"], points=2),
        case("kept", small, keep=["sex"]),
        case("local privacy", small, epsilon=2.0),
        case("gain", small, gain=3.0, delta=0.6, design="exact"),
        case("invariant", small, invariant=True, columns=["ill"]),
        case("given", small, given=["sex"], points=1, sweeps=0, generations=50),
        case("two columns", paired, columns=["sex", "ill"], points=1),
        case("weights", weights),
        case("category", missing("category"), columns=["ill"]),
        case("wildcard", missing("wildcard"), columns=["ill"]),
        case("drop", missing("drop"), columns=["ill"]),
        case("population", population, points=1),
        case("units", units),
        case("households", households),
        case("labelled", labelled),
    ]


def groups() -> list[Case]:
    def case(name: str, table: Table, *more: tuple[str, ...]) -> Case:
        choices: tuple[tuple[str, ...], ...] = (("pick",), ("pick", "--limit", "max_findings=1"))
        if name == "small":
            choices += ASKED
        return Case("groups", name, table, {}, more, choices=choices, quick=name == "small")

    attacked = ("groups", "attack", "run.toml")
    return [
        case("small", towns(), ("groups", "harmonise", "run.toml"), ("groups", "variables", "run.toml"), attacked),
        case("missing", towns(gaps=True)),
        case("households", towns(houses=True)),
        case("weights", towns(weighted=True)),
        case("labelled", labelled_towns, attacked),
    ]


def toml(sections: Mapping[str, Any]) -> str:
    """A run file of sections, whose values are written as inline tables."""
    lines = ["version = 1"]
    for name, section in sections.items():
        lines += ["", f"[{name}]", *(f"{json.dumps(key)} = {inline(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def inline(value: Any) -> str:
    """A value as TOML has it on one line.

    >>> print(inline({"a": [1, True], "b": {"c d": "x"}}))
    { "a" = [1, true], "b" = { "c d" = "x" } }
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(inline(each) for each in value) + "]"
    return json.dumps(value)
