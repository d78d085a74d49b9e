"""The text in which LightGBM saves a model: read into a `TreeTable`, and written from one, without LightGBM.

A model is a header, the trees, and a tail that does not change scores (importances, parameters). The lines of a tree, ``name=1 2 3``, are
the arrays of a `TreeTable` under LightGBM's names. LightGBM's raw scores of a text that is written here are those of the table to the bit,
and its counts of documents are those of the table's ``cover``.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats, Ints, group_numbers, starts_of
from exactrank.data.levels import NO_LEVELS, Levels
from exactrank.errors import DataError
from exactrank.models.tree_table import CATEGORICAL, MOST, TreeTable, categories_in

DAMAGED = "the LightGBM text is damaged, so train or copy the model again"
_END = "\nend of trees\n"
_INTEGERS = re.compile(r"-?[0-9]{1,10}(?: -?[0-9]{1,10})*")
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|inf)"
_NUMBERS = re.compile(f"{_NUMBER}(?: {_NUMBER})*")
_PANDAS = re.compile(r"^pandas_categorical:(null|\[.*\])$", re.MULTILINE)
_WRITABLE = re.compile(r"[\w.-]+", re.ASCII)
_NEEDED = ("version", "num_class", "num_tree_per_iteration", "max_feature_idx", "feature_names", "feature_infos", "tree_sizes")
_TOTAL = 1 << 24  # documents of a tree if only their shares are known
_TEXT = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
objective=lambdarank
feature_names={names}
feature_infos={infos}
tree_sizes={sizes}

{trees}end of trees

feature_importances:
{importances}
parameters:
[boosting: gbdt]
[objective: lambdarank]

end of parameters

pandas_categorical:{levels}
"""


def read_lightgbm(text: str) -> tuple[TreeTable, tuple[str, ...], Levels]:
    """Return the trees of ``text``, the names of the features and the levels of those that are categories.

    If LightGBM only numbered the columns, there are neither names nor levels. Raises if the text is incomplete, or its score is not a sum
    of constant leaves.
    """
    if not text.startswith("tree\n"):
        raise DataError(f"a LightGBM model begins with a line 'tree', not {text[:40]!r}; give what Booster.model_to_string returns")
    body, end, tail = text.partition(_END)
    if not end:
        raise DataError(f"the line 'end of trees' is not there; {DAMAGED}")
    head, *numbered = re.split(r"^Tree=(.*)\n", body + "\n", flags=re.MULTILINE)
    header = _header(head.removeprefix("tree\n"))
    trees = numbered[1::2]
    sizes = _sizes(trees)
    if numbered[::2] != [str(number) for number in range(len(trees))] or header["tree_sizes"] != sizes:
        announced = _beginning(header["tree_sizes"])
        raise DataError(f"the header announces trees of {announced} characters but there are {_beginning(sizes)}; {DAMAGED}")
    names = header["feature_names"].split(" ")
    table = _table(_Lines(trees), len(names))
    return (table, (), NO_LEVELS) if names == _default_names(len(names)) else (table, tuple(names), _levels(header, tail))


def write_lightgbm(table: TreeTable, feature_names: Sequence[str] = (), levels: Levels = NO_LEVELS) -> str:
    """Return the text that `read_lightgbm` reads as this table; features are numbered unless all names are `writable`.

    Some programs refuse a text without an objective. LightGBM's objective for rankings has raw scores as predictions.
    """
    names = list(feature_names) if writable(feature_names) else _default_names(table.n_features)
    trees = [_tree(table.single(t)) for t in range(table.n_trees)]
    counts = table.splits_by_feature()
    by_count = [j for j in np.argsort(-counts, kind="stable") if counts[j] > 0]
    texts = [list(levels[name]) for name in feature_names if name in levels]
    return _TEXT.format(
        last=table.n_features - 1,
        names=" ".join(names),
        infos=" ".join(_infos(table, feature_names, levels)),
        sizes=_sizes(trees),
        trees="".join(f"Tree={number}\n{tree}" for number, tree in enumerate(trees)),
        importances="".join(f"{names[j]}={counts[j]}\n" for j in by_count),
        levels=json.dumps(texts) if texts else "null",
    )


def writable(names: Sequence[str]) -> bool:
    """Return whether LightGBM's text can hold all ``names`` of features."""
    return bool(names) and all(_WRITABLE.fullmatch(name) for name in names)


def _default_names(count: int) -> list[str]:
    return [f"Column_{j}" for j in range(count)]


def _sizes(trees: Sequence[str]) -> str:
    return " ".join(str(len(f"Tree={number}\n{tree}")) for number, tree in enumerate(trees))


def _beginning(text: str) -> str:
    """Return the first characters of ``text``, for an error."""
    return repr(text[:30] + "..." if len(text) > 30 else text)


# Reading


