"""Baselines for our fronts: Mondrian, Datafly, the best lattice node, and recorded ARX figures, at each required k.

A comparison has one row for each method and each k, and all rows are measured the same way: what the recoding costs,
and which k and ℓ it has. A table or a front that does not allow the comparison is refused. Mondrian recodes locally:
its columns and cells are prepared here, and its classes are costed.

Datafly (Sweeney 1997) generalizes the column with most different values by one level until few records are in small
classes (docs/readings.md, 2, Datafly).

ARX cannot be run here, so its figures were recorded once. The version is 3.9.2, local transformation
(`optimizeIterativeFast` with a step of 1/N, Loss with arithmetic mean, no limit of suppression), on Adult with eight
quasi-identifiers, remeasured on the scale of this comparison. Its labels are nodes of the hierarchies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np

from sfumato.base.arrays import Codes, Counts64
from sfumato.base.compiled import need_compiler
from sfumato.data.settings import Role
from sfumato.errors import InputError, StudyError, UnreachableError, nearest, shortened
from sfumato.front import Front, Point
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, K
from sfumato.measures.suppression import budget, suppress_below, suppress_by_plan
from sfumato.measures.two_way import MOST_VALUES, box_errors, mean_and_largest
from sfumato.methods.cuts.problem import UnitTable
from sfumato.methods.cuts.space import CutSpace
from sfumato.methods.lattice.search import LIMITS, search_lattice
from sfumato.methods.local.model import Classes, Labels
from sfumato.methods.local.search import model_of
from sfumato.methods.run import Run
from sfumato.methods.system import check_weights
from sfumato.papers.mondrian import Tuples, labels_per_value, mondrian
from sfumato.plans.recodings import LevelPlan, at_level, at_levels
from sfumato.plans.segments import Segment
from sfumato.study import SearchSettings, Study
from sfumato.study.methods import METHODS
from sfumato.tables.domain import loss_of_source
from sfumato.tables.frequency import FrequencyTable

KS = (2, 5, 10, 20, 50, 100)


def asked_of(ks: Sequence[int] | None, records: int) -> list[int]:
    """Return the required k, rising; by default those of KS that a class can have."""
    asked = sorted(set(KS if ks is None else ks))
    if not asked or asked[0] < 1:
        raise InputError(
            f"k = {asked[0]}" if asked else "no k is given", expected="whole numbers from 1", remedy="k of 5 and 10"
        )
    if ks is None:
        return [k for k in asked if k <= records] or [records]
    if asked[-1] > records:
        raise UnreachableError(
            f"k = {asked[-1]:,} is more than the {records:,} records of the table",
            expected="a k of at most the number of records",
            remedy=f"k of at most {records}",
        )
    return asked


def refuse_persons(study: Study) -> None:
    """Raise if rows belong to persons: the other methods count records, so their k would be another figure."""
    for name in study.named(Role.UNIT):
        raise StudyError(
            f"{name} is a unit column, and a comparison of methods counts records",
            expected="a table in which every record is a person",
            remedy=f"one record for each value of {name}; or, to compare records, give {name} the role identifier",
        )


def refuse_table(table: FrequencyTable, l: int) -> None:
    """Raise unless the table is an original one that has l different sensitive values."""
    if table.removed:
        raise StudyError(
            f"{table.removed} records were removed from the table before",
            expected="the original table",
            remedy="compare on the table that the release was made from",
        )
    if l < 1:
        raise InputError(f"l = {l}", expected="a whole number from 1", remedy="l of 2")
    if l == 1:
        return
    if not table.sensitive:
        raise StudyError(
            f"l = {l} without a sensitive column",
            expected="a column with the role sensitive",
            remedy="leave l out, or declare one",
        )
    held = min(int(np.sum(values.domain.counts > 0)) for values in table.sensitive.values())
    if held < l:
        raise UnreachableError(
            f"l = {l} is more than the {held} different values of a sensitive column",
            expected="an l of at most the number of different values",
            remedy=f"l of at most {held}",
        )


def refuse_fronts(study: Study, table: FrequencyTable, fronts: Sequence[Front]) -> None:
    """Raise unless the fronts are of the same table under the same rules, one of each method."""
    systems = [front.system for front in fronts]
    other = [front.system for front in fronts if not front.recodes]
    if other:
        raise InputError(f"a front of the {other[0]} system does not recode the table", expected="lattice or cuts")
    if len(set(systems)) < len(systems):
        raise InputError(f"{len(systems)} fronts of {shortened(sorted(set(systems)))}", expected="one of each system")
    for front in fronts:
        said = _differs(study, table, front)
        if said:
            raise InputError(
                f"the front of {front.system} {said}",
                expected="a front of the same table, columns, suppression limit and weights",
                remedy="use the run.toml in the folder of the front",
            )


def _differs(study: Study, table: FrequencyTable, front: Front) -> str:
    theirs = front.study
    if front.fingerprint != table.fingerprint:
        return "is of another table"
    if theirs.search.max_suppression != study.search.max_suppression:
        return f"was searched with max_suppression = {theirs.search.max_suppression:g}"
    if theirs.search.weights != study.search.weights:
        return "was searched with other weights"
    if front.points and set(front.points[0].recoding_plan.choices) != set(table.columns):
        return "has other quasi-identifiers"
    for name in table.columns if METHODS[front.system].neighbours else ():
        one, two = study.columns[name], theirs.columns[name]
        if (one.constrained, one.order, one.breaks) != (two.constrained, two.order, two.breaks):
            return f"was searched with another order, breaks or constraint of {name}"
    return ""


def no_levels(table: FrequencyTable) -> str:
    """Return why the table has no lattice; empty if it has one."""
    undeclared = [domain.name for domain in table.domains if not domain.declared]
    if undeclared:
        return f"no hierarchy for {shortened(undeclared)}"
    nodes = int(np.prod([domain.hierarchy.height + 1 for domain in table.domains], dtype=object))
    return f"the lattice has {nodes:,} nodes" if nodes > LIMITS["exact"] else ""


TITLES = {
    **{name: method.title for name, method in reversed(METHODS.items()) if method.title},
    "lattice_optimum": "lattice optimum",
    "datafly": "Datafly",
    "mondrian_strict": "Mondrian, strict",
    "mondrian_relaxed": "Mondrian, relaxed",
    "mondrian_even": "Mondrian, evenly divided",
    "arx_local": "ARX 3.9.2, local",
}
# In these a value may have different labels in different classes.
LOCAL = ("mondrian_strict", "mondrian_relaxed", "mondrian_even", "arx_local")


@dataclass(frozen=True)
class Cost:
    """What a method reaches at a required k, and at which cost. Every figure is None if it does not reach it.

    The loss is the share of d·N, with suppressed records at full loss. The least number of different values of a
    sensitive column in a class is `l`. The average number of different labels of a value is `labels_per_value`, which
    is 1 for a global recoding. The mean error of two-way tables, for a local recoding, is `table_error`.
    """

    method: str
    asked: int
    k: int | None = None
    l: int | None = None
    loss: float | None = None
    suppressed: int | None = None
    classes: int | None = None
    labels_per_value: float | None = None
    table_error: float | None = None
    note: str = ""

    @property
    def title(self) -> str:
        return TITLES[self.method]

    def as_dict(self) -> dict[str, object]:
        """Return the row as JSON.

        Returns:
            A dictionary.
        """
        return asdict(self)


@dataclass(frozen=True)
class Costs:
    """Methods side by side: a row for each method and each required k.

    At most `allowed` records may be suppressed, and `l` is the required diversity. What was left out is in `notes`,
    with the reason, and how each front was found in `how`. Only recodings with the same labels compare, and `labels`
    states the labels that Mondrian may use.
    """

    rows: tuple[Cost, ...]
    records: int
    allowed: int
    l: int = 1
    notes: tuple[str, ...] = ()
    how: Mapping[str, str] = field(default_factory=dict)
    labels: str = ""

    def __iter__(self) -> Iterator[Cost]:
        return iter(self.rows)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of their titles."""
        held = {row.method for row in self.rows}
        return tuple(name for name in TITLES if name in held)

    @property
    def asked(self) -> tuple[int, ...]:
        """The required k, rising."""
        return tuple(sorted({row.asked for row in self.rows}))

    def row(self, method: str, asked: int) -> Cost:
        """Return the row of a method and a required k.

        Args:
            method: the name of a method.
            asked: the k that was asked for.

        Returns:
            The row.
        """
        return next(row for row in self.rows if (row.method, row.asked) == (method, asked))

    def as_dict(self) -> dict[str, object]:
        """Return the comparison as `sfumato baselines --json` prints it.

        Returns:
            A dictionary.
        """
        return {
            "records": self.records,
            "max_suppressed": self.allowed,
            "l": self.l,
            "rows": [row.as_dict() for row in self.rows],
            "found": dict(self.how),
            "labels": self.labels,
            "notes": list(self.notes),
        }


