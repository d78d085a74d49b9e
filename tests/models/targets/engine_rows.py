"""Models of every kind, and rows that tell a right rounding of thresholds from a wrong one."""

import numpy as np

import exactrank as er
from exactrank.models.targets.plain import plain
from tests.models.targets.test_export import FEATURES, data_of, scorers

__all__ = ["FEATURES", "as_data", "data_of", "forest", "models", "rows_near"]


def models(seed, missing="keep"):
    """One scorer of each kind, and sums of them, by name."""
    return dict(zip(("linear", "network", "thresholds", "trees", "sum", "linear and trees"), scorers(seed, missing), strict=True))


def forest(seed, missing="error", trees=4, leaves=6):
    """Trees that were trained with missing values, unless ``missing`` is "error"."""
    data = data_of(seed, holes=0.0 if missing == "error" else 0.3)
    ranker = er.LambdaMART(trees=trees, leaves=leaves, min_documents=1, bags=0, missing=missing, seed=seed % 1000)
    return ranker.fit(data).model_.scorer


def rows_near(scorer, seed, holes=0.0, count=120):
    """Rows whose values are those around the thresholds of their features, and around 0, both sides included."""
    rng, terms = np.random.default_rng(seed), plain(er.Model(scorer))
    columns = []
    for j in range(scorer.n_features):
        own = np.concatenate([tree.threshold[tree.feature == j] for tree in terms.trees]) if terms.trees else np.empty(0)
        middle = np.concatenate([own, [0.0, -0.0, 1e-35, 1e-45, -1e-45, 1.5, -2.5]]).astype(np.float32)
        with np.errstate(over="ignore"):
            around = np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))])
        columns.append(rng.choice(around[np.isfinite(around)], count))
    rows = np.stack(columns, axis=1)
    rows[rng.random(rows.shape) < holes] = np.nan
    return rows


def as_data(rows):
    """The rows as one query, graded at random."""
    grades = np.random.default_rng(len(rows)).integers(0, 3, len(rows))
    return er.RankingData.from_arrays(rows, grades, group=[len(rows)], feature_names=FEATURES)