def _header(lines: str) -> dict[str, str]:
    """Return the header's lines by name; raises unless they describe a model that can be read."""
    if "\naverage_output\n" in lines:
        raise DataError("the trees are a random forest, whose scores are means; train with boosting=gbdt")
    header = _fields(lines, "the header")
    for name in _NEEDED:
        if name not in header:
            raise DataError(f"the header has no line {name}=...; {DAMAGED}")
    if header["version"] != "v4":
        version = _beginning(header["version"])
        raise DataError(f"the LightGBM text has version {version}; load and save it with LightGBM 4, which writes v4")
    scores = {header["num_class"], header["num_tree_per_iteration"]} - {"1"}
    if scores:
        raise DataError(f"the trees give {_beginning(scores.pop())} scores per row; a ranking needs one, so train with num_class=1")
    last = header["max_feature_idx"]
    if not re.fullmatch("[0-9]{1,9}", last) or int(last) + 1 != len(header["feature_names"].split(" ")):
        raise DataError(f"max_feature_idx is {_beginning(last)}, which is not that of the last of the feature_names; {DAMAGED}")
    return header


def _fields(lines: str, where: str) -> dict[str, str]:
    """Return the lines of a tree or a header by name."""
    pairs = [line.partition("=") for line in lines.split("\n") if line]
    fields = {name: value for name, _, value in pairs}
    if len(fields) < len(pairs) or not all(equals for _, equals, _ in pairs):
        raise DataError(f"{where}: a line is there twice or has no '='; {DAMAGED}")
    return fields


class _Lines:
    """The lines of each tree by name; errors name the tree."""

    def __init__(self, trees: Sequence[str]) -> None:
        self.trees = [_fields(tree, f"tree {number}") for number, tree in enumerate(trees)]
        linear = next((number for number, fields in enumerate(self.trees) if fields.get("is_linear", "0") != "0"), None)
        if linear is not None:
            raise DataError(f"tree {linear} has linear models in its leaves; train with linear_tree=false")

    def integers(self, name: str, counts: Ints, low: int, end: int) -> Ints:
        """Return the integers of all trees, ``counts`` of each, which must be at least ``low`` and below ``end``."""
        values = np.array([int(word) for word in self._words(name, counts, _INTEGERS)], np.int64)
        sound = (values >= low) & (values < end)
        if not np.all(sound):
            place = np.argmin(sound)
            tree = group_numbers(counts)[place]
            raise DataError(f"tree {tree}: {name} has {values[place]}, which is below {low} or not below {end}; {DAMAGED}")
        return values

    def numbers(self, name: str, counts: Ints) -> Floats:
        """Return the numbers of all trees, ``counts`` of each."""
        return np.array([float(word) for word in self._words(name, counts, _NUMBERS)], np.float64)

    def cover(self, leaves: Ints) -> Floats:
        """Return the number of documents in each leaf, or 1 if a tree does not have it."""
        has_counts = np.array([bool(fields.get("leaf_count")) for fields in self.trees], bool)
        cover = np.ones(leaves.sum())
        cover[np.repeat(has_counts, leaves)] = self.integers("leaf_count", np.where(has_counts, leaves, 0), 0, MOST)
        return cover

    def _words(self, name: str, counts: Ints, form: re.Pattern[str]) -> list[str]:
        words: list[str] = []
        for number, (fields, count) in enumerate(zip(self.trees, counts.tolist(), strict=True)):
            line = fields.get(name, "")
            values = line.split(" ") if line else []
            if len(values) != count or (line and not form.fullmatch(line)):
                raise DataError(f"tree {number}: {name} has {_beginning(line)} instead of {count} numbers; {DAMAGED}")
            words += values
        return words


def _table(lines: _Lines, n_features: int) -> TreeTable:
    single = np.ones(len(lines.trees), np.int64)
    leaves, sets = lines.integers("num_leaves", single, 1, MOST), lines.integers("num_cat", single, 0, MOST)
    splits = leaves - 1
    decision, threshold = lines.integers("decision_type", splits, 0, 12), lines.numbers("threshold", splits)
    tree, first_set = group_numbers(splits), starts_of(sets)
    categorical = (decision & CATEGORICAL) > 0
    if np.any(unknown := categorical & ~((threshold >= 0) & (threshold < sets[tree]))):
        place = np.argmax(unknown)
        raise DataError(f"tree {tree[place]}: threshold {threshold[place]} names a set of categories that is not there; {DAMAGED}")
    set_start = _set_starts(lines, sets)
    with np.errstate(over="ignore"):
        gain = lines.numbers("split_gain", splits).astype(np.float32)
    return TreeTable(
        n_features,
        start=starts_of(splits),
        feature=lines.integers("split_feature", splits, 0, n_features).astype(np.int32),
        threshold=np.where(categorical, threshold + first_set[tree], threshold),
        decision=decision.astype(np.uint8),
        left=lines.integers("left_child", splits, -MOST, MOST).astype(np.int32),
        right=lines.integers("right_child", splits, -MOST, MOST).astype(np.int32),
        gain=gain,
        leaf_value=lines.numbers("leaf_value", leaves),
        set_start=set_start,
        sets=lines.integers("cat_threshold", np.diff(set_start[first_set]), 0, 1 << 32).astype(np.uint32),
        shrinkage=lines.numbers("shrinkage", single),
        cover=lines.cover(leaves),
    )


