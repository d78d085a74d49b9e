"""Graphs that were exported here are read as the model that they were made from; all others are refused with a reason."""

import base64
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import DataError
from tests.models.targets.test_export import scorers
from tests.models.targets.test_export_onnx import FORMS, adversarial

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("onnx") / "model.onnx"


def loaded(path, content):
    path.write_bytes(content)
    return er.load(path)


@pytest.mark.parametrize(("ml_opset", "numbers"), FORMS)
def test_what_is_read_is_the_model(path, ml_opset, numbers):
    for scorer in scorers(0):
        model = er.Model(scorer, "nDCG@5")
        content = er.export(model, "onnx", ml_opset=ml_opset, numbers=numbers).content
        again, rows = loaded(path, content), adversarial(scorer, 0)
        assert again.to_bytes() == model.to_bytes()
        np.testing.assert_array_equal(again.scorer.score(rows), scorer.score(rows))
        assert er.export(again, "onnx", ml_opset=ml_opset, numbers=numbers).content == content


def edited(change):
    """The export of a linear model after ``change(file, metadata)``."""
    file = onnx.load_from_string(er.export(scorers(0)[0], "onnx").content)
    change(file, {entry.key: entry for entry in file.metadata_props})
    return file.SerializeToString()


def packed(content):
    return base64.b64encode(zlib.compress(content)).decode()


BAD = {
    "only graphs that exactrank exported can be read": lambda file, known: file.ClearField("metadata_props"),
    "the graph was changed after exactrank exported it": lambda file, known: file.graph.initializer[1].CopyFrom(
        onnx.numpy_helper.from_array(np.zeros((3, 1)), "weights")
    ),
    "the metadata hold no packed model": lambda file, known: setattr(known["model"], "value", "not base64"),
    "incomplete, or larger than": lambda file, known: setattr(
        known["model"], "value", base64.b64encode(base64.b64decode(known["model"].value)[:-9]).decode()
    ),
    "is not a model": lambda file, known: setattr(known["model"], "value", packed(b"{")),
    "expected 'exactrank-model'": lambda file, known: setattr(known["model"], "value", packed(b"{}")),
}


@pytest.mark.parametrize("says", BAD)
def test_foreign_and_damaged_files(path, says):
    with pytest.raises(DataError, match=f"model.onnx.*{says}"):
        loaded(path, edited(BAD[says]))


@settings(max_examples=100)
@given(st.data())
def test_whatever_the_bytes(path, data):
    """Bytes that were changed, cut or put in give a model or a reason."""
    content = bytearray(EXPORTS[data.draw(st.integers(0, 5))])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(1, len(content)))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    with suppress(DataError):
        scorer = loaded(path, bytes(content)).scorer
        scorer.score(np.zeros((2, scorer.n_features), np.float32))


EXPORTS = [er.export(scorer, "onnx").content for scorer in scorers(1)]
