"""Published experiments: each runs at a tiny scale, its inequalities can fail, and its files are whole or not there.

What the findings are at a scale that says something is in docs/reproduce.md.
"""

import json
import re
from dataclasses import asdict, fields, replace
from itertools import chain, pairwise

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import exactrank as xr
from exactrank.objectives.parametric import Parametric
from exactrank.workbench.reproduce import EXPERIMENTS, __main__, find_experiment
from exactrank.workbench.reproduce.artificial import artificial, correlated, three_parts
from exactrank.workbench.reproduce.chosen import chosen
from exactrank.workbench.reproduce.finding import Check, Finding, Table
from exactrank.workbench.reproduce.lambdarank_ranknet import MEASURES, Duel
from exactrank.workbench.reproduce.panels import Curve, Panel
from exactrank.workbench.reproduce.ranknet_speedup import Epochs, checks_of, slopes_of
from exactrank.workbench.reproduce.smoothness import roughness
from exactrank.workbench.reproduce.spsa_convergence import Descent
from exactrank.workbench.synthetic import CubicPolynomial

TINY = {
    "lambdarank-ranknet": {"queries": (60, 30, 60), "hidden": (None, 2), "rates": (1e-3, 1e-2), "epochs": 3},
    "ranknet-speedup": {"queries": 10, "lists": (4, 8), "hidden": (None, 2), "repeats": 2},
    "spsa-convergence": {"queries": 10, "evaluations": 64, "runs": 2, "factors": (1, 2)},
    "spsa-table": {"queries": (30, 20, 30), "rates": (1e-3, 1e-2), "epochs": 3, "steps": 10},
    "structured-bounds": {"queries": 20, "noises": (0.0, 1.0), "lams": (1.0,)},
    "structured-ndcg": {"web_1": (10, 5, 5), "web_2": (10, 5, 5)},
    "structured-times": {"queries": 10, "lams": (10.0, 1.0), "repeats": 1},
    "tree-tables": {"yahoo": (60, 20, 20), "microsoft": (30, 20, 20), "leaves": (3, 5), "trees": 5, "threads": 1},
    "smoothness": {"queries": 60, "samples": (10, 20), "hidden": (None, 2), "rates": (1e-3,), "epochs": 3},
}
#: What the checks say that do not hang on the clock, in experiments whose other numbers do.
TIMED = {"ranknet-speedup": "same parameters", "structured-times": "comes? to the"}
EVERY_EXPERIMENT = pytest.mark.parametrize("name", EXPERIMENTS)


def tiny(name, **more):
    return find_experiment(name)(**({"features": 5, "documents": 10} | TINY[name] | more))


@pytest.fixture(scope="module")
def findings():
    return {name: tiny(name).run() for name in EXPERIMENTS}


def small(checks=()):
    panel = Panel("p", "x", "y", (Curve("c", (0.0, 1.0), (1.0, 2.0), (0.5, 1.5), (1.5, 2.5)),), mark=0.5)
    return Finding("x", "A 2000", "it is so", "it is so", tuple(checks), (Table("T", ("a", "b"), (("r", 1.5),)),), (panel,), "X()")


# ---- all experiments


@EVERY_EXPERIMENT
def test_an_experiment_is_known_by_its_name(name):
    kind = find_experiment(name)
    assert kind.name == name
    assert kind.paper
    assert kind.published


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(xr.DataError, match=r"'lambda'; there are lambdarank-ranknet, ranknet-speedup"):
        find_experiment("lambda")


@EVERY_EXPERIMENT
def test_the_full_scale_is_nowhere_smaller(name):
    kind = find_experiment(name)
    reduced, full = kind(), kind.full(seed=3)
    assert full.seed == 3
    for field in fields(full):
        if isinstance(getattr(full, field.name), int):
            assert getattr(full, field.name) >= getattr(reduced, field.name)
    assert replace(full, seed=0) != reduced


@EVERY_EXPERIMENT
def test_a_finding_is_whole(name, findings):
    found = findings[name]
    assert (found.name, found.published) == (name, find_experiment(name).published)
    assert found.configuration == repr(tiny(name))
    assert found.checks
    assert found.holds == all(check.less < check.more for check in found.checks)
    for table in found.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
    for curve in (curve for panel in found.panels for curve in panel.curves):
        assert len(curve.x) == len(curve.y) > 1
        assert np.all(np.isfinite(curve.y))
        if curve.low is not None:
            assert np.all(np.array(curve.low) <= curve.y)
            assert np.all(np.array(curve.high) >= curve.y)
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["holds"] == found.holds


@EVERY_EXPERIMENT
def test_the_seed_decides_all_numbers_but_times(name, findings):
    again = tiny(name).run()
    if name in TIMED:
        ours, theirs = ([check for check in each.checks if re.search(TIMED[name], check.says)] for each in (again, findings[name]))
        assert ours == theirs
        assert ours
        return
    assert again == findings[name]
    assert asdict(tiny(name, seed=1).run()) | {"configuration": ""} != asdict(again) | {"configuration": ""}


