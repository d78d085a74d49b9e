"""The experiment with trees: its inequalities are what the published tables say, and its numbers what the rankers score."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial
from exactrank.rankers.training_data import in_content_order
from exactrank.reproduce import find_experiment
from exactrank.reproduce.artificial import three_parts
from exactrank.reproduce.experiment import signed_rank
from exactrank.reproduce.tree_tables import METHODS, MICROSOFT, TABLES_9_AND_10, YAHOO, Contest, GrownMethod
from tests.reproduce.test_reproduce_structured import fold_of

LEAVES = (3, 5)
SETTINGS = {"trees": 6, "patience": 6, "min_documents": 20, "l2": 0.0, "min_curvature": 1e-3, "query_fraction": 1.0, "threads": 1}
SETTINGS |= {"feature_fraction": 1.0}
AS_PUBLISHED = {"follow": "grades", "search": "all", "low": 0.1, "high": 0.5, "smoothing": 1.0, "leverage": 0}
RANKERS = {
    "DirectRank": lambda **more: er.DirectRankTrees(bags=0, clip=True, **AS_PUBLISHED, **SETTINGS, **more),
    "DirectRank, within": lambda **more: er.DirectRankTrees(bags=0, **AS_PUBLISHED, **SETTINGS, **more),
    "MART": lambda **more: er.MART(learning_rate=0.1, bags=0, **SETTINGS, **more),
    "LambdaMART": lambda **more: er.LambdaMART(learning_rate=0.1, near=0.0, bags=0, **SETTINGS, **more),
    "MART, rate 0.5": lambda **more: er.MART(learning_rate=0.5, bags=0, **SETTINGS, **more),
}


def grown(*means, queries=4):
    """A method that has the same measures for all queries."""
    return GrownMethod(np.repeat(np.reshape(means, (2, 1)), queries, axis=1), 3, (0.1, 0.2), (0.1, 0.3))


def contest(means, name=MICROSOFT):
    return Contest(name, {key: grown(*each) for key, each in means.items()})


def small(**more):
    return find_experiment("tree-tables")(
        **({"features": 4, "documents": 12, "noise": 0.3, "leaves": LEAVES, "trees": 6, "threads": 1, "seed": 5} | more)
    )


@pytest.fixture(scope="module")
def found():
    return small(yahoo=(60, 30, 40), microsoft=(40, 30, 40)).run()


# ---- inequalities


@pytest.mark.parametrize(("name", "count"), [(YAHOO, 4), (MICROSOFT, 13)])
def test_the_published_tables_say_what_is_checked(name, count):
    """Even if MART's rate had been the upper bound of the search."""
    means = {(leaves, method): each for (where, leaves, method), each in TABLES_9_AND_10.items() if where == name}
    rates = {(leaves, "MART, rate 0.5"): each for (leaves, method), each in means.items() if method == "MART"}
    assert [check.holds for check in contest(means | rates, name).checks()] == [True] * count


@given(st.data(), st.integers(1, 3))
def test_inequalities_in_plain_words(data, count):
    """With means in steps of a tenth there are ties, where no inequality holds."""
    leaves = (10, 30, 50)[:count]
    means = {(n, method): [data.draw(st.integers(0, 9)) / 10 for _ in range(2)] for n in leaves for method in METHODS}
    expected = []
    for k in (0, 1):
        expected += [means[n, "DirectRank"][k] > max(means[n, "MART"][k], means[n, "LambdaMART"][k]) for n in leaves]
        ours, control = (sum(round(10 * means[n, method][k]) for n in leaves) for method in ("DirectRank", "MART, rate 0.5"))
        expected.append(ours > control)
    if count > 1:
        at_one = {method: [round(10 * means[n, method][0]) for n in leaves] for method in METHODS}
        leads = [ours - max(mart, other) for ours, mart, other in zip(*(at_one[m] for m in METHODS[:3]), strict=True)]
        expected.append(all(leads[0] > lead for lead in leads[1:]))
        spread = {method: max(values) - min(values) for method, values in at_one.items()}
        for rival in ("MART", "LambdaMART"):
            expected += [at_one[rival][-1] > at_one[rival][0], spread["DirectRank"] < spread[rival]]
    checks = list(contest(means).checks())
    apart = [abs(check.right - check.left) > 1e-9 for check in checks]
    assert [check.holds and far for check, far in zip(checks, apart, strict=True)] == expected


