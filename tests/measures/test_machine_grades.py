"""Means that are corrected by human grades: laws, coverage by simulation, agreement of judges, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import cohen_kappa_score

import exactrank as er
from exactrank._support.distributions import t_quantile, two_sided_t
from exactrank.measures.machine_grades import agreement, corrected_mean
from tests.reference.machine_grades import slow_mean


def drawn_values(rng, queries):
    """Values of queries by human grades, and by those of a judge who overrates."""
    human = np.where(rng.random(queries) < 0.1, 0.0, rng.beta(2.5, 1.5, queries))
    return human, np.clip(0.6 * human + 0.3 + 0.1 * rng.standard_normal(queries), 0, 1)


def graded(queries, first=0, *, bias=0.0, seed=0, documents=12):
    rng = np.random.default_rng(seed)
    y = np.clip(np.round(rng.gamma(0.7, 1.0, queries * documents)), 0, 4)
    y = np.clip(y + (rng.random(len(y)) < bias), 0, 4)
    return er.RankingData.from_arrays(None, y, qid=first + np.repeat(np.arange(queries), documents))


@pytest.fixture(scope="module")
def judgments():
    """Human grades of 30 queries, machine grades of 200, and scores of both."""
    truth, rng = graded(200), np.random.default_rng(1)
    machine = replace(truth, y=np.clip(truth.y + (rng.random(truth.n_documents) < 0.3), 0, 4))
    scores = truth.y + rng.normal(0, 2, truth.n_documents)
    human = truth.take_queries(np.arange(30))
    return human, scores[: human.n_documents], machine, scores


# ---- the mean


@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(3, 60), st.floats(0, 1))
def test_the_mean_is_that_of_the_formula(seed, n, further, share):
    rng = np.random.default_rng(seed)
    human, machine = drawn_values(rng, n)
    more = drawn_values(rng, further)[1]
    ours = corrected_mean(human, machine, more, machine_weight=share)
    mean, error = slow_mean(human, machine, more, share)
    assert ours.mean == pytest.approx(mean)
    assert ours.standard_error == pytest.approx(error)


def test_without_weight_it_is_the_human_mean_to_the_bit(judgments):
    human, scores, machine, machine_scores = judgments
    alone = er.evaluate(human, scores, "nDCG@10")["nDCG@10"]
    by_machine = er.evaluate(machine, machine_scores, "nDCG@10")["nDCG@10"].values
    ours = corrected_mean(alone.values, by_machine[:30], by_machine[30:], machine_weight=0.0)
    assert ours.mean == alone.mean == ours.human.mean
    assert ours.interval == ours.human.interval
    assert ours.worth == 30


def test_the_chosen_weight_has_the_least_variance():
    rng = np.random.default_rng(0)
    human, machine = drawn_values(rng, 4000)
    more = drawn_values(rng, 8000)[1]
    best = corrected_mean(human, machine, more)
    assert 0 < best.machine_weight < 1
    for share in (best.machine_weight - 0.1, best.machine_weight + 0.1):
        assert corrected_mean(human, machine, more, machine_weight=share).standard_error > best.standard_error


def test_a_weight_of_two_is_two_queries_of_the_mean():
    rng = np.random.default_rng(3)
    human, machine = drawn_values(rng, 20)
    more, weight = drawn_values(rng, 50)[1], np.ones(20)
    weight[:5] = 2.0
    twice = corrected_mean(*(np.append(values, values[:5]) for values in (human, machine)), more, machine_weight=0.7)
    ours = corrected_mean(human, machine, more, weight=weight, machine_weight=0.7)
    assert ours.mean == pytest.approx(twice.mean)
    assert ours.standard_error > twice.standard_error  # a weight is not another query


def test_skipped_queries_do_not_count():
    rng = np.random.default_rng(4)
    human, machine = drawn_values(rng, 20)
    more = drawn_values(rng, 50)[1]
    holes = [np.append(values, np.nan) for values in (human, machine, more)]
    assert corrected_mean(*holes) == corrected_mean(human, machine, more)


@pytest.mark.parametrize("queries", [30, 60, 200])
def test_intervals_cover(queries):
    rng = np.random.default_rng(queries)
    truth = drawn_values(rng, 1_000_000)[0].mean()
    results = [corrected_mean(*drawn_values(rng, queries), drawn_values(rng, 1000)[1]) for _ in range(200)]
    covered = np.mean([low <= truth <= high for low, high in (result.interval for result in results)])
    assert 0.90 <= covered <= 0.99  # 95% within three standard errors of 200 simulations
    assert np.mean([result.standard_error / result.human.standard_error for result in results]) < 0.8


@pytest.mark.parametrize("degrees", [1, 2.5, 7, 40, 1e6])
@pytest.mark.parametrize("p", [0.6, 0.95, 0.975, 0.9995])
def test_quantiles_invert_probabilities(p, degrees):
    assert two_sided_t(t_quantile(p, degrees), degrees) == pytest.approx(2 * (1 - p), rel=1e-9)


def test_values_agree_with_the_library_of_the_method():
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    rng = np.random.default_rng(5)
    human, machine = drawn_values(rng, 200)
    more = drawn_values(rng, 1000)[1]
    for share in (0.0, 0.5, 1.0):
        ours = corrected_mean(human, machine, more, machine_weight=share)
        low, high = (float(np.ravel(end)[0]) for end in ppi.ppi_mean_ci(human, machine, more, alpha=0.05, lam=share))
        assert ours.mean == pytest.approx((low + high) / 2)
        assert ours.interval == pytest.approx((low, high), abs=5e-4)  # by the normal distribution, with n for n - 1


# ---- evaluation


def test_evaluate_corrects_the_mean(judgments):
    human, scores, machine, machine_scores = judgments
    alone = er.evaluate(human, scores, ["nDCG@10", "AP"])
    ours = er.evaluate(human, scores, ["nDCG@10", "AP"], machine=(machine, machine_scores))
    assert ours.machine is not None
    for name in ours:
        corrected = ours.machine.means[name]
        assert ours[name].mean == ours.means[name] == corrected.mean
        assert ours[name].interval == corrected.interval
        assert corrected.human.mean == alone[name].mean
        assert corrected.worth > 30
    np.testing.assert_array_equal(ours.per_query, alone.per_query)
    assert "as good as" in repr(ours.machine)
    assert ours.machine.to_frame().shape[0] == 2


def test_a_model_scores_the_queries_of_the_machine():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=1200), [0, 1, 2])
    data = er.RankingData.from_arrays(X, y, group=[20] * 60)
    human = data.take_queries(np.arange(20))
    model = er.Ridge().fit(data)
    ours = er.evaluate(human, model, "nDCG@10", machine=data)
    theirs = er.evaluate(human, model.predict(human), "nDCG@10", machine=(data, model.predict(data)))
    assert ours.means == theirs.means


def test_a_machine_that_is_right_about_everything_is_as_good_as_people():
    truth = graded(500)
    scores = truth.y + np.random.default_rng(2).normal(0, 2, truth.n_documents)
    human = truth.take_queries(np.arange(25))
    ours = er.evaluate(human, scores[: human.n_documents], "nDCG@10", machine=(truth, scores))
    assert ours.machine.agreement.kappa == 1.0
    values = er.evaluate(truth, scores, "nDCG@10")["nDCG@10"].values
    assert ours.machine.means["nDCG@10"].standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(500), rel=0.1)


def test_a_constant_machine_adds_nothing():
    truth = graded(100)
    scores = truth.y + np.random.default_rng(2).normal(0, 2, truth.n_documents)
    machine = replace(truth, y=np.zeros(truth.n_documents))
    human = truth.take_queries(np.arange(25))
    ours = er.evaluate(human, scores[: human.n_documents], "nDCG@10", machine=(machine, scores))
    corrected = ours.machine.means["nDCG@10"]
    assert corrected.machine_weight == 0.0
    assert corrected.interval == corrected.human.interval
    assert "add nothing" in corrected.remark


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda human, machine: (human, graded(50, first=900)), "none of the queries"),
        (lambda human, machine: (human, machine.take_queries(np.arange(10, 200))), "has not graded 10 of the 30 queries"),
        (lambda human, machine: (human, machine.take_queries(np.arange(30))), "no query beyond"),
        (lambda human, machine: (human.take_queries([0]), machine), "1 queries graded by people"),
        (lambda human, machine: (human, "grades"), "machine"),
    ],
)
def test_what_cannot_be_corrected_is_refused(judgments, change, message):
    human, machine = change(judgments[0], judgments[2])
    documents = machine.n_documents if isinstance(machine, er.RankingData) else 1
    with pytest.raises(er.errors.ExactRankError, match=message):
        er.evaluate(human, np.zeros(human.n_documents), "nDCG@10", machine=(machine, np.zeros(documents)))


def test_clicks_and_several_files_are_not_corrected(judgments, tmp_path):
    human, scores, machine, machine_scores = judgments
    er.write(human, path := tmp_path / "part-0000.xr")
    with pytest.raises(er.errors.DataError, match="one file"):
        er.evaluate(er.read_shards([path]), scores, "nDCG@10", machine=(machine, machine_scores))
    log = er.clicks.Clicks.from_arrays(["0"], ["d"], [1], [True])
    with pytest.raises(er.errors.DataError, match="leave out clicks"):
        er.evaluate(human, scores, "nDCG@10", clicks=log, machine=(machine, machine_scores))


# ---- agreement


@given(st.integers(0, 2**32 - 1))
def test_kappa_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    human = graded(8, seed=seed)
    machine = replace(human, y=np.clip(human.y + rng.integers(-1, 2, human.n_documents), 0, 4))
    ours = agreement(human, machine)
    assert ours.kappa == pytest.approx(cohen_kappa_score(human.y, machine.y, weights="quadratic"), nan_ok=True)
    assert sum(map(sum, ours.table)) == ours.documents == human.n_documents
    assert ours.bias == pytest.approx(np.mean(machine.y - human.y))


def test_documents_are_matched_by_their_ids():
    human = er.RankingData.from_arrays(None, [2, 0, 1], qid=["a", "a", "b"], docid=["x", "y", "x"])
    machine = er.RankingData.from_arrays(None, [3, 0, 1, 2], qid=["b", "a", "a", "c"], docid=["z", "y", "x", "x"])
    ours = agreement(human, er.RankingData.from_arrays(None, [3, 0, 1], qid=["b", "a", "a"], docid=["z", "y", "x"]))
    assert ours.documents == 2  # x and y of query a
    assert ours == agreement(human, machine)


def test_documents_that_cannot_be_matched_are_refused():
    human = er.RankingData.from_arrays(None, [2, 0], qid=["a", "a"])
    machine = er.RankingData.from_arrays(None, [2, 0, 1], qid=["a", "a", "a"])
    with pytest.raises(er.errors.DataError, match="give both docid"):
        agreement(human, machine)


def test_judges_who_never_vary_have_no_kappa():
    human = er.RankingData.from_arrays(None, [1, 1, 1, 1], group=[2, 2])
    assert np.isnan(agreement(human, human).kappa)
