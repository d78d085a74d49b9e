"""Tree rankers: what they learn, how they weigh and resume, and a model that LightGBM scores the same."""

import json
import subprocess
import sys
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.exceptions import ConvergenceWarning

import exactrank as er
from exactrank._support.serialize import from_record, to_record
from exactrank.learning.objectives.losses import SquaredError
from exactrank.learning.training.judge import Task
from exactrank.learning.trees.forest import Trees
from exactrank.rankers.training_data import in_content_order, training_data
from tests import killed
from tests.models.test_tree_ensemble import same
from tests.rankers.test_rankers import judged, mean, rows
from tests.reference.profile import profile
from tests.reference.trees import booster_of

SMALL = {"trees": 20, "min_documents": 3, "feature_fraction": 1.0, "query_fraction": 1.0, "threads": 1, "bags": 0}
KINDS = {
    "MART": lambda **more: er.MART("nDCG@5", **(SMALL | more)),
    "LambdaMART": lambda **more: er.LambdaMART("nDCG@5", **(SMALL | more)),
    "DirectRankTrees": lambda **more: er.DirectRankTrees(
        "nDCG@5", **(SMALL | {"query_fraction": er.DirectRankTrees.settings["query_fraction"].default} | more)
    ),
}
PUBLISHED = {"follow": "grades", "search": "all", "low": 0.1, "high": 0.5, "smoothing": 1.0, "query_fraction": 1.0}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
SCORED_BY_LIGHTGBM = """
import json, sys
import lightgbm, numpy
booster = lightgbm.Booster(model_file=sys.argv[1])
assert "exactrank" not in sys.modules
print(json.dumps(booster.predict(numpy.load(sys.argv[2]), raw_score=True).tolist()))
"""


@EVERY_KIND
def test_lightgbm_alone_scores_the_same(kind, tmp_path):
    data = judged(queries=30)
    ranker = KINDS[kind]().fit(data)
    ranker.save(tmp_path / "m.json")
    er.export(ranker.model_, "lightgbm").save(tmp_path / "m.txt")
    np.save(tmp_path / "x.npy", data.X)
    command = [sys.executable, "-c", SCORED_BY_LIGHTGBM, str(tmp_path / "m.txt"), str(tmp_path / "x.npy")]
    theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    np.testing.assert_allclose(theirs, ranker.predict(data), rtol=0, atol=1e-12)
    assert np.array_equal(er.load(tmp_path / "m.json").predict(data), ranker.predict(data))
    assert booster_of(ranker.model_.scorer).num_trees() == ranker.model_.scorer.n_trees


@EVERY_KIND
@pytest.mark.parametrize("arguments", [{}, {"bags": 2, "bagging": "bootstrap"}])
def test_the_text_names_an_objective_so_that_others_read_it(kind, arguments, tmp_path):
    """In the header, in LightGBM's place, and among the parameters."""
    data = judged(queries=30)
    ranker = KINDS[kind](trees=6, **arguments).fit(data)
    text = er.export(ranker.model_, "lightgbm").text
    lines = text.split("\n")
    assert lines[lines.index("objective=lambdarank") - 1].startswith("max_feature_idx=")
    assert [line for line in lines if line.startswith("[objective:")] == ["[objective: lambdarank]"]
    booster = lgb.Booster(model_str=text)
    for raw in (True, False):
        assert booster.predict(data.X, raw_score=raw).tobytes() == ranker.predict(data).tobytes()
    assert booster.model_to_string().partition("tree_sizes")[0] == text.partition("tree_sizes")[0]
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    (tmp_path / "m.txt").write_text(text)
    scores = treelite.gtil.predict(treelite.frontend.load_lightgbm_model(tmp_path / "m.txt"), data.X.astype(np.float64))
    assert scores.ravel().tobytes() == ranker.predict(data).tobytes()


def forest_of(data, valid=None, **settings):
    """Return a forest of MART on ``data`` before its first tree."""
    ranker = KINDS["MART"](**({"leaves": 4, "min_documents": 2, "query_fraction": 0.7} | settings))
    measure = er.parse_measure("nDCG@5")
    return ranker._forest(Task(measure, data, valid, 1), ranker._objective(measure))


