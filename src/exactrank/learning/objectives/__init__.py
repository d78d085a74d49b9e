"""Objectives: what is maximised, as functions of scores, of parameters, or along lines."""
