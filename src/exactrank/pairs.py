"""Pairs of documents that a judge put into an order: read, joined to data, and turned into strengths."""

from exactrank.data.pairs import read_pairs, with_pairs
from exactrank.data.preferences import Preferences
from exactrank.learning.objectives.bradley_terry import Strengths, bradley_terry

__all__ = ["Preferences", "Strengths", "bradley_terry", "read_pairs", "with_pairs"]