def grown(forest, trees, times=1):
    for _ in range(times):
        trees = forest.extend(trees)
    return trees


@given(seed=st.integers(0, 50), weight=st.floats(0.01, 1), times=st.integers(1, 4))
@settings(max_examples=25)
def test_a_model_scores_as_its_forest_to_the_bit(seed, weight, times):
    """So weights are in the leaves exactly, and trees that are read again have the scores they had."""
    data, valid = judged(seed=seed), judged(seed=seed + 100)
    forest = forest_of(data, valid, learning_rate=weight, seed=seed)
    trees = grown(forest, Trees(), times)
    read = from_record(json.loads(json.dumps(to_record(trees))), "here")
    assert (read.count, read.forest) == (times, None)
    assert same(read.table, trees.table)
    for part, ours in ((data, forest.part.scores), (valid, forest._valid._scores)):
        assert ours.tobytes() == read.table.native.scores(part.X, 1).tobytes()
    assert forest.verdict(trees) == forest_of(data, valid).verdict(read)


@pytest.mark.parametrize("drawn", [{}, {"feature_fraction": 0.5, "extra": True, "node_features": 0.5, "split_noise": 1.0}])
def test_trees_are_values_that_may_grow_in_two_ways(drawn):
    """What has grown since changes nothing: the second way is begun from the trees so far, to the same bits."""
    data = judged()
    forest, other = forest_of(data, **drawn), forest_of(data, **drawn)
    trees = grown(forest, Trees(), 2)
    before = trees.table
    first, second = (grown(forest, trees, 2) for _ in range(2))
    third = grown(other, from_record(to_record(trees), "here"), 2)
    assert same(first.table, second.table)
    assert same(first.table, third.table)
    assert same(trees.table, before)
    assert first.table.n_trees == 4


@given(seed=st.integers(0, 50), follow=st.sampled_from(["grades", "lambdas"]))
@settings(max_examples=10)
def test_the_line_search_never_falls_below_the_least_weight(seed, follow):
    data = judged(queries=15, seed=seed)
    free, least = (
        KINDS["DirectRankTrees"](**(PUBLISHED | {"trees": 1, "low": 0.2, "high": high, "follow": follow})).fit(data) for high in (1.0, 0.2)
    )
    assert free.score(data) >= least.score(data)


@given(seed=st.integers(0, 17))
@settings(max_examples=18, derandomize=True)
def test_a_clipped_weight_is_the_best_of_all_and_another_the_best_within_its_limits(seed):
    """By evaluating the measure at every crossing of two documents and half way between them."""
    data, low, high = judged(queries=8, seed=seed), PUBLISHED["low"], PUBLISHED["high"]
    pessimistic = er.parse_measure("nDCG(ties='pessimistic')@5")
    for clip in (True, False):
        scorer = KINDS["DirectRankTrees"](**(PUBLISHED | {"trees": 2, "leaves": 5, "clip": clip})).fit(data).model_.scorer
        first, second = (tree.score(data.X) for tree in scorer.single_trees())
        weight = float(scorer.table.shrinkage[1])
        steps = profile(pessimistic, data, first, second / weight)
        best = steps.best() if clip else steps.best(low, high)
        if low < weight < high:
            assert steps(weight) == pytest.approx(best.value, abs=1e-12)
        else:  # the best step is there or beyond
            beyond = steps.best(high) if weight == high else steps.best(high=low)
            assert clip
            assert weight in (low, high)
            assert beyond.value == pytest.approx(best.value, abs=1e-12)


def test_the_first_tree_of_mart_is_least_squares():
    data = judged(queries=20)
    tree = KINDS["MART"](trees=1, learning_rate=1.0, leaves=4).fit(data).model_.scorer
    leaf = booster_of(tree).predict(data.X, pred_leaf=True).ravel()
    left = data.y - data.y.mean()
    for number in np.unique(leaf):
        np.testing.assert_allclose(tree.score(data.X)[leaf == number], left[leaf == number].mean(), atol=1e-6)


