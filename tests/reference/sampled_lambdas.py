"""Forces in rankings drawn at random, one ranking and one pair at a time."""

import numpy as np

from . import lambdas as pairs

MASK = 2**64 - 1


def mixed(z):
    """SplitMix64's finalizer, in whole numbers without limit."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def draws(n, *key):
    """Standard logistic draws for n documents; the key is (seed, draw, query, sample)."""
    state = 0
    for word in key:
        state = mixed((state + 0x9E3779B97F4A7C15 + word) & MASK)
    bits = [mixed((state + (i + 1) * 0x9E3779B97F4A7C15) & MASK) >> 12 for i in range(n)]
    u = (np.array(bits, float) + 0.5) / 2**52
    return np.log(u / (1 - u))


def sampled(y, s, deltas, rule, sampling, query=0):
    """The means of forces, curvatures and costs; ``rule`` and ``sampling`` are those of the objective, as tuples."""
    samples, noise, seed, draw = sampling
    found = [pairs.lambdas(y, s, deltas, *rule, ranked_by=s + noise * draws(len(y), seed, draw, query, k)) for k in range(samples)]
    return tuple(sum(part) / samples for part in zip(*found, strict=True))
