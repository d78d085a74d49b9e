"""The best interval of a sum of step functions is the same whether parts give their events at once, or sums in ever narrower bins first."""

import numpy as np
from hypothesis import given, strategies as st

from exactrank import _core
from exactrank.learning.objectives.step_function import StepFunction

WIDE, PEAK, UNIT = 17, 1.0, 1 << 40  #: the shift of a histogram's bins; changes are multiples of a unit far above rounding


def bin_of(at, shift):
    distance = np.abs(at).astype(np.float32).view(np.uint32) >> shift
    zero = np.uint32(1 << (31 - shift))
    return np.where(at < 0, zero - 1 - distance, zero + distance)


def sums_of(at, change, shift):
    numbers, number = np.unique(bin_of(at, shift), return_inverse=True)
    up = np.maximum(change, 0)
    return numbers, *(np.bincount(number, each, len(numbers)).astype(np.int64) for each in (change, up))


@st.composite
def events(draw):
    """Crowded into a few bins on either side of 0, or into its own, some of them at one place, some of them without effect."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    count = draw(st.integers(1, 60))
    places = 1.0 + rng.integers(0, draw(st.sampled_from([4, 50, 4000])), count) / draw(st.sampled_from([80.0, 1e5]))
    signs = rng.choice([-1.0, 1.0], count) if draw(st.booleans()) else draw(st.sampled_from([-1.0, 1.0]))
    return places * signs * draw(st.sampled_from([1.0, 1.0, 1e-42])), rng.integers(-3, 4, count) * UNIT


def searched(at, change, at_zero=None):
    return _core.BestInterval(*sums_of(at, change, WIDE), 0, at_zero, PEAK, -np.inf, np.inf)


def found(search, at, change):
    inside, before = np.isin(bin_of(at, search.shift), search.bins), bin_of(at, WIDE) < search.edge
    below, above = at[before].max(initial=-np.inf), at[~before].min(initial=np.inf)
    return search.best(at[inside], change[inside], below, above, PEAK)


@given(events(), st.lists(st.integers(0, WIDE - 1), max_size=3, unique=True), st.integers(-2, 2) | st.none())
def test_narrower_bins_lead_to_the_same_interval(drawn, shifts, jump):
    at, change = drawn
    at_zero = None if jump is None else jump * UNIT
    narrowed = searched(at, change, at_zero)
    for shift in sorted(shifts, reverse=True):
        inside = np.isin(bin_of(at, narrowed.shift), narrowed.bins)
        narrowed.narrow(shift, *sums_of(at[inside], change[inside], shift), np.zeros(0), np.zeros(0, np.int64))
    assert found(narrowed, at, change) == found(searched(at, change, at_zero), at, change)


@given(events())
def test_it_is_the_best(drawn):
    at, change = drawn
    order = np.lexsort((change, at))
    places, first = np.unique(at[order], return_index=True)
    values = np.append(0, np.cumsum(np.add.reduceat(change[order], first)))
    values -= values[np.searchsorted(places, 0.0)]  # 0 at 0
    steps = StepFunction(places, values * _core.from_fixed(1, PEAK), np.zeros(len(places)))
    assert found(searched(at, change), at, change)[2] == steps.values.max()