@given(seed=st.integers(0, 50))
@settings(max_examples=10)
def test_squared_error_within_queries_leaves_a_constant_a_query_free(seed):
    data, rng = judged(seed=seed), np.random.default_rng(seed)
    s, query = rng.standard_normal(data.n_documents), np.repeat(np.arange(data.n_queries), data.sizes)
    moved = s + rng.standard_normal(data.n_queries)[query]
    plain, free, freed = (er.losses.slopes(data, at, SquaredError(within)) for within, at in ((False, s), (True, s), (True, moved)))
    left = data.y - data.y.mean() - s
    np.testing.assert_allclose(plain.slope, left, atol=1e-12)
    np.testing.assert_allclose(free.slope, left - (np.bincount(query, left) / np.bincount(query))[query], atol=1e-12)
    np.testing.assert_allclose(freed.slope, free.slope, atol=1e-12)
    for result in (plain, free):
        np.testing.assert_allclose(result.values, -np.bincount(query, result.slope**2) / 2, atol=1e-12)
        assert np.all(result.curvature == 1)


def cubic_springs(pairs):
    return pairs.delta * np.maximum(0, 1 - pairs.lead) ** 3


@pytest.mark.parametrize(
    "lambdas",
    [
        "logistic",
        "step",
        "spring",
        "sampled",
        "finite-difference",
        cubic_springs,
        er.losses.Structured(er.measures.NDCG(k=5)),
        er.losses.PairHinge(),
    ],
)
def test_any_lambda_function_may_be_followed(lambdas):
    train, test = judged(queries=60, noise=0.1), judged(queries=60, noise=0.1, seed=2)
    assert KINDS["LambdaMART"](lambdas=lambdas, trees=60).fit(train).score(test) > 0.8


@pytest.mark.parametrize("bound", ["convex", "ramp"])
def test_boosting_the_structured_loss_is_functional_gradient_descent(bound):
    """Chapelle, Le & Smola, section 6: each tree fits the negated slope of the loss, whose curvature counts as 1, and lowers the loss."""
    data = in_content_order(judged(queries=60, noise=0.1))  # at equal scores the most violated ranking depends on the order
    loss = er.losses.Structured(er.measures.NDCG(k=5), bound=bound)
    settings = {"bags": 0, "query_fraction": 1.0, "feature_fraction": 1.0, "min_documents": 1, "shape": "best-first"}
    lowest = [
        -er.losses.slopes(data, er.LambdaMART("nDCG@5", lambdas=loss, trees=t, **settings).fit(data).predict(data), loss).values.mean()
        for t in (1, 10, 40)
    ]
    assert lowest == sorted(lowest, reverse=True)
    slope = er.losses.slopes(data, np.zeros(data.n_documents), loss).slope
    first = er.LambdaMART("nDCG@5", lambdas=loss, trees=1, learning_rate=1.0, **settings).fit(data).predict(data)
    leaves = [first == value for value in np.unique(first)]
    assert len(leaves) > 2
    assert first == pytest.approx(sum(slope[leaf].mean() * leaf for leaf in leaves), abs=1e-3)


@pytest.mark.parametrize("measure", ["AP(rel=2)", "ERR@5", "RR(rel=2)", "P(rel=2)@3", "RBP", "Bpref", "PairwiseCorrect"])
def test_any_measure_may_be_trained_on(measure):
    train = judged(queries=60)
    severe = replace(er.parse_measure(measure), ties="pessimistic")  # one tree leaves most documents tied
    before, after = (er.LambdaMART(severe, **(SMALL | {"trees": trees})).fit(train).score(train) for trees in (1, 30))
    assert after > before


def test_missing_values_take_a_side_of_their_own():
    X, _, qid = rows(queries=40)
    hidden = np.random.default_rng(0).random(len(X)) < 0.4
    X[hidden, 1] = np.nan
    data = er.RankingData.from_arrays(X, np.where(hidden, 2, 0), qid=qid)
    assert KINDS["LambdaMART"]().fit(data).score(data) == mean("nDCG@5", data, data.y)
    with pytest.raises(er.errors.DataError, match="values are missing"):
        KINDS["LambdaMART"](missing="error").fit(X, hidden, qid=qid)


