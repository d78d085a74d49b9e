"""Compare rules of selection (`exactrank.learning.training.selection`) by nested cross-validation over training queries.

Test data is never read.

    python benchmarks/choose_selection.py                                  all rankers, all sets, all folds
    python benchmarks/choose_selection.py ridge --sets MQ2008 --folds 0    one ranker, one fold of one set

Sets, folds and tables are those of choose_defaults.py. Every ranker is fitted with its defaults and a fifth of the training queries as
validation data, once with each rule, and evaluated on the fold that was left out. Differences are those to the maximum: the step, the
strength and the start with the best mean. "margin m": all must be better than what is simpler by m standard errors.

With --shaken a second table tells how far noise moves a model: the mean absolute difference of nDCG@10 on a fold between a fit to the
features and one to features that are multiplied by 1 + 2^-22 x, x drawn from -1, 0, 1: about the last bit of single precision.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from choose_defaults import FOLDS, VALIDATED, Fold, Result, Results, Study, by_set, fit_method, folds_of, report, training_sets
from study import parser, select_names, values_of, version
from timing import table

import exactrank as er
from exactrank.compare.contenders import parse_method
from exactrank.learning.training import selection
from exactrank.learning.training.selection import Choice, StepChoice, Verdict

RANKERS = (
    "ridge",
    "listnet",
    "ranknet",
    "lambdarank",
    "smoothrank",
    "directrank(bags=0)",
    "ranksvm",
    "structuredrank",
    "mart(bags=0)",
    "lambdamart(bags=0)",
)
MAXIMUM = "the maximum"
#: What each rule changes in `exactrank.learning.training.selection`; "steps" by what margin steps are chosen, without which there is a
#: window.
RULES: Mapping[str, Mapping[str, float]] = {
    MAXIMUM: {"WINDOW": 1, "MARGIN": 0.0, "SAMPLES": 0},
    "as it is": {},
    "window 1": {"WINDOW": 1},
    "window 5": {"WINDOW": 5},
    **{f"margin {margin}": {"MARGIN": margin, "SAMPLES": 0, "steps": margin} for margin in (0.25, 0.5, 1.0)},
}


def after_by_margin(self: StepChoice[Any], candidate: object, verdict: Verdict, number: int = 0) -> StepChoice[Any]:
    """`StepChoice.after` by the rule of starts."""
    return StepChoice(**vars(Choice.after(self, candidate, verdict, number)))


def by_rule(rule: str) -> ExitStack:
    """The package with that rule."""
    changed = ExitStack()
    for name, value in RULES[rule].items():
        change = (StepChoice, "after", after_by_margin) if name == "steps" else (selection, name, value)
        changed.enter_context(patch.object(*change))
    return changed


def shaken(data: er.RankingData) -> er.RankingData:
    """The data with noise in the last bit of its features."""
    noise = np.random.default_rng(0).integers(-1, 2, data.X.shape)
    return replace(data, X=(data.X * (1 + 2.0**-22 * noise)).astype(np.float32))


def evaluate(study: Study, ranker: str, rule: str, shake: bool, fold: Fold) -> Result:
    method = parse_method(ranker)

    def work() -> dict[str, Any]:
        with by_rule(rule):
            score = fit_method(method, VALIDATED, shaken(fold.train) if shake else fold.train)
        return {"values": values_of(fold.test, score(fold.test))}

    record = study.cached_result(fold, method, f"{rule}{', shaken' if shake else ''}", work)
    return Result(record["values"], float(record["seconds"]))


def on_folds(study: Study, folds: Sequence[Fold], ranker: str, rule: str, shake: bool) -> Results:
    return {(fold.set, fold.number): evaluate(study, ranker, rule, shake, fold) for fold in folds}


def moved(results: Results, again: Results) -> list[str]:
    """Return how far the mean of a fold moves, on average over the folds of each set, and over all sets."""
    sets = {name: [key for key in results if key[0] == name] for name in by_set(results)}
    means = [np.mean([abs(results[key].values.mean() - again[key].values.mean()) for key in keys]) for keys in sets.values()]
    return [f"{number:.4f}" for number in (np.mean(means), *means)]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser(__doc__, "choose_selection")
    options.add_argument("rankers", nargs="*", help=f"of {', '.join(RANKERS)}; by default all")
    options.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    options.add_argument("--folds", nargs="+", type=int, choices=range(FOLDS), default=range(FOLDS))
    options.add_argument("--shaken", action="store_true", help="fit to features with noise in the last bit too")
    chosen = options.parse_args(arguments)
    sets = training_sets(chosen.data, chosen.tiny)
    names = select_names(options, "set", chosen.sets, sets)
    folds = [fold for name in names for fold in folds_of(name, sets[name](), chosen.folds)]
    study = Study(chosen.cache, chosen.version or version())
    for ranker in select_names(options, "ranker", chosen.rankers, RANKERS):
        evaluate = partial(on_folds, study, folds, ranker)
        by_rules = {rule: evaluate(rule, False) for rule in chosen.rules}
        report(f"{ranker}, {VALIDATED}", by_rules, chosen.rules[0])
        if chosen.shaken:
            rows = [[rule, *moved(results, evaluate(rule, True))] for rule, results in by_rules.items()]
            table(f"{ranker}, moved", f"{ranker}: how far noise in the last bit moves nDCG@10", ["", "mean", *names], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
