"""Training: one loop, one recorder, one judge, and combinators that make one run of several.

    loop.py          `run` steps an optimizer on a problem: the only loop
    judge.py         what is reported of an iterate, and what selects it
    recorder.py      what every run tells: best so far, history, progress, checkpoint, Ctrl-C, what to resume from
    combinators.py   restarts, phases, trials, folds and bags: runs in, a run out

A run is a function of a `Recorder` that gives a `Trained`. What it is built of is an opaque iterate: parameters, trees or a whole scorer.
"""
