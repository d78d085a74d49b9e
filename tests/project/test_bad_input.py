"""Bad arguments and odd files: an error of this library that names the argument or the place, in the API and on the command line."""

import os
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import exactrank as er
from exactrank._support.numerals import number, whole_number
from exactrank.cli import app
from exactrank.clicks.propensities import given_propensities, read_propensities
from exactrank.data.scores import read_scores
from exactrank.rankers.notation import parse_method

RNG = np.random.default_rng(0)
DATA = er.RankingData.from_arrays(RNG.random((12, 3)), [0, 1, 2, 0] * 3, group=[4] * 3, docid=[f"d{i}" for i in range(12)])
SCORES = DATA.X[:, 0].astype(np.float64)
MODEL = er.Ridge().fit(DATA).model_
LOG = er.clicks.simulate_clicks(DATA, sessions=20).clicks


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})


# ---- None and single values


#: Calls with every required argument in turn replaced, and the name that the error must have.
REQUIRED = {
    "interleave": (er.clicks.interleave, {"data": DATA, "a": SCORES, "b": SCORES}),
    "preference": (er.clicks.preference, {"log": LOG, "teams": {}}),
    "read_clicks": (er.clicks.read_clicks, {"log": "log.csv"}),
    "simulate_clicks": (er.clicks.simulate_clicks, {"data": DATA}),
    "write_clicks": (er.clicks.write_clicks, {"clicks": LOG, "path": "log.csv"}),
    "compare": (er.compare, {"data": DATA, "methods": ["ridge"], "measures": "nDCG"}),
    "read_comparison": (er.read_comparison, {"folder": "comparison"}),
    "compare_runs": (er.compare_runs, {"data": DATA, "runs": {"a": SCORES}, "measures": "nDCG"}),
    "tune": (er.tune, {"method": "ridge", "data": DATA}),
    "describe": (er.describe, {"data": DATA}),
    "read_folds": (er.read_folds, {"path": "folds"}),
    "read_parts": (er.data.read_parts, {"paths": ["a", "b", "c"]}),
    "split": (lambda data: er.split(data, 0.5, 0.5), {"data": DATA}),
    "read": (er.read, {"path": "data.txt"}),
    "write": (er.write, {"data": DATA, "path": "data.xr"}),
    "read_pairs": (er.pairs.read_pairs, {"path": "pairs.csv", "data": DATA}),
    "with_pairs": (er.pairs.with_pairs, {"data": DATA, "pairs": {}}),
    "write_run": (er.write_run, {"path": "a.run", "data": DATA, "scores": SCORES}),
    "from_trec": (er.from_trec, {"qrels": None, "runs": []}),
    "read_qrels": (er.read_qrels, {"path": "a.qrels"}),
    "read_run": (er.read_run, {"path": "a.run"}),
    "read_shards": (er.read_shards, {"paths": "*.xr"}),
    "export": (er.export, {"model": MODEL, "target": "c"}),
    "fuse": (er.fuse, {"data": DATA}),
    "systems_from_frame": (er.systems_from_frame, {"frame": pd.DataFrame({"query_id": [1]}), "systems": ["a", "b"]}),
    "systems_from_runs": (er.systems_from_runs, {"qrels": "a.qrels", "runs": ["a.run"]}),
    "from_estimator": (er.from_estimator, {"estimator": None}),
    "load": (er.load, {"path": "model.json"}),
    "evaluate": (er.evaluate, {"measures": "nDCG", "data": DATA, "scores": SCORES}),
    "parse_measure": (er.parse_measure, {"text": "nDCG"}),
    "bradley_terry": (er.pairs.bradley_terry, {"data": DATA}),
    "cutoff": (er.cutoff, {"data": DATA, "scores": SCORES, "goal": "F1"}),
    "line_search": (er.line_search, {"measure": "nDCG", "data": DATA, "scores": SCORES, "direction": SCORES}),
    "profile": (er.profile, {"measure": "nDCG", "data": DATA, "scores": SCORES, "direction": SCORES}),
    "slopes": (er.losses.slopes, {"objective": er.losses.Lambdas(), "data": DATA, "scores": SCORES}),
    "separate": (er.losses.separate, {"structured": er.losses.Structured(er.measures.NDCG()), "data": DATA, "scores": SCORES}),
    "pareto": (er.pareto, {"model": MODEL, "data": DATA, "measures": ["nDCG", "P@2"]}),
    "tradeoff": (er.tradeoff, {"measures": ["nDCG", "P@2"], "data": DATA, "scores": SCORES, "direction": SCORES}),
    "forces": (er.inspect.forces, {"objective": er.losses.Lambdas(), "data": DATA}),
    "importance": (er.inspect.importance, {"model": MODEL, "data": DATA}),
    "jumping_points": (er.inspect.jumping_points, {"measure": "nDCG", "data": DATA, "scores": SCORES, "direction": SCORES}),
    "optimality": (er.inspect.optimality, {"model": MODEL, "data": DATA}),
    "smoothness": (er.inspect.smoothness, {"model": MODEL, "data": DATA}),
    "from_arrays": (lambda y, group: er.RankingData.from_arrays(DATA.X, y, group=group), {"y": DATA.y, "group": [4] * 3}),
    "from_frame": (er.RankingData.from_frame, {"frame": None}),
    "fit": (er.Ridge().fit, {"X": DATA}),
    "predict": (MODEL.predict, {"data": DATA}),
    "save": (MODEL.save, {"path": "model.json"}),
    "Clicks.evaluate": (LOG.evaluate, {"measures": "Total@3", "features": DATA, "scores": SCORES, "propensity": "1/k"}),
    "Clicks.to_data": (LOG.to_data, {"features": DATA, "propensity": "1/k"}),
    "Clicks.propensities": (LOG.propensities, {"method": "em"}),
}
CASES = [(name, argument) for name, (_, arguments) in REQUIRED.items() for argument in arguments]


