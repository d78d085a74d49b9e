"""Exports to search engines score as the model does: Elasticsearch LTR, OpenSearch LTR, Elasticsearch, Solr and RankLib.

`tests/reference/engines_search.py` has the engines' arithmetic, document by document. It gives the scores that the engines themselves
gave (`tests/golden/engines`: models, rows at the neighbors of their thresholds, and scores), to the bit.
"""

import json
import re
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import exactrank as er
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.models.lightgbm_text import read_lightgbm
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.sum import sum_of
from exactrank.models.targets.check import _rounding
from exactrank.models.targets.nested import DEEPEST
from exactrank.models.targets.plain import ZERO, plain
from exactrank.models.targets.single import decimals, next_above, rounded_down
from exactrank.models.targets.solr import SLACK, without_slack
from tests import GOLDEN
from tests.reference import engines_search as engines

FEATURES = ("bm25", "clicks", "age", "dense")
RECORDED = {path.stem: json.loads(path.read_text()) for path in (GOLDEN / "engines").glob("*_missing.json")}
SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
THRESHOLDS = st.one_of(
    SINGLE,
    st.floats(-1e3, 1e3),
    st.floats(-1e-5, 1e-5),
    st.sampled_from([0.0, -0.0, 1.0000000180025095e-35, -1e-20, 1e-20, 1e-50, -1e-50, 1e-6, -1e-6, 0.1, 1e300, -1e300]),
)
TREES = {  # with what reads the export, row by row
    "elasticsearch-ltr": engines.elasticsearch_ltr,
    "opensearch-ltr": engines.elasticsearch_ltr,
    "opensearch-ltr(missing_as_zero=True)": engines.elasticsearch_ltr,
    "elasticsearch-ltr(format='ranklib')": engines.elasticsearch_ltr,
    "ranklib": lambda body, row, features: engines.ranklib(body.decode(), row),
    "elasticsearch": engines.elasticsearch,
    "solr": engines.solr,
}
SLOW = 25  #: rows that the slow ones score
KEEPING = ("elasticsearch-ltr", "opensearch-ltr", "elasticsearch", "solr")


def exported(scorer, to, **more):
    name, settings_ = re.fullmatch(r"([a-z-]+)(?:\((\w+)=(.*)\))?", to), {}
    if name[2]:
        settings_ = {name[2]: {"True": True}.get(name[3], name[3].strip("'"))}
    return er.export(scorer, name[1], **settings_, **more)


def slow(export, to, rows):
    return np.array([TREES[to](export.content, row.tolist(), FEATURES) for row in rows])


