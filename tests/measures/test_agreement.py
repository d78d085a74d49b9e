"""Each preset gives the numbers of the tool it is named after, to 1e-9: with ties, empty queries, one-document
queries, lists shorter than k and, where the tool takes them, real-valued grades."""

import math
import shutil

import numpy as np
import pytest

import exactrank as er

CUTOFFS = (1, 3, 5, 10, 20)
SEEDS = range(8)


def hard_data(seed, *, real=False, least=1):
    """(y, s, qid) with every difficulty; scores are exact in single precision, which some tools use."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(least, 40, 50)
    qid = np.repeat(np.arange(50), sizes)
    y = rng.choice(5, size=len(qid), p=[0.6, 0.2, 0.1, 0.05, 0.05]).astype(float)
    if real:
        y = np.round(y * rng.random(len(y)), 2)
    y[qid % 7 == 0] = 0
    s = np.round(rng.normal(size=len(qid)), 1).astype(np.float32).astype(float)
    s[qid % 5 == 0] = np.round(s[qid % 5 == 0])
    return y, s, qid


def names(measure):
    return [f"{measure}@{k}" for k in CUTOFFS]


def agree(ours, theirs):
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_lightgbm(seed):
    lgb = pytest.importorskip("lightgbm")
    y, s, qid = hard_data(seed)
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": list(CUTOFFS), "verbose": -1}
    sizes = np.bincount(qid)
    dataset = lgb.Dataset(np.zeros((len(y), 1)), label=y, group=sizes, init_score=s, params={"feature_pre_filter": False, "verbose": -1})
    theirs = {name: value for _, name, value, _ in lgb.Booster(settings, dataset).eval_train()}
    data = er.RankingData.from_arrays(None, y, group=sizes)
    ours = er.evaluate(data, s, names("ndcg") + names("map"), preset="lightgbm").means
    agree(ours, theirs)


def xgboost_values(y, s, qid, metrics):
    xgb = pytest.importorskip("xgboost")
    matrix = xgb.DMatrix(np.zeros((len(y), 1)), label=y, qid=qid, base_margin=s)
    booster = xgb.Booster({"objective": "rank:ndcg", "eval_metric": metrics, "nthread": 1}, [matrix])
    pairs = (word.removeprefix("eval-").rsplit(":", 1) for word in booster.eval(matrix).split()[1:])
    return {name: float(value) for name, value in pairs}


@pytest.mark.parametrize("seed", SEEDS)
def test_xgboost(seed):
    y, s, qid = hard_data(seed)
    data = er.RankingData.from_arrays(None, y, qid=qid)
    metrics = ["ndcg", *names("ndcg")]
    agree(er.evaluate(data, s, metrics, preset="xgboost").means, xgboost_values(y, s, qid, metrics))
    binary = (y > 0).astype(float)
    data = er.RankingData.from_arrays(None, binary, qid=qid)
    theirs = xgboost_values(binary, s, qid, ["map", *names("map"), *names("pre")])
    ours = er.evaluate(data, s, ["map", *names("map"), *names("P")], preset="xgboost").means
    agree({name.replace("P@", "pre@"): value for name, value in ours.items()}, theirs)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_sklearn(seed, real):
    metrics = pytest.importorskip("sklearn.metrics")
    y, s, qid = hard_data(seed, real=real, least=2)
    data = er.RankingData.from_arrays(None, y, qid=qid)
    evaluation = er.evaluate(data, s, [*names("nDCG"), *names("DCG"), "nDCG"], preset="sklearn")
    for q in range(data.n_queries):
        grades, scores = [y[qid == q]], [s[qid == q]]
        for k in CUTOFFS:
            agree(evaluation[f"nDCG@{k}"].values[q], metrics.ndcg_score(grades, scores, k=k))
            agree(evaluation[f"DCG@{k}"].values[q], metrics.dcg_score(grades, scores, k=k))
        agree(evaluation["nDCG"].values[q], metrics.ndcg_score(grades, scores))


@pytest.mark.parametrize("seed", SEEDS)
def test_sklearn_auc(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    y, s, qid = hard_data(seed)
    data = er.RankingData.from_arrays(None, y, qid=qid)
    values = er.evaluate(data, s, "AUC", preset="sklearn")["AUC"].values
    for q in range(data.n_queries):
        if len(set(y[qid == q] >= 1)) == 2:
            agree(values[q], metrics.roc_auc_score(y[qid == q] >= 1, s[qid == q]))


@pytest.mark.parametrize("seed", SEEDS)
def test_trec_eval(seed):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    y, s, qid = hard_data(seed)
    rng = np.random.default_rng(seed)
    retrieved = (rng.random(len(y)) < 0.8) & (qid % 11 != 0)  # some judged documents, and all of some queries, are not
    judged = rng.random(len(y)) < 0.9
    docid = [f"d{i}" for i in rng.permutation(len(y))]
    qrels = {str(q): {} for q in range(50)}
    run = {str(q): {} for q in range(50)}
    for i in range(len(y)):
        if judged[i]:
            qrels[str(qid[i])][docid[i]] = int(y[i])
        if retrieved[i]:
            run[str(qid[i])][docid[i]] = float(s[i])
    run = {q: documents for q, documents in run.items() if documents}
    known = {"map", "map_cut", "ndcg", "ndcg_cut", "P", "recall", "recip_rank", "success", "bpref"}
    cutoffs = ",".join(map(str, CUTOFFS))
    asked = {f"{m}.{cutoffs}" if m in ("map_cut", "ndcg_cut", "P", "recall", "success") else m for m in known}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)

    kept = judged | retrieved
    data = er.RankingData.from_arrays(
        None, np.where(judged, y, -1)[kept], qid=qid[kept], docid=[d for d, k in zip(docid, kept, strict=True) if k]
    )
    scores = np.where(retrieved, s, -math.inf)[kept]
    trec_names = {"ndcg_cut_": "nDCG@", "map_cut_": "AP@", "P_": "P@", "recall_": "R@", "success_": "Success@"}
    ours_named = {"map": "AP", "ndcg": "nDCG", "recip_rank": "RR", "bpref": "Bpref"}
    ours_named |= {f"{trec}{k}": f"{name}{k}" for trec, name in trec_names.items() for k in CUTOFFS}
    evaluation = er.evaluate(data, scores, list(ours_named.values()), preset="trec_eval")
    by_its_names = er.evaluate(data, scores, list(ours_named))
    for position, q in enumerate(data.qid.tolist()):
        for trec_name, name in ours_named.items():
            value = evaluation[name].values[position]
            if str(q) in theirs:
                agree(value, theirs[str(q)][trec_name])
                assert by_its_names[trec_name].values[position] == value
            else:
                assert math.isnan(value)
                assert by_its_names[trec_name].values[position] == 0  # as with its option -c


def letor_value(y, s, k):
    """NDCG@k as the LETOR scripts define it, written out."""
    ranked = [y[i] for i in sorted(range(len(y)), key=lambda i: -s[i])]
    if len(ranked) < k:
        return 0.0

    def dcg(grades):
        return sum((2**g - 1) / (1 if r <= 2 else math.log2(r)) for r, g in enumerate(grades[:k], 1))

    return dcg(ranked) / dcg(sorted(ranked, reverse=True)) if max(ranked) > 0 else 0.0


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_letor(seed, real):
    y, s, qid = hard_data(seed, real=real)
    data = er.RankingData.from_arrays(None, y, qid=qid)
    evaluation = er.evaluate(data, s, [*names("nDCG"), "MeanNDCG"], preset="letor")
    for q in range(50):
        for k in CUTOFFS:
            agree(evaluation[f"nDCG@{k}"].values[q], letor_value(y[qid == q], s[qid == q], k))
        cutoffs = range(1, np.sum(qid == q) + 1)
        agree(evaluation["MeanNDCG"].values[q], np.mean([letor_value(y[qid == q], s[qid == q], k) for k in cutoffs]))


IR_MEASURES = ["nDCG(dcg='log2')@10", "AP(rel=2)", "RR", "P(rel=2)@5", "R@10", "Success@3", "Bpref"]
GDEVAL = ["nDCG(dcg='exp-log2')@10", "ERR@20"]


@pytest.mark.parametrize(("provider", "texts", "digits"), [("pytrec_eval", IR_MEASURES, 9), ("gdeval", GDEVAL, 5)])
def test_ir_measures_notation_means_the_same(provider, texts, digits):
    ir_measures = pytest.importorskip("ir_measures")
    if provider == "gdeval" and shutil.which("perl") is None:
        pytest.skip("gdeval is a Perl script, and there is no perl")
    y, s, qid = hard_data(3)
    s = s + np.arange(len(s)) * 1e-3  # no ties: providers differ in those
    docid = [f"d{i:05}" for i in range(len(y))]
    qrels = [ir_measures.Qrel(str(q), d, int(g)) for q, d, g in zip(qid, docid, y, strict=True)]
    run = [ir_measures.ScoredDoc(str(q), d, float(x)) for q, d, x in zip(qid, docid, s, strict=True)]
    data = er.RankingData.from_arrays(None, y, qid=qid, docid=docid)
    ours = er.evaluate(data, s, texts).means
    for text in texts:
        theirs = getattr(ir_measures, provider).calc_aggregate([ir_measures.parse_measure(text)], qrels, run)
        assert ours[text] == pytest.approx(next(iter(theirs.values())), abs=10**-digits)


def test_presets_refuse_what_their_tool_lacks():
    with pytest.raises(er.errors.MeasureError, match="preset 'lightgbm' covers nDCG, AP"):
        er.parse_measure("ERR@10", preset="lightgbm")
    with pytest.raises(er.errors.MeasureError, match="unknown preset 'ranklib'; known: letor, trec_eval"):
        er.parse_measure("nDCG@10", preset="ranklib")
