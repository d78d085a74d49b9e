"""Claims, for 300 trees of 31 leaves on 136 features: every target writes them in less than 2 s, or says that it cannot express them; and
exactrank scores a query of 100 documents on one core in less than 0.1 ms, faster than ONNX Runtime and LightGBM do the same trees, a
linear model in less than 20 us, and a blend of both in less than 0.2 ms.

ONNX Runtime gets the export of the model in doubles, which gives the same bits, and in floats.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from bench_tree_latency import FEATURES, LEAVES, TREES, lightgbm, rows
from timing import best, in_yards, interleaved, pin, table

import exactrank as er
from exactrank.models.sum import sum_of
from exactrank.models.targets import TARGETS


def exports(trees: er.models.TreeEnsemble) -> None:
    """Measure how long each target takes, on a linear model if it refuses trees."""
    linear, printed, times = er.models.Linear(np.linspace(-1, 1, FEATURES), trees.feature_names), [], {}
    for name in TARGETS:
        try:
            export, scorer = er.export(trees, name), trees
        except er.errors.IncompatibleError:
            export, scorer = er.export(linear, name), linear
        times[name] = best(lambda scorer=scorer, name=name: er.export(scorer, name), 3)
        what = f"{TREES} trees of {LEAVES} leaves" if scorer is trees else "a linear model; it cannot express that many trees"
        printed.append([name, what, f"{times[name]:.3f}", f"{len(export.content) / 1e6:.2f}"])
    table("targets", "Exports, one core", ["target", "model", "s", "MB"], printed, in_yards(times))


def session(model: er.Model, X: np.ndarray, numbers: str) -> Callable[[], np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = onnxruntime.InferenceSession(er.export(model, "onnx", numbers=numbers).content, options, providers=["CPUExecutionProvider"])
    arguments = {"x": X.astype(np.float64 if numbers == "double" else np.float32)}
    return lambda: made.run(["score"], arguments)[0][:, 0]


def scoring(trees: er.models.TreeEnsemble, booster: object, documents: int = 100) -> None:
    """Scoring one query from Python, by each that can."""
    X, _ = rows(documents, 1)
    linear = er.models.Linear(np.linspace(-1, 1, FEATURES))
    printed, costs = [], {}
    for what, scorer in (("trees", trees), ("linear", linear), ("blend of both", sum_of([trees, linear], [1.0, 0.5]))):
        works: dict[str, Callable[[], np.ndarray]] = {
            "exactrank": lambda scorer=scorer: scorer.score(X, threads=1),
            "ONNX Runtime, double": session(er.Model(scorer), X, "double"),
            "ONNX Runtime, float": session(er.Model(scorer), X, "float"),
        }
        if what == "trees":
            works["LightGBM"] = lambda: booster.predict(X, raw_score=True, num_threads=1)
            assert np.array_equal(works["ONNX Runtime, double"](), works["exactrank"]())
        times = interleaved(works, 300)
        costs[what] = times["exactrank"] / times["ONNX Runtime, double"]
        printed += [[what, name, f"{1e6 * t:.0f}", f"{t / times['exactrank']:.1f}"] for name, t in times.items()]
    title = f"One query of {documents} documents, {TREES} trees of {LEAVES} leaves and {FEATURES} features, one core"
    table("scoring", title, ["model", "tool", "us", "time / ours"], printed, costs)


def main() -> None:
    pin(1)
    booster = lightgbm(TREES, LEAVES)
    names = tuple(f"f{number}" for number in range(FEATURES))
    trees = replace(er.models.TreeEnsemble.of_lightgbm(booster.model_to_string()), feature_names=names)
    exports(trees)
    scoring(er.models.TreeEnsemble.of_lightgbm(booster.model_to_string()), booster)


if __name__ == "__main__":
    sys.exit(main())
