"""Laws of the rankers that climb the measure itself, and of the boosting ones: on tied data, by weights of queries, and when killed."""

import numpy as np
import pytest

import exactrank as er
from exactrank.rankers.training_data import in_content_order
from tests import killed
from tests.rankers.test_rankers import judged, mean

KINDS = {
    "bags": lambda **more: er.DirectRank(**({"bags": 3} | more)),
    "bags, cross-fitted": lambda **more: er.DirectRank(**({"bags": 3, "bagging": "cross-fit", "max_iter": 3} | more)),
    "one run": lambda **more: er.DirectRank(**({"bags": 0, "start": "zero"} | more)),
    "restarts": lambda **more: er.DirectRank(**({"bags": 0, "restarts": 3, "order": "random", "start": "random"} | more)),
    "powell": lambda **more: er.DirectRank(**({"bags": 0, "solver": "powell", "start": "random", "tolerance": 0.0} | more)),
    "coordinate ascent": lambda **more: er.CoordinateAscent(**({"restarts": 2, "max_iter": 3, "tries": 6, "standardize": False} | more)),
    "spsa": lambda **more: er.SPSARank(**({"max_iter": 25, "restarts": 2, "hidden": 2} | more)),
    "fdsa": lambda **more: er.SPSARank(**({"max_iter": 8, "solver": "fdsa", "start": "ridge"} | more)),
    "adarank": lambda **more: er.AdaRank(**({"max_iter": 25} | more)),
    "rankboost": lambda **more: er.RankBoost(**({"max_iter": 25} | more)),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
TIES = ("input", "docid", "pessimistic", "expected")


def tied(seed=0, queries=15, documents=8):
    """Features of three values and every document twice, once with another grade: few scores for many documents, in no order."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (queries, documents // 2, 3)).astype(np.float32)
    X = np.concatenate([X, X], axis=1).reshape(-1, 3)
    y = np.clip(np.round(X @ [1.0, -1.0, 0.5] + rng.standard_normal(len(X))), 0, 3)
    docid = [f"d{place}" for place in rng.permutation(len(X))]
    return er.RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents), docid=docid)


@EVERY_KIND
@pytest.mark.parametrize("ties", TIES)
def test_what_is_reported_of_tied_data_is_what_evaluation_says(kind, ties):
    measure = f"nDCG(ties='{ties}')@5"
    data, valid = tied(), tied(1)
    assert len({mean(f"nDCG(ties='{way}')@5", data, data.X @ [1.0, -1.0, 0.0]) for way in TIES}) == 4  # else this test says nothing
    for held_out in (None, valid):
        ranker = KINDS[kind](measure=measure).fit(data, valid=held_out)
        assert ranker.model_.training["value"] == mean(measure, data, ranker.predict(data))
        learnt = held_out is None or "cross-fitted" in kind  # where parts choose, validation data are learnt from
        assert ranker.model_.training["valid"] == (None if learnt else mean(measure, valid, ranker.predict(valid)))
    ordered = in_content_order(data)  # in which training ranks what is tied
    ranker = KINDS[kind](measure=measure).fit(ordered)
    message = [progress.value for progress in ranker.history_]
    assert mean(measure, ordered, ranker.predict(ordered)) in (message[-1:] if kind in ("bags", "rankboost") else message)


@EVERY_KIND
def test_a_lucky_order_of_ties_teaches_nothing(kind):
    """Whatever breaks ties when a model is evaluated, in training they count severely."""
    data = tied()
    for valid in (None, tied(1)):
        results = [KINDS[kind](measure=f"nDCG(ties='{ties}')@5").fit(data, valid=valid).predict(data).tobytes() for ties in TIES[:3]]
        assert len(set(results)) == 1


#: Bootstrap samples and folds are drawn by query, so that a query that comes twice changes what is drawn.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if "bags" not in kind])
def test_a_query_of_weight_2_is_two_queries_and_one_of_weight_0_is_none(kind):
    """All queries have the same documents, so that their features have one deviation whatever the weights. They disagree."""
    rng = np.random.default_rng(3)
    documents, weight = rng.standard_normal((8, 3)).astype(np.float32), np.array([2.0, 0.0, 1.0, 1.0] * 4)
    ways = np.array([[1.0, -0.5, 0.2], [-1.0, 2.0, 0.0], [0.0, -1.0, 1.0], [-1.0, 0.0, 0.5]] * 4)
    y = (ways @ documents.T + rng.standard_normal((16, 8)) > 0).astype(float)
    times = np.repeat(np.arange(16), weight.astype(int))
    weighted, repeated = (
        KINDS[kind](measure="P@4").fit(np.tile(documents, (len(rows), 1)), y[rows].ravel(), group=[8] * len(rows), query_weight=own)
        for rows, own in ((np.arange(16), weight), (times, None))
    )
    even = KINDS[kind](measure="P@4").fit(np.tile(documents, (16, 1)), y.ravel(), group=[8] * 16)
    assert not np.allclose(even.predict(documents), weighted.predict(documents))  # else this test says nothing
    np.testing.assert_allclose(weighted.predict(documents), repeated.predict(documents), rtol=1e-9)
    assert weighted.model_.training["value"] == pytest.approx(repeated.model_.training["value"], rel=1e-12)


def cases():
    return {
        f"{kind}{' with validation' if valid else ''}": (KINDS[kind](measure="nDCG@5", seed=4), judged(noise=2.0), valid)
        for kind in KINDS
        for valid in (None, judged(seed=1))
        if valid is None or kind in ("bags", "restarts", "rankboost", "spsa")
    }


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    folder, fitted = tmp_path_factory.mktemp("killed"), killed.unbroken(cases())
    killed.killed(__name__, fitted, folder)
    return folder, fitted


@pytest.mark.parametrize("name", cases())
def test_training_killed_at_a_random_moment_resumes_to_the_bit(name, broken_off):
    folder, fitted = broken_off
    killed.assert_resumed(fitted[name], cases()[name], folder / f"{name}.json")


@pytest.mark.parametrize("kind", ["adarank", "rankboost"])
def test_a_single_run_may_go_on_for_longer(kind):
    data, models = judged(noise=2.0), []
    short = KINDS[kind](measure="nDCG@5", max_iter=5)
    short.fit(data, checkpoint=models.append)
    longer = KINDS[kind](measure="nDCG@5").fit(data, resume=models[0])
    whole = KINDS[kind](measure="nDCG@5").fit(data)
    assert longer.predict(data).tobytes() == whole.predict(data).tobytes()
    assert [progress.value for progress in longer.history_] == [progress.value for progress in whole.history_]
