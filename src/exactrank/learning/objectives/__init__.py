"""Objectives: what is maximized, as functions of scores, of parameters, or along lines."""
