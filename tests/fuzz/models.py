"""Model files: JSON of every kind of scorer, trees with some of their arrays changed, and LightGBM's text with sizes that fit."""

import json
import re
import struct
import zlib
from base64 import b64decode, b64encode
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import safetensors.numpy

import exactrank as er
from exactrank.models.deep import Deep, Net
from exactrank.models.model import Model
from tests.fuzz.mutations import ODD_WORDS, changed_json, mutated, one_of, soup
from tests.fuzz.target import Target, require

JSON = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"weights"',
    b'"kind"',
    b'"format"',
    b'"exactrank-model"',
    b"1",
    b"0.5",
    b"null",
    b"true",
    b'"x"',
]
JSON += [b"NaN", b"Infinity", b"1e999", b"[" * 5000, b'{"a":' * 3000, *ODD_WORDS]
WIDEST = 10_000  #: features of a model that is tried on rows


@cache
def good_models() -> list[Any]:
    """A model of every kind of scorer, as JSON, and weights from elsewhere."""
    rng = np.random.default_rng(0)
    data = er.RankingData.from_arrays(rng.normal(size=(60, 3)), rng.integers(0, 3, 60), group=[10] * 6, feature_names=["a", "b", "c"])
    rankers = [er.Ridge(), er.RankNet(hidden=2, max_iter=1), er.LambdaMART(trees=3, leaves=3), er.RankBoost(max_iter=2)]
    with TemporaryDirectory() as folder:
        for i, ranker in enumerate(rankers):
            ranker.fit(data).save(Path(folder) / f"{i}.json")
        trained = [json.loads((Path(folder) / f"{i}.json").read_bytes()) for i in range(len(rankers))]
    categories = json.loads(Model(er.models.TreeEnsemble.of_lightgbm(good_trees())).to_bytes())
    return [*trained, categories, {"bm25": 0.7, "dense": 0.3}, {"weights": {"a": 1, "b": 2}, "missing": "zero"}, [0.5, 1]]


@cache
def good_trees() -> str:
    """A LightGBM text with numerical and categorical splits."""
    import lightgbm as lgb

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(80, 2)), rng.integers(0, 4, 80)])
    settings = {"min_data_in_leaf": 2, "num_leaves": 4, "verbose": -1, "num_threads": 1, "min_data_per_group": 2, "cat_smooth": 1}
    data = lgb.Dataset(X, label=X[:, 0] + (X[:, 2] == 2), categorical_feature=[2], params={"verbose": -1})
    return str(lgb.train(settings, data, num_boost_round=3).model_to_string())


def model_json(rng: np.random.Generator) -> bytes:
    """A good model with parts of it changed, as JSON or as bytes; or marks at random."""
    if rng.random() < 0.2:
        return soup(rng, JSON, 40)
    model = one_of(rng, good_models())
    if rng.random() < 0.5:
        return mutated(rng, json.dumps(model).encode(), JSON)
    return json.dumps(changed_json(rng, model)).encode()


def tree_json(rng: np.random.Generator) -> bytes:
    """A model of trees in which a few numbers of one tree are others, mostly ones that its arrays could have."""
    record = deepcopy(one_of(rng, [good_models()[2], good_models()[4]]))
    tree = one_of(rng, record["scorer"]["trees"])
    for _ in range(rng.integers(1, 4)):
        values = tree[one_of(rng, [name for name in tree if name != "weight"])]
        at, other = (
            int(rng.integers(len(values) + 1)),
            one_of(rng, [*range(-6, 14), 0.5, 1e300, "inf", "-inf", "nan", [], [3], [99, 99], 2**31]),
        )
        values[at : at + int(rng.integers(1, 3))] = [other] if rng.random() < 0.9 else []
    return json.dumps(record).encode()


def lightgbm_text(rng: np.random.Generator) -> bytes:
    """A good text with lines or bytes changed, mostly with the sizes made right again."""
    text = good_trees()
    if rng.random() < 0.3:
        return mutated(rng, text.encode())
    lines = text.split("\n")
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(lines.index("end of trees")))
        lines[at] = _changed_line(rng, lines[at])
    return with_sizes("\n".join(lines)).encode("utf-8", "surrogateescape")


def _changed_line(rng: np.random.Generator, line: str) -> str:
    name, equals, values = line.partition("=")
    words = values.split(" ")
    at = int(rng.integers(len(words)))
    odd = one_of(
        rng, [w.decode("utf-8", "surrogateescape") for w in ODD_WORDS] + ["0", "1", "-1", "-2", "-3", "2", "3", "9", "12", "1e300"]
    )
    words[at : at + int(rng.integers(2))] = [odd] if rng.random() < 0.8 else []
    return name + equals + " ".join(words)


def with_sizes(text: str) -> str:
    """``text`` with the number of characters that each tree now has."""
    trees = re.findall(r"^Tree=.*?(?=^Tree=|^end of trees)", text, re.MULTILINE | re.DOTALL)
    return re.sub(
        r"^tree_sizes=.*$", lambda _: "tree_sizes=" + " ".join(str(len(tree)) for tree in trees), text, count=1, flags=re.MULTILINE
    )


def use_model(path: Path) -> None:
    """Load, score, save, load and score alike."""
    model = er.load(path)
    if model.scorer.n_features > WIDEST:
        return
    rows = np.random.default_rng(0).normal(size=(5, model.scorer.n_features)).astype(np.float32)
    again = path.with_suffix(".again")
    model.save(again, force=True)
    require(_same(_scores(model, rows), _scores(er.load(again), rows)), "a saved model scores as before")
    if isinstance(model.scorer, er.models.TreeEnsemble) and not isinstance(scores := _scores(model, rows), str):
        parts = model.scorer.contributions(rows if model.scorer.missing == "keep" else np.nan_to_num(rows))
        size = np.abs(model.scorer.table.leaf_value).sum()
        require(bool(np.all(np.abs(parts.sum(axis=1) - scores) <= 1e-9 * size)), "contributions add up to the score")


