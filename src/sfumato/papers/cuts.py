"""The cuts paper: its questions on the Adult table, answered by its algorithm and by ours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.data.settings import Role
from sfumato.front import Front, Point
from sfumato.measures.fast_paths import Form
from sfumato.measures.measure import Measure
from sfumato.measures.registry import DISTINCT_L, GENERALIZATION_LOSS, SUPPRESSION_LOSS, WEIGHTED_K, K
from sfumato.methods.search import search as find_front
from sfumato.samples.samples import sample
from sfumato.study import ColumnSettings, Study, read

Answer = Callable[[Front], float | str]


@dataclass(frozen=True)
class Question:
    """A question of the paper: its problem, its answer there, the mark, and the answer of a front."""

    words: str
    problem: int
    prefer: str
    paper: str
    known: str
    answer: Answer


@dataclass(frozen=True)
class Answered:
    """A question with the answers of each seed, and the CPU seconds of a run."""

    question: Question
    plain: tuple[float | str, ...]
    ours: tuple[float | str, ...]
    plain_seconds: float
    our_seconds: float

    def as_dict(self) -> dict[str, object]:
        about = {"question" if name == "words" else name: value for name, value in vars(self.question).items()}
        del about["answer"]
        return about | {
            "nsga2": {"answers": list(self.plain), "cpu_seconds": self.plain_seconds},
            "memetic": {"answers": list(self.ours), "cpu_seconds": self.our_seconds},
        }


def paper_setting(problem: int, prefer: str = Form.SIZE) -> Study:
    """Return nine attributes of Adult, four of them along their trees; in problem 4 occupation is sensitive."""
    study = read(sample("adult-complete").with_name("cuts.toml"))
    if problem == 4:
        study = study.replace(columns={"occupation": ColumnSettings(role=Role.SENSITIVE)})
    limit = 0.1 if problem in (2, 4) else 0.0
    return study.with_search(problem=problem, prefer=prefer, max_suppression=limit)


def highest(measure: Measure, max_loss: float) -> Answer:
    """Return the largest value of a measure within a loss."""

    def answer(front: Front) -> float:
        return max((point.values[measure.name] for point in front.points if point.loss <= max_loss), default=0.0)

    return answer


def safe_pairs(max_loss: float, prefer: str | None = None, shown: int = 5) -> Answer:
    """Return the (k, ℓ) that no other pair within the loss dominates, or the one with most of a preferred measure."""

    def answer(front: Front) -> str:
        inside = [point for point in front.points if point.loss <= max_loss]
        pairs = {(int(p.values[K.name]), int(p.values[DISTINCT_L.name])) for p in inside}
        best = sorted(p for p in pairs if not any(o != p and o[0] >= p[0] and o[1] >= p[1] for o in pairs))
        if prefer is not None and best:
            return str(max(best, key=lambda pair: (pair[1], pair[0]) if prefer == Form.DIVERSITY else pair))
        step = max(len(best) // shown, 1)
        return ", ".join(map(str, best[::step]))

    return answer


def near(general: float, suppressed: float) -> Answer:
    """Return the weighted k of the point nearest to each of two losses."""

    def distance(point: Point) -> float:
        values = point.values
        return abs(values[GENERALIZATION_LOSS.name] - general) + abs(values[SUPPRESSION_LOSS.name] - suppressed)

    def answer(front: Front) -> str:
        values = min(front.points, key=distance).values
        size, general, gone = (values[measure.name] for measure in (WEIGHTED_K, GENERALIZATION_LOSS, SUPPRESSION_LOSS))
        return f"{size:.0f} at GL {general * 100:.1f} %, SL {gone * 100:.1f} %"

    return answer


QUESTIONS = (
    Question("problem 1: weighted k at loss ≤ 22 %", 1, Form.SIZE, "2528", "1396", highest(WEIGHTED_K, 0.22)),
    Question("problem 2: k at loss ≤ 25 %", 2, Form.SIZE, "14", "14 (at 24.77 %)", highest(K, 0.25)),
    Question("problem 2: k at loss ≤ 26 %", 2, Form.SIZE, "36", "–", highest(K, 0.26)),
    Question("problem 3: weighted k around GL 35 %, SL 17 %", 3, Form.SIZE, "about 5000", "–", near(0.35, 0.17)),
    Question("problem 4: (k, ℓ)-safe at loss ≤ 20 %", 4, Form.DIVERSITY, "(20, 4)", "–", safe_pairs(0.20)),
    Question(
        "problem 4: (k, ℓ)-safe at loss ≤ 21 %", 4, Form.DIVERSITY, "(20, 5), (22, 3), (18, 6)", "–", safe_pairs(0.21)
    ),
    Question(
        "problem 4: ℓ preferred, loss < 30 %", 4, Form.DIVERSITY, "(15, 7)", "–", safe_pairs(0.2999999, Form.DIVERSITY)
    ),
)


def reproduce_cuts(
    seeds: int = 5,
    questions: Sequence[Question] = QUESTIONS,
    progress: Callable[[int, int], None] | None = None,
    **search: Any,
) -> list[Answered]:
    """Answer every question with the paper's algorithm and with our default, once for each seed."""
    runs: dict[tuple[int, str, str], tuple[list[Front], float]] = {}
    wanted = sorted({(q.problem, q.prefer, method) for q in questions for method in ("nsga2", "memetic")})
    for number, (problem, prefer, method) in enumerate(wanted):
        study = paper_setting(problem, prefer).with_search(algorithm=method, **search)
        table = study.table()
        began = time.process_time()
        fronts = [find_front(study.with_search(seed=seed), table=table) for seed in range(1, seeds + 1)]
        runs[problem, prefer, method] = fronts, (time.process_time() - began) / seeds
        if progress is not None:
            progress(number + 1, len(wanted))
    reproduced = []
    for question in questions:
        plain, ours = (runs[question.problem, question.prefer, method] for method in ("nsga2", "memetic"))
        answers = [tuple(question.answer(front) for front in fronts) for fronts in (plain[0], ours[0])]
        reproduced.append(Answered(question, answers[0], answers[1], plain[1], ours[1]))
    return reproduced


def shown(answers: Sequence[float | str]) -> str:
    """Return the median over seeds with their range; the first seed's answer if answers are words.

    >>> shown([3.0, 1.0, 2.0]), shown(["(20, 4)", "(19, 4)"])
    ('2 (1–3)', '(20, 4)')
    """
    numbers = [answer for answer in answers if not isinstance(answer, str)]
    if not numbers:
        return str(answers[0])
    middle, low, high = statistics.median(numbers), min(numbers), max(numbers)
    return f"{middle:,.0f}" if low == high else f"{middle:,.0f} ({low:,.0f}–{high:,.0f})"
