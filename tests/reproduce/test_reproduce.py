"""Published experiments: each runs at a tiny scale, its inequalities can fail, and its files are whole or not there.

What the findings are at a scale that says something is in docs/reproduce.md.
"""

import json
import re
from dataclasses import asdict, fields, replace
from functools import cache
from itertools import chain, pairwise

import numpy as np
import pytest
from benchmarks.reproduce import TIMED, TINY, tiny
from hypothesis import given, strategies as st

import exactrank as er
from exactrank._support.tables import Table
from exactrank.data.synthetic import CubicPolynomial
from exactrank.learning.objectives.parametric import GradientProblem
from exactrank.reproduce import EXPERIMENTS, find_experiment
from exactrank.reproduce.artificial import PermutedPolynomial, mix_features, three_parts
from exactrank.reproduce.experiment import choose_best, fit_ranker
from exactrank.reproduce.finding import Curve, Finding, Inequality, Panel, finding_files
from exactrank.reproduce.lambdarank_duels import Duel
from exactrank.reproduce.ranknet_speedup import EpochTimes, RankNetTraining, checks_of, slopes_of
from exactrank.reproduce.smoothness import optimality_checks, roughness, section_checks
from exactrank.reproduce.spsa import CrossEntropy, Descent

#: Experiments with one size and nothing random.
FIXED = {"line-search-example"}
EVERY_EXPERIMENT = pytest.mark.parametrize("name", EXPERIMENTS)


@cache
def ran(name):
    """What an experiment found, and the lines that it told."""
    lines = []
    return tiny(name).run(lines.append), lines


def finding(name):
    return ran(name)[0]


def write(result, folder, force=False):
    with finding_files(result.name, folder, force=force) as keep:
        return keep(result)


def small(checks=()):
    panel = Panel("p", "x", "y", (Curve("c", (0.0, 1.0), (1.0, 2.0), (0.5, 1.5), (1.5, 2.5)),), mark=0.5)
    return Finding("x", "A 2000", "it is so", "it is so", tuple(checks), (Table("T", ("a", "b"), (("r", 1.5),)),), (panel,), "X()")


# ---- all experiments


@EVERY_EXPERIMENT
def test_an_experiment_says_what_it_repeats_and_at_full_scale_is_nowhere_smaller(name):
    kind = find_experiment(name)
    assert kind.name == name
    assert re.fullmatch(r".* \d{4}", kind.paper)
    assert all(re.search(r"Figure|Table|section", place) for place in kind.where)
    assert kind.differs.endswith(".")
    assert kind.published.endswith(".")
    reduced, full = kind(), kind.full(seed=3)
    assert full.seed == 3
    for field in fields(full):
        if isinstance(getattr(full, field.name), int):
            assert getattr(full, field.name) >= getattr(reduced, field.name)
    assert (replace(full, seed=0) == reduced) == (name in FIXED)


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(er.errors.DataError, match=r"'xyz'; there are ranknet-speedup, lambdarank-ranknet"):
        find_experiment("xyz")
    with pytest.raises(er.errors.DataError, match=r"'tree-table' \(did you mean tree-tables\?\); there are"):
        find_experiment("tree-table")


@EVERY_EXPERIMENT
def test_a_finding_is_whole_and_drawn(name, tmp_path):
    result, lines = ran(name)
    assert lines
    assert (result.name, result.published) == (name, find_experiment(name).published)
    assert result.configuration == repr(tiny(name))
    assert result.checks
    assert result.holds == all(check.left < check.right for check in result.checks)
    for table in result.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
    for curve in (curve for panel in result.panels for curve in panel.curves):
        assert len(curve.x) == len(curve.y) > 1
        assert np.all(np.isfinite(curve.y))
        if curve.low is not None:
            assert np.all(np.array(curve.low) <= curve.y)
            assert np.all(np.array(curve.high) >= curve.y)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["holds"] == result.holds
    *_, picture = write(result, tmp_path)
    assert picture.stat().st_size > 10_000


