"""A fusion in a file, and applied to new results: runs and frames, in Python and on the command line."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank import Fusion, fuse, systems_from_runs
from exactrank.cli import app
from exactrank.data.formats.base import Columns
from exactrank.data.formats.trec import RetrievalRun, scores_of
from exactrank.errors import DataError, IncompatibleError, OutputExistsError
from exactrank.fusion.engines import ENGINES
from tests.fusion.fuse_data import NAMES, random_systems, systems

QUICK = {"folds": 0, "bootstrap": 0}


def command(*arguments):
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["fuse", *map(str, arguments)])


def run_of(data, name):
    """One system of data as a run, in the order of its scores."""
    scores, query = data.feature(name), np.repeat(np.arange(data.n_queries), data.sizes)
    rows = np.lexsort((-scores, query))
    rows = rows[~np.isnan(scores[rows])]
    return RetrievalRun([f"q{query[i]}" for i in rows], [f"d{i}" for i in rows], scores[rows], name)


def written(folder, data):
    """Files of qrels and of each system's run."""
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    lines = [f"q{q} 0 d{i} {y:g}\n" for i, (q, y) in enumerate(zip(query, data.y, strict=True))]
    (folder / "a.qrels").write_text("".join(lines))
    for name in data.feature_names:
        run = run_of(data, name)
        lines = [f"{q} Q0 {d} 0 {s} t\n" for q, d, s in zip(run.qid, run.docid, run.score.tolist(), strict=True)]
        (folder / f"{name}.run").write_text("".join(lines))
    return {name: folder / f"{name}.run" for name in data.feature_names}


# ---- the file


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("settings", [{}, QUICK, {"engine": "elasticsearch"}, {"normalize": "all", "folds": 3}])
def test_what_is_read_is_what_was_saved(tmp_path, n, settings):
    fusion = fuse(random_systems(n, queries=6), cells=3, **({"bootstrap": 3} | settings))
    fusion.save(tmp_path / "f.json")
    for read in (er.load(tmp_path / "f.json"), er.load(tmp_path / "f.json", kind=Fusion)):
        assert read == replace(fusion, sweep=None)
        assert read.to_bytes() == (tmp_path / "f.json").read_bytes()
    data = random_systems(n, seed=3)
    assert read.predict(data).tolist() == fusion.predict(data).tolist()
    with pytest.raises(OutputExistsError, match=r"f\.json already exists"):
        fusion.save(tmp_path / "f.json")
    fusion.save(tmp_path / "f.json", force=True)
    with pytest.raises(IncompatibleError, match="has no sweep to draw; tune the weights again" if n == 2 else "fuse two"):
        read.plot(path=tmp_path / "a.png")


def test_values_that_could_not_be_had_are_null(tmp_path):
    """A measure may skip every query of a bootstrap sample."""
    fusion = replace(fuse(random_systems(2, queries=5), **QUICK), value=math.nan, bootstrap_interval=((math.nan, math.nan),) * 2)
    fusion.save(tmp_path / "f.json")
    assert er.load(tmp_path / "f.json").to_json() == fusion.to_json()


ENDS = {"weights", "normalize", "absent", "measure", "value", "interval", "optimum", "comparison", "normalizations"}  #: that must be there


@pytest.fixture(scope="module")
def record():
    return json.loads(json.dumps(fuse(random_systems(3, queries=6), bootstrap=3, cells=3).to_json()))


