"""The notation of methods, on the command line and in lists.

``lambdamart``, ``lambdamart(trees=100, leaves=15)``, ``small=lambdamart(leaves=7)``, ``package.module:Class``. Settings are Python
literals, as in the notation of measures. The part before ``=`` is a label for tables; without one, tables show the method as written.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exactrank._support.text import settings_text
from exactrank.errors import DataError
from exactrank.measures.parse import settings_in

EXAMPLE = "write e.g. lambdamart, lambdamart(trees=100) or small=lambdamart(leaves=7)"
_FORM = re.compile(
    r"\s*(?:(?P<label>[^=()\[\]{},'\"]*[^=()\[\]{},'\"\s])\s*=)?\s*(?P<name>[\w.:-]+)\s*(?:\((?P<inside>.*)\))?\s*", re.DOTALL
)
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Method:
    """A method in its notation; ``str`` returns that notation.

    >>> str(parse_method("lambdamart( trees = 100 )")), parse_method("small=lambdamart(leaves=7)").label
    ('lambdamart(trees=100)', 'small')
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __str__(self) -> str:
        return (f"{self.label}=" if self.label else "") + self.name + (f"({settings_text(self.settings)})" if self.settings else "")

    @property
    def title(self) -> str:
        """The title in tables: the label or the notation, in which a class has no path."""
        return self.label or str(Method(self.name.rpartition(":")[2], self.settings))


def parse_method(text: str, what: str = "a method", example: str = EXAMPLE) -> Method:
    """Return the method in the notation ``text``, which need not exist; errors say ``what`` is expected, with an ``example``."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise DataError(f"{text!r} is not {what}; {example}")
    try:
        return Method(form["name"], settings_in(form["inside"] or ""), (form["label"] or "").strip())
    except ValueError as error:
        raise DataError(f"{text!r}: cannot read the settings ({error}); write numbers, 'words', None, True or False: {example}") from None


def split_methods(text: str) -> list[str]:
    """Split ``text`` at commas outside of brackets and quotes.

    >>> split_methods("ridge, lambdamart(trees=100, leaves=15), lightgbm")
    ['ridge', 'lambdamart(trees=100, leaves=15)', 'lightgbm']
    """
    methods, depth, quote, start, index = [], 0, "", 0, 0
    while index < len(text):
        letter = text[index]
        if quote:
            index += letter == "\\"  # what it escapes is skipped too
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _OPENING + _CLOSING:
            depth += 1 if letter in _OPENING else -1
        elif letter == "," and depth == 0:
            methods.append(text[start:index].strip())
            start = index + 1
        index += 1
    if depth or quote:
        raise DataError(f"{text!r}: {'a quote' if quote else 'a bracket'} is not closed; {EXAMPLE}")
    methods.append(text[start:].strip())
    if not all(methods):
        raise DataError(f"{text!r} has an empty place where a method should be; separate methods with a single comma")
    return methods
