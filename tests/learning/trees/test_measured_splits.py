"""Splits that the measure chooses: each is the best of its candidates by brute force, and the trees are those of the choices."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import SettingError
from exactrank.learning.trees import part
from exactrank.learning.trees.measured_splits import SplitChoice
from tests.rankers.test_rankers import judged

FEW = {"trees": 4, "leaves": 6, "min_documents": 2, "bags": 0, "shape": "best-first", "threads": 1}


def trees(measure="nDCG@5", **more):
    return er.DirectRankTrees(measure, **(FEW | {"splits": "measure"} | more))


class Observed(SplitChoice):
    """A choice that notes what it was made of, and what it has chosen."""

    made = ()

    def __init__(self, *given):
        super().__init__(*given)
        self.given, self.choices = (given[0], given[1].copy(), *given[2:]), []
        Observed.made = (*Observed.made, self)

    def __call__(self, documents, outputs):
        best = super().__call__(documents, outputs)
        self.choices.append((documents.copy(), outputs.copy(), best))
        return best


def observed(ranker, data):
    Observed.made = ()
    with patch.object(part, "SplitChoice", Observed):
        ranker.fit(data)
    return Observed.made


def mean_value(measure, data, scores, weights):
    """The mean over queries of a measure with tied documents in their worst order, by `er.evaluate`."""
    name = measure.replace("@", "(ties='pessimistic')@") if "@" in measure else f"{measure}(ties='pessimistic')"
    some = np.flatnonzero(weights)
    documents = np.repeat(weights > 0, data.sizes)
    judgments = er.RankingData.from_arrays(None, data.y[documents], group=data.sizes[some], query_weight=weights[some])
    return er.evaluate(judgments, scores[documents], name).means[name]


@given(seed=st.integers(0, 40), measure=st.sampled_from(["nDCG@5", "AP", "P@3"]), candidates=st.integers(2, 5), all_queries=st.booleans())
@settings(max_examples=12, deadline=None)
def test_each_choice_is_the_best_of_its_candidates(seed, measure, candidates, all_queries):
    data = judged(queries=10, seed=seed, noise=1.5)
    fraction = {"query_fraction": 1.0, "search": "all"} if all_queries else {"query_fraction": 0.7}
    ranker = trees(measure, candidates=candidates, seed=seed, **fraction)
    for number, choice in enumerate(observed(ranker, data)[: ranker.model_.scorer.n_trees]):
        bound, before, weights, weight = choice.given
        now = before.copy()
        for documents, outputs, best in choice.choices:
            outcomes = [now.copy() for _ in outputs]
            for outcome, output in zip(outcomes, outputs, strict=True):
                outcome[documents] = before[documents] + weight * output
            values = [mean_value(measure, bound.data, outcome, weights) for outcome in outcomes]
            assert len(values) <= candidates
            assert best == np.argmax(values >= np.max(values) - 1e-12)  # of equal values the larger gain wins
            now = outcomes[best]
        assert weights.all() or not all_queries
        assert weight == (ranker.learning_rate if number == 0 else ranker.model_.scorer.table.shrinkage[number - 1])


def test_the_tree_is_that_of_the_choices():
    """Its outputs are those of the candidates, but for the rounding of sums in histograms; and they are not those by gain."""
    data = judged(queries=12, noise=1.5)
    ranker = trees(query_fraction=1.0, search="all", trees=2, candidates=4)
    choices = observed(ranker, data)
    for tree, choice, weight in zip(ranker.model_.scorer.single_trees(), choices, ranker.model_.scorer.table.shrinkage, strict=True):
        bound, before, _, expected = choice.given
        outputs = (choice._scores - before) / expected
        np.testing.assert_allclose(tree.score(bound.data.X) / weight, outputs, atol=1e-3 * np.abs(outputs).max())
    assert any(best > 0 for choice in choices for *_, best in choice.choices)
    by_gain = er.DirectRankTrees("nDCG@5", **(FEW | {"query_fraction": 1.0, "search": "all", "trees": 2})).fit(data)
    assert not np.array_equal(by_gain.predict(data), ranker.predict(data))


def test_it_may_choose_among_more_candidates_than_there_are():
    data = judged(queries=12)
    few, many = (trees(candidates=candidates, feature_fraction=1.0).fit(data).predict(data) for candidates in (4, 1000))
    assert np.array_equal(few, many)  # four features


@pytest.mark.parametrize("more", [{}, {"clip": True, "follow": "grades", "smoothing": 1.0, "low": 0.1, "high": 0.5}])
def test_trees_go_on_as_if_they_had_never_stopped(more):
    data, valid = judged(queries=12), judged(queries=12, seed=1)
    whole = trees(**more).fit(data, valid=valid)
    half = trees(**(more | {"trees": 2})).fit(data, valid=valid)
    assert np.array_equal(trees(**more).fit(data, valid=valid, resume=half.model_).predict(data), whole.predict(data))


def test_results_do_not_depend_on_threads():
    data = judged(queries=20)
    one, three = (trees(threads=threads).fit(data).predict(data) for threads in (1, 3))
    assert np.array_equal(one, three)


def test_missing_values_and_categories_are_split_too():
    data = judged(queries=30)
    X = data.X.copy()
    X[::5, 1] = np.nan
    X[:, 2] = np.digitize(X[:, 2], [-1, 0, 1])
    data = er.RankingData.from_arrays(X, data.y, group=data.sizes, feature_names=list("abcd"))
    ranker = trees(categorical=["c"], min_documents=5, trees=20, feature_fraction=1.0).fit(data)
    assert ranker.score(data) > 0.8
    assert {"b", "c"} <= {name for name, count in zip("abcd", ranker.model_.scorer.importance("split"), strict=True) if count}


def test_little_data_makes_bags_of_best_first_trees():
    data = judged(queries=40)
    ranker = er.DirectRankTrees("nDCG@5", splits="measure", trees=3, min_documents=2).fit(data)
    assert ranker.resolve_auto(data) == {"bags": 10, "shape": "best-first"}
    assert ranker.estimate_.mean > 0.5


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"candidates": 1}, "candidates=1 is out of range"),
        ({"splits": "gain", "candidates": 4}, "candidates=4 has no effect with splits='gain'; leave it out, or give splits='measure'"),
        ({"shape": "symmetric"}, "splits='measure' has no effect with shape='symmetric'; leave it out, or give shape='best-first'"),
        ({"splits": "best"}, "splits='best' is not"),
    ],
)
def test_bad_settings_are_named(given, says):
    with pytest.raises(SettingError, match=says):
        trees(**given).fit(judged())


def test_data_in_several_files_and_kernels_of_a_backend_are_refused(tmp_path):
    er.write(judged(), tmp_path / "a.xr")
    with pytest.raises(SettingError, match='splits="measure" is not known for data in several files; give splits="gain"'):
        trees().fit(er.read_shards([tmp_path / "a.xr"]))
    ranker = trees()
    with (
        patch.object(er.DirectRankTrees, "runs_in_threads", False),
        pytest.raises(SettingError, match='splits="measure" is not known for None, which grows trees by kernels of its own'),
    ):
        ranker.fit(judged())
