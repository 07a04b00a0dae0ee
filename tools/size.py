"""Count the files and lines of the package, and compare the counts with those that are recorded: they may not grow.

python -m tools.size            # print the counts; exit code 1 if one is above its record
python -m tools.size --record   # write the counts down; a commit that raises one says why
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
RECORD = Path(__file__).with_suffix(".json")
LONG = 40  # lines of a function, from its first line to its last
Function = ast.FunctionDef | ast.AsyncFunctionDef
WORDS = {
    "files": "Python files under src/sfumato",
    "lines": "lines in them",
    "any": "uses of Any",
    "deferred_imports": "imports inside functions",
    "one_importer": "modules that one other module imports",
    "long_functions": f"functions of more than {LONG} lines",
}


def counts(source: Path = SOURCE) -> dict[str, int]:
    """What is counted of all modules below a folder."""
    texts = {path: path.read_text("utf-8") for path in sorted(source.rglob("*.py"))}
    modules = {_module(path.relative_to(source)): ast.parse(text) for path, text in texts.items()}
    functions = [node for tree in modules.values() for node in ast.walk(tree) if isinstance(node, Function)]
    importers = Counter(
        imported for name, tree in modules.items() for imported in set(_imported(tree, frozenset(modules))) - {name}
    )
    return {
        "files": len(texts),
        "lines": sum(text.count("\n") for text in texts.values()),
        "any": sum(isinstance(n, ast.Name) and n.id == "Any" for tree in modules.values() for n in ast.walk(tree)),
        "deferred_imports": len({id(node) for function in functions for node in _imports(function)}),
        "one_importer": sum(number == 1 for number in importers.values()),
        "long_functions": sum((each.end_lineno or 0) - each.lineno >= LONG for each in functions),
    }


def _module(path: Path) -> str:
    """The name of a module.

    >>> _module(Path("sfumato/front/__init__.py")), _module(Path("sfumato/front/choice.py"))
    ('sfumato.front', 'sfumato.front.choice')
    """
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def _imported(tree: ast.AST, modules: frozenset[str]) -> Iterator[str]:
    """The modules that a module imports: a name behind `from` may be a module or something in it."""
    for node in _imports(tree):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.Import):
            yield from modules.intersection(names)
            continue
        inner = [f"{node.module}.{name}" for name in names]
        found = modules.intersection(inner)
        yield from found
        if len(found) < len(names) and node.module in modules:
            yield node.module


def main(arguments: list[str]) -> int:
    """Print the counts beside the recorded ones."""
    found = counts()
    if "--record" in arguments:
        RECORD.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    recorded = json.loads(RECORD.read_text("utf-8"))
    for name, number in found.items():
        more = number > recorded[name]
        print(f"{number:>8,}  {WORDS[name]}{f', more than the {recorded[name]:,} that are recorded' if more else ''}")
    grown = [name for name in found if found[name] > recorded[name]]
    if grown:
        print("Make it smaller; or record the counts (python -m tools.size --record), and say in the commit why.")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
