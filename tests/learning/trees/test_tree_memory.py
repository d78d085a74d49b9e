"""Trees on a mapped file: the same to the bit as in memory, in the memory that their bins need."""

import json
import os
import resource
import subprocess
import sys

import pytest

import exactrank as er
from tests.data.test_out_of_core import DETERMINED, STACK, made

#: Trains on a mapped cache with 0.3 x the features' memory, 60 bytes per document and what does not grow with the documents, beyond what it
#: has after a training on a few of them.
LIMITED = """
import json, resource, sys
import numpy as np
import exactrank as er

def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))

data, ranker = er.read(sys.argv[1]), getattr(er, sys.argv[3])(trees=3, bags=0, threads=2)
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
    er.write(data, tmp_path / "large.xr")
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
    theirs = getattr(er, ranker)(trees=3, bags=0, threads=2).fit(data).model_.scorer.to_record()
    assert json.loads(ended.stdout) == json.loads(json.dumps(theirs))