def cost_of(method: str, asked: int, classes: ClassTable) -> Cost:
    """Return the cost of a global recoding, from its classes after suppression."""
    full = float(classes.attribute_weights.sum()) * classes.records
    return Cost(
        method,
        asked,
        k=int(classes.size[classes.kept].min()),
        l=int(DISTINCT_L.value(classes)) if classes.table.sensitive else None,
        loss=GENERAL_LOSS.value(classes) / full,
        suppressed=classes.suppressed_rows,
        classes=int(classes.kept.sum()),
        labels_per_value=1.0,
    )


def classes_at(
    table: FrequencyTable, levels: Sequence[int], k: int, l: int, weights: Sequence[float] = ()
) -> ClassTable:
    """Return the classes of a node without those that have fewer than k records or l different sensitive values."""
    return suppress_below(classify(table, at_levels(table, levels), weights), k, l)


METHOD = "arx_local"
COLUMNS = {"age", "workclass", "education", "marital-status", "race", "sex", "native-country", "salary-class"}
RECORDS, TUPLES = 30_162, 12_458
LOSSES = {5: 0.0293, 10: 0.0447, 20: 0.0631, 50: 0.0964, 100: 0.128}
TABLE_ERRORS = {20: 0.0535}


def recorded(study: Study, table: FrequencyTable, asked: Sequence[int], l: int) -> list[Cost]:
    """Return the losses of ARX's local transformation. None is known for other tables, constraints and k."""
    same = (table.records, table.tuples) == (RECORDS, TUPLES) and set(table.columns) == COLUMNS
    same = same and all(domain.declared for domain in table.domains) and not set(asked).isdisjoint(LOSSES)
    if not same or l > 1 or len(set(study.weights_for(table))) > 1:
        return []
    note = "recorded, not run; labels are nodes of the trees"
    return [
        Cost(METHOD, k, k=k, loss=LOSSES[k], table_error=TABLE_ERRORS.get(k), note=note)
        if k in LOSSES
        else Cost(METHOD, k, note="not recorded for this k")
        for k in asked
    ]


