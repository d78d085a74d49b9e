"""Targets of exports, what an export holds, and the check of its scores."""

from exactrank.models.targets.check import Check
from exactrank.models.targets.target import Export, Target

__all__ = ["Check", "Export", "Target"]
