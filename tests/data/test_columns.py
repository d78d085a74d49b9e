"""Columns beside the features: they go wherever the documents go, and measures read them instead of grades."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.data.ranking_data import checksum
from exactrank.rankers.training_data import in_content_order, join_queries


def frame(**columns):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    return pandas.DataFrame({"query_id": [2, 1, 2, 1, 2], "relevance": [0, 1, 2, 0, 1], "bm25": [0.5, 1.5, 2.5, 3.5, 4.5]} | columns)


COLUMNS = er.data.Columns(keep=("revenue",))
REVENUE = [5.0, 0.1, 0.2, 3.0, 0.25]


def test_kept_columns_are_no_features_and_follow_their_documents():
    data = er.RankingData.from_frame(frame(revenue=REVENUE), COLUMNS)
    assert data.feature_names == ("bm25",)
    assert data.ungroup(data.extra_columns["revenue"]).tolist() == REVENUE
    taken = data.take_queries([1, 0, 1])
    assert taken.extra_columns["revenue"].tolist() == [0.1, 3.0, 5.0, 0.2, 0.25, 0.1, 3.0]
    ordered = in_content_order(data)
    assert dict(zip(ordered.X[:, 0], ordered.extra_columns["revenue"], strict=True)) == dict(
        zip(data.X[:, 0], data.extra_columns["revenue"], strict=True)
    )
    assert join_queries(data, taken).extra_columns["revenue"].tolist() == [*data.extra_columns["revenue"], *taken.extra_columns["revenue"]]
    assert data.to_frame()["revenue"].tolist() == REVENUE
    assert not data.extra_columns["revenue"].flags.writeable


@pytest.mark.parametrize("suffix", ["xr", "parquet", "csv", "csv.gz"])
def test_kept_columns_go_through_files(tmp_path, suffix):
    data = er.RankingData.from_frame(frame(revenue=REVENUE), COLUMNS)
    er.write(data, tmp_path / f"data.{suffix}")
    again = er.read(tmp_path / f"data.{suffix}", columns=COLUMNS)
    assert again.extra_columns["revenue"].tolist() == data.extra_columns["revenue"].tolist()
    assert again.feature_names == ("bm25",)
    assert checksum(again) == checksum(data)


def test_text_has_no_place_for_them(tmp_path):
    data = er.RankingData.from_frame(frame(revenue=REVENUE), COLUMNS)
    with pytest.raises(er.errors.IncompatibleError, match=r"no place for the extra column 'revenue'; write .xr"):
        er.write(data, tmp_path / "data.txt")


@given(st.integers(0, 10**6), st.sampled_from(["DCG(gain='linear')@3", "nDCG@2", "AP(rel=2)", "ERR@3", "P(rel=2, ties='expected')@2"]))
def test_a_measure_of_the_grades_column_is_the_measure_of_grades(seed, text):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 5)
    y, scores = rng.integers(0, 5, sizes.sum()).astype(float), rng.integers(0, 4, sizes.sum()).astype(float)
    data = er.RankingData.from_arrays(None, y, group=sizes)
    beside = er.RankingData.from_arrays(None, np.zeros(len(y)), group=sizes, extra_columns={"again": y})
    name, _, rest = text.partition("@")
    column = name[:-1] + ", column='again')" if name.endswith(")") else name + "(column='again')"
    theirs = er.evaluate(data, scores, text).per_query
    assert np.array_equal(er.evaluate(beside, scores, f"{column}@{rest}" if rest else column).per_query, theirs)


@given(st.integers(0, 10**6))
def test_totals_are_sums_over_the_first_ranks(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 4)
    revenue, scores = rng.integers(0, 50, sizes.sum()) / 8, rng.permutation(sizes.sum()).astype(float)
    data = er.RankingData.from_arrays(None, np.zeros(len(revenue)), group=sizes, extra_columns={"revenue": revenue})
    ends = np.cumsum(sizes)
    theirs = [sum(revenue[b:e][np.argsort(-scores[b:e])][:3]) for b, e in zip(ends - sizes, ends, strict=True)]
    assert er.evaluate(data, scores, "revenue@3").per_query[0].tolist() == theirs


def test_a_feature_is_a_column_too():
    data = er.RankingData.from_arrays([[1.5, 2.0], [0.5, 3.0]], [0, 1], group=[2], feature_names=["price", "length"])
    assert er.evaluate(data, [0, 1], "price@1").means == {"price@1": 0.5}


def test_every_ranker_can_learn_from_a_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    data = er.RankingData.from_arrays(X, np.arange(200) % 2, group=[10] * 20, extra_columns={"revenue": np.exp(X[:, 1])})
    for ranker in (er.LambdaRank("revenue@3"), er.DirectRank("revenue@3", bags=0), er.Ridge("revenue@3")):
        assert ranker.fit(data).score(data) > 0.95 * er.evaluate(data, X[:, 1], "revenue@3").means["revenue@3"]


def test_what_is_wrong_is_named():
    data = er.RankingData.from_frame(frame(revenue=REVENUE), COLUMNS)
    with pytest.raises(
        er.errors.DataError, match=r"no column 'profit'; it has revenue, bm25; of a table, keep it by Columns\(keep=\('profit',\)\)"
    ):
        er.evaluate(data, data.X[:, 0], "profit@10")
    with pytest.raises(er.errors.DataError, match=r"column 'revenue' of row 1 \(from 0\) is missing; .* a number in every row"):
        er.RankingData.from_frame(frame(revenue=[1.0, None, 2.0, 3.0, 4.0]), COLUMNS)
    with pytest.raises(er.errors.DataError, match=r"has no column 'revenue'; .*Columns\(keep=...\)"):
        er.RankingData.from_frame(frame(), COLUMNS)
    below = er.RankingData.from_frame(frame(revenue=[1.0, -2.5, 2.0, 3.0, 4.0]), COLUMNS)
    with pytest.raises(
        er.errors.DataError, match=r"column 'revenue' is -2.5 in row 1, and gains are numbers of at least 0; add a constant"
    ):
        er.evaluate(below, below.X[:, 0], "revenue@10")
    with pytest.raises(er.errors.DataError, match="column 'x' has shape"):
        er.RankingData.from_arrays(None, [0, 1], group=[2], extra_columns={"x": [1.0]})
    with pytest.raises(er.errors.DataError, match="column 'a' cannot be kept"):
        er.RankingData.from_arrays([[1.0], [2.0]], [0, 1], group=[2], feature_names=["a"], extra_columns={"a": [1.0, 2.0]})
    with pytest.raises(er.errors.MeasureError, match=r"did you mean nDCG\?.*a column of the data is written Total\(column='nDCGG'\)@10"):
        er.parse_measure("nDCGG@10")
    for name in ("price", "revenue", "margin", "clicks", "profit", "cost"):
        assert er.parse_measure(f"{name}@10") == er.measures.Total(column=name, k=10)
        assert er.parse_measure(str(er.measures.Total(column=name, k=10))) == er.measures.Total(column=name, k=10)
