"""The publisher's questions: the best release within limits, the binding limits and worthwhile relaxations.

The searches that answer what a front cannot: the study, whether it takes seconds, the exact command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.base.notebook import card
from sfumato.base.text import number, percent
from sfumato.data.settings import Role
from sfumato.decide.curve import Curve, Fit, fitted
from sfumato.decide.floor import BELOW, floor_at, floor_levels, with_floor_of
from sfumato.decide.limits import Limits, Wish, checked, choices, limit_example, limit_names
from sfumato.decide.offers import Offer, Offers, Privacy, offers_of, points_of, sought, with_suppression
from sfumato.decide.pick import Choice, Preset, presets
from sfumato.decide.questions import Asker, Question, Relaxation, binding, reach, relaxations
from sfumato.decide.sentences import (
    alone,
    alphabetical,
    notes_of,
    publish_command,
    table_of,
    unreachable,
    whole,
    words_of,
)
from sfumato.errors import InputError, MeasureError
from sfumato.front import Front
from sfumato.measures.measure import Form
from sfumato.measures.registry import DISTINCT_L, PROSECUTOR_RISK, K, measure
from sfumato.plans.recodings import LevelPlan
from sfumato.study import Study
from sfumato.study.methods import METHODS, WITH_PROBLEMS
from sfumato.tables.frequency import FrequencyTable

QUICK = 200_000_000  # evaluations times tuples, which is a few seconds of the compiled walk


def searched_limit(front: Front) -> float:
    """The share that a front's search was allowed to suppress; 1 where any suppression was."""
    settings = front.study.search
    if METHODS[front.system].problems and not settings.max_suppression:
        rule = settings.suppression or ""
        if settings.problem == 3 or (settings.problem is None and rule == "below_mean"):
            return 1.0
    return settings.max_suppression


def study_for(front: Front, limits: Limits) -> Study | None:
    """The study whose front answers a question that is outside of a front's limits; None where it is inside."""
    changed: dict[str, Any] = {}
    settings = front.study.search
    if limits.max_suppression != searched_limit(front):
        changed["max_suppression"] = min(limits.max_suppression, 0.999)
    names = {objective.name for objective in front.objectives} | set(settings.constraints)
    if limits.min_l is not None and DISTINCT_L.name not in names:
        changed["constraints"] = dict(settings.constraints) | {DISTINCT_L.name: limits.min_l}
    return front.study.with_search(**changed) if changed else None


def takes_seconds(front: Front) -> bool:
    """Whether a search like the one that found a front takes seconds: it was complete, and did little."""
    return front.exact and METHODS[front.system].levels and front.evaluations * (front.tuples or front.rows) <= QUICK


def searched_folder(folder: Path, max_suppression: float) -> Path:
    """Where the command that searches with another limit puts its front."""
    return folder.with_name(f"{folder.name}-suppression-{max_suppression:g}")


def search_command(max_suppression: float, folder: Path | None, problem: int | None = None) -> str:
    """The command that searches the same study with another limit, or for another of the four problems."""
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
    """For each of the four questions the search that seeks exactly it; none where the front's own did."""
    if not front.recodes:
        return {}
    settings = front.study.search
    usual = searched_limit(front)
    limit = max_suppression if max_suppression < 1 else 0.1
    sought = [measure(objective.name) for objective in front.objectives]
    result = {}
    if not (any(result.histogram is Form.MEAN_SIZE for result in sought) and usual == 0):
        result[1] = search_command(0.0, folder, problem=1)
    if not (K in sought and DISTINCT_L not in sought and usual == limit):
        result[2] = search_command(limit, folder, problem=2)
    sensitive = any(column.role.value == "sensitive" for column in front.study.columns.values())
    if sensitive and not (K in sought and DISTINCT_L in sought and usual == limit and not settings.reproduction):
        result[4] = search_command(limit, folder, problem=4)
    return result


class OutsideError(InputError):
    """A question that a front cannot answer; its remedy is the search that does."""


