"""Scores as expressions, which Vespa, Lucene and SQL write in similar ways, and the scores that such a text gives.

    0.7 * bm25 - 0.2 * age + 1.5 * tanh(0.1 + 0.3 * bm25) + (bm25 <= 3.5 ? 0.1 : -0.2)                              (1)

Numbers have all the digits that a double needs. The terms are in the order of plain terms and are added from the left.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import tanh
from exactrank.errors import DataError
from exactrank.models.targets.plain import Terms

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"if": np.where, "tanh": tanh, "isNan": np.isnan}
_OPERATORS: Mapping[str, tuple[int, Callable[..., Any]]] = {  # how strongly they bind, and what they do
    "?": (1, np.where),
    "<": (2, np.less),
    "<=": (2, np.less_equal),
    ">=": (2, np.greater_equal),
    "+": (3, np.add),
    "-": (3, np.subtract),
    "*": (4, np.multiply),
}


def added(parts: Sequence[str]) -> str:
    """The sum of ``parts``, each a number, a product or in brackets.

    >>> added(["0.5 * a", "-1.5 * b"]), added([])
    ('0.5 * a - 1.5 * b', '0.0')
    """
    return " + ".join(parts).replace(" + -", " - ") or "0.0"


def weighted(weights: npt.NDArray[np.float64], names: Sequence[str], number: Callable[[float], str] = repr) -> list[str]:
    """The products of the weights that are not 0 with ``names``."""
    return [f"{number(weight)} * {name}" for weight, name in zip(weights.tolist(), names, strict=True) if weight]


def smooth_parts(terms: Terms, names: Sequence[str], number: Callable[[float], str] = repr) -> dict[str, list[str]]:
    """The parts of (1) other than trees, by kind; a constant belongs to the first kind."""
    found: dict[str, list[str]] = {} if terms.linear is None else {"linear": weighted(terms.linear, names, number)}
    if terms.units is not None:
        units = zip(terms.units.output.tolist(), terms.units.bias.tolist(), terms.units.weights, strict=True)
        inside = ((by, added([number(bias), *weighted(weights, names, number)])) for by, bias, weights in units)
        found["network"] = [f"{number(by)} * tanh({within})" for by, within in inside]
    if terms.constant:
        first = next(iter(found), "constant")
        found[first] = [number(terms.constant), *found.get(first, [])]
    return found


def evaluated(text: str, columns: Mapping[str, npt.NDArray[np.float64]]) -> PerDocument:
    """(1) for each row of ``columns``, which are the variables by name, in double precision."""
    rows = len(next(iter(columns.values())))
    try:
        return np.array(np.broadcast_to(_Reader(text, columns).whole(), rows), np.float64)
    except RecursionError:
        raise DataError("the expression is nested too deeply to be evaluated; train trees of fewer leaves") from None


class _Reader:
    """Evaluates while it reads, by precedence; both sides of a condition are computed for all rows."""

    def __init__(self, text: str, columns: Mapping[str, npt.NDArray[np.float64]]) -> None:
        self.columns, self.tokens = columns, _tokens(text, columns)
        self.kind, self.token = next(self.tokens)

    def whole(self) -> Any:
        value = self.expression(0)
        if self.kind != "end":
            raise DataError(f"the expression continues with {self.token!r} where it should end; export the model again")
        return value

    def expression(self, above: int) -> Any:
        """A value, with all following operators that bind more strongly than ``above``."""
        value = self.operand()
        while (known := _OPERATORS.get(self.token)) is not None and known[0] > above:
            binds, operation = known
            if self.take() == "?":
                yes = self.expression(0)
                self.take(":")
                value = operation(value, yes, self.expression(0))
            else:
                value = operation(value, self.expression(binds))
        return value

    def operand(self) -> Any:
        kind, token = self.kind, self.take()
        if kind == "number":
            return float(token)
        if kind == "variable":
            return self.columns[token]
        if token in ("-", "!"):
            value = self.operand()
            return np.negative(value) if token == "-" else np.logical_not(value)
        if kind == "function":
            self.take("(")
        elif token != "(":
            raise DataError(f"the expression has {token!r} where a value should be; export the model again")
        values = [self.expression(0)]
        while kind == "function" and self.token == ",":
            self.take()
            values.append(self.expression(0))
        self.take(")")
        return _FUNCTIONS[token](*values) if kind == "function" else values[0]

    def take(self, expected: str | None = None) -> str:
        token = self.token
        if expected is not None and token != expected:
            raise DataError(f"the expression has {token!r} where {expected!r} should be; export the model again")
        self.kind, self.token = next(self.tokens, ("end", ""))
        return token


def _tokens(text: str, names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The kind and the text of each token; the longest variable that fits wins."""
    variables = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    token = re.compile(
        rf"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)|(?P<function>(?:{'|'.join(_FUNCTIONS)})(?=\s*\())"
        rf"|(?P<variable>(?:{variables})(?![\w(.]))|(?P<operator>[<>]=|[-+*<!?:(),])|(?P<end>$))",
        re.ASCII,
    )
    at = 0
    while (found := token.match(text, at)) is not None:
        at = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]
        if found.lastgroup == "end":
            return
    raise DataError(f"the expression has {text[at : at + 20]!r}, which is neither a number nor a feature of the model; check the names")
