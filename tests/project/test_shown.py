"""Laws of all results: short to print, a small table in a notebook whatever names hold, a frame with all rows, and a picture."""

import pickle
import re
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import exactrank as er
from exactrank._support import pictures
from exactrank._support.pictures import Plottable
from exactrank._support.tables import COLUMNS, ROWS, Table, Tabular
from exactrank.compare.results import Trial
from exactrank.data.formats.trec import Judgments, RetrievalRun
from exactrank.learning.training.progress import History, Progress
from exactrank.models.base import Scorer
from tests import GOLDEN, ROOT
from tests.compare.comparisons import make_comparison, with_failure
from tests.compare.html_tree import VOID

mpl.use("Agg")
NASTY = "<script>alert('x')</script>&amp;\n\x1b[2J"
LINES, LETTERS = 20, 2500  #: of what is printed at most


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


@cache
def data(features=30):
    """Judged documents, in an order of their own, whose names are markup."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, features)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=600) + 1), 0, 3)
    names = [f"{NASTY} {j}" for j in range(features)]
    return er.RankingData.from_arrays(X, y, qid=[f"{NASTY} {q}" for q in rng.permutation(600) % 30], docid=range(600), feature_names=names)


@cache
def fitted(name):
    return {
        "linear": er.Ridge(),
        "trees": er.LambdaMART(trees=30, bags=0),
        "network": er.RankNet(hidden=3, max_iter=5),
        "thresholds": er.RankBoost(max_iter=10),
        "restarts": er.CoordinateAscent("nDCG@5", restarts=3, max_iter=2),
    }[name].fit(data(), valid=data())


def added():
    return er.Model(er.models.Sum((fitted("linear").model_.scorer, fitted("trees").model_.scorer), np.ones(2)))


@cache
def fusion(systems=2):
    scores = data(systems)
    named = replace(scores, feature_names=tuple(f"{NASTY} {j}" for j in range(systems)))
    return er.fuse(named, folds=2, bootstrap=20, cells=10)


def corrected():
    """An evaluation of ten queries, which a machine's grades of all of them correct."""
    people = data().take_queries(np.arange(10))
    return er.evaluate(people, people.y, ["nDCG@10", "AP"], machine=(data(), data().y))


def run_of(kind):
    given = data()
    qid, docid = np.repeat(given.qid, given.sizes).tolist(), given.docid.tolist()
    return RetrievalRun(qid, docid, given.y, NASTY) if kind is RetrievalRun else Judgments(qid, docid, given.y)


def tuned():
    trials = tuple(Trial({"rate": 0.1 * t, "kind": NASTY}, 0.5 + 0.01 * t, 1.0) for t in range(25))
    return er.Tuned(fitted("linear"), trials[-1], trials, "nDCG(ties='pessimistic')@10")


@cache
def simulated():
    """Clicks on the documents of the data."""
    return er.clicks.simulate_clicks(data(), sessions=20)


@cache
def paired():
    """The data with the pairs of some neighbors."""
    given, rows = data(), data().indptr[:2].tolist()
    better, worse = (given.docid.take([row + down for row in rows]).tolist() for down in (0, 1))
    return er.pairs.with_pairs(given, {"query_id": given.qid[:2].tolist(), "better": better, "worse": worse})


#: What is shown, and how many rows its frame has.
def judging_plan():
    partly = replace(data(), y=np.where(np.arange(600) % 3 == 0, -1, data().y))
    return er.judging.plan(partly, {"first": data().X[:, 0], NASTY: data().X[:, 1]}, measure="nDCG@5")


