"""Scores as expressions, which Vespa, Lucene and SQL write in similar ways, and the evaluation of such a text.

    0.7 * bm25 - 0.2 * age + 1.5 * tanh(0.1 + 0.3 * bm25) + (bm25 <= 3.5 ? 0.1 : -0.2)                              (1)

Numbers have all the digits that a double needs. The terms are in the order of plain terms and are added from the left.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import tanh
from exactrank.errors import DataError
from exactrank.models.targets.plain import Terms

Values = float | npt.NDArray[np.float64 | np.bool_]  #: of an expression, one for each row or the same for all
_FUNCTIONS: Mapping[str, Callable[..., Values]] = {"if": np.where, "tanh": tanh, "isNan": np.isnan}
_OPERATORS: Mapping[str, tuple[int, Callable[..., Values]]] = {  # precedence, and function
    "?": (1, np.where),
    "<": (2, np.less),
    "<=": (2, np.less_equal),
    ">=": (2, np.greater_equal),
    "+": (3, np.add),
    "-": (3, np.subtract),
    "*": (4, np.multiply),
}


def sum_text(parts: Sequence[str]) -> str:
    """Return the sum of ``parts``, each a number, a product or in brackets.

    >>> sum_text(["0.5 * a", "-1.5 * b"]), sum_text([])
    ('0.5 * a - 1.5 * b', '0.0')
    """
    return " + ".join(parts).replace(" + -", " - ") or "0.0"


def products(weights: npt.NDArray[np.float64], names: Sequence[str], number: Callable[[float], str] = repr) -> list[str]:
    """Return the products of the weights that are not 0 with ``names``."""
    return [f"{number(weight)} * {name}" for weight, name in zip(weights.tolist(), names, strict=True) if weight]


def smooth_parts(terms: Terms, names: Sequence[str], number: Callable[[float], str] = repr) -> dict[str, list[str]]:
    """Return the parts of (1) other than trees, by kind; a constant belongs to the first kind."""
    parts: dict[str, list[str]] = {} if terms.linear is None else {"linear": products(terms.linear, names, number)}
    if terms.units is not None:
        units = zip(terms.units.output.tolist(), terms.units.bias.tolist(), terms.units.weights, strict=True)
        sums = ((output, sum_text([number(bias), *products(weights, names, number)])) for output, bias, weights in units)
        parts["network"] = [f"{number(output)} * tanh({text})" for output, text in sums]
    if terms.constant:
        first = next(iter(parts), "constant")
        parts[first] = [number(terms.constant), *parts.get(first, [])]
    return parts


def evaluate_text(text: str, columns: Mapping[str, npt.NDArray[np.float64]]) -> PerDocument:
    """Return (1) for each row of ``columns``, which are the variables by name, in double precision."""
    rows = len(next(iter(columns.values())))
    try:
        return np.array(np.broadcast_to(_Reader(text, columns).read(), rows), np.float64)
    except RecursionError:
        raise DataError("the expression is nested too deeply to be evaluated; train trees of fewer leaves") from None


class _Reader:
    """Evaluates while it reads, by precedence; both sides of a condition are computed for all rows."""

    def __init__(self, text: str, columns: Mapping[str, npt.NDArray[np.float64]]) -> None:
        self.columns, self.tokens = columns, _tokens(text, columns)
        self.kind, self.token = next(self.tokens)

    def read(self) -> Values:
        value = self.expression(0)
        if self.kind != "end":
            raise DataError(f"the expression continues with {self.token!r} where it should end; export the model again")
        return value

    def expression(self, above: int) -> Values:
        """Return a value, with all following operators of a precedence above ``above``."""
        value = self.operand()
        while (operator := _OPERATORS.get(self.token)) is not None and operator[0] > above:
            precedence, operation = operator
            if self.take() == "?":
                yes = self.expression(0)
                self.take(":")
                value = operation(value, yes, self.expression(0))
            else:
                value = operation(value, self.expression(precedence))
        return value

    def operand(self) -> Values:
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


def _tokens(text: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each token; the longest variable that matches wins."""
    variables = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    token = re.compile(
        rf"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)|(?P<function>(?:{'|'.join(_FUNCTIONS)})(?=\s*\())"
        rf"|(?P<variable>(?:{variables})(?![\w(.]))|(?P<operator>[<>]=|[-+*<!?:(),])|(?P<end>$))",
        re.ASCII,
    )
    at = 0
    while (match := token.match(text, at)) is not None:
        at = match.end()
        yield str(match.lastgroup), match[str(match.lastgroup)]
        if match.lastgroup == "end":
            return
    raise DataError(f"the expression has {text[at : at + 20]!r}, which is neither a number nor a feature of the model; check the names")