def test_every_public_function_is_tried():
    functions = {name for name in er.__all__ if callable(getattr(er, name)) and not isinstance(getattr(er, name), type)}
    assert functions <= REQUIRED.keys()


@pytest.mark.parametrize(("name", "argument"), CASES, ids=[f"{name}-{argument}" for name, argument in CASES])
@pytest.mark.parametrize("value", [None, 3.0, 3, object, b"a"], ids=str)
def test_wrong_kinds_of_arguments(name, argument, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, arguments = REQUIRED[name]
    with pytest.raises(er.errors.ExactRankError) as raised:
        function(**arguments | {argument: value})
    assert "' object " not in str(raised.value)  # as Python says it
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: er.evaluate(None, SCORES, "nDCG"), r"data is None; give a RankingData, from er\.read or RankingData\.from_arrays"),
        (lambda: er.evaluate(DATA, None, "nDCG"), "scores is None; give one number per row, of the 12 documents"),
        (lambda: er.evaluate(DATA, 3.0, "nDCG"), "scores is 3.0; give one number per row"),
        (lambda: er.load(3), "the path is 3; give the path of a file or a folder, as text or a Path"),
        (lambda: er.compare(DATA, 3), "methods is 3; give a list of methods"),
        (lambda: er.compare([DATA], ["ridge"]), "one of the folds of data is of type RankingData; give what er.read_folds"),
        (lambda: MODEL.predict(None), "X is None; give a RankingData, a frame or a table of numbers, documents x features"),
        (lambda: er.Ridge().fit(DATA, checkpoint="a.json"), "checkpoint is 'a.json'; give a function"),
        (lambda: er.fuse(DATA, folds=2.5), r"folds is 2.5; give a whole number of at least 0"),
        (lambda: given_propensities(0.5, np.arange(1, 3)), r"propensities have shape \(\); give at least one number, one per rank from 1"),
        (lambda: given_propensities([[0.5, 1.0]], np.arange(1, 3)), r"propensities have shape \(1, 2\)"),
        (lambda: er.export(er.Ridge(), "c"), "model is of type Ridge; give what er.load returns, or a ranker after fit"),
        (lambda: er.export(MODEL, None), "target is None; give one of c, "),
    ],
)
def test_what_errors_of_arguments_say(call, says):
    with pytest.raises(er.errors.ExactRankError, match=says):
        call()


# ---- numbers in text


@pytest.mark.parametrize("text", ["1_0", "\u0661", "\uff11", "1\u00a00", "_1"])
def test_numbers_have_plain_digits(text):
    for read in (number, whole_number):
        for written in (text, text.encode()):
            with pytest.raises(ValueError, match=r"is not a number; write it with the digits 0 to 9, without _"):
                read(written)


