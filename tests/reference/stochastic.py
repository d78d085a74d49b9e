"""Stochastic approximation one value at a time, as Yue & Burges (2007), section 4, write it down."""

import numpy as np


def simultaneous(f, theta, c, deltas):
    """SPSA's estimate, averaged over several perturbations."""
    total = np.zeros(len(theta))
    for delta in deltas:
        for i in range(len(theta)):
            total[i] += (f(theta + c * delta) - f(theta - c * delta)) / (2 * c) / delta[i]
    return total / len(deltas)


def finite_difference(f, theta, c):
    """FDSA's estimate."""
    slope = np.zeros(len(theta))
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = c
        slope[i] = (f(theta + step) - f(theta - step)) / (2 * c)
    return slope


def path(f, theta, estimate, steps, a0, c0, A, alpha, gamma):
    """Where the steps lead: one theta a step; ``estimate(f, theta, c)``."""
    found = []
    for k in range(1, steps + 1):
        theta = theta + a0 / (A + k**alpha) * estimate(f, theta, c0 / k**gamma)
        found.append(theta)
    return found
