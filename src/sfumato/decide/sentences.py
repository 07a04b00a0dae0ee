"""The words of answers: candidates, recodings, warnings, and the error with the nearest release that exists."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np

from sfumato.base.text import number, percent
from sfumato.data.settings import Role
from sfumato.decide.limits import Aim, Limits
from sfumato.decide.offers import Offer, Offers, offers_of, points_of
from sfumato.errors import SfumatoError, UnreachableError, counted, shortened
from sfumato.front import Front, Objective
from sfumato.hierarchies.recipes import HierarchyFile, HierarchyPaths
from sfumato.measures.measure import Form
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, WEIGHTED_K, K
from sfumato.plans.boxes import BoxPlan
from sfumato.study.methods import METHODS
from sfumato.tables.frequency import FrequencyTable


def k_and_l(offer: Offer) -> str:
    """Return the k and ℓ of a candidate in words."""
    return f"{K.label} {offer.k:,}" + (f" and {DISTINCT_L.label} {offer.l}" if offer.l is not None else "")


def objective_clause(offer: Offer, aim: Aim) -> str:
    """Return the candidate's value of the objective in words."""
    return k_and_l(offer) if aim.both else f"{aim.privacy.label} {number(offer.value)}"


def cost_clause(offer: Offer) -> str:
    """Return the loss and the suppression of a candidate in words."""
    gone = f"{percent(offer.suppression)} suppressed" if offer.suppressed else "nothing suppressed"
    return f"loss {percent(offer.loss)}, {gone}"


def candidate_clause(offer: Offer, aim: Aim) -> str:
    """Return a candidate in one clause: the known privacy figures, then its costs."""
    parts, form = [objective_clause(offer, aim)], aim.privacy.form
    if not aim.both and form is not Form.SIZE and offer.k > 0:
        parts.append(f"{K.label} {offer.k:,}")
    if not aim.both and form is not Form.DIVERSITY and offer.l is not None:
        parts.append(f"{DISTINCT_L.label} {offer.l}")
    if form not in (None, Form.MEAN_SIZE) and offer.weighted_k is not None:
        parts.append(f"{WEIGHTED_K.label} {number(offer.weighted_k)}")
    return f"{', '.join(parts)}; {cost_clause(offer)} (point {offer.point})"


class NothingWithinError(UnreachableError):
    """No release is within the limits of a question. `nearest` are values of single limits that can be met."""

    def __init__(self, what: str, nearest: dict[str, float], *, expected: str = "", remedy: str = "") -> None:
        super().__init__(what, expected=expected, remedy=remedy)
        self.nearest = nearest


def unreachable(front: Front, limits: Limits, aim: Aim) -> NothingWithinError:
    """Return the error that no release keeps the limits, with the nearest value of each that the others allow."""
    offers = offers_of(front, front.persons) if aim.privacy.form is not None else points_of(front)
    near: dict[str, float] = {}
    for name in limits.given():
        free = limits.without(name).met(offers)
        if not free.any():
            continue
        if name == "max_loss":
            value: float = np.ceil(offers.loss[free].min() * 1000) / 1000
        elif name == "max_suppression":
            value = np.ceil(offers.suppression[free].min() * 10000) / 10000
        else:
            value = float(getattr(offers, name.removeprefix("min_"))[free].max())
            if value < 1:
                continue
        near[name] = float(value)
    says = ", or ".join(f"{name} = {value:g}" for name, value in near.items())
    return NothingWithinError(
        f"no recoding of the front has {limits.says()}",
        near,
        expected="limits that at least one release meets",
        remedy=says or "relax two limits at once, or search again with other settings",
    )


def table_of(front: Front) -> FrequencyTable | None:
    """Return the table of a front, or None if it can no longer be read."""
    try:
        return front.study.table()
    except SfumatoError:
        return None


def order_warning(front: Front, table: FrequencyTable | None) -> list[str]:
    """Return a warning if the values of a column without an order or hierarchy were grouped alphabetically."""
    if table is None or not METHODS[front.system].neighbours:
        return []
    columns = front.study.columns
    result = [
        domain.name
        for domain in table.domains
        if domain.spans is None
        and len(domain.labels) > 2
        and domain.hierarchy.height < 2
        and columns[domain.name].order is None
        and not isinstance(columns[domain.name].hierarchy, str | HierarchyFile | HierarchyPaths)
        and columns[domain.name].role is Role.QUASI_IDENTIFIER
    ]
    if not result:
        return []
    said = f"{shortened(result)} {'has' if len(result) == 1 else 'have'} no order and no hierarchy"
    return [f"{said}, so values are ordered alphabetically: set order = [...] or a hierarchy for a meaningful order."]


def words_of(front: Front, offer: Offer, table: FrequencyTable | None) -> tuple[str, ...]:
    """Return the recoding in words, with the labels if the table can be read."""
    point = front.point(offer.point)
    if isinstance(point.plan, BoxPlan):
        return (f"{counted(len(point.plan.labels), 'class', 'classes')}, each with labels of its own",)
    plan = point.recoding_plan
    if table is not None:
        return tuple(plan.words(table))
    return tuple(
        f"{name} at level {choice}" if isinstance(choice, int) else f"{name} in {counted(len(choice), 'group')}"
        for name, choice in plan.choices.items()
    )


def uniqueness_warning(offers: Offers, limits: Limits, best: Offer) -> list[str]:
    """Return a warning if k is 1, with the least loss at which no record is alone in its class."""
    if best.k != 1:
        return []
    pairs = Aim(Objective.of(Form.SIZE), least_loss=True)
    offer = pairs.best(offers, replace(limits, max_loss=None, min_k=2).met(offers))
    way = f" The lowest loss with k = 2 is {percent(offer.loss)} (point {offer.point})." if offer is not None else ""
    return [f"k = 1: unique records remain identifiable.{way}"]


def notes_of(front: Front, limits: Limits, best: Offer, usual: float, searched: bool = False) -> tuple[str, ...]:
    """Return notes on an answer. The advice to search is left out if a search is run anyway."""
    notes = []
    if not best.searched:
        below = [f"classes below {best.suppress_below:,} records"] * (best.suppress_below > 1)
        below += [f"classes with fewer than {best.diversity_below} sensitive values"] * (best.diversity_below > 1)
        goes = " and ".join(below) or "nothing"
        notes.append(f"This is the recoding of point {best.point} with a different suppression: {goes} suppressed.")
    if limits.max_suppression != usual and not searched:
        notes.append(
            f"The recodings were searched with {'any suppression' if usual >= 1 else percent(usual) + ' suppressed'}; "
            "a search with the requested limit may find better ones."
        )
    names = {objective.name for objective in front.objectives} | set(front.study.search.constraints)
    if limits.min_l is not None and DISTINCT_L.name not in names and METHODS[front.system].levels and not searched:
        wanted = json.dumps([K.name, DISTINCT_L.name, GENERAL_LOSS.name])
        notes.append(
            f"The recodings were not searched for ℓ: objectives = {wanted} under [search] finds the best ones."
        )
    if not front.exact:
        notes.append("The front is the best found, not proven optimal: a longer search may improve it.")
    return tuple(notes)


def publish_command(folder: Path | None, best: Offer) -> str:
    """Return the command that publishes a candidate."""
    if folder is None:
        return "sf.publish(answer.choice, 'release')"
    extra = ""
    if not best.searched:
        extra = f" --suppress-below {best.suppress_below}"
        extra += f" --diversity-below {best.diversity_below}" if best.diversity_below else ""
    return f"sfumato publish {shlex.quote(str(folder))} --point {best.point}{extra} -o release"
