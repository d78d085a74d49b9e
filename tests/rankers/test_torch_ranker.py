"""TorchRanker: the ready perceptron and modules of users as rankers, and their models as data (laws of all rankers: test_rankers.py)."""

import base64
import json
import re
import struct
import sys
from functools import partial

import numpy as np
import pytest
import safetensors.numpy

import exactrank as er
from tests.cli.test_cli import called

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
QUICK = {"hidden": (16, 8), "max_iter": 6, "learning_rate": 0.01}


def judged(seed=0, queries=30, documents=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 4))
    good = X @ [1.5, -1.0, 0.5, 0.0] + 2 * np.abs(X[:, 3]) + 0.3 * rng.normal(size=len(X))
    return er.RankingData.from_arrays(X, np.digitize(good, [1.0, 2.0, 3.0]), qid=np.arange(len(X)) // documents)


class Two(torch.nn.Module):
    """A module of a user, with a buffer that training moves."""

    def __init__(self, n_features, units=8):
        super().__init__()
        self.norm, self.within = torch.nn.BatchNorm1d(n_features), torch.nn.Linear(n_features, units)
        self.out = torch.nn.Linear(units, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.within(self.norm(x))))


def two_linear_layers(n_features):
    return torch.nn.Sequential(torch.nn.Linear(n_features, 8), torch.nn.Linear(8, 1))


def test_a_perceptron_is_loaded_from_its_file_alone_and_scores_the_same_bits(tmp_path):
    data = judged()
    ranker = er.TorchRanker(**QUICK).fit(data)
    ranker.save(tmp_path / "m.json")
    model = er.load(tmp_path / "m.json")
    assert model.predict(data).tobytes() == ranker.predict(data).tobytes()
    assert model.to_bytes() == ranker.model_.to_bytes()
    assert (ranker.model_.scorer.kind, repr(model.scorer)) == ("deep", "Deep(16 x 8, 4 features)")
    tensors = safetensors.numpy.load(base64.b64decode(json.loads((tmp_path / "m.json").read_text())["scorer"]["nets"][0]["tensors"]))
    assert tensors["layers.0.linear.weight"].shape == (16, 4)


def test_the_numbers_are_those_of_pytorch():
    from exactrank.torch.epochs import mlp

    data = judged()
    (net,) = er.TorchRanker(**QUICK).fit(data).model_.scorer.nets
    module = mlp(4, (16, 8), 0.0).double().eval()
    module.load_state_dict({name: torch.tensor(own) for name, own in net.tensors.items() if name not in ("mean", "scale")})
    with torch.no_grad():
        theirs = module(torch.from_numpy(net.inputs(data.X)))[:, 0].numpy()
    assert np.allclose(net.function(net.inputs(data.X)), theirs, rtol=1e-12, atol=1e-12)
    assert np.allclose(net.inputs(data.X).mean(axis=0), 0, atol=1e-12)
    assert np.allclose(net.inputs(data.X).std(axis=0), 1)


def test_a_score_depends_on_its_row_alone():
    data = judged(queries=200)
    model = er.TorchRanker(**QUICK | {"max_iter": 1}).fit(data).model_
    whole, X = model.predict(data), data.X
    for rows in (slice(0, 1), slice(3, 7), slice(500, 1100), slice(None, None, -1)):
        assert np.array_equal(model.predict(X[rows], threads=1), whole[rows])


def test_the_same_seed_gives_the_same_bits_and_pytorchs_generator_is_left_alone():
    data, valid = judged(), judged(1)
    torch.manual_seed(7)
    first = torch.rand(3)
    torch.manual_seed(7)
    threads, results = torch.get_num_threads(), []
    for count in (1, 2, 1):
        torch.set_num_threads(count)
        results.append(er.TorchRanker(**QUICK, dropout=0.2).fit(data, valid=valid).model_.to_bytes())
    torch.set_num_threads(threads)
    assert torch.equal(torch.rand(3), first)
    assert len(set(results)) == 1
    assert er.TorchRanker(**QUICK, dropout=0.2, seed=1).fit(data, valid=valid).model_.to_bytes() != results[0]


def test_early_stopping_keeps_the_best_epoch(monkeypatch):
    monkeypatch.setattr("exactrank.learning.training.selection.WINDOW", 1)  # each epoch counts by itself
    data, valid = judged(), judged(1)
    ranker = er.TorchRanker(**QUICK | {"max_iter": 60, "learning_rate": 0.05}, patience=3).fit(data, valid=valid)
    values = [step.valid for step in ranker.history_]
    assert len(values) < 61
    assert ranker.model_.training["valid"] == max(values) == ranker.score(valid)
    assert max(values) == max(values[:-3])