def test_who_runs_an_experiment_is_told_of_it():
    lines = []
    tiny("ranknet-speedup").run(lines.append)
    assert len(lines) == len(set(lines)) == 6


# ---- findings


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_check_holds_where_its_inequality_does(a, b):
    assert Check("", a, b).holds == (a < b)
    assert not Check("", a, a).holds


@pytest.mark.parametrize(
    ("held", "holds", "verdict"),
    [
        ([True, True], True, "holds"),
        ([True, False], False, "holds in part: 1 of 2 inequalities do"),
        ([False, False], False, "does not hold"),
    ],
)
def test_a_finding_holds_where_all_its_checks_do(held, holds, verdict):
    found = small(checks=[Check("", 0.0 if each else 1.0, 1.0) for each in held])
    assert found.holds == holds
    assert f"## The published finding {verdict}\n" in found.to_markdown()


def test_files_are_written_once(tmp_path):
    folder = tmp_path / "new" / "out"
    found = small()
    report, record, picture = found.write(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["x.json", "x.md", "x.png"]
    assert report.read_text() == found.to_markdown()
    assert json.loads(record.read_text()) == json.loads(json.dumps(found.to_json()))
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("suffix", [".md", ".json", ".png"])
def test_nothing_is_written_where_a_file_is_taken(tmp_path, suffix):
    taken = tmp_path / f"x{suffix}"
    taken.write_text("mine")
    with pytest.raises(xr.OutputExistsError, match=taken.name):
        small().write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [taken.name]
    assert taken.read_text() == "mine"
    small().write(tmp_path, force=True)
    assert len(list(tmp_path.iterdir())) == 3
    assert taken.read_bytes() != b"mine"


@EVERY_EXPERIMENT
def test_every_finding_can_be_drawn(name, findings, tmp_path):
    *_, picture = findings[name].write(tmp_path)
    assert picture.stat().st_size > 10_000


# ---- the command


@pytest.fixture
def command(monkeypatch):
    """The command, on a tiny scale."""
    ran = []

    class Tiny:
        full = staticmethod(lambda seed: ran.append(("full", seed)) or tiny("ranknet-speedup", seed=seed))

        def __new__(cls, seed):
            ran.append(("reduced", seed))
            return tiny("ranknet-speedup", seed=seed)

    monkeypatch.setattr(__main__, "find_experiment", lambda name: find_experiment(name) and Tiny)
    app = typer.Typer()
    app.command()(__main__.main)
    return ran, lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


def test_the_command_runs_an_experiment(command, tmp_path):
    ran, invoke = command
    done = invoke("ranknet-speedup", "--out", tmp_path, "--seed", 4)
    assert (done.exit_code, ran) == (0, [("reduced", 4)])
    assert (tmp_path / "ranknet-speedup.md").read_text() in done.stdout
    assert invoke("ranknet-speedup", "--out", tmp_path, "--full", "--force").exit_code == 0
    assert ran[1:] == [("full", 0)]


def test_the_command_refuses_before_it_works(command, tmp_path):
    ran, invoke = command
    (tmp_path / "ranknet-speedup.json").write_text("mine")
    for arguments, says in (
        (("ranknet-speedup", "--out", tmp_path), "already exists"),
        (("ranknets", "--out", tmp_path), "no experiment called 'ranknets'"),
    ):
        done = invoke(*arguments)
        assert done.exit_code == 2
        assert says in done.stderr
        assert "Traceback" not in done.stderr
    assert ran == []


# ---- data and choice


def test_parts_of_the_data_share_no_query():
    source = CubicPolynomial(features=3, documents=4)
    fold = three_parts(source, (70, 10, 20))
    ids = [part.qid.tolist() for part in (fold.train, fold.valid, fold.test)]
    assert [len(each) for each in ids] == [70, 10, 20]
    assert list(chain(*ids)) == list(range(1, 101))
    whole = artificial(source, 100)
    assert np.array_equal(np.concatenate([fold.train.X, fold.valid.X, fold.test.X]), whole.X)
    assert np.array_equal(np.concatenate([fold.train.y, fold.valid.y, fold.test.y]), whole.y)


def test_mixed_features_say_the_same_but_are_correlated():
    data = artificial(CubicPolynomial(features=8, documents=10), 300)
    mixed = correlated(data, 3)
    assert np.array_equal(mixed.y, data.y)
    assert np.array_equal(mixed.X, correlated(data, 3).X)
    assert not np.allclose(mixed.X, correlated(data, 4).X)
    back, *_ = np.linalg.lstsq(mixed.X, data.X, rcond=None)
    np.testing.assert_allclose(mixed.X @ back, data.X, atol=1e-4)
    eigenvalues = np.linalg.eigvalsh(np.cov(mixed.X.T))[::-1]
    np.testing.assert_allclose(eigenvalues * np.arange(1, 9), np.full(8, eigenvalues.mean() * 8 / (1 / np.arange(1, 9)).sum()), rtol=0.15)


def test_validation_data_chooses():
    fold = three_parts(CubicPolynomial(features=4, documents=8, seed=2), (40, 40, 1))
    rankers = [xr.RankNet(optimizer="sgd", rate=rate, epochs=2) for rate in (1e-6, 1e-2, 1e-4)]
    best = chosen(rankers, fold, lambda line: None)
    assert best.score(fold.valid) == max(ranker.score(fold.valid) for ranker in rankers)
    assert len({ranker.score(fold.valid) for ranker in rankers}) > 1


# ---- each experiment's own inequalities


def test_lambdarank_is_ahead_where_it_is():
    rng = np.random.default_rng(0)
    data = xr.RankingData.from_arrays(None, rng.integers(0, 5, 2000), group=[20] * 100)
    good, bad = (xr.evaluate(MEASURES, data, data.y + noise * rng.standard_normal(2000)) for noise in (1.0, 4.0))
    ahead, behind, equal = (Duel("nets", (1.0, 1.0), pair) for pair in ((good, bad), (bad, good), (good, good)))
    assert np.allclose(ahead.gaps, -behind.gaps)
    assert np.all((ahead.gap_intervals[:, 0] < ahead.gaps) & (ahead.gaps < ahead.gap_intervals[:, 1]))
    assert [check.holds for check in ahead.checks()] == [True, bool(ahead.gaps[0] > ahead.gaps[9])]
    for duel in (behind, equal):
        assert not any(check.holds for check in duel.checks())


@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(1e-6, 1e3), st.floats(1e-6, 1e3))
def test_slopes_of_power_laws(p, q, a, b):
    timed = [Epochs("nets", n, a * n**p, b * n**q, 0.0) for n in (4, 8, 16, 64)]
    assert slopes_of(timed) == pytest.approx((p, q))


