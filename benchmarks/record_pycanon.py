"""Record pycanon's figures on ten random generalizations of Adult, once, as test data.

Needs an environment with pycanon (1.3.6 was used) and pandas; it does not import sfumato:

    python benchmarks/record_pycanon.py src/sfumato/samples/adult > tests/measures/pycanon_adult.json
"""

import csv
import json
import random
import sys
from pathlib import Path

import pandas as pd
from pycanon import anonymity

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


def main(folder: Path) -> None:
    table = pd.read_csv(
        folder / "adult.data.gz", header=None, names=COLUMNS, skipinitialspace=True, na_values="?", dtype=str
    )
    table = table.dropna()[QUASI + SECRET].reset_index(drop=True)
    trees = {}
    for name in QUASI:
        with (folder / "hierarchies" / f"{name}.csv").open() as file:
            trees[name] = list(csv.reader(file))[1:]
    chance = random.Random(20)
    found = []
    for place in range(10):
        # Half of the nodes must hide people, or nearly all would have k = 1.
        while True:
            levels = [chance.randrange(len(trees[name][0])) for name in QUASI]
            released = table.copy()
            for name, level in zip(QUASI, levels, strict=True):
                released[name] = released[name].map({row[0]: row[level] for row in trees[name]})
            if place % 2 == 0 or 2 <= released.groupby(QUASI).size().min() <= 5000:
                break
        found.append(
            {
                "levels": levels,
                "k": int(anonymity.k_anonymity(released, QUASI)),
                "distinct_l": int(anonymity.l_diversity(released, QUASI, SECRET)),
                "t_closeness": float(anonymity.t_closeness(released, QUASI, SECRET)),
                "alpha_k": float(anonymity.alpha_k_anonymity(released, QUASI, SECRET)[0]),
                "beta_likeness": float(anonymity.basic_beta_likeness(released, QUASI, SECRET)),
                "delta_disclosure": float(anonymity.delta_disclosure(released, QUASI, SECRET)),
            }
        )
        print(found[-1], file=sys.stderr)
    print(json.dumps({"pycanon": "1.3.6", "columns": QUASI, "nodes": found}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