def test_settings_reach_the_trees():
    data = judged(queries=40)
    plain = KINDS["MART"]().fit(data)
    X = np.tile(data.X[0], (50, 1))
    X[:, 3] = np.linspace(-3, 3, 50)
    falling = KINDS["MART"](monotone={"x3": -1, "x0": 0}).fit(data)
    assert np.any(np.diff(plain.predict(X)) > 1e-9)
    assert np.all(np.diff(falling.predict(X)) <= 1e-12)
    assert booster_of(KINDS["MART"](leaves=2, trees=3).fit(data).model_.scorer).trees_to_dataframe()["node_depth"].max() == 2
    for drawn in ({"query_fraction": 0.5}, {"extra": True}, {"feature_fraction": 0.5}, {"node_features": 0.5}, {"split_noise": 1.0}):
        assert not np.array_equal(KINDS["MART"](**drawn).fit(data).predict(data), plain.predict(data))
    kinds = KINDS["MART"](categorical=["x0"]).fit(np.abs(data.X).astype(int), data.y, group=data.sizes)
    assert "==" in set(booster_of(kinds.model_.scorer).trees_to_dataframe()["decision_type"].dropna())


def branches(scorer):
    """Return the features on each way from the root to a leaf."""

    def below(node, seen):
        if "split_feature" not in node:
            yield seen
            return
        for side in ("left_child", "right_child"):
            yield from below(node[side], seen | {node["split_feature"]})

    return [branch for tree in booster_of(scorer).dump_model()["tree_info"] for branch in below(tree["tree_structure"], frozenset())]


@pytest.mark.parametrize("groups", [[["x0", "x2"], ["x1", "x3"]], [["x2", "x0"]]])
def test_only_features_of_a_group_meet_on_a_path(groups):
    """Those that no group names are a group."""
    data = judged(queries=30)
    free, bound = (KINDS["LambdaMART"](leaves=6, interactions=some).fit(data).model_.scorer for some in ([], groups))
    assert all(branch <= {0, 2} or branch <= {1, 3} for branch in branches(bound))
    assert not all(branch <= {0, 2} or branch <= {1, 3} for branch in branches(free))


def test_where_no_split_is_possible_it_says_so():
    with pytest.warns(ConvergenceWarning, match=r"no split is possible.*min_documents"):
        ranker = KINDS["MART"](min_documents=1000).fit(judged())
    assert np.ptp(ranker.predict(judged())) == 0
    assert ranker.model_.training["value"] == ranker.score(judged())


@EVERY_KIND
@pytest.mark.parametrize("drawn", [{}, {"feature_fraction": 0.5, "query_fraction": 0.6}, {"extra": True}])
@pytest.mark.parametrize("held_out", [False, True])
def test_a_break_changes_nothing(kind, drawn, held_out):
    data, valid = judged(queries=30), judged(queries=30, seed=1) if held_out else None
    settings = {"trees": 12} | ({"patience": 5} if held_out else {}) | drawn
    whole = KINDS[kind](**settings).fit(data, valid=valid)

    def interrupt(progress):
        if progress.step == 6:
            raise KeyboardInterrupt

    with pytest.warns(er.errors.InterruptedWarning, match="interrupted"):
        part = KINDS[kind](**settings).fit(data, valid=valid, progress=interrupt)
    assert part.model_.training["interrupted"]
    assert part.model_.scorer.n_trees <= 6
    again = KINDS[kind](**settings).fit(data, valid=valid, resume=part.model_)
    assert again.model_.scorer.n_trees == whole.model_.scorer.n_trees
    assert np.array_equal(again.predict(data), whole.predict(data))


