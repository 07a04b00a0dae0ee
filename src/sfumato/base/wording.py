"""Translation of messages into the terms of an interface: options of the command line, labels of the page.

Messages name settings as Python and run files do.

A setting in a text is `key = value`, where it belongs is `under [section]`, and `overwrite = True` or
`run = "run.toml"` are parameters of a function. Texts never name an option of the command line themselves.
"""

from __future__ import annotations

import re

FLAGS = ("max_loss", "min_k", "max_risk", "min_l", "max_suppression")
OPTIONS = {
    "overwrite = True": "--force",
    'run = "run.toml"': "--run run.toml",
    "suppress_below of": "--suppress-below of",
    "report it with its trace": "report it with the trace that --debug prints",
}
LIMIT = re.compile(r"(?<![\w.])((?:min|max)_[a-z_]+) = ([0-9.e+-]+)")

ACCEPT = re.compile(r'accept = \{"([^"{}]+)": "…"\}')

PARAMETERS = {
    'unit = "row" and unit_reason under [data]': "a reason in “Every row is a person, because” in Declare",
    ", or overwrite = True": "",
    'give run = "run.toml", a run file of your own': "open a run file of your own",
    "report it with its trace": "report it with the trace that the server prints with --debug",
}
LABELS = {
    "algorithm": "Algorithm",
    "breaks": "Split only at these numbers",
    "constrained": "Cuts may join",
    "engine": "Engine",
    "hierarchy": "Hierarchy",
    "levels": "Levels",
    "max_suppression": "Suppress at most",
    "missing": "A missing value means",
    "na": "Codes for missing values",
    "problem": "Problem",
    "role": "Role",
    "widths": "Widths, finest first",
}
PLACES = {
    **dict.fromkeys(("data", "columns"), "Declare"),
    **dict.fromkeys(("search", "cuts", "local", "cells", "channel"), "Search"),
    "groups": "the form of the protected group",
    "policy": "the policy",
    "engine_options": "the run file of the study",
}
WORDS = {
    "in na": "in “Codes for missing values”",
    "max_suppression": "“Suppress at most”",
    "suppress_below": "the size below which classes are suppressed",
    "diversity_below": "the ℓ below which classes are suppressed",
    "distinct_l": "ℓ",
    "quasi_identifier": "quasi-identifier",
    "min_l": "least ℓ",
    "header_row": "the row of the header",
}
VALUE = r"""\{[^{}]*\}|\[[^\[\]]*\]|"[^"]*"|'[^']*'|…|[\w.+-]*\w"""
SETTING = re.compile(rf"(?<![\w.])([a-z][a-z_]*) = ({VALUE})((?: or (?:\1 = )?(?:{VALUE})(?!\w| =))?)")
WORD = re.compile(rf"(?<![\w.“])(?:{'|'.join(WORDS)})(?![\w”])")
SECTION = re.compile(r"(?:\b(under|in) )?\[([a-z_]+)(?:\.[a-z_]+)*\]")


def as_options(text: str) -> str:
    """Return a text of the library with parameters as options of the command line.

    >>> as_options("max_loss = 0.3 reaches point 4"), as_options("min_privacy = 0.6")
    ('--max-loss 0.3 reaches point 4', '--limit min_privacy=0.6')
    >>> as_options("search.max_suppression = 5.0 is not valid")  # a key of the run file
    'search.max_suppression = 5.0 is not valid'
    >>> as_options("another name, or overwrite = True"), as_options('give run = "run.toml", a run file of your own')
    ('another name, or --force', 'give --run run.toml, a run file of your own')
    """

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        return f"--{name.replace('_', '-')} {value}" if name in FLAGS else f"--limit {name}={value}"

    for parameter, words in OPTIONS.items():
        text = text.replace(parameter, words)
    return LIMIT.sub(option, ACCEPT.sub(r'--accept "\1=…"', text))


def on_page(text: str) -> str:
    """Return a text of the library with settings as the page names them.

    >>> on_page('missing = "category" under [data]')
    '“A missing value means”: category in Declare'
    >>> on_page("max_loss = 0.3 reaches point 4"), on_page("another name, or overwrite = True")
    ('maximum loss 0.3 reaches point 4', 'another name')
    >>> on_page('recipe = "acs" under [groups], or name the areas')
    '“recipe”: acs in the form of the protected group, or name the areas'
    """
    for parameter, words in PARAMETERS.items():
        text = text.replace(parameter, words)
    text = ACCEPT.sub(r"\1", text)
    text = SECTION.sub(_place, SETTING.sub(_setting, LIMIT.sub(_limit, text)))
    return WORD.sub(lambda match: WORDS[match[0]], text)


def _limit(match: re.Match[str]) -> str:
    name, value = match[1], match[2]
    if name in LABELS:
        return match[0]
    end, _, rest = name.partition("_")
    return f"{'maximum' if end == 'max' else 'minimum'} {rest.replace('_', ' ')} {value}"


def _setting(match: re.Match[str]) -> str:
    key, value, more = match[1], match[2], match[3]
    more = re.sub(rf"{key} = ", "", more)
    return f"“{LABELS.get(key, key.replace('_', ' '))}”: {_value(value).strip()}{_value(more)}"


def _value(text: str) -> str:
    text = re.sub(r"([a-z_]+) = ", lambda key: f"{key[1].replace('_', ' ')} ", text)
    text = re.sub(r"\b(true|false)\b", lambda word: "yes" if word[1] == "true" else "no", text)
    if not re.search(r"\w", text):  # a sign, as it is written
        return text
    return re.sub(r"\s+", " ", re.sub(r"[\[\]{}\"']|^\{ ", "", text)).rstrip()


def _place(match: re.Match[str]) -> str:
    place = PLACES.get(match[2])
    if place is None:
        return match[0]
    return place if match[1] is None else f"in {place}"
