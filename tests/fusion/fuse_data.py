"""Systems to fuse: random ones for laws, noisy ones that have something to tune."""

import math

import numpy as np
from hypothesis import strategies as st

import exactrank as er
from exactrank.fusion.normalize import normalize_systems

SCORES = st.one_of(st.just(math.nan), st.integers(0, 10).map(lambda n: n / 10), st.sampled_from([0.25, 1 / 3, -0.0, 2.0]))
NAMES = ("bm25", "dense", "rerank", "fresh")


@st.composite
def systems(draw, n=2, max_queries=3, max_documents=6, anchored=True):
    """Few distinct scores, many of them missing; an anchor query makes sure that there is something to tune."""
    sizes = draw(st.lists(st.integers(1, max_documents), min_size=1, max_size=max_queries))
    rows = st.tuples(st.integers(-1, 3), *[SCORES] * n)
    drawn = draw(st.lists(rows, min_size=sum(sizes), max_size=sum(sizes)))
    anchor = [(i % 2, *((i + j) % (n + 1) / n for j in range(n))) for i in range(n + 1)] if anchored else []
    table = np.array([*drawn, *anchor])
    group = [*sizes, *([len(anchor)] if anchor else [])]
    return er.RankingData.from_arrays(table[:, 1:], table[:, 0], group=group, feature_names=NAMES[:n])


def random_systems(n, queries=20, documents=15, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, queries * documents, p=[0.7, 0.2, 0.1])
    X = y[:, None] + rng.normal(scale=np.linspace(1, 2, n), size=(len(y), n))
    X[rng.random(X.shape) < 0.2] = np.nan
    return er.RankingData.from_arrays(X, y, group=[documents] * queries, feature_names=NAMES[:n])


def value_at(data, weights, measure, **policies):
    """The measure of the weighted sum, by er.evaluate on all documents."""
    values, ranked = normalize_systems(data.X, data.indptr, policies.get("normalize", "min-max"), policies.get("absent", "worst"))
    scores = sum(w * v for w, v in zip(weights, values, strict=True))
    return er.evaluate(data, np.where(ranked, scores, -np.inf), [measure]).means[measure]
