"""Bounds along the weights of two systems: those of each weight by itself, in `er.fuse`, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import exactrank as er


def partly_judged(systems=2, queries=12, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=queries * 10, p=[0.5, 0.2, 0.2, 0.1]).astype(float)
    X = (y[:, None] + rng.normal(0, 2, (len(y), systems))).round(2)
    X[rng.random(X.shape) < 0.2] = np.nan
    names = ["bm25", "dense", "rerank"][:systems]
    return er.RankingData.from_arrays(X, np.where(rng.random(len(y)) < 0.4, -1.0, y), group=[10] * queries, feature_names=names)


@pytest.mark.parametrize("measure", ["nDCG@3", "R@3", "AP", "P@2"])
def test_the_curve_has_the_bounds_of_each_weight(measure):
    data = partly_judged()
    fusion = er.fuse(data, measure=measure, folds=0, bootstrap=0, unjudged="bounds", highest_grade=4)
    for weight in (0.0, 0.213, 0.5, 0.871, 1.0):
        scores = replace(fusion, weights=(1 - weight, weight)).predict(data)
        evaluation = er.evaluate(data, scores, measure, unjudged="bounds", highest_grade=4)
        assert fusion.bounds.at(weight) == pytest.approx(evaluation.bounds[measure], abs=1e-9)
    first, last = fusion.bounds.possible
    best = fusion.bounds.lower.best(0, 1)
    assert 0 <= first <= best.low <= best.high <= last <= 1
    middles = (fusion.bounds.upper.breakpoints[:-1] + fusion.bounds.upper.breakpoints[1:]) / 2
    outside = middles[(middles < first) | (middles > last)]
    assert np.all(fusion.bounds.upper(outside) < best.value)


def test_with_all_judged_the_bounds_are_the_curve():
    data = partly_judged()
    data = replace(data, y=np.maximum(data.y, 0.0))
    fusion = er.fuse(data, folds=0, bootstrap=0, unjudged="bounds")
    for curve in (fusion.bounds.lower, fusion.bounds.upper):
        assert curve.breakpoints.tolist() == fusion.sweep.steps.breakpoints.tolist()
        assert curve.values == pytest.approx(fusion.sweep.steps.values, abs=1e-9)


def test_bounds_are_for_two_systems_and_unjudged_documents_have_one_rule():
    with pytest.raises(er.errors.IncompatibleError, match="against the weight of two systems, and there are 3"):
        er.fuse(partly_judged(3), folds=0, bootstrap=0, unjudged="bounds", cells=1)
    with pytest.raises(er.errors.DataError, match="leave both out"):
        er.fuse(partly_judged(), highest_grade=3)
    with pytest.raises(er.errors.MeasureError, match="no exact algorithm"):
        er.fuse(partly_judged(), measure="MeanNDCG", folds=0, bootstrap=0, unjudged="bounds")
    assert er.fuse(partly_judged(), folds=0, bootstrap=0).bounds is None
