"""Estimators of other libraries: what one is, how it is fitted to queries, how it scores, and how it becomes a model of ours.

`adapter` fits and scores, `model` imports what was learned, `notation` writes an estimator in one line, and `identity` tells settings
apart in any process. Comparisons and the rankers that blend other libraries' estimators go through this package alone.
"""
