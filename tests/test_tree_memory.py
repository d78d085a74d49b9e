"""Trees of LightGBM with its default bins: the same to the bit as its own package makes them, in the memory that its bins need."""

import json
import os
import resource
import subprocess
import sys

import lightgbm as lgb
import numpy as np
import pytest
from exactrank.rankers.forest import FIXED
from exactrank.rankers.lightgbm_library import binned, sums, updated
from hypothesis import given, settings, strategies as st

import exactrank as xr
from exactrank.data.room import scratch
from exactrank.rankers import lightgbm_library

from .test_out_of_core import DETERMINED, STACK, made

#: Trains on a mapped cache with 0.3 x the features' memory, 60 bytes per document and what does not grow with the documents, beyond what it
#: has after a training on a few of them.
LIMITED = """
import json, resource, sys
import numpy as np
import exactrank as xr

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))

data, ranker = xr.read(sys.argv[1]), getattr(xr, sys.argv[3])(trees=3, threads=2)
ranker.fit(data.take_queries(np.arange(100)))
resource.setrlimit(resource.RLIMIT_DATA, (held() + 3 * data.X.nbytes // 10 + 60 * data.n_documents + int(sys.argv[2]),) * 2)
print(json.dumps(ranker.fit(data).model_.scorer.to_record()))
"""
FIRM = 8 << 20  #: bytes, of what does not grow with the documents: histograms, threads and text


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits memory that belongs to no file")
@pytest.mark.parametrize("ranker", ["LambdaMART", "DirectRankTrees"])
def test_trees_on_a_mapped_file_need_its_bins_and_little_more(tmp_path, ranker):
    """Few features, so that numbers by document count."""
    data = made(queries=20_000, documents=20, features=20)
    xr.write(data, tmp_path / "large.xr")
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "large.xr"), str(FIRM), ranker],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | DETERMINED | {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)},  # what is free is given back
        timeout=900,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK,) * 2),
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    theirs = getattr(xr, ranker)(trees=3, threads=2).fit(data).model_.scorer.to_record()
    assert json.loads(ended.stdout) == json.loads(json.dumps(theirs))


def odd(rng: np.random.Generator, documents: int, features: int) -> np.ndarray:
    """Features that are dense, as the last one is, sparse, of few values, mostly missing, constant, or next to nothing."""
    X = rng.standard_normal((documents, features), dtype=np.float32)
    kinds = np.append(rng.integers(0, 6, features - 1), 0)
    X[:, kinds == 1] *= rng.random((documents, (kinds == 1).sum())) < 0.05
    X[:, kinds == 2] = np.round(X[:, kinds == 2])
    X[:, kinds == 3] = np.where(rng.random((documents, (kinds == 3).sum())) < 0.7, np.nan, X[:, kinds == 3])
    X[:, kinds == 4] = 1.0
    X[:, kinds == 5] *= np.float32(1e-35)
    return X


@given(st.integers(0, 10_000), st.sampled_from([7, 40, 300]), st.integers(1, 12), st.sampled_from([3, 40, 200_000]), st.booleans())
@settings(max_examples=40)
def test_bins_and_trees_are_those_of_lightgbms_own_package(seed, documents, features, sample, is_mapped):
    """Scores included, which its package hands to a metric."""
    rng = np.random.default_rng(seed)
    X, y = odd(rng, documents, features), rng.standard_normal(documents)
    kinds = [0] if features > 1 and seed % 3 == 0 else []
    X[:, kinds] = rng.integers(0, 5, (documents, len(kinds)))
    given = FIXED | {"min_data_in_leaf": 1, "min_data_in_bin": 1, "bin_construct_sample_cnt": sample, "num_threads": 1, "seed": seed}
    names = tuple(f"feature {j}" if seed % 2 else f"f{j}" for j in range(features))
    if is_mapped:
        lies = scratch(X.shape, np.float32)
        lies[:] = X
        X = lies
    theirs = lgb.Dataset(X, params=dict(given), feature_name=[f"f{j}" for j in range(features)], categorical_feature=kinds)
    theirs = lgb.Booster(dict(given), theirs.construct())
    theirs.update(fobj=lambda scores, data: (-y, np.ones(documents)))
    data = binned(X, given, tuple(f"f{j}" for j in range(features)), kinds)
    ours = lgb.Booster(dict(given), data).reset_parameter({"objective": "none"})
    updated(ours, y, np.ones(documents))
    assert ours.model_to_string() == theirs.model_to_string()
    seen: list[np.ndarray] = []
    theirs.eval_train(feval=lambda scores, data: (seen.append(scores.copy()), ("", 0.0, True))[1])
    assert sums(ours, 0, documents).tobytes() == seen[0].tobytes()
    assert binned(X, given, names, kinds).get_feature_name() == (list(names) if seed % 2 == 0 else [f"Column_{j}" for j in range(features)])


@pytest.mark.parametrize("small", [0, 1 << 30])
def test_a_large_sample_of_data_in_memory_lies_in_a_scratch_file(monkeypatch, small):
    seen = []
    monkeypatch.setattr(lightgbm_library, "SMALL_SAMPLE", small)
    monkeypatch.setattr(lightgbm_library, "scratch", lambda shape, kind: seen.append((shape, kind)) or scratch(shape, kind))
    data = made(queries=20, features=6)
    model = xr.LambdaMART(trees=2).fit(data).model_
    assert seen == ([] if small else [((6, 400), np.float64), ((6, 400), np.int32)])
    monkeypatch.undo()
    assert model.scorer.to_record() == xr.LambdaMART(trees=2).fit(data).model_.scorer.to_record()
