"""Contenders by name: rankers of this library, its peers, those of other packages, and classes by their path.

A contender is one file and one line in `CONTENDERS`, or, in another package, an entry point of the group ``exactrank.contenders``.
"""

import inspect
from importlib.metadata import EntryPoint
from typing import Any

from exactrank.compare.contender import Contender
from exactrank.compare.contenders.estimator import EstimatorContender
from exactrank.compare.contenders.notation import Method, parse_method
from exactrank.compare.contenders.notation import split_methods as split_methods
from exactrank.compare.contenders.ranker import RankerContender
from exactrank.errors import DataError, ExactRankError
from exactrank.rankers import RANKERS
from exactrank.rankers.base import Ranker
from exactrank.reasons import reason_of
from exactrank.registry import Registry, imported
from exactrank.text import did_you_mean

#: Where each peer is, by its name in the notation; imported when asked for.
CONTENDERS: Registry[type] = Registry("method", {
    "lightgbm": "exactrank.compare.contenders.lightgbm:LightGBM",
    "xgboost": "exactrank.compare.contenders.xgboost:XGBoost",
    "catboost": "exactrank.compare.contenders.catboost:CatBoost",
}, "exactrank.contenders", lambda value: isinstance(value, type))  # fmt: skip
FOUND = "write package.module:Class, of a module that Python finds: of a package that is installed, or with its folder in PYTHONPATH"


def find_contender(text: str) -> Contender:
    """The contender that ``text`` writes: ``[label=]name[(setting=value, ...)]``, the name also ``package.module:Class``.

    >>> find_contender("small=lambdamart(leaves=7)")
    LambdaMART(leaves=7)
    """
    method = parse_method(text)
    return _made(_class_of(method.name), method)


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
    if isinstance(value, type):
        return _made(value, Method(_name_of(value)))
    if hasattr(value, "fit") and hasattr(value, "get_params"):
        return _made(type(value), Method(_name_of(type(value)), _changed(value)))
    raise DataError(f"{value!r} cannot be compared; give the name of a method, a ranker, a Contender or a scikit-learn estimator")


def _name_of(kind: type) -> str:
    return kind.name if issubclass(kind, Ranker) else kind.__name__


def _changed(estimator: Any) -> dict[str, Any]:
    """The settings that are not those of the constructor."""
    defaults = inspect.signature(type(estimator)).parameters
    return {name: value for name, value in estimator.get_params(deep=False).items() if not _same(value, defaults[name].default)}


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and repr(one) == repr(other))


def _class_of(name: str) -> type:
    if ":" in name:
        found = imported(EntryPoint(name, name, ""), FOUND)
        if not isinstance(found, type):
            raise DataError(f"{name} is {found!r}, not a class; give a Contender, a ranker or a scikit-learn estimator")
        return found
    for registry in (RANKERS, CONTENDERS):
        if name in registry:
            return registry[name]
    raise CONTENDERS.unknown(name, [*RANKERS, *CONTENDERS], ", and classes written package.module:Class")


def _made(kind: type, method: Method) -> Contender:
    """The contender of the class ``kind``, which may be anybody's and raise anything."""
    try:
        return _contender(kind, method)
    except ExactRankError:
        raise
    except Exception as error:
        raise DataError(f"{method}: {kind.__name__} cannot be made a contender ({reason_of(error)})") from error


def _contender(kind: type, method: Method) -> Contender:
    _check_settings(kind, method)
    if issubclass(kind, Contender):
        named = "name" in inspect.signature(kind).parameters
        made: Contender = kind(**({"name": method.title} if named else {}), **method.settings)
        if method.label not in ("", made.name):
            raise DataError(f"{method}: {kind.__name__} has a name of its own, {made.name!r}; leave the label out")
        return made
    if issubclass(kind, Ranker):
        return RankerContender(method.title, kind, method.settings)
    if not callable(getattr(kind, "fit", None)):
        raise DataError(f"{method.name}: {kind.__name__} has no fit; give a Contender, a ranker or a scikit-learn estimator")
    return EstimatorContender(method.title, kind, method.settings)


def _check_settings(kind: type, method: Method) -> None:
    parameters = inspect.signature(kind).parameters.values()
    if any(given.kind is given.VAR_KEYWORD for given in parameters):
        return  # its constructor knows
    known = [given.name for given in parameters if given.name != "name"]
    for name in method.settings:
        if name not in known:
            raise DataError(
                f"{method}: {method.name} has no setting {name!r}{did_you_mean(name, known)}; it has {', '.join(known) or 'none'}"
            )
