"""Contenders by name: rankers of this library, its peers, those of other packages, and classes by their path.

A contender is one file and one line in `CONTENDERS`, or, in another package, an entry point of the group ``exactrank.contenders``.

Methods are written ``lambdamart``, ``lambdamart(trees=100, leaves=15)``, ``small=lambdamart(leaves=7)``, ``package.module:Class``. Settings
are Python literals, as in the notation of measures. The part before ``=`` is a label for tables; without one a method is called as it is
written.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any

from exactrank.compare.contender import Contender
from exactrank.compare.contenders.ranker import EstimatorContender, RankerContender
from exactrank.errors import DataError, ExactRankError
from exactrank.measures.parse import settings_in
from exactrank.rankers import RANKERS
from exactrank.rankers.base import Ranker
from exactrank.reasons import reason_of
from exactrank.registry import Registry, imported
from exactrank.text import did_you_mean, written

#: Where each peer is, by its name in the notation; imported when asked for.
CONTENDERS: Registry[type] = Registry("method", {
    "lightgbm": "exactrank.compare.contenders.lightgbm:LightGBM",
    "xgboost": "exactrank.compare.contenders.xgboost:XGBoost",
    "catboost": "exactrank.compare.contenders.catboost:CatBoost",
}, "exactrank.contenders", lambda value: isinstance(value, type))  # fmt: skip
FOUND = "write package.module:Class, of a module that Python finds: of a package that is installed, or with its folder in PYTHONPATH"
EXAMPLE = "write e.g. lambdamart, lambdamart(trees=100) or small=lambdamart(leaves=7)"
_FORM = re.compile(
    r"\s*(?:(?P<label>[^=()\[\]{},'\"]*[^=()\[\]{},'\"\s])\s*=)?\s*(?P<name>[\w.:-]+)\s*(?:\((?P<inside>.*)\))?\s*", re.DOTALL
)
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Method:
    """A method as it is written; ``str`` writes it again.

    >>> str(parse_method("lambdamart( trees = 100 )")), parse_method("small=lambdamart(leaves=7)").label
    ('lambdamart(trees=100)', 'small')
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __str__(self) -> str:
        return (f"{self.label}=" if self.label else "") + self.name + (f"({written(self.settings)})" if self.settings else "")

    @property
    def title(self) -> str:
        """What tables call it: by its label, or as it is written, a class without its path."""
        return self.label or str(Method(self.name.rpartition(":")[2], self.settings))


def parse_method(text: str) -> Method:
    """The method that ``text`` writes, whether or not there is one of that name."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise DataError(f"{text!r} is not a method; {EXAMPLE}")
    try:
        return Method(form["name"], settings_in(form["inside"] or ""), (form["label"] or "").strip())
    except ValueError as error:
        raise DataError(f"{text!r}: cannot read the settings ({error}); write numbers, 'words', None, True or False: {EXAMPLE}") from None


def split_methods(text: str) -> list[str]:
    """``text`` split at commas outside of brackets and quotes.

    >>> split_methods("ridge, lambdamart(trees=100, leaves=15), lightgbm")
    ['ridge', 'lambdamart(trees=100, leaves=15)', 'lightgbm']
    """
    found, depth, quote, start, at = [], 0, "", 0, 0
    while at < len(text):
        letter = text[at]
        if quote:
            at += letter == "\\"  # what it escapes is skipped too
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _OPENING + _CLOSING:
            depth += 1 if letter in _OPENING else -1
        elif letter == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
        at += 1
    if depth or quote:
        raise DataError(f"{text!r}: {'a quote' if quote else 'a bracket'} has no counterpart; {EXAMPLE}")
    found.append(text[start:].strip())
    if not all(found):
        raise DataError(f"{text!r} has nothing where a method should be; write methods with one comma between any two")
    return found


def find_contender(text: str) -> Contender:
    """The contender that ``text`` writes: ``[label=]name[(setting=value, ...)]``, the name also ``package.module:Class``.

    >>> find_contender("small=lambdamart(leaves=7)")
    LambdaMART(leaves=7)
    """
    method = parse_method(text)
    if ":" in method.name:
        found = imported(EntryPoint(method.name, method.name, ""), FOUND)
        if not isinstance(found, type):
            raise DataError(f"{method.name} is {found!r}, not a class; give a Contender, a ranker or a scikit-learn estimator")
        return _made(found, method)
    for registry in (RANKERS, CONTENDERS):
        if method.name in registry:
            return _made(registry[method.name], method)
    raise CONTENDERS.unknown(method.name, [*RANKERS, *CONTENDERS], ", and classes written package.module:Class")


def as_contender(value: Any) -> Contender:
    """``value`` itself where it is a contender; else what its text writes, or the ranker or scikit-learn estimator as it is set.

    Of a ranker the settings that differ from the defaults are fixed; tuning may choose the others.

    >>> from exactrank import LambdaMART
    >>> as_contender(LambdaMART(leaves=7)).name
    'lambdamart(leaves=7)'
    """
    if isinstance(value, Contender):
        return value
    if isinstance(value, str):
        return find_contender(value)
    kind, changed = value if isinstance(value, type) else type(value), {}
    if kind is not value:
        if not (hasattr(value, "fit") and hasattr(value, "get_params")):
            raise DataError(f"{value!r} cannot be compared; give the name of a method, a ranker, a Contender or a scikit-learn estimator")
        for name, own in value.get_params(deep=False).items():
            default = inspect.signature(kind).parameters[name].default
            if own is not default and (type(own), repr(own)) != (type(default), repr(default)):
                changed[name] = own
    return _made(kind, Method(kind.name if issubclass(kind, Ranker) else kind.__name__, changed))


def _made(kind: type, method: Method) -> Contender:
    """The contender of the class ``kind``, which may be anybody's and raise anything."""
    try:
        parameters = inspect.signature(kind).parameters
        known = [name for name in parameters if name != "name"]
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())  # its constructor knows
        for name in () if takes_any else (name for name in method.settings if name not in known):
            told = f"{did_you_mean(name, known)}; it has {', '.join(known) or 'none'}"
            raise DataError(f"{method}: {method.name} has no setting {name!r}{told}")
        if issubclass(kind, Contender):
            made: Contender = kind(**({"name": method.title} if "name" in parameters else {}), **method.settings)
            if method.label not in ("", made.name):
                raise DataError(f"{method}: {kind.__name__} has a name of its own, {made.name!r}; leave the label out")
            return made
        if issubclass(kind, Ranker):
            return RankerContender(method.title, kind, method.settings)
        if not callable(getattr(kind, "fit", None)):
            raise DataError(f"{method.name}: {kind.__name__} has no fit; give a Contender, a ranker or a scikit-learn estimator")
        return EstimatorContender(method.title, kind, method.settings)
    except ExactRankError:
        raise
    except Exception as error:
        raise DataError(f"{method}: {kind.__name__} cannot be made a contender ({reason_of(error)})") from error