RESULTS = {
    "data": (data, 600),
    "judgments": (lambda: run_of(Judgments), 600),
    "run": (lambda: run_of(RetrievalRun), 600),
    "evaluation": (lambda: er.evaluate(data(), data().y, ["nDCG@10", "AP"]), 30),
    "correction": (lambda: corrected().machine, 2),
    "agreement": (lambda: corrected().machine.agreement, None),
    "linear model": (lambda: fitted("linear").model_, 30),
    "tree model": (lambda: fitted("trees").model_, 30),
    "network": (lambda: fitted("network").model_, 30),
    "selection": (lambda: er.Ridge().fit(data()).selection_, 11),
    "thresholds": (lambda: fitted("thresholds").model_, 30),
    "sum": (added, 30),
    "scorer": (lambda: fitted("trees").model_.scorer, 30),
    "history": (lambda: fitted("trees").history_, None),
    "history of restarts": (lambda: fitted("restarts").history_, None),
    "comparison": (lambda: make_comparison(methods=13, names=[f"{NASTY} {i}" for i in range(13)], measures=["nDCG@10"]), 13),
    "comparison of sets": (lambda: make_comparison(methods=4, datasets=3, folds=2), 24),
    "comparison with failures": (lambda: with_failure(make_comparison(), "lambdamart", "x" * 2000 + NASTY), 8),
    "tuned": (tuned, 25),
    "fusion": (fusion, 2),
    "fusion of three": (lambda: fusion(3), 3),
    "importance": (lambda: er.inspect.importance(data(), fitted("trees"), repeats=1), 30),
    "optimality": (lambda: er.inspect.optimality(data(), fitted("linear")), 30),
    "smoothness": (lambda: er.inspect.smoothness(data(), fitted("network"), samples=[10], points=5), 16),
    "judging plan": (judging_plan, 95),
    "forces": (lambda: er.inspect.forces(data(), er.losses.Lambdas(er.measures.NDCG()), queries=12), 12),
    "slopes": (lambda: er.losses.slopes(data(), data().y, er.losses.Lambdas()), 600),
    "clicks": (lambda: simulated().clicks, None),
    "off-policy evaluation": (lambda: simulated().clicks.evaluate("DCG(gain='linear')@5", data(), data().y, "1/k"), 30),
    "interleaved": (lambda: er.clicks.interleave(data(), data().X[:, 0], data().X[:, 1]), None),
    "propensities": (lambda: simulated().clicks.propensities(bootstrap=5), None),
    "pairs": (lambda: paired().preferences, None),
    "strengths": (lambda: er.pairs.bradley_terry(paired()), None),
    "front": (lambda: er.pareto(data(), fitted("linear"), ["nDCG@10", "AP"]), None),
    "step function": (lambda: er.profile(data(), data().y, data().X[:, 0], "nDCG@10"), None),
}
PICTURED = ["comparison", "comparison of sets", "comparison with failures", "forces", "fusion", "history", "history of restarts"]
PICTURED += ["cutoff", "front", "importance", "optimality", "propensities", "smoothness", "step function"]


#: What has a picture and is no table.
PICTURES_ALONE = {"cutoff": (lambda: er.cutoff(data(), data().X[:, 0]),)}


@cache
def result(name):
    return (RESULTS | PICTURES_ALONE)[name][0]()


