"""The reference of the Python interface: one page for each stage of the work, filled by mkdocstrings."""

from __future__ import annotations

from typing import NamedTuple

import sfumato


class Page(NamedTuple):
    """A page: its title, a sentence, and the public names on it, each with the members that are shown."""

    title: str
    about: str
    names: dict[str, tuple[str, ...]]


API = {
    "study": Page(
        "Tables and studies",
        "A study is a table and what each of its columns is.",
        {
            "Study": (
                "with_hierarchies",
                "with_search",
                "with_seed",
                "with_accepted",
                "with_settings",
                "replace",
                "with_table",
                "save",
                "as_toml",
            ),
            "read": (),
            "sample": (),
            "inspect": (),
            "Inspection": ("run_file", "as_dict"),
            "Role": (),
        },
    ),
    "hierarchies": Page(
        "Hierarchies",
        "Recipes for the hierarchy of a column, and hierarchies as objects.",
        {
            "intervals": (),
            "breaks": (),
            "quantiles": (),
            "prefixes": (),
            "dates": (),
            "rare_values": (),
            "top_bottom": (),
            "flat": (),
            "hierarchy_file": (),
            "Hierarchy": ("from_paths", "with_leaf"),
        },
    ),
    "measuring": Page(
        "Measuring",
        "Figures of a table: all of them, one of them, of a frame or of a study.",
        {
            "audit": (),
            "Audit": ("to_frame", "histogram", "risk_curve", "as_dict"),
            "measure": (),
            "known_measures": (),
            "classify": (),
            "ClassTable": (),
            "FrequencyTable": (),
        },
    ),
    "searching": Page(
        "Searching",
        "Find every non-dominated release, compare fronts, predict what a run costs.",
        {
            "search": (),
            "Front": ("point", "to_frame", "plot", "histogram", "save", "as_dict"),
            "Point": ("as_dict",),
            "Objective": ("as_dict",),
            "LevelPlan": (),
            "load_front": (),
            "compare_fronts": (),
            "predict": (),
            "ProgressBar": ("finish",),
            "baselines": (),
            "Costs": ("row", "as_dict"),
            "Cost": ("as_dict",),
        },
    ),
    "deciding": Page(
        "Deciding",
        "Choose a release from a front, and draw it.",
        {
            "pick": (),
            "Choice": ("apply",),
            "ask": (),
            "Answer": ("as_dict",),
            "presets": (),
            "Preset": ("as_dict",),
            "draw": (),
            "draw_baselines": (),
        },
    ),
    "publishing": Page(
        "Publishing",
        "Write a release, check it, apply it to another table.",
        {"publish": (), "Release": ("as_dict",), "verify": (), "apply_plan": (), "Anonymizer": ("fit", "transform")},
    ),
    "channels-and-groups": Page(
        "Channels and groups",
        "Randomized response, and groups that stand out by where they live.",
        {
            "Channel": ("describe", "save", "as_dict"),
            "load_channel": (),
            "disguise": (),
            "estimate": (),
            "attack": (),
        },
    ),
    "errors": Page(
        "Errors",
        "One family: each error says what is wrong, what was expected, and what to try.",
        {
            "SfumatoError": ("as_dict",),
            "InputError": (),
            "DataError": (),
            "HierarchyError": (),
            "MeasureError": (),
            "StudyError": (),
            "UnreachableError": (),
        },
    ),
}
FOLDER = "reference/api"
NAMES = tuple(f"{FOLDER}/{name}.md" for name in API)


def home(name: str) -> str:
    """Where a public name is defined.

    >>> home("audit")
    'sfumato.auditing.audit.audit'
    """
    found = getattr(sfumato, name)
    return f"{found.__module__}.{found.__qualname__}"


def pages() -> dict[str, str]:
    """The pages, by their paths on the site."""
    return {f"{FOLDER}/{name}.md": _text(page) for name, page in API.items()}


def _text(page: Page) -> str:
    lines = [f"# {page.title}", "", f"{page.about} All names are in `import sfumato as sf`.", ""]
    for name, members in page.names.items():
        options = {"heading": f'"sf.{name}"', "toc_label": f'"sf.{name}"', "members": f"[{', '.join(members)}]"}
        lines += [f"::: {home(name)}", "    options:", *(f"      {key}: {value}" for key, value in options.items()), ""]
    return "\n".join(lines)
