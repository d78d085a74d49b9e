"""The drop in a measure by each feature, against its definition, and for models of which it is known."""

import itertools
import json
import math
import sys
from dataclasses import dataclass, field, replace
from typing import ClassVar

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.errors import DataError, IncompatibleError, MeasureError, OutputExistsError, SettingError
from exactrank.inspect.importance import importance
from exactrank.models.lightgbm_text import read_lightgbm
from tests.reference import importance as reference
from tests.strategies import GRADES, MEASURES

NAMES = ("bm25", "dense", "length")
CELLS = st.integers(-3, 3).map(lambda i: i / 2)
SEEDS = st.integers(0, 2**32)


@dataclass(frozen=True)
class Trees:
    """A scorer with splits, which looks at ``dense`` where ``bm25`` is above 0, and never at ``length``; it counts its calls."""

    feature_names: tuple[str, ...] = NAMES
    calls: list[int] = field(default_factory=list)

    kind = "trees"
    n_features = 3
    levels: ClassVar = {}

    def score(self, X, threads=None, offset=None):
        self.calls.append(len(X))
        return np.where(X[:, 0] > 0, X[:, 1], -3.0).astype(np.float64)

    def importance(self, kind):
        return np.array({"gain": [7.5, 2.5, 0.0], "split": [1, 4, 0]}[kind], float)


NETWORK = er.models.Network(
    np.array([[1.0, -0.5, 0.25], [0.0, 2.0, 0.0]]), np.zeros(2), np.array([1.0, 0.5]), np.zeros(3), np.ones(3), NAMES
)
STEPS = er.models.Thresholds(
    (np.array([0.0]), np.array([-1.0, 0.5]), np.array([])), (np.array([1.0]), np.array([0.5, 2.0]), np.array([])), NAMES
)
SCORERS = st.one_of(
    st.tuples(CELLS, CELLS, CELLS).map(lambda weights: er.models.Linear(np.array(weights), NAMES)),
    st.sampled_from([NETWORK, STEPS, Trees()]),
)


@st.composite
def queries(draw):
    """Queries of up to 4 documents, interleaved, with few distinct numbers, so that documents tie; weights, some of them 0."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    qid = draw(st.permutations([q for q, size in enumerate(sizes) for _ in range(size)]))
    rows = [draw(st.tuples(GRADES, CELLS, CELLS, CELLS)) for _ in qid]
    weight = draw(st.one_of(st.none(), st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 3.0])] * len(sizes)).filter(any)))
    y, *X = np.array(rows).T
    return er.RankingData.from_arrays(np.array(X).T, y, qid=qid, query_weight=weight, feature_names=NAMES)


def some_data(seed=0, n_queries=30, documents=8):
    """Data without ties, of which the first feature says most and the last one nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * documents, 3)).astype(np.float32)
    y = np.clip(np.round(X @ [1.0, -0.5, 0.0] + rng.normal(scale=0.4, size=len(X)) + 0.3), 0, 3)
    return er.RankingData.from_arrays(X, y, group=[documents] * n_queries, feature_names=NAMES)


def linear(*weights, measure=None):
    return er.Model(er.models.Linear(np.array(weights), NAMES[: len(weights)]), measure)


def counts(measure, data):
    """Does the measure have a mean over the queries that weigh something?"""
    return not math.isnan(er.evaluate(data, np.zeros(data.n_documents), [measure]).means[str(measure)])


# ---- against the definition


@given(SCORERS, queries(), MEASURES, st.integers(1, 3), SEEDS)
@settings(max_examples=50)
def test_drops_and_errors_equal_the_slow_twin(scorer, data, measure, repeats, seed):
    assume(counts(measure, data))
    ours = importance(data, er.Model(scorer), measure, repeats=repeats, seed=seed)
    value, theirs = reference.drops(measure, scorer, data, repeats, seed)
    assert ours.value == pytest.approx(value, abs=1e-12)
    for feature, (drop, error) in zip(ours.per_feature, theirs, strict=True):
        assert feature.drop == pytest.approx(drop, abs=1e-12)
        assert feature.error == pytest.approx(error, abs=1e-12, nan_ok=True)


