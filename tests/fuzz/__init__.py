"""Fuzzing: everything that reads what others wrote meets random, mutated and forged inputs.

A `Target` makes inputs and uses them. Whatever it is given, it may succeed or raise an `ExactRankError`. Anything else is a defect:
another exception, a crash, a hang, memory without bound, or an accepted input that breaks a law of what was read. One small file
per kind of input; ``python -m tests.fuzz --seconds 60`` runs them all, and ``tests/corpus`` keeps every input that ever failed, which
``tests/project/test_corpus.py`` replays.
"""