class _Tags(HTMLParser):
    """Tags that are opened and closed in turn, and all text."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", RESULTS)
def test_what_is_printed_is_short(name):
    text = repr(result(name))
    assert len(text.splitlines()) <= LINES
    assert len(text) <= LETTERS
    assert type(result(name)).__name__ in text
    assert "\x1b" not in text


def test_what_results_are_made_of_is_short_too():
    comparison = make_comparison(queries=400)
    parts = [comparison.fits[0], comparison.datasets[0], comparison.methods[0], data().docid, fusion().sweep, fusion().comparison[0]]
    parts += [
        er.losses.separate(data(), data().y, er.losses.Structured(er.measures.NDCG())),
        result("smoothness").curves[0],
        result("optimality").best,
    ]
    assert max(len(repr(part)) for part in parts) < 1000


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_shows_a_small_table_whatever_names_hold(name):
    page = result(name)._repr_html_()
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.seen <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "small", "b", "sup", "img"}
    assert len(re.sub(r'src="[^"]*"', "", page)) < 25_000
    assert page.count("<tr>") <= ROWS + 1
    assert page.count("<th ") <= COLUMNS + 1
    assert page.encode()  # no half characters


def test_markup_in_names_is_shown_as_it_is_written():
    for name in ("data", "linear model", "comparison", "importance", "tuned"):
        assert "&lt;script&gt;" in result(name)._repr_html_()


@pytest.mark.parametrize("name", RESULTS)
def test_a_frame_has_all_rows(name):
    frame = result(name).to_frame()
    assert isinstance(frame, pd.DataFrame)
    rows = RESULTS[name][1]
    assert len(frame) == (len(frame) if rows is None else rows)
    assert len(frame) > 0
    assert len(frame.columns) > 1


@pytest.mark.parametrize(
    ("installed", "kind"), [(("pandas", "polars", "pyarrow"), pd.DataFrame), (("polars",), pl.DataFrame), (("pyarrow",), pa.Table)]
)
@pytest.mark.parametrize("name", ["data", "evaluation", "linear model", "comparison", "importance", "tuned", "history", "smoothness"])
def test_a_frame_is_of_what_is_installed(monkeypatch, installed, kind, name):
    monkeypatch.setattr("exactrank._support.tables.find_spec", lambda library: library if library in installed else None)
    frame = result(name).to_frame()
    assert isinstance(frame, kind)
    assert len(frame) == len(result(name).to_frame())


def test_without_any_library_of_frames_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("exactrank._support.tables.find_spec", lambda library: None)
    with pytest.raises(er.errors.IncompatibleError, match=r"needs pandas, polars or pyarrow, and none is installed; pip install pandas"):
        data().to_frame()


def test_data_comes_back_from_its_frame_in_the_order_of_the_caller():
    given = data()
    frame = given.to_frame()
    assert frame["doc_id"].tolist() == [str(i) for i in range(600)]  # as they were given, not as they are kept
    back = er.RankingData.from_frame(frame)
    assert back.feature_names == given.feature_names
    for name in ("X", "y", "qid", "indptr", "order"):
        assert np.array_equal(getattr(back, name), getattr(given, name)), name
    assert back.docid.tolist() == given.docid.tolist()


def test_categories_of_data_are_text_in_its_frame():
    texts = ["b", None, "a", "b"]
    given = er.RankingData.from_frame(pd.DataFrame({"query_id": [1, 2, 1, 2], "relevance": 0, "size": [1.0, 2, 3, 4], "kind": texts}))
    read = given.to_frame()["kind"]
    assert [None if value != value else value for value in read] == texts
    assert er.RankingData.from_frame(given.to_frame()).levels == given.levels == {"kind": ("a", "b")}
    assert ">b<" in given._repr_html_()


def test_weights_and_offsets_of_data_are_in_its_frame():
    X = 1e9 + np.arange(12.0).reshape(6, 2) / 4  # float32 cannot hold it
    given = er.RankingData.from_arrays(X, range(6), qid=[1, 2, 1, 2, 1, 2], sample_weight=range(1, 7), query_weight=[2, 3])
    frame = given.to_frame()
    assert np.array_equal(frame[["x0", "x1"]], X)
    assert frame["query_weight"].tolist() == [2, 3, 2, 3, 2, 3]
    assert frame["sample_weight"].tolist() == [1, 2, 3, 4, 5, 6]
    assert "1e+09" in given._repr_html_()


def test_a_feature_called_as_another_column_is_refused_in_a_frame_and_shown():
    given = er.RankingData.from_arrays([[1.0]], [0], group=[1], feature_names=["relevance"])
    with pytest.raises(er.errors.DataError, match="the feature 'relevance' has the name of another column"):
        given.to_frame()
    assert given._repr_html_().count(">relevance<") == 2


def test_an_evaluation_has_one_row_per_query_and_shows_means():
    results = result("evaluation")
    frame = results.to_frame()
    assert np.array_equal(frame["nDCG@10"], results["nDCG@10"].values)
    assert f"{results.means['AP']:.4f}" in results._repr_html_()
    low, high = results["AP"].interval
    assert f"{low:.4f} to {high:.4f}" in results._repr_html_()


def test_a_small_table_says_how_much_more_there_is():
    table = Table("t", [f"c{j}" for j in range(20)], [[f"{i} {'x' * 300}"] * 20 for i in range(1234)]).head()
    assert table.note == "… and 1,224 more rows and 8 more columns"
    assert (len(table.rows), len(table.columns)) == (ROWS, COLUMNS + 1)
    assert max(len(cell) for row in table.rows for cell in row) <= 48
    assert Table("t", ["a"], [["b"]]).head().note == ""


def test_the_best_methods_come_first_in_a_comparison():
    comparison = make_comparison(methods=13, measures=["nDCG@10"])
    means = comparison.to_frame().query("measure == 'nDCG@10'").nlargest(1, "mean")
    assert repr(comparison).splitlines()[4].split()[1] == means["method"].item()
    assert "… and 3 more rows" in repr(comparison)
    assert len(str(comparison)) > len(repr(comparison))


def test_a_frame_of_a_comparison_is_what_its_csv_holds(tmp_path):
    comparison = make_comparison(datasets=2)
    (tmp_path / "a.csv").write_text(comparison.to_csv())
    read = pd.read_csv(tmp_path / "a.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(comparison.to_frame(), read, check_dtype=False)


@pytest.mark.parametrize("name", PICTURED)
def test_a_picture_returns_its_axes_and_goes_where_it_is_wanted(tmp_path, name):
    results = result(name)
    drawn = results.plot()
    several = isinstance(drawn, np.ndarray)
    panels = drawn.ravel() if several else [drawn]
    assert all(isinstance(axes, Axes) for axes in panels)
    assert panels[0].figure.figure.number in plt.get_fignums()  # a notebook shows it
    assert several == (name in ("comparison of sets", "optimality", "smoothness"))
    before = plt.get_fignums()
    ax = plt.figure().subplots()
    assert results.plot(ax) is ax
    assert ax.has_data()
    path = tmp_path / "a.svg"
    results.plot(path=path)
    assert path.read_text().startswith("<?xml")
    assert plt.get_fignums() == [*before, ax.figure.number]  # what is written leaves no figure behind
    with pytest.raises(er.errors.OutputExistsError):
        results.plot(path=path)
    results.plot(path=path, force=True)
    both = tmp_path / "both.png"
    assert results.plot(ax, both) is ax
    assert both.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", PICTURED)
def test_a_path_in_the_place_of_axes_is_named(name):
    with pytest.raises(er.errors.DataError, match=r"ax='a\.png' is a path, not an Axes of matplotlib; give plot\(path='a\.png'\)"):
        result(name).plot("a.png")


def test_all_results_are_looked_at():
    """So that the laws above hold for a result that is added, too."""
    kinds = {type(result(name)) for name in RESULTS} | {type(fitted(name).model_.scorer) for name in ("linear", "network", "thresholds")}
    deep = er.load(GOLDEN / "models" / "deep.json").scorer  # made by PyTorch, which need not be there
    assert len(repr(deep)) < 100
    assert "<table" in deep._repr_html_()
    kernel = er.load(GOLDEN / "models" / "kernel.json").scorer
    assert len(repr(kernel)) < 200
    assert "<table" in kernel._repr_html_()
    kinds |= {type(deep), type(kernel)}
    assert _derived(Tabular) - {er.models.Sum, Scorer} <= kinds
    assert _derived(Plottable) == {type(result(name)) for name in PICTURED}


def _derived(kind):
    results = {each for own in kind.__subclasses__() for each in (own, *_derived(own))}
    return {each for each in results if each.__module__.startswith("exactrank.")}


def test_pictures_without_matplotlib_say_what_to_install(monkeypatch):
    results = result("history")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(er.errors.IncompatibleError, match=r"pip install 'exactrank\[report\]'"):
        results.plot()
    assert "<img" not in fusion()._repr_html_()


def test_a_fusion_of_two_is_shown_with_its_picture():
    assert '<img src="data:image/png;base64,' in fusion()._repr_html_()
    assert "<img" not in fusion(3)._repr_html_()


def test_colors_are_those_of_the_report():
    style = (ROOT / "src" / "exactrank" / "compare" / "report" / "report.css").read_text()
    light = dict(re.findall(r"--(c\d|ink|quiet): (#\w+)", style.partition("@media")[0]))
    full = {name: color if len(color) == 7 else "#" + "".join(2 * digit for digit in color[1:]) for name, color in light.items()}
    assert tuple(full[f"c{i}"] for i in range(len(pictures.COLORS))) == pictures.COLORS
    assert (full["ink"], full["quiet"]) == (pictures.INK, pictures.QUIET)


def test_labels_of_a_picture_of_optimality_do_not_overlap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) / [1, 1e5]
    far = er.RankingData.from_arrays(X, np.argsort(np.argsort(X[:, 0])) // 1000, group=[100] * 30, feature_names=["a", "b"])
    for weights in ([0.0, 1.0], [1.0, 123456.789]):
        for axes in er.inspect.optimality(far, er.Model(er.models.Linear(np.array(weights), ("a", "b"))), measure="nDCG").plot().ravel():
            axes.figure.canvas.draw()
            left, right = axes.get_xlim()
            shown = [label for label in axes.get_xticklabels() if left <= label.get_position()[0] <= right and label.get_text()]
            boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
            assert len(boxes) >= 2
            assert all(one.x1 + 2 < other.x0 for one, other in pairwise(boxes))


# History


def test_a_history_is_the_tuple_that_it_holds():
    steps = [Progress(0, 3, 0.25, 0.5), Progress(1, 3, 0.5, 0.75), Progress(2, 3, 0.75, 0.625)]
    history = History(steps, "AP")
    assert history == tuple(steps)
    assert (history[1], history[-1], len(history), history[:2]) == (steps[1], steps[2], 3, tuple(steps[:2]))
    assert history.best is steps[1]
    assert repr(history) == "History(3 steps, best AP 0.7500 on validation data at step 1)"
    assert history.to_frame().to_dict("list") == {"step": [0, 1, 2], "value": [0.25, 0.5, 0.75], "valid": [0.5, 0.75, 0.625]}
    assert repr(History([])) == "History(no steps)"
    assert History([]).plot() is not None


def test_restarts_are_lines_of_their_own_and_marked():
    steps = [Progress(s, 9, 0.1 * s, run=f"{s // 3}/") for s in range(9)]
    axes = History(steps).plot()
    curves = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert [line.get_xdata().tolist() if hasattr(line.get_xdata(), "tolist") else line.get_xdata() for line in curves] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert sum(line.get_linestyle() == ":" for line in axes.lines) == 2
    assert "3 runs" in repr(History(steps))


def test_a_fit_keeps_its_history_with_the_measure(tmp_path):
    ranker = fitted("trees")
    assert isinstance(ranker.history_, History)
    assert ranker.history_.measure == "nDCG@10"
    assert ranker.history_.plot().get_ylabel() == "nDCG@10"
    again = pickle.loads(pickle.dumps(ranker)).history_
    assert (again, again.measure) == (ranker.history_, "nDCG@10")


# Comparison


def test_a_forest_plot_shows_each_difference_from_the_baseline():
    comparison = make_comparison(methods=5, queries=60)
    frame = comparison.to_frame().query("measure == 'AP'").set_index("method")["mean"]
    axes = comparison.plot(measure="AP", baseline="directrank")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("o", "s")]
    expected = (frame - frame["directrank"]).drop("directrank").sort_values(ascending=False)
    assert labels == expected.index.tolist()
    assert points == pytest.approx(expected.tolist())
    assert "difference from directrank" in axes.get_xlabel()
    for name, value in (("dataset", "data-9"), ("measure", "RR"), ("baseline", "bm25")):
        with pytest.raises(er.errors.DataError, match=re.escape(value)):
            comparison.plot(**{name: value})
    assert make_comparison(datasets=2).plot(dataset="data-2").get_title().startswith("data-2: ")


# Models


@cache
def frame():
    """The data of a search, with columns that are no features among the others."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    made = pd.DataFrame({"title": "text", "b": X[:, 1], "query_id": np.repeat(range(10), 20), "a": X[:, 0], "c": X[:, 2]})
    made["relevance"] = (X[:, 0] > 0.5).astype(int)
    return made