def test_on_average_every_order_of_a_query_is_as_likely():
    """Three documents, ranked by one feature, in many queries: the mean over all 6 orders."""
    grades, copies, repeats = [2, 1, 0], 300, 20
    data = er.RankingData.from_arrays([[3.0], [2.0], [1.0]] * copies, grades * copies, group=[3] * copies, feature_names=NAMES[:1])
    orders = [[grades[i] for i in order] for order in itertools.permutations(range(3))]
    values = [reference.query_value(er.measures.NDCG(), order, [3.0, 2.0, 1.0]) for order in orders]
    result = importance(data, linear(1.0), "nDCG", repeats=repeats).per_feature[0]
    assert result.drop == pytest.approx(1 - np.mean(values), abs=4 * np.std(values) / math.sqrt(copies * repeats))
    assert result.error == pytest.approx(np.std(values) / math.sqrt(copies * repeats), rel=0.2)


def test_the_error_is_how_far_drops_are_from_those_of_other_queries():
    results = [importance(some_data(seed), linear(1.0, -0.5, 0.1), "nDCG@5", repeats=2, seed=seed) for seed in range(200)]
    for j in (0, 1):
        drops, errors = zip(*((each.per_feature[j].drop, each.per_feature[j].error) for each in results), strict=True)
        assert np.mean(errors) == pytest.approx(np.std(drops), rel=0.2)


# ---- laws


@given(SCORERS, queries(), MEASURES, SEEDS)
@settings(max_examples=40)
def test_the_seed_decides_and_threads_do_not(scorer, data, measure, seed):
    assume(counts(measure, data))
    first, second = (importance(data, er.Model(scorer), measure, seed=seed, threads=threads).to_json() for threads in (1, 2))
    assert first == second


def test_other_seeds_draw_other_exchanges():
    model, data = linear(1.0, -0.5, 0.1), some_data()
    first, second = (importance(data, model, "nDCG@5", seed=seed) for seed in (0, 1))
    assert first.value == second.value
    assert all(a.drop != b.drop for a, b in zip(first.per_feature, second.per_feature, strict=True))


@given(SCORERS, queries(), st.permutations(range(3)), SEEDS)
@settings(max_examples=40)
def test_columns_may_come_in_any_order(scorer, data, order, seed):
    shuffled = replace(data, X=data.X[:, order], feature_names=tuple(NAMES[j] for j in order))
    first, second = (importance(each, er.Model(scorer), "nDCG@3", seed=seed).to_json() for each in (data, shuffled))
    assert first == second


@given(SCORERS, queries(), SEEDS)
@settings(max_examples=40)
def test_queries_may_be_interleaved(scorer, data, seed):
    apart = data.take_queries(range(data.n_queries))
    first, second = (importance(each, er.Model(scorer), "nDCG@3", seed=seed).to_json() for each in (data, apart))
    assert first == second


@given(st.integers(0, 2), CELLS.filter(bool), queries(), MEASURES, SEEDS)
@settings(max_examples=60)
def test_a_model_of_one_feature_loses_by_that_alone(j, weight, data, measure, seed):
    assume(counts(measure, data))
    result = importance(data, linear(*(weight if i == j else 0.0 for i in range(3))), measure, seed=seed)
    alone = replace(data, X=data.X[:, [j]], feature_names=(NAMES[j],))
    theirs = importance(alone, er.Model(er.models.Linear(np.array([weight]))), measure, seed=seed).per_feature[0]
    for i, feature in enumerate(result.per_feature):
        if i == j:
            assert repr(feature) == repr(theirs)
        else:
            assert feature.idle
            assert feature.drop == 0


@given(SCORERS, queries(), st.integers(0, 2), SEEDS)
@settings(max_examples=40)
def test_a_feature_that_is_the_same_within_each_query_changes_nothing(scorer, data, j, seed):
    X, first = data.X.copy(), np.repeat(data.indptr[:-1], data.sizes)
    X[:, j] = X[first, j]
    assert importance(replace(data, X=X), er.Model(scorer), "nDCG@3", seed=seed).per_feature[j].idle