def _set_starts(lines: _Lines, sets: Ints) -> Ints:
    """Return the first word of each set of all trees, from the ``cat_boundaries`` of each tree."""
    counts = np.where(sets > 0, sets + 1, 0)
    bounds, tree = lines.integers("cat_boundaries", counts, 0, MOST), group_numbers(counts)
    begins, rise = np.diff(tree, prepend=-1) > 0, np.diff(bounds, prepend=0)
    sound = np.where(begins, bounds == 0, rise > 0)
    if not np.all(sound):
        raise DataError(f"tree {tree[np.argmin(sound)]}: cat_boundaries do not rise from 0; {DAMAGED}")
    return starts_of(rise[~begins])


def _levels(header: Mapping[str, str], tail: str) -> Levels:
    """Return the levels of pandas columns that LightGBM saved; none if it is not clear which features they belong to."""
    line = _PANDAS.search(tail)
    try:
        lists = json.loads(line[1]) if line else None
    except (ValueError, RecursionError):
        lists = None
    if not lists or not all(isinstance(texts, list) for texts in lists):
        return NO_LEVELS
    pairs = zip(header["feature_names"].split(" "), header["feature_infos"].split(" "), strict=False)
    names = [name for name, info in pairs if info != "none" and not info.startswith("[")]
    levels = {name: tuple(map(str, texts)) for name, texts in zip(names, lists, strict=False)}
    is_clear = len(names) == len(lists) and all(all(texts) and len(set(texts)) == len(texts) for texts in levels.values())
    return levels if is_clear else NO_LEVELS


# Writing


def _infos(table: TreeTable, feature_names: Sequence[str], levels: Levels) -> list[str]:
    """Return the codes of each categorical feature as LightGBM lists them, and ``none`` for numeric features."""
    infos, categorical = ["none"] * table.n_features, (table.decision & CATEGORICAL) > 0
    codes = dict[int, npt.NDArray[Any]]()
    for j, number in zip(table.feature[categorical].tolist(), table.threshold[categorical].astype(np.int64), strict=True):
        words = table.sets[table.set_start[number] : table.set_start[number + 1]]
        codes[j] = np.union1d(codes.get(j, np.empty(0, np.int64)), categories_in(words))
    codes |= {j: np.arange(len(levels[name])) for j, name in enumerate(feature_names) if name in levels}
    for j, values in codes.items():
        infos[j] = ":".join(map(str, values.tolist())) or "0"
    return infos


def _tree(tree: TreeTable) -> str:
    categorical = (tree.decision & CATEGORICAL) > 0
    documents = _documents(tree.cover)
    counts, mean = _internal(tree, documents)
    lines: dict[str, npt.NDArray[Any]] = {
        "num_leaves": np.array([len(tree.leaf_value)]),
        "num_cat": np.array([len(tree.set_start) - 1]),
        "split_feature": tree.feature,
        "split_gain": tree.gain.astype(np.float64),
        "threshold": tree.threshold,
        "decision_type": tree.decision,
        "left_child": tree.left,
        "right_child": tree.right,
        "leaf_value": tree.leaf_value,
        "leaf_weight": documents,
        "leaf_count": documents,
        "internal_value": mean,
        "internal_weight": counts,
        "internal_count": counts,
    }
    if np.any(categorical):
        lines |= {"cat_boundaries": tree.set_start, "cat_threshold": tree.sets}
    lines |= {"is_linear": np.array([0]), "shrinkage": tree.shrinkage}
    return "".join(f"{name}={_numbers_text(values)}\n" for name, values in lines.items()) + "\n\n"


def _numbers_text(values: npt.NDArray[Any]) -> str:
    """Return numbers that read back to the same bits."""
    return " ".join(format(value, ".17g") if isinstance(value, float) else str(value) for value in values.tolist())


def _documents(cover: Floats) -> Ints:
    """Return the number of documents in each leaf of a tree, at least 1, from their numbers or shares."""
    counts = cover
    if cover.sum() >= MOST or np.any(cover != np.rint(cover)):
        share = cover / max(cover.max(), np.finfo(float).tiny)
        counts = np.rint(_TOTAL * share / max(share.sum(), 1.0))
    return np.maximum(counts, 1).astype(np.int64)


def _internal(tree: TreeTable, documents: Ints) -> tuple[Ints, Floats]:
    """Return the number of documents and the mean value below each split."""
    counts, mean = np.zeros(len(tree.left), np.int64), np.zeros(len(tree.left))
    for node in range(len(tree.left) - 1, -1, -1):  # children come after their parents
        children = [
            (counts[child], mean[child]) if child >= 0 else (documents[~child], tree.leaf_value[~child])
            for child in (tree.left[node], tree.right[node])
        ]
        counts[node] = sum(count for count, _ in children)
        mean[node] = math.fsum(count / counts[node] * average for count, average in children)
    return counts, mean
