"""Projects of ARX made by hand, after the format that its sources publish."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

SMALL = {
    "name": ("IDENTIFYING_ATTRIBUTE", None),
    "age": ("QUASI_IDENTIFYING_ATTRIBUTE", "31;30-39;*\n35;30-39;*\n62;60-69;*\n64;60-69;*\n"),
    "sex": ("QUASI_IDENTIFYING_ATTRIBUTE", "F;*\nM;*\n"),
    "ill": ("SENSITIVE_ATTRIBUTE", None),
    "note": ("INSENSITIVE_ATTRIBUTE", None),
}
ROWS = "name;age;sex;ill;note\nA;31;F;flu;x\nB;35;F;none;x\nC;62;M;flu;y\nD;64;M;none;y\n"


def definition(attributes: Mapping[str, tuple[str, str | None]], limits: tuple[str, str] = ("All", "All")) -> str:
    parts = ["<definition>\n"]
    for name, (kind, hierarchy) in attributes.items():
        parts.append(f"\t<assigment>\n\t\t<name>{escape(name)}</name>\n\t\t<type>{kind}</type>\n")
        parts.append("\t\t<datatype>String</datatype>\n")
        if hierarchy is not None:
            parts.append(f"\t\t<ref>hierarchies/{escape(name)}.csv</ref>\n")
            parts.append(f"\t\t<min>{limits[0]}</min>\n\t\t<max>{limits[1]}</max>\n")
        parts.append("\t</assigment>\n")
    return "".join([*parts, "</definition>\n"])


def configuration(criteria: Sequence[str], limit: float, metric: str = "Loss", weights: str = "") -> str:
    listed = "".join(f"\t\t<criterion>{escape(one)}</criterion>\n" for one in criteria)
    return (
        "<config>\n\t<suppressTuplesInNonAnonymousOutput>true</suppressTuplesInNonAnonymousOutput>\n"
        "\t<suppressedAttributeTypes>\n\t\t<type>QUASI_IDENTIFYING_ATTRIBUTE</type>\n\t</suppressedAttributeTypes>\n"
        f"\t<practicalMonotonicity>false</practicalMonotonicity>\n\t<relativeMaxOutliers>{limit}</relativeMaxOutliers>\n"
        f"\t<metric>{escape(metric)}</metric>\n\t<attributeWeights>{weights}</attributeWeights>\n"
        f"\t<criteria>\n{listed}\t</criteria>\n</config>\n"
    )


def write_project(
    path: Path,
    attributes: Mapping[str, tuple[str, str | None]] = SMALL,
    rows: str = ROWS,
    criteria: Sequence[str] = ("2-anonymity",),
    limit: float = 0.0,
    **more: str,
) -> Path:
    """A project; `more` replaces or adds files, by their names in the archive."""
    files = {
        "metadata.xml": "<metadata>\n\t<version>3.9.2</version>\n\t<vocabulary>2.0</vocabulary>\n</metadata>\n",
        "project.dat": "\xac\xed\x00\x05 never opened",
        "project.xml": "<project>\n\t<name>p</name>\n\t<separator>;</separator>\n\t<quote>&quot;</quote>\n</project>\n",
        "data/input.csv": rows,
        "input/config.dat": "\xac\xed\x00\x05 never opened",
        "input/config.xml": configuration(criteria, limit),
        "input/definition.xml": definition(attributes),
    }
    files |= {f"input/hierarchies/{name}.csv": text for name, (_, text) in attributes.items() if text is not None}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (files | more).items():
            archive.writestr(name, text)
    return path
