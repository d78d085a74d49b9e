"""Measures from text: ``nDCG@10``, ``AP(rel=2)``, ``nDCG(dcg='exp-log2')@10``, ``ERR@20``; names in any case.

The notation is that of ir_measures, with one difference: nDCG's default gain is 2^grade - 1, as in LightGBM, XGBoost,
RankLib and the LETOR scripts. Write ``nDCG(dcg='log2')`` for linear gain. Presets follow the conventions of other tools and give
their numbers:

| preset    | nDCG                                                          | nothing relevant | ties     |
|-----------|---------------------------------------------------------------|------------------|----------|
| letor     | 2^y - 1; discount 1 at ranks 1 and 2; 0 if fewer than k documents | 0            | input    |
| trec_eval | linear                                                        | 0                | docid    |
| lightgbm  | 2^y - 1                                                       | 1                | input    |
| xgboost   | 2^y - 1                                                       | 1                | input    |
| sklearn   | linear                                                        | 0                | expected |

A preset knows only the measures that its tool has. XGBoost cuts a measure without ``@k`` at its default of 32 pairs per
sample. ``tests/measures/test_agreement.py`` compares each preset with the installed tool.

Names exactly as trec_eval writes them are its measures with its conventions, even without a preset: ``ndcg``, ``ndcg_cut_10``,
``map``, ``map_cut_10``, ``recip_rank``, ``P_5``, ``recall_100``, ``success_1``, ``bpref``.

``revenue@10`` is the total of the column ``revenue`` over the first 10 ranks (`graded.py`).
"""

import ast
import re
import reprlib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from exactrank._support.numerals import check_literals, whole_number
from exactrank.data.duplicates import first_duplicate
from exactrank.errors import MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.graded import Total, names_a_column

SETTINGS = 100_000  #: characters of the settings of a measure or a method: a table of gains may be long
_TREC = re.compile(r"(?P<whole>ndcg|map|recip_rank|bpref)|(?P<cut>ndcg_cut|map_cut|P|recall|success)[_.](?P<k>[0-9]+)", re.ASCII)
_TREC_NAMES = {"ndcg": "nDCG", "ndcg_cut": "nDCG", "map": "AP", "map_cut": "AP", "recip_rank": "RR", "recall": "R", "success": "Success"}
_FORM = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<inside>.*)\))?\s*(?:@\s*(?P<k>[^@\s]+))?\s*", re.DOTALL)

