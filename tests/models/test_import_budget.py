"""Files that ask for more than they hold: refused within little memory and time, whatever number or repetition asks for it."""

import base64
import json
import re
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import exactrank as er
from exactrank.models.formats.content import ALWAYS, COSTS, PER_BYTE, Budget

PROGRAM = """
import resource, sys
import exactrank as er
from exactrank.loading import load
if sys.argv[1].endswith("onnx"):
    import onnx
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
try:
    load(sys.argv[1])
except er.errors.DataError as error:
    print(error)
else:
    print("read")
"""


def xgboost_file(n_features, **parameters):
    """A booster of one stump in JSON."""
    tree = {"left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0], "default_left": [0, 0, 0]}
    tree |= {name: [0.5, 1, 2] for name in ("split_conditions", "base_weights", "loss_changes", "sum_hessian")}
    learner = {
        "gradient_booster": {"name": "gbtree", "model": {"trees": [tree | parameters]}},
        "objective": {"name": "rank:ndcg"},
        "learner_model_param": {"num_feature": str(n_features), "num_class": "0", "base_score": "0.5"},
    }
    return json.dumps({"learner": learner}).encode()


def ranklib_tree(feature):
    split = f"<feature> {feature} </feature> <threshold> 0.5 </threshold>"
    leaves = "".join(f'<split pos="{side}"> <output> 1 </output> </split>' for side in ("left", "right"))
    return f'## MART\n<ensemble> <tree id="1" weight="1"> <split> {split} {leaves} </split> </tree> </ensemble>\n'.encode()


def ubjson_of_nothing(size):
    """Lists of as many empty values as there are bytes behind them."""
    lists = b"".join(b"[$Z#l" + struct.pack(">i", size - 9 * number - 64) for number in range(1, (size - 100) // 9))
    return b"{U\x07learner[" + lists + b"]" * (size - 12 - len(lists))


def packed(size):
    """An ONNX graph with a model that unpacks to ``size`` blanks."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    file = onnx.load_from_string(er.export(er.models.Linear(np.ones(2)), "onnx").content)
    next(entry for entry in file.metadata_props if entry.key == "model").value = base64.b64encode(zlib.compress(bytes(size))).decode()
    return file.SerializeToString()


def deep_file(shape, content=b""):
    """A deep model with a tensor of that shape."""
    header = json.dumps({"mean": {"dtype": "F32", "shape": shape, "data_offsets": [0, len(content)]}}).encode()
    tensors = base64.b64encode(len(header).to_bytes(8, "little") + header + content).decode()
    scorer = {"kind": "deep", "missing": "error", "features": 1, "nets": [{"weight": 1, "transform": "none", "tensors": tensors}]}
    record = {"format": "exactrank-model", "version": 1, "library": "1", "ranker": None, "measure": None, "seed": None}
    return json.dumps(record | {"params": {}, "data": {}, "training": {}, "scorer": scorer}).encode()


def tree_file(**changes):
    """A model of a single leaf."""
    leaf = {name: [] for name in ("feature", "threshold", "decision", "left", "right", "gain")} | {"value": [1.0], "documents": [1]}
    scorer = {"kind": "trees", "missing": "keep", "features": 1, "trees": [leaf | {"weight": 1.0}]} | changes
    record = {"format": "exactrank-model", "version": 2, "library": "1", "ranker": None, "measure": None, "seed": None}
    return json.dumps(record | {"params": {}, "data": {}, "training": {}, "scorer": scorer}).encode()


def wide_categories():
    tree = json.loads(tree_file())["scorer"]["trees"][0]
    return tree_file(trees=[tree | {"categories": [[16_777_215]] * 10_000}])


FILES = {
    "xgboost.json": (lambda: xgboost_file(50_000_000), "num_feature asks for 50,000,000 features, .* bytes; leave out features"),
    "texts.json": (
        lambda: xgboost_file(1, split_indices=["x"] * 100_000 + ["x" * 1_000_000]), "tree 0: split_indices is .*, expected 3 numbers"),
    "ranklib.txt": (lambda: ranklib_tree(10_000_000), "feature 10000000 asks for 10,000,000 features, .* n_features="),
    "weights.txt": (
        lambda: b"## Coordinate Ascent\n1:0.5 10000000:1\n", "feature 10000000 asks for 10,000,000 features, .* n_features="),
    "empty.ubj": (lambda: ubjson_of_nothing(200_000), "the list at byte .* asks for .* numbers, too many for a file of 199,999 bytes"),
    "packed.onnx": (lambda: packed(ALWAYS + 1), "the model in the metadata is incomplete, or larger than 268,435,456 bytes"),
    "width.json": (lambda: tree_file(features=2**40), "features: expected names, or a number from 1 to 1048576"),
    "categories.json": (wide_categories, "tree 0: the categories of all trees take more than 16,777,216 words"),
    "axes.json": (lambda: deep_file([1] * 65, b"\0" * 4), "maximum supported dimension .* found 65"),
    "axis.json": (lambda: deep_file([0, 2**70]), "the tensors cannot be read"),
}  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory as Linux has them")
@pytest.mark.parametrize("name", FILES)
def test_files_that_ask_for_more_than_they_hold(name, tmp_path):
    """In a process with 1 GiB beyond the libraries and a minute of computing."""
    made, message = FILES[name]
    (tmp_path / name).write_bytes(made())
    result = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / name)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert re.search(rf"{name}: .*{message}", result.stdout), result.stdout


def test_many_features_and_few_trees_are_read(tmp_path):
    """Features that no tree uses are no reason to refuse a model."""
    (tmp_path / "m.json").write_bytes(xgboost_file(5000))
    assert er.load(tmp_path / "m.json").scorer.n_features == 5000
    (tmp_path / "m.txt").write_bytes(ranklib_tree(5000))
    assert er.load(tmp_path / "m.txt").scorer.n_features == 5000


def test_the_caller_may_say_how_many_features_there_are(tmp_path):
    (tmp_path / "m.txt").write_bytes(b"## Coordinate Ascent\n1:0.5 2000000:1\n")
    with pytest.raises(er.errors.DataError, match="feature 2000000 asks for 2,000,000 features"):
        er.load(tmp_path / "m.txt")
    assert er.load(tmp_path / "m.txt", n_features=2_000_000).scorer.n_features == 2_000_000


@pytest.mark.parametrize("size", [0, ALWAYS // PER_BYTE, 10 * ALWAYS // PER_BYTE])
@pytest.mark.parametrize("kind", COSTS)
def test_a_budget_grows_with_the_file(size, kind):
    budget, most = Budget(size, max(ALWAYS, PER_BYTE * size)), max(ALWAYS, PER_BYTE * size) // COSTS[kind]
    budget.spend(kind, most - 1, "here")
    budget.spend(kind, 1, "here")
    with pytest.raises(er.errors.DataError, match=f"here asks for 1 {kind}, too many for a file of {size:,} bytes; mend it"):
        budget.spend(kind, 1, "here", "mend it")
    Budget().spend(kind, 10**12, "an object of this process")