def forest(seed, holes=0.0):
    """A few trees on features of all sizes: scores, counts that are often 0, tiny differences."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.gamma(2, 5, 80), rng.poisson(0.7, 80), rng.normal(0, 10.0 ** -rng.integers(0, 9), 80), rng.random(80)], axis=1)
    grades = np.log1p(rows[:, 0]) + rows[:, 1] + np.sign(rows[:, 2]) + rng.normal(size=80)
    rows[rng.random(rows.shape) < holes] = np.nan
    known = {"num_leaves": 6, "min_data_in_leaf": 2, "min_data_in_bin": 1, "learning_rate": 0.5, "verbose": -1, "num_threads": 1}
    train = lgb.Dataset(rows.astype(np.float32), grades, feature_name=list(FEATURES))
    return er.models.TreeEnsemble.of_lightgbm(lgb.train(known, train, 5).model_to_string())


def adversarial(terms, seed, holes):
    """Rows of thresholds, their neighbors among float32, zeros and the smallest numbers, some missing."""
    rng, rows = np.random.default_rng(seed), np.empty((150, len(terms.features)))
    for j in range(len(terms.features)):
        at = np.concatenate(
            [np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-35, 1e-6, 1, -1]), *(rounded_down(t.threshold[t.feature == j]) for t in terms.trees)]
        )
        with np.errstate(over="ignore"):
            near = np.concatenate([at, *(np.nextafter(at, np.float32(end)) for end in (-np.inf, np.inf)), next_above(next_above(at))])
        near = near[np.abs(near) < np.finfo(np.float32).max]
        rows[:, j] = rng.choice(near, len(rows))
    rows[rng.random(rows.shape) < holes] = np.nan
    return rows


def differ_of_solr(tree):
    wanted = rounded_down(tree.threshold)
    return np.abs((without_slack(wanted) + SLACK).astype(float) - wanted.astype(float))


def between(terms, rows):
    """Does a row have a value that lies between a threshold and what Solr makes of it?"""
    found = np.zeros(len(rows), bool)
    for tree in terms.trees:
        wanted = rounded_down(tree.threshold)
        low, high = np.sort([wanted, without_slack(wanted) + SLACK], axis=0)
        x = rows[:, tree.feature]
        found |= np.any((x > low) & (x <= high), axis=1)
    return found


def check_law(scorer, to, seed, holes):
    terms = plain(er.Model(scorer))
    rows, export = adversarial(terms, seed, holes), exported(scorer, to)
    ours, theirs = scorer.score(rows.astype(np.float32)), export.target.scores(export.content, rows, FEATURES)
    np.testing.assert_array_equal(theirs[:SLOW], slow(export, to, rows[:SLOW]))
    differs = np.abs(ours - theirs) > _rounding(terms, rows, float(np.finfo(np.float32).eps))
    if to == "solr":
        off = max(differ_of_solr(tree).max() for tree in terms.trees)
        assert bool(export.remarks and "thresholds are off" in export.remarks[0]) == (off > ZERO)
        differs &= ~between(terms, rows)
    assert not np.any(differs), f"{to}: {rows[differs]}"


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_trees_route_every_document_as_the_model_does(seed):
    scorer = forest(seed)
    for to in TREES:
        check_law(scorer, to, seed, holes=0.0)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_missing_values_go_where_the_model_sends_them(seed):
    scorer = forest(seed, holes=0.3)
    for to in KEEPING:
        check_law(scorer, to, seed, holes=0.3)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), THRESHOLDS), min_size=1, max_size=12), st.integers(0, 10**6))
@example([(0, -1e-20), (0, 1e-20), (1, 1.0000000180025095e-35), (2, -1e-50)], 0)
def test_thresholds_of_any_size_are_kept(steps, seed):
    jumps = np.random.default_rng(seed).uniform(0.5, 2, len(steps))
    scorer = er.models.Thresholds.from_steps([(j, t, jump) for (j, t), jump in zip(steps, jumps, strict=True)], 4, FEATURES)
    for to in TREES:
        check_law(replace(scorer, missing="zero"), to, seed, holes=0.2)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_absent_features_count_as_zero_in_old_and_new_versions(seed):
    """Of a model that takes missing values for 0, so that the version of the plugin does not matter."""
    scorer = forest(seed)
    export, rows = er.export(scorer, "elasticsearch-ltr"), adversarial(plain(er.Model(scorer)), seed, holes=0.4)
    for row in rows[:SLOW]:
        new, old = (engines.elasticsearch_ltr(export.content, row.tolist(), FEATURES, newest) for newest in (True, False))
        assert new == old


@given(st.lists(SINGLE, min_size=1, max_size=20))
def test_decimals_are_read_as_the_same_floats(values):
    """Also by way of a double, which readers of JSON take."""
    given_ = np.array(values, np.float32)
    read = [float(text) for text in decimals(given_)]
    np.testing.assert_array_equal(np.array(read).astype(np.float32), given_)
    np.testing.assert_array_equal([np.float32(text) for text in decimals(given_)], given_)
    assert [json.loads(json.dumps(number)) for number in read] == read


@given(THRESHOLDS, st.integers(-3, 3))
def test_rounding_down_keeps_all_floats_on_their_side(threshold, steps):
    down = rounded_down(np.array([threshold]))[0]
    x = down
    with np.errstate(over="ignore"):
        for _ in range(abs(steps)):
            x = np.nextafter(x, np.float32(np.copysign(np.inf, steps)))
    if abs(x) < np.finfo(np.float32).max:  # at the end of float32 nothing lies beyond
        assert (float(x) <= threshold) == (x <= down) == (x < next_above(np.array([down]))[0])


@given(THRESHOLDS)
@example(-1e-20)
@example(-1.0)
@example(1.0000000180025095e-35)
def test_what_solr_reads_comes_to_the_threshold_or_the_next_number_above(threshold):
    wanted = rounded_down(np.array([threshold if abs(threshold) > ZERO else min(threshold, 0.0)]))  # what LightGBM takes for 0
    result = without_slack(rounded_down(np.array([threshold])))
    others = (result.view(np.int32) + np.arange(-200, 201)).astype(np.int32).view(np.float32)
    others = others[np.isfinite(others)]
    with np.errstate(over="ignore"):
        sums = others + SLACK
    same_side = sums[(sums >= 0) == (wanted >= 0)]
    above = same_side[same_side >= wanted]
    assert (result + SLACK)[0] == (above.min() if len(above) else same_side.max())
    if threshold > 1e-5 or threshold == 0:
        assert result + SLACK == wanted


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize(
    ("to", "key", "wrap"),
    [
        (
            "elasticsearch-ltr",
            "elasticsearch_ltr",
            lambda kept: {"model": {"name": "m", "model": {"type": kept["type"], "definition": json.dumps(kept["definition"])}}},
        ),
        ("solr", "solr_ltr", lambda kept: kept["model"]),
    ],
)
def test_the_engines_own_scores(name, to, key, wrap):
    """By our twins of the model that the engine had, and of ours, which is the same."""
    golden = RECORDED[name]
    kept, rows = golden[key], np.array(golden["X"], float)
    body = json.dumps(wrap(kept)).encode()
    export = er.export(er.models.TreeEnsemble.of_lightgbm(golden["lightgbm_text"]), to, model_name="m")
    for content in (body, export.content):
        np.testing.assert_array_equal([TREES[to](content, row.tolist(), FEATURES) for row in rows], np.float32(kept["scores"]))
        np.testing.assert_array_equal(export.target.scores(content, rows, FEATURES), np.float32(kept["scores"]))
    assert in_singles(json.loads(export.content)) == in_singles(json.loads(body))


def in_singles(value):
    """JSON with numbers as float32, also those in strings, and JSON in strings as JSON."""
    if isinstance(value, dict):
        return {name: in_singles(each) for name, each in value.items()}
    if isinstance(value, list):
        return [in_singles(each) for each in value]
    if isinstance(value, str) and value[0] in "[{":
        return in_singles(json.loads(value))
    try:
        return float(np.float32(value))
    except ValueError:
        return value


def test_the_scores_of_ranklib_itself():
    golden = RECORDED["no_missing"]
    kept, rows = golden["ranklib"], np.array(golden["X"], float)
    export = er.export(er.models.TreeEnsemble.of_lightgbm(golden["lightgbm_text"]), "ranklib")
    for text in (kept["model"], export.text):
        np.testing.assert_array_equal([engines.ranklib(text, row) for row in rows], kept["scores"])
        np.testing.assert_array_equal(export.target.scores(text.encode(), rows, FEATURES), kept["scores"])
    numbers = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|1e-35")
    assert numbers.sub("", export.text) == numbers.sub("", kept["model"])


@given(st.integers(0, 10**6))
def test_linear_models_and_networks(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 4)).astype(np.float32).astype(float)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    linear = er.models.Linear(rng.normal(size=4) * [1, 1e-6, 1e6, 0], FEATURES, missing="zero")
    moved = er.models.Linear(linear.weights, FEATURES, missing="zero", offset=rng.integers(-8, 8, 4) / 4)
    network = er.models.Network(*(rng.normal(size=size) for size in ((3, 4), 3, 3, 4)), rng.uniform(0.5, 2, 4), FEATURES, missing="zero")
    for scorer, to in [(linear, "elasticsearch-ltr"), (linear, "opensearch-ltr"), (linear, "solr"), (moved, "solr"), (network, "solr")]:
        export, terms = er.export(scorer, to), plain(er.Model(scorer))
        theirs, offset = export.target.scores(export.content, rows, FEATURES), scorer.offset
        ours = scorer.score(np.nan_to_num(rows) - (0 if offset is None else offset), offset=offset)
        np.testing.assert_array_equal(theirs, slow(export, to, rows))
        bound = _rounding(terms, rows, float(np.finfo(np.float32).eps))
        assert np.all(np.abs(theirs - ours) <= bound)
    body = json.loads(er.export(network, "solr").content)
    assert all(
        isinstance(number, float) for layer in body["params"]["layers"] for row in [*layer["matrix"], layer["bias"]] for number in row
    )


def test_what_is_written():
    linear = er.models.Linear(np.array([0.7, 0.0]), ("bm25", "dense"))
    body = json.loads(er.export(linear, "opensearch-ltr", model_name="best").content)
    assert body == {"model": {"name": "best", "model": {"type": "model/linear", "definition": '{"bm25":0.7,"dense":0.0}'}}}
    body = json.loads(er.export(linear, "solr", store="mine").content)
    weights = {"weights": {"bm25": 0.7, "dense": 0.0}}
    features = [{"name": "bm25"}, {"name": "dense"}]
    assert body == {
        "store": "mine",
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": "exactrank",
        "features": features,
        "params": weights,
    }
    step = er.models.Thresholds.from_steps([(1, 0.5, 2.0)], 2, ("bm25", "dense"))
    definition = json.loads(json.loads(er.export(step, "opensearch-ltr", missing_as_zero=True).content)["model"]["model"]["definition"])
    split = {"nodeid": 0, "depth": 0, "split": "dense", "split_condition": 0.50000006, "yes": 1, "no": 2, "missing": 1}
    leaves = [{"nodeid": 1, "leaf": 0.0}, {"nodeid": 2, "leaf": 2.0}]
    assert definition == {"objective": "rank:ndcg", "splits": [split | {"children": leaves}], "missing_as_zero": True}


def test_a_constant_is_in_a_leaf_or_a_bias_or_told_of():
    linear = er.models.Linear(np.ones(4), FEATURES, offset=np.array([1.0, 2, 3, 4]))
    (_, message) = er.export(linear, "elasticsearch-ltr").remarks
    assert message.startswith("the format has no constant term")
    assert json.loads(er.export(linear, "solr").content)["params"]["layers"][0]["bias"] == [-10.0]


def test_solr_says_which_thresholds_are_off():
    step = er.models.Thresholds.from_steps([(0, -1e-20, 1.0), (0, 0.5, 1.0)], 4, FEATURES)
    (message,) = er.export(step, "solr").remarks
    assert message.startswith("1 of 2 thresholds are off, by at most 1e-13: Solr adds 1e-06 to each")
    assert er.export(er.models.Thresholds.from_steps([(0, 0.5, 1.0)], 4, FEATURES), "solr").remarks == ()


def test_elasticsearch_has_what_eland_writes():
    transformers = pytest.importorskip("eland.ml.transformers.lightgbm", reason="eland is not installed")
    rng = np.random.default_rng(0)
    rows = rng.normal(5, size=(200, 4)).astype(np.float32)  # without zeros, around which LightGBM's thresholds are special
    rows[rng.random(rows.shape) < 0.1] = np.nan
    model = lgb.LGBMRegressor(n_estimators=10, num_leaves=8, objective="regression", verbose=-1).fit(rows, rows[:, 0] > rows[:, 1])
    theirs = transformers.LGBMRegressorTransformer(model, list(FEATURES)).transform().serialize_model()
    export = er.export(er.models.TreeEnsemble(read_lightgbm(model.booster_.model_to_string())[0], FEATURES), "elasticsearch")
    ours = json.loads(export.content)["definition"]

    def nodes(definition):
        return [node for tree in definition["trained_model"]["ensemble"]["trained_models"] for node in tree["tree"]["tree_structure"]]

    for node in nodes(theirs):
        node.pop("number_samples", None)  # which only importances of features are made of
    assert ours == theirs  # missing values were seen in training, so that default_left means something
    whole = lgb.LGBMRegressor(n_estimators=2, objective="regression", verbose=-1).fit(
        np.nan_to_num(rows) - 5, np.nan_to_num(rows).sum(axis=1)
    )
    ours = json.loads(
        er.export(er.models.TreeEnsemble(read_lightgbm(whole.booster_.model_to_string())[0], FEATURES), "elasticsearch").content
    )["definition"]
    splits = [node for node in nodes(ours) if "threshold" in node]
    assert [node["default_left"] for node in splits] == [node["threshold"] >= 0 for node in splits]


def deep(levels):
    """A chain of splits: a leaf follows each."""
    splits, sides = np.arange(0, 2 * levels, 2), np.full((2, 2 * levels + 1), -1)
    sides[:, splits] = splits + 1, splits + 2
    numbers, value = np.arange(2 * levels + 1) // 2, np.arange(2 * levels + 1.0) // 2
    return er.models.TreeEnsemble(table_of([PlainTree(np.zeros_like(numbers), numbers.astype(float), *sides, value)], 1), ("a",))


@pytest.mark.parametrize("to", ["elasticsearch-ltr", "elasticsearch", "solr", "ranklib"])
def test_deep_trees_are_written_or_refused(to):
    export = er.export(deep(DEEPEST), to)
    rows = np.arange(-1, DEEPEST + 2.0)[:, None]
    np.testing.assert_array_equal(export.target.scores(export.content, rows, ("a",)), np.clip(np.ceil(rows[:, 0]), 0, DEEPEST))
    if to != "elasticsearch":  # whose nodes do not hold each other
        with pytest.raises(IncompatibleError, match=f"{DEEPEST + 1} splits deep.*train with depth={DEEPEST}"):
            er.export(deep(DEEPEST + 1), to)


@pytest.mark.parametrize("to", ["elasticsearch-ltr", "elasticsearch", "solr", "ranklib"])
def test_trees_that_are_a_leaf_are_written_and_no_trees_refused(to):
    export = er.export(er.models.TreeEnsemble.combine([deep(0), deep(1)], [1.0, 1.0]), to)
    np.testing.assert_array_equal(export.target.scores(export.content, np.array([[0.0], [1.0]]), ("a",)), [0, 1])
    with pytest.raises(IncompatibleError, match="scores all documents the same"):
        er.export(deep(1).first(0), to)


LINEAR, STEP = er.models.Linear(np.ones(4), FEATURES), er.models.Thresholds.from_steps([(0, 0.5, 1.0)], 4, FEATURES)
NETWORK = er.models.Network(np.ones((1, 4)), np.ones(1), np.ones(1), np.zeros(4), np.ones(4), FEATURES)
MEAN = replace(STEP, missing="mean", fill=np.ones(4))


@pytest.mark.parametrize(
    ("scorer", "to", "more", "error", "says"),
    [
        (NETWORK, "elasticsearch-ltr", {}, IncompatibleError, "cannot express hidden units; train a linear model"),
        (LINEAR, "elasticsearch", {}, IncompatibleError, "cannot express weights of features; train trees"),
        (LINEAR, "ranklib", {}, IncompatibleError, "cannot express weights of features; train trees"),
        (sum_of([LINEAR, STEP], [1.0, 1.0]), "solr", {}, IncompatibleError, "cannot add up weights of features and trees"),
        (LINEAR, "elasticsearch-ltr", {"format": "xgboost"}, IncompatibleError, "cannot express weights of features; give format='linear'"),
        (STEP, "opensearch-ltr", {"format": "linear"}, IncompatibleError, "cannot express trees; give format='xgboost'"),
        (STEP, "elasticsearch-ltr", {"format": "xgbost"}, SettingError, 'did you mean "xgboost"'),
        (MEAN, "elasticsearch-ltr", {}, IncompatibleError, r"\(missing='mean'\); train with missing='zero' or missing='keep'"),
        (MEAN, "ranklib", {}, IncompatibleError, r"\(missing='mean'\); train with missing='zero'$"),
        (MEAN, "solr", {}, IncompatibleError, "missing='mean'"),
        (MEAN, "elasticsearch", {}, IncompatibleError, "missing='mean'"),
        (LINEAR, "opensearch-ltr", {"missing_as_zero": True}, SettingError, "no effect with format='linear'"),
        (STEP, "elasticsearch-ltr", {"missing_as_zero": True}, SettingError, "missing_as_zero"),
        (STEP, "elasticsearch", {"model_name": "My model"}, SettingError, "is not a valid id"),
        (
            er.models.Linear(np.full(4, 1e39), FEATURES),
            "elasticsearch-ltr",
            {},
            IncompatibleError,
            "a weight of 1e[+]39 is beyond single precision",
        ),
        (
            er.models.Thresholds.from_steps([(0, 0.5, -1e39)], 4, FEATURES),
            "solr",
            {},
            IncompatibleError,
            "a leaf of -1e[+]39 is beyond single",
        ),
    ],
)
def test_what_cannot_be_expressed_is_refused(scorer, to, more, error, says):
    with pytest.raises(error, match=says):
        er.export(scorer, to, **more)


def test_kept_missing_values_are_refused_where_absent_is_zero():
    kept = forest(0, holes=0.3)
    for to, more in (("ranklib", {}), ("elasticsearch-ltr", {"format": "ranklib"}), ("opensearch-ltr", {"missing_as_zero": True})):
        with pytest.raises(IncompatibleError, match="train with missing='zero'"):
            er.export(kept, to, **more)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_no_numbers_never_get_here(weight):
    with pytest.raises(DataError, match="finite"):
        er.models.Linear(np.array([weight]), ("a",))
