"""The pictures of `er.inspect.smoothness`: what they say, how large they are, and which cannot be."""

import sys

import numpy as np
import pytest

import exactrank as er
from exactrank.errors import DataError, IncompatibleError, OutputExistsError
from exactrank.inspect.smoothness import smoothness
from tests.inspect.test_smoothness import NAMES, judged, linear, network


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures(tmp_path, suffix, start):
    path = tmp_path / f"picture.{suffix}"
    result = smoothness(judged(), linear(), samples=[])
    result.plot(path=path)
    assert path.read_bytes()[:4] == start
    with pytest.raises(OutputExistsError):
        result.plot(path=path)


@pytest.mark.parametrize("model", [linear(), network()], ids=["linear", "network"])
def test_a_picture_says_what_is_exact_and_what_is_sampled(tmp_path, model):
    smoothness(judged(), model, samples=[5], points=5).plot(path=tmp_path / "p.svg")
    text, is_network = (tmp_path / "p.svg").read_text(), model.scorer.kind == "network"
    for message in ("exact: every step", "12 queries", "5 queries", "the model", "unit 4" if is_network else "dense"):
        assert f"<!-- {message} -->" in text
    assert ("<!-- sampled: 5 points -->" in text) == is_network


def test_a_picture_of_many_steps_is_small(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2)).astype(np.float32)
    data = er.RankingData.from_arrays(X, rng.integers(0, 3, 6000), group=[100] * 60, feature_names=NAMES[:2])
    result = smoothness(data, er.Model(er.models.Linear(np.array([1.0, 1.0]), NAMES[:2])), measure="nDCG", samples=[])
    assert min(curve.steps.count for curve in result.curves) > 20_000
    result.plot(path=tmp_path / "many.svg")
    assert (tmp_path / "many.svg").stat().st_size < 500_000


def test_pictures_that_cannot_be(tmp_path, monkeypatch):
    result = smoothness(judged(), linear(), samples=[])
    with pytest.raises(DataError, match="names no kind of picture"):
        result.plot(path=tmp_path / "a.bmp")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(IncompatibleError, match=r"pip install 'exactrank\[report\]'"):
        result.plot(path=tmp_path / "a.png")
