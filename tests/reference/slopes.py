"""Adam and the direction of L-BFGS by their definitions, one number and one matrix at a time."""

import math

import numpy as np


def adam(slope_of, theta, batches, *, rate, b1, b2, epsilon):
    """Kingma & Ba's Algorithm 1, upwards: the means of slopes and of their squares, each over what it would be if all slopes were 1."""
    theta, first, second = list(theta), [0.0] * len(theta), [0.0] * len(theta)
    for t, batch in enumerate(batches, 1):
        slope = slope_of(np.array(theta), batch)
        for i, g in enumerate(slope):
            first[i] = b1 * first[i] + (1 - b1) * g
            second[i] = b2 * second[i] + (1 - b2) * g * g
            known = sum((1 - b1) * b1**k for k in range(t)), sum((1 - b2) * b2**k for k in range(t))
            theta[i] += rate * (first[i] / known[0]) / (math.sqrt(second[i] / known[1]) + epsilon)
    return np.array(theta)


def bfgs_direction(slope, moves):
    """H g, with the inverse Hessian H as a matrix that each move (step, change of the slope downwards) corrects, oldest first."""
    step, bend = moves[-1]
    H = (step @ bend) / (bend @ bend) * np.eye(len(slope))
    for s, y in moves:
        left = np.eye(len(slope)) - np.outer(s, y) / (s @ y)
        H = left @ H @ left.T + np.outer(s, s) / (s @ y)
    return H @ slope