def _scores(model: Model, rows: Any) -> Any:
    try:
        return model.predict(rows)
    except er.errors.ExactRankError as error:
        return str(error)


def _same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and (first == second if isinstance(first, str) else np.array_equal(first, second))


@cache
def good_imports() -> list[str]:
    """Models that other libraries saved."""
    return [one["model"] for one in json.loads((Path(__file__).parents[1] / "golden" / "imports.json").read_text())]


def imported(rng: np.random.Generator) -> bytes:
    """A model of another library with parts of it changed, as JSON, as UBJSON or as bytes."""
    model = one_of(rng, good_imports())
    if not model.startswith("{") or rng.random() < 0.3:
        tags = [b"<split>", b"</split>", b"<output> 1 </output>", b'<tree id="1" weight="1">', b"<feature> 10000000 </feature>"]
        return mutated(rng, model.encode(), [*JSON, *tags, b" 10000000:1", b'"50000000"'])
    if rng.random() < 0.5:
        return json.dumps(changed_json(rng, json.loads(model))).encode("utf-8", "surrogatepass")
    lists = [b"[$d#L", b"[$Z#I\x08\x00" * 99, b"{#L", b"[#U\xff", b"[" * 300]
    return mutated(rng, _ubjson(json.loads(model)), [*lists, b"L" + b"\x7f" * 8, b"}", b"]", b"Z", b"S"])


def _ubjson(value: Any) -> bytes:
    match value:
        case bool():
            return b"T" if value else b"F"
        case int():
            return b"L" + struct.pack(">q", value)
        case float():
            return b"d" + struct.pack(">f", value)
        case str():
            return b"SL" + struct.pack(">q", len(value.encode())) + value.encode()
        case list():
            return b"[#L" + struct.pack(">q", len(value)) + b"".join(map(_ubjson, value))
    return b"{" + b"".join(_ubjson(name)[1:] + _ubjson(item) for name, item in value.items()) + b"}"


@cache
def good_graphs() -> list[bytes]:
    """Models of every kind as ONNX graphs, with operators of trees of either version."""
    folder = Path(__file__).parents[1]
    models = [Model.from_record(record, str(folder)) for record in good_models()[:4]]
    return [er.export(model, "onnx", ml_opset=version).content for model in models for version in (3, 5)]


def onnx_graph(rng: np.random.Generator) -> bytes:
    """A good file with bytes of it changed, or with another model packed into it."""
    content = one_of(rng, good_graphs())
    if rng.random() < 0.5:
        return _repacked(rng, content)
    words = [b"TreeEnsemble", b"ai.onnx.ml", b"x", b"score", b"\x08\x01", b"\x12\x00", b"\xff" * 9 + b"\x01", b"LEAF"]
    return b"\x08" + mutated(rng, content[1:], words)


def _repacked(rng: np.random.Generator, content: bytes) -> bytes:
    """The file ``content`` whose packed model was changed, before or after it was packed."""
    import onnx

    file = onnx.load_from_string(content)
    entry = next(entry for entry in file.metadata_props if entry.key == "model")
    packed = zlib.compress(model_json(rng)) if rng.random() < 0.5 else mutated(rng, b64decode(entry.value), [b"\x78\x9c", b"\x00" * 8])
    entry.value = b64encode(packed).decode()
    return bytes(file.SerializeToString())


@cache
def good_deep() -> tuple[Any, bytes]:
    """The record of a deep model of one network, and its tensors as safetensors."""
    rng, names = np.random.default_rng(0), ("a", "b", "c")
    shapes = {"mean": (3,), "scale": (3,), "layers.0.linear.weight": (4, 3), "output.weight": (1, 4)}
    shapes |= {f"layers.0.{name}": (4,) for name in ("linear.bias", "norm.weight", "norm.bias")}
    net = Net({name: rng.random(shape, np.float32) + 0.1 for name, shape in shapes.items()})
    return json.loads(Model(Deep((net,), names)).to_bytes()), safetensors.numpy.save(dict(net.tensors))


def deep_json(rng: np.random.Generator) -> bytes:
    """A deep model whose tensors, their header or what stands around them were changed."""
    record, content = deepcopy(good_deep()[0]), good_deep()[1]
    net, length = record["scorer"]["nets"][0], int.from_bytes(content[:8], "little")
    kind = rng.random()
    if kind < 0.3:
        return json.dumps(changed_json(rng, record)).encode()
    if kind < 0.5:
        header = json.dumps(changed_json(rng, json.loads(content[8 : 8 + length]))).encode()
        content = len(header).to_bytes(8, "little") + header + content[8 + length :]
    else:
        content = mutated(rng, content, [b'"F32"', b'"I64"', b'"BF16"', b'"shape":[0]', b"\x00" * 8, b"\xff" * 8, *ODD_WORDS])
    net["tensors"] = b64encode(content).decode()
    return json.dumps(record).encode()


TARGETS = [
    Target("deep", ".json", deep_json, use_model),
    Target("onnx", ".onnx", onnx_graph, use_model),
    Target("models", ".json", model_json, use_model),
    Target("trees", ".json", tree_json, use_model),
    Target("lightgbm", ".txt", lightgbm_text, use_model),
    Target("imports", ".model", imported, use_model),
]