def test_chances_are_those_of_each_measure():
    rng = np.random.default_rng(0)
    ours, theirs = rng.random((2, 60)), rng.random((2, 60))
    ours[0] += 0.3
    each = {(10, method): replace(grown(0, 0), values=ours if method == "DirectRank" else theirs) for method in METHODS}
    for row in Contest(MICROSOFT, each).table().rows[1:]:
        assert [row[3], row[5]] == [f"{signed_rank(a, b):.2g}" for a, b in zip(ours, theirs, strict=True)]
        assert float(row[3]) < 0.01 < float(row[5])


# ---- a run


@pytest.mark.parametrize(("table", "documents", "train", "leaves"), [(0, 4, 60, (3,)), (1, 12, 40, (3, 5))])
def test_what_is_shown_is_what_the_rankers_score(found, table, documents, train, leaves):
    fold = three_parts(CubicPolynomial(4, documents, noise=0.3, seed=5), (train, 30, 40))
    rows = {tuple(row[:2]): row[2:] for row in found.tables[table].rows}
    assert list(rows) == [(n, method) for n in leaves for method in METHODS]
    for (number, method), row in rows.items():
        rankers = [
            RANKERS[method](measure=measure, leaves=number, seed=5).fit(fold.train, valid=fold.valid) for measure in ("nDCG@1", "nDCG@10")
        ]
        assert [row[0], row[2]] == pytest.approx([ranker.score(fold.test) for ranker in rankers])
        assert row[4] == rankers[1].model_.scorer.n_trees


def test_weights_are_those_of_the_trees(found):
    """The least squares tree t has t.t = t.r with the residuals r, so its weight can be told from its weighted outputs."""
    fold = three_parts(CubicPolynomial(4, 12, noise=0.3, seed=5), (40, 30, 40))
    ranker = RANKERS["DirectRank"](measure="nDCG@10", leaves=3, seed=5).fit(fold.train, valid=fold.valid)
    left, weights = fold.train.y - fold.train.y.mean(), []
    for number in range(ranker.model_.scorer.n_trees):
        output = er.models.TreeEnsemble(ranker.model_.scorer.table.single(number)).score(fold.train.X)
        weights.append(output @ output / (output @ left))
        left = left - output
    (shown,) = found.panels[3].curves
    np.testing.assert_allclose(shown.y, weights, rtol=1e-5)
    assert min(shown.y) >= 0.1
    assert max(shown.y) == 0.5  # clipped


def test_climbs_are_of_validation_data(found):
    fold = three_parts(CubicPolynomial(4, 12, noise=0.3, seed=5), (40, 30, 40))
    for curve in found.panels[2].curves:
        ranker = RANKERS[curve.label](measure="nDCG@10", leaves=3, seed=5).fit(fold.train, valid=fold.valid)
        assert curve.y[ranker.model_.scorer.n_trees - 1] == pytest.approx(ranker.score(in_content_order(fold.valid)))
        assert curve.x == tuple(range(1, 7))


def test_folds_of_a_folder_are_pooled(tmp_path):
    source = CubicPolynomial(4, 12, noise=0.3, seed=5)
    folds = [[source.data(*each) for each in (((30, 1), (10, 40), (5, 60)), ((30, 70), (10, 110), (15, 130)))[i]] for i in (0, 1)]
    for name, numbers in (("both", (1, 2)), ("first", (1,)), ("second", (2,))):
        for number in numbers:
            fold_of(tmp_path / name, number, folds[number - 1])
    both, first, second = (
        np.array([[row[2], row[4], row[6]] for row in small(data=(str(tmp_path / name),)).run().tables[0].rows])
        for name in ("both", "first", "second")
    )
    np.testing.assert_allclose(both[:, :2], (5 * first + 15 * second)[:, :2] / 20)
    np.testing.assert_allclose(both[:, 2], (first + second)[:, 2] / 2, atol=0.5)
    assert not np.allclose(first, second)
