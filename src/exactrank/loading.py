"""Load models and fusions from files, recognized by their content.

A file of exactrank is JSON that names its own format, and is recognized first. Its reader is in `OWN_FORMATS`, and no other is imported.
Files of other libraries (`exactrank.models.formats`) are recognized by their first bytes or their fields. This module stands above all that
can be loaded, so that none of it needs to know the rest.
"""

import os
from typing import TypeVar, overload

from exactrank._support.files import read_small_file
from exactrank._support.registry import Registry
from exactrank.errors import DataError, IncompatibleError
from exactrank.models.formats import READERS
from exactrank.models.formats.content import Content, Loaded, Reader

MOST = 1 << 30  #: bytes of a model file
#: Readers of our own files, by the format that a file names.
OWN_FORMATS: Registry[Reader] = Registry("format", {
    "exactrank-model": "exactrank.models.formats.own:MODEL",
    "exactrank-fusion": "exactrank.fusion.fusion_file:READER",
})  # fmt: skip
LoadedT = TypeVar("LoadedT", bound=Loaded)


@overload
def load(path: str | os.PathLike[str], n_features: int | None = None, module: object = None) -> Loaded: ...
@overload
def load(path: str | os.PathLike[str], n_features: int | None = None, module: object = None, *, kind: type[LoadedT]) -> LoadedT: ...
def load(path: str | os.PathLike[str], n_features: int | None = None, module: object = None, *, kind: type[Loaded] | None = None) -> Loaded:
    """Read a model of exactrank (also as ONNX), of LightGBM, XGBoost, CatBoost or RankLib as they save it, or weights; or a fusion.

    Weights are ``{"bm25": 0.7, ...}``, ``{"weights": ...}``, to which ``"missing": "zero"`` may be added, or ``[0.7, ...]``, which is
    matched by position. ``n_features`` is the number of features in the data: RankLib's files do not say, and without it the last feature
    that the model uses is taken to be the last there is. The file of a fusion is read as a [`Fusion`][exactrank.Fusion]; with
    ``kind=er.Model`` or ``kind=er.Fusion`` the other is an error, and type checkers know what is returned. Nothing in a file is ever
    executed: a model that [`TorchRanker`][exactrank.TorchRanker] trained of a module of your own needs ``module``, that module or the
    function that makes it; where a model has several, a mapping from the names in the file to them.
    """
    content = Content(bytes(read_small_file(path, MOST)), str(path), n_features, module)
    try:
        loaded = _reader_of(content).read(content)
    except DataError as error:
        message = str(error)
        raise DataError(message if message.startswith(content.where) else f"{content.where}: {message}") from None
    if kind is not None and not isinstance(loaded, kind):
        what = f"is a {type(loaded).__name__.lower()}, not a {kind.__name__.lower()}"
        raise IncompatibleError(f"{path} {what}; exactrank predict takes models, exactrank fuse apply takes fusions")
    return loaded


def _reader_of(content: Content) -> Reader:
    name = content.own_format
    if name is not None and name in OWN_FORMATS:
        return OWN_FORMATS[name]
    return next(reader for reader in READERS.values() if reader.recognizes(content))
