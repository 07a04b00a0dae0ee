"""A page for all measures: formula, worked example, when to use each, what others call it; from the registry."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from types import ModuleType

from sfumato.measures.measure import Measure
from sfumato.measures.oracle import __doc__ as about_example
from sfumato.measures.oracle import six_rows
from sfumato.measures.registry import measures_of, modules

PAGE = "reference/measures-in-detail.md"
NAMES = (PAGE,)
HEAD = """# Measures in detail

Generated from the measures themselves. Notation: *N* records, of which suppressed ones count as each measure says;
a *class* is the set of released records that share their quasi-identifiers; n is the size of the class of a record;
q is the share of a sensitive value in a class and p its share among all kept records; *d* quasi-identifiers.

Every example is of one table of six records with two quasi-identifiers, both at level 1 of their hierarchies:

{rows}

An overview in one table is in [Measures](../measures.md). Definitions follow the cited papers; where they leave
something open, [readings](../readings.md) says what was taken.
"""


def pages() -> dict[str, str]:
    """The page, by its path on the site."""
    parts = [HEAD.format(rows=(about_example or "").split("\n", 2)[2].strip())]
    for kind, title in (("privacy", "Disclosure"), ("loss", "Loss")):
        parts.append(f"## {title}\n")
        parts += [_section(measure, example) for measure, example in described() if measure.kind == kind]
    return {PAGE: "\n".join(parts)}


def described() -> Iterator[tuple[Measure, str]]:
    """Every measure with the example of its file."""
    for module in modules():
        for measure in measures_of(module):
            yield measure, _example(module, measure)


def _section(measure: Measure, example: str) -> str:
    better = "More is better" if measure.direction == "max" else "Less is better"
    moves = {"rises": "rises", "falls": "falls"}.get(measure.monotone or "", "may rise or fall")
    lines = [f"### {measure.about.title} {{ #{measure.name} }}", "", f"`{measure.name}`. {measure.about.sentence}", ""]
    if measure.about.formula:
        lines += ["```text", measure.about.formula, "```", ""]
    lines += [f"- {better}; it {moves} as a table is generalized further."]
    if measure.about.use:
        lines += [f"- **When to use:** {measure.about.use}"]
    if measure.about.aliases:
        lines += [f"- **Other names here:** {', '.join(f'`{name}`' for name in measure.about.aliases)}"]
    if measure.about.elsewhere:
        lines += ["- **Elsewhere:** " + "; ".join(f"{tool}: {name}" for tool, name in measure.about.elsewhere.items())]
    if measure.parameters:
        given = ", ".join(f"`{name}` (default `{value}`)" for name, value in measure.parameters.items())
        lines += [f"- **Parameters**, under `[measures]` of a run file: {given}"]
    lines += [f"- **Source:** {measure.about.citation}", "", "```pycon", example, "```", ""]
    return "\n".join(lines)


def _example(module: ModuleType, measure: Measure) -> str:
    """The examples of a measure in the docstring of its file, or its value where there are none.

    The reader's examples ask for the measure by its name instead of by the constant of the file.
    """
    lines = [">>> import sfumato as sf", ">>> from sfumato.measures.oracle import six_rows"]
    constant = next((name for name, value in vars(module).items() if value is measure), None)
    examples = doctest.DocTestParser().get_examples(module.__doc__ or "")
    own = [example for example in examples if constant is not None and re.search(rf"\b{constant}\.", example.source)]
    used = set(re.findall(r"\w+", " ".join(example.source for example in own))) - {"six_rows"}
    imports = [example.source for example in examples if example.source.startswith("from ")]
    lines += [f">>> {text.strip()}" for text in imports if used & set(re.findall(r"\w+", text.partition("import")[2]))]
    for example in own:
        source = example.source.replace(f"{constant}.", f'sf.measure("{measure.name}").').rstrip("\n").split("\n")
        lines += [f">>> {source[0]}", *(f"... {line}" for line in source[1:]), example.want.rstrip("\n")]
    if own:
        return "\n".join(lines)
    lacking = measure.available(six_rows())
    if lacking is not None:
        return "\n".join([*lines, f'>>> sf.measure("{measure.name}").available(six_rows())', repr(lacking)])
    value = round(measure.value(six_rows()), 4)
    return "\n".join([*lines, f'>>> round(sf.measure("{measure.name}").value(six_rows()), 4)', str(value)])