DIVIDES = {"mondrian_strict": "never", "mondrian_relaxed": "needed", "mondrian_even": "always"}


@dataclass(frozen=True, eq=False)
class LocalTable:
    """A table prepared for cuts through all columns at once.

    Relaxed cuts divide the records of a tuple, so `divided` has a cell for each tuple and sensitive value. A frequency
    table does not have the joint counts of several sensitive columns, so the diversity of relaxed classes is then
    unknown.
    """

    table: FrequencyTable
    labels: Labels
    whole: Tuples
    divided: Tuples
    sentence: str

    @classmethod
    def of(cls, study: Study, table: FrequencyTable) -> LocalTable:
        segments, labels, cells = model_of(study, table)
        units = UnitTable.of(table, CutSpace(tuple(segments)), diverse=bool(table.sensitive))
        whole = Tuples(units.codes, units.counts, units.masks, units.words)
        return cls(table, labels, whole, _divided(table, cells.codes.T, whole), label_words(segments))

    @property
    def diverse_when_divided(self) -> bool:
        """Whether the diversity of relaxed classes is known."""
        return len(self.table.sensitive) == 1

    def classes(self, method: str, k: int, l: int = 1) -> tuple[Classes, Counts64] | None:
        """Return the classes of Mondrian and their members, or None if the table has too few records or values."""
        divide = DIVIDES[method]
        return mondrian(self.labels, self.whole if divide == "never" else self.divided, k, l, divide=divide)

    def cost(self, method: str, k: int, l: int = 1) -> Cost:
        """Return what Mondrian reaches and costs. It suppresses no record."""
        strict = DIVIDES[method] == "never"
        if l > 1 and not strict and not self.diverse_when_divided:
            return Cost(method, k, note="the diversity of divided tuples is known for one sensitive column only")
        found = self.classes(method, k, l)
        if found is None:
            return Cost(method, k, note="even the whole table as one class does not reach this")
        classes, members = found
        diverse = bool(self.table.sensitive) and (strict or self.diverse_when_divided)
        return Cost(
            method,
            k,
            k=int(classes.rows.min()),
            l=int(members.min()) if diverse else None,
            loss=classes.loss,
            suppressed=0,
            classes=len(classes.rows),
            labels_per_value=labels_per_value(classes),
            table_error=_table_error(classes),
        )