@EVERY_EXPERIMENT
def test_the_seed_decides_all_numbers_but_times(name):
    again, before = tiny(name).run(), finding(name)
    if name == "directrank-times":
        assert [row[-1] for row in again.tables[0].rows] == [row[-1] for row in before.tables[0].rows]
        return
    if name in TIMED:
        ours, theirs = ([check for check in each.checks if re.search(TIMED[name], check.says)] for each in (again, before))
        assert ours == theirs
        assert ours
        return
    assert again == before
    assert name in FIXED or asdict(tiny(name, seed=1).run()) | {"configuration": ""} != asdict(again) | {"configuration": ""}


def test_ctrl_c_in_a_training_ends_the_experiment(monkeypatch):
    data = CubicPolynomial(features=3, documents=4).data(20)

    def interrupted(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_ranker(er.RankNet(solver="sgd", learning_rate=1e-3, max_iter=9), data, progress=interrupted)
    fit = er.RankBoost.fit

    def stopped_in_between(self, *given, **more):
        fit(self, *given, **more)
        self.model_.training["interrupted"] = True
        return self

    monkeypatch.setattr(er.RankBoost, "fit", stopped_in_between)
    with pytest.raises(KeyboardInterrupt):
        tiny("structured-bounds").run()


# ---- findings


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_check_holds_where_its_inequality_does(a, b):
    assert Inequality("", a, b).holds == (a < b)
    assert not Inequality("", a, a).holds


@pytest.mark.parametrize(
    ("held", "holds", "verdict"),
    [
        ([True, True], True, "holds"),
        ([True, False], False, "holds in part: 1 of 2 inequalities hold"),
        ([False, False], False, "does not hold"),
    ],
)
def test_a_finding_holds_where_all_its_checks_do(held, holds, verdict):
    result = small(checks=[Inequality("", 0.0 if each else 1.0, 1.0) for each in held])
    assert result.holds == holds
    assert f"## The published finding {verdict}\n" in result.to_markdown()


def test_files_are_written_once(tmp_path):
    folder = tmp_path / "new" / "out"
    result = small()
    report, record, picture = write(result, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["x.json", "x.md", "x.png"]
    assert report.read_text() == result.to_markdown()
    assert json.loads(record.read_text()) == json.loads(json.dumps(result.to_json()))
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("suffix", [".md", ".json", ".png"])
def test_nothing_is_written_where_a_file_is_taken(tmp_path, suffix):
    taken = tmp_path / f"x{suffix}"
    taken.write_text("mine")
    with pytest.raises(er.errors.OutputExistsError, match=taken.name):
        write(small(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [taken.name]
    assert taken.read_text() == "mine"
    write(small(), tmp_path, force=True)
    assert len(list(tmp_path.iterdir())) == 3
    assert taken.read_bytes() != b"mine"


# ---- data and choice


def test_parts_of_the_data_share_no_query():
    source = CubicPolynomial(features=3, documents=4)
    fold = three_parts(source, (70, 10, 20))
    ids = [part.qid.tolist() for part in (fold.train, fold.valid, fold.test)]
    assert [len(each) for each in ids] == [70, 10, 20]
    assert list(chain(*ids)) == list(range(1, 101))
    whole = source.data(100)
    assert np.array_equal(np.concatenate([fold.train.X, fold.valid.X, fold.test.X]), whole.X)
    assert np.array_equal(np.concatenate([fold.train.y, fold.valid.y, fold.test.y]), whole.y)


@pytest.mark.parametrize("features", [1, 7])
def test_the_polynomial_of_permutations_has_a_term_a_feature_in_each_degree(features):
    source = PermutedPolynomial(features, 40, noise=0.0, seed=4)
    data, X = source.data(100), source.data(1).X.astype(np.float64)
    assert np.abs(data.X).max() <= 1
    assert data.X.std() == pytest.approx(1 / np.sqrt(3), rel=0.05)
    assert np.array_equal(data.X[:40], source.data(1).X)
    for degree, odd in ((0, True), (1, False), (2, True)):  # the sums of -x: those of odd degrees change their sign
        sums, mirrored = (source._sums(part)[:, degree] for part in (X, -X))
        np.testing.assert_allclose(mirrored, -sums if odd else sums, atol=1e-12)
        bent = [source._sums(c * X)[:, degree] for c in (1.0, 2.0)]
        np.testing.assert_allclose(bent[1], 2.0 ** (degree + 1) * bent[0], atol=1e-12)
        unit = source._sums(np.ones((1, features)))[0, degree]
        assert degree == 0 or unit == pytest.approx(features)
    mean, deviation = source._moments
    values = (source._sums(data.X) - mean) / deviation
    np.testing.assert_allclose(values.std(axis=0), 1 / np.sqrt(3), rtol=0.1)
    order = np.argsort(values.sum(axis=1))
    assert np.all(np.diff(data.y[order]) >= 0)
    assert 0.55 < np.mean(data.y == 0) < 0.68


def test_mixed_features_say_the_same_but_are_correlated():
    data = CubicPolynomial(features=8, documents=10).data(300)
    mixed = mix_features(data, 3)
    assert np.array_equal(mixed.y, data.y)
    assert np.array_equal(mixed.X, mix_features(data, 3).X)
    assert not np.allclose(mixed.X, mix_features(data, 4).X)
    back, *_ = np.linalg.lstsq(mixed.X, data.X, rcond=None)
    np.testing.assert_allclose(mixed.X @ back, data.X, atol=1e-4)
    eigenvalues = np.linalg.eigvalsh(np.cov(mixed.X.T))[::-1]
    np.testing.assert_allclose(eigenvalues * np.arange(1, 9), np.full(8, eigenvalues.mean() * 8 / (1 / np.arange(1, 9)).sum()), rtol=0.15)


def test_validation_data_chooses():
    fold = three_parts(CubicPolynomial(features=4, documents=8, seed=2), (40, 40, 1))
    rankers = [er.RankNet(solver="sgd", learning_rate=rate, max_iter=2) for rate in (1e-6, 1e-2, 1e-4)]
    best = choose_best(rankers, fold, lambda line: None)
    assert best.score(fold.valid) == max(ranker.score(fold.valid) for ranker in rankers)
    assert len({ranker.score(fold.valid) for ranker in rankers}) > 1


# ---- each experiment's own inequalities


def duel(gap, net="nets", queries=200):
    """LambdaRank ahead by ``gap``, one number a rank, in the mean and in every query nearly."""
    low = np.random.default_rng(0).random((10, queries))
    jitter = 0.01 * np.random.default_rng(1).standard_normal((10, queries))
    return Duel(net, ([1.0], [1.0]), (low + np.reshape(gap, (-1, 1)) + jitter - jitter.mean(axis=1, keepdims=True), low))


def held(name, *duels):
    return [check.holds for check in tiny(name).checks(duels)]


def test_lambdarank_is_ahead_where_it_is():
    leading, behind, equal = (duel(gap * np.linspace(1, 0.5, 10)) for gap in (0.1, -0.1, 0.0))
    assert np.allclose(leading.gaps, -behind.gaps)
    assert np.all((leading.gap_intervals[:, 0] < leading.gaps) & (leading.gaps < leading.gap_intervals[:, 1]))
    assert held("lambdarank-ranknet", leading) == [True, True]
    assert held("lambdarank-ranknet", duel(np.linspace(0.05, 0.1, 10))) == [True, False]
    assert held("lambdarank-ranknet", behind, equal) == [False] * 4


@pytest.mark.parametrize(("gap", "holds"), [(0.0002, [True, True]), (0.1, [True, False]), (-0.0002, [False, True])])
def test_few_queries_leave_a_small_lead_to_chance(gap, holds):
    """And two layers are closer where they are."""
    near, far = duel(np.full(10, gap / 2)), duel(np.full(10, -2 * gap))
    assert held("lambdarank-intranet", duel(np.full(10, gap)), near, far) == [*holds, True, False]


@pytest.mark.parametrize(("apart", "holds"), [(0.009, True), (-0.009, True), (0.011, False), (-0.011, False)])
def test_linear_lambdarank_is_level_with_two_layer_ranknet(apart, holds):
    linear = duel(np.full(10, 0.1))
    two_layers = replace(linear, values=(linear.values[0], linear.values[0] + apart))
    assert held("lambdarank-web", linear, two_layers) == [True, apart < 0, holds]


def test_what_duels_show_is_what_rankers_score():
    fold = three_parts(PermutedPolynomial(5, 10), TINY["lambdarank-ranknet"]["queries"])
    measures = [er.measures.NDCG(k=k, gain={0: 0, 1: 3, 2: 7, 3: 15, 4: 31}) for k in range(1, 11)]
    settings = {"measure": measures[-1], "solver": "sgd", "l2": 0.0, "max_iter": 3, "patience": 3}
    for column, kind in (
        (1, lambda rate: er.LambdaRank(start="random", learning_rate=rate, **settings)),
        (2, lambda rate: er.RankNet(learning_rate=rate, **settings)),
    ):
        best = max((kind(rate).fit(fold.train, valid=fold.valid) for rate in (1e-3, 1e-2)), key=lambda ranker: ranker.score(fold.valid))
        shown = [row[column] for row in finding("lambdarank-ranknet").tables[0].rows]
        theirs = er.evaluate(fold.test, best.predict(fold.test), measures).means.values()
        assert shown == pytest.approx(list(theirs))


@pytest.mark.parametrize("broken", [None, 0, 1])
def test_each_inequality_of_optimality_can_fail(broken):
    gains = {"LambdaRank": [0.002 if broken == 0 else 0.0005, -0.1], "RankNet": [1e-4 if broken == 1 else 0.01]}
    assert [check.holds for check in optimality_checks(gains)] == [i != broken for i in range(2)]


@pytest.mark.parametrize("broken", [None, 0, 1, 2])
def test_each_inequality_of_the_blown_up_section_can_fail(broken):
    whole, section, few = 0.2 if broken == 0 else 0.05, 0.5 if broken == 1 else 3.0, 10 if broken == 2 else 11
    checks = section_checks([0.0, whole, 9.0], [0.0, section, 9.0], [50, few, 50])
    assert [check.holds for check in checks] == [i != broken for i in range(3)]


def test_the_blown_up_section_is_of_the_whole_curve():
    whole, section = finding("smoothness-web").panels
    for curve, near in zip(whole.curves, section.curves, strict=True):
        assert (near.x[0], near.x[-1]) == (-2.0, 2.0)
        assert near.y[len(near.y) // 2] == pytest.approx(curve.y[len(curve.y) // 2])
        assert [near.y[0], near.y[-1]] == pytest.approx([curve.y[curve.x.index(-2.0)], curve.y[curve.x.index(2.0)]])


@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(1e-6, 1e3), st.floats(1e-6, 1e3))
def test_slopes_of_power_laws(p, q, a, b):
    timed = [EpochTimes("nets", n, a * n**p, b * n**q, 0.0) for n in (4, 8, 16, 64)]
    assert slopes_of(timed) == pytest.approx((p, q))


@pytest.mark.parametrize("broken", [None, 0, 1, 2, 3])
def test_each_inequality_of_the_speedup_can_fail(broken):
    typical = EpochTimes("nets", 50, 1.0 if broken == 0 else 9.0, 3.0, 1.0 if broken == 3 else 1e-15)
    slopes = (1.2 if broken == 1 else 1.9, 1.9 if broken == 2 else 1.2)
    assert [check.holds for check in checks_of(typical, slopes)] == [i != broken for i in range(4)]


def test_both_versions_of_ranknet_are_timed_and_come_to_the_same(monkeypatch):
    passes = []
    for name in ("pass_over", "pass_over_pairs"):
        slow = getattr(RankNetTraining, name)
        monkeypatch.setattr(RankNetTraining, name, lambda self, *given, n=name, f=slow: passes.append(n) or f(self, *given))
    result = tiny("ranknet-speedup").run()
    assert passes == (["pass_over_pairs"] * 2 + ["pass_over"] * 2) * 8
    for panel in result.panels[2:]:
        slow, fast = panel.curves
        assert slow.y == pytest.approx(fast.y)
        assert len(slow.x) == 3
        assert list(slow.y) == sorted(slow.y)
    apart = [check for check in result.checks if "same parameters" in check.says]
    assert len(apart) == 2
    assert all(0 <= check.left < 1e-9 for check in apart)


def test_values_are_counted():
    """A step of SPSA:F is F values and one for where it leads; of FDSA it is two a parameter, and one."""
    for panel in finding("spsa-convergence").panels:
        for curve, each in zip(panel.curves, (3, 5, 9, 11), strict=True):
            costs = dict(zip(curve.x, curve.y, strict=True))
            assert costs[1] == pytest.approx(np.log(2), abs=0.02)
            assert len({costs[x] for x in costs if x <= each}) == 1
            assert all(costs[x] != costs[1] for x in costs if each + 1 <= x <= 2 * each)
            assert costs[64] < costs[1]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(-1, 10))
def test_when_a_cost_is_reached(costs, cost):
    descent = Descent(1.0, np.array(costs, float))
    reached = descent.until(cost)
    assert reached == next((n for n in range(1, len(costs) + 1) if descent.after(n) <= cost), np.inf)


def test_the_slope_stands_for_differences():
    data = CubicPolynomial(features=4, documents=6).data(15)
    problem = CrossEntropy(er.losses.Lambdas(), er.models.LinearModel().on(data), data, threads=1)
    theta, c = np.array([0.3, -0.2, 0.1, 0.5]), 1e-4
    steps = c * np.eye(4)
    differences = [problem.value(theta + step) - problem.value(theta - step) for step in steps]
    np.testing.assert_allclose(problem.differences(theta, c), differences, rtol=1e-6)


def test_nets_are_trained_for_all_epochs_with_restarts(monkeypatch):
    """With the published patience of 50 epochs no restart would come before validation data ends training, were that to."""
    starts = []
    start = GradientProblem.start
    monkeypatch.setattr(GradientProblem, "start", lambda self, rng: starts.append(1) or start(self, rng))
    lines = []
    tiny("lambdarank-ranknet", queries=(2, 2, 2), hidden=(None,), rates=(0.5,), epochs=130).run(lines.append)
    assert len(lines) == 2
    assert starts


def test_with_one_feature_spsa_is_not_ahead():
    """Then FDSA needs no more values a step than SPSA:2, and SPSA:8 needs more."""
    assert [check.holds for check in tiny("spsa-convergence", features=1).run().checks][-1] is False


def test_a_budget_too_small_for_the_table_is_refused():
    with pytest.raises(er.errors.DataError, match="evaluations must be at least 16, got 15"):
        tiny("spsa-convergence", evaluations=15)


def test_the_table_has_what_the_rankers_score():
    (table,) = finding("spsa-table").tables
    rows = {row[0]: row[1:4] for row in table.rows}
    below, above = finding("spsa-table").checks
    assert (below.left, below.right, above.left, above.right) == (
        rows["SPSA:4"][2],
        rows["RankNet"][2],
        rows["RankNet"][2],
        rows["LambdaRank"][2],
    )
    rising, *levels = finding("spsa-table").panels[0].curves
    assert rising.x == tuple(4.0 * step for step in range(11))
    assert min(abs(value - rows["SPSA:4"][1]) for value in rising.y) < 1e-9  # that of the step that validation data selects
    assert [level.y[0] for level in levels] == pytest.approx([rows["RankNet"][1], rows["LambdaRank"][1]])


@given(st.lists(st.integers(0, 5), min_size=3, max_size=12))
def test_roughness_is_what_goes_up_and_down_beyond_a_hill(steps):
    v = np.array(steps, float)
    if np.ptp(v) == 0:
        assert roughness(v) == 0
        return
    wasted = sum(abs(b - a) for a, b in pairwise(steps)) - (2 * max(steps) - steps[0] - steps[-1])
    assert roughness(v) == pytest.approx(wasted / np.ptp(v))
    assert roughness(v) >= 0
    assert roughness(3 + 2 * v[::-1]) == pytest.approx(roughness(v))


def test_a_net_that_is_not_trained_is_not_at_the_top():
    linear, _ = np.split(np.array([check.holds for check in tiny("smoothness", rates=(1e-9,), epochs=1).run().checks]), 2)
    assert not linear[-1]
