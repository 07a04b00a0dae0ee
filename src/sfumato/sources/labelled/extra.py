"""The packages that read and write labelled files and spreadsheets: the extra `labelled`, asked for when needed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from sfumato.errors import InputError

STATISTICAL = ("sav", "dta", "sas7bdat")
LABELLED = (*STATISTICAL, "xlsx")
TITLES = {"sav": "SPSS", "dta": "Stata", "sas7bdat": "SAS", "sas7bcat": "SAS", "xlsx": "Excel"}
ENDINGS = {
    ".sav": "sav",
    ".zsav": "sav",
    ".dta": "dta",
    ".sas7bdat": "sas7bdat",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xlsb": "xlsx",
    ".xls": "xlsx",
    ".ods": "xlsx",
}


def needed(module: str, why: str) -> Any:
    """A module of the extra; an error that says how to install it where it is not there."""
    require(module, why)
    return importlib.import_module(module)


def require(module: str, why: str) -> None:
    """Raise unless a module of the extra is installed; it is not loaded yet."""
    if importlib.util.find_spec(module) is None:
        raise InputError(
            f"{why} needs the package {module.replace('_', '-')}, which is not installed",
            expected="Sfumato with its extra labelled",
            remedy="pip install 'sfumato[labelled]'",
        )
