"""Fault injection, as SQLite tests itself: every write, rename, mapping, allocation and thread start fails once, or is the last.

`shim.c` makes the n-th call of a kind fail; `shim` builds it; `tests.driver` is a process that has imported everything and forks for each
run; `operations` are the commands that write; `laws` says what must be true after a fault, and `sweep` tries every n.
``python -m tests.faults`` tries them all.
"""