@given(SCORERS, queries(), st.sampled_from([0.25, 4.0]), SEEDS)
@settings(max_examples=30)
def test_only_ratios_of_query_weights_count(scorer, data, factor, seed):
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    first, second = (importance(replace(data, query_weight=weight * by), er.Model(scorer), "nDCG@3", seed=seed) for by in (1.0, factor))
    assert first.to_json() == second.to_json()


def test_what_cannot_change_is_not_scored(monkeypatch):
    """A feature without a weight, and one that is the same within each query; the data stays as it was."""
    data = some_data()
    X = data.X.copy()
    X[:, 1] = 0.5
    before = data.X.copy()
    all_vary, one_constant = Trees(), Trees()
    importance(data, er.Model(all_vary), "AP", repeats=3)
    importance(replace(data, X=X), er.Model(one_constant), "AP", repeats=3)
    assert (len(all_vary.calls), len(one_constant.calls)) == (1 + 3 * 3, 1 + 3 * 2)
    scored = []
    plain = er.models.Linear.score
    monkeypatch.setattr(er.models.Linear, "score", lambda self, X, *arguments: scored.append(X.shape) or plain(self, X, *arguments))
    importance(data, linear(1.0, 0.0, 0.5), "AP", repeats=3)
    assert len(scored) == 1 + 3 * 2
    assert np.array_equal(data.X, before)


def test_gains_that_make_up_for_losses_are_not_nothing():
    """Both queries have two documents, one ranked well and one badly: every exchange that one loses by the other gains by."""
    data = er.RankingData.from_arrays([[2.0], [1.0]] * 40, [1, 0, 0, 1] * 20, group=[2] * 40, feature_names=NAMES[:1])
    results = [importance(data, linear(1.0), "RR", repeats=1, seed=seed).per_feature[0] for seed in range(60)]
    even = [feature for feature in results if feature.drop == 0]
    assert even
    assert not any(feature.idle for feature in even)


def test_missing_values_move_with_the_others():
    data = some_data()
    X = data.X.copy()
    X[::3, 0] = np.nan
    holes, zeros = (replace(data, X=filled) for filled in (X, np.nan_to_num(X)))
    model = linear(1.0, -0.5, 0.1)
    with pytest.raises(DataError, match="values are missing"):
        importance(holes, model, "AP")
    kept = replace(model, scorer=replace(model.scorer, missing="zero"))
    assert importance(holes, kept, "AP") == importance(zeros, model, "AP")


# ---- models from anywhere, and what is refused


def test_the_measure_is_by_default_the_one_trained_on():
    data = some_data()
    ranker = er.DirectRank(measure="nDCG@5", bags=0).fit(data)
    result = importance(data, ranker)
    assert repr(result.measure) == ranker.model_.measure
    assert result.value == pytest.approx(ranker.score(data), abs=1e-12)
    assert result == importance(data, ranker.model_, ranker.model_.measure)
    first, second, third = result.per_feature
    assert first.drop > second.drop > max(third.drop, 0)
    assert first.clear
    assert second.clear
    assert f"exchanging bm25 costs most, {first.drop:.4f}" in repr(result)


def test_ties_broken_by_document_id():
    data = er.RankingData.from_arrays([[2.0], [1.0], [3.0]], [1, 0, 0], group=[3], docid=["a", "b", "c"], feature_names=NAMES[:1])
    assert importance(data, linear(1.0), "RR(ties='docid')", repeats=1).value == 0.5


def test_trees_say_what_their_splits_are_worth():
    first, second, third = importance(some_data(), er.Model(Trees()), "AP").per_feature
    assert (first.gain, first.splits) == (7.5, 1)
    assert (second.gain, second.splits) == (2.5, 4)
    assert (third.gain, third.splits, third.drop, third.error) == (0.0, 0, 0, 0)
    assert {feature.gain for feature in importance(some_data(), linear(1.0, 1.0, 1.0), "AP").per_feature} == {None}


