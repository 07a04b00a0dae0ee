"""What every section of a run file is: frozen, checked, without unknown keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from sfumato.errors import InputError, StudyError

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
ANY_CHARACTER = ("separator", "quote")


class Settings(BaseModel):
    """A frozen section of a run file. Unknown keys are refused, numbers are finite, text is printable and UTF-8."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _printable(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            for name, value in given.items():
                if name not in ANY_CHARACTER:
                    _refuse_unprintable(value, str(name))
        return given

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """Settings from options, with our error if one is wrong."""
        try:
            return cls(**values)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise InputError(f"{where} is not valid", expected=problem["msg"]) from None


def _refuse_unprintable(value: Any, where: str) -> None:
    """Raise if a text, or one inside lists and tables, holds what cannot be shown or written."""
    if isinstance(value, str):
        held = UNPRINTABLE.search(value)
        if held is not None:
            kind = "text that is not UTF-8" if held[0] >= "\ud800" else f"a control character (U+{ord(held[0]):04X})"
            raise StudyError(f"{UNPRINTABLE.sub('?', where)} holds {kind}", expected="printable text in UTF-8")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _refuse_unprintable(name, where)
            if name not in ANY_CHARACTER:
                _refuse_unprintable(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_unprintable(inner, where)