@pytest.mark.parametrize("digits", ["1_0", "\u0661"])
@pytest.mark.parametrize(
    "use",
    [
        lambda text: er.parse_measure(f"nDCG@{text}"),
        lambda text: er.parse_measure(f"AP(rel={text})"),
        lambda text: er.parse_measure(f"nDCG(gain={{0: 0, 1: {text}}})"),
        lambda text: er.evaluate(DATA, SCORES, f"nDCG subject to P@5 >= {text}"),
        lambda text: parse_method(f"lambdamart(trees={text})"),
        lambda text: er.RankingData.from_arrays([[1.0]], [text], group=[1]),
        lambda text: er.RankingData.from_arrays([[1.0]], [1], group=[1], sample_weight=[text]),
        lambda text: er.RankingData.from_arrays([[1.0]], [1], group=[1], extra_columns={"price": [text]}),
        lambda text: er.evaluate(DATA, [text] * 12, "nDCG"),
        lambda text: er.write_run(DATA, "a.run", [text] * 12),
        lambda text: er.pairs.with_pairs(DATA, {"query_id": [0], "better": ["d0"], "worse": ["d1"], "weight": [text]}),
        lambda text: er.clicks.read_clicks(pd.DataFrame({"query_id": [1], "doc_id": ["a"], "rank": [text], "clicked": [1]})),
        lambda text: er.clicks.read_clicks(pd.DataFrame({"query_id": [1], "doc_id": ["a"], "rank": [1], "clicked": [1], "weight": [text]})),
        lambda text: given_propensities({text: 0.5}, np.arange(1, 3)),
        lambda text: given_propensities([text], np.arange(1, 3)),
        lambda text: given_propensities(f"1/k^{text}", np.arange(1, 3)),
    ],
)
def test_arguments_have_plain_digits(use, digits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(er.errors.ExactRankError):
        use(digits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use("1")  # it is the digits that are wrong


FILES = {
    "letor grade": ("a.txt", "{} qid:1 1:1\n", er.read),
    "letor value": ("a.txt", "1 qid:1 1:{}\n", er.read),
    "letor feature": ("a.txt", "1 qid:1 {}:1\n", er.read),
    "csv grade": ("a.csv", "query_id,relevance,f\n1,{},1\n", er.read),
    "qrels": ("a.qrels", "7 0 a {}\n", er.read_qrels),
    "run": ("a.run", "7 Q0 a 1 {} x\n", er.read_run),
    "scores": ("a.scores", "{}\n" * 12, lambda path: read_scores(path, DATA)),
    "click rank": ("a.csv", "query_id,doc_id,rank,clicked\n7,a,{},1\n", er.clicks.read_clicks),
    "click weight": ("a.csv", "query_id,doc_id,rank,clicked,weight\n7,a,1,1,{}\n", er.clicks.read_clicks),
    "pair weight": ("a.csv", "query_id,better,worse,weight\n0,d0,d1,{}\n", lambda path: er.pairs.read_pairs(path, DATA)),
    "pair row": (
        "a.csv",
        "better,worse\n{},0\n",
        lambda path: er.pairs.read_pairs(path, er.RankingData.from_arrays(None, [0] * 20, group=[20])),
    ),
    "propensity": ("a.csv", "rank,propensity\n1,{}\n", read_propensities),
    "propensity rank": ("a.csv", "rank,propensity\n{},0.5\n", read_propensities),
    "RankLib weight": ("a.txt", "## Coordinate Ascent\n1:{}\n", er.load),
    "RankLib feature": ("a.txt", "## Coordinate Ascent\n{}:1\n", er.load),
    "weights": ("a.json", '{{"bm25": {}}}', er.load),
}


@pytest.mark.parametrize("digits", ["1_0", "\u0661"])
@pytest.mark.parametrize("kind", FILES)
def test_files_have_plain_digits(kind, digits, tmp_path):
    name, text, use = FILES[kind]
    (tmp_path / name).write_text(text.format(*[digits] * 12), "utf-8")
    with pytest.raises(er.errors.DataError, match=name):
        use(tmp_path / name)
    (tmp_path / name).write_text(text.format(*["1"] * 12))
    use(tmp_path / name)


@pytest.mark.parametrize(
    "option", [("--trees", "1_0"), ("--learning-rate", "0_1"), ("--seed", "1_0"), ("--threads", "\u0661"), ("--depth", "1_0")]
)
def test_options_have_plain_digits(option, tmp_path):
    result = invoke("train", "lambdamart", tmp_path / "a.txt", "--out", tmp_path / "a.json", *option)
    assert result.exit_code == 2
    assert f"Invalid value for '{option[0]}'" in result.output


# ---- goals


@pytest.mark.parametrize("goal", ["nDCG@10 subject to nDCG@10 >= 2", "nDCG@10 subject to nDCG@10 <= -1", "P@2 subject to nDCG@10 >= 2"])
def test_goals_that_nothing_reaches(goal, tmp_path):
    says = rf"{goal}: nothing reaches nDCG@10 [<>]= -?\d; the (largest|smallest) nDCG@10 found is [\d.]+, so (lower|raise) -?\d"
    for use in (lambda: er.DirectRank(measure=goal).fit(DATA), lambda: er.fuse(DATA, measure=goal, folds=0, bootstrap=0)):
        with pytest.raises(er.errors.IncompatibleError, match=says):
            use()
    er.write(DATA, tmp_path / "a.txt")
    result = invoke("train", "directrank", tmp_path / "a.txt", "-m", goal, "--out", tmp_path / "a.json")
    assert result.exit_code == 2
    assert "nothing reaches" in result.output
    assert not (tmp_path / "a.json").exists()


def test_goals_on_the_same_measure_that_can_be_reached():
    assert er.DirectRank(measure="nDCG@10 subject to nDCG@10 >= 0.5").fit(DATA).model_.training["value"] >= 0.5


# ---- numbers that are too large


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: er.fuse(DATA, bootstrap=10**9), "bootstrap must be at most 100,000, got 1000000000"),
        (lambda: LOG.propensities(bootstrap=10**9), "bootstrap must be at most 100,000"),
        (lambda: er.clicks.simulate_clicks(DATA, sessions=10**9), "sessions must be at most 8,333,333"),
        (lambda: er.clicks.simulate_clicks(DATA, page_size=10**9), "page_size must be at most 1,048,576"),
        (lambda: er.clicks.simulate_clicks(DATA, rankers=10**9), "rankers must be at most 10,000"),
        (lambda: er.clicks.interleave(DATA, SCORES, SCORES, pages=10**9), "pages must be at most 833,333"),
        (lambda: er.inspect.importance(DATA, MODEL, repeats=10**9), "repeats must be at most 100,000"),
        (lambda: er.inspect.smoothness(DATA, MODEL, points=10**9), "points must be at most 1,000,000"),
        (lambda: er.pareto(DATA, ["x0", "x1", "x2"], ["nDCG", "P@2"], points=10**9), "points must be at most 10,000"),
        (lambda: er.compare(DATA, ["ridge"], folds=3, trials=10**9), "trials must be from 1 to 1,000,000"),
        (lambda: er.fuse(DATA, folds=10**9), "3 queries cannot form 1000000000 folds"),
    ],
)
def test_counts_have_a_largest_value(call, says):
    with pytest.raises((er.errors.DataError, er.errors.SettingError), match=says):
        call()


