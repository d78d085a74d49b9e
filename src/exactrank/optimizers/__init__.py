"""Optimizers: each is a frozen value that knows nothing of ranking and asks its problem only what its protocol names."""
