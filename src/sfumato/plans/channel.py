"""A plan of randomized response: the probability that each true category is reported as each output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.base.files import write_text
from sfumato.base.formats import read_json
from sfumato.errors import DataError, InputError, counted, shortened
from sfumato.plans.recodings import JsonObject

FORMAT = "sfumato-channel"
SEVERAL = "sfumato-channels"
REMEDY = "export one from a front (channel export)"
SLACK = 1e-6  # how far the sums of a file written by hand may be off; they are then made exact
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """A channel: row y, column x of `matrix` is P(report y | truth x), and each column sums to 1.

    `columns` are the disguised columns of the table. There are several if the channel is over their product.
    `reference` is a distribution of the truth. It weights the estimate where there are more reports than categories:
    every reference makes the estimate unbiased, and the true distribution makes its variance smallest. The guarantees
    that the channel was chosen with are in `notes`. The values of the columns for each category are in `cells`, and a
    missing value is the empty text.

    >>> coin = Channel(("smokes",), ("no", "yes"), ("no", "yes"), np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> coin.square, coin.describe()[0]
    (True, 'a true "no" is reported as "no" with probability 0.75, as "yes" with 0.25')
    """

    columns: tuple[str, ...]
    categories: tuple[str, ...]
    outputs: tuple[str, ...]
    matrix: Floats
    reference: Floats | None = None
    notes: JsonObject = field(default_factory=dict)
    cells: tuple[tuple[str, ...], ...] = ()

    def __repr__(self) -> str:
        categories = counted(len(self.categories), "category", "categories")
        reports = counted(len(self.outputs), "report")
        return f"<Channel of {', '.join(self.columns)}: {categories}, {reports}>"

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", checked_matrix(self.matrix, len(self.outputs), len(self.categories)))
        for kind, names in (("categories", self.categories), ("outputs", self.outputs), ("columns", self.columns)):
            if len(set(names)) < len(names) or not names:
                raise InputError(f"the {kind} of the channel are not all different", expected="each of them once")
        if not self.cells:
            object.__setattr__(self, "cells", tuple((name,) for name in self.categories))
        if len(self.cells) != len(self.categories) or any(len(cell) != len(self.columns) for cell in self.cells):
            raise InputError("the cells of the channel do not fit", expected="one value a column for each category")
        if self.reference is not None:
            shares = np.asarray(self.reference, dtype=np.float64)
            checked = checked_prior(shares, len(self.categories))
            # As with the matrix: shares that sum to 1 except for rounding stay unchanged.
            object.__setattr__(self, "reference", shares if abs(shares.sum() - 1.0) <= ROUNDING else checked)

    @property
    def size(self) -> int:
        """Return the number of true categories."""
        return len(self.categories)

    @property
    def square(self) -> bool:
        """Return whether the published column has the same values as the source."""
        return self.categories == self.outputs

    @property
    def output_cells(self) -> list[tuple[str]]:
        """Return the outputs as cells of the published column."""
        return [(name,) for name in self.outputs]

    @property
    def name(self) -> str:
        """Return the name of the published column."""
        return "+".join(self.columns)

    def describe(self, digits: int = 4) -> list[str]:
        """Return one sentence for each category.

        Args:
            digits: digits of the probabilities.

        Returns:
            The sentences.
        """
        said = []
        for position, category in enumerate(self.categories):
            column = self.matrix[:, position]
            order = [y for y in np.argsort(-column, kind="stable") if column[y] > 0]
            parts = [f'as "{self.outputs[y]}" with {round(float(column[y]), digits):g}' for y in order]
            parts[0] = parts[0].replace(" with ", " with probability ", 1)
            said.append(f'a true "{category}" is reported {", ".join(parts)}')
        return said

    @property
    def rank(self) -> tuple[float, ...]:
        return tuple(self.matrix.ravel().tolist())

    def entries(self) -> dict[str, object]:
        return {"outputs": len(self.outputs)}

    def saved(self) -> dict[str, object]:
        return {"plan": self.as_dict()}

    @classmethod
    def from_saved(cls, saved: JsonObject) -> Channel:
        """Return the channel of a saved point."""
        return cls.from_dict(saved["plan"])

    def as_dict(self) -> dict[str, object]:
        """Return the contents of a channel file. A reference and notes may reveal the true shares of the categories.

        Returns:
            A dictionary.
        """
        result: dict[str, object] = {
            "format": FORMAT,
            "version": 1,
            "columns": list(self.columns),
            "categories": list(self.categories),
            "cells": [list(cell) for cell in self.cells],
            "outputs": list(self.outputs),
            "matrix": self.matrix.tolist(),
        }
        if self.reference is not None:
            result["reference"] = self.reference.tolist()
        return result | ({"notes": dict(self.notes)} if self.notes else {})

    @classmethod
    def from_dict(cls, saved: JsonObject) -> Channel:
        """Return the channel of a dictionary of `as_dict`. Raise InputError if it is not one."""
        try:
            wrong = None if saved["format"] == FORMAT else "another format"
            if wrong is None:
                return cls(
                    tuple(map(str, saved["columns"])),
                    tuple(map(str, saved["categories"])),
                    tuple(map(str, saved["outputs"])),
                    saved["matrix"],
                    saved.get("reference"),
                    dict(saved.get("notes", {})),
                    tuple(tuple(map(str, cell)) for cell in saved.get("cells", ())),
                )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            wrong = f"no {error}" if isinstance(error, KeyError) else "entries of another kind"
        raise InputError(f"the channel has {wrong}", expected=f'"format": "{FORMAT}" with a matrix', remedy=REMEDY)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the channel as JSON that only its owner can read, because it may reveal the shares of the categories.

        Args:
            path: the file to write.
            overwrite: whether it may replace another file.

        Returns:
            The file.
        """
        text = json.dumps(self.as_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        return write_text(path, text, overwrite=overwrite, private=True)

    def bare(self, notes: JsonObject | None = None) -> Channel:
        """Return the channel that recipients may have: without the reference, and with other notes."""
        return replace(self, reference=None, notes=dict(notes or {}))


def load_channel(path: str | Path) -> Channel:
    """Read a channel from its file and check it.

    Args:
        path: the file.

    Returns:
        The channel.
    """
    result = load_channels(path)
    if len(result) > 1:
        raise InputError(f"{Path(path).name} holds {len(result)} channels", expected="a file with one channel")
    return result[0]


def load_channels(path: str | Path) -> list[Channel]:
    """Read the channels of a file: one, or all channels of a disguised table."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no channel file {path}", expected="a JSON file with a matrix", remedy=REMEDY)
    try:
        result = read_json(path, expected=f'JSON with "format": "{FORMAT}"', remedy=REMEDY)
        several = result["channels"] if result.get("format") == SEVERAL else [result]
        channels = [Channel.from_dict(one) for one in several]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        channels = []
    except DataError:
        raise
    except InputError as error:
        raise InputError(f"{path.name}: {error.what}", expected=error.expected, remedy=error.remedy) from None
    if not channels:
        raise InputError(f"{path.name} cannot be read", expected=f'JSON with "format": "{FORMAT}"', remedy=REMEDY)
    return channels


def checked_matrix(matrix: Floats, outputs: int, categories: int) -> Floats:
    """Return the matrix with columns that sum to exactly 1. Raise an error if it is not a channel."""
    matrix = np.asarray(matrix, dtype=np.float64)
    shape = f"{outputs} rows (outputs) and {categories} columns (categories)"
    if matrix.shape != (outputs, categories):
        raise InputError(f"the matrix has the shape {matrix.shape}", expected=shape)
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InputError("the matrix has cells that are negative or not numbers", expected="probabilities from 0 to 1")
    sums = matrix.sum(axis=0)
    wrong = [position for position in range(categories) if abs(sums[position] - 1.0) > SLACK]
    if wrong:
        shown = shortened([f"column {position + 1} sums to {sums[position]:.6g}" for position in wrong], 3)
        raise InputError(
            f"{counted(len(wrong), 'column of the matrix does', 'columns of the matrix do')} not sum to 1: {shown}",
            expected="for each true category, probabilities of all outputs that sum to 1",
            remedy="check that rows are outputs and columns are categories, not the other way round",
        )
    # A column that sums to 1 except for rounding stays unchanged: reading and writing a file then changes no byte.
    fixed = matrix / np.where(np.abs(sums - 1.0) > ROUNDING, sums, 1.0)
    fixed.setflags(write=False)
    return np.asarray(fixed)


def checked_prior(prior: Sequence[float] | Floats, categories: int | None = None) -> Floats:
    """Return the shares of the categories with a sum of exactly 1. Raise an error if they are not shares.

    >>> checked_prior([0.5, 0.3, 0.2]).tolist()
    [0.5, 0.3, 0.2]
    """
    shares = np.asarray(prior, dtype=np.float64)
    expected = "positive shares of at least two categories that sum to 1"
    if shares.ndim != 1 or (categories is not None and len(shares) != categories):
        raise InputError(f"the prior has {shares.size} shares for {categories} categories", expected=expected)
    if len(shares) < 2:
        raise InputError(
            f"the prior has {len(shares)} category", expected=expected, remedy="a single category needs no protection"
        )
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise InputError("the prior has shares that are negative or not numbers", expected=expected)
    if abs(shares.sum() - 1.0) > SLACK:
        raise InputError(
            f"the prior sums to {shares.sum():.6g}", expected=expected, remedy="divide each share by their sum"
        )
    zeros = int((shares == 0).sum())
    if zeros:
        raise InputError(
            f"{counted(zeros, 'category of the prior has', 'categories of the prior have')} a share of 0",
            expected=expected,
            remedy="leave out the categories that no record has",
        )
    return np.asarray(shares / shares.sum())


def product(channels: Sequence[Channel]) -> Channel:
    """Combine independent channels into one channel over the product of their categories.

    >>> coin = Channel(("a",), ("0", "1"), ("0", "1"), np.array([[0.8, 0.2], [0.2, 0.8]]))
    >>> other = Channel(("b",), ("x", "y"), ("x", "y"), np.eye(2))
    >>> both = product([coin, other])
    >>> both.columns, both.categories, round(float(both.matrix[0, 0]), 3)
    (('a', 'b'), ('0 & x', '0 & y', '1 & x', '1 & y'), 0.8)
    """
    first = channels[0]
    for second in channels[1:]:
        both = [c.reference if c.reference is not None else np.full(c.size, 1.0 / c.size) for c in (first, second)]
        first = Channel(
            first.columns + second.columns,
            tuple(f"{a} & {b}" for a in first.categories for b in second.categories),
            tuple(f"{a} & {b}" for a in first.outputs for b in second.outputs),
            np.asarray(np.kron(first.matrix, second.matrix), dtype=np.float64),
            np.kron(both[0], both[1]),
            cells=tuple(a + b for a in first.cells for b in second.cells),
        )
    return first