BAD = [
    *((key, None) for key in sorted(ENDS - {"value"})),
    *((key, value) for key in ("weights", "interval", "bootstrap_interval", "certificate") for value in ([], "x", {"bm25": 1}, 3)),
    ("weights", {"bm25": 1.0}),
    ("weights", {"bm25": 0.5, "dense": 0.4, "rerank": 0.3}),
    ("weights", {"bm25": 0.5, "dense": None, "rerank": 0.5}),
    ("weights", {"bm25": 0.5, "dense": True, "rerank": 0.5}),
    ("weights", {"bm25": 0.5, "dense": "0.5", "rerank": 0}),
    ("weights", {"bm25": 1e400, "dense": 0.5, "rerank": 0}),
    ("normalize", "maximum"),
    ("normalize", "reciprocal-rank(k=0)"),
    ("absent", "mean"),
    ("engine", "solr"),
    ("engine", []),
    ("engine", "opensearch"),  # which has no min-max
    ("depth", 0),
    ("depth", 1.5),
    ("depth", True),
    ("measure", "nope"),
    ("measure", "__import__('os')"),
    ("value", "high"),
    ("value", 1e400),
    ("value", 10**400),
    ("cross_validated", [1]),
    ("interval", {"bm25": [0, 1], "dense": [0, 1], "other": [0, 1]}),
    ("interval", {"bm25": [0, 1], "dense": [0, 1], "rerank": [0]}),
    ("optimum", "near"),
    ("certificate", {"lower": 0, "upper": 1, "cells": "many"}),
    ("certificate", {"lower": 0, "upper": 1}),
    ("comparison", [1]),
    ("comparison", [{"name": 3, "mean": 0.5}]),
    ("comparison", [{"name": "a", "mean": "x"}]),
    ("comparison", [{"name": "a", "mean": 0.5, "interval": [1, 2, 3]}]),
    ("normalizations", {}),
    ("version", 2),
    ("version", None),
]


@pytest.mark.parametrize(("key", "value"), BAD, ids=lambda part: str(part)[:30])
def test_damaged_files_are_refused(tmp_path, record, key, value):
    path = tmp_path / "f.json"
    path.write_text(json.dumps(record | {key: value}).replace("Infinity", "1e400"))
    with pytest.raises(DataError) as error:
        er.load(path)
    assert str(path) in str(error.value)
    result = command("apply", path, "--run", "a=none.run", "--out", tmp_path / "x.run")
    assert (result.exit_code, (tmp_path / "x.run").exists()) == (2, False)
    assert "Traceback" not in result.stderr


def test_an_engine_file_with_a_negative_weight(tmp_path):
    record = fuse(random_systems(2, queries=6), engine="elasticsearch", **QUICK).to_json()
    (tmp_path / "f.json").write_text(json.dumps(record | {"weights": {"bm25": 1.0 - 0.2, "dense": -0.2}}))
    with pytest.raises(DataError, match=r"'weights' is \{.*\}; the file is damaged"):
        er.load(tmp_path / "f.json")


def test_models_and_fusions_are_told_apart(tmp_path):
    data = random_systems(2, queries=6)
    fuse(data, **QUICK).save(tmp_path / "f.json")
    er.write(data, tmp_path / "a.xr")
    (tmp_path / "m.json").write_text("[1, 2]")
    with pytest.raises(IncompatibleError, match=r"m\.json is a model, not a fusion; .* exactrank fuse apply takes fusions"):
        er.load(tmp_path / "m.json", kind=Fusion)
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "f.json"), str(tmp_path / "a.xr")])
    assert result.exit_code == 2
    assert "f.json is a fusion, not a model; exactrank predict takes models, exactrank fuse apply takes fusions" in result.stderr


# ---- applied


@settings(max_examples=30)
@given(systems(), st.sampled_from(["min-max", "none", "z-score"]), st.sampled_from(["worst", "zero", "drop"]))
def test_runs_are_fused_as_data_is(data, normalize, absent):
    """Scores are those of `predict`, ordered, without documents that are not ranked."""
    fusion = fuse(data, measure="nDCG@3", normalize=normalize, absent=absent, **QUICK)
    runs = {name: run_of(data, name) for name in data.feature_names}
    ours, scores = fusion.apply(runs), fusion.predict(data)
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    theirs = {(f"q{query[i]}", f"d{i}"): score for i, score in enumerate(scores.tolist()) if math.isfinite(score)}
    result = dict(zip(zip(ours.qid, ours.docid, strict=True), ours.score.tolist(), strict=True))
    assert result == pytest.approx(theirs, rel=1e-12, abs=1e-12)  # a mean of another order of documents
    pairs = list(zip(ours.qid, ours.score.tolist(), strict=True))
    assert all(a[1] >= b[1] for a, b in pairwise(pairs) if a[0] == b[0])