def test_training_that_is_resumed_is_the_same_to_the_bit(monkeypatch):
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", -1.0)
    data, models = judged(), []

    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    for arguments in ({}, {"lambdas": "sampled"}, {"dropout": 0.3}):
        whole = er.TorchRanker(**QUICK, **arguments).fit(data)
        with pytest.warns(er.errors.InterruptedWarning):
            er.TorchRanker(**QUICK, **arguments).fit(data, checkpoint=models.append, progress=stop)
        again = er.TorchRanker(**QUICK, **arguments).fit(data, resume=models[-1])
        assert again.model_.to_bytes() == whole.model_.to_bytes()


def test_weights_of_queries_count():
    data = judged()
    heavy = np.where(np.arange(30) < 15, 1.0, 0.0)
    left_out = er.RankingData.from_arrays(data.X, data.y, group=data.sizes, query_weight=heavy)
    other = data.y.copy()
    other[15 * 8 :] = 3 - other[15 * 8 :]
    turned = er.RankingData.from_arrays(data.X, other, group=data.sizes, query_weight=heavy)
    ours, theirs, all_ = (er.TorchRanker(**QUICK).fit(one).predict(data) for one in (left_out, turned, data))
    assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-12)  # means are added up in another order
    assert not np.allclose(ours, all_, rtol=0.01)
    double = er.RankingData.from_arrays(data.X, data.y, group=data.sizes, query_weight=np.full(30, 2.0))
    assert np.allclose(er.TorchRanker(**QUICK).fit(double).predict(data), all_, rtol=1e-4, atol=1e-5)


def test_missing_values_are_refused_or_filled(tmp_path):
    data = judged()
    X = data.X.copy()
    X[5, 2] = np.nan
    holes = er.RankingData.from_arrays(X, data.y, group=data.sizes)
    with pytest.raises(er.errors.DataError, match="1 values are missing"):
        er.TorchRanker(**QUICK).fit(holes)
    ranker = er.TorchRanker(**QUICK, missing="mean").fit(holes)
    assert np.all(np.isfinite(ranker.predict(X)))
    ranker.save(tmp_path / "m.json")
    assert np.array_equal(er.load(tmp_path / "m.json").predict(X), ranker.predict(X))


def test_any_objective_of_scores_and_any_measure():
    data = judged()
    for arguments in ({"lambdas": er.losses.ListNetLoss()}, {"measure": "AP"}, {"lambdas": "finite-difference", "measure": "ERR"}):
        ranker = er.TorchRanker(**QUICK | {"max_iter": 15}, **arguments).fit(data)
        assert ranker.score(data) > er.Ridge(arguments.get("measure", "nDCG@10")).fit(data).score(data)


def test_a_module_of_ones_own(tmp_path):
    data, valid = judged(), judged(1)
    ranker = er.TorchRanker(module=partial(Two, units=12), max_iter=20, learning_rate=0.02).fit(data, valid=valid)
    assert ranker.score(valid) > er.Ridge().fit(data).score(valid)
    ranker.save(tmp_path / "m.json")
    with pytest.raises(er.errors.IncompatibleError, match=r"test_torch_ranker:Two, and code that a file names is never run;.* module=Two"):
        er.load(tmp_path / "m.json")
    for module in (Two, Two(4, units=12), {f"{__name__}:Two": Two}):
        assert np.array_equal(er.load(tmp_path / "m.json", module=module).predict(valid), ranker.predict(valid))
    with pytest.raises(er.errors.IncompatibleError, match="does not fit the tensors"):
        er.load(tmp_path / "m.json", module=Two(4, units=5))
    instance = Two(4)
    before = {name: own.clone() for name, own in instance.state_dict().items()}
    er.TorchRanker(module=instance, max_iter=2).fit(data)
    assert all(torch.equal(own, before[name]) for name, own in instance.state_dict().items())


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda features: torch.nn.Linear(features, 2), r"gives a tensor of shape \(2, 2\) for 2 documents; it must give one score"),
        (lambda features: torch.nn.Linear(features + 1, 1), "cannot read two documents of 4 features"),
        (lambda features: torch.nn.ReLU(), "no parameters that could be trained"),
        (lambda features: "a module", "not a torch.nn.Module"),
    ],
)
def test_bad_modules_are_named(module, message):
    with pytest.raises(er.errors.IncompatibleError, match=message):
        er.TorchRanker(module=module).fit(judged())


