"""Claims, on one core: `Model.predict` of an array, 100 documents x 136 features, takes at most 20 us with a linear model,
0.1 ms with 300 trees of 31 leaves and 0.2 ms with a blend of both, in single and double precision; of a million documents, a linear
model takes at most 1.5 times as long as NumPy's product of the matrix with the weights, in single precision.

Peers are the bare product, LightGBM with the same trees, and ONNX Runtime with a graph of one product.
"""

import sys
from collections.abc import Callable

import lightgbm as lgb
import numpy as np
from threadpoolctl import threadpool_limits
from timing import interleaved, pin, table

import exactrank as er
from exactrank.models.sum import Sum

DOCUMENTS, FEATURES, MANY = 100, 136, 1_000_000
LIMITS = {"linear": 20, "300 trees": 100, "blend": 200}  #: microseconds
Works = dict[str, Callable[[], object]]


def onnx_product(weights: np.ndarray) -> Callable[[np.ndarray], object]:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    x, score = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n]) for name, n in (("x", FEATURES), ("score", 1)))
    product = helper.make_node("MatMul", ["x", "w"], ["score"])
    graph = helper.make_graph([product], "linear", [x], [score], [numpy_helper.from_array(weights[:, np.newaxis], "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda X: session.run(None, {"x": X})


def one_query(models: dict[str, er.Model], peers: dict[str, Works]) -> None:
    X = np.random.default_rng(1).standard_normal((DOCUMENTS, FEATURES), dtype=np.float32)
    doubles, rows, costs = X.astype(np.float64), [], {}
    for name, model in models.items():
        ours: Works = {
            "predict": lambda model=model: model.predict(X, 1),
            "doubles": lambda model=model: model.predict(doubles, 1),
            "score": lambda model=model: model.scorer.score(X, 1),
        }
        times = interleaved(ours | {label: lambda work=work: work(X) for label, work in peers[name].items()}, 1000)
        others = ", ".join(f"{label} {1e6 * times[label]:.1f}" for label in peers[name])
        rows.append([name, *(f"{1e6 * times[way]:.1f}" for way in ours), str(LIMITS[name]), others])
        costs |= {f"{name}, {way}": times[way] / times[next(iter(peers[name]))] for way in ours}
    header = ["model", "`predict`, float32", "`predict`, float64", "`score`", "limit", "peers"]
    table("query", f"{DOCUMENTS} documents x {FEATURES} features, one core, microseconds", header, rows, costs)


def many_documents(model: er.Model, weights: np.ndarray) -> None:
    X = np.random.default_rng(2).standard_normal((MANY, FEATURES), dtype=np.float32)
    with threadpool_limits(1):
        times = interleaved({"exactrank": lambda: model.predict(X, 1), "NumPy": lambda: X @ weights}, 7)
    ratio = times["exactrank"] / times["NumPy"]
    rows = [[name, f"{1e3 * t:.1f}", f"{t / times['NumPy']:.2f}"] for name, t in times.items()]
    table("batch", f"{MANY:,} documents, linear, one core", ["tool", "ms", "time / NumPy's"], rows, {"exactrank": ratio})


def main() -> None:
    pin(1)
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((10_000, FEATURES), dtype=np.float32), rng.standard_normal(FEATURES)
    singles = weights.astype(np.float32)
    settings = {"num_leaves": 31, "verbose": -1, "num_threads": 1}
    booster = lgb.train(settings, lgb.Dataset(X, X[:, :20].sum(axis=1) + np.sin(3 * X[:, 20:40]).sum(axis=1)), 300)
    linear, trees = er.models.Linear(weights), er.models.TreeEnsemble.of_lightgbm(booster.model_to_string())
    scorers = {"linear": linear, "300 trees": trees, "blend": Sum((linear, trees), np.ones(2))}

    def lightgbm(X: np.ndarray) -> object:
        return booster.predict(X, raw_score=True, num_threads=1)

    peers: dict[str, Works] = {
        "linear": {"NumPy": lambda X: X @ singles, "ONNX Runtime": onnx_product(singles)},
        "300 trees": {"LightGBM": lightgbm},
        "blend": {"LightGBM and NumPy": lambda X: lightgbm(X) + X @ singles},
    }
    one_query({name: er.Model(scorer) for name, scorer in scorers.items()}, peers)
    many_documents(er.Model(linear), singles)


if __name__ == "__main__":
    sys.exit(main())
