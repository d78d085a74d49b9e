"""Files of exactrank itself, and weights trained elsewhere: ``{"bm25": 0.7}``, the same under ``"weights"``, or a list."""

from exactrank.imports.content import Content, Reader
from exactrank.scorers.linear import Linear
from exactrank.scorers.model import Model


def _weights(content: Content) -> Model:
    beside = isinstance(content.record.get("weights"), dict | list)
    return Model(Linear.from_record(content.record if beside else {"weights": content.json}, content.where))


MODEL = Reader(
    lambda content: isinstance(content.record.get("format"), str), lambda content: Model.from_record(content.record, content.where)
)
WEIGHTS = Reader(lambda content: True, _weights)
