"""Models of trees made of others, by their LightGBM text: fewer trees, more trees, other weights, other units of the features."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np

from exactrank.errors import DataError, IncompatibleError
from exactrank.scorers.base import sum_rounded_down
from exactrank.scorers.tree_lines import MOST, NUMBER, Floats, Lines, beginning, owners, with_line
from exactrank.scorers.tree_text import CATEGORICAL, ModelText, PerTree

_PANDAS = re.compile(r"^pandas_categorical:(null|\[.*\])$", re.MULTILINE)
_RANGE = re.compile(rf"\[{NUMBER}:{NUMBER}\]")


def for_ranking(text: str) -> str:
    """The model with LightGBM's objective for rankings, where it has none: there are programs that read no other text. Scores stay."""
    header, names, rest = text.partition("\nfeature_names=")
    if "\nobjective=" in header:
        return text
    return f"{header}\nobjective=lambdarank{names}{rest}".replace("\n[objective: custom]\n", "\n[objective: lambdarank]\n")


def with_levels(text: str, levels: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """The model with the levels of categories where LightGBM keeps those of pandas columns: in the order of the columns."""
    known = [list(levels[name]) for name in names if name in levels]
    return _PANDAS.sub(lambda _: f"pandas_categorical:{json.dumps(known)}", text) if known else text


def levels_of(text: str) -> dict[str, tuple[str, ...]]:
    """The levels that LightGBM kept of pandas columns, by the name of the feature; none where it is not plain which they belong to."""
    header, found = ModelText.of(text).header, _PANDAS.search(text)
    if found is None or not (known := json.loads(found[1])):
        return {}
    pairs = zip(header["feature_names"].split(" "), header["feature_infos"].split(" "), strict=True)
    names = [name for name, info in pairs if info != "none" and not info.startswith("[")]
    levels = {name: tuple(map(str, own)) for name, own in zip(names, known, strict=False)}
    clear = len(names) == len(known) and all(all(own) and len(set(own)) == len(own) for own in levels.values())
    return levels if clear else {}


def first_trees(text: str, count: int) -> str:
    """The model of the first ``count`` trees."""
    model = ModelText.of(text)
    if not 0 <= count <= len(model.trees):
        raise DataError(f"there are {len(model.trees)} trees, so the first {count} cannot be taken")
    return replace(model, trees=model.trees[:count]).written()


def joint_info(first: str, second: str) -> str:
    """What values a feature has in either of two sets of data: from the least to the largest, or which kinds.

    >>> joint_info("[-1:0.5]", "[0:2.5]"), joint_info("none", "[0:1]"), joint_info("3:1", "3:2")
    ('[-1:2.5]', '[0:1]', '3:1:2')
    """
    if first == second or "none" in (first, second):
        return second if first == "none" else first
    ours, theirs = (info.strip("[]").split(":") for info in (first, second))
    if _RANGE.fullmatch(first) and _RANGE.fullmatch(second):
        return f"[{min(ours[0], theirs[0], key=Decimal)}:{max(ours[1], theirs[1], key=Decimal)}]"
    return first if first.startswith("[") or second.startswith("[") else ":".join(dict.fromkeys([*ours, *theirs]))


def scaled(text: str, weights: Sequence[float] | PerTree) -> str:
    """The model with each tree's values, and the rate that they were multiplied by before, times its weight."""
    model = ModelText.of(text)
    if len(weights) != len(model.trees) or not np.all(np.isfinite(weights)):
        found = f"{len(weights)} weights, {beginning(str(list(weights)))}, for {len(model.trees)} trees"
        raise DataError(f"there are {found}; give one finite weight per tree")
    lines, trees = Lines(model.trees), model.trees
    for name in ("leaf_value", "internal_value", "shrinkage"):
        counts = np.array([len(fields.get(name, "").split()) for fields in lines.trees], np.int64)
        with np.errstate(over="ignore"):
            values = lines.decimals(name, counts) * np.repeat(np.asarray(weights, np.float64), counts)
        lines.require(np.isfinite(values), owners(counts), f"{name} overflows", "give a smaller weight")
        own = np.split(values, np.cumsum(counts))
        trees = tuple(
            tree if weight == 1 else with_line(tree, name, own[t]) for t, (tree, weight) in enumerate(zip(trees, weights, strict=True))
        )
    return replace(model, trees=trees).written()


def joined(first: str, second: str) -> str:
    """The model with the trees of ``first`` and then those of ``second``, whose features must be the same."""
    ours, theirs = ModelText.of(first), ModelText.of(second)
    if ours.header["feature_names"] != theirs.header["feature_names"]:
        found = f"{beginning(ours.header['feature_names'])} and {beginning(theirs.header['feature_names'])}"
        raise IncompatibleError(f"the trees differ in feature_names, {found}; join only models of the same features")
    infos = zip(*(model.header["feature_infos"].split(" ") for model in (ours, theirs)), strict=True)
    header = ours.header | {"feature_infos": " ".join(joint_info(*each) for each in infos)}
    return replace(ours, header=header, trees=ours.trees + theirs.trees).written()


def moved(text: str, by: Floats) -> str:
    """The model of features that are larger by ``by``, one number per feature: its thresholds are.

    A threshold is rounded down, so that what lay above it goes on doing so.
    """
    model = ModelText.of(text)
    lines = Lines(model.trees)
    nodes = lines.integers("num_leaves", np.ones(len(model.trees), np.int64), 1, MOST) - 1
    feature, decision = lines.integers("split_feature", nodes, 0, len(by)), lines.integers("decision_type", nodes, 0, 12)
    step = np.where(decision & CATEGORICAL, 0.0, by[feature])
    threshold = sum_rounded_down(lines.decimals("threshold", nodes, finite=False), step)
    ends = np.cumsum(nodes)[:-1]
    trees = tuple(
        with_line(tree, "threshold", own) if np.any(steps) else tree
        for tree, own, steps in zip(model.trees, np.split(threshold, ends), np.split(step, ends), strict=True)
    )
    infos = [_moved_info(info, float(own)) for info, own in zip(model.header["feature_infos"].split(" "), by, strict=True)]
    return replace(model, trees=trees, header=model.header | {"feature_infos": " ".join(infos)}).written()


def _moved_info(info: str, by: float) -> str:
    """The range of a feature, ``[low:high]``, moved without rounding, so that moving it back gives the same text.

    >>> _moved_info("[-1.5:0.10000000000000001]", 1e9), _moved_info("[999999998.5:1000000000.10000000000000001]", -1e9)
    ('[999999998.5:1000000000.10000000000000001]', '[-1.5:0.10000000000000001]')
    """
    if by == 0 or not _RANGE.fullmatch(info):
        return info
    with localcontext(prec=800):
        ends = [Decimal(end) + Decimal(by) for end in info[1:-1].split(":")]
        short = [format(float(end), ".17g") for end in ends]
        return f"[{':'.join(text if Decimal(text) == end else format(end, 'f') for text, end in zip(short, ends, strict=True))}]"
