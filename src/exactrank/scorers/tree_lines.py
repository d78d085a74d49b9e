"""The lines of the trees in LightGBM's text, ``name=1 2 3``: numbers out of them and into them; errors name the tree."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.errors import DataError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
DAMAGED = "the LightGBM text is damaged, so train or copy the model again"
MOST = 1 << 31  #: above all numbers of nodes and leaves
_INTEGERS = re.compile(r"-?[0-9]{1,10}(?: -?[0-9]{1,10})*")
NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|inf)"
_DECIMALS = re.compile(f"{NUMBER}(?: {NUMBER})*")


class Lines:
    """The lines of all trees, each tree's by name; errors name the tree."""

    def __init__(self, trees: Sequence[str]) -> None:
        self.trees = [fields_of(tree, f"tree {number}") for number, tree in enumerate(trees)]
        linear = next((number for number, fields in enumerate(self.trees) if fields.get("is_linear", "0") != "0"), None)
        if linear is not None:
            raise DataError(f"tree {linear} has linear models in its leaves; train with linear_tree=false")

    def require(self, holds: npt.NDArray[np.bool_], tree: Ints, what: str, remedy: str = DAMAGED) -> None:
        """Raise ``what`` is wrong with the first ``tree`` of which not all ``holds``."""
        if not np.all(holds):
            raise DataError(f"tree {tree[np.argmin(holds)]}: {what}; {remedy}")

    def integers(self, name: str, counts: Ints, low: int, end: int) -> Ints:
        """The given number of integers of each tree, at least ``low`` and below ``end``."""
        found = np.array([int(word) for word in self._words(name, counts, _INTEGERS)], np.int64)
        self.require((found >= low) & (found < end), owners(counts), f"{name} has numbers that are below {low} or not below {end}")
        return found

    def decimals(self, name: str, counts: Ints, finite: bool = True) -> Floats:
        """The given number of numbers of each tree."""
        found = np.array([float(word) for word in self._words(name, counts, _DECIMALS)], np.float64)
        self.require(np.isfinite(found) | (not finite), owners(counts), f"{name} has numbers that are not finite")
        return found

    def _words(self, name: str, counts: Ints, form: re.Pattern[str]) -> list[str]:
        words: list[str] = []
        for number, (fields, count) in enumerate(zip(self.trees, counts.tolist(), strict=True)):
            line = fields.get(name, "")
            own = line.split(" ") if line else []
            if len(own) != count or (line and not form.fullmatch(line)):
                raise DataError(f"tree {number}: {name} has {beginning(line)} instead of {count} numbers; {DAMAGED}")
            words += own
        return words


def fields_of(lines: str, where: str) -> dict[str, str]:
    """The lines of a tree or a header, by name."""
    pairs = [line.partition("=") for line in lines.split("\n") if line]
    found = {name: value for name, _, value in pairs}
    if len(found) < len(pairs) or not all(equals for _, equals, _ in pairs):
        raise DataError(f"{where}: a line is there twice or has no '='; {DAMAGED}")
    return found


def with_line(tree: str, name: str, values: Floats) -> str:
    """A tree with other values in the line of this name."""
    return re.sub(f"^{name}=.*$", line_of(name, values), tree, count=1, flags=re.MULTILINE)


def line_of(name: str, values: npt.NDArray[Any]) -> str:
    """A line, with numbers that read back to the same bits."""
    return f"{name}=" + " ".join(format(value, ".17g") if isinstance(value, float) else str(value) for value in values.tolist())


def owners(counts: Ints) -> Ints:
    """The number of the tree that each thing belongs to, from how many each tree has."""
    return np.repeat(np.arange(len(counts)), counts)


def boundaries(counts: Ints) -> Ints:
    """Where the things of each tree begin, and at last where they end, from how many each tree has."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def beginning(text: str) -> str:
    """The first characters of a text, for an error."""
    return repr(text[:30] + "..." if len(text) > 30 else text)