def test_trees_of_lightgbm():
    """The last feature is constant, so no tree can split by it."""
    data = some_data(n_queries=12)
    X = data.X.copy()
    X[:, 2] = 1.0
    data = replace(data, X=X)
    settings = {"objective": "regression", "num_leaves": 4, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1}
    table, _, _ = read_lightgbm(lgb.train(settings, lgb.Dataset(X, data.y), 8).model_to_string())
    scorer = er.models.TreeEnsemble(table, NAMES)
    ours = importance(data, er.Model(scorer), er.measures.NDCG(k=5), repeats=2, seed=7)
    _, theirs = reference.drops(er.measures.NDCG(k=5), scorer, data, 2, 7)
    assert [(f.drop, f.error) for f in ours.per_feature] == [pytest.approx(pair, abs=1e-12) for pair in theirs]
    first, second, third = ours.per_feature
    assert first.gain > second.gain > 0
    assert first.splits + second.splits <= 8 * 3
    assert (third.gain, third.splits, third.idle) == (0, 0, True)


def test_one_query_has_no_error():
    result = importance(some_data(n_queries=1), linear(1.0, 0.0, 0.0), "AP")
    assert math.isnan(result.per_feature[0].error)
    assert [feature.idle for feature in result.per_feature] == [False, True, True]
    assert result.to_json()["per_feature"][0]["error"] is None


def test_verdicts():
    data = some_data()
    assert "exchanging any of 3 features changes nothing" in importance(data, linear(0.0, 0.0, 0.0), "AP").verdict
    assert "exchanging no feature lowers it" in importance(data, linear(-1.0, 0.0, 0.0), "AP").verdict


@pytest.mark.parametrize(
    ("model", "change", "measure", "repeats", "error", "message"),
    [
        (linear(1.0, 1.0, 1.0), {}, "AP", 0, SettingError, "repeats must be at least 1, got 0"),
        (linear(1.0, 1.0, 1.0), {}, None, 5, IncompatibleError, "--measure nDCG@10"),
        (linear(1.0, 1.0, 1.0), {}, "nonsense", 5, MeasureError, "nonsense"),
        (linear(1.0, 1.0, 1.0), {"feature_names": ("a", "b", "c")}, "AP", 5, IncompatibleError, "it lacks bm25, dense, length"),
        (linear(1.0, 1.0, 1.0), {"X": np.empty((240, 0), np.float32), "feature_names": ()}, "AP", 5, IncompatibleError, "it lacks bm25"),
        (er.Model(er.models.Linear(np.ones(2))), {}, "AP", 5, IncompatibleError, "has 3 features but the model has 2"),
        (linear(1.0, 1.0, 1.0), {"y": np.zeros(240)}, "AP(empty='skip')", 5, DataError, "skips every query"),
        (er.DirectRank(), {}, "AP", 5, IncompatibleError, "DirectRank is not a model"),
    ],
)
def test_what_is_refused(model, change, measure, repeats, error, message):
    with pytest.raises(error, match=message):
        importance(replace(some_data(), **change), model, measure, repeats=repeats)


# ---- what it gives


def test_json_has_everything():
    result = importance(some_data(), linear(1.0, -0.5, 0.0), "nDCG@5", repeats=2, seed=3)
    plain = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert (plain["measure"], plain["value"], plain["queries"]) == (repr(result.measure), result.value, 30)
    assert (plain["repeats"], plain["seed"], plain["verdict"]) == (2, 3, result.verdict)
    assert [(f["feature"], f["drop"], f["error"]) for f in plain["per_feature"]] == [
        (f.feature, f.drop, f.error) for f in result.per_feature
    ]


def test_ranked_has_the_largest_drop_first():
    result = importance(some_data(), linear(0.1, -1.0, 0.0), "nDCG@5")
    drops = [feature.drop for feature in result.ranked()]
    assert drops == sorted((feature.drop for feature in result.per_feature), reverse=True)
    assert result.ranked()[0].feature == "dense"


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_pictures(tmp_path, suffix):
    path = tmp_path / f"picture.{suffix}"
    data = replace(some_data(), feature_names=(r"$\nothing$", "b_$", "[c]"))
    result = importance(data, er.Model(er.models.Linear(np.array([1.0, -0.5, 0.1]))), "nDCG@5")
    result.plot(path=path)
    before = path.read_bytes()
    assert before[:4] in (b"\x89PNG", b"<?xm")
    with pytest.raises(OutputExistsError):
        result.plot(path=path)
    result.plot(path=path, features=1, force=True)
    assert path.read_bytes() != before
    importance(data.take_queries([0]), er.Model(er.models.Linear(np.ones(3))), "AP").plot(path=path, force=True)


