"""A scikit-learn transformer: the cheapest generalization with k, learned from one table and applied to others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow

from sfumato.data.engine import open_engine
from sfumato.data.frame import Frame, Labels, is_frame, rebuilt
from sfumato.decide.pick import Choice
from sfumato.errors import InputError, SfumatoError
from sfumato.front import Front
from sfumato.hierarchies import ROOT
from sfumato.hierarchies.recipes import flat, intervals
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, T_CLOSENESS, K, function_named
from sfumato.methods.search import search
from sfumato.release.apply_frame import plan_columns, row_groups
from sfumato.release.columns import ColumnRecode
from sfumato.release.rows import Below, recode
from sfumato.study import Study

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils._set_output import _get_output_config
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:  # said where it is needed, with what to do about it
    raise InputError(
        "sf.Anonymizer needs scikit-learn",
        expected="scikit-learn 1.6 or newer",
        remedy="pip install 'sfumato[sklearn]'",
    ) from None

HIDDEN = "(hidden)"
EXACT = 200_000  # nodes up to which every one is decided; beyond, the best found


class NotFittedTableError(InputError, ValueError):
    """A table that the transformer cannot be fitted to, or cannot recode."""


class Anonymizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recode quasi-identifiers so that at least `k` records of the fitted table share every combination.

    `fit` searches the generalization with the least loss. `transform` recodes rows one by one: it keeps every row, in
    order, with the same columns; quasi-identifiers become text. A row whose combination does not occur at least `k`
    times in the fitted table has its quasi-identifiers hidden as `*`. The hidden rows are a class too: where they would
    not have `k` records themselves (or `l` or `t`), nothing is hidden. What comes out of the fitted table is
    k-anonymous; rows of another table are recoded in the same way, and how many of them are alike is not promised.
    The fitted transformer holds no rows, and no value of a sensitive column, also when it is pickled.

    It is for pipelines and experiments. A file for other people is published with `sf.publish`, which measures it,
    checks the rules of the policy and keeps a ledger.

    Args:
        k: the least number of records that share a combination.
        quasi_identifiers: names of columns, or their positions; all columns that are not sensitive unless given.
        sensitive: columns that `l` and `t` are about; they come out as they are.
        l: the least number of different sensitive values in a class.
        t: the largest distance of a class from the distribution of the table.
        hierarchies: a hierarchy for each quasi-identifier (see `Study.with_hierarchies`); unless given, intervals of
            numbers, and for text the value or nothing.
        max_suppression: the share of records of the fitted table that may be hidden.
        objective: the loss that is made least.
        unknown: what is done with a value that the fitted table and its hierarchies lack: "error", or "star" to hide
            the row.

    >>> import pyarrow, sfumato as sf
    >>> people = pyarrow.table({"age": [31, 33, 35, 62, 64, 68], "sex": ["F", "F", "F", "M", "M", "M"]})
    >>> sf.Anonymizer(k=3, hierarchies={"age": sf.intervals(20)}).fit_transform(people).to_pydict()
    {'age': ['20-39', '20-39', '20-39', '60-79', '60-79', '60-79'], 'sex': ['F', 'F', 'F', 'M', 'M', 'M']}
    """

    def __init__(
        self,
        k: int = 5,
        *,
        quasi_identifiers: Sequence[str | int] | None = None,
        sensitive: Sequence[str | int] = (),
        l: int | None = None,
        t: float | None = None,
        hierarchies: Mapping[str, object] | None = None,
        max_suppression: float = 0.0,
        objective: str = GENERAL_LOSS.name,
        unknown: str = "error",
    ) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.sensitive = sensitive
        self.l = l
        self.t = t
        self.hierarchies = hierarchies
        self.max_suppression = max_suppression
        self.objective = objective
        self.unknown = unknown

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Search the generalization; `choice_` is what was chosen, `classes_` how many combinations it keeps.

        Args:
            X: a table.
            y: not used.

        Returns:
            This object, fitted.
        """
        if self.unknown not in ("error", "star"):
            raise NotFittedTableError(f'unknown = "{self.unknown}"', expected='"error" or "star"')
        frame = self._frame(X, reset=True)
        try:
            study = self._study(frame)
            front = self._search(study, self.max_suppression)
            if not self._keep(study, front, frame):
                front = self._search(study, 0.0)
                self._keep(study, front, frame)
            bare = replace(front, study=study.without_table())
            self.choice_ = Choice(bare, front.point(0), f"the least {self.objective} with k of at least {self.k}")
        except SfumatoError as error:
            raise NotFittedTableError(error.what, expected=error.expected, remedy=error.remedy) from error
        self.classes_ = len(next(iter(self.released_.values())))
        return self

    def transform(self, X: Any) -> Any:
        """Recode rows; the result is of the kind of `X`, or as `set_output` says.

        Args:
            X: a table with the columns of the fitted one.

        Returns:
            The recoded table.
        """
        check_is_fitted(self, "choice_")
        frame = self._frame(X, reset=False)
        columns: tuple[ColumnRecode, ...] = self.columns_
        study = self.choice_.front.study
        try:
            source = study.source(frame.native)
            with open_engine() as engine:
                engine.attach(source, "raw")
                for position, column in enumerate(columns):
                    engine.upload(f"map{position}", {"label": column.keys, "grp": column.groups})
                engine.upload("sizes", self.released_)
                rows = row_groups(engine, source, study, columns, Below())
        except SfumatoError as error:
            raise NotFittedTableError(error.what, expected=error.expected, remedy=error.remedy) from error
        strange = [c.name for c, groups in zip(columns, rows.groups, strict=True) if np.any(groups < 0)]
        if strange and self.unknown == "error":
            raise NotFittedTableError(
                f"{', '.join(strange)} has values that the fitted table and its hierarchies lack",
                expected="values that are known",
                remedy='unknown="star" hides such rows',
            )
        recoded = {}
        for column, groups in zip(columns, rows.groups, strict=True):
            labels: list[str | None] = [*column.labels, ROOT]
            if column.missing_stays:
                labels[column.kept_group] = None
            recoded[source.column(column.name).position] = Labels(labels, np.where(rows.kept, groups, len(labels) - 1))
        everything = np.arange(len(rows.kept))
        return self._returned(X, rebuilt(frame, everything, range(len(source.columns)), recoded))

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _frame(self, X: Any, *, reset: bool) -> Frame:
        """The rows as a frame: the caller's own, or an array with columns x0, x1, …"""
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if len(X) < 2 and reset:
                raise NotFittedTableError(
                    f"the table has {len(X)} sample{'' if len(X) else 's'}", expected="at least 2"
                )
            return Frame(X)
        array = validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=2 if reset else 1
        )
        cells = [array[:, position] for position in range(array.shape[1])]
        if array.dtype == object:
            cells = [[None if isinstance(one, float) and one != one else one for one in column] for column in cells]
        names = [str(name) for name in self.get_feature_names_out()]
        return Frame(pyarrow.table([pyarrow.array(c, from_pandas=True) for c in cells], names=names))

    def _named(self, given: Sequence[str | int], names: Sequence[str]) -> list[str]:
        return [names[one] if isinstance(one, int) else one for one in given]

    def _study(self, frame: Frame) -> Study:
        table = frame.table()
        names = table.column_names
        sensitive = self._named(self.sensitive, names)
        given = [name for name in names if name not in sensitive]
        quasi = given if self.quasi_identifiers is None else self._named(self.quasi_identifiers, names)
        study = Study(
            frame.native,
            quasi_identifiers=quasi,
            sensitive=sensitive,
            keep=[name for name in names if name not in (*quasi, *sensitive)],
            missing="category",
        )
        unless = {name: intervals() if _numeric(table.schema.field(name).type) else flat() for name in quasi}
        return study.with_hierarchies(unless | dict(self.hierarchies or {}))

    def _search(self, study: Study, max_suppression: float) -> Front:
        limits = {K.name: self.k, DISTINCT_L.name: self.l, T_CLOSENESS.name: self.t}
        space = int(np.prod([float(domain.hierarchy.height + 1) for domain in study.table().domains]))
        return search(
            study,
            objectives=[self.objective],
            constraints={name: float(limit) for name, limit in limits.items() if limit is not None},
            max_suppression=max_suppression,
            algorithm="exact" if space <= EXACT else "best_first",
        )

    def _keep(self, study: Study, front: Front, frame: Frame) -> bool:
        """Keep the plan and the combinations that the fitted table releases, by the places of their labels.

        The rows that it hides stay in the table as one class: says whether that keeps the limits as well.
        """
        self.columns_, below = plan_columns(front, front.point(0))
        source = study.source()
        with open_engine() as engine:
            recode(engine, source, study, self.columns_, below)
            names = ", ".join(f"g{position}" for position in range(len(self.columns_)))
            self.released_ = engine.arrays(
                f"SELECT {names}, n, v FROM sizes AS s WHERE NOT {below.sql} ORDER BY {names}"
            )
            hidden = ~row_groups(engine, source, study, self.columns_, below).kept
        table = frame.table()
        sensitive = self._named(self.sensitive, table.column_names)
        if not hidden.any() or hidden.sum() < self.k or not sensitive:
            return not hidden.any() or bool(hidden.sum() >= self.k)
        columns = {name: table.column(name) for name in sensitive if name != HIDDEN}
        classes = pyarrow.table({HIDDEN: pyarrow.array(hidden)} | columns)
        diverse = self.l is None or function_named(DISTINCT_L.name)(classes, [HIDDEN], sensitive) >= self.l
        return diverse and (self.t is None or function_named(T_CLOSENESS.name)(classes, [HIDDEN], sensitive) <= self.t)

    def _returned(self, X: Any, out: Any) -> Any:
        """What was made, as `set_output` can wrap it: the caller's kind, or an array where another is asked for."""
        wanted = _get_output_config("transform", self)["dense"]
        if is_frame(X) and wanted in ("default", Frame(X).kind):
            return out
        table = Frame(out).table()
        array = np.empty((table.num_rows, table.num_columns), dtype=object)
        for position, column in enumerate(table.columns):
            array[:, position] = column.to_pylist()
        return array


def _numeric(type_: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_integer(type_) or pyarrow.types.is_floating(type_) or pyarrow.types.is_decimal(type_))
