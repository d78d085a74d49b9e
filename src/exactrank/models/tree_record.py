"""Trees in a model file: one JSON object per tree, with plain arrays of numbers.

``feature``, ``threshold``, ``decision``, ``left``, ``right`` and ``gain`` have one number per split, ``value`` and ``documents`` one per
leaf, as in `TreeTable`. The threshold of a categorical split is an index into ``categories``, which lists the categories of each set.
``weight`` is the factor by which the values have been multiplied. JSON has no infinity, so it is written as the text ``"inf"``.
"""

import math
import reprlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats
from exactrank._support.json_values import JSONObject, JSONValue
from exactrank._support.numerals import is_finite_number
from exactrank.errors import DataError
from exactrank.models.tree_table import AGAIN, CATEGORICAL, MOST, MOST_WORDS, TreeTable, categories_in

HIGHEST_CATEGORY = (1 << 24) - 1  #: float32 holds all whole numbers up to this
_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_INTEGERS = {"feature": "feature", "decision": "decision", "left": "left", "right": "right"}  # keys of a record by the field of a table
_NUMBERS = {"threshold": "threshold", "gain": "gain", "leaf_value": "value", "cover": "documents"}


def tree_records(table: TreeTable) -> list[JSONObject]:
    """Return ``table`` as JSON values, one object per tree, with numbers that read back to the same bits.

    >>> stump = TreeTable(1, [0, 1], [0], [np.inf], [8], [-1], [-2], [1.0], [2.0, 3.0], [0], [], [1.0], [7.0, 5.0])
    >>> tree_records(stump)[0]["threshold"], tree_records(stump)[0]["value"]
    (['inf'], [2.0, 3.0])
    """
    return [_record(table.single(t)) for t in range(table.n_trees)]


def _record(tree: TreeTable) -> JSONObject:
    categorical = (tree.decision & CATEGORICAL) > 0
    numbers, place = np.unique(tree.threshold[categorical].astype(np.int64), return_inverse=True)
    threshold = np.array(tree.threshold)
    threshold[categorical] = place
    record: dict[str, JSONValue] = {
        "weight": float(tree.shrinkage[0]),
        "feature": tree.feature.tolist(),
        "threshold": _json_numbers(threshold),
        "decision": tree.decision.tolist(),
        "left": tree.left.tolist(),
        "right": tree.right.tolist(),
        "gain": _json_numbers(_shortest_doubles(tree.gain)),
        "value": tree.leaf_value.tolist(),
        "documents": [int(count) if count.is_integer() else count for count in tree.cover.tolist()],
    }
    sets = [tree.sets[slice(*tree.set_start[number : number + 2])] for number in numbers]
    return record | ({"categories": [categories_in(words).tolist() for words in sets]} if sets else {})


def _json_numbers(values: Floats) -> list[float | str]:
    return [value if math.isfinite(value) else repr(value) for value in values.tolist()]


def _shortest_doubles(values: npt.NDArray[np.float32]) -> Floats:
    """Return ``values`` as the doubles with the fewest digits that round to the same floats."""
    short = np.array([str(value) for value in values], np.float64)
    with np.errstate(over="ignore"):
        return np.where(short.astype(np.float32) == values, short, values.astype(np.float64))


