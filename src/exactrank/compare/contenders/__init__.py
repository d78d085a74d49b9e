"""Contenders by name: rankers of this library, its peers, those of other packages, and classes by their path; and estimators as objects.

A contender is one file and one line in `CONTENDERS`, or, in another package, an entry point of the group ``exactrank.contenders``.
`exactrank.rankers.notation` says how methods are written.
"""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint

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

CLASS_PATH_REMEDY = (
    "write package.module:Class, of a module that Python finds: of a package that is installed, or with its folder in PYTHONPATH"
)


def find_contender(text: str) -> Contender:
    """Return the contender written as ``[label=]name[(setting=value, ...)]``; the name may also be ``package.module:Class``.

    >>> find_contender("small=lambdamart(leaves=7)")
    LambdaMART(leaves=7)
    """
    method = parse_method(text)
    if ":" in method.name:
        kind = load_entry_point(EntryPoint(method.name, method.name, ""), CLASS_PATH_REMEDY)
        if not isinstance(kind, type):
            raise DataError(f"{method.name} is {kind!r}, not a class; give a Contender, a ranker or an estimator with fit and predict")
        return _make_contender(kind, method)
    for registry in (RANKERS, CONTENDERS):
        if method.name in registry:
            return _make_contender(registry[method.name], method)
    raise CONTENDERS.unknown(method.name, [*RANKERS, *CONTENDERS], ", and classes written package.module:Class")


def as_contender(value: object) -> Contender:
    """Return the contender for a text, a class, a ranker or an estimator; a `Contender` is passed through.

    The settings of a ranker that differ from the defaults are fixed; tuning may choose the others.

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
        return _make_contender(value, Method(value.name if issubclass(value, Ranker) else value.__name__))
    if isinstance(value, Ranker):
        kind, changed = type(value), {}
        for name, setting in value.get_params(deep=False).items():
            default = inspect.signature(kind).parameters[name].default
            if setting is not default and (type(setting), repr(setting)) != (type(default), repr(default)):
                changed[name] = setting
        return _make_contender(kind, Method(kind.name, changed))
    if not is_estimator(value):
        raise DataError(
            f"{value!r} cannot be compared; give the name of a method, a ranker, a Contender, or an object with fit and predict"
        )
    return EstimatorContender(name_of(value), clone(value, safe=False))


def contenders_of(values: Sequence[object]) -> tuple[Contender, ...]:
    """Return contenders with distinct names; estimators of the same name are numbered.

    >>> from sklearn.linear_model import Ridge
    >>> [contender.name for contender in contenders_of(["ridge", Ridge(), Ridge()])]
    ['ridge', 'Ridge', 'Ridge 2']
    """
    contenders: dict[str, Contender] = {}
    for contender in map(as_contender, checked_list("methods", values, "a list of methods, e.g. ['lambdamart', 'ridge']")):
        name, number = contender.name, 1
        while name in contenders:
            if not isinstance(contender, EstimatorContender):
                raise DataError(f"two methods are called {name!r}; give one another name, e.g. 'other={name}(...)'")
            number += 1
            name = f"{contender.name} {number}"
        contenders[name] = replace(contender, name=name) if isinstance(contender, EstimatorContender) else contender
    return tuple(contenders.values())


def _make_contender(kind: type, method: Method) -> Contender:
    """Make a contender of the class ``kind``, which others may have written and which may raise any error."""
    try:
        parameters = inspect.signature(kind).parameters
        names = [name for name in parameters if name != "name"]
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):  # otherwise its constructor checks
            for name in (name for name in method.settings if name not in names):
                remedy = f"{did_you_mean(name, names)}; it has {', '.join(names) or 'none'}"
                raise DataError(f"{method}: {method.name} has no setting {name!r}{remedy}")
        if issubclass(kind, Contender):
            contender: Contender = kind(**({"name": method.title} if "name" in parameters else {}), **method.settings)
            if method.label not in ("", contender.name):
                raise DataError(f"{method}: {kind.__name__} has a name of its own, {contender.name!r}; leave the label out")
            return contender
        if issubclass(kind, Ranker):
            kind(**method.settings).check_values()
            return RankerContender(method.title, kind, method.settings)
        lacking = missing_method(kind)
        if lacking is not None:
            raise DataError(
                f"{method.name}: {kind.__name__} has no {lacking}; give a Contender, a ranker or an estimator with fit and predict"
            )
        return EstimatorContender(method.title, kind(**method.settings))
    except ExactRankError:
        raise
    except Exception as error:
        raise DataError(f"{method}: {kind.__name__} cannot be made a contender ({reason_of(error)})") from error
