"""`er.export`: a trained model in the format of a serving engine or another language."""

from typing import Any, Protocol

from exactrank._support.arguments import check_kind
from exactrank.errors import SettingError
from exactrank.models.base import Scorer
from exactrank.models.model import Model
from exactrank.models.targets import TARGETS
from exactrank.models.targets.target import Export, Target


class HoldsModel(Protocol):
    """A ranker after its fit."""

    @property
    def model_(self) -> Model:
        """The model that was trained."""


def export(model: Model | HoldsModel | Scorer, target: str | Target, **settings: Any) -> Export:
    """Return ``model``, or the model of a fitted ranker, in the format of ``target``, which has these ``settings``."""
    if isinstance(target, Target) and settings:
        raise SettingError(f"the target {target.name} already exists; give its settings ({', '.join(settings)}) when you create it")
    to = TARGETS[target](**settings) if isinstance(target, str) else target
    check_kind("target", to, Target, f"one of {', '.join(TARGETS)}, or a Target")
    trained = model.model_ if hasattr(model, "model_") else model
    check_kind("model", trained, (Model, Scorer), "what er.load returns, or a ranker after fit")
    return to.export(trained if isinstance(trained, Model) else Model(trained))