def _table_error(classes: Classes) -> float | None:
    """Return the mean error of two-way tables, each label spread evenly over its units; None for wide columns."""
    cells, widths = classes.cells, np.diff(classes.labels.unit).tolist()
    if max(widths) > MOST_VALUES:
        return None
    errors = box_errors(cells.codes.T, cells.counts, widths, classes.low, classes.high, classes.rows)
    return mean_and_largest(errors)[0]


def label_words(segments: Sequence[Segment]) -> str:
    """Return which labels a class may have, in a sentence."""
    trees = [segment.name for segment in segments if segment.constrained]
    free = [segment.name for segment in segments if not segment.constrained]
    parts = [f"nodes of the tree for {', '.join(trees)}"] if trees else []
    parts += [f"runs of neighbouring values for {', '.join(free)}"] if free else []
    return f"Mondrian's labels are {' and '.join(parts)}."


def _divided(table: FrequencyTable, codes: Codes, whole: Tuples) -> Tuples:
    """Return tuples whose records are equal in their sensitive value too. The table has the units `codes`."""
    if len(table.sensitive) != 1:
        return whole._replace(masks=np.zeros((len(whole.counts), 0), np.uint64), words=np.zeros(1, np.int64))
    (held,) = table.sensitive.values()
    word, bit = np.divmod(held.values.astype(np.int64), 64)
    masks = np.zeros((len(word), int(whole.words[-1])), dtype=np.uint64)
    masks[np.arange(len(word)), word] = np.uint64(1) << bit.astype(np.uint64)
    return Tuples(np.ascontiguousarray(codes[:, held.tuple_of]), held.counts, masks, whole.words)


BY_LEVELS = ("lattice_optimum", "datafly")
KNOWN = (*BY_LEVELS, *DIVIDES)
DEFAULT = tuple(name for name in KNOWN if name != "mondrian_even")


def baselines(
    study: Study,
    ks: Sequence[int] | None = None,
    *,
    l: int = 1,
    fronts: Sequence[Front] = (),
    methods: Sequence[str] | None = None,
    table: FrequencyTable | None = None,
) -> Costs:
    """Return what other recodings cost at each k, and what the points of our fronts cost that reach it.

    All are measured the same way, within the study's suppression limit. `l` adds a required number of different
    sensitive values in each class.

    Args:
        study: the table, its hierarchies and its suppression limit.
        ks: the k that are asked for; 2, 5, 10, 20, 50 and 100 unless given.
        l: how many different sensitive values each class must hold.
        fronts: fronts of the same study to compare with.
        methods: the methods; all unless given.
        table: the study's frequency table, where it was read before.

    Returns:
        A row for each method and each k.

    >>> import sfumato as sf
    >>> found = sf.baselines(sf.read(sf.sample("adult")), ks=[10])
    >>> for row in found:
    ...     if row.classes:  # figures of METHOD on this table are recorded, not measured
    ...         print(f"{row.title}: k {row.k}, loss {row.loss:.3f}, {row.suppressed} suppressed")
    lattice optimum: k 10, loss 0.397, 298 suppressed
    Datafly: k 10, loss 0.447, 273 suppressed
    Mondrian, strict: k 10, loss 0.205, 0 suppressed
    Mondrian, relaxed: k 10, loss 0.139, 0 suppressed
    """
    need_compiler("a comparison of methods")
    wanted = _known(methods)
    refuse_persons(study)
    table = study.table() if table is None else table
    asked = asked_of(ks, table.rows)
    refuse_table(table, l)
    refuse_fronts(study, table, fronts)
    check_weights(study.search, table)
    allowed = budget(study.search.max_suppression, table.records)
    notes: list[str] = []
    rows = [row for front in fronts for row in _ours(front, table, asked, l)]
    reason, by_levels = no_levels(table), [name for name in wanted if name in BY_LEVELS]
    if reason and by_levels:
        notes.append(f"left out: {shortened(TITLES[name] for name in by_levels)} ({reason})")
        wanted = [name for name in wanted if name not in BY_LEVELS]
    local = LocalTable.of(study, table) if set(wanted) & set(DIVIDES) else None
    measured: dict[str, Callable[[int], Cost]] = {
        "lattice_optimum": lambda k: _optimum(study, table, k, l),
        "datafly": lambda k: _datafly(study, table, k, l, allowed),
    }
    if local is not None:
        measured |= {name: partial(local.cost, name, l=l) for name in DIVIDES}
    rows += [measured[name](k) for name in wanted for k in asked]
    rows += [] if local is None else recorded(study, table, asked, l)
    if not rows:
        raise StudyError(
            notes[0], expected="a hierarchy for each quasi-identifier", remedy="mondrian_strict needs none"
        )
    over = [row for row in rows if row.method == "datafly" and (row.suppressed or 0) > allowed]
    if over:
        notes.append(
            f"Datafly suppresses up to k records by its own rule, here more than the limit of {allowed:,}: "
            + ", ".join(f"{row.suppressed:,} at k = {row.asked:,}" for row in over)
        )
    # Records that the missing rule left out count as lost.
    lost = [None if row.loss is None else loss_of_source(row.loss, table.records, table.left_out) for row in rows]
    rows = [replace(row, loss=loss) for row, loss in zip(rows, lost, strict=True)]
    how = {front.system: front.how for front in fronts}
    return Costs(tuple(rows), table.records, allowed, l, tuple(notes), how, "" if local is None else local.sentence)