@pytest.mark.parametrize("rank", [2**31, 2**63, 2**64, 10**30])
def test_ranks_have_a_largest_value(rank, tmp_path):
    (tmp_path / "a.csv").write_text(f"query_id,doc_id,rank,clicked\n7,a,{rank},1\n")
    (tmp_path / "b.csv").write_text(f"rank,propensity\n{rank},0.5\n")
    for read in (lambda: er.clicks.read_clicks(tmp_path / "a.csv"), lambda: read_propensities(tmp_path / "b.csv")):
        with pytest.raises(er.errors.DataError, match=r"[ab]\.csv: .*ranks are whole numbers from 1 to 1,048,576"):
            read()
    with pytest.raises(er.errors.DataError, match=r"log: .*(fit 64 bits|from 1 to 1,048,576)"):
        er.clicks.read_clicks(pd.DataFrame({"query_id": [7], "doc_id": ["a"], "rank": [rank], "clicked": [1]}))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("grade", [1100.0, 5000.0, 1e15])
def test_large_grades_warn_of_nothing(grade):
    data = er.RankingData.from_arrays(DATA.X, np.where(DATA.y == 2, grade, DATA.y), group=[4] * 3)
    measures = ["nDCG@3", "MeanNDCG", "AP", "RBP", "Bpref", "PairwiseCorrect", "nDCG(gain='linear')"]
    assert np.isfinite(list(er.evaluate(data, SCORES, measures).means.values())).all()
    assert np.isfinite(er.profile(data, SCORES, DATA.X[:, 1], "nDCG@3").values).all()
    with pytest.raises(er.errors.DataError, match=r"DCG@3 is infinite: the gain of grade .* overflows; use gain='linear', or nDCG"):
        er.evaluate(data, SCORES, "DCG@3")