def test_tuned_on_runs_is_tuned_on_data(tmp_path):
    data = random_systems(3)
    paths = written(tmp_path, data)
    ours = fuse(systems_from_runs(tmp_path / "a.qrels", paths), cells=1, **QUICK)
    theirs = fuse(data, cells=1, **QUICK)
    assert (ours.systems, ours.value) == (theirs.systems, pytest.approx(theirs.value))
    assert systems_from_runs(tmp_path / "a.qrels", list(paths.values())).feature_names == NAMES[:3]
    assert systems_from_runs(tmp_path / "a.qrels", [er.read_run(path) for path in list(paths.values())[:1]]).feature_names == ("t",)


def test_ties_are_broken_by_the_runs_and_not_by_the_judgments(tmp_path):
    """A relevant document is no better off for being judged: an engine that gives all the same score returns them as it likes."""
    (tmp_path / "a.qrels").write_text("1 0 z 1\n1 0 y 0\n2 0 y 1\n2 0 x 0\n")
    for name, scores in (("a", "1111"), ("b", "1121")):
        lines = [f"{q} Q0 {d} 0 {s} t\n" for q in "12" for d, s in zip("wxyz", scores, strict=True)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    data = systems_from_runs(tmp_path / "a.qrels", [tmp_path / "a.run", tmp_path / "b.run"])
    assert data.docid.tolist() == ["w", "x", "y", "z"] * 2
    assert data.y.tolist() == [-1, -1, 0, 1, -1, 0, 1, -1]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_frames_in_and_out(make):
    data = random_systems(2, queries=6)
    fusion = fuse(data, engine="opensearch", depth=12, **QUICK)
    query = np.repeat(np.arange(6), 15)
    order = np.random.default_rng(0).permutation(len(query))
    columns = {"q": query[order].tolist(), "doc": [f"d{i}" for i in order]}
    scores = {n: [None if math.isnan(s) else s for s in data.X[order, j].tolist()] for j, n in enumerate(NAMES[:2])}
    frame = make({**columns, **scores})
    fused = fusion.apply(frame, Columns(query="q"))
    assert type(fused) is type(frame)
    table = fused.to_pandas() if make is not pd.DataFrame else fused
    assert list(table.columns) == ["q", "doc", "bm25", "dense", "score"]
    assert table["doc"].tolist() == columns["doc"]
    theirs = fusion.predict(data)[order]
    np.testing.assert_array_equal(table["score"].to_numpy(float), np.where(np.isinf(theirs), np.nan, theirs))
    assert np.isinf(theirs).any()
    with pytest.raises(DataError, match="already has a column 'score'"):
        fusion.apply(fused, Columns(query="q"))
    with pytest.raises(DataError, match=r"of systems bm25, dense, but the input lacks 'dense'; give the scores of each of them"):
        fusion.apply(make({**columns, "bm25": scores["bm25"]}), Columns(query="q"))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return written(tmp_path, random_systems(3, queries=8))


def test_command_saves_and_applies(files, tmp_path):
    named = ("--run", "lexical=bm25.run", "--run", "./dense.run")
    result = command("a.qrels", *named, "--save", "f.json")
    assert result.exit_code == 0, result.stderr
    assert er.load("f.json").systems == ("lexical", "dense")
    result = command("apply", "f.json", *reversed(named[1::2]), "--out", "x.run")
    assert result.exit_code != 0  # runs are options
    result = command("apply", "f.json", "--run", "dense=dense.run", "--run", "lexical=bm25.run", "--out", "x.run")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("x.run: ")
    fused, theirs = er.read_run("x.run"), er.load("f.json").apply({"lexical": files["bm25"], "dense": files["dense"]})
    assert fused.tag == "fusion"
    assert fused.by_query == theirs.by_query
    er.write_run(theirs, "y.run")
    assert (tmp_path / "y.run").read_bytes() == (tmp_path / "x.run").read_bytes()
    packed = command("apply", "f.json", *named, "--out", "x.run.gz", "--tag", "mine", "--json")
    assert json.loads(packed.stdout)["documents"] == len(theirs.score)
    assert er.read_run("x.run.gz").tag == "mine"
    again = command("apply", "f.json", *named, "--out", "x.run")
    assert again.exit_code == 2
    assert "x.run already exists" in again.stderr
    evaluated = er.evaluate(*scores_of(er.read("a.qrels"), fused), "nDCG@10").means["nDCG@10"]
    assert evaluated == pytest.approx(er.load("f.json").value)


@pytest.mark.parametrize("engine", ENGINES)
def test_command_for_an_engine(files, tmp_path, engine):
    words = ("a.qrels", "--run", "bm25.run", "--run", "dense.run", "--for", engine, "--depth", 12, "--folds", 0, "--bootstrap", 0)
    result = command(*words, "--save", "f.json")
    assert result.exit_code == 0, result.stderr
    shown = result.stdout.partition(f"configuration of {engine}:\n")[2]
    assert shown == er.load("f.json").configuration()
    result = command(*words, "--config", "c.txt")
    assert (tmp_path / "c.txt").read_text() == shown
    assert shown not in result.stdout
    assert json.loads(command(*words, "--json").stdout)["engine"] == engine


def test_command_tries_all_normalizations(files):
    result = command("a.qrels", "--run", "bm25.run", "--run", "dense.run", "--normalize", "all", "--bootstrap", 5)
    assert result.exit_code == 0, result.stderr
    for part in ("reciprocal-rank(k=10)", "opensearch-z-score", "on held-out queries; gain: of", "with "):
        assert part in result.stdout


RUNS = ("--run", "bm25.run", "--run", "dense.run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.qrels", "--run", "a=bm25.run", "--run", "a=dense.run"), "system 'a' is named twice; give each its own name"),
        (("a.qrels", *RUNS, "--run", "other=bm25.run", "--run", "bm25.run"), "system 'bm25' is named twice"),
        (("a.qrels", "--run", "early.run", "--run", "late.run"), "no query of run 'early' (such as 'q0') is in another run (such as 'q5'"),
        (("a.qrels", *RUNS, "--for", "elasticsearch", "--allow-negative"), "elasticsearch takes no negative weights; leave out"),
        (("a.qrels", *RUNS, "--for", "open-search"), "there is no engine 'open-search' (did you mean opensearch?)"),
        (("a.qrels", *RUNS, "--for", "vespa", "--depth", "5"), "depth=5 is less than the 10 documents that nDCG@10 counts"),
        (("a.qrels", *RUNS, "--config", "c.json"), "--config writes the configuration of an engine; name the engine with --for"),
        (("a.qrels", *RUNS, "--for", "vespa", "--config", "c", "--save", "c"), "two outputs would go to c"),
        (("apply", "f.json", "--out", "x.run"), "but the input lacks 'bm25' and lacks 'dense'"),
        (("apply", "f.json", *RUNS, "--run", "rerank.run", "--out", "x.run"), "but the input has 'rerank' besides"),
        (("apply", "f.json", "--run", "bm25.run", "--run", "sparse=dense.run", "--out", "x.run"), "lacks 'dense' and has 'sparse' besides"),
        (("apply", "f.json", "--run", "bm25=early.run", "--run", "dense=late.run", "--out", "x.run"), "give runs of the same queries"),
        (("apply", "f.json", *RUNS, "--run", "bm25.run", "--out", "x.run"), "system 'bm25' is named twice"),
        (("apply", "none.json", *RUNS, "--out", "x.run"), "none.json does not exist"),
        (("apply", "bm25.run", *RUNS, "--out", "x.run"), "bm25.run is not a model"),
        (("apply", "f.json", *RUNS, "--tag", "a b", "--out", "x.run"), "'a b'"),
    ],
)
def test_command_refuses(files, tmp_path, arguments, message):
    assert command("a.qrels", *RUNS, "--folds", 0, "--bootstrap", 0, "--save", "f.json").exit_code == 0
    lines = files["bm25"].read_text().splitlines(keepends=True)
    (tmp_path / "early.run").write_text("".join(line for line in lines if line[1] < "5"))
    (tmp_path / "late.run").write_text("".join(line for line in lines if line[1] >= "5"))
    result = command(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "x.run").exists()