def test_pictures_that_cannot_be(tmp_path, monkeypatch):
    result = importance(some_data(), linear(1.0, 0.0, 0.0), "AP")
    with pytest.raises(DataError, match="names no kind of picture"):
        result.plot(path=tmp_path / "a.bmp")
    with pytest.raises(DataError, match="features must be at least 1, got 0"):
        result.plot(path=tmp_path / "a.png", features=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(IncompatibleError, match=r"pip install 'exactrank\[report\]'"):
        result.plot(path=tmp_path / "a.png")


# ---- the command


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs ``exactrank inspect importance`` beside data and weights."""
    monkeypatch.chdir(tmp_path)
    er.write(replace(some_data(), feature_names=("1", "2", "3")), "data.txt")
    (tmp_path / "weights.json").write_text('{"1": 1, "2": -0.5, "3": 0}')

    def run(*words):
        result = CliRunner().invoke(app, ["inspect", "importance", *words], env={"COLUMNS": "200"})
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run


def test_command_prints_a_table(command):
    result = command("weights.json", "data.txt", "-m", "nDCG@5", "--top", "2")
    assert result.exit_code == 0
    assert "exchanging 1 costs most" in result.stdout
    assert "and 1 more features (--top)" in result.stdout
    assert "gain" not in result.stdout
    assert "none" in command("weights.json", "data.txt", "-m", "nDCG@5").stdout


def test_command_shows_the_splits_of_trees_and_names_as_they_are(command, monkeypatch):
    monkeypatch.setattr("exactrank.loading.load", lambda path, n_features, module, kind: er.Model(Trees(("1", "2", "3"))))
    shown = command("trees.json", "data.txt", "-m", "AP").stdout
    assert ("gain" in shown, "splits" in shown, "7.5" in shown) == (True, True, True)
    data = replace(some_data(), feature_names=("tf[title]", "2", "3"))
    monkeypatch.setattr("exactrank.loading.load", lambda path, n_features, module, kind: er.Model(Trees(data.feature_names)))
    monkeypatch.setattr("exactrank.cli.inspect.read", lambda path, options: data)
    assert "tf[title]" in command("trees.json", "data.txt", "-m", "AP").stdout


def test_command_prints_what_the_library_finds(command):
    result = command("weights.json", "data.txt", "-m", "AP", "--repeats", "2", "--seed", "4", "--threads", "1", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == importance(er.read("data.txt"), er.load("weights.json"), "AP", repeats=2, seed=4).to_json()


def test_command_draws(command, tmp_path):
    words = ("weights.json", "data.txt", "-m", "AP", "--plot", "p.png")
    assert command(*words).exit_code == 0
    assert (tmp_path / "p.png").stat().st_size > 1000
    refused = command(*words)
    assert refused.exit_code == 2
    assert "already exists" in refused.stderr
    assert command(*words, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("weights.json", "data.txt"), "name one, e.g. measure='nDCG@10' (--measure nDCG@10)"),
        (("weights.json", "data.txt", "-m", "nonsense"), "nonsense"),
        (("nowhere.json", "data.txt", "-m", "AP"), "nowhere.json does not exist"),
        (("weights.json", "data.txt", "-m", "AP", "--plot", "p.gif"), "names no kind of picture"),
        (("weights.json", "data.txt", "-m", "AP", "--features", "4"), "it has besides 4"),
        (("weights.json", "data.txt", "-m", "AP", "--repeats", "0"), "--repeats"),
        (("weights.json", "data.txt", "-m", "AP", "--top", "0"), "--top"),
    ],
)
def test_command_with_bad_input(command, words, message):
    result = command(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
