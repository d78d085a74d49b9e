"""Measures from text: ``nDCG@10``, ``AP(rel=2)``, ``nDCG(dcg='exp-log2')@10``, ``ERR@20``; names in any case.

The notation is that of ir_measures, with one difference: nDCG's default gain is 2^grade - 1, as in LightGBM, XGBoost,
RankLib and the LETOR scripts. Write ``nDCG(dcg='log2')`` for linear gain.
"""

import ast
import re
import reprlib
import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from exactrank.data.alignment import first_repeated
from exactrank.errors import MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.presets import preset_settings

SETTINGS = 100_000  #: characters of the settings of a measure or a method: a table of gains may be long
_FORM = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<inside>.*)\))?\s*(?:@\s*(?P<k>[^@\s]+))?\s*", re.DOTALL)


def parse_measure(text: str | Measure, preset: str | None = None) -> Measure:
    """The measure that ``text`` names; ``preset`` supplies the settings that it does not state.

    >>> parse_measure("ndcg@10") == parse_measure("nDCG(dcg='exp-log2')@10")
    True
    >>> parse_measure("nDCG@10", preset="trec_eval")
    nDCG(gain='linear', discount='log2', short='pad', empty=0, ties='docid')@10
    """
    if isinstance(text, Measure):
        return text
    form = _FORM.fullmatch(text) if isinstance(text, str) else None
    if form is None:
        raise MeasureError(f"{reprlib.repr(text)} is not a measure; write e.g. nDCG@10 or AP(rel=2)")
    kind, implied = _named(form["name"])
    stated = _arguments(text, form["inside"] or "", kind)
    settings: dict[str, Any] = {**preset_settings(preset, kind), **implied, **stated}
    if form["k"] is not None:
        settings["k"] = _cutoff(text, form["k"], stated)
    return kind(**settings)


def settings_in(inside: str) -> dict[str, Any]:
    """What stands between the brackets of a call, as Python's literals by name; anything else is a `ValueError`.

    >>> settings_in("rel=2, empty='skip'")
    {'rel': 2, 'empty': 'skip'}
    """
    if len(inside) > SETTINGS:
        raise ValueError(f"they have {len(inside):,} characters, more than {SETTINGS:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python's parser warns of, such as 1if, is no literal
            call = ast.parse(f"f({inside})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            raise ValueError("settings are written name=value")
    except SyntaxError as error:
        raise ValueError(error.msg) from None
    except (RecursionError, MemoryError):  # of Python's parser, whose stack is small
        raise ValueError("they are nested too deeply") from None
    twice = first_repeated(str(word.arg) for word in call.keywords)
    if twice is not None:
        raise ValueError(f"{twice} is given twice")
    return {str(word.arg): _literal(str(word.arg), word.value) for word in call.keywords}


def _literal(name: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise ValueError(f"the value of {name} is not a number, a 'word', a list or a table") from None


def known_measures() -> list[str]:
    """The names of all measures, those of other packages among them."""
    own = Measure.registry.own
    return sorted({getattr(own.get(name), "name", name) for name in Measure.registry}, key=str.lower)


def _named(name: str) -> tuple[type[Measure], Mapping[str, Any]]:
    """The measure called ``name``, and the settings which that name implies."""
    if name not in Measure.registry:
        raise Measure.registry.unknown(name, known_measures())
    kind = Measure.registry[name]
    return kind, next((implied for alias, implied in kind.aliases.items() if alias.lower() == name.lower()), {})


def _cutoff(text: str, k: str, stated: Mapping[str, Any]) -> int:
    if "k" in stated:
        raise MeasureError(f"{text!r}: the cutoff is given twice, as k={stated['k']!r} and as @{k}; leave one out")
    try:
        return int(k)
    except ValueError:
        raise MeasureError(f"{text!r}: the cutoff {k!r} is not a whole number; write e.g. nDCG@10") from None


def _arguments(text: str, inside: str, kind: type[Measure]) -> dict[str, Any]:
    """``rel=2, empty='skip'`` as a dictionary of the measure's fields."""
    try:
        given = kind.from_notation(settings_in(inside))
    except ValueError as error:
        raise MeasureError(f"{text!r}: cannot read the settings ({error}); write e.g. AP(rel=2) or nDCG(dcg='exp-log2')@10") from None
    known = [f.name for f in fields(kind)]
    for name in given:
        if name not in known:
            raise MeasureError(f"{text!r}: {kind.name} has no setting {name!r}; it has {', '.join(known)}")
    return given