@pytest.mark.parametrize("other", [{"leaves": 5}, {"measure": "AP"}, {"seed": 4}])
def test_only_what_was_begun_is_resumed(other):
    data = judged(queries=20)
    part = KINDS["MART"](trees=3).fit(data)
    with pytest.raises(er.errors.IncompatibleError, match=f"the model was trained with {next(iter(other))}="):
        er.MART(**({"measure": "nDCG@5"} | SMALL | other)).fit(data, resume=part.model_)
    with pytest.raises(er.errors.IncompatibleError, match="trained with data="):
        KINDS["MART"]().fit(judged(queries=21), resume=part.model_)
    with pytest.raises(er.errors.IncompatibleError, match="the model was trained with"):
        KINDS["LambdaMART"]().fit(data, resume=part.model_)
    with pytest.raises(er.errors.IncompatibleError, match="trees=3, not 5, which may change only for a single forest"):
        bags = {"bags": 2, "bagging": "draws", "query_fraction": 0.6}
        KINDS["MART"](trees=5, **bags).fit(data, resume=KINDS["MART"](trees=3, **bags).fit(data).model_)
    more = KINDS["MART"](trees=5).fit(data, resume=part.model_)
    assert np.array_equal(more.predict(data), KINDS["MART"](trees=5).fit(data).predict(data)), "how many trees there are may change"


@EVERY_KIND
def test_threads_do_not_matter(kind):
    data = judged(queries=40)
    drawn = {"feature_fraction": 0.5, "query_fraction": 0.6, "seed": 7}
    first, second = (KINDS[kind](**(drawn | {"threads": threads})).fit(data) for threads in (1, 2))
    assert same(first.model_.scorer.table, second.model_.scorer.table)
    other = KINDS[kind](**(drawn | {"seed": 8})).fit(data)
    assert not np.array_equal(other.predict(data), first.predict(data))


@EVERY_KIND
def test_rows_and_queries_weigh(kind):
    """Whole weights are copies of the queries; documents without weight do not count."""
    X, y, qid = rows(queries=20)
    twice = np.arange(20) % 3 == 0
    copies = np.concatenate([np.arange(len(X)), np.flatnonzero(twice[qid])])
    fixed = {"query_fraction": 1.0} | ({"search": "all"} if kind == "DirectRankTrees" else {})
    weighed = KINDS[kind](**fixed).fit(X, y, qid=qid, query_weight=1.0 + twice)
    copied = KINDS[kind](**fixed).fit(X[copies], y[copies], qid=np.where(np.arange(len(copies)) < len(X), qid[copies], 100 + qid[copies]))
    assert weighed.score(X, y, qid=qid) == pytest.approx(copied.score(X, y, qid=qid), abs=0.1)
    assert not np.array_equal(weighed.predict(X), KINDS[kind](**fixed).fit(X, y, qid=qid).predict(X))
    with pytest.raises(er.errors.DataError, match="sample_weight"):
        KINDS[kind]().fit(X, y, qid=qid, sample_weight=np.ones(3))


def test_documents_weigh_in_least_squares():
    X, y, qid = rows(queries=20)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    tree = KINDS["MART"](trees=1, learning_rate=1.0, leaves=4).fit(X, y, qid=qid, sample_weight=weight).model_.scorer
    leaf = booster_of(tree).predict(X, pred_leaf=True).ravel()
    for number in np.unique(leaf):
        held = leaf == number
        np.testing.assert_allclose(
            tree.score(X)[held], np.average(y[held], weights=weight[held]) - np.average(y, weights=weight), atol=1e-6
        )