@cache
def model():
    return er.Ridge().fit(er.RankingData.from_arrays(frame()[["a", "b", "c"]], frame()["relevance"], qid=frame()["query_id"])).model_


FRAMES = {
    "others besides": lambda given: given,
    "in another order": lambda given: given[given.columns[::-1]],
    "its own alone": lambda given: given[["a", "b", "c"]],
    "polars": pl.from_pandas,
    "Arrow": pa.Table.from_pandas,
    "nullable": lambda given: given.astype({"a": "Float64", "b": "Float32"}),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("trained", ["here", "elsewhere"])
def test_a_model_takes_its_own_columns_out_of_a_frame(kind, trained):
    given = model() if trained == "here" else _imported()
    expected = given.predict(frame()[["a", "b", "c"]].to_numpy())
    ours = given.predict(FRAMES[kind](frame()))
    assert ours == pytest.approx(expected, abs=1e-6 if kind == "nullable" else 0)


@cache
def _imported():
    lightgbm = pytest.importorskip("lightgbm")
    made = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=5, verbose=-1)
    return er.from_estimator(made.fit(frame()[["a", "b", "c"]], frame()["relevance"], group=[20] * 10))


def test_columns_that_a_frame_lacks_are_named():
    with pytest.raises(
        er.errors.IncompatibleError, match=r"lacks 2 of the 3 features of the model: a, c; it has title, b, query_id, relevance; give"
    ):
        model().predict(frame().drop(columns=["a", "c"]))
    with pytest.raises(er.errors.IncompatibleError, match="feature 'b' holds categories in the data, but the model has numbers for it"):
        model().predict(frame().assign(b="x"))


