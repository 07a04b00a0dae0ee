"""Dependences, by which a released column reveals one that is generalized, withheld or sensitive."""

from sfumato.tables.dependence.count import Dependence, Dependences, Identifying, Protected
from sfumato.tables.dependence.find import dependences

__all__ = ["Dependence", "Dependences", "Identifying", "Protected", "dependences"]