def test_bad_settings_are_named():
    data = judged()
    for arguments, message in (
        ({"hidden": (8, 0)}, "at least one unit"),
        ({"device": "nowhere"}, "is not a PyTorch device"),
        ({"module": "AP"}, "neither an nn.Module nor a function that makes one; if it is the measure, give measure='AP'"),
        ({"module": Two, "dropout": 0.5}, "dropout=0.5 has no effect"),
        ({"module": partial(Two, 4)}, "give them by name"),
        ({"module": partial(Two, units=np.int64(3))}, "cannot be written to a model file"),
    ):
        with pytest.raises(er.errors.SettingError, match=message):
            er.TorchRanker(**arguments).fit(data)
    if not torch.cuda.is_available():
        with pytest.raises(er.errors.IncompatibleError, match="PyTorch finds no GPU"):
            er.TorchRanker(device="cuda").fit(data)


def test_a_learning_rate_that_diverges_is_told_and_the_best_is_kept():
    with pytest.warns(match="a learning rate of 1e\\+30 diverged in epoch 1"):
        ranker = er.TorchRanker(module=two_linear_layers, learning_rate=1e30, weight_decay=0.0, batch_size=10).fit(judged())
    assert np.all(np.isfinite(ranker.predict(judged())))


def test_in_a_comparison_a_blend_and_a_bag(tmp_path):
    data = judged(queries=12)
    comparison = er.compare(
        data, [er.TorchRanker(**QUICK | {"max_iter": 1}), er.TorchRanker(module=Two, max_iter=1)], folds=3, workers=1, threads=1
    )
    assert comparison.complete
    assert "failed" not in str(comparison)
    blend = er.Blend(members=["ridge", er.TorchRanker(**QUICK | {"max_iter": 1})], bags=3).fit(data)
    assert blend.estimate_.mean > 0.5
    bag = er.TorchRanker(**QUICK | {"max_iter": 1}, bags=2).fit(data)
    assert len(bag.model_.scorer.nets) == 2
    for number, first in enumerate((blend, bag)):
        first.save(tmp_path / f"{number}.json")
        assert np.array_equal(er.load(tmp_path / f"{number}.json").predict(data), first.predict(data))


def forged(record, **changes):
    return record | {"scorer": record["scorer"] | {"nets": [record["scorer"]["nets"][0] | changes]}}


def test_a_forged_file_is_refused_and_runs_nothing(tmp_path):
    er.TorchRanker(**QUICK | {"max_iter": 1}).fit(judged()).save(tmp_path / "m.json")
    record = json.loads((tmp_path / "m.json").read_text())
    tensors = safetensors.numpy.load(base64.b64decode(record["scorer"]["nets"][0]["tensors"]))

    def written(changed):
        return base64.b64encode(safetensors.numpy.save(changed)).decode()

    content = safetensors.numpy.save(tensors)
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header["output.weight"]["data_offsets"][1] += 4
    text = json.dumps(header).encode()
    shifted = base64.b64encode(struct.pack("<Q", len(text)) + text + content[8 + length :]).decode()
    cases = {
        "are not base64": {"tensors": "no base64!"},
        "not base64; train": {"tensors": "größe"},
        "cannot be read .*header": {"tensors": base64.b64encode(b"\x80\x04cos\nsystem\n").decode()},
        "cannot be read": {"tensors": shifted},
        "cannot be read .*not fully covered": {"tensors": base64.b64encode(content + b"xxxx").decode()},
        "not finite": {"tensors": written(tensors | {"mean": np.full(4, np.nan)})},
        "layer 0 has weights": {"tensors": written(tensors | {"layers.0.linear.weight": np.zeros((16, 3), np.float32)})},
        "output.weight": {"tensors": written({name: own for name, own in tensors.items() if name != "output.weight"})},
        "expected 11": {"tensors": written(tensors | {"more": np.zeros(1)})},
        "the transform is": {"transform": "exec"},
        "the weight of a network": {"weight": "1"},
        "weight of a network is 1": {"weight": 10**400},
    }
    for message, changes in cases.items():
        (tmp_path / "forged.json").write_text(json.dumps(forged(record, **changes)))
        with pytest.raises(er.errors.DataError, match=rf"forged\.json: .*{message}"):
            er.load(tmp_path / "forged.json")
    (tmp_path / "forged.json").write_text(json.dumps(forged(record, module="os:system", arguments={"command": "true"})))
    with pytest.raises(er.errors.IncompatibleError, match="never run"):
        er.load(tmp_path / "forged.json")
    with pytest.raises(er.errors.IncompatibleError, match="has no module of your own"):
        er.load(tmp_path / "m.json", module=Two)