def test_a_model_of_categories_takes_them_out_of_a_frame_with_others():
    given = frame().assign(kind=np.where(frame()["relevance"] > 0, "good", "bad"), tag="x")
    trained = er.LambdaMART(trees=5, bags=0).fit(er.RankingData.from_frame(given.drop(columns=["title", "tag"]))).model_
    expected = trained.predict(given[list(trained.feature_names)])
    assert len(set(expected[given["kind"] == "good"]) & set(expected[given["kind"] == "bad"])) == 0
    for mixed in (given, given[given.columns[::-1]], pl.from_pandas(given), given.astype({"kind": "category"})):
        assert np.array_equal(trained.predict(mixed), expected)
    with pytest.raises(er.errors.IncompatibleError, match="feature 'kind' holds numbers in the data, but it is a category of the model"):
        trained.predict(given.assign(kind=1.0))
    assert "kind" in trained._repr_html_()


def test_labels_of_columns_need_not_be_strings():
    numbered = er.Model(er.models.Linear(np.array([1.0, -1.0]), ("0", "1")))
    assert numbered.predict(pd.DataFrame({2: ["x"], 1: [3.0], 0: [5.0]})).tolist() == [2.0]


@pytest.mark.parametrize("trained", ["here", "loaded", "elsewhere"])
def test_a_model_scores_and_evaluates_itself(tmp_path, trained):
    given = _imported() if trained == "elsewhere" else model()
    if trained == "loaded":
        given.save(tmp_path / "m.json")
        given = er.load(tmp_path / "m.json")
    table = frame()
    data = er.RankingData.from_arrays(table[["a", "b", "c"]], table["relevance"], qid=table["query_id"])
    assert given.feature_names == ("a", "b", "c")
    theirs = er.evaluate(data, given.predict(data), ["AP", "nDCG@5"])
    for ours in (
        given.evaluate(data, ["AP", "nDCG@5"]),
        given.evaluate(table, ["AP", "nDCG@5"]),
        given.evaluate(table, ["AP", "nDCG@5"], y=table["relevance"], qid=table["query_id"]),
        given.evaluate(table[["a", "b", "c"]].to_numpy(), ["AP", "nDCG@5"], y=table["relevance"], group=[20] * 10),
    ):
        assert ours.means == theirs.means
    assert given.score(table, measure="AP") == theirs.means["AP"]
    assert given.score(table, table["relevance"], qid=table["query_id"], measure="AP") == theirs.means["AP"]
    if trained == "elsewhere":
        with pytest.raises(er.errors.IncompatibleError, match="does not say what measure it was trained on; name one"):
            given.score(data)
    else:
        assert given.score(data) == given.evaluate(data).means[given.measure] == given.score(data, measure="nDCG@10")


