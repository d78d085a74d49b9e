"""Shared steps of all probes: get the model, its measure, and the data as its scorer reads them."""

from dataclasses import replace

from exactrank.data.alignment import align_features
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.goal import parse_goal
from exactrank.measures.parse import parse_measure
from exactrank.models.linear import Linear
from exactrank.models.missing import fill_missing
from exactrank.models.model import Model
from exactrank.models.network import Network


def model_of(model_or_ranker: object) -> Model:
    """Return a model, or the model of a fitted ranker."""
    model = getattr(model_or_ranker, "model_", model_or_ranker)
    if not isinstance(model, Model):
        raise IncompatibleError(f"a {type(model_or_ranker).__name__} is not a model; give what er.load returns, or a ranker after fit")
    return model


def measure_of(model: Model, measure: str | Measure | None) -> Measure:
    """Return ``measure``, by default the one the model was trained on without constraints, after checking that its steps are exact."""
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
    """Return ``data`` as the scorer reads it: its order of features, its offset, and its values for missing ones."""
    rows = (align_features(data, scorer.feature_names, levels=scorer.levels) if scorer.feature_names else data).relative_to(scorer.offset)
    X = fill_missing(rows.X, scorer.fill, rows.offset)
    return rows if X is rows.X else replace(rows, X=X)