# ---- names that occur twice


def test_feature_names_that_occur_twice(tmp_path):
    says = r"features 0 and 2 \(from 0\) are both called 'a'; give each its own name"
    X, names = [[1.0, 2.0, 3.0]], ["a", "b", "a"]
    for make in (
        lambda: er.RankingData.from_arrays(X, [1], group=[1], feature_names=names),
        lambda: er.models.Linear(np.ones(3), tuple(names)),
        lambda: er.Ridge().fit(er.RankingData.from_arrays(X * 2, [1, 0], group=[2], feature_names=names)),
    ):
        with pytest.raises(er.errors.DataError, match=says):
            make()
    table = pa.Table.from_arrays([pa.array([1]), pa.array([1]), *(pa.array([0.5]) for _ in names)], ["query_id", "relevance", *names])
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("query_id,relevance,a,b,a\n1,1,0.5,0.5,0.5\n")
    frame = pd.DataFrame([[1, 1, 0.5, 0.5, 0.5]], columns=["query_id", "relevance", *names])
    for read in (lambda: er.read(tmp_path / "a.parquet"), lambda: er.read(tmp_path / "a.csv"), lambda: er.RankingData.from_frame(frame)):
        with pytest.raises(
            er.errors.DataError, match=r"(a\.parquet|a\.csv|frame): columns 3 and 5 are both called 'a'; rename or remove one of them"
        ):
            read()


# ---- links


def loops(folder):
    """Links that lead to themselves, by suffix."""
    for suffix in ("", ".txt", ".csv", ".xr", ".json"):
        os.symlink(f"loop{suffix}", folder / f"loop{suffix}")
    os.symlink("nowhere", folder / "dangling.txt")
    return folder


@pytest.mark.parametrize(
    "use",
    [
        lambda folder: er.read(folder / "loop.txt"),
        lambda folder: er.read(folder / "loop.xr"),
        lambda folder: er.read(folder / "loop" / "a.txt"),
        lambda folder: er.load(folder / "loop.json"),
        lambda folder: er.read_run(folder / "loop"),
        lambda folder: er.read_qrels(folder / "loop"),
        lambda folder: er.clicks.read_clicks(folder / "loop.csv"),
        lambda folder: er.pairs.read_pairs(folder / "loop.csv", DATA),
        lambda folder: read_propensities(folder / "loop.csv"),
        lambda folder: read_scores(folder / "loop", DATA),
        lambda folder: er.read_folds(folder / "loop"),
        lambda folder: er.data.read_parts([folder / "loop.txt"] * 3),
        lambda folder: er.evaluate(er.read_shards(folder / "loop.xr"), MODEL, "nDCG"),
        lambda folder: er.read_comparison(folder / "loop"),
        lambda folder: er.write(DATA, folder / "loop.xr", force=True),
        lambda folder: MODEL.save(folder / "loop.json"),
        lambda folder: er.compare(DATA, ["ridge"], folds=3, out=folder / "loop"),
    ],
)
def test_links_that_lead_in_a_circle(use, tmp_path):
    with pytest.raises(
        er.errors.DataError, match=r"loop.* cannot be opened: its symbolic links lead in a circle, or are too many; correct the link"
    ):
        use(loops(tmp_path))


def test_links_that_lead_nowhere_and_links_on_the_command_line(tmp_path):
    loops(tmp_path)
    with pytest.raises(er.errors.DataError, match=r"dangling\.txt is a symbolic link to nowhere, which does not exist; correct the link"):
        er.read(tmp_path / "dangling.txt")
    for arguments in (("info", tmp_path / "loop.txt"), ("train", "ridge", tmp_path / "loop.txt", "--out", tmp_path / "a.json")):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert "loop.txt cannot be opened: its symbolic links lead in a circle" in result.output
