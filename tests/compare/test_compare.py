"""Comparisons: divisions by query, fits in processes, budgets, resuming, failures, tables; with real processes that are really killed."""

import csv
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank._support.json_values import decode_record, encode_record
from exactrank.cli import app
from exactrank.compare import tracking
from exactrank.compare.comparison import Comparison, read_comparison
from exactrank.compare.contenders import find_contender
from exactrank.compare.divisions import CachedPart, cache_folds, divide
from exactrank.compare.fitting import FitJob
from exactrank.compare.report import report_html
from exactrank.compare.results import Fit, Trial
from exactrank.compare.schedule import TuningBudget, best_trial, settings_of_trial
from exactrank.compare.standings import differences, efforts, pairs, shared_values, standings, winning
from exactrank.data.folds import Fold, deal_folds
from exactrank.data.synthetic import CubicPolynomial
from tests.cli.test_cli import PROGRAM
from tests.compare.comparisons import make_comparison, partial, with_failure
from tests.events import HANGS, Gate, Letterbox

QUICK = ["ridge", "rankcosine(max_iter=3)"]
ODD = "tests.compare.odd_contenders:"
TUNED = [*QUICK, ODD + "Signed"]
#: What differs between runs of the same fit.
MEASURED = {"seconds", "memory", "curve"}


@pytest.fixture(scope="module")
def data():
    return CubicPolynomial(features=4, documents=8, grades=3, noise=0.2).data(24)


