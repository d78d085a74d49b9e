"""Which lambda function a setting means, for networks and for trees alike."""

from dataclasses import replace
from typing import Any, Literal

from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.families import Discounted
from exactrank.measures.parse import parse_measure
from exactrank.objectives.finite_difference import FiniteDifference
from exactrank.objectives.lambdas import Lambdas
from exactrank.objectives.own_lambdas import DocumentForces, PairForce, PairForces
from exactrank.objectives.score_space import Objective

LambdaName = Literal["logistic", "step", "spring", "finite-difference"]
LambdaChoice = LambdaName | PairForce | PairForces | DocumentForces


def lambda_function(chosen: Any, weighing: Measure, margin: float, limits: dict[str, Any]) -> Objective:
    """What ``chosen`` means, with pairs weighed by ``weighing`` and limited as `Lambdas` takes it."""
    if chosen in ("logistic", "step", "spring"):
        return Lambdas(weighing, chosen, margin, **limits)
    given = [name for name, value in limits.items() if value is not None]
    if given:
        raise IncompatibleError(f"{' and '.join(given)} limit pairs, which lambdas={chosen!r} chooses itself; leave them out")
    if chosen == "finite-difference":
        return FiniteDifference(weighing, margin)
    if isinstance(chosen, PairForces | DocumentForces):
        return chosen
    if callable(chosen):
        return PairForces(chosen, weighing)
    raise DataError(f'lambdas={chosen!r} is not one of "logistic", "step", "spring", "finite-difference", nor a function')


def weighing_measure(measure: Measure, weighted_by: str | Measure | None) -> Measure:
    """The measure that weighs pairs: the given one, else the trained one over the whole list, where it then still prefers ranks."""
    if weighted_by is not None:
        return parse_measure(weighted_by)
    flat = isinstance(measure, Discounted) and len(set(measure.discounts(3).tolist())) == 1
    return measure if flat else replace(measure, k=None)
