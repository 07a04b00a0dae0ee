"""Generalization hierarchies: the frozen object, its files, its builders, its picture as text."""

from sfumato.hierarchies.files import load, save
from sfumato.hierarchies.hierarchy import ROOT, Hierarchy

__all__ = ["ROOT", "Hierarchy", "load", "save"]
