"""What fusing returns, draws and refuses, in Python and on the command line."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank import Fusion, fuse, systems_from_frame, systems_from_runs
from exactrank.cli import app
from exactrank.data.formats.base import Columns
from exactrank.errors import DataError, IncompatibleError, MeasureError, SettingError
from exactrank.fusion.normalize import ABSENT, NORMALIZATIONS
from tests.fusion.fuse_data import NAMES, random_systems, systems, value_at

# ---- the result


def test_the_comparison_by_hand():
    data = random_systems(2)
    fusion = fuse(data, measure="nDCG@5")
    rows = {row.name: row for row in fusion.comparison}
    assert list(rows) == ["bm25", "dense", "CombSUM", "RRF (k=60)", "tuned, in sample", "tuned, held out"]
    for name in ("bm25", "dense"):
        alone = np.nan_to_num(data.feature(name), nan=-np.inf)
        assert rows[name].mean == pytest.approx(er.evaluate(data, alone, ["nDCG@5"]).means["nDCG@5"])
    assert rows["CombSUM"].mean == pytest.approx(value_at(data, (0.5, 0.5), "nDCG@5"))
    assert rows["RRF (k=60)"].mean == pytest.approx(value_at(data, (0.5, 0.5), "nDCG@5", normalize="reciprocal-rank", absent="zero"))
    assert rows["tuned, in sample"].mean == fusion.value
    assert rows["tuned, held out"].mean == fusion.cross_validated
    assert rows["bm25"].gain == pytest.approx(fusion.cross_validated - rows["bm25"].mean)


@given(systems(max_queries=3), st.sampled_from(list(NORMALIZATIONS)), st.sampled_from(ABSENT), st.randoms(use_true_random=False))
def test_predict_gives_the_reported_value_in_any_row_order(data, normalize, missing, random):
    rows = list(range(data.n_documents))
    random.shuffle(rows)
    qid = np.repeat(np.arange(data.n_queries), data.sizes)
    shuffled = er.RankingData.from_arrays(data.X[rows], data.y[rows], qid=qid[rows], feature_names=NAMES[:2])
    fusion = fuse(shuffled, measure="nDCG@3", normalize=normalize, absent=missing, folds=0, bootstrap=0)
    value = er.evaluate(shuffled, fusion.predict(shuffled), "nDCG@3").means["nDCG@3"]
    assert value == pytest.approx(fusion.value, abs=1e-12)


def test_json_is_plain_and_complete():
    fusion = fuse(random_systems(3, queries=5), bootstrap=3, cells=5)
    shown = json.loads(json.dumps(fusion.to_json(), allow_nan=False))
    assert list(shown["weights"]) == list(NAMES[:3])
    assert tuple(shown["weights"].values()) == fusion.weights
    assert shown["certificate"]["upper"] >= shown["certificate"]["lower"] == pytest.approx(shown["value"])
    assert len(shown["bootstrap_interval"]["dense"]) == 2


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_picture(tmp_path, suffix):
    path = tmp_path / f"weights{suffix}"
    fuse(random_systems(2), nonnegative=suffix != ".svg").plot(path=path)
    assert path.stat().st_size > 1000


def test_pictures_that_cannot_be_drawn(tmp_path, monkeypatch):
    fusion = fuse(random_systems(2, queries=5), folds=0, bootstrap=0)
    with pytest.raises(DataError, match=r"a\.bmp: the suffix '\.bmp' names no kind of picture; use one of \.png"):
        fusion.plot(path=tmp_path / "a.bmp")
    with pytest.raises(IncompatibleError, match="there are 3 systems; fuse two"):
        fuse(random_systems(3, queries=5), folds=0, bootstrap=0, cells=1).plot(path=tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(IncompatibleError, match=r"pip install 'exactrank\[report\]'"):
        fusion.plot(path=tmp_path / "a.png")


def test_frames_and_chosen_systems():
    table = pd.DataFrame({"q": [1, 1, 1, 2, 2], "y": [0, 1, 0, 1, 0], "a": [3, 2, None, 1, 2], "b": [1, 2, 3, 4, 3], "c": [0, 1, 2, 3, 4]})
    data = systems_from_frame(table, ["a", "b"], Columns(query="q", relevance="y"))
    assert data.feature_names == ("a", "b")
    assert np.isnan(data.X[2, 0])
    whole = er.RankingData.from_frame(table, Columns(query="q", relevance="y"))
    ours, theirs = fuse(whole, systems=["b", "a"], folds=0, bootstrap=0), fuse(data, folds=0, bootstrap=0)
    assert ours.systems == ("b", "a")
    assert ours.weights == pytest.approx(theirs.weights[::-1])
    assert isinstance(ours, Fusion)


# ---- bad input


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1], [2], [3]], "fusing needs at least two systems, got bm25; give another"),
        ([[1, 1], [2, 2], [np.nan, np.nan]], "systems bm25, dense have the same scores throughout"),
        ([[1, 5], [2, 5], [3, np.nan]], "system 'dense' gives all documents of a query the same score"),
        ([[1, np.nan], [2, np.nan], [np.nan, 4]], "system 'bm25' retrieved no document that another system retrieved"),
        ([[1, np.nan], [2, np.nan], [3, np.nan]], "system 'dense' has no score for any document"),
    ],
)
def test_systems_that_cannot_be_fused(X, message):
    data = er.RankingData.from_arrays(X, [0, 1, 0], group=[3], feature_names=NAMES[: len(X[0])])
    with pytest.raises(DataError, match=message):
        fuse(data, folds=0)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"normalize": "softmax"}, SettingError, "there is no normalization 'softmax'; there are none, l2, min-max"),
        ({"absent": "mean"}, SettingError, "absent='mean' is not one of worst, zero, zero-score, drop"),
        ({"folds": 1}, DataError, "folds=1 leaves no queries to tune on"),
        ({"folds": 9}, DataError, r"5 queries cannot form 9 folds; give folds=5 or less, or 0"),
        ({"cells": 0}, SettingError, "cells must be at least 1, got 0"),
        ({"tolerance": -0.1}, SettingError, "tolerance must be a number of at least 0, got -0.1"),
        ({"bootstrap": -1}, SettingError, "bootstrap must be at least 0, got -1"),
        ({"measure": "nope"}, MeasureError, "there is no measure 'nope'"),
        ({"systems": ["bm25", "sparse"]}, DataError, "the data has no system 'sparse'; it has bm25, dense"),
        ({"systems": ["bm25", "bm25"]}, DataError, "system 'bm25' is named twice"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        fuse(random_systems(2, queries=5), **settings)


def test_nothing_to_tune():
    X = [[1, 2], [2, 1], [3, 0]]
    with pytest.raises(DataError, match="all documents have grade 1, so all rankings are equally good"):
        fuse(er.RankingData.from_arrays(X, [1, 1, 1], group=[3]), folds=0)
    with pytest.raises(DataError, match="no document that was retrieved is relevant by nDCG@10"):
        fuse(er.RankingData.from_arrays(X, [0, -1, 0], group=[3]), folds=0)


# ---- the command


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = random_systems(3, queries=8)
    qid = np.repeat(np.arange(8), 15)
    (tmp_path / "a.qrels").write_text("".join(f"{q} 0 d{i} {y:g}\n" for i, (q, y) in enumerate(zip(qid, data.y, strict=True))))
    for j, name in enumerate(data.feature_names):
        lines = [f"{q} Q0 d{i} 0 {s} tag\n" for i, (q, s) in enumerate(zip(qid, data.X[:, j].tolist(), strict=True)) if s == s]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    frame = pd.DataFrame({"query_id": qid, "relevance": data.y, **{n: data.X[:, j] for j, n in enumerate(data.feature_names)}})
    frame.to_parquet(tmp_path / "a.parquet")
    return tmp_path


def command(*arguments):
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["fuse", *map(str, arguments)])


def test_command_on_runs(files):
    result = command("a.qrels", "--run", "bm25.run", "--run", "dense.run", "--plot", "w.png", "--save", "w.json")
    assert result.exit_code == 0, result.stderr
    for part in ("global optimum", "CombSUM", "RRF (k=60)", "tuned, held out", "95% interval"):
        assert part in result.stdout
    written = json.loads((files / "w.json").read_text())
    theirs = fuse(systems_from_runs(files / "a.qrels", [files / "bm25.run", files / "dense.run"]))
    assert written == json.loads(json.dumps(theirs.to_json()))
    assert (files / "w.png").stat().st_size > 1000
    again = command("a.qrels", "--run", "bm25.run", "--run", "dense.run", "--save", "w.json")
    assert again.exit_code == 2
    assert "w.json already exists" in again.stderr


def test_command_on_a_table(files):
    systems = ("--system", "bm25", "--system", "dense", "--system", "rerank")
    result = command("a.parquet", *systems, "--json", "--cells", 5, "--bootstrap", 2, "--absent", "zero", "--allow-negative")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert (shown["absent"], shown["optimum"]) == ("zero", "certified")
    for measure, message in (("P@3", "is within"), ("AP", "local optimum")):
        result = command("a.parquet", *systems, "--cells", 5, "--bootstrap", 0, "--folds", 0, "-m", measure)
        assert message in result.stdout, result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.qrels",), "give --run NAME=FILE for each system"),
        (("a.qrels", "--run", "bm25.run", "--system", "x"), "give only one of them"),
        (("a.qrels", "--run", "bm25.run"), "fusing needs at least two systems, got bm25"),
        (("a.qrels", "--run", "bm25.run", "--run", "bm25.run"), "system 'bm25' is named twice; give each its own name"),
        (("a.qrels", "--run", "bm25.run", "--run", "none.run"), "none.run does not exist"),
        (("a.qrels", "--run", "bm25.run", "--run", "other.run"), "no query of run 'other' (such as 'x') is in the qrels (such as '0')"),
        (("a.qrels", "--run", "bm25.run", "--run", "nan.run"), "nan.run:1: score 'nan' is not a finite number"),
        (
            ("a.qrels", "--run", "apart.run", "--run", "bm25.run"),
            "'apart' retrieved no document that another system retrieved (it has 'x1', another 'd",
        ),
        (("a.parquet", "--system", "bm25", "--system", "sparse"), "'sparse'"),
        (("a.qrels", "--run", "bm25.run", "--run", "dense.run", "--plot", "w.gif"), "names no kind of picture"),
        (("a.qrels", *(w for n in NAMES[:3] for w in ("--run", f"{n}.run")), "--plot", "w.png"), "there are 3; fuse two"),
    ],
)
def test_command_refuses(files, arguments, message):
    (files / "other.run").write_text("x Q0 d1 0 1 t\n")
    (files / "nan.run").write_text("0 Q0 d1 0 nan t\n")
    (files / "apart.run").write_text("0 Q0 x1 0 1 t\n0 Q0 x2 0 2 t\n")
    result = command(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
