"""The weights of all trees of an ensemble set anew, for the measure (what Tan, Xia, Guo & Wang 2013 call leveraging).

    s = sum_t w_t tree_t,    at first all w_t = 1                                                               (1)

is a linear model whose features are the trees' outputs, so DirectRank trains it: exact coordinate ascent, as a mean over bootstrap
samples of the queries against overfitting. From the weights as they were the exact line search on all queries goes towards that mean,
at most to it; so the training measure does not fall.
"""

from dataclasses import replace
from typing import cast

import numpy as np

from exactrank.arrays import Matrix
from exactrank.data.ranking_data import RankingData
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.line_search import LineSearch
from exactrank.rankers.directrank import DirectRank
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import PerFeature
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.scorers.tree_text import scaled
from exactrank.training.judge import severe
from exactrank.training.recorder import Recorder
from exactrank.training.task import Task

#: No tree weighs more than this, nor less than nothing.
MOST = 2.0
#: The share of the trees that each sample moves.
SHARE = 0.3


def leveraged(scorer: TreeEnsemble, task: Task, bags: int, seed: int, recorder: Recorder[Scorer]) -> TreeEnsemble:
    """``scorer`` with other weights in its leaves; ``bags`` is the number of bootstrap samples that are averaged."""
    if scorer.n_trees < 2:
        return scorer
    measure, data, threads = severe(task.measure), task.data, task.threads
    outputs, bound = _outputs(scorer, data, threads), measure.on(data, threads=threads)
    trees = replace(data, X=outputs, feature_names=tuple(f"tree {t}" for t in range(scorer.n_trees)), offset=None)
    ones = np.ones(scorer.n_trees)
    search = DirectRank(measure, bags=bags, start=ones.tolist(), low=0.0, high=MOST, share=SHARE, seed=seed, threads=threads)
    found = recorder.remembered("leverage", lambda: search._trained(Task(measure, trees, threads=threads), recorder.apart(1)).iterate)
    towards = cast(Linear, found).weights - ones
    anew = replace(scorer, text=scaled(scorer.text, ones + _step(outputs, towards, bound) * towards))
    before, after = (bound.mean(each.score(data.X, threads)) for each in (scorer, anew))
    return anew if after >= before else scorer


def _outputs(scorer: TreeEnsemble, data: RankingData, threads: int | None) -> Matrix:
    """What each tree, a column, says of each document."""
    outputs = np.empty((data.n_documents, scorer.n_trees), np.float32)
    for number, tree in enumerate(scorer.single_trees()):
        outputs[:, number] = tree.score(data.X, threads)
    return outputs


def _step(outputs: Matrix, towards: PerFeature, bound: BoundMeasure) -> float:
    """How far to go from weights of 1 ``towards`` others, 0 to 1."""
    search = LineSearch(bound)
    search.start(outputs.sum(axis=1, dtype=np.float64))
    return search.best(outputs @ towards, 0.0, 1.0).middle()
