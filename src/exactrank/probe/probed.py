"""What probes of a model share: the model itself, its measure, and data as its scorer reads it."""

from dataclasses import replace
from typing import Any

from exactrank.data.alignment import aligned
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.goal import parse_goal
from exactrank.measures.parse import parse_measure
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import filled
from exactrank.scorers.model import Model
from exactrank.scorers.network import Network


def model_of(given: Any) -> Model:
    """A model, or that of a ranker after ``fit``."""
    model = getattr(given, "model_", given)
    if not isinstance(model, Model):
        raise IncompatibleError(f"a {type(given).__name__} is not a model; give what xr.load returns, or a ranker after fit")
    return model


def measure_of(model: Model, measure: str | Measure | None) -> Measure:
    """``measure``, or the one that the model was trained on without its constraints, once it has exact steps."""
    if measure is None and model.measure is None:
        raise IncompatibleError(
            "the model does not say what measure it was trained on; name one, e.g. measure='nDCG@10' (--measure nDCG@10)"
        )
    parsed = parse_goal(str(model.measure)).measure if measure is None else parse_measure(measure)
    if parsed.ties == "docid":
        raise IncompatibleError(
            f"{parsed!r} compares scores in single precision, where ties have no exact place; name a measure with ties='input' (--measure)"
        )
    return parsed


def rows_for(scorer: Linear | Network, data: RankingData) -> RankingData:
    """``data`` with the features in the order of the scorer, differences from the same offset, and its values for missing ones."""
    rows = (aligned(data, scorer.feature_names, levels=scorer.levels) if scorer.feature_names else data).relative_to(scorer.offset)
    X = filled(rows.X, scorer.fill, rows.offset)
    return rows if X is rows.X else replace(rows, X=X)
