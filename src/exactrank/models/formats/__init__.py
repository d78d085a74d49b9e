"""Formats of model files: ours and those of other libraries, one file per format, recognized by content; `exactrank.loading` reads them.

A library is one file with a `Reader` and one line in `READERS`, before ``model`` and ``weights``, which take any JSON.
"""

from exactrank._support.registry import Registry
from exactrank.models.formats.content import Reader

READERS: Registry[Reader] = Registry("kind of model file", {
    "onnx": "exactrank.models.formats.onnx:READER",
    "lightgbm": "exactrank.models.formats.lightgbm:READER",
    "ranklib": "exactrank.models.formats.ranklib:READER",
    "xgboost": "exactrank.models.formats.xgboost:READER",
    "catboost": "exactrank.models.formats.catboost:READER",
    "model": "exactrank.models.formats.own:MODEL",
    "weights": "exactrank.models.formats.own:WEIGHTS",
})  # fmt: skip
