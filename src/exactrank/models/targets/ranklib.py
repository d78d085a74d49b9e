"""RankLib's text of trees, as RankLib and ``model/ranklib`` of Elasticsearch LTR and OpenSearch LTR read it.

Features are numbered from 1. Everything is float32; x goes left where x <= threshold, and missing values are 0.
"""

from collections.abc import Sequence
from typing import ClassVar
from xml.etree import ElementTree

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank.models.targets.nested import Split, depths, nest, read_tree
from exactrank.models.targets.plain import Plain, Tree
from exactrank.models.targets.single import as_singles, decimals, rounded_down, singles, tree_sum
from exactrank.models.targets.target import Rows, Target


class RankLib(Target):
    """RankLib's text of trees."""

    name, suffix, kinds = "ranklib", ".txt", ("trees",)
    precision: ClassVar[type[np.floating]] = np.float32

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        first, last = terms.features[0], terms.features[-1]
        order = f"RankLib numbers features in the order of the model: 1 is {first}, {len(terms.features)} is {last}"
        return ranklib_text(terms), [order]

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        return ranklib_scores(content.decode(), rows)


def ranklib_text(terms: Plain) -> str:
    """Return the trees of ``terms`` as RankLib writes them."""
    trees = terms.without_constant().trees
    head = ["LambdaMART", f"No. of trees = {len(trees)}", f"No. of leaves = {max(len(tree.leaf) for tree in trees)}"]
    head += ["No. of threshold candidates = 256", "Learning rate = 1.0", "Stop early = 100"]
    lines = [f'<tree id="{number}" weight="1.0">\n<split>\n{_tree_text(tree)}</split>\n</tree>\n' for number, tree in enumerate(trees, 1)]
    return "".join(f"## {line}\n" for line in head) + "\n<ensemble>\n" + "".join(lines) + "</ensemble>\n"


def _tree_text(tree: Tree) -> str:
    depths(tree)
    thresholds, leaves = decimals(rounded_down(tree.threshold)), decimals(singles(tree.leaf, "a leaf"))

    def split(node: int, left: str, right: str) -> str:
        test = f"<feature> {tree.feature[node] + 1} </feature>\n<threshold> {thresholds[node]} </threshold>\n"
        return f'{test}<split pos="left">\n{left}</split>\n<split pos="right">\n{right}</split>\n'

    return nest(tree, lambda leaf: f"<output> {leaves[leaf]} </output>\n", split)


def ranklib_scores(text: str, rows: Rows) -> PerDocument:
    """Return the scores that RankLib gives ``rows`` by its ``text``."""
    ensemble = ElementTree.fromstring(text[text.index("<ensemble>") :])
    trees = [read_tree(root, _read_node) for tree in ensemble if (root := tree.find("split")) is not None]
    return tree_sum(trees, as_singles(rows, absent=0.0), np.less_equal).astype(np.float64)


def _read_node(node: ElementTree.Element) -> Split | float:
    first, *rest = node
    if first.tag == "output":
        return float(first.text or "")
    threshold, left, right = rest
    return Split(int(first.text or "") - 1, float(threshold.text or ""), left, right, False)
