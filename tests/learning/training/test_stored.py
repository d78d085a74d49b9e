"""Stored values come back to the bit, and nothing that is not marked is ever made of a record."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from exactrank._support.serialize import from_record, to_record
from exactrank.errors import DataError
from exactrank.learning.optimizers.base import Duality

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
arrays = hnp.arrays(st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]), hnp.array_shapes(min_dims=0, min_side=0))
values = st.recursive(
    plain | arrays | st.builds(Duality, st.floats(allow_nan=False), st.floats(allow_nan=False)),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def same(ours, theirs):
    if isinstance(ours, np.ndarray):
        return (
            isinstance(theirs, np.ndarray)
            and ours.dtype == theirs.dtype
            and ours.shape == theirs.shape
            and ours.tobytes() == theirs.tobytes()
        )
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[name], theirs[name]) for name in ours)
    return ours == theirs and (not isinstance(ours, float) or math.copysign(1, ours) == math.copysign(1, theirs))


@given(values)
def test_a_value_comes_back_to_the_bit(value):
    assert same(from_record(json.loads(json.dumps(to_record(value), allow_nan=False)), "here"), value)


def test_a_generator_goes_on_where_it_was():
    rng = np.random.default_rng([3, 1])
    rng.random(7)
    other = np.random.default_rng()
    other.bit_generator.state = from_record(json.loads(json.dumps(to_record(rng.bit_generator.state))), "here")
    assert rng.random() == other.random()


@pytest.mark.parametrize(
    "record",
    [
        {"is": "Path", "fields": {}},
        {"is": "Duality", "fields": {"primal": 1.0}},
        {"is": "Duality", "fields": {"primal": 1.0, "dual": 0.0, "more": 1}},
        {"array": "AAAA", "dtype": "O", "shape": [1]},
        {"array": "AAAA", "dtype": "<f8", "shape": [1]},
        {"array": "!", "dtype": "<f8", "shape": [1]},
        {"float": "x"},
        {"other": 1},
        {"is": ["Duality"], "fields": {}},
    ],
)
def test_a_damaged_record_is_told(record):
    with pytest.raises(DataError, match="here: the saved state of training is damaged"):
        from_record(record, "here")


def test_what_is_not_marked_is_not_stored():
    with pytest.raises(TypeError, match="Random"):
        to_record(np.random.RandomState(0))
