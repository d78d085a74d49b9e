"""The experiments with linear DirectRank: they check what the published tables say, and show what the rankers score."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank._support.numerics import standard_normal
from exactrank.data.synthetic import CubicPolynomial
from exactrank.reproduce import directrank_letor, directrank_search, find_experiment
from exactrank.reproduce.artificial import three_parts
from exactrank.reproduce.directrank_letor import METHODS, NEW, OLD, SHOWN, WINNING, LetorTrial, wins
from exactrank.reproduce.directrank_linear import ERR_MAP, HOURS, LARGE, OURS, Entry, err_map_checks, large_checks, times_checks
from exactrank.reproduce.jumping_points import LINES, checks_of
from tests.reproduce.test_reproduce_structured import fold_of


def entry(*means):
    return Entry(means, np.full(4, means[-1]), seconds=1.0)


# ---- the worked example


def test_the_example_is_the_published_one():
    assert [check.holds for check in checks_of(LINES)] == [True] * 7
    found = find_experiment("line-search-example")().run()
    assert "between p3 and p5." in found.summary
    merged = [row[0] for row in found.tables[2].rows]
    assert abs(merged.index("p3") - merged.index("p10")) == 1
    for table, lines in zip(found.tables, LINES.values(), strict=False):
        shown = np.array([row[1:] for row in table.rows[:5]])
        assert ["".join(cell[-1] for cell in column) for column in shown.T] == list(lines.published)


@pytest.mark.parametrize(
    ("query", "change", "broken"),
    [
        ("q1", {"a": (-0.5, 0, 0.1, 0, 1)}, {0, 1}),
        ("q1", {"published": ("12345", "21345", "21543", "25143", "52143", "52314")}, {1}),
        ("q2", {"a": (-8, 0, 0, 2, 3)}, {2, 3}),
        ("q1", {"grades": (1, 2, 0, 1, 1)}, {4, 6}),
        ("q1", {"grades": (0, 2, 1, 1, 2)}, {4, 5, 6}),
        ("q2", {"b": (16, 12, 4, -6, -8)}, {6}),
    ],
)
def test_each_inequality_of_the_example_can_fail(query, change, broken):
    checks = checks_of({**LINES, query: replace(LINES[query], **change)})
    assert broken <= {i for i, check in enumerate(checks) if not check.holds}


# ---- inequalities of the tables


@pytest.mark.parametrize(("name", "count"), [("as Yahoo", 15), ("as Microsoft", 12), ("mine", 12)])
def test_tables_6_and_7_say_what_is_checked(name, count):
    published = {method: entry(*means) for method, means in LARGE.get(name, LARGE["as Microsoft"]).items()}
    assert [check.holds for check in large_checks(name, published)] == [True] * count
    worse = {**published, OURS: entry(0.1, 0.1, 0.1)}
    assert not any(check.holds for check in large_checks(name, worse))


@pytest.mark.parametrize(("measure", "count"), [("ERR", 5), ("AP", 4)])
def test_table_8_says_what_is_checked(measure, count):
    published = {method: entry(mean or float("nan")) for method, mean in ERR_MAP[measure].items()}
    assert [check.holds for check in err_map_checks("", measure, published)] == [True] * count
    worse = {**published, OURS: entry(0.1), f"{OURS}@10": entry(0.1)}
    assert not any(check.holds for check in err_map_checks("", measure, worse))


def test_table_13_says_what_is_checked():
    assert [check.holds for check in times_checks("", HOURS)] == [True] * 5
    assert not any(check.holds for check in times_checks("", {method: 1 / hours for method, hours in HOURS.items()}))


@pytest.mark.parametrize(
    ("few", "spread", "holds"), [(0.05, 0.002, [True, True]), (0.001, 0.002, [True, False]), (0.05, 0.02, [False, True])]
)
def test_each_inequality_of_the_starts_can_fail(few, spread, holds):
    ends = np.array([-1.0, 1.0])
    assert [check.holds for check in directrank_search.start_checks("", 0.5 + spread * ends, 0.5 + few * ends)] == holds


# ---- winning numbers


def trial(name, group, ours, methods=METHODS):
    """DirectRank at ``ours``, all others near 0.5, no two alike."""
    others = {method: 0.5 + i / 1000 for i, method in enumerate(methods)}
    values = others | {OURS: ours}
    return LetorTrial(name, group, {method: np.full(10, value) for method, value in values.items()}, values, *2 * [np.zeros(0)])


@pytest.mark.parametrize("holds", [True, False])
def test_checks_of_letor_hold_where_directrank_wins(holds):
    ours = 0.9 if holds else 0.1
    groups = {OLD: [trial("TD2003", OLD, ours)], NEW: [trial("MQ2007", NEW, ours, directrank_letor.COMPARED[NEW])]}
    checks = list(directrank_letor.checks_of(groups))
    assert [check.holds for check in checks] == [holds] * (5 + 4 + 1 + 4 + 3)
    assert {check.holds for check in directrank_letor.checks_of({"all sets": [trial("mine", "all sets", ours)]})} == {holds}


@given(st.data())
def test_winning_numbers_count_pairs(data):
    names = list(METHODS)[:3]
    values = [[[data.draw(st.integers(0, 3)) for _ in range(10)] for _ in names] for _ in range(2)]
    trials = [
        LetorTrial("", OLD, {name: np.array(v, float) for name, v in zip(names, each, strict=True)}, {}, np.zeros(0), np.zeros(0))
        for each in values
    ]
    for k in SHOWN:
        expected = {
            name: sum(each[i][k - 1] > each[j][k - 1] for each in values for j in range(len(names))) for i, name in enumerate(names)
        }
        assert wins(trials, k) == expected


@pytest.mark.parametrize(("group", "sets"), [(OLD, 7), (NEW, 2)])
def test_published_winning_numbers_are_possible(group, sets):
    """Each pair of methods is won at most once a set; at NDCG@3 the numbers of Table 4 add up to 32, of 30 that there are."""
    methods = WINNING[group]
    assert set(methods) == set(directrank_letor.COMPARED.get(group, METHODS))
    for k, *numbers in zip(SHOWN, *methods.values(), strict=True):
        assert max(numbers) <= sets * (len(methods) - 1)
        assert (sum(numbers) <= sets * len(methods) * (len(methods) - 1) / 2) == ((group, k) != (NEW, 3))


# ---- runs


def test_what_is_shown_is_what_linear_methods_score():
    found = find_experiment("directrank-large")(
        features=4, documents=12, noise=0.3, yahoo=(40, 20, 30), microsoft=(20, 10, 10), starts=2, seed=3
    ).run()
    fold = three_parts(CubicPolynomial(4, 4, noise=0.3, seed=3), (40, 20, 30))
    rows = {row[0]: row[1:4] for row in found.tables[0].rows}
    rankers = {
        OURS: er.DirectRank(bags=0, start="random", restarts=2, seed=3),
        "RankCosine": er.RankCosine(consistent=True, seed=3),
        "coordinate ascent": er.CoordinateAscent(restarts=2, seed=3),
    }
    for method, ranker in rankers.items():
        ranker.fit(fold.train, valid=fold.valid)
        assert rows[method] == pytest.approx([ranker.score(part) for part in (fold.train, fold.valid, fold.test)])
    assert [row[1:5] for row in found.tables[2].rows] == [[4, 40, 160, 4.0], [4, 20, 240, 12.0]]


def test_a_cut_measure_is_trained_on_and_the_whole_one_shown():
    found = find_experiment("directrank-err-map")(features=4, documents=20, noise=0.3, queries=(40, 20, 30), seed=3).run()
    fold = three_parts(CubicPolynomial(4, 20, noise=0.3, seed=3), (40, 20, 30))
    for table, measure in zip(found.tables, ("ERR", "AP"), strict=True):
        rows = {row[0]: row[1:4] for row in table.rows}
        for method, trained_on in ((OURS, measure), (f"{OURS}@10", f"{measure}@10")):
            ranker = er.DirectRank(trained_on, bags=0, start="random", seed=3).fit(fold.train, valid=fold.valid)
            scores = [er.evaluate(part, ranker.predict(part), measure).means[measure] for part in (fold.train, fold.valid, fold.test)]
            assert rows[method] == pytest.approx(scores)


def test_letor_is_judged_as_letor_has_it(tmp_path):
    source = CubicPolynomial(4, 12, grades=3, noise=0.3, seed=5)
    folds = [[source.data(20, first + 100 * fold) for first in (1, 30, 60)] for fold in (0, 1)]
    for number, parts in enumerate(folds, 1):
        fold_of(tmp_path / "both", number, parts)
    found = find_experiment("directrank-letor")(data=(str(tmp_path / "both"),), starts=2).run()
    winning, tested, training = ({row[table > 0]: row for row in found.tables[table].rows} for table in (0, 1, 3))
    svm = [er.RankSVM(er.parse_measure("nDCG@5", "letor"), loss="hinge").fit(train, valid=valid) for train, valid, _ in folds]
    means = [
        np.mean([er.evaluate(parts[2], ranker.predict(parts[2]), f"nDCG@{k}", preset="letor").per_query.mean()
                 for ranker, parts in zip(svm, folds, strict=True)])
        for k in SHOWN
    ]  # fmt: skip
    assert tested["RankSVM"][2:] == pytest.approx(means)
    train = [
        er.evaluate(parts[0], ranker.predict(parts[0]), "nDCG@5", preset="letor").per_query.mean()
        for ranker, parts in zip(svm, folds, strict=True)
    ]
    assert training["RankSVM"][2] == pytest.approx(np.mean(train))
    beaten = [
        sum(tested["RankSVM"][2 + i] > row[2 + i] for name, row in tested.items() if name != "DirectRank, ours") for i in range(len(SHOWN))
    ]
    assert list(winning["RankSVM"][1:6]) == beaten


def test_of_several_starts_map_chooses(tmp_path):
    source = CubicPolynomial(4, 12, grades=3, noise=0.3, seed=5)
    train, valid, test = parts = [source.data(20, first) for first in (1, 30, 60)]
    fold_of(tmp_path / "one", 1, parts)
    found = find_experiment("directrank-letor")(data=(str(tmp_path / "one"),), starts=4, seed=1).run()
    ndcg, ap = (er.parse_measure(name, "letor") for name in ("nDCG@5", "AP"))
    settings = {"bags": 0, "start": "random", "point": "plackett-luce", "selection": "AP"}
    starts = [er.DirectRank(ndcg, seed=seed, **settings).fit(train, valid=valid) for seed in range(4, 8)]
    value = {measure: [er.evaluate(valid, ranker.predict(valid), measure).per_query.mean() for ranker in starts] for measure in (ndcg, ap)}
    best = starts[int(np.argmax(value[ap]))]
    shown = {row[1]: row[2:] for row in found.tables[1].rows}[OURS]
    measures = (*(f"nDCG@{k}" for k in SHOWN), "AP")
    theirs = [[er.evaluate(test, r.predict(test), name, preset="letor").per_query.mean() for name in measures] for r in starts]
    assert shown == pytest.approx(theirs[starts.index(best)][:-1])
    worth = {row[1]: row[2:] for row in found.tables[2].rows}
    assert worth["chosen, by MAP on validation data"] == pytest.approx(theirs[starts.index(best)])
    half = np.argsort(value[ap])[2:]
    assert worth["better half by MAP on validation data"] == pytest.approx(np.mean([theirs[number] for number in half], axis=0))
    assert worth["all"] == pytest.approx(np.mean(theirs, axis=0))
    assert worth["standard deviation, by lot"] == pytest.approx(np.std(theirs, axis=0, ddof=1))


def test_artificial_sets_are_as_large_as_letor_has_them():
    kind = find_experiment("directrank-letor")
    (_, group, folds), *_ = kind(sets=("OHSUMED",), folds=2).trials
    assert (group, len(folds)) == (OLD, 2)
    parts = [folds[0].train, folds[0].valid, folds[0].test]
    assert sum(part.n_queries for part in parts) == 106
    assert {part.n_features for part in parts} == {45}
    assert set(folds[0].train.y) == {0, 1, 2}
    assert np.all(folds[0].train.sizes == 40)
    few = kind(sets=("MQ2007",), queries=20, documents=30, features=5).trials[0][2]
    assert (len(few), few[0].train.n_queries, few[0].train.n_documents, few[0].train.n_features) == (5, 12, 360, 5)


def test_jumping_points_are_those_of_the_first_documents():
    """With few lines, by looking at the order between all crossings."""
    sizes = (6, 7, 9)
    found = find_experiment("jumping-points")(features=3, queries=4, sizes=sizes, draws=1, seed=2).run()
    data = CubicPolynomial(3, 9, seed=2).data(4)
    for size, shown in zip(sizes, found.tables[0].rows[0][1:], strict=True):
        lists = data.X.reshape(4, 9, 3)[:, :size].astype(float)
        weights = standard_normal(np.random.default_rng(2), (1, 3))[0] / lists.reshape(-1, 3).astype(np.float32).std(axis=0)
        assert shown == pytest.approx(np.mean([changes(X @ weights, X[:, 0]) for X in lists]))


def changes(scores, slopes, k=5):
    i, j = np.triu_indices(len(scores), 1)
    at = np.sort((scores[j] - scores[i]) / (slopes[i] - slopes[j]))
    between = np.concatenate([[at[0] - 1], (at[1:] + at[:-1]) / 2, [at[-1] + 1]])
    tops = [tuple(np.argsort(-(scores + alpha * slopes))[:k]) for alpha in between]
    return sum(a != b for a, b in pairwise(tops))


def test_starts_are_different_models():
    found = find_experiment("directrank-starts")(
        features=5, documents=9, yahoo=(60, 10, 20), microsoft=(60, 10, 20), starts=2, seed=1
    ).run()
    fold = three_parts(CubicPolynomial(5, 3, noise=1.0, seed=1), (60, 10, 20))
    few = replace(fold, train=fold.train.take_queries(np.arange(6)))
    for row, each in zip(found.tables[0].rows, (fold, few), strict=False):
        values = [
            er.DirectRank(bags=0, start="random", seed=2 + start).fit(each.train, valid=each.valid).score(each.test) for start in range(2)
        ]
        assert row[3:7] == pytest.approx([np.mean(values), np.std(values), min(values), max(values)])


def test_times_are_of_every_method():
    found = find_experiment("directrank-times")(features=4, documents=6, queries=(20, 10, 10)).run()
    rows = found.tables[0].rows
    assert [row[0] for row in rows] == list(HOURS)
    assert all(row[1] > 0 for row in rows)
    assert [row[2] for row in rows] == pytest.approx([row[1] / rows[0][1] for row in rows])
    assert rows[-1][3] == pytest.approx(120 / 3.3)
