"""Files of exactrank itself, and weights trained elsewhere: ``{"bm25": 0.7}``, the same under ``"weights"``, or a list."""

from dataclasses import replace

from exactrank.models.deep import with_modules
from exactrank.models.formats.content import Content, Reader
from exactrank.models.linear import Linear
from exactrank.models.model import Model


def _weights(content: Content) -> Model:
    has_key = isinstance(content.record.get("weights"), dict | list)
    return Model(Linear.from_record(content.record if has_key else {"weights": content.json}, content.where))


def _model(content: Content) -> Model:
    model = Model.from_record(content.record, content.where)
    return replace(model, scorer=with_modules(model.scorer, content.module))


MODEL = Reader(lambda content: content.own_format is not None, _model)
WEIGHTS = Reader(lambda content: True, _weights)
