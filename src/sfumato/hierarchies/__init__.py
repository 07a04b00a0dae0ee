"""Generalization hierarchies: the frozen object, its files, recipes and builders, and its drawing as text."""

from sfumato.hierarchies.hierarchy import ROOT, Hierarchy, load, save

__all__ = ["ROOT", "Hierarchy", "load", "save"]
