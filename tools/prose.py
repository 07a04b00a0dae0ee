"""Check the language of docstrings, comments, messages and pages: words to avoid, and sentences that are too long.

python -m tools.prose                  # findings in docstrings and comments; exit code 1 if a count is above its record
python -m tools.prose src/sfumato/data # the findings below a folder
python -m tools.prose --messages       # also messages: text constants of at least four words
python -m tools.prose docs README.md   # the findings in pages
python -m tools.prose --record         # write the counts down
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sfumato"
PAGES = (ROOT / "docs", ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", ROOT / "benchmarks")
RECORD = Path(__file__).with_suffix(".json")
MOST_WORDS = 40  # of a sentence

# Each is a habit of one author that readers from statistics offices do not know.
AVOID = {
    r"tells?|told|telling": "reveals, states, reports",
    r"g[ia]ves? (?:\w+ )?away": "reveals",
    r"st(?:ands?|ood|anding) (?:in|beside|for|with|at|there|near|under|on|before|behind|together|between)": "is",
    r"dear(?:er|est)?": "expensive, higher cost",
    r"who pays|nobody|whoever|somebody": "no record, an attacker, affected records",
    r"agreeing reading": "(k, k)-anonymity",
    r"sought|wished": "objective",
    r"(?:is|are|was|be) had|had by": "exists",
    r"mend(?:s|ed|ing)?": "fix",
    r"room|doors?|house|desks?|shelf|shelves": "module, interface, worker, cache",
    r"sealed attack(?:s|ers?)?": "held-out attack",
}
# Often, but not always, a sign of the same habits: counted.
COUNT = r"again|otherwise|apart|beside|of its own|of their own|offers?|floor|gone|goes|whole|rightly|so many|demanded"
PATTERN = re.compile("|".join(rf"(?P<w{number}>\b(?:{words})\b)" for number, words in enumerate(AVOID)), re.IGNORECASE)
COUNTED = re.compile(rf"\b(?:{COUNT})\b", re.IGNORECASE)


class Text(NamedTuple):
    """A piece of prose."""

    path: Path
    line: int
    text: str
    kind: str


def texts(path: Path, messages: bool = False) -> Iterator[Text]:
    """Return the docstrings and comments of a file, without code and doctests."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings.add(id(first.value))
                yield Text(path, first.lineno, prose(first.value.value), "docstring")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(noqa|type:|!)", token.string):
            yield Text(path, token.start[0], prose(token.string.lstrip("#")), "comment")
    for node in ast.walk(tree) if messages else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            words = re.findall(r"[a-z]{2,}", node.value)
            if len(words) >= 4 and not re.search(r"\bSELECT\b|<\w+", node.value):
                yield Text(path, node.lineno, prose(node.value), "message")


def prose(text: str) -> str:
    """Return a text without what is code in it.

    >>> prose("The `told` column.\\n\\n>>> told()\\n3\\n")
    'The code column.'
    """
    lines, example = [], False
    for line in text.splitlines():
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        lines.append("" if example else line.strip())
    return re.sub(r"`[^`]*`", "code", "\n".join(lines)).strip()


def sentences(text: str) -> Iterator[str]:
    """Return the sentences of a text; an empty line, a list item and a parameter end one too.

    >>> list(sentences("One. Two: three\\n\\nfour"))
    ['One.', 'Two: three', 'four']
    """
    for block in re.split(r"\n\s*\n|\n(?=[-*\d]+[.)]?\s)|\n(?=\w+: )|\n(?=\|)", text):
        yield from filter(None, re.split(r"(?<=[.!?])\s+(?=[A-Z`(\"])", " ".join(block.split())))


def findings(text: Text) -> Iterator[str]:
    """Return what is wrong in a text, one line each."""
    for match in PATTERN.finditer(text.text):
        advice = list(AVOID.values())[int((match.lastgroup or "w0")[1:])]
        yield f'{text.path.relative_to(ROOT)}:{text.line}: "{match.group()}" in a {text.kind}; write: {advice}'
    for sentence in sentences(text.text):
        words = len(sentence.split())
        if words > MOST_WORDS:
            yield f"{text.path.relative_to(ROOT)}:{text.line}: a sentence of {words} words: {sentence[:60]}…"


def page_texts(path: Path) -> Iterator[Text]:
    """Return the paragraphs, list items and table rows of a page in Markdown, without its blocks of code."""
    code, lines = False, []
    for line in path.read_text("utf-8").splitlines():
        fence = line.lstrip().startswith("```")
        code = code != fence
        lines.append("" if code or fence else line.replace("|", " ").strip() if line.startswith("|") else line.strip())
    for number, block in enumerate(lines, 1):
        if block:
            yield Text(path, number, re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", block)), "page")


def pieces_of(places: Iterable[Path], messages: bool = False) -> list[Text]:
    """Return the texts of all modules and pages among files and below folders."""
    paths = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.*")))]
    modules = [piece for path in paths if path.suffix == ".py" for piece in texts(path, messages)]
    return modules + [piece for path in paths if path.suffix == ".md" for piece in page_texts(path)]


def counts() -> dict[str, int]:
    """Count the findings in the package, its messages and the pages, and words and semicolons in its docstrings."""
    pieces, pages = pieces_of([SOURCE]), [piece for piece in pieces_of(PAGES) if piece.kind == "page"]
    messages = [piece for piece in pieces_of([SOURCE], messages=True) if piece.kind == "message"]
    return {
        "findings": sum(1 for piece in pieces for _ in findings(piece)),
        "words": sum(len(COUNTED.findall(piece.text)) for piece in pieces),
        "semicolons": sum(piece.text.count(";") for piece in pieces),
        "messages": sum(1 for piece in messages for _ in findings(piece)),
        "pages": sum(1 for piece in pages for _ in findings(piece)),
    }


def main(arguments: list[str]) -> int:
    """Print the findings and the counts."""
    places = [Path(argument).resolve() for argument in arguments if not argument.startswith("-")]
    pieces = pieces_of(places or [SOURCE], "--messages" in arguments)
    found = [finding for piece in pieces for finding in findings(piece)]
    for finding in found:
        print(finding)
    if places or "--messages" in arguments:
        print(f"{len(found)} findings")
        return 1 if found else 0
    now = counts()
    print(", ".join(f"{name} {number:,}" for name, number in now.items()))
    if "--record" in arguments:
        RECORD.write_text(json.dumps(now, indent=2) + "\n", "utf-8")
    grown = [name for name, number in json.loads(RECORD.read_text("utf-8")).items() if now[name] > number]
    if grown:
        print(f"More than recorded: {', '.join(grown)}.")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
