"""Two measures at once: fronts equal brute force over all intervals, and constrained searches the best interval that is allowed."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.fusion.front import pareto_rows
from exactrank.learning.objectives.constrained import constrain
from exactrank.learning.objectives.step_function import StepFunction, with_common_breakpoints
from exactrank.measures.goal import Constraint, parse_goal
from exactrank.rankers import directrank
from tests.reference.pareto import best_under, front_of, middles

MEASURES = ["nDCG@3", "revenue@2"]


def made(seed=0, queries=15, features=3, coarse=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, queries)
    n = int(sizes.sum())
    X = rng.normal(size=(n, features))
    X = np.round(X) if coarse else X  # ties
    y = np.clip(np.round(X[:, 0] + rng.normal(size=n)), 0, 3)
    y[:2] = 0, 2
    revenue = np.round(np.exp(X[:, -1] + 0.3 * rng.normal(size=n)), 1)
    return er.RankingData.from_arrays(X, y, group=sizes, extra_columns={"revenue": revenue})


def means(data, scores):
    """Of both measures; on one thread, since there are few documents."""
    return list(er.evaluate(data, scores, MEASURES, threads=1).means.values())


@st.composite
def step_functions(draw):
    points = draw(st.lists(st.integers(-6, 6), max_size=6, unique=True))
    values = draw(st.lists(st.integers(0, 4), min_size=len(points) + 1, max_size=len(points) + 1))
    at = draw(st.lists(st.integers(0, 4), min_size=len(points), max_size=len(points)))
    return StepFunction(np.array(sorted(points), float), np.array(values, float) / 4, np.array(at, float) / 4)


@given(step_functions(), step_functions(), st.sampled_from([">=", "<="]), st.integers(0, 4))
def test_constrained_is_the_function_where_the_constraint_holds_and_negative_elsewhere(f, g, sign, level):
    first = Constraint(er.measures.NDCG(), sign, level / 4)
    ours = constrain(f, [(g, first)])
    for at in [*middles(f, g), *f.breakpoints, *g.breakpoints]:
        holds = g(at) >= first.level if sign == ">=" else g(at) <= first.level
        assert ours(at) == f(at) if holds else ours(at) < 0
    if sign == ">=":
        theirs = best_under(f, g, first.level)
        assert ours.best().value == theirs if theirs is not None else ours.best().value < 0


@given(step_functions(), step_functions())
def test_together_changes_no_value(f, g):
    for own, same in zip((f, g), with_common_breakpoints([f, g]), strict=True):
        for at in [*middles(f, g), *f.breakpoints, *g.breakpoints]:
            assert own(at) == same(at)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_undominated_points_are_those_of_brute_force(pairs):
    values = np.array(pairs, float)
    ours = values[pareto_rows(values, np.arange(len(pairs), dtype=float))]
    assert ours.tolist() == [list(pair) for pair in front_of(pairs)]


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.booleans())
def test_the_front_along_a_ray_is_that_of_all_intervals(seed, coarse):
    data = made(seed, queries=6, coarse=coarse)
    scores, direction = data.X[:, 0].astype(float), data.X[:, 2].astype(float)
    front = er.tradeoff(data, scores, direction, MEASURES)
    f, g = (er.profile(data, scores, direction, each) for each in MEASURES)
    theirs = front_of([(f(at), g(at)) for at in middles(f, g)])
    assert np.allclose(front.values, theirs, atol=1e-9)
    for (alpha,), values in zip(front.weights, front.values, strict=True):
        assert means(data, scores + alpha * direction) == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_the_front_of_two_systems_is_complete(nonnegative):
    data = made(3, queries=20)
    front = er.pareto(data, ["x0", "x2"], MEASURES, normalize="none", nonnegative=nonnegative)
    assert front.complete
    grid = np.linspace(0, 2 * np.pi if not nonnegative else np.pi / 2, 121)
    seen = [means(data, np.cos(t) * data.X[:, 0].astype(float) + np.sin(t) * data.X[:, 2]) for t in grid]
    for pair in np.array(seen):  # no weights of a grid are better than some point of the front
        assert np.any(np.all(front.values >= pair - 1e-9, axis=1))
    for weights, values in zip(front.weights, front.values, strict=True):
        scores = data.X[:, [0, 2]].astype(float) @ weights
        assert means(data, scores) == pytest.approx(values, abs=1e-9)
    assert np.all(np.diff(front.values[:, 0]) < 0)
    assert np.all(np.diff(front.values[:, 1]) > 0)


@pytest.mark.parametrize("kind", ["model", "systems"])
def test_a_front_that_was_searched_is_exact_at_its_points_and_reaches_both_ends(kind):
    data = made(4, queries=30)
    ranker = er.DirectRank("nDCG@3", bags=0).fit(data)
    if kind == "model":
        front = er.pareto(data, ranker, MEASURES, points=4)
    else:
        front = er.pareto(data, ["x0", "x1", "x2"], MEASURES, points=4, normalize="none", nonnegative=False)
    assert not front.complete
    assert len(front) > 3
    assert np.all(np.diff(front.values[:, 0]) < 0)
    assert np.all(np.diff(front.values[:, 1]) > 0)
    for weights, values in zip(front.weights, front.values, strict=True):
        assert means(data, data.X.astype(float) @ weights) == pytest.approx(values, abs=1e-9)
    assert front.values[0, 0] >= ranker.score(data) - 1e-9
    assert front.values[-1, 1] >= er.DirectRank("revenue@2", bags=0, start=tuple(ranker.weights_)).fit(data).score(data) * 0.99


def test_points_by_a_level_of_one_measure(tmp_path):
    data = made(5, queries=40)
    ranker = er.DirectRank("nDCG@3", bags=0).fit(data)
    front = er.pareto(data, ranker, MEASURES, points=3)
    level = float(np.median(front.values[:, 1]))
    point = front.at(revenue=level)
    allowed = front.values[front.values[:, 1] >= level]
    assert point.values == {"nDCG@3": allowed[:, 0].max(), "revenue@2": allowed[allowed[:, 0].argmax(), 1]}
    assert er.evaluate(data, point.model.predict(data), "revenue@2").means["revenue@2"] == pytest.approx(point.values["revenue@2"])
    point.model.save(tmp_path / "model.json")
    assert np.array_equal(er.load(tmp_path / "model.json").predict(data), point.model.predict(data))
    front.save(tmp_path / "front.csv")
    assert (tmp_path / "front.csv").read_text().startswith("nDCG@3,revenue@2,x0,x1,x2\n")
    assert len((tmp_path / "front.csv").read_text().splitlines()) == len(front) + 1
    with pytest.raises(er.errors.OutputExistsError):
        front.save(tmp_path / "front.csv")
    with pytest.raises(er.errors.DataError, match=r"no point has revenue of 1e\+09; the largest is"):
        front.at(revenue=1e9)
    with pytest.raises(er.errors.SettingError, match="'profit' names none of nDCG@3, revenue@2"):
        front.at(profit=1)


def test_a_constraint_that_never_binds_changes_no_bit():
    data = made(6, queries=40)
    free = er.DirectRank("nDCG@3", bags=0).fit(data)
    assert np.array_equal(er.DirectRank("nDCG@3 subject to revenue@2 >= 0").fit(data).weights_, free.weights_)
    assert np.array_equal(er.DirectRank("nDCG@3 subject to revenue@2 <= 1e9 and P@2 >= 0").fit(data).weights_, free.weights_)


@pytest.mark.parametrize("solver", ["coordinates", "powell"])
def test_a_constraint_that_binds_is_kept_at_a_price(solver):
    data = made(7, queries=60)
    free = er.DirectRank("nDCG@3", bags=0, solver=solver).fit(data)
    has, most = (
        er.evaluate(data, r.predict(data), "revenue@2").means["revenue@2"] for r in (free, er.DirectRank("revenue@2", bags=0).fit(data))
    )
    before = free.score(data)
    for share in (0.3, 0.6, 0.9):
        level = has + share * (most - has)
        ranker = er.DirectRank(f"nDCG@3 subject to revenue@2 >= {level}", solver=solver).fit(data)
        reached = er.evaluate(data, ranker.predict(data), f"nDCG@3 subject to revenue@2 >= {level}").means
        assert reached["revenue@2"] >= level - 1e-9
        assert reached["nDCG@3"] <= before + 1e-9
        assert ranker.model_.training["constraints"]["value"] == {f"revenue@2 >= {level:.12g}": reached["revenue@2"]}
        assert parse_goal(ranker.model_.measure) == parse_goal(ranker.measure)
    least = er.DirectRank(f"nDCG@3 subject to revenue@2 <= {0.9 * has}").fit(data)
    assert er.evaluate(data, least.predict(data), "revenue@2").means["revenue@2"] <= 0.9 * has


def test_a_bound_that_stops_single_weights_does_not_stop_the_search(monkeypatch):
    """On small problems, beside 2,000 random weights each; moving single weights alone stops twice as far below the best."""
    missing = {True: 0.0, False: 0.0}
    for seed in range(10):
        data = made(seed, queries=12)
        bounds = [er.parse_measure(name).on(data) for name in ("nDCG@3", "revenue@2")]
        scores = np.random.default_rng(seed).normal(size=(2000, data.n_features)) @ data.X.T.astype(float)
        value, revenue = (bound.means(np.ascontiguousarray(scores)) for bound in bounds)
        level = 0.4 * revenue[value.argmax()] + 0.6 * revenue.max()
        for moves in missing:
            if not moves:
                monkeypatch.setattr(directrank, "RandomDirections", lambda rounds, scale, seed: rounds)
            ranker = er.DirectRank(f"nDCG@3 subject to revenue@2 >= {level}").fit(data)
            missing[moves] += max(0.0, value[revenue >= level].max() - ranker.score(data)) / 10
            monkeypatch.undo()
    assert missing[True] < 0.5 * missing[False]
    assert missing[True] < 0.005


def test_what_cannot_be_is_refused_with_the_reason():
    data = made(8)
    with pytest.raises(
        er.errors.IncompatibleError, match=r"nothing reaches revenue@2 >= 1000; the largest revenue@2 found is [\d.]+, so lower 1000"
    ):
        er.DirectRank("nDCG@3 subject to revenue@2 >= 1000").fit(data)
    with pytest.raises(er.errors.IncompatibleError, match=r"LambdaRank cannot keep revenue@2 >= 1: .* use DirectRank"):
        er.LambdaRank("nDCG@3 subject to revenue@2 >= 1").fit(data)
    with pytest.raises(er.errors.SettingError, match="bags=5 takes the mean of models"):
        er.DirectRank("nDCG@3 subject to revenue@2 >= 1", bags=5).fit(data)
    with pytest.raises(er.errors.MeasureError, match=r"has constraints, which DirectRank and er.fuse take"):
        er.profile(data, data.y, data.y, "nDCG@3 subject to revenue@2 >= 1")
    with pytest.raises(er.errors.MeasureError, match="between two measures, got nDCG@3"):
        er.pareto(data, ["x0", "x1"], ["nDCG@3"])
    with pytest.raises(er.errors.IncompatibleError, match=r"has no weights to trade off"):
        er.pareto(data, er.LambdaMART(trees=3, bags=0).fit(data), MEASURES)
    with pytest.raises(er.errors.DataError, match="the data has no system 'bm25'"):
        er.pareto(data, ["x0", "bm25"], MEASURES)


@pytest.mark.parametrize("text", ["revenue@2", "revenue@2 > 3", "revenue@2 >= x", "revenue@2 >= inf", "revenue@2 == 3", ">= 3"])
def test_bad_constraints_are_explained(text):
    with pytest.raises(er.errors.MeasureError, match=r"not a constraint; write a measure, >= or <=|is not a measure|there is no measure"):
        parse_goal(f"nDCG@3 subject to {text}")


def test_goals_read_back_from_their_notation():
    text = "nDCG@10 subject to revenue@10 >= 0.31 and P(rel=2)@5 <= 0.9"
    goal = parse_goal("ndcg@10  Subject To  revenue@10>=.31 and P(rel=2)@5 <= 0.9")
    assert str(goal) == text
    assert parse_goal(str(goal)) == goal
    assert parse_goal(repr(goal)) == goal
    assert parse_goal("AP").constraints == ()
    assert str(parse_goal("AP")) == "AP"


def test_fusing_two_systems_under_a_constraint_finds_the_best_point_of_the_front():
    data = made(9, queries=40)
    front = er.pareto(data, ["x0", "x2"], MEASURES)
    for level in front.values[[0, len(front) // 2, -1], 1].tolist():
        fusion = er.fuse(data, systems=["x0", "x2"], measure=f"nDCG@3 subject to revenue@2 >= {level!r}", folds=2, bootstrap=5)
        best = front.values[front.values[:, 1] >= level - 1e-9, 0].max()
        assert fusion.value == pytest.approx(best, abs=1e-9)
        assert fusion.optimum == "global"
        ((constraint, value),) = fusion.constraints.items()
        assert value >= level - 1e-9
        assert constraint.startswith("revenue@2 >= ")
    largest = front.values[-1, 1]
    with pytest.raises(er.errors.IncompatibleError, match=rf"the largest revenue@2 is {largest:.6g}, so lower"):
        er.fuse(data, systems=["x0", "x2"], measure=f"nDCG@3 subject to revenue@2 >= {largest + 1}", folds=0, bootstrap=0)


def test_fusing_under_a_constraint_that_never_binds_changes_no_weight(tmp_path):
    data = made(10, queries=40)
    for systems in (["x0", "x2"], ["x0", "x1", "x2"]):
        free = er.fuse(data, systems=systems, measure="nDCG@3", folds=0, bootstrap=0, cells=1)
        fusion = er.fuse(data, systems=systems, measure="nDCG@3 subject to revenue@2 >= 0", folds=0, bootstrap=0, cells=1)
        assert fusion.value == pytest.approx(free.value, abs=1e-9) if len(systems) == 2 else fusion.optimum == "local"
        fusion.save(tmp_path / f"{len(systems)}.json")
        assert er.load(tmp_path / f"{len(systems)}.json").constraints == fusion.constraints


def test_fusing_three_systems_keeps_a_constraint():
    data = made(11, queries=40)
    free = er.fuse(data, measure="nDCG@3", folds=0, bootstrap=0, cells=1)
    has = er.evaluate(data, free.predict(data), "revenue@2").means["revenue@2"]
    fusion = er.fuse(data, measure=f"nDCG@3 subject to revenue@2 >= {1.1 * has}", folds=2, bootstrap=5)
    assert er.evaluate(data, fusion.predict(data), "revenue@2").means["revenue@2"] >= 1.1 * has
    assert fusion.certificate is None


def test_the_picture_of_a_front(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    data = made(12)
    er.pareto(data, ["x0", "x2"], MEASURES).plot(path=tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 1000
