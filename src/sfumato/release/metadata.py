"""The metadata of a release for catalogues and archives: Croissant 1.1 and DDI Codebook 2.5.

Both state what the data dictionary states, and nothing else: no path, no source, no time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from sfumato.release.format import Entry, file_type, layout_in, media_type, read_by_name
from sfumato.release.manifest import METADATA
from sfumato.version import __version__

CROISSANT, DDI = METADATA
TITLE = "Anonymised microdata"
WHAT = "Records about people, changed to protect them: see dictionary.html and external.html beside the file."
TYPES = {"whole": "sc:Integer", "number": "sc:Float", "date": "sc:Date", "text": "sc:Text"}
MEDIA = {
    ".gz": "application/gzip",
    ".parquet": "application/x-parquet",
    ".sav": "application/x-spss-sav",
    ".dta": "application/x-stata-dta",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
FORMATS = {
    ".parquet": "Apache Parquet",
    ".sav": "SPSS system file",
    ".dta": "Stata data file",
    ".xlsx": "Excel workbook",
}
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
LANGUAGE = {"@container": "@language"}
TERMS = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileProperty fileObject fileSet format "
    "includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)


def metadata_pages(dictionary: Entry, files: Mapping[str, str]) -> dict[str, str]:
    """Return both descriptions by their file names. `files` are the data files with their SHA-256, by name."""
    return {
        CROISSANT: json.dumps(croissant(dictionary, files), indent=1, ensure_ascii=False) + "\n",
        DDI: ddi(dictionary),
    }


def croissant(dictionary: Entry, files: Mapping[str, str]) -> dict[str, object]:
    """Return the release as a dataset of Croissant 1.1: file, columns, and labels of values as enumerations."""
    about, name, layout = dictionary.get("about", {}), str(dictionary["file"]), layout_in(dictionary)
    result: dict[str, object] = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": about.get("title", TITLE),
        "description": about.get("description", WHAT),
    }
    if "creator" in about:
        result["creator"] = {"@type": "sc:Organization", "name": about["creator"]}
    result |= {key: about[key] for key in ("license", "url", "version") if key in about}
    result["distribution"] = [
        {
            "@type": "cr:FileObject",
            "@id": file,
            "name": file,
            "contentUrl": file,
            **({"description": layout["words"]} if layout else {}),
            "encodingFormat": media_type(layout) if layout and not name.endswith(".gz") else _of(MEDIA, name),
            "sha256": digest,
        }
        for file, digest in sorted(files.items())
    ]
    if list(files) == [name]:
        columns = list(enumerate(dictionary["columns"], start=1))
        enumerations = [
            _enumeration(f"values{position}", column) for position, column in columns if column.get("values")
        ]
        rows: dict[str, object] = {
            "@type": "cr:RecordSet",
            "@id": "records",
            "name": "records",
            "field": [_field(position, column, name, layout) for position, column in columns],
        }
        if layout and not read_by_name(layout):  # no field can be extracted by a name that the file does not have
            rows = _listed(columns, layout)
        result["recordSet"] = [rows, *enumerations]
    return result


def _context() -> dict[str, object]:
    return {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "conformsTo": "dct:conformsTo",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "dct": "http://purl.org/dc/terms/",
        "description": LANGUAGE,
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "name": LANGUAGE,
        "sc": "https://schema.org/",
        **{term: f"cr:{term}" for term in TERMS.split()},
    }


def _listed(columns: Sequence[tuple[int, Entry]], layout: Entry) -> dict[str, object]:
    """Return the columns of a file by position as a table of its own: Croissant finds columns only by name."""
    kinds = {"position": "sc:Integer", "name": "sc:Text", "type": "sc:Text", "description": "sc:Text"}
    return {
        "@type": "cr:RecordSet",
        "@id": "columns",
        "name": "columns",
        "description": f"The columns of the file by their positions, from 1 on. {layout['words']}",
        "key": {"@id": "columns/position"},
        "field": [
            {"@type": "cr:Field", "@id": f"columns/{part}", "name": part, "dataType": kind}
            for part, kind in kinds.items()
        ],
        "data": [
            {
                "columns/position": position,
                "columns/name": column["name"],
                "columns/type": _type(column, layout),
                "columns/description": _words(column),
            }
            for position, column in columns
        ],
    }


def _type(column: Entry, layout: Entry) -> str:
    """Return the type of a column. A number with a decimal comma is a text for readers of the media type."""
    comma = layout.get("decimal", ".") != "." and column["kind"] == "number"
    return TYPES["text"] if comma else TYPES[column["kind"]]


def _field(position: int, column: Entry, file: str, layout: Entry) -> dict[str, object]:
    heads = layout.get("header_names")
    result: dict[str, object] = {
        "@type": "cr:Field",
        "@id": f"records/column{position}",
        "name": column["name"],
        "description": _words(column),
        "dataType": _type(column, layout),
        "source": {
            "fileObject": {"@id": file},
            "extract": {"column": heads[position - 1] if heads else column["name"]},
        },
    }
    if column.get("values"):
        result["references"] = {"field": {"@id": f"values{position}/value"}}
    return result


def _enumeration(name: str, column: Entry) -> dict[str, object]:
    kind = column["kind"]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"What the values of {column['name']} mean.",
        "dataType": "sc:Enumeration",
        "key": {"@id": f"{name}/value"},
        "field": [
            {"@type": "cr:Field", "@id": f"{name}/{part}", "name": part, "dataType": type_}
            for part, type_ in (("value", TYPES[kind]), ("label", "sc:Text"))
        ],
        "data": [{f"{name}/value": _typed(v, kind), f"{name}/label": label} for v, label in column["values"].items()],
    }


def _typed(value: str, kind: str) -> int | float | str:
    """Return a value in the type of its column. A letter that means missing stays a letter.

    >>> _typed("1", "whole"), _typed(".b", "whole")
    (1, '.b')
    """
    try:
        return int(value) if kind == "whole" else float(value) if kind == "number" else value
    except ValueError:
        return value


def _words(column: Entry) -> str:
    label = column.get("label", "")
    return f"{label}. {column['words']}" if label else str(column["words"])


def ddi(dictionary: Entry) -> str:
    """Return the release as a codebook of DDI Codebook 2.5. The schema prescribes the order of elements."""
    about, name, layout = dictionary.get("about", {}), str(dictionary["file"]), layout_in(dictionary)
    creator = f"<rspStmt><AuthEnty>{_safe(about['creator'])}</AuthEnty></rspStmt>" if "creator" in about else ""
    use = ""
    if "license" in about:
        use = f"  <dataAccs><useStmt><conditions>{_safe(about['license'])}</conditions></useStmt></dataAccs>\n"
    charset = f" charset={_quoted(layout['encoding'])}" if layout else ""
    contents = f"<fileCont>{_safe(layout['words'])}</fileCont>" if layout else ""
    kind = file_type(layout, packed=name.endswith(".gz")) if layout else _of(FORMATS, name)
    variables = "".join(_variable(position, column) for position, column in enumerate(dictionary["columns"], start=1))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<codeBook xmlns="ddi:codebook:2_5" version="2.5" xml:lang="en">\n'
        " <stdyDscr>\n"
        f"  <citation><titlStmt><titl>{_safe(about.get('title', TITLE))}</titl></titlStmt>{creator}</citation>\n"
        f"  <stdyInfo><abstract>{_safe(about.get('description', WHAT))}</abstract></stdyInfo>\n"
        f"{use}"
        " </stdyDscr>\n"
        ' <fileDscr ID="F1">\n'
        f"  <fileTxt><fileName>{_safe(name)}</fileName>{contents}"
        f"<dimensns><varQnty>{len(dictionary['columns'])}</varQnty></dimensns><fileType{charset}>{_safe(kind)}</fileType>"
        f"<software version={_quoted(__version__)}>Sfumato</software></fileTxt>\n"
        " </fileDscr>\n"
        " <dataDscr>\n"
        f"{variables}"
        " </dataDscr>\n"
        "</codeBook>\n"
    )


def _variable(position: int, column: Entry) -> str:
    missing: Sequence[str] = column.get("missing_values", ())
    values = column.get("values") or dict.fromkeys(column.get("labels", ()), "")
    categories = "".join(
        f"   <catgry{' missing=' + _quoted('Y') if value in missing else ''}><catValu>{_safe(value)}</catValu>"
        + (f"<labl>{_safe(label)}</labl>" if label else "")
        + "</catgry>\n"
        for value, label in values.items()
    )
    kind = column["kind"]
    interval = "contin" if kind == "number" else "discrete"
    weight = ' wgt="wgt"' if column["role"] == "weight" else ""
    type_ = "numeric" if kind in ("whole", "number") else "character"
    dated = ' category="date"' if kind == "date" else ""
    label = f"   <labl>{_safe(column['label'])}</labl>\n" if column.get("label") else ""
    return (
        f'  <var ID="V{position}" name={_quoted(column["name"])} files="F1" intrvl="{interval}"{weight}>\n'
        f"{label}   <txt>{_safe(column['words'])}</txt>\n{categories}"
        f'   <varFormat type="{type_}"{dated}/>\n'
        "  </var>\n"
    )


def _of(names: Mapping[str, str], file: str) -> str:
    return next((meaning for ending, meaning in names.items() if file.endswith(ending)), "application/octet-stream")


def _safe(text: object) -> str:
    """Return the text of an element. Characters that XML cannot hold are replaced by a mark."""
    return escape(CONTROL.sub("\ufffd", str(text)))


def _quoted(text: object) -> str:
    return quoteattr(CONTROL.sub("\ufffd", str(text)))
