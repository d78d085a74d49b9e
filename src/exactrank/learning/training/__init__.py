"""Training: one loop, one recorder, one judge, rules of selection, and combinators that make one run of several.

    run.py           `Run` steps an optimizer on a problem: the only loop. Every run reports to a `Recorder`, which keeps the best iterate,
                     history, progress, checkpoints and the journal from which training is resumed, and catches Ctrl-C
    judge.py         the task of a ranker, and the judge of iterates
    selection.py     rules of selection among candidates
    combinators.py   restarts, phases, trials, folds and bags: runs in, a run out

A run is a function of a `Recorder` that returns a `Trained`. Its iterates are opaque: parameters, trees or a whole scorer.
"""
