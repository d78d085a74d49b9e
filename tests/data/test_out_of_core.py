"""Data in a mapped file, larger than memory: the same models to the bit, in a third of the matrix's memory."""

import json
import os
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank._support.files import scratch_map
from exactrank.data.immutable import is_mapped, seal
from exactrank.data.scratch_arrays import FeatureColumns, empty_matrix, take_rows
from exactrank.errors import DataError
from exactrank.learning.objectives.linear_profile import columns_of
from exactrank.rankers.training_data import in_content_order, join_queries

QUERIES, DOCUMENTS, FEATURES = 1_500, 20, 320  # 37 MiB of features
STACK = 1 << 19  # bytes, of each thread, which count against the limit
#: What is free is so for all threads, and their number does not depend on that of the cores.
DETERMINED = {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "2"}

#: What is done under the limit, one of each kind; few steps of each, and few bins: what does not grow with the rows would weigh too much
#: beside so few of them.
TRAINED = {
    "DirectRank, columns": "er.DirectRank(max_iter=1, bags=0, start='zero', threads=2).fit(data)",
    "DirectRank": "er.DirectRank(max_iter=1, bags=0, start='zero', threads=2).fit(data)",
    "LambdaRank": "er.LambdaRank(max_iter=2, threads=2).fit(data)",
    "ListNet, missing values": "er.ListNet(max_iter=2, missing='mean', threads=2).fit(holes)",
    "ListNet, cross-fitted": "er.ListNet(max_iter=2, bags=2, threads=2).fit(data)",
    "RankNet, a network": "er.RankNet(max_iter=1, hidden=2, threads=2).fit(data)",
    "Ridge": "er.Ridge(threads=2).fit(data)",
    "AdaRank": "er.AdaRank(max_iter=2, threads=2).fit(data)",
    "LambdaMART": "er.LambdaMART(trees=2, leaves=4, bags=0, bins=15, threads=2).fit(data)",
    "fuse": "er.fuse(data, systems=['0', '1'], folds=0, bootstrap=0, threads=2)",
    "evaluate": "er.evaluate(data, data.feature('0'), 'nDCG@10', threads=2)",
}

#: Does each in a process of its own: on a few rows, so that all code is loaded, then on all of them, with a third of the matrix beyond
#: the memory that it has by then.
LIMITED = """
import json, os, resource, sys, traceback
import numpy as np
import exactrank as er

works, paths = json.loads(sys.argv[1]), sys.argv[2:]

def done(work, data, holes):
    found = eval(work)
    return found.model_.scorer.to_record() if hasattr(found, "model_") else repr(found)

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))

def limited(name, work):
    data, columns, holes = map(er.read, paths)
    few = [each.take_queries(np.arange(40)) for each in (data, holes)]
    done(work, *few)
    resource.setrlimit(resource.RLIMIT_DATA, (held() + data.X.nbytes // 3,) * 2)
    print(json.dumps([name, done(work, columns if "columns" in name else data, holes)]), flush=True)

for name, work in works.items():
    child = os.fork()
    if child == 0:
        try:
            limited(name, work)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.waitpid(child, 0)
"""


def made(
    queries: int = QUERIES, documents: int = DOCUMENTS, features: int = FEATURES, seed: int = 0, missing: float = 0.0
) -> er.RankingData:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((queries * documents, features), dtype=np.float32)
    y = np.clip(X[:, 0] + X[:, -1] + rng.standard_normal(len(X)), 0, 3).round()
    X[rng.random(len(X)) < missing, features // 2] = np.nan
    return er.RankingData.from_arrays(X, y, group=[documents] * queries, feature_names=list(map(str, range(features))))


def mapped(data: er.RankingData, path: Path, **how: bool) -> er.RankingData:
    er.write(data, path, **how)
    judged = er.read(path)
    assert is_mapped(judged.X)
    return judged


@pytest.fixture(scope="module")
def caches(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("caches")
    results = {name: folder / f"{name}.xr" for name in ("plain", "columns", "holes")}
    data = made()
    er.write(data, results["plain"])
    er.write(data, results["columns"], columns=True)
    er.write(made(seed=1, missing=0.1), results["holes"])
    return results


@pytest.fixture(scope="module")
def limited(caches) -> dict[str, object]:
    """What came of all that was done under the limit."""
    paths = [str(caches[name]) for name in ("plain", "columns", "holes")]
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, json.dumps(TRAINED), *paths],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | DETERMINED,
        timeout=900,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK,) * 2),
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return {"trouble": ended.stderr[-3000:]} | dict(json.loads(line) for line in ended.stdout.splitlines())


@pytest.fixture(scope="module")
def in_memory(caches):
    """What comes of some work on the same data in memory; the same work is done once."""
    parts = ("y", "indptr", "qid", "feature_names")
    mapped = {"data": er.read(caches["plain"]), "holes": er.read(caches["holes"])}
    held = {
        name: er.RankingData(X=seal(np.array(each.X)), **{part: getattr(each, part) for part in parts}) for name, each in mapped.items()
    }

    @cache
    def done(work):
        result = eval(work, {"er": er}, held)
        return json.loads(json.dumps(result.model_.scorer.to_record() if hasattr(result, "model_") else repr(result)))

    return done


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits memory that belongs to no file")
@pytest.mark.parametrize("name", TRAINED)
def test_a_third_of_the_matrix_suffices(limited, in_memory, name):
    assert name in limited, limited["trouble"]
    assert limited[name] == in_memory(TRAINED[name])


