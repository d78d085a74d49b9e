"""Cutoffs: how many results to show or to pass on. ``goals.py`` says what a cutoff is for, ``cutoff.py`` applies one, ``search.py`` finds
the best by an exact sweep.
"""
