"""`load`: which reader takes a file, and what reading it imports."""

import json
import subprocess
import sys

import numpy as np
import pytest

import exactrank as er
from exactrank.fusion.fuse import fuse
from exactrank.loading import OWN_FORMATS
from tests.fusion.fuse_data import random_systems

PROGRAM = """
import sys
from exactrank.loading import load
print(type(load(sys.argv[1])).__name__, *sorted(sys.modules))
"""


def loaded_in_new_process(path):
    """The class of what is in the file, and all modules of the process that has loaded it."""
    result = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, check=True)
    kind, *modules = result.stdout.split()
    return kind, set(modules)


def readers(modules):
    return {name for name in modules if name.startswith("exactrank.models.formats.")}


def test_our_own_model_imports_no_other_reader(tmp_path):
    er.Model(er.models.Linear(np.array([2.0, -1.0]), ("bm25", "length"))).save(tmp_path / "m.json")
    kind, modules = loaded_in_new_process(tmp_path / "m.json")
    assert kind == "Model"
    assert readers(modules) == {"exactrank.models.formats.content", "exactrank.models.formats.own"}
    above = (
        "exactrank.fuse",
        "exactrank.compare",
        "exactrank.rankers",
        "exactrank.export",
        "exactrank.learning.trees",
        "exactrank.learning.training",
    )
    others = ("torch", "onnx", "pandas", "polars", "pyarrow", "matplotlib", "lightgbm", "xgboost", "catboost", "sklearn", "scipy")
    assert not {name for name in modules if name.startswith((*(f"{each}." for each in above), *others))}


def test_a_fusion_imports_no_other_reader(tmp_path):
    fuse(random_systems(2, queries=6), folds=0, bootstrap=0).save(tmp_path / "f.json")
    kind, modules = loaded_in_new_process(tmp_path / "f.json")
    assert kind == "Fusion"
    assert readers(modules) == {"exactrank.models.formats.content"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
def test_our_own_files_are_recognized_in_every_encoding_of_json(tmp_path, encoding):
    model = er.Model(er.models.Linear(np.array([2.0, -1.0]), ("bm25", "length")))
    (tmp_path / "m.json").write_bytes(("\n " + model.to_bytes().decode()).encode(encoding))
    assert er.load(tmp_path / "m.json").to_bytes() == model.to_bytes()


def test_a_file_that_names_an_unknown_format_is_refused(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({"format": "exactrank-forest", "weights": [1.0]}))
    with pytest.raises(er.errors.DataError, match="the format is 'exactrank-forest'; expected 'exactrank-model'"):
        er.load(tmp_path / "m.json")


def test_what_is_loaded_may_be_expected(tmp_path):
    er.Model(er.models.Linear(np.array([2.0]))).save(tmp_path / "m.json")
    assert isinstance(er.load(tmp_path / "m.json", kind=er.Model), er.Model)
    with pytest.raises(er.errors.IncompatibleError, match=r"m\.json is a model, not a fusion"):
        er.load(tmp_path / "m.json", kind=er.Fusion)


def test_every_format_of_ours_has_a_reader():
    assert all(callable(OWN_FORMATS[name].read) for name in OWN_FORMATS)