#: Between a measure and constraints (`goal.py`).
SUBJECT_TO = re.compile(r"\s+subject\s+to\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Preset:
    """Settings for all measures of a tool, and for single measures; ``complete`` as in `evaluate`."""

    common: Mapping[str, object]
    measures: Mapping[str, Mapping[str, object]]
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


def parse_measure(text: str | Measure, preset: str | None = None) -> Measure:
    """Return the measure that ``text`` names; ``preset`` supplies the settings that ``text`` lacks.

    >>> parse_measure("ndcg@10") == parse_measure("nDCG(dcg='exp-log2')@10")
    True
    >>> parse_measure("nDCG@10", preset="trec_eval")
    nDCG(gain='linear', discount='log2', short='pad', empty=0, ties='docid')@10
    """
    if isinstance(text, Measure):
        return text
    if isinstance(text, str) and SUBJECT_TO.search(text):
        raise MeasureError(f"{text!r} has constraints, which DirectRank and er.fuse take; give one measure here, without 'subject to'")
    text, preset = _as_trec_eval(text, preset)
    form = _FORM.fullmatch(text) if isinstance(text, str) else None
    if form is None:
        raise MeasureError(f"{reprlib.repr(text)} is not a measure; write e.g. nDCG@10 or AP(rel=2)")
    name, inside, k = form["name"], form["inside"] or "", form["k"]
    if k and not form["inside"] and names_a_column(name):
        name, inside = Total.name, f"column={name!r}"
    if name not in Measure.registry:
        hint = f"; a column of the data is written Total(column={name!r})@{k}" if k else ""
        raise Measure.registry.unknown(name, known_measures(), hint)
    kind = Measure.registry[name]
    try:
        stated = kind.from_notation(settings_in(inside))
    except ValueError as error:
        raise MeasureError(f"{text!r}: cannot read the settings ({error}); write e.g. AP(rel=2) or nDCG(dcg='exp-log2')@10") from None
    names = [field.name for field in fields(kind)]
    for setting in stated:
        if setting not in names:
            raise MeasureError(f"{text!r}: {kind.name} has no setting {setting!r}; it has {', '.join(names)}")
    implied = next((settings for alias, settings in kind.aliases.items() if alias.lower() == name.lower()), {})
    settings: dict[str, Any] = {**implied, **stated}
    if preset is not None:
        conventions = find_preset(preset)
        if kind.name not in conventions.measures:
            raise MeasureError(f"{preset} has no {kind.name} to reproduce; preset {preset!r} covers {', '.join(conventions.measures)}")
        settings = {**conventions.common, **conventions.measures[kind.name], **settings}
    if k is not None:
        if "k" in stated:
            raise MeasureError(f"{text!r}: the cutoff is given twice, as k={stated['k']!r} and as @{k}; leave one out")
        try:
            settings["k"] = whole_number(k)
        except ValueError:
            raise MeasureError(f"{text!r}: the cutoff {k!r} is not a whole number; write e.g. nDCG@10") from None
    return kind(**settings)


def listed_measures(measures: str | Measure | Iterable[str | Measure]) -> list[str | Measure]:
    """Return one or several measures as a list; `parse_measure` refuses elements that are not measures."""
    several = isinstance(measures, Iterable) and not isinstance(measures, str | type)
    listed = list(measures) if several else [measures]  # type: ignore[arg-type]  # as was asked just now
    if not listed:
        raise MeasureError("name at least one measure, e.g. nDCG@10")
    return listed  # type: ignore[return-value]


def _as_trec_eval(text: str, preset: str | None) -> tuple[str, str | None]:
    """Return a name of trec_eval in our notation and with its preset; anything else is returned unchanged.

    >>> _as_trec_eval("ndcg_cut_10", None), _as_trec_eval("nDCG@10", None)
    (('nDCG@10', 'trec_eval'), ('nDCG@10', None))
    """
    form = _TREC.fullmatch(text) if isinstance(text, str) else None
    if form is None or (preset not in (None, "trec_eval") and form["whole"]):  # other tools also have a measure map
        return text, preset
    if preset not in (None, "trec_eval"):
        raise MeasureError(f"{text!r} is a measure of trec_eval, not of {preset}; leave the preset out, or write e.g. nDCG@10")
    name = form["whole"] or form["cut"]
    return _TREC_NAMES.get(name, name) + (f"@{form['k']}" if form["k"] else ""), "trec_eval"


def settings_in(inside: str) -> dict[str, Any]:
    """Return the settings between the brackets of a call, as Python literals by name; raise a `ValueError` for anything else.

    Words need no quotes.

    >>> settings_in("rel=2, empty='skip', norm=cutoff, dcg=exp-log2")
    {'rel': 2, 'empty': 'skip', 'norm': 'cutoff', 'dcg': 'exp-log2'}
    """
    if len(inside) > SETTINGS:
        raise ValueError(f"they have {len(inside):,} characters, more than {SETTINGS:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # text that Python's parser warns of, such as 1if, is not a literal
            call = ast.parse(source := f"f({inside})", mode="eval").body
        check_literals(call, source)
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            raise ValueError("settings are written name=value")
    except SyntaxError as error:
        raise ValueError(error.msg) from None
    except (RecursionError, MemoryError):  # of Python's parser, whose stack is small
        raise ValueError("they are nested too deeply") from None
    twice = first_duplicate(str(word.arg) for word in call.keywords)
    if twice is not None:
        raise ValueError(f"{twice} is given twice")
    settings = {}
    for word in call.keywords:
        try:
            settings[str(word.arg)] = ast.literal_eval(_Words().visit(word.value))
        except (ValueError, TypeError, RecursionError, MemoryError):
            raise ValueError(f"the value of {word.arg} is not a number, a word, a list or a table") from None
    return settings


class _Words(ast.NodeTransformer):
    """Turn words without quotes into text, also words with hyphens."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(node.id)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Sub) and all(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (left, right)):
            return ast.Constant(f"{left.value}-{right.value}")
        return node


def known_measures() -> list[str]:
    """Return the names of all measures, including those of other packages."""
    classes = Measure.registry.builtin
    return sorted({getattr(classes.get(name), "name", name) for name in Measure.registry}, key=str.lower)


def find_preset(name: str) -> Preset:
    """Return the preset called ``name``."""
    if name not in PRESETS:
        raise MeasureError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]


def default_measures(name: str | None) -> list[str]:
    """Return the default measures of an evaluation: nDCG@10, AP and RR, or those of them that the preset has."""
    measures = {"nDCG": "nDCG@10", "AP": "AP", "RR": "RR"}
    return [text for kind, text in measures.items() if name is None or kind in find_preset(name).measures]
