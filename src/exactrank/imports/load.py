"""`load`: a model from a file of any known kind, recognised by its content."""

import os
from typing import Any

from exactrank.errors import DataError
from exactrank.files import read_bounded
from exactrank.imports import READERS
from exactrank.imports.content import Content
from exactrank.scorers.model import Model

MOST = 1 << 30  #: bytes of a model file


def load(path: str | os.PathLike[str], n_features: int | None = None, module: Any = None) -> Model | Any:
    """Read a model of exactrank (also as ONNX), of LightGBM, XGBoost, CatBoost or RankLib as they save it, or weights.

    Weights are ``{"bm25": 0.7, ...}``, ``{"weights": ...}``, to which ``"missing": "zero"`` may be added, or ``[0.7, ...]``, which is
    matched by position. ``n_features`` is the number of features in the data: RankLib's files do not say, and without it the last feature
    that the model uses is taken to be the last there is. The file of a fusion is read as a [`Fusion`][exactrank.Fusion]. Nothing in a file
    is ever executed: a model that [`TorchRanker`][exactrank.TorchRanker] trained of a module of your own needs ``module``, that module or
    the function that makes it; where a model has several, a mapping from the names in the file to them.
    """
    content = Content(bytes(read_bounded(path, MOST)), str(path), n_features, module)
    reader = next(reader for reader in READERS.values() if reader.recognises(content))
    try:
        return reader.read(content)
    except DataError as error:
        told = str(error)
        raise DataError(told if told.startswith(content.where) else f"{content.where}: {told}") from None
