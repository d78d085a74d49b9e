"""RankNet, LambdaRank and the listwise rankers: training as published, lambda functions of one's own, trouble, polish."""

import json
import math

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.learning.objectives.losses import ListNetLoss
from exactrank.learning.objectives.own_lambdas import DocumentForces
from exactrank.learning.optimizers.coordinate import CoordinateSearch
from exactrank.learning.optimizers.slopes import SGD
from exactrank.rankers.gradient import RATES
from tests import killed

LEARNERS = [er.RankNet, er.LambdaRank, er.ListNet, er.ListMLE, er.RankCosine, er.SmoothRank, er.ApproxNDCG]
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
    return er.RankingData.from_arrays(X, y, qid=qid)


@EVERY
@pytest.mark.parametrize("solver", ["sgd", "adam", "lbfgs"])
def test_every_objective_goes_with_every_solver(learner, solver):
    """But a lambda function has no value to go up a line by."""
    settings = {"first": 1.0, "last": 0.5} if learner is er.SmoothRank else {}
    if learner is er.LambdaRank:
        settings = {"start": "random"}
    if solver != "lbfgs":
        settings["trial_iter"] = 3
    ranker = learner("nDCG@5", solver=solver, max_iter=30, l2=0.001, **settings)
    if learner is er.LambdaRank and solver == "lbfgs":
        with pytest.raises(er.errors.IncompatibleError, match=r"LBFGS asks for value_and_slope; ForceProblem has .*; use SGD, Adam, "):
            ranker.fit(judged())
        return
    assert ranker.fit(judged(), valid=judged(seed=1)).score(judged(seed=2)) > 0.9


@EVERY
def test_a_network_learns_what_a_line_cannot(learner):
    train, valid, test = (judged(queries=80, bend=0.8, seed=seed) for seed in range(3))
    settings = {"first": 1.0, "last": 0.5} if learner is er.SmoothRank else {}
    line, net = (learner("nDCG@5", hidden=hidden, max_iter=80, l2=0.001, **settings).fit(train, valid=valid) for hidden in (None, 8))
    assert net.score(test) > line.score(test) + 0.03
    assert net.model_.scorer.kind == "network"
    with pytest.raises(AttributeError, match="network model has no weights"):
        _ = net.weights_


def test_units_of_features_do_not_matter():
    X, y, qid = rows()
    ours, theirs = (er.LambdaRank(hidden=4, max_iter=10, learning_rate=0.01).fit(x, y, qid=qid) for x in (X, X * np.float32(1024)))
    assert ours.predict(X) == pytest.approx(theirs.predict(X * np.float32(1024)), rel=1e-9)


def test_rates_are_tried_and_the_best_goes_on():
    tried = er.LambdaRank(start="random", solver="sgd", max_iter=20, trial_iter=4).fit(judged(), valid=judged(seed=1))
    steps = [progress.step for progress in tried.history_]
    assert max(steps) == len(RATES["sgd"]) * 4 + 16
    alone = [
        er.LambdaRank(start="random", solver="sgd", max_iter=4, learning_rate=rate).fit(judged(), valid=judged(seed=1))
        for rate in RATES["sgd"]
    ]
    assert tried.model_.training["valid"] >= max(ranker.model_.training["valid"] for ranker in alone)
    whole = er.LambdaRank(start="random", solver="sgd", max_iter=4, trial_iter=0).fit(judged(), valid=judged(seed=1))
    assert whole.model_.training["valid"] == max(ranker.model_.training["valid"] for ranker in alone)


def test_training_stops_when_validation_does_not_improve():
    ranker = er.RankNet(solver="adam", learning_rate=0.05, max_iter=500, patience=5).fit(judged(), valid=judged(seed=1))
    valid = [progress.valid for progress in ranker.history_]
    assert len(valid) < 500
    assert int(np.argmax(valid)) == len(valid) - 6


def test_without_validation_data_nothing_ends_training_early():
    ranker = er.RankNet(solver="adam", learning_rate=0.5, max_iter=80).fit(judged())
    assert ranker.history_[-1].step == 80 > ranker.patience
    assert np.any(np.diff([progress.value for progress in ranker.history_]) < 0)


