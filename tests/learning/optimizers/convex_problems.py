"""Convex functions that have no slope everywhere, with a quadratic term, for optimizers to make small; and what holds then.

Each counts how often its parts were asked, and knows where it is least if there is a formula.
"""

from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest


@dataclass
class Convex:
    """strength/2 |theta - center|^2 + risk(theta)"""

    strength: float
    center: np.ndarray
    asked: int = field(default=0, init=False)

    def value(self, theta):
        away = theta - self.center
        return self.risk(theta)[0] + self.strength / 2 * away @ away

    def at(self, strength):
        return replace(self, strength=strength)


@dataclass
class Sum(Convex):
    """A risk of parts that answer with planes."""

    def risk(self, theta):
        offsets, normals = self.planes(theta, np.arange(self.parts))
        return float(np.sum(offsets + normals @ theta)), normals.sum(axis=0)


@dataclass
class Maxima(Sum):
    """sum_p max_k (b_pk + v_pk . theta)"""

    b: Any = None
    v: Any = None

    @property
    def parts(self):
        return len(self.b)

    def planes(self, theta, parts):
        self.asked += len(parts)
        highest = np.argmax(self.b[parts] + self.v[parts] @ theta, axis=1)
        return self.b[parts, highest], self.v[parts, highest]


def random_maxima(seed, parts=12, planes=6, size=4, strength=0.1):
    rng = np.random.default_rng(seed)
    b, v = rng.uniform(0, 1, (parts, planes)), rng.standard_normal((parts, planes, size))
    return Maxima(strength, rng.standard_normal(size), b=b / parts, v=v / parts)


def hinges(seed, examples=60, size=5, strength=0.05):
    """A support vector machine on examples that no plane separates."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((examples, size))
    y = np.sign(x @ rng.standard_normal(size) + rng.standard_normal(examples))
    v = np.stack([np.zeros_like(x), -y[:, np.newaxis] * x], axis=1)
    return Maxima(strength, np.zeros(size), b=np.tile([0.0, 1.0], (examples, 1)) / examples, v=v / examples)


def classes(seed, examples=80, kinds=4, size=3, strength=0.02):
    """A support vector machine for several classes (Crammer & Singer 2001)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((examples, size))
    y = np.argmax(x @ rng.standard_normal((size, kinds)) + rng.standard_normal((examples, kinds)), axis=1)
    b = (np.arange(kinds) != y[:, np.newaxis]).astype(float)
    v = np.eye(kinds)[np.newaxis] - np.eye(kinds)[y][:, np.newaxis]
    normals = np.einsum("nkc,nf->nkcf", v, x).reshape(examples, kinds, kinds * size)
    return Maxima(strength, np.zeros(kinds * size), b=b / examples, v=normals / examples)


def orders(seed, parts=30, things=4, size=12, strength=1e-3):
    """The most violated order of things, which has very many planes far from the least value."""
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((parts, things, size)), rng.standard_normal(size) / np.sqrt(size)
    grade = x @ w + 0.3 * rng.standard_normal((parts, things))
    ranks = np.array(list(permutations(range(things))))
    best = np.argsort(np.argsort(-grade, axis=1), axis=1)
    b = np.abs(ranks[np.newaxis] - best[:, np.newaxis]).sum(axis=2) / things
    v = np.einsum("prt,ptf->prf", (best[:, np.newaxis] - ranks[np.newaxis]).astype(float), x)
    return Maxima(strength, np.zeros(size), b=b / parts, v=v / parts)


@dataclass
class Absolute(Sum):
    """sum_j w_j |theta_j - a_j|: least where each coordinate of the center is drawn to a by at most w / strength."""

    a: Any = None
    w: Any = None

    @property
    def parts(self):
        return len(self.a)

    @property
    def best(self):
        away = self.center - self.a
        return self.a + np.sign(away) * np.maximum(np.abs(away) - self.w / self.strength, 0)

    def planes(self, theta, parts):
        self.asked += len(parts)
        slopes = np.where(theta >= self.a, self.w, -self.w)[parts]
        normals = np.zeros((len(parts), len(theta)))
        normals[np.arange(len(parts)), parts] = slopes
        return -slopes * self.a[parts], normals