def _known(methods: Sequence[str] | None) -> list[str]:
    """Return the methods to compare with. Raise if one is unknown."""
    for name in methods or ():
        if name not in KNOWN:
            raise InputError(f'unknown method "{name}"', expected="a method", remedy=nearest(name, KNOWN))
    return list(methods or DEFAULT)


def _ours(front: Front, table: FrequencyTable, asked: Sequence[int], l: int) -> list[Cost]:
    """Return, for each k, the point of a front with least loss that reaches it, measured like all others."""
    weights = front.study.weights_for(table)
    known: dict[int, Cost] = {}

    def cost(point: Point) -> Cost:
        if point.id not in known:
            plan = point.recoding_plan
            classes = suppress_by_plan(classify(table, plan.recoding(table), weights), plan)
            known[point.id] = cost_of(front.system, 0, classes)
            if abs((known[point.id].loss or 0.0) - front.loss_of_entered(point.loss)) > 1e-9:
                raise InputError(
                    f"point {point.id} of the front of {front.system} does not have the loss that the front states",
                    expected="a front that was searched with the same hierarchies, and not as a reproduction",
                    remedy="search again",
                )
        return known[point.id]

    rows = []
    for k in asked:
        for point in sorted(front.points, key=lambda point: point.loss):
            if point.values.get(K.name, k) < k or point.values.get(DISTINCT_L.name, l) < l:
                continue
            there = cost(point)
            if (there.k or 0) >= k and (l <= 1 or (there.l or 0) >= l):
                rows.append(replace(there, asked=k, note=f"point {point.id}"))
                break
        else:
            rows.append(Cost(front.system, k, note="no point of the front reaches this k"))
    return rows


def _optimum(study: Study, table: FrequencyTable, k: int, l: int) -> Cost:
    """Return the node with least loss after suppression of small classes within the limit, by the exact search."""
    diverse = {DISTINCT_L.name: float(l)} if l > 1 else {}
    settings = SearchSettings(
        objectives=(GENERAL_LOSS.name,),
        constraints={K.name: float(k)} | diverse,
        max_suppression=study.search.max_suppression,
        weights=study.search.weights,
        seed=study.search.seed,
        threads=study.search.threads,
    )
    try:
        front = search_lattice(study.replace(search=settings), table, Run())
    except UnreachableError:
        return Cost("lattice_optimum", k, note="no node of the lattice reaches this k within the suppression limit")
    plan = min(front.points, key=lambda point: (point.loss, point.suppressed)).plan
    levels = [plan.levels[name] for name in table.columns] if isinstance(plan, LevelPlan) else []
    return _node("lattice_optimum", study, table, levels, k, l)


def _datafly(study: Study, table: FrequencyTable, k: int, l: int, allowed: int) -> Cost:
    """Return the node at which Datafly stops: few records are in small classes, and some record remains."""
    heights = [domain.hierarchy.height for domain in table.domains]

    def different(column: int) -> int:
        groups = at_level(table.domains[column], levels[column]).groups
        return len(np.unique(groups[table.codes[column]]))

    levels = [0] * len(heights)
    while True:
        short = classes_at(table, levels, k, l).suppressed_rows
        if short <= max(k, allowed) and short < table.records:
            return _node("datafly", study, table, levels, k, l)
        open_columns = [column for column, height in enumerate(heights) if levels[column] < height]
        if not open_columns:
            return Cost("datafly", k, note="even the fully generalized table does not reach this k")
        levels[max(open_columns, key=lambda column: (different(column), -column))] += 1


def _node(method: str, study: Study, table: FrequencyTable, levels: Sequence[int], k: int, l: int) -> Cost:
    classes = classes_at(table, levels, k, l, study.weights_for(table))
    return replace(cost_of(method, k, classes), note="levels " + " ".join(map(str, levels)))
