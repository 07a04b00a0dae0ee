"""Generalization hierarchies: the frozen object, its files, its builders, its picture as text."""

from sfumato.data.hierarchies.files import load, save
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy

__all__ = ["ROOT", "Hierarchy", "load", "save"]