def absolute(seed, size=5, strength=0.7):
    rng = np.random.default_rng(seed)
    return Absolute(strength, rng.standard_normal(size), a=rng.standard_normal(size), w=rng.uniform(0, 2, size))


@dataclass
class Distances(Sum):
    """sum_i |theta - a_i|, whose least is the geometric median: the center, where the points lie evenly about it."""

    a: Any = None

    @property
    def parts(self):
        return len(self.a)

    @property
    def best(self):
        return self.center

    def planes(self, theta, parts):
        self.asked += len(parts)
        away = theta - self.a[parts]
        lengths = np.linalg.norm(away, axis=1)
        normals = away / np.maximum(lengths, 1e-300)[:, np.newaxis]
        return lengths - normals @ theta, normals


def distances(seed, pairs=6, size=3, strength=0.05):
    rng = np.random.default_rng(seed)
    center, away = rng.standard_normal(size), rng.standard_normal((pairs, size))
    return Distances(strength, center, a=np.concatenate([center + away, center - away]))


@dataclass
class Largest(Sum):
    """The largest of some smooth functions; with the center where it is least, that is best."""

    functions: Any = None
    parts: int = 1

    @property
    def best(self):
        return self.center

    def planes(self, theta, parts):
        self.asked += 1
        value, slope = max((f(*theta) for f in self.functions), key=lambda pair: pair[0])
        return np.array([value - slope @ theta]), slope[np.newaxis]


def charalambous_bandler():
    """CB2 (Charalambous & Bandler 1976), least value 1.9522245."""
    functions = (
        lambda x, y: (x**2 + y**4, np.array([2 * x, 4 * y**3])),
        lambda x, y: ((2 - x) ** 2 + (2 - y) ** 2, np.array([2 * x - 4, 2 * y - 4])),
        lambda x, y: (2 * np.exp(y - x), 2 * np.exp(y - x) * np.array([-1.0, 1.0])),
    )
    return Largest(1e-3, np.array([1.1390376519926626, 0.8995599383953928]), functions=functions)


def demyanov_malozemov():
    """Dem'yanov & Malozemov (1971), least value -3 at (0, -3)."""
    functions = (
        lambda x, y: (5 * x + y, np.array([5.0, 1.0])),
        lambda x, y: (-5 * x + y, np.array([-5.0, 1.0])),
        lambda x, y: (x**2 + y**2 + 4 * y, np.array([2 * x, 2 * y + 4])),
    )
    return Largest(1e-3, np.array([0.0, -3.0]), functions=functions)


KNOWN = {
    "absolute values": lambda: absolute(3),
    "geometric median": lambda: distances(1),
    "CB2": charalambous_bandler,
    "Dem'yanov-Malozemov": demyanov_malozemov,
}


def rng():
    return np.random.default_rng(5)


def states(optimizer, problem, theta, most=3000):
    """All that a run goes through."""
    seen = [optimizer.init(problem, theta, rng())]
    while not seen[-1].is_done and seen[-1].steps < most:
        seen.append(optimizer.step(problem, seen[-1]))
    return seen


def check(problem, seen, best):
    """What holds at every step: bounds about the least value, which close in."""
    primal, dual = np.array([[s.duality.primal, s.duality.dual] for s in seen]).T
    rounding = 1e-10 * np.abs(primal).max()
    assert np.all(dual <= best + rounding)
    assert np.all(primal >= best - rounding)
    assert np.all(np.diff(dual) >= 0)
    assert np.all(np.diff(primal) <= 0)
    assert [s.steps for s in seen] == list(range(len(seen)))
    for s in seen:
        assert -s.value == s.duality.primal == pytest.approx(problem.value(s.theta), abs=rounding)
    assert seen[-1].is_done
    assert seen[-1].duality.gap <= 1e-6
    assert not seen[-1].trouble


def check_known(optimizer, name):
    """It comes to the optimum of the problem called ``name``, between bounds all the way."""
    problem = KNOWN[name]()
    best = problem.value(problem.best)
    history = states(optimizer, problem, np.full(len(problem.center), 0.5))
    check(problem, history, best)
    assert history[-1].duality.primal == pytest.approx(best, rel=2e-6)
