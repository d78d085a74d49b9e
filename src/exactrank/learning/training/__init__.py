"""Training: one loop, one recorder, one judge, rules of selection, and combinators that make one run of several.

    run.py           `Run` steps an optimizer on a problem: the only loop. Every run tells a `Recorder`: best so far, history, progress,
                     checkpoint, Ctrl-C, what to resume from
    judge.py         what is asked of a ranker, what is reported of an iterate, and what selects it
    selection.py     which of several candidates held-out queries keep, and what is told of it
    combinators.py   restarts, phases, trials, folds and bags: runs in, a run out

A run is a function of a `Recorder` that gives a `Trained`. What it is built of is an opaque iterate: parameters, trees or a whole scorer.
"""