def test_what_a_model_cannot_evaluate():
    data = er.RankingData.from_frame(frame())
    with pytest.raises(er.errors.DataError, match="RankingData holds y, qid already; leave out them"):
        model().score(data, frame()["relevance"], qid=frame()["query_id"])
    with pytest.raises(er.errors.DataError, match="there are no grades; give y and qid"):
        model().score(frame()[["a", "b", "c"]].to_numpy())
    with pytest.raises(er.errors.DataError, match="has no column 'relevance' for the grade"):
        model().score(frame().drop(columns="relevance"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("linear", r"Model\(Linear\(30 features\), trained by Ridge on nDCG@10 of 30 queries\)"),
        ("trees", r"Model\(TreeEnsemble\(\d+ trees, 30 features\), trained by LambdaMART on nDCG@10 of 30 queries\)"),
        ("network", r"Model\(Network\(3 hidden units, 30 features\), trained by RankNet on nDCG@10 of 30 queries\)"),
        ("thresholds", r"Model\(Thresholds\(\d+ steps, 30 features\), trained by RankBoost on nDCG@10 of 30 queries\)"),
    ],
)
def test_a_model_says_what_it_is(name, text):
    assert re.fullmatch(text, repr(fitted(name).model_))


def test_a_model_of_an_unknown_measure_is_shown():
    assert repr(replace(model(), measure="x" * 200)).count("x") < 80


def test_a_model_shows_the_features_that_count_most():
    page = fitted("trees").model_._repr_html_()
    gain = fitted("trees").model_.scorer.importance("gain")
    cells = re.findall(r"<td [^>]*>([^<]*)</td>", page)
    best = fitted("trees").model_.feature_names[int(np.argmax(gain))]
    assert cells[0].endswith(best[-3:])
    assert f"… and {30 - ROWS} more rows" in page
