"""Estimators of other libraries: fitted to queries, scoring, and as models of exactrank.

`adapter` fits and scores, `model` imports the result, and `naming` names estimators in one line and distinguishes them
in any process. Comparisons and the rankers that blend other libraries' estimators go through this package alone.
"""
