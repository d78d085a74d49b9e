"""`xr.export`: a trained model in the format of a serving engine or another language."""

from typing import Any

from exactrank.arguments import check_kind
from exactrank.errors import SettingError
from exactrank.export import TARGETS
from exactrank.export.target import Export, Target
from exactrank.rankers.base import Ranker
from exactrank.scorers.base import Scorer
from exactrank.scorers.model import Model


def export(model: Model | Ranker | Scorer, target: str | Target, **settings: Any) -> Export:
    """``model``, or the model of a fitted ranker, in the format of ``target``; ``settings`` are those of the target."""
    if isinstance(target, Target) and settings:
        raise SettingError(f"the target {target.name} already exists; give its settings ({', '.join(settings)}) when you create it")
    to = TARGETS[target](**settings) if isinstance(target, str) else target
    check_kind("target", to, Target, f"one of {', '.join(TARGETS)}, or a Target")
    trained = getattr(model, "model_", model)
    check_kind("model", trained, (Model, Scorer), "what xr.load returns, or a ranker after fit")
    return to.export(trained if isinstance(trained, Model) else Model(trained))