USUAL_LOSS, USUAL_SUPPRESSION = 0.25, 0.10  # of the four questions, where nothing limits them


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The best offer within limits and all that helps to judge it. `choice` can be published."""

    front: Front
    limits: Limits
    wish: Wish
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
        rows = [[K.name, str(offer.k)], *([["ℓ", str(offer.l)]] if offer.l is not None and offer.l > 0 else [])]
        rows += [["loss", percent(offer.loss)], ["suppressed", f"{offer.suppressed:,} ({percent(offer.suppression)})"]]
        rows += [["left out: missing values", f"{self.front.left_out:,}"]] if self.front.left_out else []
        rows += [["loss / floor", f"{self.above_floor[1]:.2f}"]] if self.above_floor else []
        rows += [["binding limits", ", ".join(self.binds) or "none"]]
        rows += [["could be relaxed", result.says] for result in self.relaxations[:3]]
        same = self.wish.privacy.measure == self.front.objectives[0].name
        picture = self.front.picture(offer.point, (offer.loss, float(offer.value)) if same else None)
        return card(f"Answer: {self.says}", ["figure", "value"], rows, picture, self.notes[:3])

    @cached_property
    def presets(self) -> tuple[Preset, ...]:
        """Common limits with the points they lead to, where no limit was given: nothing is recommended then."""
        return presets(self.front) if self.limits.given() == ["max_suppression"] else ()

    @property
    def knee(self) -> str:
        """The knee of the curve in words, with its scale; empty where there is none."""
        knee = self.curve.knee()
        return f"{self.step(knee)} (point {knee.point}), {self.curve.scale}" if knee else ""

    @property
    def says(self) -> str:
        """The answer in one line."""
        return whole(self.offer, self.wish.privacy, self.wish.both)

    @cached_property
    def searched(self) -> Answer | None:
        """The answer of a search for exactly this question, where the front's own was for another and takes seconds.

        None where the front was searched for this question already, or a search takes longer (`command` is the one to
        run).
        """
        return None if self.search is None else self.search()

    @property
    def improved(self) -> bool:
        """Whether that search finds a better release."""
        if self.searched is None:
            return False
        other = self.searched.offer
        less = other.loss < self.offer.loss - 1e-12
        more = self.wish.gain_of(other) - self.wish.gain_of(self.offer)
        return less if self.wish.least_loss else more > 1e-9 or (more > -1e-9 and less)

    @cached_property
    def choice(self) -> Choice:
        """What `sf.publish` takes: the point, under the suppression that the answer has."""
        front, offer = self.front, self.offer
        if not offer.searched:
            front = with_suppression(front, offer.point, offer.suppress_below, offer.diversity_below)
        return Choice(front, front.point(offer.point), f"asked for {self.limits.says()}")

    @property
    def about(self) -> str:
        """What the curve is of."""
        return self.wish.privacy.title + (f" with ℓ of at least {self.floor}" if self.floor > 1 else "")

    @property
    def above_floor(self) -> tuple[float, float] | None:
        """What every recoding with these labels loses at the answer's k, and how many times that the answer loses.

        The ratio is without the records left out. None where the front has no floor, or none for so small a k.
        """
        lowest = floor_at(floor_levels(self.front), float(self.offer.k))
        ratio = self.front.ratio(self.offer.loss, lowest) if lowest else None
        return None if lowest is None or ratio is None else (lowest, ratio)

    @property
    def floor_says(self) -> str:
        """The floor and the ratio to it in a sentence; empty where there is none."""
        if self.above_floor is None:
            return ""
        lowest, ratio = self.above_floor
        return f"{BELOW} {percent(lowest)} at this k: the answer loses {ratio:.2f} times the floor"

    def stretches(self) -> dict[str, list[str]]:
        """Flat and steep stretches in words."""
        return {
            kind: [f"{self.step(a)} → {self.step(b)}" for a, b in result]
            for kind, result in (("flat", self.curve.flat()), ("steep", self.curve.steep()))
        }

    def step(self, offer: Offer) -> str:
        """A step of the curve in words."""
        return f"{self.wish.privacy.title} {number(offer.value)} at {percent(offer.loss)}"

    def as_dict(self) -> dict[str, Any]:
        """As `sfumato ask --json` prints it.

        Returns:
            A dictionary.
        """
        knee = self.curve.knee()
        pairs = {"flat": self.curve.flat(), "steep": self.curve.steep()}
        return {
            "asked": self.limits.as_dict() | {"seeks": "both" if self.wish.both else self.wish.privacy.name},
            "answer": None
            if self.presets
            else self.offer.as_dict() | {"says": self.says, "words": list(self.words), "publish": self.publish},
            "presets": [preset.as_dict() for preset in self.presets],
            "binds": list(self.binds),
            "relaxations": [result.as_dict() for result in self.relaxations],
            "choices": [offer.as_dict() for offer in self.choices],
            "knee": knee.as_dict() | {"scale": self.curve.scale} if knee else None,
            **{kind: [{"from": a.as_dict(), "to": b.as_dict()} for a, b in result] for kind, result in pairs.items()},
            "fit": self.fit.as_dict() | {"says": self.fit.says(self.about)},
            "questions": [question.as_dict() for question in self.questions],
            "floor": None
            if self.above_floor is None
            else {"loss": self.above_floor[0], "ratio": self.above_floor[1], "says": self.floor_says},
            "notes": list(self.notes),
            "left_out": self.front.left_out,
            "command": self.command or None,
            "searched": self.searched.offer.as_dict() | {"says": self.searched.says, "better": self.improved}
            if self.searched is not None
            else None,
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
    """The best release within limits: most privacy, or with `min_k` or `min_l` and no loss limit the least loss.

    The suppression limit is the searched one unless given. k and ℓ together are balanced; `prefer` seeks one of them
    ("k" or "l"). With the table at hand it is not read again; `folder` is that of the front, which
    commands that are offered name. A question outside of the limits that the front was searched with is answered from
    its recodings; with a `search`, `answer.searched` is the answer of a search for exactly that question, if it takes
    seconds, and what the recodings cannot tell at all is answered by that search.

    Args:
        front: the front.
        max_loss: the largest loss, as a share.
        max_suppression: the largest share of suppressed records.
        min_k: the least k.
        min_l: the least ℓ.
        prefer: "k" or "l", where both are searched.
        table: the study's frequency table, where it was read before.
        folder: the folder of the front.

    Returns:
        The best release, the limits that bind, and worthwhile relaxations.

    >>> import sfumato as sf
    >>> front = sf.search(sf.read(sf.sample("adult")))
    >>> answer = ask(front, max_loss=0.30, max_suppression=0.05)
    >>> answer.offer.k, round(answer.offer.loss, 3), answer.offer.suppressed
    (9, 0.252, 1573)
    >>> answer.relaxations[0].says
    'loss 31.6 % instead of 30.0 %: k 16 instead of 9'
    >>> searched = ask(front, max_loss=0.30, max_suppression=0.05, search=sf.search).searched
    >>> searched.offer.k, round(searched.offer.loss, 3), searched.front.exact
    (13, 0.3, True)
    """
    if not front.tells_k:
        raise InputError(
            "the points of this front have no k, so it cannot be asked",
            expected="a front whose points have a k",
            remedy=f"pick, which knows the limits {', '.join(limit_names(front))}: {limit_example(front)}",
        )
    usual = searched_limit(front)
    given = usual if max_suppression is None else max_suppression
    limits = checked(front.persons, max_loss, given, min_k, min_l)
    wish = _wish(front, limits, prefer)
    other = study_for(front, limits) if search is not None and takes_seconds(front) else None

    def by_search() -> Answer:
        if search is None or other is None:
            raise ValueError("no search answers this")
        known = table_of(front) if table is None else table
        return ask(
            with_floor_of(search(other, table=known), front),
            max_loss=max_loss,
            max_suppression=other.search.max_suppression,
            min_k=min_k,
            min_l=min_l,
            prefer=prefer,
            table=known,
            folder=None if folder is None else searched_folder(folder, limits.max_suppression),
        )

    try:
        offers = _offers(front, limits, wish, usual, folder)
    except OutsideError:
        if other is None:
            raise
        return by_search()
    if min_l is not None and not np.any(offers.l > 0):
        if not front.recodes and front.study.named(Role.SENSITIVE):
            raise MeasureError(
                "the points of this front do not tell their ℓ",
                expected="a search with a constraint on distinct_l, or no min_l",
            )
        raise MeasureError("min_l where no column is sensitive", expected="a sensitive column, or no min_l")
    result = wish.best(offers, limits.met(offers))
    if max_loss is None and min_k is None and min_l is None and result is not None:
        steps = Curve.of(offers.some(limits.met(offers)), wish.privacy)
        best = steps.knee() or offers.at(result, wish.privacy)
    elif result is None:
        if other is not None:
            return by_search()
        raise unreachable(front, limits, wish)
    else:
        best = offers.at(result, wish.privacy)
    level = limits.without("max_loss").met(offers)
    floor = (best.l or 0) if wish.both and max_loss is not None else 0
    if floor:  # k and ℓ have a surface of trade-offs; the curve is the one through the answer
        level &= offers.l >= floor
    curve = Curve.of(offers.some(level), wish.privacy)
    table = table_of(front) if table is None else table
    commands = better_searches(front, limits.max_suppression, folder)
    return Answer(
        front=front,
        limits=limits,
        wish=wish,
        offer=best,
        words=words_of(front, best, table),
        binds=binding(offers, limits, wish, best),
        relaxations=relaxations(offers, limits, wish, best, curve.rate),
        choices=tuple(choices(offers, limits.met(offers), wish.privacy)) if wish.both else (),
        curve=curve,
        floor=floor,
        fit=fitted(curve.loss, curve.values),
        questions=_four(front, offers, limits, commands),
        notes=(
            *alone(offers, limits, best),
            *notes_of(front, limits, best, usual, other is not None),
            *alphabetical(front, table),
        ),
        command="" if limits.max_suppression == usual else search_command(limits.max_suppression, folder),
        publish=publish_command(folder, best),
        search=None if other is None else by_search,
    )


def _wish(front: Front, limits: Limits, prefer: str | None) -> Wish:
    if prefer not in (None, Form.SIZE, Form.DIVERSITY):
        raise InputError(f'prefer is "{prefer}"', expected="k or l")
    names = {objective.name for objective in front.objectives}
    least = limits.max_loss is None and (limits.min_k is not None or limits.min_l is not None)
    if prefer is not None:
        second = Form.SIZE if prefer == Form.DIVERSITY else Form.DIVERSITY
        return Wish(Privacy.of(Form(prefer)), least_loss=least, second=Privacy.of(second))
    both = {K.name, DISTINCT_L.name} <= names
    return Wish(sought(front, limits.max_suppression == 0, both), both, least)


def _offers(front: Front, limits: Limits, wish: Wish, usual: float, folder: Path | None) -> Offers:
    """What can be told: from histograms where they tell what is sought, else of the points as they are.

    A point whose classes have labels of their own has no other suppression than its own.
    """
    if not front.recodes:
        return points_of(front)
    stated = wish.privacy.form is not None
    others = any(isinstance(point.plan, LevelPlan) and point.plan.limits for point in front.points)
    if front.classes is not None and stated and not others:
        reached = max(reach(limits.max_suppression, 0.5), reach(USUAL_SUPPRESSION, 0.5))
        return _demanded(front, offers_of(front, int(np.ceil(reached * front.persons))))
    if limits.max_suppression != usual:
        why = (
            "it was saved without its classes" if stated else f"{wish.privacy.title} cannot be derived from class sizes"
        )
        if stated and others:
            why = "its classes are also suppressed by criteria that sizes and diversities do not tell"
        raise OutsideError(
            f"the front was searched with {percent(usual)} suppressed, so it cannot answer for "
            f"{percent(limits.max_suppression, 0.0)}: {why}",
            expected=f"max_suppression of {usual:g}",
            remedy=search_command(limits.max_suppression, folder),
        )
    return points_of(front)


def _demanded(front: Front, offers: Offers) -> Offers:
    """The offers that keep what the search demanded: another suppression must not give it up."""
    least = front.study.search.constraints
    risk = least.get(PROSECUTOR_RISK.name, 1.0)
    k, l = max(least.get(K.name, 0.0), 1.0 / risk), least.get(DISTINCT_L.name, 0.0)
    return offers.some((offers.k >= k - 1e-9) & (offers.l >= l - 1e-9 if l > 1 else True))


def _four(front: Front, offers: Offers, limits: Limits, commands: dict[int, str]) -> tuple[Question, ...]:
    limit = limits.max_suppression if limits.max_suppression < 1 else USUAL_SUPPRESSION
    loss = USUAL_LOSS if limits.max_loss is None else limits.max_loss
    secret = any(column.role.value == "sensitive" for column in front.study.columns.values())
    return Asker(offers, loss, limit, commands, secret).four()
