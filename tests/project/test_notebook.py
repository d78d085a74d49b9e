"""A real notebook, run by Jupyter's kernel: every result as the last line of a cell."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

#: What comes first, and then a cell for each result by its name.
SETUP = """
import warnings
import numpy as np, pandas as pd, exactrank as er
warnings.filterwarnings("ignore", category=FutureWarning)
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
frame = pd.DataFrame(X, columns=["bm25", "dense", "<b>age</b>", "length"])
frame["relevance"] = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=400) + 1), 0, 3)
frame["query_id"] = np.arange(400) // 20
data = er.RankingData.from_frame(frame)
train, valid = data.take_queries(range(12)), data.take_queries(range(12, 20))
linear, trees = er.Ridge().fit(train), er.LambdaMART(trees=20, bags=0).fit(train, valid=valid)
"""
RESULTS = {
    "data": "data",
    "model": "trees.model_",
    "linear model": "linear.model_",
    "scorer": "trees.model_.scorer",
    "evaluation": "trees.model_.evaluate(valid, ['nDCG@10', 'AP'])",
    "history": "trees.history_",
    "fusion": "er.fuse(er.systems_from_frame(frame, ['bm25', 'dense']), folds=2, bootstrap=20)",
    "importance": "er.inspect.importance(valid, trees, repeats=1)",
    "optimality": "er.inspect.optimality(valid, linear)",
    "smoothness": "er.inspect.smoothness(valid, linear, samples=[])",
    "forces": "er.inspect.forces(valid, er.losses.Lambdas(), queries=3)",
    "step function": "er.profile(valid, linear.predict(valid), valid.feature('bm25'), 'nDCG@10')",
    "comparison": "er.compare(data, [er.Ridge(), er.RankBoost(max_iter=5)], trials=1, folds=3, workers=1)",
}
RANKERS = {
    "linear ranker": "linear",
    "tree ranker": "trees",
    "network ranker": "er.RankNet(hidden=3, max_iter=3).fit(train)",
    "threshold ranker": "er.RankBoost(max_iter=5).fit(train)",
}
PICTURES = {
    "history": "trees.history_.plot()",
    "history again": "trees.history_.plot()  # once more",
    "importance": "er.inspect.importance(valid, trees, repeats=1).plot()",
    "optimality": "er.inspect.optimality(valid, linear).plot();",
}


@pytest.fixture(scope="module")
def outputs():
    """What each cell showed, by its source."""
    cells = [SETUP, *RESULTS.values(), *RANKERS.values(), "[hasattr(m, 'weights_') for m in (linear, trees)]", *PICTURES.values()]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return {cell.source: cell.outputs for cell in notebook.cells}


def shown(outputs, source, kind):
    """All that a cell showed in one form."""
    return [
        output.data[kind] for output in outputs[source] if output.output_type in ("execute_result", "display_data") and kind in output.data
    ]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_at_the_end_of_a_cell_is_a_small_table(outputs, name):
    (page,), (text,) = shown(outputs, RESULTS[name], "text/html"), shown(outputs, RESULTS[name], "text/plain")
    assert "<table>" in page
    assert "<b>age</b>" not in page
    assert len(re.sub(r'src="[^"]*"', "", page)) < 20_000
    assert len(text) < 2_000
    assert len(text.splitlines()) <= 20


@pytest.mark.parametrize("name", RANKERS)
def test_a_fitted_ranker_at_the_end_of_a_cell_is_shown_by_scikit_learn(outputs, name):
    (page,) = shown(outputs, RANKERS[name], "text/html")
    assert "fitted" in page.lower()
    assert not [output for output in outputs[RANKERS[name]] if output.output_type in ("error", "stream")]


def test_only_linear_models_have_weights(outputs):
    assert shown(outputs, "[hasattr(m, 'weights_') for m in (linear, trees)]", "text/plain") == ["[True, False]"]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_shown_below_its_cell(outputs, name):
    assert len(shown(outputs, PICTURES[name], "image/png")) == 1