@pytest.mark.parametrize("hidden", [None, 3])
def test_a_rate_that_diverges_leaves_a_sound_model_and_says_so(hidden, tmp_path):
    ranker = er.RankNet(hidden=hidden, solver="sgd", learning_rate=1e300, max_iter=5)
    with pytest.warns(ConvergenceWarning, match=r"learning rate of 1e\+300 diverged in iteration 1; use a smaller learning_rate; the best"):
        ranker.fit(judged())
    ranker.save(tmp_path / "m.json")
    assert np.all(np.isfinite(er.load(tmp_path / "m.json").predict(judged())))
    assert ranker.model_.training["value"] == ranker.score(judged())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 0.1, "solver": "lbfgs"}, "learning_rate=0.1 has no effect with solver='lbfgs'"),
        ({"batch_size": 8, "solver": "sgd"}, "batch_size=8 has no effect with solver='sgd'; .* give solver='adam'"),
        ({"trial_iter": 3, "learning_rate": 0.1}, "trial_iter=3 has no effect with learning_rate=0.1"),
        ({"margin": 2.0}, "margin=2.0 has no effect with lambdas='logistic'"),
        ({"samples": 3}, "samples=3 has no effect"),
        ({"polish_iter": 3}, "polish_iter=3 has no effect with polish=None"),
        ({"lambdas": "finite-difference", "neighbors": 1}, "neighbors=1 has no effect"),
        ({"lambdas": ListNetLoss(), "weighted_by": "AP"}, "weighted_by='AP' has no effect"),
        ({"lambdas": "cubic"}, "'cubic' is not"),
    ],
)
def test_settings_without_effect_are_refused_before_any_work(settings, message):
    with pytest.raises(er.errors.SettingError, match=message):
        er.LambdaRank(**settings).fit(judged())


def test_what_auto_comes_to_decides_what_has_an_effect():
    with pytest.raises(er.errors.SettingError, match=r"batch_size=8 has no effect with solver='lbfgs' \(its value here\)"):
        er.RankNet(batch_size=8).fit(judged())
    er.LambdaRank(batch_size=8, max_iter=1, trial_iter=1).fit(judged())


def test_sigma_must_fall_and_the_measure_must_be_a_sum():
    with pytest.raises(er.errors.SettingError, match=r"first=1 is below last=2; swap them"):
        er.SmoothRank(first=1.0, last=2.0).fit(judged())
    with pytest.raises(er.errors.IncompatibleError, match="RR is not a sum over ranks"):
        er.SmoothRank(measure="RR").fit(judged())


@pytest.mark.parametrize("measure", ["nDCG@5", "AP", "RR", "ERR@5", "P@3", "WTA", "Bpref", "PairwiseCorrect", "RBP", "R@3"])
@pytest.mark.parametrize("hidden", [None, 4])
def test_lambdarank_learns_by_any_measure(measure, hidden):
    settings = {"measure": measure, "hidden": hidden, "start": "random", "l2": 0.001}
    ranker = er.LambdaRank(max_iter=40, **settings).fit(judged())
    assert ranker.score(judged()) > er.LambdaRank(learning_rate=1e-9, max_iter=1, **settings).fit(judged()).score(judged())
    assert er.evaluate(judged(seed=2), ranker.predict(judged(seed=2)), "nDCG@5").means["nDCG@5"] > 0.8


@pytest.mark.parametrize("lambdas", ["logistic", "step", "spring", "sampled", "finite-difference"])
@pytest.mark.parametrize("limits", [{}, {"neighbors": 1}, {"truncation": 5}])
def test_every_lambda_function_learns(lambdas, limits):
    if lambdas == "finite-difference":
        limits = {}
    assert (
        er.LambdaRank("nDCG@5", lambdas=lambdas, start="random", max_iter=40, l2=0.001, **limits).fit(judged()).score(judged(seed=2)) > 0.85
    )


def test_lambdas_go_on_where_ranknet_ends():
    train, valid = judged(queries=80, bend=0.8), judged(queries=80, bend=0.8, seed=1)
    begun = er.RankNet("nDCG@5", hidden=6, max_iter=100, l2=0.02).fit(train, valid=valid)
    ranker = er.LambdaRank("nDCG@5", hidden=6, max_iter=20).fit(train, valid=valid)
    steps = len(begun.history_)
    assert [progress.value for progress in ranker.history_[:steps]] == [progress.value for progress in begun.history_]
    assert ranker.history_[steps].value == begun.model_.training["value"]
    assert ranker.model_.training["valid"] >= begun.model_.training["valid"]


def springs(pairs):
    return pairs.delta * np.maximum(0, 1 - pairs.lead)


def centered_grades(query):
    return query.y - query.y.mean() - (query.s - query.s.mean())


