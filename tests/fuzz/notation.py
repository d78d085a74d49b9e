"""Notation: measures and methods as they are written on the command line."""

from pathlib import Path

import numpy as np

import exactrank as er
from exactrank.compare.contenders import find_contender
from exactrank.rankers.notation import parse_method, split_methods
from tests.fuzz.mutations import ODD_WORDS, mutated, one_of, soup
from tests.fuzz.target import Target, require
from tests.fuzz.text import judged

MEASURES = [
    b"nDCG",
    b"AP",
    b"ERR",
    b"RBP",
    b"P",
    b"RR",
    b"Bpref",
    b"AUC",
    b"@10",
    b"@",
    b"(",
    b")",
    b"=",
    b",",
    b"rel=2",
    b"k=",
    b"dcg='log2'",
]
MEASURES += [
    b"empty='skip'",
    b"ties=",
    b"gain=",
    b"-",
    b"**",
    b"[",
    b"]",
    b"{",
    b"lambda: 0",
    b"__import__('os')",
    b"1e9",
    b"10**10",
    *ODD_WORDS,
]
METHODS = [
    b"lambdamart",
    b"ridge",
    b"lightgbm",
    b"directrank",
    b"small=",
    b"(",
    b")",
    b",",
    b"=",
    b"trees=100",
    b"leaves=",
    b"'",
    b"-",
    b"x.y:Z",
]
METHODS += [b"[", b"]", b"name='a'", b"**{}", b"*[]", b"1e9", b"\\", *ODD_WORDS]


def measure_text(rng: np.random.Generator) -> bytes:
    """Marks at random, or a good measure with some changed."""
    good = [b"nDCG@10", b"AP(rel=2)", b"nDCG(dcg='exp-log2')@10", b"ERR(max_grade=4)@20", b"RBP(p=0.8)", b"P(rel=1)@5", b"nDCG(k=5)"]
    return soup(rng, MEASURES, 12) if rng.random() < 0.5 else mutated(rng, one_of(rng, good), MEASURES)


def method_text(rng: np.random.Generator) -> bytes:
    """Marks at random, or good methods with some changed."""
    good = [b"ridge, lambdamart(trees=100, leaves=15)", b"small=lambdamart(leaves=7)", b"xgboost(eta=0.1),ridge", b"a b=ridge"]
    return soup(rng, METHODS, 12) if rng.random() < 0.5 else mutated(rng, one_of(rng, good), METHODS)


def use_measure(path: Path) -> None:
    """Parse, write, parse alike, evaluate."""
    measure = er.parse_measure(path.read_bytes().decode("utf-8", "surrogateescape"))
    require(er.parse_measure(repr(measure)) == measure, "a measure reads back as it is written")
    er.evaluate(judged(), np.arange(judged().n_documents) % 5 * 1.0, [measure])


def use_methods(path: Path) -> None:
    """Split, parse, look up; no class is imported by its path, since that is code that the user trusts."""
    for text in split_methods(path.read_bytes().decode("utf-8", "surrogateescape")):
        method = parse_method(text)
        require(parse_method(str(method)) == method, "a method reads back as it is written")
        if ":" not in method.name:
            find_contender(text)


TARGETS = [Target("measures", ".txt", measure_text, use_measure), Target("methods", ".txt", method_text, use_methods)]
