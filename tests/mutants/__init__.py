"""One-line mutants of optimizers, training and objectives, and whether the tests that own those lines notice: ``make mutate``."""