@pytest.mark.parametrize("hidden", [None, 4])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_functions_of_ones_own_train_models(hidden, solver):
    settings = {"hidden": hidden, "start": "random", "solver": solver, "learning_rate": 0.01, "max_iter": 8}
    ranker = er.LambdaRank("nDCG@5", lambdas=springs, **settings).fit(judged())
    native = er.LambdaRank("nDCG@5", lambdas="spring", **settings).fit(judged())
    assert ranker.predict(judged()) == pytest.approx(native.predict(judged()), rel=1e-7)
    assert "springs" in ranker.model_.params["lambdas"].__name__
    forces = DocumentForces(centered_grades, er.measures.NDCG(k=5))
    assert (
        er.LambdaRank("nDCG@5", lambdas=forces, start="random", solver=solver, learning_rate=0.01, max_iter=30)
        .fit(judged())
        .score(judged(seed=2))
        > 0.9
    )


def test_a_file_names_the_function_without_its_address(tmp_path):
    er.LambdaRank("nDCG@5", lambdas=springs, max_iter=1, learning_rate=0.01).fit(judged()).save(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["params"]["lambdas"] == "<function springs>"


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda pairs: pairs.delta[:-1], "it must give .* finite numbers, one per pair"), (lambda pairs: pairs.delta / 0, "not finite")],
)
def test_a_function_that_cannot_be_is_refused(function, message):
    with np.errstate(all="ignore"), pytest.raises(er.errors.DataError, match=message):
        er.LambdaRank(lambdas=function, max_iter=2).fit(judged())
    drifting = DocumentForces(lambda query: query.y + 1, er.measures.NDCG())
    with pytest.raises(er.errors.DataError, match="not to 0; subtract their mean"):
        er.LambdaRank(lambdas=drifting, max_iter=2).fit(judged())


@pytest.mark.parametrize("hidden", [None, 4])
def test_polish_never_lowers_what_it_is_judged_by(hidden):
    settings = {"measure": "nDCG@5", "hidden": hidden, "start": "random", "max_iter": 5, "learning_rate": 0.003}
    raw, polished = (er.LambdaRank(polish=polish, **settings).fit(judged(bend=0.3)) for polish in (None, "directrank"))
    assert polished.model_.training["value"] > raw.model_.training["value"]
    assert polished.model_.training["value"] == polished.score(judged(bend=0.3))
    valid = judged(seed=1, bend=0.3)
    raw, polished = (er.LambdaRank(polish=polish, **settings).fit(judged(bend=0.3), valid=valid) for polish in (None, "directrank"))
    assert polished.model_.training["valid"] >= raw.model_.training["valid"]


def test_a_polished_linear_model_cannot_be_raised_by_one_weight():
    data = judged(bend=0.3)
    ranker = er.LambdaRank("nDCG@5", polish="directrank", polish_iter=100, max_iter=5).fit(data)
    assert max(weight.gain for weight in er.inspect.optimality(data, ranker.model_).per_weight) < 1e-6


@EVERY
def test_the_same_seed_gives_the_same_network_on_any_number_of_threads(learner):
    settings = {"first": 1.0, "last": 0.5} if learner is er.SmoothRank else {"trial_iter": 2} if learner is er.LambdaRank else {}
    models = [learner("nDCG@5", hidden=5, max_iter=6, seed=3, threads=t, **settings).fit(judged()) for t in (1, 2, None)]
    assert len({model.predict(judged()).tobytes() for model in models}) == 1
    assert not np.array_equal(
        models[0].predict(judged()), learner("nDCG@5", hidden=5, max_iter=6, seed=4, **settings).fit(judged()).predict(judged())
    )


# ---- objectives that draw at random ----


def drawn(**settings):
    return er.LambdaRank("nDCG@5", start="random", lambdas="sampled", max_iter=6, **settings).fit(judged(bend=0.3))


@pytest.mark.parametrize("settings", [{"solver": "sgd", "learning_rate": 0.01}, {"learning_rate": 0.01}], ids=["sgd", "adam"])
def test_draws_are_new_in_each_epoch_and_those_of_the_seed(settings, monkeypatch):
    numbers = []
    draw = er.losses.SampledLambdas.with_draws
    monkeypatch.setattr(er.losses.SampledLambdas, "with_draws", lambda self, number: numbers.append(number) or draw(self, number))
    once = drawn(**settings)
    assert numbers == [0, 0, 1, 2, 3, 4, 5]  # for the start, and for each epoch
    assert once.weights_.tobytes() == drawn(**settings).weights_.tobytes()
    monkeypatch.setattr(er.losses.SampledLambdas, "with_draws", lambda self, number: self)
    assert once.weights_.tobytes() != drawn(**settings).weights_.tobytes()


