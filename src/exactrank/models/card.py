"""A model's card, in Markdown: origin, quality, settings, features, use and limits.

The names and settings of a model may come from anywhere; they are put into cells of tables, which escape markup.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from exactrank._support.numerics import matmul
from exactrank._support.tables import Cell, Table
from exactrank._support.text import clip
from exactrank.data.alignment import name_list
from exactrank.models.base import Scorer
from exactrank.models.deep import Deep
from exactrank.models.kernel_expansion import KernelExpansion
from exactrank.models.linear import Linear
from exactrank.models.network import Network
from exactrank.models.sum import Sum
from exactrank.models.thresholds import Thresholds
from exactrank.models.tree_ensemble import TreeEnsemble

if TYPE_CHECKING:
    from exactrank.models.model import Model

FEATURES = 100  #: maximum number of features on a card
_KINDS = {
    Linear: "one weight per feature",
    Network: "a network with one hidden layer",
    Deep: "deep networks",
    KernelExpansion: "a kernel's values at documents of the training data",
    Thresholds: "a step function of each feature",
    TreeEnsemble: "regression trees",
    Sum: "a sum of models",
}
_MISSING = {
    "error": "refused",
    "zero": "treated as 0",
    "mean": "replaced by the feature's mean over the training data",
    "keep": "left to the model",
}
_USE = """## Use

```python
import exactrank as er

model = er.load("model.json")
scores = model.predict(data)  # a frame, a matrix or RankingData: a row is a document
```

```console
$ exactrank predict model.json data.txt
```"""
_LIMITS = (
    "Scores order the documents of one query. They are not probabilities, and scores of different queries cannot be compared.",
    "Features must be computed as they were for the training data; they are matched by name if they have names, else by position.",
    "The numbers above hold for queries like those of the data; on other data, evaluate before use.",
)


def card(model: "Model") -> str:
    """Return the card of ``model``."""
    return "\n\n".join(_sections(model)) + "\n"


def _sections(model: "Model") -> Iterator[str]:
    scorer, data, results = model.scorer, model.data, model.training
    origin: dict[str, Any] = {
        "kind": _KINDS.get(type(scorer), scorer.kind) + (f" ({scorer.n_trees:,} trees)" if isinstance(scorer, TreeEnsemble) else ""),
        "features": scorer.n_features,
        "categories": name_list([f"{name} ({len(texts):,} levels)" for name, texts in scorer.levels.items()]) if scorer.levels else None,
        "missing values": _MISSING[scorer.missing],
        "trained by": model.ranker,
        "trained on": model.measure,
        "queries": data.get("queries"),
        "documents": data.get("documents"),
        "checksum of the data": data.get("checksum"),
        "seed": model.seed,
        "version of exactrank": model.library,
    }
    yield "# Model card"
    yield _table("What it is", ("what", "value"), origin)
    quality: dict[str, Any] = {
        "on training data (optimistic)": results.get("value"),
        "on validation data, which chose the model": results.get("valid"),
    }
    if results.get("estimate") is not None:
        quality["on queries that the models had not seen"] = results["estimate"]
        quality["95% interval of that"] = " .. ".join(_cell(end, 4) for end in results.get("interval", ()))
    for part, values in zip(("training", "validation"), results.get("constraints", {}).values(), strict=False):
        quality |= {f"{constraint}, on {part} data": value for constraint, value in values.items()}
    if any(value is not None for value in quality.values()):
        yield _table("Quality", ("mean of the measure", "value"), quality)
    if results.get("interrupted"):
        yield "Training was interrupted: this is the best model up to then."
    if model.params or results.get("chosen"):
        yield _table("Settings", ("setting", "value"), dict(model.params) | dict(results.get("chosen", {})))
    yield _features(scorer)
    yield _USE
    yield "## Limits\n\n" + "\n".join(f"- {limit}" for limit in _LIMITS)


def _table(title: str, columns: tuple[str, str], values: Mapping[str, Any]) -> str:
    return Table(title, columns, [(name, _cell(value)) for name, value in values.items() if value is not None]).section()


def _cell(value: object, digits: int = 6) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else clip(str(value), 200)


def _features(scorer: Scorer) -> str:
    columns, values = per_feature(scorer)
    size = [abs(row[0]) if isinstance(row[0], float) else 0.0 for row in values]
    order = sorted(range(scorer.n_features), key=lambda j: -size[j])[:FEATURES]
    rows: list[list[Cell]] = [[scorer.feature_names[j] if scorer.feature_names else f"column {j}", *map(_cell, values[j])] for j in order]
    cut = f"The first {FEATURES} of {scorer.n_features:,} features. " if scorer.n_features > len(rows) else ""
    note = f"{cut}`exactrank inspect importance` measures how much each feature matters."
    return Table("Features", ("feature", *columns), rows).section() + f"\n\n{note}"


def per_feature(scorer: Scorer) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the names of columns, and one row per feature; the first column is the feature's weight in the model."""
    match scorer:
        case Linear():
            return ("weight",), [(weight,) for weight in scorer.weights.tolist()]
        case Thresholds():
            levels = [np.cumsum([0.0, *jumps]) for jumps in scorer.jumps]
            return ("range of what it adds", "steps"), [(float(np.ptp(values)), len(values) - 1) for values in levels]
        case TreeEnsemble():
            pairs = zip(scorer.importance("gain").tolist(), scorer.importance("split").astype(int).tolist(), strict=True)
            return ("gain in training", "splits"), list(pairs)
        case Network():
            slope = matmul(np.abs(scorer.output), np.abs(scorer.weights / scorer.scale))
            return ("largest slope",), [(value,) for value in slope.tolist()]
        case Deep() if all(net.of is None for net in scorer.nets):
            first = [net.weight * (net.layers[0][0] if net.layers else net.output[None]) / net.tensors["scale"] for net in scorer.nets]
            return ("size of its first weights",), [(value,) for value in np.sqrt((np.concatenate(first) ** 2).sum(axis=0)).tolist()]
        case Sum():
            parts = [(part.kind, *per_feature(part)) for part in scorer.parts]
            columns = tuple(f"{kind}, part {number}: {names[0]}" for number, (kind, names, _) in enumerate(parts, 1))
            return columns, list(zip(*([row[0] for row in values] for _, _, values in parts), strict=True))
    return ("",), [("",)] * scorer.n_features