@given(seed=st.integers(0, 99), within=st.booleans(), of_queries=st.booleans())
@settings(max_examples=15)
def test_a_weight_of_two_is_a_copy(seed, within, of_queries):
    """Of a document, or of a whole query: a tree that is fitted by squared errors is the same, but for rounding.

    Grades are continuous, and leaves are large, so that no two splits gain the same within what forces are rounded by; and no leaf has
    so nearly the least curvature that rounding decides.
    """
    (X, y, qid), valid, rng = rows(queries=20, seed=seed), judged(seed=seed + 100), np.random.default_rng(seed)
    y = y + rng.random(len(y))
    twice = (np.arange(20) == rng.integers(20))[qid] if of_queries else rng.random(len(y)) < 0.05
    copies = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    names = np.concatenate([qid, qid[twice] + (100 if of_queries else 0)])
    weight = {"query_weight": 1.0 + twice[::8]} if of_queries else {"sample_weight": 1.0 + twice}
    few = {"min_documents": 1, "min_curvature": 19.5 * len(y) / len(copies), "leaves": 4, "trees": 1, "within": within}
    weighed = KINDS["MART"](**few).fit(X, y, qid=qid, valid=valid, **weight)
    copied = KINDS["MART"](**(few | {"min_curvature": 19.5})).fit(X[copies], y[copies], qid=names, valid=valid)
    np.testing.assert_allclose(weighed.predict(valid), copied.predict(valid), atol=1e-6)
    plain = KINDS["MART"](**few).fit(X, y, qid=qid, valid=valid)
    assert np.abs(weighed.predict(valid) - plain.predict(valid)).max() > 1e-4


def test_a_force_is_multiplied_by_the_weight_of_its_document():
    """So a document of weight 0 is not followed, though it pushes others."""
    X, y, qid = rows(queries=20)
    weight = np.where(np.arange(len(y)) % 8 == 0, 0.0, 1.0)
    ranker = KINDS["LambdaMART"](trees=1, learning_rate=1.0, leaves=3, near=0.0)
    tree = ranker.fit(X, y, qid=qid, sample_weight=weight).model_.scorer
    as_trained = training_data(er.RankingData.from_arrays(X, y, qid=qid, sample_weight=weight), None, "keep", 1).data
    forces = er.losses.slopes(as_trained, np.zeros(len(y)), er.losses.Lambdas(er.measures.NDCG()))
    leaf = booster_of(tree).predict(X, pred_leaf=True).ravel()
    for number in np.unique(leaf):
        held = (leaf == number) & (weight > 0)
        np.testing.assert_allclose(tree.score(X)[held], forces.slope[held].sum() / forces.curvature[held].sum(), rtol=1e-5)


def test_validation_data_must_have_the_features():
    X, y, qid = rows()
    with pytest.raises(er.errors.ExactRankError, match="features"):
        KINDS["MART"]().fit(X, y, qid=qid, valid=(X[:, :3], y, qid))


def test_leverage_does_not_lower_the_training_measure():
    moved = []
    for seed in range(3):
        data = judged(queries=60, noise=2.0, seed=seed)
        few = {"trees": 10, "leaves": 4, "seed": seed}
        plain, anew = (KINDS["DirectRankTrees"](leverage=leverage, **few).fit(data) for leverage in (0, 3))
        assert anew.score(data) >= plain.score(data)
        assert anew.model_.training["value"] == pytest.approx(anew.score(data), abs=1e-12)
        assert anew.model_.scorer.n_trees == plain.model_.scorer.n_trees
        moved.append(not np.array_equal(anew.predict(data), plain.predict(data)))
    assert any(moved)


@EVERY_KIND
def test_ties_in_the_order_of_grades_do_not_choose_few_trees(kind):
    """Where data lists the best documents first, one leaf for all would be perfect under ties='input'."""
    (X, y, qid), settings = rows(queries=60, noise=2.0), {"trees": 15, "leaves": 3}
    order = np.lexsort((-y, qid))
    best_first, worst_first = (er.RankingData.from_arrays(X[rank], y[rank], qid=qid[rank]) for rank in (order, np.lexsort((y, qid))))
    for train in (best_first, worst_first):
        kept = [KINDS[kind](**settings).fit(train, valid=valid).model_.scorer.n_trees for valid in (best_first, worst_first)]
        assert kept[0] == kept[1]


