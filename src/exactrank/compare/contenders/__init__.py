"""Contenders by name: rankers of this library, its peers, those of other packages, and classes by their path; and estimators as objects.

A contender is one file and one line in `CONTENDERS`, or, in another package, an entry point of the group ``exactrank.contenders``.
`exactrank.rankers.notation` says how methods are written.
"""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

from sklearn.base import clone

from exactrank._support.arguments import checked_list
from exactrank._support.registry import load_entry_point
from exactrank._support.text import did_you_mean, reason_of
from exactrank.compare import CONTENDERS
from exactrank.compare.contender import Contender
from exactrank.compare.contenders.estimator import EstimatorContender
from exactrank.compare.contenders.ranker import RankerContender
from exactrank.errors import DataError, ExactRankError
from exactrank.models.estimators.adapter import is_estimator, missing_method
from exactrank.models.estimators.naming import name_of
from exactrank.rankers import RANKERS
from exactrank.rankers.base import Ranker
from exactrank.rankers.notation import Method, parse_method

FOUND = "write package.module:Class, of a module that Python finds: of a package that is installed, or with its folder in PYTHONPATH"


def find_contender(text: str) -> Contender:
    """The contender that ``text`` writes: ``[label=]name[(setting=value, ...)]``, the name also ``package.module:Class``.

    >>> find_contender("small=lambdamart(leaves=7)")
    LambdaMART(leaves=7)
    """
    method = parse_method(text)
    if ":" in method.name:
        found = load_entry_point(EntryPoint(method.name, method.name, ""), FOUND)
        if not isinstance(found, type):
            raise DataError(f"{method.name} is {found!r}, not a class; give a Contender, a ranker or an estimator with fit and predict")
        return _made(found, method)
    for registry in (RANKERS, CONTENDERS):
        if method.name in registry:
            return _made(registry[method.name], method)
    raise CONTENDERS.unknown(method.name, [*RANKERS, *CONTENDERS], ", and classes written package.module:Class")


def as_contender(value: Any) -> Contender:
    """``value`` itself where it is a contender; else what its text writes, or the ranker or estimator as it is set.

    Of a ranker the settings that differ from the defaults are fixed; tuning may choose the others.

    >>> from exactrank import LambdaMART
    >>> as_contender(LambdaMART(leaves=7)).name
    'lambdamart(leaves=7)'
    >>> from lightgbm import LGBMRanker
    >>> as_contender(LGBMRanker(num_leaves=7, verbose=-1)).name
    'LGBMRanker(num_leaves=7)'
    """
    if isinstance(value, Contender):
        return value
    if isinstance(value, str):
        return find_contender(value)
    if isinstance(value, type):
        return _made(value, Method(value.name if issubclass(value, Ranker) else value.__name__))
    if isinstance(value, Ranker):
        kind, changed = type(value), {}
        for name, own in value.get_params(deep=False).items():
            default = inspect.signature(kind).parameters[name].default
            if own is not default and (type(own), repr(own)) != (type(default), repr(default)):
                changed[name] = own
        return _made(kind, Method(kind.name, changed))
    if not is_estimator(value):
        raise DataError(f"{value!r} cannot be compared; give the name of a method, a ranker, a Contender, or what has fit and predict")
    return EstimatorContender(name_of(value), clone(value, safe=False))


def contenders_of(values: Sequence[Any]) -> tuple[Contender, ...]:
    """Contenders of different names; estimators whose names would be the same are numbered.

    >>> from sklearn.linear_model import Ridge
    >>> [each.name for each in contenders_of(["ridge", Ridge(), Ridge()])]
    ['ridge', 'Ridge', 'Ridge 2']
    """
    found: dict[str, Contender] = {}
    for contender in map(as_contender, checked_list("methods", values, "a list of methods, e.g. ['lambdamart', 'ridge']")):
        name, number = contender.name, 1
        while name in found:
            if not isinstance(contender, EstimatorContender):
                raise DataError(f"two methods are called {name!r}; give one another name, e.g. 'other={name}(...)'")
            number += 1
            name = f"{contender.name} {number}"
        found[name] = replace(contender, name=name) if isinstance(contender, EstimatorContender) else contender
    return tuple(found.values())


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
            kind(**method.settings).check_values()
            return RankerContender(method.title, kind, method.settings)
        lacking = missing_method(kind)
        if lacking is not None:
            given = f"{method.name}: {kind.__name__} has no {lacking}"
            raise DataError(f"{given}; give a Contender, a ranker or an estimator with fit and predict")
        return EstimatorContender(method.title, kind(**method.settings))
    except ExactRankError:
        raise
    except Exception as error:
        raise DataError(f"{method}: {kind.__name__} cannot be made a contender ({reason_of(error)})") from error