def read_trees(records: object, n_features: int) -> TreeTable:
    """Return the trees that `tree_records` wrote; raises a `DataError` that names the tree where they are damaged."""
    if not isinstance(records, list):
        raise DataError(f"trees: {reprlib.repr(records)} is not a list; {AGAIN}")
    columns: dict[str, list[float]] = {name: [] for name in (*_INTEGERS, *_NUMBERS)}
    splits, shrinkage, words, sets = [0], list[float](), [0], list[npt.NDArray[np.uint32]]()
    for t, record in enumerate(records):
        if not isinstance(record, dict):
            raise DataError(f"tree {t}: {reprlib.repr(record)} is not an object; {AGAIN}")
        tree = {name: _integers(record, key, t) for name, key in _INTEGERS.items()}
        tree |= {name: _numbers(record, key, t) for name, key in _NUMBERS.items()}
        _check_lengths(tree, t)
        categorical = [bool(int(decision) & CATEGORICAL) for decision in tree["decision"]]
        tree["threshold"] = _count_sets(tree["threshold"], categorical, record.get("categories", []), len(sets), t)
        for categories in record.get("categories", []):
            sets.append(_words(categories, t, MOST_WORDS - words[-1]))
            words.append(words[-1] + len(sets[-1]))
        for name, values in tree.items():
            columns[name] += values
        splits.append(splits[-1] + len(tree["feature"]))
        shrinkage.append(_number(record.get("weight"), "weight", t))
    return TreeTable(
        n_features,
        start=np.array(splits),
        set_start=np.array(words),
        sets=np.concatenate([*sets, np.empty(0, np.uint32)]),
        shrinkage=np.array(shrinkage, np.float64),
        **{name: np.array(columns[name], np.int64) for name in _INTEGERS},  # type: ignore[arg-type]  # the table narrows them
        **{name: np.array(columns[name], np.float64) for name in _NUMBERS},  # type: ignore[arg-type]
    )


def _list(record: JSONObject, key: str, t: int) -> list[JSONValue]:
    values = record.get(key)
    if not isinstance(values, list):
        raise DataError(f"tree {t}: {key} is {reprlib.repr(values)}, not a list of numbers; {AGAIN}")
    return values


def _integers(record: JSONObject, key: str, t: int) -> list[float]:
    integers: list[float] = []
    for value in _list(record, key, t):
        if type(value) is not int or not -MOST <= value < MOST:
            raise DataError(f"tree {t}: {key} has {reprlib.repr(value)}, which is not a whole number of 32 bits; {AGAIN}")
        integers.append(value)
    return integers


def _numbers(record: JSONObject, key: str, t: int) -> list[float]:
    return [_number(value, key, t) for value in _list(record, key, t)]


def _number(value: object, key: str, t: int) -> float:
    if isinstance(value, str) and value in _INFINITE:
        return _INFINITE[value]
    if not is_finite_number(value):
        raise DataError(f'tree {t}: {key} has {reprlib.repr(value)}, which is neither a number nor "inf" or "-inf"; {AGAIN}')
    return float(value)


def _check_lengths(tree: Mapping[str, Sequence[float]], t: int) -> None:
    splits = len(tree["feature"])
    for name, key in (_INTEGERS | _NUMBERS).items():
        count = splits + (name in ("leaf_value", "cover"))
        if len(tree[name]) != count:
            raise DataError(f"tree {t}: {key} has {len(tree[name])} numbers and feature has {splits}, so there must be {count}; {AGAIN}")


def _count_sets(threshold: list[float], categorical: list[bool], categories: object, before: int, t: int) -> list[float]:
    """Return the thresholds with sets of categories counted over all trees; ``before`` is the number of sets of earlier trees."""
    if not isinstance(categories, list):
        raise DataError(f"tree {t}: categories is {reprlib.repr(categories)}, not a list of lists; {AGAIN}")
    for value, is_set in zip(threshold, categorical, strict=True):
        if is_set and value not in range(len(categories)):
            raise DataError(f"tree {t}: threshold {value} is not the place of one of the {len(categories)} categories; {AGAIN}")
    return [before + value if is_set else value for value, is_set in zip(threshold, categorical, strict=True)]


def _words(categories: object, t: int, limit: int) -> npt.NDArray[np.uint32]:
    """Return a set of categories as bits, in at most ``limit`` words, so that a short file cannot ask for much memory."""
    if not isinstance(categories, list) or not all(type(value) is int and 0 <= value <= HIGHEST_CATEGORY for value in categories):
        expected = f"expected a list of whole numbers from 0 to {HIGHEST_CATEGORY}"
        raise DataError(f"tree {t}: categories has {reprlib.repr(categories)}; {expected}; {AGAIN}")
    count = max(categories, default=0) // 32 + 1
    if count > limit:
        raise DataError(f"tree {t}: the categories of all trees take more than {MOST_WORDS:,} words; number categories from 0 on")
    bits = np.zeros(32 * count, np.uint8)
    bits[np.array(categories, np.int64)] = 1
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)
