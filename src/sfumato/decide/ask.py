"""The best release of a front within limits, with the binding limits and the relaxations that are worth their loss.

A question outside of the limits of the search is answered from the recodings of the front. This module also states the
search that answers exactly that question, its command, and whether it takes seconds.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from sfumato.base.notebook import card
from sfumato.base.text import number, percent
from sfumato.data.settings import Role
from sfumato.decide.curve import Curve, Fit, fitted
from sfumato.decide.floor import BELOW, floor_at, floor_levels, with_floor_of
from sfumato.decide.limits import Aim, Limits, choices, limit_example, limit_names
from sfumato.decide.offers import Offer, Offers, offers_of, points_of, privacy_objective, with_suppression
from sfumato.decide.pick import Choice, Preset, presets
from sfumato.decide.sentences import (
    Asker,
    NothingWithinError,
    Question,
    Relaxation,
    binding,
    candidate_clause,
    notes_of,
    order_warning,
    publish_command,
    reach,
    relaxations,
    table_of,
    uniqueness_warning,
    unreachable,
    words_of,
)
from sfumato.errors import InputError, MeasureError
from sfumato.front import Front, Objective
from sfumato.measures.fast_paths import Form
from sfumato.measures.registry import DISTINCT_L, PROSECUTOR_RISK, K, measure
from sfumato.plans.recodings import LevelPlan
from sfumato.study import Study
from sfumato.study.methods import METHODS, WITH_PROBLEMS
from sfumato.tables.frequency import FrequencyTable

QUICK = 200_000_000  # evaluations times tuples: a few seconds of the compiled walk


def searched_limit(front: Front) -> float:
    """Return the share that the search of a front was allowed to suppress; 1 if there was no limit."""
    settings = front.study.search
    if METHODS[front.system].problems and not settings.max_suppression:
        rule = settings.suppression or ""
        if settings.problem == 3 or (settings.problem is None and rule == "below_mean"):
            return 1.0
    return settings.max_suppression


def study_for(front: Front, limits: Limits) -> Study | None:
    """Return the study whose front answers a question outside of a front's limits, or None if it is inside."""
    study, settings = front.study, front.study.search
    if limits.max_suppression != searched_limit(front):
        study = study.with_search(max_suppression=min(limits.max_suppression, 0.999))
    names = {objective.name for objective in front.objectives} | set(settings.constraints)
    if limits.min_l is not None and DISTINCT_L.name not in names:
        study = study.with_search(constraints=dict(settings.constraints) | {DISTINCT_L.name: limits.min_l})
    return None if study is front.study else study


def searched_folder(folder: Path, max_suppression: float) -> Path:
    """Return the folder in which the command that searches with another limit writes its front."""
    return folder.with_name(f"{folder.name}-suppression-{max_suppression:g}")


def search_command(max_suppression: float, folder: Path | None, problem: int | None = None) -> str:
    """Return the command that searches the same study with another limit, or for another of the four problems."""
    run = "run.toml" if folder is None else str(folder / "run.toml")
    name = "front" if folder is None else str(folder).rstrip("/")
    words = ["sfumato", "search", run]
    if problem is not None:
        words += ["--system", WITH_PROBLEMS, "--problem", str(problem)]
        name += f"-problem-{problem}"
    words += ["--max-suppression", f"{min(max_suppression, 0.999):g}"]
    if problem is None:
        name = str(searched_folder(Path(name), max_suppression))
    return shlex.join([*words, "-o", name])


def better_searches(front: Front, max_suppression: float, folder: Path | None) -> dict[int, str]:
    """Return, for each of the four questions, the command of the search for exactly that question.

    A question that the search of the front was for has none.
    """
    if not front.recodes:
        return {}
    settings = front.study.search
    usual = searched_limit(front)
    limit = max_suppression if max_suppression < 1 else 0.1
    measures = [measure(objective.name) for objective in front.objectives]
    result = {}
    if not (any(each.fast.histogram is Form.MEAN_SIZE for each in measures) and usual == 0):
        result[1] = search_command(0.0, folder, problem=1)
    if not (K in measures and DISTINCT_L not in measures and usual == limit):
        result[2] = search_command(limit, folder, problem=2)
    if front.study.named(Role.SENSITIVE) and not (
        K in measures and DISTINCT_L in measures and usual == limit and not settings.reproduction
    ):
        result[4] = search_command(limit, folder, problem=4)
    return result


