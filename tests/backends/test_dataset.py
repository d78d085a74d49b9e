"""Where documents lie is known to datasets and backends alone: every question has the same answer for any cut."""

import re
from pathlib import Path

import numpy as np
import pytest

import exactrank as er
from exactrank.data.dataset import CachedScore, Concatenated, EachBlock, EachPart, Part
from exactrank.data.sharded import open_shards
from exactrank.data.shards import query_range

SOURCE = Path(er.__file__).parent
KINDS = re.compile(r"isinstance\([^\n]*\b(ShardedData|Dataset|Part|LocalBackend|Partition)\b")


def places():
    files = (path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in ("data", "backends"))
    return {str(path.relative_to(SOURCE)) for path in files if KINDS.search(path.read_text())}


def test_nothing_that_computes_asks_where_a_dataset_lies():
    assert places() == set()


@pytest.mark.parametrize(("line", "result"), [("if isinstance(data, ShardedData):", True), ("if isinstance(path, Path):", False)])
def test_the_guard_sees_such_a_question(line, result):
    assert bool(KINDS.search(line)) == result


def test_nothing_passes_for_a_dataset_that_is_none():
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert not re.search(r"cast\((RankingData|ShardedData|PerDocument, Scored)", text)


@pytest.fixture
def cuts(tmp_path):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, 1500)
    weight = rng.uniform(0.5, 2.0, 1500)
    data = er.RankingData.from_arrays(rng.normal(size=(sizes.sum(), 2)), rng.integers(0, 3, sizes.sum()), group=sizes, query_weight=weight)
    for number, (first, last) in enumerate([(0, 650), (650, 1500)]):
        er.write(query_range(data, first, last), tmp_path / f"part-{number}.xr")
    return data, open_shards(er.read_shards(f"{tmp_path}/part-*.xr"), None, 20_000)


def sizes_of(part):
    return part.data.sizes


def test_both_datasets_say_the_same_of_the_same_queries(cuts):
    here, there = cuts
    assert len(there.partitions) > 1
    for name in ("n_queries", "n_documents", "n_features", "longest", "feature_names", "weighs_documents", "has_docid", "levels"):
        assert getattr(here, name) == getattr(there, name)
    for name in ("sizes", "indptr", "qid", "weights"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
    for ours, theirs in zip((*here.moments, *here.grades_and_pairs), (*there.moments, *there.grades_and_pairs), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(here.ask(Concatenated(sizes_of)), there.ask(Concatenated(sizes_of)))
    assert here.ask(EachBlock(sizes_of)) == there.ask(EachBlock(sizes_of)) == here.sizes.tolist()
    assert len(there.ask(EachPart(sizes_of))) == len(there.partitions)


def half(first, weights):
    return np.where(np.arange(first, first + len(weights)) % 2, weights, 0.0)


def test_selected_and_reweighed_queries_stay_the_same(cuts):
    which = np.arange(1500) % 3 > 0
    for ours, theirs in zip((data.select(which).gather() for data in cuts), (data.reweigh(half).gather() for data in cuts), strict=True):
        assert ours.n_queries == which.sum()
        np.testing.assert_array_equal(theirs.weights, half(0, cuts[0].weights))
    for name in ("X", "y", "qid", "query_weight"):
        ours, theirs = (getattr(data.select(which).gather(), name) for data in cuts)
        np.testing.assert_array_equal(ours, theirs)


def test_a_part_computes_once_and_keeps_the_last(cuts):
    calls = []
    part = Part(cuts[0])
    assert [part.once("a", lambda: calls.append(1) or len(calls)) for _ in range(3)] == [1, 1, 1]
    assert part.with_memo().once("a", lambda: 0) == 1
    assert [part.recent("kind", key, 2, lambda: calls.append(1) or len(calls)) for key in (1, 2, 1, 3, 2)] == [2, 3, 2, 4, 5]
    assert part.with_memo().recent("kind", 1, 2, lambda: 0) == 0


def test_a_remembered_score_is_computed_once_per_dataset(cuts):
    calls, data = [], cuts[0]
    other = data.take_queries([0, 1])
    score = CachedScore(lambda part: calls.append(part) or np.zeros(part.n_documents))
    for part in (data, other, data, other):
        assert len(score(part)) == part.n_documents
    assert calls == [data, other]
