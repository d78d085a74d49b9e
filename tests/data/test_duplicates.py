"""Ids and columns that occur twice are refused with the places of both, and what is masked is never used."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import exactrank as er
from exactrank.clicks.propensities import read_propensities
from exactrank.data.scores import read_scores


def documents():
    return er.RankingData.from_arrays([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], qid=[7, 8, 7, 7], docid=["a", "a", "b", "a"])


def test_a_document_twice_in_a_query_cannot_be_named():
    message = r"query 7 has document 'a' in the rows 0 and 3 \(from 0\); keep one of them"
    with pytest.raises(er.errors.DataError, match=message):
        er.pairs.with_pairs(documents(), {"query_id": [7], "better": ["a"], "worse": ["b"]})


def test_a_run_is_not_matched_with_a_document_that_is_there_twice(tmp_path):
    (tmp_path / "a.run").write_text("7 Q0 a 1 2.5 x\n7 Q0 b 2 1.5 x\n")
    with pytest.raises(er.errors.DataError, match=r"a\.run: query 7 has document 'a' in the rows 0 and 3"):
        read_scores(tmp_path / "a.run", documents())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_twice_is_refused(tmp_path, suffix):
    pairs, clicks = tmp_path / f"pairs.{suffix}", tmp_path / f"clicks.{suffix}"
    tables = {
        pairs: [("query_id", [7]), ("better", ["b"]), ("worse", ["a"]), ("better", ["a"])],
        clicks: [("query_id", [7]), ("clicked", [1]), ("doc_id", ["a"]), ("rank", [1]), ("clicked", [0])],
    }
    for path, columns in tables.items():
        if suffix == "csv":
            path.write_text("\n".join([",".join(name for name, _ in columns), ",".join(str(cells[0]) for _, cells in columns)]))
        else:
            pq.write_table(pa.Table.from_arrays([pa.array(cells) for _, cells in columns], [name for name, _ in columns]), path)
    data = er.RankingData.from_arrays(None, [0, 0], qid=[7, 7], docid=["a", "b"])
    with pytest.raises(er.errors.DataError, match=r"pairs\..*: columns 2 and 4 are both called 'better'; rename or remove one of them"):
        er.pairs.read_pairs(pairs, data)
    with pytest.raises(er.errors.DataError, match=r"clicks\..*: columns 2 and 5 are both called 'clicked'; rename or remove one of them"):
        er.clicks.read_clicks(clicks)


def test_times_of_clicks_are_single_values(tmp_path):
    columns = {"query_id": [7], "doc_id": ["a"], "rank": [1], "clicked": [1], "time": pa.array([[1, 2]])}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(er.errors.DataError, match=r"a\.parquet: column 'time' holds list<.*; give one value per impression"):
        er.clicks.read_clicks(tmp_path / "a.parquet")


def test_a_rank_has_one_propensity(tmp_path):
    (tmp_path / "a.csv").write_text("rank,propensity\n1,1\n2,0.5\n2,0.25\n")
    with pytest.raises(er.errors.DataError, match=r"the entries 1 and 2 \(from 0\) are both of rank 2; remove one of them"):
        read_propensities(tmp_path / "a.csv")


def masked(values, *, at):
    found = np.ma.masked_array(np.array(values))
    found[at] = np.ma.masked
    return found


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
def test_masked_features_are_missing(kind):
    data = er.RankingData.from_arrays(masked(np.array([[1, 2], [3, 4]], kind), at=(1, 0)), [0, 1], group=[2])
    np.testing.assert_array_equal(data.X, [[1, 2], [np.nan, 4]])


def test_a_model_takes_masked_features_for_missing_ones():
    model = er.Ridge(missing="zero").fit(er.RankingData.from_arrays([[1.0, 5.0], [3.0, 4.0], [2.0, 7.0]], [0, 1, 1], group=[3])).model_
    rows = masked([[1.0, 2.0], [3.0, 4.0]], at=(1, 0))
    np.testing.assert_array_equal(model.predict(rows), model.predict(np.array([[1.0, 2.0], [np.nan, 4.0]])))


@pytest.mark.parametrize("name", ["y", "qid", "sample_weight", "query_weight", "price"])
def test_what_else_is_masked_is_refused(name):
    arguments = {"y": [0, 1], "qid": [1, 1], "sample_weight": [1.0, 2.0], "query_weight": [1.0, 1.0], "price": [1.0, 2.0]}
    arguments[name] = masked(arguments[name], at=1)
    kept = {"price": arguments.pop("price")}
    with pytest.raises(er.errors.DataError, match=rf"{name}\[1\] is masked; drop the row, or give it a value"):
        er.RankingData.from_arrays([[1.0], [2.0]], **arguments, extra_columns=kept)


def test_masked_scores_are_refused(tmp_path):
    data, scores = er.RankingData.from_arrays(None, [0, 1], group=[2]), masked([1.0, 2.0], at=0)
    for use in (lambda: er.evaluate(data, scores, "nDCG"), lambda: er.write_run(data, tmp_path / "a.run", scores)):
        with pytest.raises(er.errors.DataError, match=r"scores\[0\] is masked"):
            use()
