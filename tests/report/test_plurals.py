"""One of a thing is in the singular: "(1 points)" and "in 1 groups" were on the page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import HierarchyError
from sfumato.hierarchies import Hierarchy
from sfumato.measures.classes import classify

STATIC = Path(sf.__file__).parent / "web" / "static"
ONE = re.compile(r"(?<![\d.,])1 (?!class\b|less\b)[a-z]+(?:s|ies)\b")


def test_one_of_everything_is_in_the_singular(tmp_path: Path) -> None:
    pd.DataFrame({"sex": ["F", "F"]}).to_csv(tmp_path / "p.csv", index=False)
    columns = {"sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}}
    study = sf.Study(data={"path": str(tmp_path / "p.csv")}, columns=columns)
    table, front = study.table(), sf.search(study)
    texts = [repr(front), repr(table), repr(table.domains[0]), repr(classify(table)), repr(sf.audit(study))]
    texts += [repr(table.domains[0].hierarchy), repr(sf.inspect(study.data.path)), front.how]
    assert len(front) == 1
    assert [text for text in texts if ONE.search(text)] == []
    assert "1 point over" in texts[0]
    assert repr(sf.Channel(("sex",), ("F",), ("F",), np.ones((1, 1)))) == "<Channel of sex: 1 category, 1 report>"


def test_one_label_with_several_parents() -> None:
    with pytest.raises(HierarchyError, match="1 label has several parents on level 1; the first is"):
        Hierarchy.from_paths("town", [["a", "x", "p", "*"], ["b", "x", "q", "*"]])


def test_the_page_counts_points_in_the_singular_too() -> None:
    literal = re.compile(r"\$\{[^{}]*(?:length|points)[^{}]*\} (?:points|groups)\b")
    found = {
        path.name: hits for path in sorted(STATIC.rglob("*.js")) if (hits := literal.findall(path.read_text("utf-8")))
    }
    assert found == {}