@pytest.mark.parametrize(("missing", "how"), [("error", {}), ("mean", {"columns": True})])
def test_any_order_of_rows_in_a_mapped_file_gives_the_same_model(tmp_path, how, missing):
    data = made(queries=450, documents=20, features=120, missing=0.05 if missing == "mean" else 0.0)
    rng = np.random.default_rng(2)
    rows = np.concatenate([first + rng.permutation(size) for first, size in zip(data.indptr, data.sizes, strict=False)])
    turned = er.RankingData.from_arrays(data.X[rows], data.y[rows], group=data.sizes, feature_names=data.feature_names)
    weight = rng.random(data.n_queries)
    fits = {
        "DirectRank": lambda each: er.DirectRank(max_iter=1, bags=0, missing=missing).fit(each),
        "LambdaRank": lambda each: er.LambdaRank(max_iter=3, missing=missing).fit(each),
        "LambdaMART": lambda each: er.LambdaMART(trees=3, bags=0, missing=missing).fit(each),
    }
    for name, fit in fits.items():
        records = []
        for number, each in enumerate(
            (data, mapped(data, tmp_path / f"{name}.xr", **how), mapped(turned, tmp_path / f"{name}2.xr", **how))
        ):
            weighed = er.RankingData(**{k: getattr(each, k) for k in ("X", "y", "indptr", "qid", "feature_names")}, query_weight=weight)
            records.append(fit(weighed.with_columns(each.by_column) if number else weighed).model_.scorer.to_record())
        assert records[0] == records[1] == records[2], name


@given(st.integers(1, 70), st.integers(1, 9), st.integers(0, 99))
def test_columns_are_those_of_the_rows(rows, width, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, width), dtype=np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    order, stands = rng.permutation(rows), rng.standard_normal(width).astype(np.float32)
    for columns in (FeatureColumns(X), FeatureColumns.of(X), FeatureColumns(np.asfortranarray(X))):
        assert len(columns) == width
        np.testing.assert_array_equal(np.array(list(columns)), X.T)
        turned = columns.reorder(order, stands)
        for j in [*range(width), 0, 0]:
            np.testing.assert_array_equal(turned[j], np.where(np.isnan(X), stands, X)[order, j])
            assert turned[j].flags.c_contiguous
    np.testing.assert_array_equal(X, X)


def test_what_is_made_of_a_mapped_matrix_is_mapped(tmp_path):
    data = mapped(made(queries=400, documents=20, features=140), tmp_path / "mapped.xr", columns=True)
    in_memory = made(queries=400, documents=20, features=140)
    for result, expected in (
        (in_content_order(data), in_content_order(in_memory)),
        (data.take_queries([3, 1, 1]), in_memory.take_queries([3, 1, 1])),
        (join_queries(data, data), join_queries(in_memory, in_memory)),
        (data.relative_to(np.ones(140)), in_memory.relative_to(np.ones(140))),
    ):
        assert is_mapped(result.X)
        assert not is_mapped(expected.X)
        np.testing.assert_array_equal(result.X, expected.X)
        columns = columns_of(result)
        np.testing.assert_array_equal([columns[0], columns[139]], expected.X[:, [0, 139]].T)
    assert data.by_column is not None
    assert data.take_queries([1]).by_column is None
    assert in_content_order(data).by_column is not None


def test_room():
    memory = np.zeros((3, 2), np.float32)
    assert not is_mapped(empty_matrix((2, 2), memory))
    content = np.frombuffer(scratch_map(24), np.float32).reshape(3, 2)
    made = take_rows(content, np.array([2, 0]))
    made[:] = 1.0
    assert is_mapped(made)
    assert is_mapped(seal(made))
    assert empty_matrix((0, 2), content).shape == (0, 2)


def test_scratch_space_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(OSError, match=rf"scratch space are needed there: free some, or set TMPDIR to another folder: '{tmp_path}'"):
        scratch_map(1 << 62)
    assert not list(tmp_path.iterdir())


def test_columns_are_for_caches_alone(tmp_path):
    data = made(queries=2, features=3)
    with pytest.raises(
        DataError, match=r"out\.txt: only an \.xr cache keeps features by column; leave out columns \(--columns\), or write \.xr"
    ):
        er.write(data, tmp_path / "out.txt", columns=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rows", [(5, 1), (70, 3), (1000, 65)])
def test_a_cache_with_columns_holds_both(tmp_path, rows):
    queries, features = rows
    data = made(queries=queries, features=features, missing=0.2)
    order = np.random.default_rng(0).permutation(data.n_documents)  # queries that are interleaved are grouped before
    mixed = er.RankingData.from_arrays(data.X[order], data.y[order], qid=np.repeat(data.qid, data.sizes)[order])
    er.write(mixed, tmp_path / "both.xr", columns=True)
    judged = er.read(tmp_path / "both.xr", verify=True)
    np.testing.assert_array_equal(judged.X, mixed.X)
    np.testing.assert_array_equal(np.array(list(judged.by_column)), mixed.X.T)


def test_columns_of_other_numbers_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "forged.xr"
    monkeypatch.setattr("exactrank.data.formats.cache._core.transpose", lambda X, columns, threads: columns.fill(1.0))
    er.write(made(queries=3, features=2), path, columns=True)
    with pytest.raises(
        DataError, match=r"forged\.xr: its section 'columns' holds other numbers than its section 'X'; convert the source again"
    ):
        er.read(path, verify=True)