def test_onnx_runtime_scores_a_perceptron_as_its_model_does():
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    data = judged()
    far = er.RankingData.from_arrays(1e9 + np.round(1000 * data.X.astype(np.float64)), data.y, group=data.sizes)
    assert far.offset is not None
    blend = er.Blend(members=["mart(trees=3)", er.TorchRanker(**QUICK | {"max_iter": 2})], bags=3, missing="mean")
    for ranker, own in ((er.TorchRanker(**QUICK), data), (er.TorchRanker(**QUICK, missing="mean", transform="none"), far), (blend, data)):
        written = er.export(ranker.fit(own), "onnx")
        check = written.check(own)
        assert (check.beyond_rounding, check.changed_top) == (0, 0)
        assert check.largest < 1e-9
    small = er.export(er.TorchRanker(**QUICK).fit(data), "onnx", numbers="float").check(data)
    assert small.beyond_rounding == 0
    assert 0 < small.largest < 1e-3
    with pytest.raises(er.errors.IncompatibleError, match="sql cannot express deep networks; train"):
        er.export(er.TorchRanker(**QUICK).fit(data), "sql")


class Gated(torch.nn.Module):
    """Scores without a second dimension, and operators of several kinds."""

    def __init__(self, n_features):
        super().__init__()
        self.value, self.norm = torch.nn.Linear(n_features, 6), torch.nn.LayerNorm(6)

    def forward(self, x):
        h = self.norm(torch.nn.functional.gelu(self.value(x)))
        return (h * torch.sigmoid(h)).sum(1)


class Unknown(torch.nn.Module):
    """What ONNX has no operator for."""

    def __init__(self, n_features):
        super().__init__()
        self.value = torch.nn.Linear(n_features, 1)

    def forward(self, x):
        return torch.special.i0(self.value(x))


@pytest.mark.parametrize("module", [Two, Gated, two_linear_layers], ids=lambda module: module.__name__)
def test_onnx_runtime_scores_a_module_as_pytorch_does(module):
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    data = judged()
    X = data.X.copy()
    X[3, 1] = np.nan
    holes = er.RankingData.from_arrays(X, data.y, group=data.sizes)
    own = er.TorchRanker(module=module, max_iter=2, missing="mean").fit(holes)
    blend = er.Blend(members=["mart(trees=3)", er.TorchRanker(module=module, max_iter=2)], bags=3, missing="mean").fit(data)
    for ranker, numbers in ((own, "double"), (own, "float"), (blend, "double")):
        written = er.export(ranker, "onnx", numbers=numbers)
        session = runtime.InferenceSession(written.content, providers=["CPUExecutionProvider"])
        (result,) = session.run(["score"], {"x": X.astype(np.float64 if numbers == "double" else np.float32)})
        expected = ranker.predict(X)
        assert np.allclose(result[:, 0], expected, rtol=1e-5, atol=1e-5)
        assert np.ptp(expected) > 0.1
        assert written.check(holes).beyond_rounding == 0
        assert any("computes in float32, as PyTorch does" in remark for remark in written.remarks)


def test_what_onnx_cannot_express_is_named():
    pytest.importorskip("onnx", reason="ONNX is not installed")
    ranker = er.TorchRanker(module=Unknown, max_iter=1).fit(judged())
    with pytest.raises(er.errors.IncompatibleError, match=r"cannot write .*:Unknown as ONNX: .*i0"):
        er.export(ranker, "onnx")
    with pytest.raises(er.errors.IncompatibleError, match="solr cannot express deep networks"):
        er.export(ranker, "solr")


NETS = """
import torch

class Outer:
    class Gated(torch.nn.Linear):
        def __init__(self, n_features):
            super().__init__(n_features, 1)

number = 3
"""


@pytest.fixture
def gated(tmp_path, monkeypatch):
    """A folder with the module of a user, a model of it and data."""
    (tmp_path / "my_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    from my_nets import Outer

    er.TorchRanker(module=Outer.Gated, max_iter=1).fit(judged()).save("m.json")
    er.write(judged(), "data.xr")
    yield tmp_path
    del sys.modules["my_nets"]


def test_the_commands_take_a_module_by_its_name(gated):
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    arguments = ("m.json", "--module", "my_nets:Outer.Gated")
    model = er.load("m.json", module=sys.modules["my_nets"].Outer.Gated)
    assert "documents that differ by more than rounding │ 0" in called(
        0, "export", *arguments, "--to", "onnx", "--out", "m.onnx", "--check", "data.xr"
    )
    assert (gated / "m.onnx").read_bytes() == er.export(model, "onnx").content
    called(0, "predict", *arguments[:1], "data.xr", *arguments[1:], "--out", "scores.txt")
    assert np.array_equal(np.loadtxt("scores.txt"), model.predict(judged()))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "the model is a module of your own, my_nets:Outer.Gated, .* or --module MODULE:Gated of exactrank export and predict"),
        (["--module", "my_nets"], "--module 'my_nets' does not name a module and an object in it; write MODULE:NAME, e.g. my_nets:Gated"),
        (["--module", "my_nets:Gatd"], r"my_nets cannot be imported, or has no Gatd \(AttributeError: .*\); give a module that Python"),
        (["--module", "no_nets:Gated"], r"no_nets cannot be imported, or has no Gated \(ModuleNotFoundError"),
        (["--module", "my_nets:number"], "module is 3; give an nn.Module, or the function or class that makes one"),
    ],
)
def test_a_module_that_the_commands_cannot_take(gated, options, says):
    message = " ".join(called(2, "export", "m.json", "--to", "onnx", "--out", "m.onnx", *options).split())
    assert re.search(says, message), message
    assert not (gated / "m.onnx").exists()