def test_any_objective_may_stand_for_the_lambda_function():
    by_lists = er.LambdaRank("nDCG@5", lambdas=ListNetLoss(), start="random", solver="lbfgs", l2=0.001, max_iter=20).fit(judged())
    assert by_lists.weights_.tobytes() == er.ListNet("nDCG@5", max_iter=20).fit(judged()).weights_.tobytes()


# ---- killed and resumed ----


def cases():
    """Every ranker, and every way to train: one run, trials of rates, phases, polish, draws, bags."""
    data, valid = judged(bend=0.3), judged(bend=0.3, seed=1)
    steep = {"first": 1.0, "last": 0.5}
    rankers = {
        **{learner.__name__: learner("nDCG@5", max_iter=8, **(steep if learner is er.SmoothRank else {})) for learner in LEARNERS},
        "trials": er.RankNet("nDCG@5", hidden=3, solver="sgd", max_iter=5, trial_iter=2),
        "polish": er.LambdaRank("nDCG@5", hidden=3, max_iter=3, trial_iter=1, polish="directrank", polish_iter=3),
        "draws": er.LambdaRank("nDCG@5", start="random", lambdas="sampled", max_iter=4, trial_iter=2),
        "bags": er.ListMLE("nDCG@5", solver="adam", learning_rate=0.01, max_iter=4, bags=3),
        "own": er.Composed("nDCG@5", objective=er.losses.PairForces(springs, er.measures.NDCG()), optimizer=SGD(0.01), max_iter=5),
        "lines": er.Composed("nDCG@5", optimizer=CoordinateSearch("random", tolerance=0.0), max_iter=5),
    }
    return {name: (ranker, data, None if name in ("ListNet", "bags") else valid) for name, ranker in rankers.items()}


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    folder, fitted = tmp_path_factory.mktemp("killed"), killed.unbroken(cases())
    killed.killed(__name__, fitted, folder)
    return folder, fitted


@pytest.mark.parametrize("name", cases())
def test_training_killed_at_a_random_moment_resumes_to_the_bit(name, broken_off):
    folder, fitted = broken_off
    killed.assert_resumed(fitted[name], cases()[name], folder / f"{name}.json")


# ---- the command line ----


def letor(path, data):
    er.write(data, path)
    return str(path)


def test_train_a_network_from_files(tmp_path):
    train, valid = letor(tmp_path / "train.txt", judged()), letor(tmp_path / "vali.txt", judged(seed=1))
    out = str(tmp_path / "net.json")
    run = CliRunner().invoke(
        app, ["train", "lambdarank", train, "--valid", valid, "--out", out, "--hidden", "4", "--max-iter", "5", "--json"]
    )
    assert run.exit_code == 0, run.output
    record, held_out = json.loads(run.stdout), er.read(valid)
    assert record["ranker"] == "lambdarank"
    assert record["validation"] == er.evaluate(held_out, er.load(out).predict(held_out), "nDCG@10").means["nDCG@10"]
    scores = CliRunner().invoke(app, ["predict", out, valid])
    assert len(scores.stdout.split()) == held_out.n_documents


def test_a_diverging_rate_is_told_on_stderr(tmp_path):
    train, out = letor(tmp_path / "train.txt", judged()), tmp_path / "m.json"
    run = CliRunner().invoke(
        app, ["train", "ranknet", train, "--out", str(out), "--solver", "sgd", "--learning-rate", "1e300", "--max-iter", "3"]
    )
    assert run.exit_code == 0
    assert "exactrank: a learning rate of 1e+300 diverged" in run.stderr
    assert all(math.isfinite(weight) for weight in json.loads(out.read_text())["scorer"]["weights"].values())


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--hidden", "0"], "hidden=0"), (["--learning-rate", "-1"], "learning_rate=-1"), (["--solver", "newton"], "newton")],
)
def test_bad_options_are_refused(tmp_path, options, message):
    train = letor(tmp_path / "train.txt", judged())
    run = CliRunner().invoke(app, ["train", "lambdarank", train, "--out", str(tmp_path / "m.json"), *options])
    assert run.exit_code == 2
    assert message in run.stderr
    assert not (tmp_path / "m.json").exists()
