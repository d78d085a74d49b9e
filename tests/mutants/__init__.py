"""One-line mutants of optimizers, objectives, training and models, and whether the tests that own those lines notice: ``make mutate``."""