@pytest.fixture(scope="module")
def text(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "web.txt"
    er.write(data, path)
    return path


@pytest.fixture(scope="module")
def untuned(data):
    return er.compare({"web": data}, ["ridge"], folds=3)


@pytest.fixture(scope="module")
def tuned(data, tmp_path_factory):
    """A comparison with trials, and its folder, which is not to be changed."""
    out = tmp_path_factory.mktemp("tuned") / "out"
    return er.compare(data, TUNED, "nDCG@3", folds=3, trials=3, workers=1, threads=2, out=out), out


def command(*arguments):
    """The command in this process, which has imported everything; the fits have theirs all the same."""
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


def ok(*arguments):
    result = command(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(message, *arguments):
    result = command(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def same_for_good(fits):
    """Fits without what a clock or the kernel told."""

    def still(record):
        return {name: value for name, value in record.items() if name not in MEASURED}

    records = [still(encode_record(fit)) for fit in fits]
    return [record | {"trials": [still(trial) for trial in record["trials"]]} for record in records]


# Divisions


def without_features(part, *, features=True, read=CachedPart.read):
    assert not features, "the features were read"
    return read(part, features=False)


def test_what_the_caller_checks_and_says_of_data_needs_no_features(tmp_path, monkeypatch):
    """Copies of X are for the processes that fit; one here per part would be as many as there are folds, three times over."""
    data = er.RankingData.from_arrays(np.arange(120.0).reshape(40, 3), np.arange(40) % 3, group=[4] * 10)
    fold = er.Fold("given", data.take_queries(range(4)), data.take_queries(range(4, 7)), data.take_queries(range(7, 10)))
    for divided in (divide("web", data, 5, 0, tmp_path), cache_folds("web", [fold], tmp_path)):
        whole = [(each.train.read().n_documents, each.valid.read().n_documents, each.test.read().n_documents) for each in divided.divisions]
        with monkeypatch.context() as patched:
            patched.setattr(CachedPart, "read", without_features)
            summary = divided.summary()
        assert [(each.train.documents, each.valid.documents, each.test.documents) for each in summary.folds] == whole
        assert (summary.queries, summary.documents, summary.features) == (10, 40, 3)
        assert summary.grades == {"0": 14, "1": 13, "2": 13}
        assert len({each.checksum for each in summary.folds}) == len(summary.folds)
        assert {len(set(each.checksum.split("-"))) for each in summary.folds} == {3}


@settings(max_examples=15)
@given(queries=st.integers(3, 20), folds=st.integers(3, 6), seed=st.integers(0, 5))
def test_each_query_is_tested_once_and_never_in_two_parts(queries, folds, seed, tmp_path_factory):
    data = er.RankingData.from_arrays(np.arange(2.0 * queries)[:, None], [0, 1] * queries, qid=np.repeat(np.arange(queries), 2) + 7)
    scratch = tmp_path_factory.mktemp("parts")
    if queries < folds:
        with pytest.raises(er.errors.DataError, match=rf"{queries} queries, fewer than the {folds} folds"):
            divide("web", data, folds, seed, scratch)
        return
    divided = divide("web", data, folds, seed, scratch)
    summary = divided.summary()
    parts = [division.read() for division in divided.divisions]
    assert sorted(np.concatenate([fold.test.qid for fold in parts])) == sorted(data.qid)
    for fold in parts:
        assert sorted(np.concatenate([fold.train.qid, fold.valid.qid, fold.test.qid])) == sorted(data.qid)
    assert summary.queries == queries
    assert summary.documents == 2 * queries


def test_rows_of_parts_are_those_of_the_file(tmp_path):
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 6, 40)  # not grouped
    data = er.RankingData.from_arrays(np.arange(40.0)[:, None], np.arange(40) % 3, qid=qid)
    for division in divide("web", data, 3, 0, tmp_path).divisions:
        for part in (division.train, division.valid, division.test):
            assert part.rows.tolist() == part.read().feature(data.feature_names[0]).tolist()


@pytest.mark.parametrize("kind", [int, str, object])
def test_query_ids_of_any_type_are_counted_once(kind, tmp_path):
    qid = np.array([f"q{k // 2}" if kind is not int else k // 2 for k in range(12)], dtype=kind)
    data = er.RankingData.from_arrays(np.arange(12.0)[:, None], [0, 1] * 6, qid=qid)
    divided = divide("web", data, 3, 0, tmp_path)
    summary = divided.summary()
    assert (summary.queries, summary.documents, summary.grades) == (6, 12, {"0": 6, "1": 6})
    tested = [qid for fold in summary.folds for qid in fold.test_qid]
    assert sorted(tested) == sorted(map(str, set(qid.tolist())))


def test_folds_that_share_a_query_are_refused(data, tmp_path):
    first, second, third = (data.take_queries(np.arange(8 * k, 8 * k + 8)) for k in range(3))
    shared = er.Fold("Fold1", first, second, data.take_queries(np.arange(7, 20)))
    with pytest.raises(er.errors.DataError, match="Fold1: query 8 is in the train part and in the test part"):
        cache_folds("web", [shared], tmp_path).summary()
    twice = [er.Fold("Fold1", first, second, third), er.Fold("Fold2", second, first, third)]
    with pytest.raises(er.errors.DataError, match="query 17 is in the test parts of Fold1 and Fold2"):
        cache_folds("web", twice, tmp_path).summary()


def test_a_test_part_without_relevant_documents_is_refused(data):
    nothing = replace(data.take_queries(np.arange(16, 24)), y=np.zeros(64))
    fold = er.Fold("Fold1", data.take_queries(np.arange(8)), data.take_queries(np.arange(8, 16)), nothing)
    with pytest.raises(er.errors.DataError, match="no document of the test part is relevant"):
        er.compare(fold, QUICK)


# Fits and budgets


def test_the_best_settings_on_validation_queries_are_refitted(tuned):
    for fit in tuned[0].fits[2::3]:
        reached = [trial.valid for trial in fit.trials]
        assert len(reached) == 3
        assert fit.tuned_settings == fit.trials[int(np.argmax(reached))].settings
        assert fit.tuned_settings.get("factor", 1.0) > 0  # the first trial is that of the defaults
        assert fit.valid["nDCG@3"] == pytest.approx(max(reached), abs=1e-12)  # no ties in this feature


def test_the_measures_are_those_of_evaluate(data, untuned):
    comparison = er.compare(data, ["ridge"], ["nDCG@10", "nDCG@3", "AP", "ndcg@3"], folds=3)
    assert [fit.test["nDCG@3"] for fit in comparison.fits] == [fit.test["nDCG@3"] for fit in untuned.fits]
    for fit, fold in zip(comparison.fits, comparison.datasets[0].folds, strict=True):
        rows = [data.qid.tolist().index(int(q)) for q in fold.test_qid]
        test = data.take_queries(rows)
        train = data.take_queries([q for q in range(24) if q not in rows])
        assert len(fit.test["AP"]) == test.n_queries
        assert fit.test["nDCG@3"] == fit.test["ndcg@3"]
        assert set(fit.test) == {"nDCG@3", "AP", "ndcg@3"} | {f"nDCG@{k}" for k in range(1, 11)}
        assert train.n_queries > test.n_queries


def test_numbers_do_not_depend_on_the_number_of_workers(data, tuned):
    two = er.compare(data, TUNED, "nDCG@3", folds=3, trials=3, workers=2, threads=2)
    for ours, theirs in zip(same_for_good(tuned[0].fits), same_for_good(two.fits), strict=True):
        ours["settings"].pop("threads", None), theirs["settings"].pop("threads", None)
        assert ours == theirs


def test_cores_are_shared_out_and_every_fit_has_a_process_of_its_own(data):
    comparisons = [er.compare(data, [ODD + "Telling"], folds=3, workers=workers, threads=4, seed=5) for workers in (1, 2)]
    for comparison, threads in zip(comparisons, (4, 2), strict=True):
        given = [fit.settings for fit in comparison.fits]
        assert [(s["threads"], s["omp"], s["seed"]) for s in given] == [(threads, str(threads), 5)] * 3
        assert len({s["pid"] for s in given}) == 3


def test_memory_is_that_of_the_fit(data):
    comparison = er.compare(data, [ODD + "Telling", ODD + "Hungry"], folds=3, workers=1)
    memory = {fit.method: fit.memory for fit in comparison.fits}
    assert memory["Hungry"] - memory["Telling"] > 250 << 20
    assert memory["Telling"] > 20 << 20


def test_seconds_end_what_takes_longer_but_for_the_first_trial(data):
    comparison = er.compare(data, [ODD + "Slow"], folds=3, seconds=0.2, threads=2)
    for fit in comparison.fits:
        first, *others = fit.trials
        assert first.valid is not None
        assert others
        assert all("its budget was spent" in trial.failed for trial in others)
        assert not fit.failed
        assert fit.tuned_settings == {}


@given(trials=st.one_of(st.none(), st.integers(1, 5)), seconds=st.one_of(st.none(), st.floats(0.1, 9)), begun=st.integers(0, 6))
def test_budgets_are_kept(trials, seconds, begun):
    allowed = TuningBudget(trials, seconds).allows(begun, seconds=1.0 * begun)
    if trials is None and seconds is None:
        assert not allowed
    elif begun == 0:
        assert allowed
    else:
        assert allowed == ((trials is None or begun < trials) and (seconds is None or begun < seconds))


@given(seed=st.integers(0, 2**31), number=st.integers(0, 50))
def test_a_trial_is_determined_by_seed_and_number(seed, number):
    space = er.LambdaMART.space
    drawn = settings_of_trial(space, seed, number)
    assert drawn == settings_of_trial(space, seed, number)
    assert set(drawn) == (set(space) if number else set())
    assert number == 0 or drawn != settings_of_trial(space, seed, number + 1)
    json.dumps(drawn)


def test_the_first_of_equal_trials_is_best():
    trials = [Trial({"a": 0}, None, 1.0, "no"), Trial({"a": 1}, 0.5, 1.0), Trial({"a": 2}, 0.5, 1.0), Trial({"a": 3}, -1.0, 1.0)]
    assert best_trial(trials).settings == {"a": 1}
    assert best_trial(trials[:1]) is None


# Failures


def test_what_fails_is_told_in_its_row_and_sinks_nothing_else(data, untuned, tmp_path):
    odd = [f"{name}={ODD}{name}" for name in ("Crashing", "Raising", "FailingOnSecondFold", "Printing")]
    comparison = er.compare(data, ["ridge", *odd], folds=3, out=tmp_path / "out")
    assert comparison.complete
    effort = {each.method: each for each in efforts(comparison, "data")}
    assert effort["Crashing"].failed == "its process was ended by SIGABRT"
    assert effort["Raising"].failed == "; ".join(f"Fold{k}: RuntimeError: cannot fit Fold{k}" for k in (1, 2, 3))
    assert effort["FailingOnSecondFold"].failed == "Fold2: RuntimeError: no"
    assert effort["ridge"].failed == effort["Printing"].failed == ""
    ranked = {each.method: each.mean for each in standings(comparison, "data", "nDCG@10")}
    assert ranked["ridge"] == standings(untuned, "web", "nDCG@10")[0].mean
    assert np.isnan([ranked["Crashing"], ranked["Raising"], ranked["FailingOnSecondFold"]]).all()
    assert "Crashing failed: its process was ended by SIGABRT" in comparison.to_markdown()
    assert "noise on stdout" in (tmp_path / "out" / "fits" / "log.txt").read_text()


def test_a_fit_whose_time_is_over_is_killed_and_can_be_strictly_judged(text, tmp_path):
    program = f"p={sys.executable} -c 'import time; time.sleep(600)' {{test}} {{scores}}"
    arguments = ["compare", text, "--folds", 3, "--out", tmp_path / "out", "--threads", 2]
    strict = command(*arguments, "--methods", f"ridge,{ODD}Untrue", "--strict")
    assert strict.exit_code == 1
    assert "exactrank: Untrue failed on web: its result cannot be read" in strict.stderr
    assert "ridge failed" not in strict.stderr
    late = command(*arguments, "--methods", "ridge", "--program", program, "--limit", 0.5, "--resume")  # ridge is there: it has time enough
    assert late.exit_code == 0
    assert "exactrank: p failed on web: killed after 0.5 s, the limit of a single fit; limit=... (--limit) sets another" in late.stderr
    assert "ridge failed" not in late.stderr
    assert not list(tmp_path.glob("out/data*"))


def test_trials_without_a_value_are_failures_with_a_reason(data):
    tuned = er.compare(data, ["ridge", ODD + "Unseen"], ["AP(rel=9, empty='skip')", "nDCG@3"], folds=3, trials=2)
    failed = {fit.method: fit.failed for fit in tuned.fits}
    assert failed["Unseen"] == "Unseen gives no scores for validation documents, so it cannot be tuned"
    assert "AP" in failed["ridge"]
    assert all(fit.failed == failed[fit.method] for fit in tuned.fits)
    assert "ridge failed" in str(tuned)
    untuned = er.compare(data, [ODD + "Unseen"], folds=3)
    assert not any(fit.failed or fit.valid for fit in untuned.fits)


def test_what_cannot_travel_between_processes_is_told(data):
    lock = threading.Lock()

    def forces(pairs):
        with lock:
            return pairs.omega

    comparison = er.compare(data, ["ridge", er.LambdaRank(lambdas=forces, max_iter=2)], folds=3)
    failed = {each.method: each.failed for each in efforts(comparison, "data")}
    assert [bool(reason) for reason in failed.values()] == [False, True]
    assert "cannot be sent to another process (cannot pickle '_thread.lock' object)" in list(failed.values())[1]


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("did you mean lambdamart", {"methods": ["lamdamart"]}),
        ("did you mean nDCG", {"measures": "ndgc@5"}),
        ("two methods are called 'ridge'", {"methods": ["ridge", "ridge"]}),
        ("name at least one method", {"methods": []}),
        ("name at least one measure", {"measures": []}),
        ("baseline 'x' is not among the methods", {"baseline": "x"}),
        ("folds must be at least 3", {"folds": 2}),
        ("trials must be from 1 to 1,000,000; got 0", {"trials": 0}),
        ("trials must be from 1", {"trials": 10**400}),
        *(
            (f"seconds must be above 0 .*; got {seconds:g}".replace("+", r"\+"), {"seconds": seconds})
            for seconds in (np.nan, np.inf, -1, 0, 1e9)
        ),
        ("limit must be above 0", {"limit": float("nan")}),
        ("has no setting 'leafs'", {"methods": ["lambdamart(leafs=3)"]}),
    ],
)
def test_bad_input_is_refused_before_any_fit(data, message, wrong, tmp_path):
    with pytest.raises((er.errors.DataError, er.errors.MeasureError), match=message):
        er.compare(**({"data": data, "methods": QUICK, "measures": "nDCG@3", "out": tmp_path / "out"} | wrong))
    assert not list(tmp_path.glob("out/fits/*"))


# Data that is odd


def odd_data(data, grade=None, **more):
    y = data.y.copy()
    if grade is not None:
        y[0] = grade
    return er.RankingData.from_arrays(data.X, y, **({"group": data.sizes} | more))


def test_odd_data_is_compared_and_reported(data, tmp_path):
    qid = np.repeat([f"q\udcff{q}" for q in range(24)], 8)
    names = ["a\udcff", "b\n", "<c>", "\x00\x1b[31m"]
    sets = {
        "we\udcffb": odd_data(data, qid=qid, group=None, feature_names=names),
        "large": odd_data(data, 2.0**52),
        "long": odd_data(data, qid=np.repeat([f"{'q' * 10_000}{q}" for q in range(24)], 8), group=None),
    }
    comparison = er.compare(sets, ["ridge", "a\udcffb=ridge(l2=9.0)"], ["nDCG@3", "AP(rel=9, empty='skip')"], folds=3, out=tmp_path / "out")
    assert not any(fit.failed for fit in comparison.fits)
    again = read_comparison(tmp_path / "out")
    assert encode_record(again) == encode_record(comparison)
    assert "a\\udcffb" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "q\\udcff7" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "we\\udcffb" in (tmp_path / "out" / "results.csv").read_text("utf-8")


def test_grades_that_no_ranker_trains_on_are_told_and_sink_nothing_else(data, tmp_path):
    comparison = er.compare(odd_data(data, 1e308), ["ridge"], "nDCG@3", folds=3, out=tmp_path / "out")
    failed = [fit.failed for fit in comparison.fits]
    assert comparison.complete
    assert "grade of row 0 is 1e+308; training takes grades of at most 2^53" in failed[0]
    assert not all(failed)  # where the document is judged, or chosen by, all is well
    assert "1e+308" in (tmp_path / "out" / "report.html").read_text()


def test_what_cannot_be_shown_loses_nothing_else(tmp_path, monkeypatch):
    comparison = make_comparison()
    monkeypatch.setattr(Comparison, "to_latex", lambda self: 1 / 0)
    with pytest.raises(OSError, match=r"comparison.json holds all results, but tables.tex could not be made \(ZeroDivisionError"):
        comparison.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"comparison.json", "tables.md", "results.csv", "report.html"}


def test_long_reasons_leave_a_report_small():
    job = FitJob("data", None, find_contender("ridge"), {}, {}, 0, 1, None)
    failing = with_failure(make_comparison(folds=5), "lightgbm", job.failure("x" * 50_000_000).failed)
    assert len(report_html(failing)) < len(report_html(make_comparison(folds=5))) + 50_000
    assert job.failure("").failed == "it gave no reason"


# Resuming


def test_what_is_there_is_not_done_again_and_comes_to_the_same(data, tuned, tmp_path):
    whole, out = tuned
    shutil.copytree(out, tmp_path / "out")
    how = {"methods": TUNED, "measures": "nDCG@3", "folds": 3, "trials": 3, "workers": 1, "threads": 2, "out": tmp_path / "out"}
    files = sorted((tmp_path / "out" / "fits").glob("*.json"))
    gone = files[::3]
    for path, damage in zip(gone, cycle((None, b"", b"{}", b"[" * 10_000)), strict=False):
        path.unlink() if damage is None else path.write_bytes(damage)
    before = {path: path.stat().st_mtime_ns for path in files if path not in gone}
    with pytest.raises(er.errors.OutputExistsError, match="--resume"):
        er.compare(data, **how)
    again = er.compare(data, **how, resume=True)
    assert same_for_good(again.fits) == same_for_good(whole.fits)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sorted((tmp_path / "out" / "fits").glob("*.json")) == files
    assert again.seconds > whole.seconds


def test_resuming_takes_up_what_still_holds_and_no_more(data, tuned, tmp_path):
    shutil.copytree(tuned[1], tmp_path / "out")
    how = {"data": data, "methods": [ODD + "Signed"], "measures": "nDCG@3", "folds": 3, "out": tmp_path / "out"}

    def trials():
        return {path.name for path in (tmp_path / "out" / "fits").glob("*Signed*.trial*")}

    first = trials()
    er.compare(**how, trials=4, resume=True)
    assert len(first) == 9
    assert first < trials()
    assert len(trials()) == 12
    er.compare(**how, trials=2, force=True)
    assert trials() < first
    assert len(trials()) == 6


def test_another_seed_is_another_fit_on_the_same_folds(data, tmp_path):
    fold = er.Fold("Fold1", *(data.take_queries(np.arange(8 * k, 8 * k + 8)) for k in range(3)))
    for seed in (0, 1):
        comparison = er.compare(fold, [ODD + "Telling"], out=tmp_path / "out", resume=True, seed=seed)
        assert [fit.settings["seed"] for fit in comparison.fits] == [seed]


def test_beginning_again_deletes_what_a_comparison_left_and_nothing_else(data, tmp_path):
    out = tmp_path / "out"
    er.compare(data, QUICK, folds=3, out=out)
    (out / "comparison.json").unlink()  # as after a kill: what is left must be known by the results
    others = [out / "mine.txt", out / "models" / "data.Fold1.ridge.mine", out / "fits" / "mine.json", tmp_path / "outside.json"]
    for path in others:
        path.write_text("mine")
    result = next((out / "fits").glob("data.Fold1.ridge.final.*.json"))
    result.write_text(result.read_text().replace('"models": ["', '"models": ["../../outside.json", "'))
    er.compare(data, ["ridge"], folds=3, out=out, force=True)
    assert all(path.read_text() == "mine" for path in others)
    models = {f"data.Fold{k}.ridge.json" for k in (1, 2, 3)}
    assert {path.name for path in (out / "models").iterdir()} == models | {"data.Fold1.ridge.mine"}
    assert len(list((out / "fits").glob("*.final.*.json"))) == 3


def test_failures_are_tried_again_when_resumed(data, tmp_path, monkeypatch):
    module = tmp_path / "mended_later.py"
    source = "from tests.compare.odd_contenders import *\nclass Mended({}):\n    pass\n"
    module.write_text(source.format("Raising"))
    monkeypatch.syspath_prepend(tmp_path)
    how = {"data": data, "methods": ["ridge", "m=mended_later:Mended"], "folds": 3, "out": tmp_path / "out"}
    assert [fit.failed != "" for fit in er.compare(**how).fits] == [False, True] * 3
    module.write_text(source.format("Printing"))
    assert not any(fit.failed for fit in er.compare(**how, resume=True).fits)


@contextmanager
def place_at(folder):
    """A place where fits say that they have begun, and wait at a gate."""
    folder.mkdir()
    with closing(Letterbox(folder / "begun")) as begun, closing(Gate(folder / "gate")) as gate:
        yield begun, gate


def started(text, out, place, *more):
    """A comparison of which some fits wait at the gate of a ``place``."""
    methods = f"ridge,{ODD}Waiting"
    return subprocess.Popen(
        [PROGRAM, "compare", text, "--methods", methods, "--folds", "3", "--out", out, "--workers", "2", "--threads", "2", *more],
        env={**os.environ, "EXACTRANK_TEST_PLACE": str(place), "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_comparison_that_is_broken_off_goes_on_to_the_same_numbers(text, untuned, tmp_path, how):
    out = tmp_path / "out"
    with place_at(tmp_path / "shut") as (begun, _):
        broken = started(text, out, tmp_path / "shut")
        begun.line(broken)
        broken.send_signal(how)
        _, message = broken.communicate(timeout=HANGS)
    if how == signal.SIGINT:
        assert broken.returncode == 1
        assert "the same command with --resume continues" in message
        assert "Traceback" not in message
        partly = read_comparison(out)
        assert not partly.complete
        assert "partial" in (out / "report.html").read_text().lower()
        assert not list(out.glob("exactrank-*"))
    else:
        assert list(out.glob("exactrank-*"))
        assert list(out.glob("exactrank-*.lock"))
    (out / "data").mkdir()
    (out / "data" / "mine.txt").write_text("mine")
    with place_at(tmp_path / "open") as (_, gate):
        gate.open()
        resumed = started(text, out, tmp_path / "open", "--resume")
        said, message = resumed.communicate(timeout=HANGS)
    assert resumed.returncode == 0, message
    assert "ridge" in said
    assert (out / "data" / "mine.txt").read_text() == "mine"
    assert not list(out.glob("*exactrank*"))
    comparison = read_comparison(out)
    assert comparison.complete
    assert comparison.run["command"].startswith("exactrank compare")
    assert same_for_good(fit for fit in comparison.fits if fit.method == "ridge") == same_for_good(untuned.fits)


# What is made of it


def test_records_come_back_as_they_were(tuned):
    result, _ = tuned
    record = json.loads(json.dumps(encode_record(result)))
    again = decode_record(Comparison, record)
    assert encode_record(again) == encode_record(result)
    assert isinstance(again.fits[0], Fit)
    assert again.fits == result.fits
    assert again.to_markdown() == result.to_markdown()


def test_tables_hold_the_same_numbers_in_all_forms():
    comparison = with_failure(make_comparison(methods=4, datasets=2, folds=2), "lightgbm")
    rows = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    assert len(rows) == 2 * 2 * 4
    for row in rows:
        first = next(s for s in standings(comparison, row["dataset"], row["measure"]) if s.method == row["method"])
        assert row["mean"] == ("" if np.isnan(first.mean) else repr(first.mean))
        if row["mean"]:
            assert f"{first.mean:.4f}" in comparison.to_markdown()
            assert f"{first.mean:.4f}" in comparison.to_latex()
            assert f"{first.mean:.4f}" in str(comparison)
    assert "lightgbm failed" in comparison.to_markdown()
    assert "Winning numbers" in comparison.to_text()
    for line in comparison.to_latex().splitlines():
        assert line.count("{") - line.count(r"\{") == line.count("}") - line.count(r"\}")


def test_letters_mark_what_the_pairs_say():
    comparison = make_comparison(methods=4, queries=60)
    results = {one.method: one for one in standings(comparison, "data-1", "nDCG@10")}
    assert [one.letter for one in results.values()] == ["a", "b", "c", "d"]
    for pair in pairs(comparison, "data-1", "nDCG@10"):
        better, worse = (pair.first, pair.second) if pair.difference > 0 else (pair.second, pair.first)
        assert (results[worse].letter in results[better].better_than) == (pair.adjusted["randomization"] < 0.05)
        assert results[better].letter not in results[worse].better_than
    assert sum(one.best for one in results.values()) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_differences_are_of_each_other_method_from_the_baseline(weighted):
    comparison = make_comparison(methods=4, queries=60, weighted=weighted)
    names = [method.name for method in comparison.methods]
    means = {one.method: one.mean for one in standings(comparison, "data-1", "nDCG@10")}
    both_ways = {}
    for baseline in (None, *names):
        result = differences(comparison, "data-1", "nDCG@10", baseline)
        base = baseline or comparison.baseline
        assert [(pair.first, pair.second) for pair in result] == [(name, base) for name in names if name != base]
        for pair in result:
            assert pair.difference == pytest.approx(means[pair.first] - means[base])
            assert pair.interval[0] < pair.difference < pair.interval[1]
            both_ways[pair.first, pair.second] = pair
    for (first, second), pair in both_ways.items():
        other = both_ways[second, first]
        assert (other.wins, other.ties, other.losses) == (pair.losses, pair.ties, pair.wins)
        assert other.interval == (-pair.interval[1], -pair.interval[0])
        assert (other.effect, other.rank_biserial, other.adjusted) == (-pair.effect, -pair.rank_biserial, pair.adjusted)
        assert other.opposite == pair


def test_differences_without_the_baseline_are_from_the_first_method_with_values():
    comparison = make_comparison(methods=3)
    failed = with_failure(comparison, comparison.baseline)
    first, second, _ = (method.name for method in comparison.methods)
    assert [(pair.first, pair.second) for pair in differences(failed, "data-1", "AP")] == [(second, first)]
    assert differences(with_failure(failed, first), "data-1", "AP") == ()
    with pytest.raises(er.errors.DataError, match="no method is called 'bm25'; the methods are lambdamart"):
        differences(comparison, "data-1", "AP", "bm25")


def test_partial_comparisons_count_the_queries_that_all_share():
    comparison = make_comparison(methods=3, folds=3)
    broken = partial(comparison, 7)  # two divisions of all, and the first method on the third
    shared = shared_values(broken, "data-1", "AP")
    whole = shared_values(comparison, "data-1", "AP")
    assert set(shared.values) == set(whole.values)
    tested = sum(len(fold.test_qid) for fold in comparison.datasets[0].folds[:2])
    assert {len(values) for values in shared.values.values()} == {tested}
    assert [each.folds for each in efforts(broken, "data-1")] == [3, 2, 2]
    assert "Interrupted" in broken.to_markdown()


def test_winning_numbers_count_wins_over_data_sets():
    comparison = make_comparison(methods=3, datasets=3)
    won = winning(comparison, "AP")
    by_hand = dict.fromkeys(won, 0)
    for dataset in comparison.datasets:
        means = {one.method: one.mean for one in standings(comparison, dataset.name, "AP")}
        for method, mean in means.items():
            by_hand[method] += sum(mean > other for other in means.values())
    assert won == by_hand


# The command line


def test_compare_from_files_to_a_report(text, tmp_path):
    scores = tmp_path / "first.txt"
    scores.write_text("\n".join(map(str, er.read(text).X[:, 0])))
    out = tmp_path / "out"
    arguments = [
        "compare",
        text,
        "--methods",
        "ridge,weak=ridge(l2=1e6)",
        "-m",
        "nDCG@3",
        "-m",
        "AP(rel=2)",
        "--folds",
        3,
        "--out",
        out,
    ]
    message = ok(*arguments, "--scores", f"first={scores}", "--baseline", "weak")
    assert "first" in message
    assert str(out / "report.html") in message
    assert {path.name for path in out.iterdir()} == {
        "comparison.json", "fits", "models", "report.html", "results.csv", "tables.md", "tables.tex",
    }  # fmt: skip
    assert er.load(out / "models" / "web.Fold1.ridge.json").ranker == "Ridge"
    record = json.loads(ok(*arguments, "--resume", "--json"))
    assert record["baseline"] == "ridge"
    refused("--resume", *arguments)


def test_compare_takes_folds_and_given_parts(data, tmp_path):
    parts = [data.take_queries(np.arange(8 * k, 8 * k + 8)) for k in range(3)]
    for k in range(3):
        folder = tmp_path / "letor" / f"Fold{k + 1}"
        folder.mkdir(parents=True)
        for name, part in zip(("train", "vali", "test"), parts[k:] + parts[:k], strict=True):
            er.write(part, folder / f"{name}.txt")
    first = tmp_path / "letor" / "Fold1"
    both = json.loads(ok("compare", tmp_path / "letor", first, "--methods", "ridge", "--out", tmp_path / "a", "--json"))
    assert [each["name"] for each in both["datasets"]] == ["letor", "Fold1"]
    *cross_validate, by_folder = both["fits"]
    given = ["--valid", first / "vali.txt", "--test", first / "test.txt"]
    by_parts = json.loads(ok("compare", first / "train.txt", *given, "--methods", "ridge", "--out", tmp_path / "c", "--json"))
    assert [fit["fold"] for fit in cross_validate] == ["Fold1", "Fold2", "Fold3"]
    assert cross_validate[0]["test"] == by_folder["test"] == by_parts["fits"][0]["test"]


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("did you mean directrank", ["--methods", "directrnak"]),
        ("did you mean nDCG", ["--methods", "ridge", "--measure", "nDGC@10"]),
        ("24 queries, fewer than the 30 folds", ["--methods", "ridge", "--folds", 30]),
        ("go together", ["--methods", "ridge", "--valid", "x.txt"]),
        ("is not NAME=VALUE", ["--methods", "ridge", "--scores", "first.txt"]),
        ("MLflow", ["--methods", "ridge", "--mlflow", "nowhere://x"]),
        ("seconds must be above 0 and at most 1e+08; got nan", ["--methods", "ridge", "--seconds", "nan"]),
        ("limit must be above 0 and at most 1e+08; got inf", ["--methods", "ridge", "--limit", "inf"]),
    ],
)
def test_compare_refuses_bad_input(text, tmp_path, message, arguments):
    refused(message, "compare", text, "--out", tmp_path / "out", *arguments)
    assert not list((tmp_path / "out").glob("*.html"))


def test_compare_ends_with_1_where_every_method_failed(text, tmp_path):
    result = command("compare", text, "--methods", "ridge(bags=1)", "--folds", 3, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "bags=1 leaves no queries" in result.stdout
    assert (tmp_path / "out" / "report.html").exists()


def test_tune_finds_settings_and_writes_the_model(text, tmp_path):
    out = tmp_path / "model.json"
    record = json.loads(ok("tune", "rankcosine(max_iter=5)", text, "--out", out, "--trials", 4, "--folds", 3, "-m", "nDCG@3", "--json"))
    assert len(record["trials"]) == 4
    assert record["value"] == max(trial["value"] for trial in record["trials"])
    model = er.load(out)
    assert model.ranker == "RankCosine"
    assert model.params["max_iter"] == 5
    assert {name: model.params[name] for name in record["settings"]} == record["settings"]
    refused("--force", "tune", "ridge", text, "--out", out)
    refused("not a ranker of exactrank", "tune", "lightgbm", text, "--out", tmp_path / "x.json")
    assert "settings" in ok("tune", "ridge", text, "--out", out, "--force", "--trials", 2, "--folds", 2)


def test_tune_by_given_validation_data_is_the_best_of_its_trials(data):
    train, valid = data.take_queries(np.arange(16)), data.take_queries(np.arange(16, 24))
    tuning = er.tune(train, "ridge", "nDCG@3", valid=valid, trials=5)
    for trial in tuning.trials:
        alone = er.Ridge(measure="nDCG@3", **trial.settings).fit(train, valid=valid)
        assert trial.valid == pytest.approx(alone.score(valid), abs=1e-12)
    assert tuning.best.valid == max(trial.valid for trial in tuning.trials)
    assert tuning.ranker.score(valid) == pytest.approx(tuning.best.valid, abs=1e-12)
    assert er.tune(train, "ridge", "nDCG@3", valid=valid, trials=1).trials[0].valid == tuning.trials[0].valid


def test_tune_by_folds_takes_the_mean_over_queries_it_has_not_seen(data):
    tuning = er.tune(data, "ridge", "nDCG@3", folds=3, trials=2)
    part = deal_folds(data.n_queries, 3, seed=0)
    for trial in tuning.trials:
        ranker = er.Ridge(measure="nDCG@3", **trial.settings)
        parts = [(data.take_queries(part != k), data.take_queries(part == k)) for k in range(3)]
        judged = [ranker.fit(seen, valid=unseen).score(unseen) for seen, unseen in parts]
        assert trial.valid == pytest.approx(np.mean(judged), abs=1e-12)
        assert np.ptp(judged) > 1e-6


CROSS_FITTED = {
    "ridge(bags=4, l2=1e-06)": lambda: er.Ridge("nDCG@3", bags=4, l2=1e-6, threads=1),
    "mart(bags=3, bagging='cross-fit', trees=20, min_documents=1)": lambda: er.MART(
        "nDCG@3", bags=3, bagging="cross-fit", trees=20, min_documents=1, threads=1
    ),
    "blend(members='ridge(l2=1e-06), mart(trees=20, min_documents=1)', bags=3)": lambda: er.Blend(
        "nDCG@3", members="ridge(l2=1e-06), mart(trees=20, min_documents=1)", bags=3, threads=1
    ),
}


@pytest.fixture(scope="module")
def chance():
    """Grades that nothing explains, so that a model is only right about queries that it has learned from."""
    rng = np.random.default_rng(0)
    whole = er.RankingData.from_arrays(rng.normal(size=(360, 24)), rng.integers(0, 3, 360), group=[9] * 40)
    return Fold("chance", *(whole.take_queries(part) for part in (np.arange(20), np.arange(20, 30), np.arange(30, 40))))


@pytest.mark.parametrize("method", CROSS_FITTED)
def test_cross_fitted_methods_are_judged_by_models_that_have_not_seen_the_query(chance, method):
    """In the column of a comparison, and in its slice; the ranker itself has learned from the validation queries."""
    alone = CROSS_FITTED[method]().fit(chance.train, valid=chance.valid)
    unseen, seen = er.evaluate(chance.valid, alone.valid_oof_, "nDCG@3")["nDCG@3"].mean, alone.score(chance.valid)
    assert unseen < seen - 0.15
    fit = er.compare(chance, [method], "nDCG@3", workers=1, threads=1).fits[0]
    assert fit.valid["nDCG@3"] == pytest.approx(unseen, abs=1e-12)
    assert fit.train["nDCG@3"] == pytest.approx(alone.score(chance.train), abs=1e-12)
    assert np.nanmean(fit.test["nDCG@3"]) == pytest.approx(alone.score(chance.test), abs=1e-12)
    if fit.slice is not None:
        middle = np.searchsorted(fit.slice.edges, 0.0, side="right") - 1
        assert fit.slice.low[middle] - 1e-9 <= unseen <= fit.slice.high[middle] + 1e-9


def test_trials_judge_cross_fitted_methods_out_of_fold(chance):
    method, alone = list(CROSS_FITTED.items())[1]
    tuned = er.tune(chance.train, method, "nDCG@3", valid=chance.valid, trials=1, threads=1)
    np.testing.assert_array_equal(tuned.ranker.valid_oof_, alone().fit(chance.train, valid=chance.valid).valid_oof_)
    assert tuned.best.valid == pytest.approx(er.evaluate(chance.valid, tuned.ranker.valid_oof_, "nDCG@3")["nDCG@3"].mean, abs=1e-12)
    assert tuned.best.valid < tuned.ranker.score(chance.valid) - 0.15


def test_trials_by_folds_judge_cross_fitted_methods_out_of_fold(chance):
    trial = er.tune(chance.train, "mart(bags=3, bagging='cross-fit', trees=20, min_documents=1)", "nDCG@3", folds=2, trials=1).best
    part = deal_folds(chance.train.n_queries, 2, seed=0)
    parts = [(chance.train.take_queries(part != k), chance.train.take_queries(part == k)) for k in range(2)]
    rankers = [er.MART("nDCG@3", bags=3, bagging="cross-fit", trees=20, min_documents=1).fit(seen, valid=own) for seen, own in parts]
    unseen = [er.evaluate(own, one.valid_oof_, "nDCG@3")["nDCG@3"].mean for one, (_, own) in zip(rankers, parts, strict=True)]
    assert trial.valid == pytest.approx(np.mean(unseen), abs=1e-12)
    assert trial.valid < np.mean([one.score(own) for one, (_, own) in zip(rankers, parts, strict=True)]) - 0.15


@pytest.mark.parametrize("peer", ["lightgbm", "a_library_that_is_not_installed"])
def test_the_demo_compares_its_methods_and_lightgbm_if_it_is_installed(tmp_path, monkeypatch, peer):
    monkeypatch.setattr("exactrank.cli.compare.QUERIES", 12)
    monkeypatch.setattr("exactrank.cli.compare.TRIALS", 1)
    monkeypatch.setattr("exactrank.cli.compare.PEER", peer)
    shown = ok("demo", "--out", tmp_path / "demo")
    for method in ("blend", "ridge", "directrank", "lambdarank", "lambdamart"):
        assert method in shown
    assert ("lightgbm" in shown) == (peer == "lightgbm")
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000


def test_mlflow_gets_parameters_measures_models_and_the_report(text, tmp_path, monkeypatch):
    stored = pytest.importorskip("mlflow.tracking", reason="MLflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file://{tmp_path / 'runs'}"
    ok("compare", text, "--methods", "ridge,rankcosine(max_iter=3)", "--folds", 3, "--out", tmp_path / "out", "--mlflow", uri)
    ok("tune", "ridge", text, "--out", tmp_path / "m.json", "--trials", 3, "--folds", 2, "--mlflow", uri)
    client = stored.MlflowClient(uri)
    runs = {run.info.run_name: run for run in client.search_runs([client.get_experiment_by_name("exactrank").experiment_id])}
    assert set(runs) == {"compare", "ridge", "rankcosine(max_iter=3)", "tune ridge"}
    ridge, whole = runs["ridge"], runs["compare"]
    assert ridge.data.tags["mlflow.parentRunId"] == whole.info.run_id
    comparison = read_comparison(tmp_path / "out")
    assert ridge.data.metrics["web/nDCG_10/test"] == standings(comparison, "web", "nDCG@10")[0].mean
    assert ridge.data.params["web/Fold1/seed"] == "0"
    assert whole.data.params["seed"] == "0"
    assert "report.html" in {file.path for file in client.list_artifacts(whole.info.run_id)}
    assert len(client.list_artifacts(ridge.info.run_id, "models")) == 3
    assert "validation" in runs["tune ridge"].data.metrics


@pytest.fixture
def fading():
    """An MLflow server that knows the experiment and is gone after the first question."""

    class Once(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"experiment": {"experiment_id": "1", "name": "exactrank"}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Once) as server:
        thread = threading.Thread(target=lambda: (server.handle_request(), server.server_close()))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        thread.join()


def test_mlflow_that_does_not_answer_is_told_before_any_work(text, tmp_path, monkeypatch):
    """Each command asks once: somebody who listens and never answers, for as long as it is told to, and somebody who does not listen."""
    pytest.importorskip("mlflow.tracking", reason="MLflow is not installed")
    requests = pytest.importorskip("requests")
    monkeypatch.setitem(tracking.BEFORE, tracking.TIMEOUT, "1")
    send, waits = requests.Session.send, []
    monkeypatch.setattr(requests.Session, "send", lambda *args, **more: waits.append(more["timeout"]) or send(*args, **more))
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for server in (silent, closed):
            uri = "http://{}:{}".format(*server.getsockname())
            refused(f"MLflow cannot log to {uri}", "compare", text, "--methods", "ridge", "--out", tmp_path / "out", "--mlflow", uri)
            refused(f"MLflow cannot log to {uri}", "tune", "ridge", text, "--out", tmp_path / "m.json", "--mlflow", uri)
        silent.setblocking(False)
        for _ in range(2):
            silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert waits == [1] * 4
    assert not list(tmp_path.iterdir())
    assert tracking.TIMEOUT not in os.environ


def test_mlflow_that_ends_before_the_comparison_loses_nothing(text, tmp_path, fading, monkeypatch):
    pytest.importorskip("mlflow.tracking", reason="MLflow is not installed")
    monkeypatch.setitem(tracking.AFTERWARDS, tracking.RETRIES, "0")
    result = command("compare", text, "--methods", "ridge", "--folds", 3, "--out", tmp_path / "out", "--mlflow", fading)
    assert result.exit_code == 1
    assert "ridge" in result.stdout
    assert f"MLflow did not take everything at {fading}" in result.stderr
    assert "--resume logs it again" in result.stderr
    assert read_comparison(tmp_path / "out").complete
    assert (tmp_path / "out" / "report.html").exists()


@pytest.fixture
def parts(tmp_path):
    """Five parts as LETOR has them; the second lacks the last feature, which is 0 there."""
    rng = np.random.default_rng(5)
    for k in range(1, 6):
        rows = []
        for q in range(6):
            for _ in range(5):
                grade = int(rng.integers(0, 3))
                last = "" if k == 2 else f" 3:{rng.normal():.3f}"
                rows.append(f"{grade} qid:{10 * k + q} 1:{grade + rng.normal():.3f} 2:{rng.normal():.3f}{last}\n")
        (tmp_path / f"S{k}.txt").write_text("".join(rows))
    return [tmp_path / f"S{k}.txt" for k in range(1, 6)]


def test_parts_are_rotated_as_letor_does(parts):
    folds = er.data.read_parts(parts)
    whole = [er.read(path, n_features=3) for path in parts]
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]
    for k, fold in enumerate(folds):
        trains, valid, test = [(k + j) % 5 for j in range(3)], (k + 3) % 5, (k + 4) % 5
        np.testing.assert_array_equal(fold.train.X, np.concatenate([whole[j].X for j in trains]))
        np.testing.assert_array_equal(fold.train.y, np.concatenate([whole[j].y for j in trains]))
        assert fold.train.qid.tolist() == [q for j in trains for q in whole[j].qid.tolist()]
        for ours, theirs in ((fold.valid, whole[valid]), (fold.test, whole[test])):
            np.testing.assert_array_equal(ours.X, theirs.X)
            assert ours.qid.tolist() == theirs.qid.tolist()


def test_compare_of_parts_is_that_of_their_rotation(parts, tmp_path):
    ok("compare", "--parts", *parts, "--methods", "ridge", "--out", tmp_path / "out")
    ours, theirs = er.read_comparison(tmp_path / "out"), er.compare(er.data.read_parts(parts), ["ridge"])
    assert [fit.test for fit in ours.fits] == [fit.test for fit in theirs.fits]
    assert len(ours.fits) == 5


def test_bad_parts_are_refused(parts):
    with pytest.raises(er.errors.DataError, match=r"2 parts cannot be rotated; give at least 3"):
        er.data.read_parts(parts[:2])
    with pytest.raises(er.errors.DataError, match=r"query 10 is in .*S1\.txt and in .*S1\.txt; a query must be in one part alone"):
        er.data.read_parts([*parts, parts[0]])
    for extra in (["--valid", parts[0], "--test", parts[1]], []):
        result = command("compare", *parts[:2], *parts[:1], "--parts", "--methods", "ridge", "--out", "out", *extra)
        assert result.exit_code == 2
