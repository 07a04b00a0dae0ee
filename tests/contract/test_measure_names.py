"""What code knows of a measure it asks of the measure: outside the measures' own files no code goes by their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sfumato
from sfumato.measures.registry import known_measures

ROOT = Path(sfumato.__file__).parent
OWN = ("measures/privacy/", "measures/loss/", "measures/fast_paths.py")
NAMES = {name for measure in known_measures().values() for name in measure.names}
PARTS = {end: {name.split("_")[-1 if end else 0] for name in NAMES if "_" in name} for end in (False, True)}

# Modules that may hold the name of a measure, which names, and why.
ALLOWED = {
    "study/sections.py": (
        {"k", "general_loss", "uniques", "households"},
        "defaults of the run file, read before any measure is known, and rules of the policy as it spells them",
    ),
    "release/history/side_by_side.py": ({"k"}, "the first letter of columns of SQL: k0, k1 …"),
    "release/policy.py": ({"k", "uniques", "households"}, "names of the policy's rules, as a run file spells them"),
    "import_projects/arx.py": (
        {
            *("k", "distinct_l", "entropy_l", "recursive_l", "t_closeness", "beta_likeness", "enhanced_beta"),
            *("delta_disclosure", "arx_loss", "precision", "discernibility", "non_uniform_entropy"),
            *("average_class_size", "general_loss"),
        },
        "which measure each criterion and quality model of ARX is, as a run file spells it",
    ),
    "auditing/audit.py": ({"households"}, "what is counted: the number of households of a table"),
    "auditing/uniqueness.py": ({"households"}, "what is counted, as the noun of a sentence"),
    "release/certificate.py": ({"k"}, "the key of a figure, as the certificate spells it"),
    "release/persons.py": ({"households"}, "what is counted, as a manifest spells it"),
    "base/wording.py": ({"distinct_l"}, "how the page calls a parameter"),
    "data/profile.py": ({"uniques"}, "a field of a column's profile: values that occur once"),
}


@cache
def modules() -> dict[str, ast.Module]:
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
    return {name: ast.parse(path.read_text("utf-8")) for name, path in paths.items() if not name.startswith(OWN)}


def literals(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Whole string constants and their lines; the pieces of an f-string (as in a column `k0` of SQL) are none."""
    pieces = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield node.value, node.lineno


def name_tests(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Tests of how a name begins or ends, where names of measures begin or end so."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in ("endswith", "startswith", "removesuffix", "removeprefix"):
            continue
        at_end = node.func.attr in ("endswith", "removesuffix")
        for text, line in (pair for given in node.args for pair in literals(given)):
            if text.strip("_") in PARTS[at_end]:
                yield text, line


@pytest.mark.long
def test_no_module_goes_by_the_name_of_a_measure() -> None:
    found = []
    for name, tree in modules().items():
        refused = NAMES - ALLOWED.get(name, (set(), ""))[0]
        found += [f"{name}:{line}: {text!r}" for text, line in literals(tree) if text in refused]
        found += [f"{name}:{line}: a name is tested for {text!r}" for text, line in name_tests(tree)]
    assert not found, f"{len(found)} in {len({line.split(':')[0] for line in found})} modules:\n" + "\n".join(found)


@pytest.mark.long
def test_what_is_allowed_is_needed() -> None:
    for name, (allowed, reason) in ALLOWED.items():
        held = {text for text, _ in literals(modules()[name])}
        assert allowed <= held, f"{name} no longer needs {allowed - held}"
        assert reason


def test_the_page_goes_by_no_name_either() -> None:
    found = []
    for path in sorted((ROOT / "web" / "static").rglob("*.js")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            code = line.split(" // ")[0]
            quoted = re.findall(r"\"([^\"]*)\"|'([^']*)'", code)
            found += [f"{path.name}:{number}: {text}" for pair in quoted for text in pair if text in NAMES]
    assert not found, "\n".join(found)


def test_the_search_for_names_finds_them() -> None:
    """The guard itself: what it is for must not slip through."""
    bad = 'x = "k"\nif name.endswith("loss") or name.startswith(("weighted", "sum")):\n    y = f"k{x}"\n'
    tree = ast.parse(bad)
    assert [text for text, _ in literals(tree) if text in NAMES] == ["k"]
    assert [text for text, _ in name_tests(tree)] == ["loss", "weighted", "sum"]
