"""Probes of models and losses: optimality of weights, potentials of lambda functions, smoothness of measures, importance of features."""
