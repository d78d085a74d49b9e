"""Probes of models and losses: optimality of weights, potentials of lambda functions, smoothness of measures, importance of features."""

from exactrank.inspect.forces import Forces, forces
from exactrank.inspect.importance import Importance, importance
from exactrank.inspect.jumping_points import jumping_points
from exactrank.inspect.optimality import Optimality, optimality
from exactrank.inspect.smoothness import Smoothness, smoothness

__all__ = ["Forces", "Importance", "Optimality", "Smoothness", "forces", "importance", "jumping_points", "optimality", "smoothness"]
