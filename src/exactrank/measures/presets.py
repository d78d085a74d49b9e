"""The conventions of other tools, so that their numbers come out.

| preset    | nDCG                                                          | nothing relevant | ties     |
|-----------|---------------------------------------------------------------|------------------|----------|
| letor     | 2^y - 1; discount 1 at ranks 1 and 2; 0 if fewer than k documents | 0            | input    |
| trec_eval | linear                                                        | 0                | docid    |
| lightgbm  | 2^y - 1                                                       | 1                | input    |
| xgboost   | 2^y - 1                                                       | 1                | input    |
| sklearn   | linear                                                        | 0                | expected |

A preset knows only the measures that its tool has. XGBoost cuts a measure without ``@k`` at its default of 32 pairs a
sample. ``tests/test_agreement.py`` compares each preset with the installed tool.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exactrank.errors import MeasureError
from exactrank.measures.base import Measure


@dataclass(frozen=True)
class Preset:
    """Settings for every measure of a tool, and those of single ones; ``complete`` as in `evaluate`."""

    common: Mapping[str, Any]
    measures: Mapping[str, Mapping[str, Any]]
    complete: bool = True


PRESETS: Mapping[str, Preset] = {
    "letor": Preset(
        {"empty": 0, "ties": "input"},
        {
            "nDCG": {"gain": "exp2", "discount": "letor", "short": "zero"},
            "MeanNDCG": {"gain": "exp2", "discount": "letor"},
            "AP": {},
            "P": {},
        },
    ),
    "trec_eval": Preset(
        {"empty": 0, "ties": "docid"},
        {"nDCG": {"gain": "linear"}, "AP": {}, "P": {}, "R": {}, "RR": {}, "Success": {}, "Bpref": {}},
        complete=False,
    ),
    "lightgbm": Preset({"empty": 1, "ties": "input"}, {"nDCG": {"gain": "exp2"}, "AP": {"norm": "cutoff"}}),
    "xgboost": Preset(
        {"empty": 1, "ties": "input"},
        {"nDCG": {"gain": "exp2", "k": 32}, "AP": {"norm": "cutoff", "k": 32}, "P": {"empty": 0, "norm": "list", "k": 32}},
    ),
    "sklearn": Preset({"empty": 0, "ties": "expected"}, {"nDCG": {"gain": "linear"}, "DCG": {"gain": "linear"}, "PairwiseCorrect": {}}),
}


def find_preset(name: str) -> Preset:
    """The preset called ``name``."""
    if name not in PRESETS:
        raise MeasureError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]


def preset_settings(name: str | None, kind: type[Measure]) -> dict[str, Any]:
    """The fields of ``kind`` that the preset fixes."""
    if name is None:
        return {}
    preset = find_preset(name)
    if kind.name not in preset.measures:
        raise MeasureError(f"{name} has no {kind.name} to reproduce; preset {name!r} covers {', '.join(preset.measures)}")
    return {**preset.common, **preset.measures[kind.name]}


def default_measures(name: str | None) -> list[str]:
    """What to evaluate by when nothing is asked for: nDCG@10, AP and RR, as far as the preset's tool has them."""
    measures = {"nDCG": "nDCG@10", "AP": "AP", "RR": "RR"}
    return [text for kind, text in measures.items() if name is None or kind in find_preset(name).measures]
