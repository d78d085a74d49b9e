"""Features that float32 cannot hold: kept as differences from an offset, in data, files, scorers and rankers; else warned of."""

import json
import warnings
from fractions import Fraction

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.data import files as formats
from exactrank.data.alignment import align_features
from exactrank.data.formats.base import ReadOptions
from exactrank.data.formats.trec import Judgments, RetrievalRun
from exactrank.data.ranking_data import checksum
from exactrank.fusion.normalize import normalize_systems
from exactrank.models.base import sum_rounded_down
from tests.reference.trees import booster_of

SECONDS = 1.7e9  # since 1970, in 2023
RANKERS = {
    "linear": er.Ridge(l2=0.1),
    "slope": er.ListNet(max_iter=10),
    "coordinates": er.DirectRank(bags=0),
    "network": er.LambdaRank(hidden=3, max_iter=5, trial_iter=2),
    "thresholds": er.RankBoost(max_iter=20),
    "lambdamart": er.LambdaMART(trees=8, min_documents=2, leaves=6),
    "mart": er.MART(trees=8, min_documents=2, leaves=6),
}


def columns(seed: int = 0, queries: int = 12, documents: int = 21, values: int = 90) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Whole numbers, with ties, and another feature; grades that depend on both."""
    rng = np.random.default_rng(seed)
    n = queries * documents
    first, second = rng.integers(0, values, n).astype(float), rng.normal(size=n).astype(np.float32).astype(float)
    grades = np.clip(np.round(3 * first / values + second + 0.3 * rng.normal(size=n)), 0, 4)
    return np.column_stack([first, second]), grades, [documents] * queries


def shifted(X: np.ndarray, by: float) -> np.ndarray:
    return X + np.array([by, 0.0])


@st.composite
def large_integers(draw):
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    low = draw(st.one_of(st.integers(0, 2**40), st.sampled_from([2**24, 2**30, 2**40])))
    steps = draw(st.lists(st.integers(0, 2**20), min_size=sum(sizes), max_size=sum(sizes)))
    return np.array([low + step for step in steps], np.int64), sizes


@given(large_integers(), st.booleans(), st.booleans())
@settings(max_examples=50)
def test_a_feature_has_the_values_that_were_given(case, as_floats, negative):
    values, sizes = case
    values = -values if negative else values
    values_given = values.astype(float) if as_floats else values
    data = er.RankingData.from_arrays(values_given[:, None], np.arange(len(values)) % 3, group=sizes)
    assert np.array_equal(data.feature("x0"), values.astype(float))
    assert np.array_equal(data.values[:, 0], values.astype(float))


@given(large_integers(), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_the_offset_does_not_depend_on_the_order_of_rows(case, random):
    values, sizes = case
    qid = np.repeat(np.arange(len(sizes)), sizes)
    order = list(range(len(values)))
    random.shuffle(order)
    one = er.RankingData.from_arrays(values[:, None], np.zeros(len(values)), qid=qid)
    two = er.RankingData.from_arrays(values[order][:, None], np.zeros(len(values)), qid=qid[order])
    assert (one.offset is None) == (two.offset is None)
    assert one.offset is None or np.array_equal(one.offset, two.offset)


@given(st.integers(0, 2**32), st.integers(1, 400))
@settings(max_examples=40)
def test_ordinary_data_has_no_offset_and_the_same_bits(seed, rows):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=rows), rng.gamma(1, 3, rows), rng.random(rows), rng.integers(0, 2**24, rows), rng.random(rows) * 1e30]
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = er.RankingData.from_arrays(X, np.zeros(rows), group=[rows])
    assert data.offset is None
    assert np.array_equal(data.X, X.astype(np.float32), equal_nan=True)


def test_zeros_and_missing_values_beside_times_are_kept():
    X, grades, group = columns(values=2**18)
    times = X[:, :1] + SECONDS
    times[::3], times[1::5] = 0.0, np.nan
    data = er.RankingData.from_arrays(times, grades, group=group)
    assert np.array_equal(data.feature("x0"), times[:, 0], equal_nan=True)


def test_values_near_one_are_kept():
    cosines = 1 - np.random.default_rng(0).random((100, 1)) * 1e-7
    data = er.RankingData.from_arrays(cosines, np.zeros(100), group=[100])
    assert data.offset is not None
    assert len(np.unique(data.X)) == 100


def test_what_no_offset_saves_is_warned_of_by_name_and_count():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.integers(2**30, 2**40, 10), 5) // 2**20 * 2**20 + np.tile([0, 1, 1, 2, 3], 10)
    X = np.column_stack([rng.normal(size=50), values.astype(float)])
    with pytest.warns(er.errors.PrecisionWarning, match=r"'hash' loses 30 of 40; give such a feature") as caught:
        data = er.RankingData.from_arrays(X, np.zeros(50), group=[5] * 10, feature_names=["bm25", "hash"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert data.offset is None
    assert np.array_equal(data.X, X.astype(np.float32))


# ---- rankers


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("by", [1e9, 2.0**40])
def test_rankers_reach_on_shifted_features_what_they_reach_on_others(kind, by):
    X, grades, group = columns()
    data = er.RankingData.from_arrays(shifted(X, by), grades, group=group)
    plain = RANKERS[kind].fit(er.RankingData.from_arrays(data.X, grades, group=group)).predict(data.X)
    scores = RANKERS[kind].fit(data).predict(shifted(X, by))
    assert np.array_equal(np.argsort(scores, kind="stable"), np.argsort(plain, kind="stable"))
    assert len(np.unique(scores)) > 50


@pytest.mark.parametrize("kind", RANKERS)
def test_a_row_has_the_same_score_alone_in_a_batch_and_in_data_of_any_offset(kind, tmp_path):
    X, grades, group = columns(values=2**18)
    data = er.RankingData.from_arrays(shifted(X, SECONDS), grades, group=group)
    assert data.offset is not None
    ranker = RANKERS[kind].fit(data)
    batch = ranker.predict(shifted(X, SECONDS))
    assert np.array_equal(batch, ranker.predict(data))
    assert np.array_equal(batch, np.concatenate([ranker.predict(row[None]) for row in shifted(X, SECONDS)]))
    frame = pd.DataFrame(shifted(X, SECONDS)[:, ::-1], columns=["x1", "x0"])
    assert np.array_equal(batch, ranker.predict(frame[["x1", "x0"]]) if ranker.model_.scorer.feature_names else batch)
    other = data.relative_to(data.offset + np.array([64.0, 0.0]))
    assert np.allclose(batch, ranker.predict(other), rtol=1e-9, atol=1e-9)
    assert np.array_equal(np.argsort(batch), np.argsort(ranker.predict(other)))
    ranker.save(tmp_path / "model.json")
    assert np.array_equal(batch, er.load(tmp_path / "model.json").predict(shifted(X, SECONDS)))


@pytest.mark.parametrize("kind", ["lambdamart", "mart"])
def test_trees_of_shifted_features_are_the_same_but_for_the_thresholds(kind):
    X, grades, group = columns()
    data = er.RankingData.from_arrays(shifted(X, SECONDS), grades, group=group)
    left, right = (RANKERS[kind].fit(given, grades, group=group).model_.scorer.table for given in (data.X, shifted(X, SECONDS)))
    for part in ("start", "feature", "left", "right"):
        assert np.array_equal(getattr(left, part), getattr(right, part))
    assert np.allclose(left.leaf_value, right.leaf_value, rtol=1e-12)
    first = left.feature == 0
    assert np.allclose(right.threshold[first] - data.offset[0], left.threshold[first], atol=0.5)
    assert np.array_equal(right.threshold[~first], left.threshold[~first])


@pytest.mark.parametrize("kind", ["lambdamart", "mart"])
def test_lightgbm_alone_scores_the_doubles_as_we_do(kind):
    X, grades, group = columns(values=2**18)
    given = shifted(X, SECONDS)
    ranker = RANKERS[kind].fit(given, grades, group=group)
    assert ranker.model_.scorer.offset is not None
    lone = booster_of(ranker.model_.scorer)
    assert np.array_equal(lone.predict(given, raw_score=True), ranker.predict(given))


def test_a_run_of_trees_that_is_taken_up_ends_as_one_without_a_break():
    X, grades, group = columns(values=2**18)
    data = er.RankingData.from_arrays(shifted(X, SECONDS), grades, group=group)
    start = er.LambdaMART(trees=3, min_documents=2).fit(data).model_
    whole = er.LambdaMART(trees=6, min_documents=2).fit(data)
    taken_up = er.LambdaMART(trees=6, min_documents=2).fit(data, resume=start)
    assert np.array_equal(whole.predict(data), taken_up.predict(data))
    assert whole.model_.scorer.table.start.tolist() == taken_up.model_.scorer.table.start.tolist()


def test_validation_data_of_another_offset_chooses_as_if_it_had_the_same():
    X, grades, group = columns(values=2**18)
    data = er.RankingData.from_arrays(shifted(X, SECONDS), grades, group=group)
    valid = data.take_queries(range(3, 9)).relative_to(data.offset - 4096.0)
    first, second = (er.LambdaMART(trees=6, min_documents=2).fit(data, valid=part) for part in (valid, data.take_queries(range(3, 9))))
    assert first.model_.training["valid"] == second.model_.training["valid"]
    given = shifted(X, SECONDS)[63:189], grades[63:189], np.repeat(np.arange(6), 21)
    assert er.LambdaMART(trees=6, min_documents=2).fit(data, valid=given).model_.training["valid"] == first.model_.training["valid"]


@pytest.mark.parametrize("missing", ["zero", "mean"])
@pytest.mark.parametrize("kind", RANKERS)
def test_what_stands_for_missing_values_is_of_whole_features(kind, missing):
    X, grades, group = columns(values=2**12)
    given = shifted(X, SECONDS)
    given[::10, 0] = np.nan
    ranker = type(RANKERS[kind])(**RANKERS[kind].get_params() | {"missing": missing}).fit(given, grades, group=group)
    stands = 0.0 if missing == "zero" else np.nanmean(given[:, 0])
    filled = np.where(np.isnan(given), [stands, 0.0], given)
    assert ranker.model_.scorer.fill[0] == pytest.approx(stands, rel=1e-15)
    assert np.allclose(ranker.predict(given), ranker.predict(filled), rtol=1e-6, atol=1e-6)


def test_a_category_cannot_lie_far_from_zero():
    X, grades, group = columns(values=2**18)
    with pytest.raises(er.errors.SettingError, match="'x0' cannot be categorical: its values are too large"):
        er.LambdaMART(categorical=["x0"]).fit(shifted(X, SECONDS), grades, group=group)


# ---- scorers


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_sums_are_rounded_down(x, y):
    low = sum_rounded_down(np.array([x]), np.array([y]))[0]
    exact = Fraction(x) + Fraction(y)
    assert Fraction(float(low)) <= exact < Fraction(float(np.nextafter(low, np.inf)))


def test_scorers_without_an_offset_score_data_with_one():
    X, grades, group = columns(values=2**18)
    data = er.RankingData.from_arrays(shifted(X, SECONDS), grades, group=group)
    linear = er.models.Linear(np.array([2.0, -1.0]), ("x0", "x1"))
    assert np.allclose(er.Model(linear).predict(data), 2 * (X[:, 0] + SECONDS) - X[:, 1], rtol=1e-15)
    steps = er.models.Thresholds((np.array([SECONDS + 5000.5]), np.array([])), (np.array([1.0]), np.array([])))
    assert np.array_equal(er.Model(steps).predict(data), (X[:, 0] > 5000.5).astype(float))


@pytest.mark.parametrize("extra", [{}, {"zero_as_missing": True}, {"use_missing": False}, {"categorical_feature": [1]}])
def test_trees_of_lightgbm_score_data_with_an_offset_as_lightgbm_does_the_doubles(extra):
    extra = dict(extra)
    X, grades, group = columns(values=2**18)
    given = shifted(X, SECONDS)
    given[:, 1] = np.random.default_rng(1).integers(0, 5, len(given))
    given[::9] = np.nan
    kinds = extra.pop("categorical_feature", "auto")
    booster = lgb.train({"min_data_in_leaf": 5, "verbose": -1, **extra}, lgb.Dataset(given, grades, categorical_feature=kinds), 10)
    given[5::9, 0] = 0.0 if "zero_as_missing" not in extra else SECONDS
    data = er.RankingData.from_arrays(given, grades, group=group)
    assert data.offset is not None
    scores = er.Model(er.models.TreeEnsemble.of_lightgbm(booster.model_to_string())).predict(data)
    if "zero_as_missing" in extra:  # only single precision has a zero of its own
        given[:, 0] = given[:, 0].astype(np.float32)
    assert np.array_equal(scores, booster.predict(given, raw_score=True))


def test_moving_trees_there_and_back_changes_nothing():
    X, grades, group = columns()
    table = er.LambdaMART(trees=3, min_documents=2).fit(X, grades, group=group).model_.scorer.table
    by = np.array([SECONDS, 0.1])
    back = table.shift(by).shift(-by)
    assert np.allclose(back.threshold, table.threshold, atol=1e-6)
    assert np.array_equal(back.leaf_value, table.leaf_value)


def test_a_model_file_says_the_offset_and_is_checked(tmp_path):
    X, grades, group = columns(values=2**18)
    er.Ridge().fit(shifted(X, SECONDS), grades, group=group).save(tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text())
    assert abs(record["scorer"]["offset"]["x0"] - SECONDS) < 2**18
    record["scorer"]["offset"] = {"x0": 1.0}
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(er.errors.DataError, match="weights and offset name different features"):
        er.load(tmp_path / "model.json")


# ---- data and files


def test_parts_of_data_keep_the_offset():
    X, grades, group = columns(values=2**18)
    data = er.RankingData.from_arrays(shifted(X, SECONDS), grades, group=group)
    part = data.take_queries([3, 1])
    assert np.array_equal(part.feature("x0"), np.concatenate([data.feature("x0")[63:84], data.feature("x0")[21:42]]))
    assert np.array_equal(align_features(data, ("x1", "x0")).feature("x0"), data.feature("x0"))
    moved_data = data.relative_to(data.offset + 8.0)
    assert np.array_equal(moved_data.feature("x0"), data.feature("x0"))
    assert checksum(moved_data) != checksum(data)


def interleaved(seed: int = 0) -> er.RankingData:
    X, grades, _ = columns(seed, values=2**18)
    X[::4, 1] = np.nan
    qid = np.random.default_rng(seed).integers(0, 9, len(X))
    return er.RankingData.from_arrays(shifted(X, SECONDS), grades, qid=qid, feature_names=["1", "2"])


@pytest.mark.parametrize("last", [".txt", ".csv", ".parquet", ".xr"])
@pytest.mark.parametrize("first", [".txt", ".txt.gz", ".csv", ".parquet", ".xr"])
def test_files_keep_what_was_given_whole_and_as_streams(first, last, tmp_path):
    data, options = interleaved(), ReadOptions(keep_missing=True)
    er.write(data, tmp_path / f"a{first}")
    formats.write_stream(formats.stream(tmp_path / f"a{first}", options), tmp_path / f"b{last}")
    for path in (tmp_path / f"a{first}", tmp_path / f"b{last}"):
        judged = er.read(path, keep_missing=True)
        assert np.array_equal(judged.offset, data.offset)
        for name in ("1", "2"):
            assert np.array_equal(judged.feature(name), data.feature(name), equal_nan=True)


@pytest.mark.parametrize("suffix", [".txt", ".csv"])
def test_floats_in_text_are_read_back_to_the_bit(suffix, tmp_path):
    X = (np.random.default_rng(0).random((60, 1)) * 1e12).astype(np.float32)
    er.write(er.RankingData.from_arrays(X, np.zeros(60), group=[60], feature_names=["1"]), tmp_path / f"a{suffix}")
    data = er.read(tmp_path / f"a{suffix}")
    assert data.offset is None
    assert np.array_equal(data.X, X)


def test_text_is_looked_at_beyond_its_first_lines(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{rng.integers(3)} qid:{i // 40} 1:{1_700_000_000 + rng.integers(2**12)} 2:{rng.random():.6f}" for i in range(40_000)]
    (tmp_path / "a.txt").write_text("\n".join(rows))
    for threads in (1, 3):
        data = er.read(tmp_path / "a.txt", threads=threads)
        assert np.array_equal(data.feature("1"), [float(row.split()[2][2:]) for row in rows])
        assert data.offset[1] == 0


def test_wide_sparse_text_is_read_without_much_memory(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{i % 2} qid:{i // 10} 1:{1_700_000_000 + i} 200000:1\n" for i in range(200)))
    assert np.array_equal(er.read(tmp_path / "a.txt").feature("1"), 1_700_000_000.0 + np.arange(200))


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".parquet"])
def test_files_warn_once_of_what_no_offset_saves(suffix, tmp_path):
    values = np.repeat(np.arange(1, 11) * 2**36, 5) + np.tile([0, 1, 1, 2, 3], 10)
    frame = pd.DataFrame({"query_id": np.repeat(np.arange(10), 5), "relevance": 0, "1": values})
    path = tmp_path / f"a{suffix}"
    if suffix == ".txt":
        path.write_text("".join(f"0 qid:{i // 5} 1:{value}\n" for i, value in enumerate(values)))
    else:
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    for read in (er.read, lambda path: list(formats.stream(path, ReadOptions()).blocks)):
        with pytest.warns(er.errors.PrecisionWarning, match="'1' loses 30 of 40") as caught:
            read(path)
        assert len(caught) == 1


def test_runs_whose_scores_differ_little_are_told_apart():
    documents = [f"d{i}" for i in range(50)]
    scores = 0.9 + np.arange(50) * 1e-9
    data = er.from_trec(Judgments(["1"] * 50, documents, np.zeros(50)), [RetrievalRun(["1"] * 50, documents, scores, "dense")])
    assert np.array_equal(np.argsort(data.feature("dense")), np.arange(50))


def test_fusing_takes_whole_scores_where_they_are_not_normalized():
    X, indptr = np.array([[1.0], [np.nan]], np.float32), np.array([0, 2])
    values, _ = normalize_systems(X, indptr, "none", "zero", np.array([1e9]))
    assert values.tolist() == [[1e9 + 1, 0.0]]


# ---- the command line


def test_the_command_line_ranks_by_unix_seconds_and_warns_in_a_line(tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for query in range(20):
        times = rng.permutation(40)
        lines += [f"{int(time > 30)} qid:{query} 1:{1_700_000_000 + time} 2:{query * 2**30 + time}" for time in times]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path / "a.txt"), "--feature", "1", "--measure", "nDCG@10", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["measures"]["nDCG@10"]["mean"] == 1.0
    assert result.stderr.startswith("exactrank: features are kept in single precision")
    assert "'2' loses" in result.stderr
    assert len(result.stderr.splitlines()) == 1
