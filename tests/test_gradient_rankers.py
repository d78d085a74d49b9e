"""RankNet, LambdaRank and the listwise rankers: training as published, lambda functions of one's own, trouble, polish."""

import json
import math

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import exactrank as xr
from exactrank.cli import app
from exactrank.objectives.own_lambdas import DocumentForces
from exactrank.rankers.gradient import RATES

LEARNERS = [xr.RankNet, xr.LambdaRank, xr.ListNet, xr.ListMLE, xr.RankCosine, xr.SmoothRank, xr.ApproxNDCG]
EVERY = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)


def rows(queries=40, documents=12, seed=0, bend=0.0):
    """Three features; grades follow a line and, times ``bend``, a product that no linear model has."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((queries * documents, 3)).astype(np.float32) * [1.0, 10.0, 0.1] + [0.0, 100.0, 5.0]
    z = (X - [0.0, 100.0, 5.0]) / [1.0, 10.0, 0.1]
    goodness = z @ [1.0, -0.5, 0.5] * (1 - bend) + bend * 2 * np.abs(z[:, 0]) + 0.1 * rng.standard_normal(len(X))
    return X, np.digitize(goodness, [0.3, 1.0, 1.6]), np.repeat(np.arange(queries), documents)


def judged(**shape):
    X, y, qid = rows(**shape)
    return xr.RankingData.from_arrays(X, y, qid=qid)


@EVERY
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "lbfgs"])
def test_every_objective_goes_with_every_optimizer(learner, optimizer):
    """But a lambda function has no value to go up a line by."""
    settings = {"first": 1.0, "last": 0.5} if learner is xr.SmoothRank else {}
    if learner is xr.LambdaRank:
        settings = {"start": "random"}
    ranker = learner("nDCG@5", optimizer=optimizer, epochs=30, trial_epochs=3, l2=0.001, **settings)
    if learner is xr.LambdaRank and optimizer == "lbfgs":
        with pytest.raises(xr.IncompatibleError, match=r"L-BFGS needs .* optimizer=\"adam\""):
            ranker.fit(judged())
        return
    assert ranker.fit(judged(), valid=judged(seed=1)).score(judged(seed=2)) > 0.9


@EVERY
def test_a_network_learns_what_a_line_cannot(learner):
    train, valid, test = (judged(queries=80, bend=0.8, seed=seed) for seed in range(3))
    settings = {"first": 1.0, "last": 0.5} if learner is xr.SmoothRank else {}
    line, net = (learner("nDCG@5", hidden=hidden, epochs=80, l2=0.001, **settings).fit(train, valid=valid) for hidden in (None, 8))
    assert net.score(test) > line.score(test) + 0.03
    assert net.model_.scorer.kind == "network"
    with pytest.raises(xr.IncompatibleError, match="network model has no weights"):
        _ = net.weights_


def test_units_of_features_do_not_matter():
    X, y, qid = rows()
    ours, theirs = (xr.LambdaRank(hidden=4, epochs=10, rate=0.01).fit(x, y, qid=qid) for x in (X, X * np.float32(1024)))
    assert ours.predict(X) == pytest.approx(theirs.predict(X * np.float32(1024)), rel=1e-9)


def test_rates_are_tried_and_the_best_goes_on():
    tried = xr.LambdaRank(start="random", optimizer="sgd", epochs=20, trial_epochs=4).fit(judged(), valid=judged(seed=1))
    steps = [progress.step for progress in tried.history_]
    assert max(steps) == len(RATES["sgd"]) * 4 + 16
    alone = [
        xr.LambdaRank(start="random", optimizer="sgd", epochs=4, rate=rate).fit(judged(), valid=judged(seed=1)) for rate in RATES["sgd"]
    ]
    assert tried.model_.training["valid"] >= max(ranker.model_.training["valid"] for ranker in alone)
    whole = xr.LambdaRank(start="random", optimizer="sgd", epochs=4, trial_epochs=0).fit(judged(), valid=judged(seed=1))
    assert whole.model_.training["valid"] == max(ranker.model_.training["valid"] for ranker in alone)


def test_training_stops_when_validation_does_not_improve():
    ranker = xr.RankNet(optimizer="adam", rate=0.05, epochs=500, patience=5).fit(judged(), valid=judged(seed=1))
    valid = [progress.valid for progress in ranker.history_]
    assert len(valid) < 500
    assert int(np.argmax(valid)) == len(valid) - 6


@pytest.mark.parametrize("hidden", [None, 3])
def test_a_rate_that_diverges_leaves_a_sound_model_and_says_so(hidden, tmp_path):
    ranker = xr.RankNet(hidden=hidden, optimizer="sgd", rate=1e300, epochs=5)
    with pytest.warns(ConvergenceWarning, match=r"learning rate of 1e\+300 diverged in epoch 1; take a smaller one; the best model"):
        ranker.fit(judged())
    ranker.save(tmp_path / "m.json")
    assert np.all(np.isfinite(xr.load(tmp_path / "m.json").predict(judged())))
    assert ranker.model_.training["value"] == ranker.score(judged())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden": 0}, "hidden must be a number of units"),
        ({"hidden": -2}, "hidden must be a number of units"),
        ({"optimizer": "newton"}, "'newton' is not one of"),
        ({"rate": -1.0}, "learning rate must be a number above 0"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"batch": 0}, "at least 1 query"),
        ({"l2": -1.0}, "l2 must be"),
        ({"lambdas": "cubic"}, "'cubic' is not one of"),
        ({"start": "ridge"}, "start='ridge' is not one of"),
        ({"polish": "wax"}, "polish='wax'"),
        ({"polish": "directrank", "polish_rounds": 0}, "at least 1 round"),
    ],
)
def test_settings_are_checked(settings, said):
    with pytest.raises(xr.DataError, match=said):
        xr.LambdaRank(**({"epochs": 2} | settings)).fit(judged())
    with pytest.raises(xr.DataError, match="sigma must fall"):
        xr.SmoothRank(first=1.0, last=2.0).fit(judged())
    with pytest.raises(xr.IncompatibleError, match="RR is no sum over ranks"):
        xr.SmoothRank(measure="RR").fit(judged())
    with pytest.raises(xr.DataError, match="ridge must be a number above 0"):
        xr.Ridge(ridge=0.0).fit(judged())


@pytest.mark.parametrize("measure", ["nDCG@5", "AP", "RR", "ERR@5", "P@3", "WTA", "Bpref", "PairwiseCorrect", "RBP", "R@3"])
@pytest.mark.parametrize("hidden", [None, 4])
def test_lambdarank_learns_by_any_measure(measure, hidden):
    settings = {"measure": measure, "hidden": hidden, "start": "random", "l2": 0.001}
    ranker = xr.LambdaRank(epochs=40, **settings).fit(judged())
    assert ranker.score(judged()) > xr.LambdaRank(rate=1e-9, epochs=1, **settings).fit(judged()).score(judged())
    assert xr.evaluate("nDCG@5", judged(seed=2), ranker.predict(judged(seed=2))).means["nDCG@5"] > 0.8


@pytest.mark.parametrize("lambdas", ["logistic", "step", "spring", "finite-difference"])
@pytest.mark.parametrize("limits", [{}, {"neighbours": 1}, {"truncation": 5}])
def test_every_lambda_function_learns(lambdas, limits):
    if lambdas == "finite-difference" and limits:
        with pytest.raises(xr.IncompatibleError, match="which lambdas='finite-difference' chooses itself"):
            xr.LambdaRank("nDCG@5", lambdas=lambdas, **limits).fit(judged())
        return
    assert (
        xr.LambdaRank("nDCG@5", lambdas=lambdas, start="random", epochs=40, l2=0.001, **limits).fit(judged()).score(judged(seed=2)) > 0.85
    )


def test_lambdas_go_on_where_ranknet_ends():
    train, valid = judged(queries=80, bend=0.8), judged(queries=80, bend=0.8, seed=1)
    begun = xr.RankNet("nDCG@5", hidden=6, epochs=100, l2=0.02).fit(train, valid=valid)
    ranker = xr.LambdaRank("nDCG@5", hidden=6, epochs=20).fit(train, valid=valid)
    steps = len(begun.history_)
    assert [progress.value for progress in ranker.history_[:steps]] == [progress.value for progress in begun.history_]
    assert ranker.history_[steps].value == begun.model_.training["value"]
    assert ranker.model_.training["valid"] >= begun.model_.training["valid"]


def springs(pairs):
    return pairs.delta * np.maximum(0, 1 - pairs.lead)


def centred_grades(query):
    return query.y - query.y.mean() - (query.s - query.s.mean())


@pytest.mark.parametrize("hidden", [None, 4])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_functions_of_ones_own_train_models(hidden, optimizer):
    settings = {"hidden": hidden, "start": "random", "optimizer": optimizer, "rate": 0.01, "epochs": 8}
    own = xr.LambdaRank("nDCG@5", lambdas=springs, **settings).fit(judged())
    native = xr.LambdaRank("nDCG@5", lambdas="spring", **settings).fit(judged())
    assert own.predict(judged()) == pytest.approx(native.predict(judged()), rel=1e-7)
    assert "springs" in own.model_.params["lambdas"].__name__
    forces = DocumentForces(centred_grades, xr.NDCG(k=5))
    assert (
        xr.LambdaRank("nDCG@5", lambdas=forces, start="random", optimizer=optimizer, rate=0.01, epochs=30)
        .fit(judged())
        .score(judged(seed=2))
        > 0.9
    )


def test_a_file_names_the_function_without_its_address(tmp_path):
    xr.LambdaRank("nDCG@5", lambdas=springs, epochs=1, rate=0.01).fit(judged()).save(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["params"]["lambdas"] == "<function springs>"


@pytest.mark.parametrize(
    ("function", "said"),
    [(lambda pairs: pairs.delta[:-1], "it must give .* finite numbers, one a pair"), (lambda pairs: pairs.delta / 0, "not finite")],
)
def test_a_function_that_cannot_be_is_refused(function, said):
    with np.errstate(all="ignore"), pytest.raises(xr.DataError, match=said):
        xr.LambdaRank(lambdas=function, epochs=2).fit(judged())
    drifting = DocumentForces(lambda query: query.y + 1, xr.NDCG())
    with pytest.raises(xr.DataError, match="not to 0; take off their mean"):
        xr.LambdaRank(lambdas=drifting, epochs=2).fit(judged())


@pytest.mark.parametrize("hidden", [None, 4])
def test_polish_never_lowers_what_it_is_judged_by(hidden):
    settings = {"measure": "nDCG@5", "hidden": hidden, "start": "random", "epochs": 5, "rate": 0.003}
    raw, polished = (xr.LambdaRank(polish=polish, **settings).fit(judged(bend=0.3)) for polish in (None, "directrank"))
    assert polished.model_.training["value"] > raw.model_.training["value"]
    assert polished.model_.training["value"] == polished.score(judged(bend=0.3))
    valid = judged(seed=1, bend=0.3)
    raw, polished = (xr.LambdaRank(polish=polish, **settings).fit(judged(bend=0.3), valid=valid) for polish in (None, "directrank"))
    assert polished.model_.training["valid"] >= raw.model_.training["valid"]


def test_a_polished_linear_model_cannot_be_raised_by_one_weight():
    data = judged(bend=0.3)
    ranker = xr.LambdaRank("nDCG@5", polish="directrank", polish_rounds=100, epochs=5).fit(data)
    assert max(weight.gain for weight in xr.optimality(ranker.model_, data).per_weight) < 1e-6


@EVERY
def test_the_same_seed_gives_the_same_network_on_any_number_of_threads(learner):
    settings = {"first": 1.0, "last": 0.5} if learner is xr.SmoothRank else {}
    models = [learner("nDCG@5", hidden=5, epochs=6, trial_epochs=2, seed=3, threads=t, **settings).fit(judged()) for t in (1, 2, None)]
    assert len({model.predict(judged()).tobytes() for model in models}) == 1
    assert not np.array_equal(
        models[0].predict(judged()), learner("nDCG@5", hidden=5, epochs=6, seed=4, **settings).fit(judged()).predict(judged())
    )


# ---- the command line ----


def letor(path, data):
    xr.write(data, path)
    return str(path)


def test_train_a_network_from_files(tmp_path):
    train, valid = letor(tmp_path / "train.txt", judged()), letor(tmp_path / "vali.txt", judged(seed=1))
    out = str(tmp_path / "net.json")
    run = CliRunner().invoke(
        app, ["train", "lambdarank", train, "--valid", valid, "--out", out, "--hidden", "4", "--epochs", "5", "--json"]
    )
    assert run.exit_code == 0, run.output
    said, held_out = json.loads(run.stdout), xr.read(valid)
    assert said["ranker"] == "lambdarank"
    assert said["validation"] == xr.evaluate("nDCG@10", held_out, xr.load(out).predict(held_out)).means["nDCG@10"]
    scores = CliRunner().invoke(app, ["predict", out, valid])
    assert len(scores.stdout.split()) == held_out.n_documents


def test_a_diverging_rate_is_told_on_stderr(tmp_path):
    train, out = letor(tmp_path / "train.txt", judged()), tmp_path / "m.json"
    run = CliRunner().invoke(app, ["train", "ranknet", train, "--out", str(out), "--optimizer", "sgd", "--rate", "1e300", "--epochs", "3"])
    assert run.exit_code == 0
    assert "exactrank: a learning rate of 1e+300 diverged" in run.stderr
    assert all(math.isfinite(weight) for weight in json.loads(out.read_text())["scorer"]["weights"].values())


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--hidden", "0"], "hidden must be"), (["--rate", "-1"], "learning rate"), (["--optimizer", "newton"], "newton")],
)
def test_bad_options_are_refused(tmp_path, options, said):
    train = letor(tmp_path / "train.txt", judged())
    run = CliRunner().invoke(app, ["train", "lambdarank", train, "--out", str(tmp_path / "m.json"), *options])
    assert run.exit_code == 2
    assert said in run.stderr
    assert not (tmp_path / "m.json").exists()