class OutsideError(InputError):
    """A question that a front cannot answer. Its remedy is the search that can."""


USUAL_LOSS, USUAL_SUPPRESSION = 0.25, 0.10  # used for the four questions if no limit is given


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The best release within limits, with all that helps to judge it. `choice` can be published."""

    front: Front
    limits: Limits
    aim: Aim
    offer: Offer
    words: tuple[str, ...]
    binds: tuple[str, ...]
    relaxations: tuple[Relaxation, ...]
    choices: tuple[Offer, ...]
    curve: Curve
    floor: int
    fit: Fit
    questions: tuple[Question, ...]
    notes: tuple[str, ...]
    command: str
    publish: str
    search: Callable[[], Answer] | None = None

    def __repr__(self) -> str:
        return f"<Answer: {self.says}>"

    def _repr_html_(self) -> str:
        offer = self.offer
        rows = [[K.name, str(offer.k)], *([["ℓ", str(offer.l)]] if offer.l else [])]
        rows += [["loss", percent(offer.loss)], ["suppressed", f"{offer.suppressed:,} ({percent(offer.suppression)})"]]
        rows += [["left out: missing values", f"{self.front.left_out:,}"]] if self.front.left_out else []
        rows += [["loss / floor", f"{self.above_floor[1]:.2f}"]] if self.above_floor else []
        rows += [["binding limits", ", ".join(self.binds) or "none"]]
        rows += [["could be relaxed", result.says] for result in self.relaxations[:3]]
        same = self.aim.privacy.name == self.front.objectives[0].name
        picture = self.front.picture(offer.point, (offer.loss, float(offer.value)) if same else None)
        return card(f"Answer: {self.says}", ["figure", "value"], rows, picture, self.notes[:3])

    @cached_property
    def presets(self) -> tuple[Preset, ...]:
        """Common limits with the points they lead to, if no limit was given. The answer then recommends no release."""
        return presets(self.front) if self.limits.given() == ["max_suppression"] else ()

    @property
    def knee(self) -> str:
        """The knee of the curve in words, with its scale; empty if there is none."""
        knee = self.curve.knee()
        return f"{self.step(knee)} (point {knee.point}), {self.curve.scale}" if knee else ""

    @property
    def says(self) -> str:
        """The answer in one line."""
        return candidate_clause(self.offer, self.aim)

    @cached_property
    def searched(self) -> Answer | None:
        """The answer of a search for exactly this question, if the front was searched for another one.

        It is None if the front was searched for this question, or if a search takes longer, with the `command` to run.
        """
        return None if self.search is None else self.search()

    @property
    def improved(self) -> bool:
        """Whether that search finds a better release."""
        if self.searched is None:
            return False
        other = self.searched.offer
        less = other.loss < self.offer.loss - 1e-12
        more = self.aim.gain_of(other) - self.aim.gain_of(self.offer)
        return less if self.aim.least_loss else more > 1e-9 or (more > -1e-9 and less)

    @cached_property
    def choice(self) -> Choice:
        """The choice for `sf.publish`: the point, with the suppression of the answer."""
        front, offer = self.front, self.offer
        if not offer.searched:
            front = with_suppression(front, offer.point, offer.suppress_below, offer.diversity_below)
        return Choice(front, front.point(offer.point), f"asked for {self.limits.says()}")

    @property
    def about(self) -> str:
        """The measure on the curve, in words."""
        return self.aim.privacy.label + (f" with ℓ of at least {self.floor}" if self.floor > 1 else "")

    @property
    def above_floor(self) -> tuple[float, float] | None:
        """The lower bound of the loss at the answer's k, and the ratio of the answer's loss to it.

        The bound holds for every recoding with these labels. The ratio leaves out the records that the missing rule
        left out. It is None if the front has no lower bound, or none for so small a k.
        """
        lowest = floor_at(floor_levels(self.front), float(self.offer.k))
        ratio = self.front.ratio(self.offer.loss, lowest) if lowest else None
        return None if lowest is None or ratio is None else (lowest, ratio)

    @property
    def floor_says(self) -> str:
        """The lower bound and the ratio to it in a sentence; empty if there is none."""
        if self.above_floor is None:
            return ""
        lowest, ratio = self.above_floor
        return f"{BELOW} {percent(lowest)} at this k: the answer loses {ratio:.2f} times the floor"

    def stretches(self) -> dict[str, list[str]]:
        """Return the flat and the steep stretches of the curve in words."""
        pairs = {"flat": self.curve.flat(), "steep": self.curve.steep()}
        return {kind: [f"{self.step(a)} → {self.step(b)}" for a, b in found] for kind, found in pairs.items()}

    def step(self, offer: Offer) -> str:
        """Return a step of the curve in words."""
        return f"{self.aim.privacy.label} {number(offer.value)} at {percent(offer.loss)}"

    def as_dict(self) -> dict[str, object]:
        """Return the answer as `sfumato ask --json` prints it.

        Returns:
            A dictionary.
        """
        knee, privacy, floor, found = self.curve.knee(), self.aim.privacy, self.above_floor, self.searched
        seeks = "both" if self.aim.both else privacy.form or privacy.name
        pairs = {"flat": self.curve.flat(), "steep": self.curve.steep()}
        answer = self.offer.as_dict() | {"says": self.says, "words": list(self.words), "publish": self.publish}
        return {
            "asked": self.limits.as_dict() | {"seeks": seeks},
            "answer": None if self.presets else answer,
            "presets": [preset.as_dict() for preset in self.presets],
            "binds": list(self.binds),
            "relaxations": [result.as_dict() for result in self.relaxations],
            "choices": [offer.as_dict() for offer in self.choices],
            "knee": knee.as_dict() | {"scale": self.curve.scale} if knee else None,
            **{kind: [{"from": a.as_dict(), "to": b.as_dict()} for a, b in result] for kind, result in pairs.items()},
            "fit": self.fit.as_dict() | {"says": self.fit.says(self.about)},
            "questions": [question.as_dict() for question in self.questions],
            "floor": floor and {"loss": floor[0], "ratio": floor[1], "says": self.floor_says},
            "notes": list(self.notes),
            "left_out": self.front.left_out,
            "command": self.command or None,
            "searched": found and found.offer.as_dict() | {"says": found.says, "better": self.improved},
        }


def ask(
    front: Front,
    *,
    max_loss: float | None = None,
    max_suppression: float | None = None,
    min_k: float | None = None,
    min_l: float | None = None,
    prefer: str | None = None,
    table: FrequencyTable | None = None,
    folder: Path | None = None,
    search: Callable[..., Front] | None = None,
) -> Answer:
    """Return the best release within limits, as `sfumato.ask` does, which passes its own `search`.

    Without a `search`, the recodings of the front are the only answer.
    """
    if not front.tells_k:
        raise InputError(
            "the points of this front have no k, so it cannot be asked",
            expected="a front whose points have a k",
            remedy=f"pick, which knows the limits {', '.join(limit_names(front))}: {limit_example(front)}",
        )
    allowed = searched_limit(front) if max_suppression is None else max_suppression
    limits = Limits(front.persons, max_loss, allowed, min_k, min_l)
    # A search takes seconds if that of the front was complete and evaluated few nodes.
    quick = front.exact and front.evaluations * (front.tuples or front.rows) <= QUICK
    other = study_for(front, limits) if quick and METHODS[front.system].levels else None
    if search is None or other is None:
        return _answer(front, limits, prefer, table, folder)

    def by_search() -> Answer:
        known = table_of(front) if table is None else table
        found = with_floor_of(search(other, table=known), front)
        within = replace(limits, rows=found.persons, max_suppression=other.search.max_suppression)
        below = None if folder is None else searched_folder(folder, limits.max_suppression)
        return _answer(found, within, prefer, known, below)

    try:
        return _answer(front, limits, prefer, table, folder, by_search)
    except (OutsideError, NothingWithinError):
        return by_search()


def _answer(
    front: Front,
    limits: Limits,
    prefer: str | None,
    table: FrequencyTable | None,
    folder: Path | None,
    by_search: Callable[[], Answer] | None = None,
) -> Answer:
    """Return the answer from the recodings of a front."""
    usual, aim = searched_limit(front), _aim(front, limits, prefer)
    offers = _offers(front, limits, aim, usual, folder)
    best = _best(front, offers, limits, aim)
    level = limits.without("max_loss").met(offers)
    floor = (best.l or 0) if aim.both and limits.max_loss is not None else 0
    if floor:  # k and ℓ form a surface of trade-offs; the curve is its section through the answer
        level &= offers.l >= floor
    curve = Curve.of(offers.some(level), aim.privacy)
    table = table_of(front) if table is None else table
    return Answer(
        front=front,
        limits=limits,
        aim=aim,
        offer=best,
        words=words_of(front, best, table),
        binds=binding(offers, limits, aim, best),
        relaxations=relaxations(offers, limits, aim, best, curve.rate),
        choices=tuple(choices(offers, limits.met(offers), aim.privacy)) if aim.both else (),
        curve=curve,
        floor=floor,
        fit=fitted(curve.loss, curve.values),
        questions=_questions(front, offers, limits, better_searches(front, limits.max_suppression, folder)),
        notes=(
            *uniqueness_warning(offers, limits, best),
            *notes_of(front, limits, best, usual, by_search is not None),
            *order_warning(front, table),
        ),
        command="" if limits.max_suppression == usual else search_command(limits.max_suppression, folder),
        publish=publish_command(folder, best),
        search=by_search,
    )


def _best(front: Front, offers: Offers, limits: Limits, aim: Aim) -> Offer:
    """Return the best candidate within limits; at the knee, if only the suppression is limited."""
    if limits.min_l is not None and not np.any(offers.l > 0):
        if not front.recodes and front.study.named(Role.SENSITIVE):
            raise MeasureError(
                "the points of this front do not state ℓ",
                expected="a search with a constraint on distinct_l, or no min_l",
            )
        raise MeasureError("min_l where no column is sensitive", expected="a sensitive column, or no min_l")
    within = limits.met(offers)
    best = aim.best(offers, within)
    if best is None:
        raise unreachable(front, limits, aim)
    if limits.max_loss is None and limits.min_k is None and limits.min_l is None:
        return Curve.of(offers.some(within), aim.privacy).knee() or best
    return best


def _aim(front: Front, limits: Limits, prefer: str | None) -> Aim:
    if prefer not in (None, Form.SIZE, Form.DIVERSITY):
        raise InputError(f'prefer is "{prefer}"', expected="k or l")
    names = {objective.name for objective in front.objectives}
    least = limits.max_loss is None and (limits.min_k is not None or limits.min_l is not None)
    if prefer is not None:
        second = Form.SIZE if prefer == Form.DIVERSITY else Form.DIVERSITY
        return Aim(Objective.of(Form(prefer)), least_loss=least, second=Objective.of(second))
    both = {K.name, DISTINCT_L.name} <= names
    return Aim(privacy_objective(front, limits.max_suppression == 0, both), both, least)


def _offers(front: Front, limits: Limits, aim: Aim, usual: float, folder: Path | None) -> Offers:
    """Return the candidates of a front: from class histograms if these determine the objective, else its points.

    A point whose classes have their own labels has no suppression but its own.
    """
    if not front.recodes:
        return points_of(front)
    stated = aim.privacy.form is not None
    others = any(isinstance(point.plan, LevelPlan) and point.plan.limits for point in front.points)
    if front.classes is not None and stated and not others:
        reached = max(reach(limits.max_suppression, 0.5), reach(USUAL_SUPPRESSION, 0.5))
        return _demanded(front, offers_of(front, int(np.ceil(reached * front.persons))))
    if limits.max_suppression != usual:
        why = (
            "it was saved without its classes" if stated else f"{aim.privacy.label} cannot be derived from class sizes"
        )
        if stated and others:
            why = "its classes are also suppressed by criteria that sizes and diversities do not show"
        raise OutsideError(
            f"the front was searched with {percent(usual)} suppressed, so it cannot answer for "
            f"{percent(limits.max_suppression, 0.0)}: {why}",
            expected=f"max_suppression of {usual:g}",
            remedy=search_command(limits.max_suppression, folder),
        )
    return points_of(front)


def _demanded(front: Front, offers: Offers) -> Offers:
    """Return the candidates that keep the constraints of the search, which another suppression may violate."""
    least = front.study.search.constraints
    risk = least.get(PROSECUTOR_RISK.name, 1.0)
    k, l = max(least.get(K.name, 0.0), 1.0 / risk), least.get(DISTINCT_L.name, 0.0)
    return offers.some((offers.k >= k - 1e-9) & (offers.l >= l - 1e-9 if l > 1 else True))


def _questions(front: Front, offers: Offers, limits: Limits, commands: dict[int, str]) -> tuple[Question, ...]:
    limit = limits.max_suppression if limits.max_suppression < 1 else USUAL_SUPPRESSION
    loss = USUAL_LOSS if limits.max_loss is None else limits.max_loss
    return Asker(offers, loss, limit, commands, bool(front.study.named(Role.SENSITIVE))).four()
