"""Check a disguise again: its files, its figures, its pages; and with the source whether the channel can have made it.

The draw itself is recorded nowhere, so the reports of a file cannot be made again. What can be checked is that every
plain column is the source's, row by row, and that the reports occur as the matrix makes them of the source.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.release import pack
from sfumato.release.manifest import Content
from sfumato.release.sources import table_of
from sfumato.release.verification import Difference
from sfumato.release.verify import Again, Check, Verifier
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.mark import mark_of
from sfumato.sources.settings import DataSettings
from sfumato.study import Study
from sfumato.study.policy import PolicySettings
from sfumato.systems.channel import draw
from sfumato.systems.channel.contents import CHANNEL, Disguise, Disguised, count_file, pages_of, read_private
from sfumato.systems.channel.disguise import read_back
from sfumato.systems.channel.given import LIMITS, others_words
from sfumato.systems.channel.prior import complete_columns, unit_of
from sfumato.systems.channel.readback import LEVEL, Agreement, Persons, Rows, Truth, chance_of

CLOSE = 1e-6  # of a figure that is worked out again; the certified bound comes from an iteration


def measure_again(check: Check) -> Again:
    """Count the reports again, and work every figure out anew."""
    manifest, (what, counts, persons) = check.manifest, _stated(check)
    given = manifest["own"]["given"]
    plain = draw.plain_file(check.written, Path(check.data))
    expected = pack.file_settings(plain, what.columns, check.data, trim=check.study.data.trim)
    if check.own.data != DataSettings(**expected):
        raise InputError(f"{pack.RUN} does not read the file as analysts do", expected="Parquet, or plain CSV")
    with open_engine(check.own.engine, check.own.engine_options) as engine:
        disguised = count_file(engine, what, check.written, counts, given, persons)
    warnings = disguised.warnings()
    again = {"records": disguised.records, "suppressed": 0, "loss": disguised.loss, "figures": disguised.figures}
    stated = {**manifest, **manifest["own"], "warnings": manifest["warnings"][: len(warnings)]}
    differences = [
        Difference(pack.MANIFEST, f"its {name} {'is' if name in ('loss', 'point') else 'are'} not what the file shows")
        for name, value in {**again, "point": disguised.point, "warnings": warnings, **disguised.as_dict()}.items()
        if not alike(value, stated[name])
    ]
    cells = sum(len(channel.outputs) for channel in what.channels)
    chances = [
        chance_of(reports, truth, channel.matrix)
        for channel, truth, reports in zip(what.channels, counts, disguised.reports, strict=True)
    ]
    differences += _disagreement(check, Agreement(min(min(chances) * cells, 1.0), cells))
    if not given_fits(given, disguised, check.study.policy):
        differences.append(
            Difference(pack.MANIFEST, "its figures given the other columns do not fit the file and the policy")
        )
    return Again(
        whole=disguised.whole,
        dictionary=disguised.dictionary(check.study, manifest["dictionary"]["columns_left_out"]),
        findings=disguised.findings(check.study.policy, manifest["left_out"]),
        differences=differences,
    )


def _stated(check: Check) -> tuple[Disguise, tuple[Truth, ...], Persons | None]:
    """What was disguised by the account of the folder, and the counts of the categories that it keeps."""
    channels, counts, persons = read_private(check.folder)
    own = check.manifest["own"]
    if not isinstance(own["keep_order"], bool) or not (own["test_seed"] is None or isinstance(own["test_seed"], int)):
        raise InputError("its manifest does not say how it was drawn", expected="keep_order and test_seed")
    what = Disguise(channels, tuple(own["kept"]), check.data, own["keep_order"], own["test_seed"])
    return what, counts, persons


def given_fits(given: Any, disguised: Disguised, policy: PolicySettings) -> bool:
    """Whether the figures given the other columns can be true, as far as that can be known without the source."""
    what = disguised.what
    if not what.kept and len(what.channels) < 2:
        return given is None
    blind = {name: 1.0 - figures["privacy"] for name, figures in disguised.figures.items()}
    if not isinstance(given, dict) or list(given["channels"]) != list(blind) or given["columns"] != list(what.kept):
        return False
    known = all(said["best_guess"] >= blind[name] - CLOSE for name, said in given["channels"].items())
    return known and given["limits"] == {name: getattr(policy, name) for name in LIMITS}


def _disagreement(check: Check, agreed: Agreement) -> list[Difference]:
    if agreed.holds:
        return []
    what = f"the frequencies of its reports do not agree with the channel (probability below {LEVEL:g})"
    return [Difference(check.data, what)]


def rows_again(check: Check, study: Study) -> list[Difference]:
    """Compare the plain columns with the source row by row, and the reports with what the channel makes of it."""
    what, counts, persons = _stated(check)
    complete = tuple(complete_columns(study, what.hidden))
    with open_engine(study.engine, study.engine_options) as engine:
        source = Rows(engine, table_of(study), "raw", complete, unit_of(check.study)).attach()
        torn, agreed, again = read_back(source, what, check.written, check.study.policy)
    differences = _disagreement(check, agreed)
    if torn:
        differences.append(Difference(check.data, f"{torn} rows differ from the source in their plain columns"))
    same = all(one.same(two) for one, two in zip(again.counts, counts, strict=True))
    if not same or again.persons != persons:
        differences.append(Difference(CHANNEL, "its counts are not those of the source"))
    if not alike(again.given, check.manifest["own"]["given"]):
        differences.append(
            Difference(pack.MANIFEST, "its figures given the other columns are not those of the file and the source")
        )
    if not alike(agreed.as_dict(), check.manifest["own"]["agreement"]):
        differences.append(Difference(pack.MANIFEST, "its agreement of reports and matrix is not what the file shows"))
    return differences


def says(manifest: Content) -> str:
    """How often the best guess is right for each channel, given the other columns if there are any."""
    said = []
    for name, figures in manifest["figures"].items():
        given = figures["given"]
        if given is None:
            said.append(f"{name}: privacy {figures['privacy']:.3f}, worst posterior {figures['worst_posterior']:.3f}")
            continue
        others = others_words(manifest["own"]["given"]["columns"])
        worst = given["worst_posterior"]
        largest = "" if worst is None else f", worst posterior {worst:.3f}"
        said.append(f"{name}, given {others}: privacy {1 - given['best_guess']:.3f}{largest}")
    return "; ".join(said)


def alike(one: Any, two: Any) -> bool:
    """Whether two records are the same but for the rounding of their numbers.

    >>> alike({"a": [1.0, None]}, {"a": [1.0 + 1e-12, None]}), alike({"a": 1}, {"a": "1"})
    (True, False)
    """
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(alike(value, two[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, float) and isinstance(two, int | float) and not isinstance(two, bool):
        return math.isclose(one, two, rel_tol=CLOSE, abs_tol=1e-300)
    return type(one) is type(two) and bool(one == two)


DISGUISES = Verifier(
    pages=pages_of,
    measure=measure_again,
    rows=rows_again,
    says=says,
    files=lambda data: (CHANNEL, mark_of(Path(data)).as_posix()),
    own_records="its reports were drawn for its own records",
)
