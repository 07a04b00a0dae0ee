"""What peers do with Adult, in an environment of their own that has no sfumato. Prints JSON; see bench_peers."""

import csv
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd

COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "salary-class",
]
QUASI = ["age", "workclass", "education", "marital-status", "race", "sex", "native-country", "salary-class"]
SECRET = ["occupation"]


def adult(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(
        folder / "adult.data.gz", header=None, names=COLUMNS, skipinitialspace=True, na_values="?", dtype=str
    )
    return table.dropna()[QUASI + SECRET].reset_index(drop=True)


def trees(folder: Path) -> dict[str, dict[int, list[str]]]:
    found = {}
    for name in QUASI:
        with (folder / "hierarchies" / f"{name}.csv").open() as file:
            rows = list(csv.reader(file))[1:]
        found[name] = {level: [row[level] for row in rows] for level in range(len(rows[0]))}
    return found


def measured_by_pycanon(table: pd.DataFrame) -> dict[str, object]:
    from pycanon import anonymity

    start = time.process_time()
    figures = {
        "k": int(anonymity.k_anonymity(table, QUASI)),
        "distinct_l": int(anonymity.l_diversity(table, QUASI, SECRET)),
        "t_closeness": float(anonymity.t_closeness(table, QUASI, SECRET)),
        "alpha_k": float(anonymity.alpha_k_anonymity(table, QUASI, SECRET)[0]),
        "beta_likeness": float(anonymity.basic_beta_likeness(table, QUASI, SECRET)),
    }
    return {"version": version("pycanon"), "cpu": time.process_time() - start, "figures": figures}


def generalized_by_anjana(table: pd.DataFrame, folder: Path, k: int, limit: int, out: Path) -> dict[str, object]:
    from anjana.anonymity import k_anonymity

    start = time.process_time()
    found = k_anonymity(table, [], QUASI, k, limit, trees(folder))
    took = time.process_time() - start
    if found is None or not len(found):
        return {"version": version("anjana"), "cpu": took, "records": 0}
    found[QUASI + SECRET].to_csv(out, index=False)
    return {"version": version("anjana"), "cpu": took, "records": len(found)}


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    table = adult(folder)
    told = {"pycanon": measured_by_pycanon(table), "anjana": {}}
    for k in map(int, sys.argv[3:]):
        told["anjana"][k] = generalized_by_anjana(table.copy(), folder, k, 1, out / f"anjana-{k}.csv")
    print(json.dumps(told))


if __name__ == "__main__":
    main()