@EVERY_KIND
@pytest.mark.parametrize("held_out", [False, True])
def test_every_checkpoint_leads_to_the_same_end(kind, held_out, monkeypatch):
    """Ties make what is reported prefer other numbers of trees than what chooses; checkpoints go by the latter."""
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", 0)
    sets = [rows(queries=30, noise=2.0, seed=number) for number in (14, 64)]
    train, valid = (er.RankingData.from_arrays(X, y, qid=qid) for X, y, qid in sets)
    models, settings = [], {"trees": 15, "leaves": 3}
    chosen_by = valid if held_out else None
    whole = KINDS[kind](**settings).fit(train, valid=chosen_by, checkpoint=models.append)
    assert models
    for model in models:
        again = KINDS[kind](**settings).fit(train, valid=chosen_by, resume=model)
        assert np.array_equal(again.predict(train), whole.predict(train))


@EVERY_KIND
def test_bags_are_a_mean_of_forests(kind):
    data, valid = judged(queries=40, noise=1.0), judged(queries=40, noise=1.0, seed=1)
    first, three = (
        KINDS[kind](query_fraction=0.6, **bags).fit(data, valid=valid) for bags in ({"bags": 0}, {"bags": 3, "bagging": "draws"})
    )
    assert np.allclose(first.predict(data), 3 * three.model_.scorer.first(first.model_.scorer.n_trees).score(data.X))
    assert three.model_.scorer.n_trees > first.model_.scorer.n_trees
    assert not np.allclose(first.predict(data), three.predict(data)), "each forest has draws of its own"
    for part, measured in ((data, "value"), (valid, "valid")):
        assert three.model_.training[measured] == pytest.approx(three.score(part), abs=1e-12)
    steps = [progress.step for progress in three.history_]
    assert steps == [*range(1, 21), *range(20, 41), *range(40, 61), 60], "after each forest the mean of all so far is told"
    assert {progress.steps for progress in three.history_} == {60}


def test_a_break_in_the_second_bag_keeps_the_mean_so_far():
    data, settings = judged(queries=40, noise=1.0), {"query_fraction": 0.6, "bags": 3, "bagging": "draws"}

    def interrupt(progress):
        if progress.step == 25:
            raise KeyboardInterrupt

    models = []
    with pytest.warns(er.errors.InterruptedWarning, match="interrupted"):
        part = KINDS["LambdaMART"](**settings).fit(data, progress=interrupt, checkpoint=models.append)
    assert part.model_.training["interrupted"]
    assert part.model_.training["value"] == pytest.approx(part.score(data), abs=1e-12)
    for model in models:
        assert model.training["value"] == pytest.approx(mean("nDCG@5", data, model.predict(data)), abs=1e-12)
    again, whole = (KINDS["LambdaMART"](**settings).fit(data, resume=resume) for resume in (part.model_, None))
    assert np.array_equal(again.predict(data), whole.predict(data))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"categorical": ["color"]}, "categorical names 'color', which is not a feature; there are x0"),
        ({"monotone": {"price": -1}}, "monotone names 'price', which is not a feature"),
        ({"monotone": {"x0": 2}}, "monotone={'x0': 2} is not a mapping of text to -1, 0 or 1"),
        ({"monotone": {"x0": 1}, "categorical": ["x0"]}, "'x0' cannot be categorical and monotone"),
        ({"interactions": [["x0", "price"]]}, "interactions names 'price', which is not a feature; there are x0"),
        ({"interactions": ["x0"]}, "interactions=\\['x0'\\] is not a list of lists of names"),
        ({"lambda_l1": 0.5}, "MART has no setting 'lambda_l1'; here it is called l1"),
        (
            {"bags": 2, "bagging": "draws", "feature_fraction": 1.0, "query_fraction": 1.0},
            "the forests of 2 bags would be the same; give query_fraction",
        ),
        ({"bagging": "bootstrap"}, "bagging='bootstrap' has no effect with bags=0"),
    ],
)
def test_bad_settings_are_named(arguments, says):
    with pytest.raises(er.errors.SettingError, match=says):
        er.MART("nDCG@5", **arguments).fit(judged())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"samples": 3}, "samples=3 has no effect with lambdas='logistic'"),
        ({"noise": 0.5}, "noise=0.5 has no effect with lambdas='logistic'"),
        ({"margin": 2.0}, "margin=2.0 has no effect with lambdas='logistic'"),
        ({"lambdas": "sampled", "near": 0.1}, "near=0.1 has no effect with lambdas='sampled'"),
        ({"lambdas": "finite-difference", "truncation": 5}, "truncation=5 has no effect with lambdas='finite-difference'"),
        ({"lambdas": lambda pairs: pairs.delta, "neighbors": 5}, "neighbors=5 has no effect with lambdas='a function'"),
        ({"lambdas": er.losses.PairHinge(), "weighted_by": "AP"}, "weighted_by='AP' has no effect with lambdas=PairHinge"),
        ({"lambdas": "springs"}, 'did you mean "spring"'),
    ],
)
def test_settings_of_other_lambda_functions_are_refused(arguments, says):
    with pytest.raises(er.errors.SettingError, match=says):
        er.LambdaMART("nDCG@5", **arguments).fit(judged())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"low": 0.5, "high": 0.4}, "low=0.5 is above high=0.4"),
        ({"query_fraction": 1.0}, "give a query_fraction below 1"),
        ({"smoothing": 1.0, "learning_rate": 0.2}, "learning_rate=0.2 has no effect with smoothing=1"),
        ({"follow": "grades", "lambdas": "step"}, "lambdas='step' has no effect with follow='grades'"),
        ({"follow": "grades", "truncation": 5}, "truncation=5 has no effect with lambdas=None"),
    ],
)
def test_bad_settings_of_the_search_are_named(arguments, says):
    with pytest.raises(er.errors.SettingError, match=says):
        er.DirectRankTrees("nDCG@5", **arguments).fit(judged())


