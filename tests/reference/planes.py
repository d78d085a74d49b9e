"""A quadratic term plus a sum of maxima of planes, made small in the primal by a general solver."""

import numpy as np
from scipy.optimize import minimize


def value(theta, strength, centre, parts, offsets, normals):
    """strength/2 |theta - centre|^2 + sum_p max_{i in p} (b_i + v_i . theta)"""
    heights = offsets + normals @ theta
    return strength / 2 * np.sum((theta - centre) ** 2) + sum(heights[parts == p].max() for p in np.unique(parts))


def least(strength, centre, parts, offsets, normals):
    """The least value: theta and one slack for each part, every plane a constraint."""
    size, which = len(centre), np.unique(parts, return_inverse=True)[1]
    slack = np.eye(which.max() + 1)[which]
    start = np.concatenate([centre, [np.max((offsets + normals @ centre)[which == p]) for p in range(which.max() + 1)]])
    found = minimize(
        lambda z: strength / 2 * np.sum((z[:size] - centre) ** 2) + z[size:].sum(),
        start,
        jac=lambda z: np.concatenate([strength * (z[:size] - centre), np.ones(len(z) - size)]),
        constraints={
            "type": "ineq",
            "fun": lambda z: slack @ z[size:] - offsets - normals @ z[:size],
            "jac": lambda z: np.hstack([-normals, slack]),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return value(found.x[:size], strength, centre, parts, offsets, normals)