def test_a_module_needs_pytorch(gated, monkeypatch):
    trained = er.load("m.json", module=sys.modules["my_nets"].Outer.Gated)
    monkeypatch.setitem(sys.modules, "torch", None)
    message = "need torch, which is not installed; pip install 'exactrank[torch]'"
    assert message in called(2, "export", "m.json", "--to", "onnx", "--out", "m.onnx", "--module", "my_nets:Outer.Gated")
    with pytest.raises(er.errors.IncompatibleError, match=re.escape(message)):
        er.export(trained, "onnx")


@pytest.mark.parametrize("given", [{"hidden": (16, 8)}, {"module": Two}, {"module": Two, "transform": "none"}])
def test_training_goes_on_from_a_model(given):
    data, other = judged(), judged(1)
    first = er.TorchRanker(**given, max_iter=4, learning_rate=0.01).fit(data)
    still = er.TorchRanker(**given, max_iter=1, learning_rate=1e-12, weight_decay=0.0).fit(other, start=first.model_)
    if "module" not in given:  # in Two the statistics of batches move without a learning rate
        assert np.allclose(still.predict(data), first.predict(data), atol=1e-5)
    more = er.TorchRanker(**given, max_iter=4, learning_rate=0.01).fit(data, start=first.model_)
    anew = er.TorchRanker(**given, max_iter=4, learning_rate=0.01).fit(data)
    assert more.history_[0].value == pytest.approx(first.score(data), abs=1e-6)
    assert more.history_[0].value > anew.history_[0].value


def test_a_start_of_another_form_is_named():
    data = judged()
    start = er.TorchRanker(**QUICK).fit(data).model_
    for arguments in ({"hidden": (16,)}, {"module": Two}, {"hidden": (16, 8), "transform": "none"}):
        with pytest.raises(er.errors.IncompatibleError, match=r"start from is 16 x 8 with transform='log1p'; give the same module, hidden"):
            er.TorchRanker(**arguments).fit(data, start=start)
    with pytest.raises(er.errors.IncompatibleError, match="goes on from a deep model, and the start is a linear model"):
        er.TorchRanker().fit(data, start=er.Ridge().fit(data).model_)


def test_a_module_is_tuned_and_in_a_blend(tmp_path):
    data = judged(queries=12)
    own = er.TorchRanker(module=Two, max_iter=1)
    tuned = er.tune(data, own, trials=2, folds=2, workers=1, threads=1)
    assert len(tuned.trials) == 2
    assert tuned.ranker.module is Two
    blend = er.Blend(members=["ridge", own], bags=3).fit(data)
    blend.save(tmp_path / "b.json")
    assert np.array_equal(er.load(tmp_path / "b.json", module=Two).predict(data), blend.predict(data))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch can use")
@pytest.mark.parametrize("given", [{"hidden": (16, 8), "dropout": 0.2}, {"module": Two}], ids=["perceptron", "module"])
def test_on_a_gpu_it_learns_the_same_and_gives_the_same_bits_twice(given):
    data, valid = judged(queries=60), judged(1, queries=60)
    there, again, here = (
        er.TorchRanker(**given, max_iter=10, learning_rate=0.01, device=device).fit(data, valid=valid) for device in ("cuda", "cuda", "cpu")
    )
    assert there.model_.to_bytes() == again.model_.to_bytes()
    assert there.score(valid) == pytest.approx(here.score(valid), abs=0.05)
    assert there.model_.training["valid"] == pytest.approx(there.score(valid), abs=1e-3)  # scored on the processor, in another precision
    assert np.all(np.isfinite(er.TorchRanker(**given, max_iter=2, device="cuda").fit(data, start=here.model_).predict(valid)))
