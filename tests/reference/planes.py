"""A quadratic term plus a sum of maxima of planes, made small in the primal by a general solver."""

import numpy as np
from scipy.optimize import minimize


def value(theta, strength, center, parts, offsets, normals):
    """strength/2 |theta - center|^2 + sum_p max_{i in p} (b_i + v_i . theta)"""
    heights = offsets + normals @ theta
    return strength / 2 * np.sum((theta - center) ** 2) + sum(heights[parts == p].max() for p in np.unique(parts))


def least(strength, center, parts, offsets, normals):
    """The least value: theta and one slack for each part, every plane a constraint."""
    size, which = len(center), np.unique(parts, return_inverse=True)[1]
    slack = np.eye(which.max() + 1)[which]
    start = np.concatenate([center, [np.max((offsets + normals @ center)[which == p]) for p in range(which.max() + 1)]])
    found = minimize(
        lambda z: strength / 2 * np.sum((z[:size] - center) ** 2) + z[size:].sum(),
        start,
        jac=lambda z: np.concatenate([strength * (z[:size] - center), np.ones(len(z) - size)]),
        constraints={
            "type": "ineq",
            "fun": lambda z: slack @ z[size:] - offsets - normals @ z[:size],
            "jac": lambda z: np.hstack([-normals, slack]),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return value(found.x[:size], strength, center, parts, offsets, normals)
