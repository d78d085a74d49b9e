"""RankLib's models as ``-save`` writes them: LambdaMART, MART, random forests, and the linear ones of coordinate ascent.

Features are numbered from 1; the file does not say how many there are. A row goes left where x <= t, in single precision, missing values
count as 0, and a score is the sum of the trees' outputs times their weights, or the mean over several ensembles.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from exactrank.errors import DataError
from exactrank.models.formats.content import DAMAGED, Content, Reader
from exactrank.models.linear import Linear
from exactrank.models.model import Model
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.tree_ensemble import TreeEnsemble

TREES, WEIGHTS = ("LambdaMART", "MART", "Random Forests"), ("Coordinate Ascent",)
WIDEST = 10_000_000  #: the largest number of a feature
_TAG = re.compile(r"""\s*(?:<(/?)(\w+)((?:\s+\w+="[^"<>]*")*)\s*>|([^<>\s]+))""")
_WEIGHT = re.compile(r"([0-9]{1,9}):([^\s:]+)")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
Token = tuple[str, str]  #: a tag such as ``split`` or ``/split`` with its attributes, or ``""`` and a word


def recognizes(content: Content) -> bool:
    """Return whether it begins with RankLib's comments, or directly with an ensemble."""
    return content.data.lstrip()[:3] == b"## " or content.data.lstrip()[:10] == b"<ensemble>"


def read(content: Content) -> Model:
    """Return the model of a file."""
    lines = content.text.replace("\r\n", "\n").strip().split("\n")
    remarks = [line[2:].strip() for line in lines if line.startswith("##")]
    body = "\n".join(line for line in lines if not line.startswith("##")).strip()
    name = remarks[0] if remarks else TREES[0]
    if name not in (*TREES, *WEIGHTS):
        raise DataError(f"a RankLib model of {name[:40]!r} cannot be read; give one of {', '.join((*TREES, *WEIGHTS))}")
    if name in WEIGHTS:
        weights = _weights(body)
        width = _width(max(weights), content)
        return Model(Linear(np.array([weights.get(j + 1, 0.0) for j in range(width)]), missing="zero"), ranker=f"RankLib {name}")
    trees = _trees(body)
    width = _width(max((int(tree.feature.max()) + 1 for tree in trees), default=1), content)
    return Model(TreeEnsemble(table_of(trees, width)), ranker=f"RankLib {name}")


def _width(last: int, content: Content) -> int:
    if content.n_features is not None and content.n_features < last:
        raise DataError(f"the model uses feature {last} but there are {content.n_features}; give data with the features of its training")
    if content.n_features is None:
        content.budget.spend("features", last, f"feature {last}", "correct it, or say how many there are: load(path, n_features=...)")
    return content.n_features or last


def _weights(body: str) -> dict[int, float]:
    weights: dict[int, float] = {}
    for word in body.split():
        pair = _WEIGHT.fullmatch(word)
        if not pair or not 1 <= int(pair[1]) <= WIDEST or int(pair[1]) in weights:
            raise DataError(f"{word[:40]!r} is not a new feature with its weight, such as 1:0.5; {DAMAGED}")
        weights[int(pair[1])] = _number(pair[2], f"the weight of feature {pair[1]}")
    if not weights:
        raise DataError(f"there are no weights; {DAMAGED}")
    return weights


def _tokens(body: str) -> Iterator[Token]:
    at = 0
    while at < len(body):
        token = _TAG.match(body, at)
        if not token:
            raise DataError(f"{body[at : at + 40]!r} is neither a tag nor a number; {DAMAGED}")
        yield (token[1] + token[2], token[3]) if token[2] else ("", token[4])
        at = token.end()
    yield "/file", ""


def _trees(body: str) -> list[PlainTree]:
    """Return all trees; several ensembles have equal shares."""
    tokens, trees, ensembles = _tokens(body), list[tuple[PlainTree, float]](), 0
    for tag, text in tokens:
        match tag:
            case "ensemble":
                ensembles += 1
            case "tree":
                weight = re.search(r'\bweight="([^"]*)"', text)
                where = f"tree {len(trees)}"
                trees.append((_tree(tokens, where), _number(weight[1] if weight else "", f"{where}: its weight")))
            case "/ensemble" | "/file":
                pass
            case _:
                raise DataError(f"expected a tree after {len(trees)} trees, found {(tag or text)[:40]!r}; {DAMAGED}")
    with np.errstate(over="ignore"):
        return [replace(tree, value=tree.value * weight / max(ensembles, 1)) for tree, weight in trees]


def _tree(tokens: Iterator[Token], where: str) -> PlainTree:
    """Return the tree up to its end."""
    nodes = _nodes(tokens, where)
    feature = np.array([node.get("feature", 1) for node in nodes])
    is_valid = (feature >= 1) & (feature <= WIDEST) & (feature == np.floor(feature))
    if not np.all(is_valid):
        node = int(np.argmin(is_valid))
        raise DataError(f"{where}: node {node} splits at feature {feature[node]:g}; RankLib numbers features from 1; {DAMAGED}")
    columns = (
        [node.get(name, none) for node in nodes] for name, none in (("threshold", 0.0), ("left", -1), ("right", -1), ("output", 0.0))
    )
    threshold, left, right, value = columns
    with np.errstate(over="ignore"):
        single = np.array(threshold, np.float64).astype(np.float32)
    return PlainTree(
        feature.astype(np.int64) - 1,
        single.astype(np.float64),
        np.array(left, np.int64),
        np.array(right, np.int64),
        np.array(value),
    )


def _nodes(tokens: Iterator[Token], where: str) -> list[dict[str, float]]:
    """Return the entries of each node up to the end of the tree, in the order in which they are read."""
    nodes: list[dict[str, float]] = []
    path: list[dict[str, float]] = []  # from the root to the current node
    for tag, text in tokens:
        place = f"{where}: node {len(nodes) - 1}" if nodes else where
        if tag == "split" and (path or not nodes):
            if path:
                side = "right" if "left" in path[-1] else "left"
                if f'pos="{side}"' not in text or side in path[-1]:
                    raise DataError(f"{place}: expected the {side} split, found split{text[:40]}; {DAMAGED}")
                path[-1][side] = len(nodes)
            nodes.append({})
            path.append(nodes[-1])
        elif tag in ("feature", "threshold", "output") and path and tag not in path[-1]:
            path[-1][tag] = _number(next(tokens)[1], f"{place}: its {tag}")
            if next(tokens)[0] != f"/{tag}":
                raise DataError(f"{place}: its {tag} is not one number; {DAMAGED}")
        elif tag == "/split" and path and set(path[-1]) in ({"output"}, {"feature", "threshold", "left", "right"}):
            path.pop()
        elif tag == "/tree" and nodes and not path:
            break
        else:
            raise DataError(f"{place}: expected a split, its parts or its end, found {(tag or text)[:40]!r}; {DAMAGED}")
    return nodes


def _number(word: str, name: str) -> float:
    if not _NUMBER.fullmatch(word) or not math.isfinite(float(word)):
        raise DataError(f"{name} is {word[:40]!r}, expected a finite number; {DAMAGED}")
    return float(word)


READER = Reader(recognizes, read)
