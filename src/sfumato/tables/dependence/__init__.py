"""Columns that give others away: what a released column tells of one that is generalized, withheld or sensitive."""

from sfumato.tables.dependence.find import dependences
from sfumato.tables.dependence.types import Dependence, Dependences, Identifying, Protected

__all__ = ["Dependence", "Dependences", "Identifying", "Protected", "dependences"]