@pytest.mark.parametrize("broken", [None, 0, 1, 2, 3])
def test_each_inequality_of_the_speedup_can_fail(broken):
    typical = Epochs("nets", 50, 1.0 if broken == 0 else 9.0, 3.0, 1.0 if broken == 3 else 1e-15)
    slopes = (1.2 if broken == 1 else 1.9, 1.9 if broken == 2 else 1.2)
    assert [check.holds for check in checks_of(typical, slopes)] == [i != broken for i in range(4)]


def test_both_versions_of_ranknet_are_timed(monkeypatch):
    passes = []
    for name in ("pass_over", "pass_over_pairs"):
        slow = getattr(Parametric, name)
        monkeypatch.setattr(Parametric, name, lambda self, *given, n=name, f=slow: passes.append(n) or f(self, *given))
    tiny("ranknet-speedup").run()
    assert passes == (["pass_over_pairs"] * 2 + ["pass_over"] * 2) * 6


def test_both_versions_of_ranknet_come_to_the_same_parameters(findings):
    apart = [check for check in findings["ranknet-speedup"].checks if "same parameters" in check.says]
    assert len(apart) == 2
    assert all(0 <= check.less < 1e-9 for check in apart)


def test_values_are_counted(findings):
    """A step of SPSA:F is F values and one for where it leads; of FDSA it is two a parameter, and one."""
    for panel in findings["spsa-convergence"].panels:
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


def test_with_one_feature_spsa_is_not_ahead():
    """Then FDSA needs no more values a step than SPSA:2, and SPSA:8 needs more."""
    assert [check.holds for check in tiny("spsa-convergence", features=1).run().checks][-1] is False


def test_a_budget_too_small_for_the_table_is_refused():
    with pytest.raises(xr.DataError, match="evaluations must be at least 16, got 15"):
        tiny("spsa-convergence", evaluations=15)


def test_the_table_has_what_the_rankers_score(findings):
    (table,) = findings["spsa-table"].tables
    rows = {row[0]: row[1:4] for row in table.rows}
    below, above = findings["spsa-table"].checks
    assert (below.less, below.more, above.less, above.more) == (
        rows["SPSA:4"][2],
        rows["RankNet"][2],
        rows["RankNet"][2],
        rows["LambdaRank"][2],
    )
    rising, *levels = findings["spsa-table"].panels[0].curves
    assert rising.x == tuple(4.0 * step for step in range(11))
    assert max(rising.y) == pytest.approx(rows["SPSA:4"][1])
    assert [level.y[0] for level in levels] == pytest.approx([rows["RankNet"][1], rows["LambdaRank"][1]])


heights = st.lists(st.integers(-9, 9), min_size=2, max_size=20)


@given(heights, heights)
def test_a_single_hill_is_smooth(up, down):
    assert roughness(np.array([*sorted(up), max(up + down), *sorted(down, reverse=True)], float)) == 0


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
