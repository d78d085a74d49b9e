"""Learning in general: objectives, optimizers that know nothing of ranking, the training loop, and regression trees."""
