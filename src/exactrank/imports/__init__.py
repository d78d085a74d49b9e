"""Models that were trained elsewhere: one file per library, each recognised by its content; `exactrank.loading` reads them all.

A library is one file with a `Reader` and one line in `READERS`, before ``model`` and ``weights``, which take any JSON.
"""

from exactrank.imports.content import Reader
from exactrank.registry import Registry

READERS: Registry[Reader] = Registry("kind of model file", {
    "onnx": "exactrank.imports.onnx:READER",
    "lightgbm": "exactrank.imports.lightgbm:READER",
    "ranklib": "exactrank.imports.ranklib:READER",
    "xgboost": "exactrank.imports.xgboost:READER",
    "catboost": "exactrank.imports.catboost:READER",
    "model": "exactrank.imports.own:MODEL",
    "weights": "exactrank.imports.own:WEIGHTS",
})  # fmt: skip
