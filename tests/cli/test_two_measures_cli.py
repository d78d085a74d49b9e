"""Two measures on the command line: goals with constraints wherever a measure is named, and ``exactrank pareto``."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.cli.train import _is_no_worse
from exactrank.measures.goal import parse_goal

GOAL = "nDCG@3 subject to revenue@2 >= 3"
KEEP = ("--keep-columns", "revenue")
BOTH = ("-m", "nDCG@3", "-m", "revenue@2")


def command(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, arguments)))


def printed(*arguments):
    """What a command that succeeds prints as JSON."""
    result = command(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A shop's results with the kept column revenue, and a model trained on `GOAL`."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3)).round(3)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=240)), 0, 3)
    revenue = np.exp(X[:, 2] - 0.3 * X[:, 0]).round(2)
    data = er.RankingData.from_arrays(
        X, y, group=[12] * 20, docid=[f"d{i}" for i in range(240)], feature_names=["a", "b", "c"], extra_columns={"revenue": revenue}
    )
    er.write(data, folder / "shop.csv")
    query = np.repeat(np.arange(20), 12)
    (folder / "shop.qrels").write_text("".join(f"{q} 0 d{i} {y[i]:g}\n" for i, q in enumerate(query)))
    for name in "abc":
        scores = data.feature(name)
        (folder / f"{name}.run").write_text("".join(f"{q} Q0 d{i} 0 {scores[i]} t\n" for i, q in enumerate(query)))
    trained = printed("train", "directrank", folder / "shop.csv", *KEEP, "-m", GOAL, "--out", folder / "model.json")
    assert trained["constraints"]["value"]["revenue@2 >= 3"] >= 3
    return folder


def test_training_shows_each_constraint(shop, tmp_path):
    message = command(
        "train", "directrank", shop / "shop.csv", *KEEP, "-m", GOAL, "--valid", shop / "shop.csv", "--out", tmp_path / "m.json"
    ).output
    assert "revenue@2 >= 3" in message
    value = er.load(tmp_path / "m.json").training["constraints"]
    for part in ("value", "valid"):
        assert f"{value[part]['revenue@2 >= 3']:.4f}" in message


def test_a_checkpoint_that_keeps_the_constraints_takes_the_place_of_a_better_one_that_does_not(shop):
    model, goal = er.load(shop / "model.json"), parse_goal(GOAL)

    def reaching(value, revenue, valid=None):
        return replace(model, training={"value": value, "valid": valid, "constraints": {"value": {"revenue@2 >= 3": revenue}}})

    ranked = [reaching(0.9, 1.0), reaching(0.9, 2.0), reaching(0.4, 3.0, 0.6), reaching(0.5, 3.5, 0.6), reaching(0.3, 3.5, 0.7)]
    for (i, worse), (j, better) in combinations(enumerate(ranked), 2):
        assert _is_no_worse(better, worse, goal)
        assert not _is_no_worse(worse, better, goal) or (i, j) == (2, 3)  # as good by validation


@pytest.mark.parametrize(
    ("method", "goal", "message"),
    [
        ("directrank", "nDCG@3 subject to revenue@2 >= 1000", "nothing reaches revenue@2 >= 1000; the largest revenue@2 found is"),
        ("directrank", "nDCG@3 subject to revenue@2 > 3", "'revenue@2 > 3' is not a constraint; write a measure, >= or <=, and a number"),
        ("directrank", "nDCG@3 subject to profit@2 >= 3", "--keep-columns profit"),
        ("ridge", GOAL, "Ridge cannot keep revenue@2 >= 3: it follows a stand-in"),
    ],
)
def test_a_goal_that_cannot_be_leaves_nothing(shop, tmp_path, method, goal, message):
    result = command("train", method, shop / "shop.csv", *KEEP, "-m", goal, "--out", tmp_path / "m.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == []


def test_evaluation_shows_all_measures_of_a_goal(shop):
    data, model = er.read(shop / "shop.csv", columns=er.data.Columns(keep=("revenue",))), er.load(shop / "model.json")
    theirs = er.evaluate(data, model.predict(data), ["nDCG@3", "revenue@2"]).means
    first = printed("evaluate", shop / "shop.csv", shop / "model.json", *KEEP, "-m", GOAL)["measures"]
    assert {name: found["mean"] for name, found in first.items()} == pytest.approx(theirs)
    (shop / "b.txt").write_text("".join(f"{value}\n" for value in data.ungroup(data.feature("b"))))
    several = printed("evaluate", shop / "shop.csv", shop / "model.json", shop / "b.txt", *KEEP, "-m", GOAL)["runs"]
    assert {name: found["mean"] for name, found in several["model"]["measures"].items()} == pytest.approx(theirs)


def test_a_model_of_a_goal_is_used_as_any_other(shop, tmp_path):
    model = shop / "model.json"
    assert "trained by DirectRank on nDCG@3 subject to revenue@2 >= 3 of 20 queries" in repr(er.load(model))
    assert len(printed("predict", model, shop / "shop.csv", *KEEP)["scores"]) == 240
    assert "| revenue@2 >= 3, on training data |" in command("card", model).stdout
    checked = printed("export", model, "--to", "python", "--check", shop / "shop.csv", *KEEP, "--out", tmp_path / "model.py")
    assert "nDCG(" in json.dumps(checked)
    for probe in ("optimality", "importance", "smoothness"):  # of the measure alone
        assert command("inspect", probe, model, shop / "shop.csv", *KEEP).exit_code == 0
        refused = command("inspect", probe, model, shop / "shop.csv", *KEEP, "-m", GOAL)
        assert refused.exit_code == 2
        assert "give one measure here, without 'subject to'" in refused.stderr


def test_fusing_under_a_constraint(shop, tmp_path):
    systems = ("--system", "a", "--system", "c", "--folds", "0", "--bootstrap", "0")
    result = command("fuse", shop / "shop.csv", *KEEP, *systems, "-m", GOAL, "--save", tmp_path / "f.json")
    assert result.exit_code == 0, result.output
    ((name, value),) = er.load(tmp_path / "f.json").constraints.items()
    assert f"{name} holds: {value:.4f}." in " ".join(result.stdout.split())
    refused = command("fuse", shop / "shop.csv", *KEEP, *systems, "-m", "nDCG@3 subject to revenue@2 >= 99")
    assert refused.exit_code == 2
    assert "so lower 99" in refused.stderr


def test_info_shows_kept_columns_and_pairs(shop, tmp_path):
    (tmp_path / "pairs.csv").write_text("query_id,better,worse\n0,d1,d2\n3,d40,d37\n")
    assert command("pairs", tmp_path / "pairs.csv", shop / "shop.csv", *KEEP, "--out", tmp_path / "both.xr").exit_code == 0
    record, message = printed("info", tmp_path / "both.xr"), command("info", tmp_path / "both.xr").stdout
    least, most = record["extra_columns"]["revenue"]
    assert f"revenue: {least:g} to {most:g}" in message
    assert record["pairs"] == 2
    assert "pairs" in message
    plain = command("info", shop / "shop.qrels").stdout
    assert "extra columns" not in plain
    assert "pairs" not in plain


# ---- exactrank pareto


@pytest.mark.parametrize("kind", ["systems", "runs", "model"])
def test_the_front_on_the_command_line_is_that_of_python(shop, tmp_path, kind):
    data = er.read(shop / "shop.csv", columns=er.data.Columns(keep=("revenue",)))
    how = {
        "systems": (shop / "shop.csv", *KEEP, *BOTH, "--system", "a", "--system", "c"),
        "runs": (shop / "shop.qrels", "-m", "nDCG@3", "-m", "P@2", "--run", shop / "a.run", "--run", f"c={shop / 'c.run'}"),
        "model": (shop / "shop.csv", *KEEP, *BOTH, "--model", shop / "model.json", "--points", "2"),
    }[kind]
    ours = printed("pareto", *how)
    if kind == "model":
        theirs = er.pareto(data, er.load(shop / "model.json"), ["nDCG@3", "revenue@2"], points=2)
    else:
        theirs = er.pareto(data, ["a", "c"], ["nDCG@3", "revenue@2" if kind == "systems" else "P@2"])
    assert ours["complete"] == theirs.complete == (kind != "model")
    assert [list(point["values"].values()) for point in ours["points"]] == pytest.approx(theirs.values)
    message = command("pareto", *how, "--save", tmp_path / "front.csv")
    assert message.exit_code == 0
    assert f"{len(theirs)} points" in message.stdout
    assert len((tmp_path / "front.csv").read_text().splitlines()) == len(theirs) + 1
    again = command("pareto", *how, "--save", tmp_path / "front.csv")
    assert again.exit_code == 2
    assert "front.csv already exists" in again.stderr


def test_the_front_is_drawn(shop, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert command("pareto", shop / "shop.csv", *KEEP, *BOTH, "--system", "a", "--system", "c", "--plot", tmp_path / "f.png").exit_code == 0
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (BOTH, "give one of --run NAME=FILE for each system of the qrels in DATA, --system NAME for each feature, or --model FILE"),
        ((*BOTH, "--system", "a", "--model", "model.json"), "give one of --run"),
        ((*BOTH, "--system", "a"), "at least two systems, got a"),
        ((*BOTH, "--system", "a", "--system", "z"), "no feature column 'z'"),
        ((*BOTH, "--model", "none.json"), "none.json does not exist"),
        (("-m", "nDCG@3", "--system", "a", "--system", "c"), "between two measures, got nDCG@3"),
        (("-m", "nDCG@3", "-m", GOAL, "--system", "a", "--system", "c"), "give one measure here, without 'subject to'"),
        (("-m", "nDCG@3", "-m", "profit@2", "--system", "a", "--system", "c"), "--keep-columns profit"),
    ],
)
def test_what_the_front_cannot_be_made_of(shop, arguments, message):
    result = command("pareto", shop / "shop.csv", *KEEP, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