@pytest.mark.parametrize("named", [True, False])
def test_models_of_lightgbm_are_read(named, tmp_path):
    X, y, _ = rows(queries=20)
    names = ["bm25", "clicks", "age", "length"] if named else "auto"
    booster = lgb.train({"verbose": -1, "num_threads": 1}, lgb.Dataset(X, y, feature_name=names), 5)
    booster.save_model(tmp_path / "model.txt")
    model = er.load(tmp_path / "model.txt")
    assert np.array_equal(model.predict(X), booster.predict(X, raw_score=True))
    assert model.scorer.feature_names == (tuple(names) if named else ())
    (tmp_path / "cut.txt").write_text((tmp_path / "model.txt").read_text()[:500])
    with pytest.raises(er.errors.DataError, match=r"cut.txt: .*train or copy the model again"):
        er.load(tmp_path / "cut.txt")


def cases():
    """Each tree ranker, with and without validation data, draws and bags of every kind."""
    data, valid = judged(queries=20, noise=1.0), judged(queries=20, noise=1.0, seed=1)
    drawn = {"feature_fraction": 0.5, "query_fraction": 0.6, "extra": True}
    kinds = {
        **{f"{kind} drawn": (make(trees=8, **drawn), None) for kind, make in KINDS.items()},
        **{f"{kind} stopped": (make(trees=40, patience=4), valid) for kind, make in KINDS.items()},
        "draws": (KINDS["DirectRankTrees"](trees=5, bags=3, bagging="draws"), valid),
        "cross-fit": (KINDS["LambdaMART"](trees=30, patience=3, bags=3, bagging="cross-fit"), None),
        "bootstrap": (KINDS["MART"](trees=5, bags=3, bagging="bootstrap"), valid),
        "leverage": (KINDS["DirectRankTrees"](trees=5, leverage=2), valid),
    }
    return {name: (ranker, data, held_out) for name, (ranker, held_out) in kinds.items()}


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    folder, fitted = tmp_path_factory.mktemp("killed"), killed.unbroken(cases())
    killed.killed(__name__, fitted, folder, seed=45)  # bags after their first forest
    return folder, fitted


@pytest.mark.parametrize("name", cases())
def test_training_killed_at_a_random_moment_resumes_to_the_bit(name, broken_off):
    folder, fitted = broken_off
    killed.assert_resumed(fitted[name], cases()[name], folder / f"{name}.json")
