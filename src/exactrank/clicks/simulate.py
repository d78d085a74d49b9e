"""Artificial clicks on graded documents, with known propensities: `er.clicks.simulate_clicks`.

A few live rankers are linear models that are partly right: their weights are t + b + o / 2, with t the correlation of features with
grades, b a random direction that all share, and o a random one of each; so raw clicks favor what b favors. In each session one of them
ranks the documents of a query, its scores with ``jitter``, and the first few are shown. A document of grade y attracts with

    gamma = least + (most - least) y / y_max                                                                    (1)

With ``"pbm"`` rank k is examined with probability theta_k, with ``"cascade"`` users read down to the first click.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank._support import numerics
from exactrank._support.arguments import check_count, check_number
from exactrank._support.arrays import Floats, PerDocument
from exactrank.clicks.log import DEEPEST, Clicks, encode_ids
from exactrank.clicks.propensities import Given, Propensities, given_propensities
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError

LEAST, MOST = 0.1, 0.9
MOST_IMPRESSIONS = 10**8  #: of all sessions together, which are made in memory
MOST_RANKERS = 10_000


@dataclass(frozen=True, eq=False)
class Simulated:
    """Clicks and the truth behind them."""

    clicks: Clicks
    propensities: Propensities  #: of the cascade, their means over all pages
    relevance: PerDocument  #: (1) of each document of the data, in its own order


def simulate_clicks(
    data: RankingData,
    model: Literal["pbm", "cascade"] = "pbm",
    *,
    sessions: int = 100,
    page_size: int = 10,
    rankers: int = 4,
    jitter: float = 1.0,
    propensity: Given = "1/k",
    seed: int = 0,
) -> Simulated:
    """Draw clicks in ``sessions`` sessions per query of ``data``, which needs document ids; each shows ``page_size`` documents.

    ``propensity`` are the probabilities that each rank is examined, in the position-based model. ``jitter`` is in units of the spread
    of a ranker's scores within a query.
    """
    check_data(data)
    if model not in ("pbm", "cascade"):
        raise DataError(f"model={model!r} is not a click model; use 'pbm' or 'cascade'")
    check_count("page_size", page_size, 1, DEEPEST)
    check_count("sessions", sessions, 1, max(1, MOST_IMPRESSIONS // (data.n_queries * min(page_size, data.longest))))
    check_count("rankers", rankers, 1, MOST_RANKERS)
    check_count("seed", seed, 0)
    check_number("jitter", jitter)
    if data.docid is None:
        raise DataError("the data has no document ids, which a click log needs; read it with ids, or generate it with --clicks")
    depth = min(page_size, data.longest)
    theta = given_propensities(propensity, np.arange(1, depth + 1)).at(np.arange(1, depth + 1))
    relevance = LEAST + (MOST - LEAST) * np.maximum(data.y, 0.0) / max(float(data.y.max()), 1.0)
    live, pages = _live_scores(data, rankers, seed), list[Pages]()
    for q in range(data.n_queries):
        rows = np.arange(data.indptr[q], data.indptr[q + 1])
        rng = np.random.default_rng([seed, 1, q])
        scores = live[rng.integers(0, rankers, sessions)][:, rows]
        spread = np.maximum(scores.std(axis=1, keepdims=True), 1e-9)
        order = np.argsort(-(scores / spread + jitter * numerics.standard_normal(rng, scores.shape)), axis=1, kind="stable")[:, :depth]
        pages.append(_draw_clicks(rows[order], relevance, theta, model, rng))
    row, rank, clicked, examined = (np.concatenate(parts) for parts in zip(*pages, strict=True))
    total = np.maximum(np.bincount(rank), 1)
    truth = theta if model == "pbm" else (np.bincount(rank, examined) / total)[1:]
    return Simulated(
        _log(data, data.docid, (row, rank, clicked, examined)), Propensities("true", np.arange(1, depth + 1), truth), relevance
    )


def _live_scores(data: RankingData, rankers: int, seed: int) -> Floats:
    """Return the scores of each live ranker."""
    rng = np.random.default_rng([seed, 0])
    X = np.nan_to_num((data.X - np.nanmean(data.X, axis=0)) / np.maximum(np.nanstd(data.X, axis=0), 1e-9)).astype(np.float64)

    def unit(vector: Floats) -> Floats:
        return vector / max(numerics.norm(vector), 1e-9)

    right = unit(numerics.matmul(data.y - data.y.mean(), X))
    shared, *tastes = map(unit, numerics.standard_normal(rng, (1 + rankers, X.shape[1])))
    return np.stack([numerics.matmul(X, right + shared + 0.5 * taste) for taste in tastes])


Pages = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_], Floats]


def _draw_clicks(row: npt.NDArray[np.int64], relevance: PerDocument, theta: Floats, model: str, rng: np.random.Generator) -> Pages:
    """Draw clicks: the rows of the pages in sequence, their ranks, whether each was clicked, and its examination probability."""
    (sessions, depth), examined = row.shape, np.ones(row.shape)
    attracts = rng.random(row.shape) < relevance[row]
    if model == "pbm":
        examined *= theta[:depth]
        clicked = attracts & (rng.random(row.shape) < examined)
    else:
        examined[:, 1:] = np.cumprod(1 - relevance[row], axis=1)[:, :-1]
        clicked = attracts & (np.cumsum(attracts, axis=1) == 1)
    return row.ravel(), np.tile(np.arange(1, depth + 1), sessions), clicked.ravel(), examined.ravel()


def _log(data: RankingData, docid: TextColumn, pages: Pages) -> Clicks:
    """Return the pages as a log; each is a session."""
    row, rank, clicked, _ = pages
    queries, query = encode_ids(data.qid)
    documents, document = encode_ids(np.array(docid.tolist(), dtype=str))
    shown_documents, place = np.unique(document[row], return_inverse=True)
    sessions, session = encode_ids(np.cumsum(rank == 1))
    of_row, number = np.repeat(query, data.sizes)[row], place.astype(np.int32)
    return Clicks(
        queries, documents.take(shown_documents.astype(np.int64)), of_row, number, rank.astype(np.int32), clicked, sessions, session
    )
