"""Claim: the loss of a batch with its gradient, on one core, takes a small part of what the padded loss of sentence-transformers takes.

Both are lambdas of nDCG with the same gradient (`tests/torch/test_sentence_transformers.py`). The model is a stand-in whose scores are
given, so that the loss alone is timed: scores in, gradient by the scores out. Each is timed several times in a row before the other's turn:
right after the padded loss, which leaves no cache warm, ours takes up to twice as long.
"""

import sys

import numpy as np
import torch
from sentence_transformers.cross_encoder import losses
from timing import best, pin, table

import exactrank as er
import exactrank.torch as xt

SHAPES = [(16, 10), (32, 100), (16, 1000)]


class Given(torch.nn.Module):
    """A cross-encoder with given scores."""

    num_labels, device = 1, torch.device("cpu")

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__()
        self.scores = scores

    def preprocess(self, pairs, **_):
        return {}

    def forward(self, tokens):
        return {"scores": self.scores}


def measured(queries: int, documents: int) -> tuple[list[str], float]:
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=queries * documents).astype(np.float32), requires_grad=True)
    labels = [torch.tensor(rng.integers(0, 5, documents).astype(np.float32)) for _ in range(queries)]
    inputs = [["q"] * queries, [["d"] * documents] * queries]
    ours = xt.CrossEncoderLoss(Given(scores), er.losses.Lambdas(er.measures.NDCG()), mini_batch_size=0)
    scheme, all_pairs = losses.LambdaRankScheme(), {"reduction_log": "natural", "mini_batch_size": queries * documents}
    theirs = losses.LambdaLoss(Given(scores), scheme, **all_pairs)
    works = {
        name: lambda loss=loss: torch.autograd.grad(loss(inputs, labels), scores) for name, loss in {"ours": ours, "theirs": theirs}.items()
    }
    times = dict.fromkeys(works, float("inf"))
    for _ in range(20 if queries * documents < 10_000 else 3):
        times = {name: min(times[name], best(work, 3)) for name, work in works.items()}
    ratio = times["theirs"] / times["ours"]
    return [f"{queries} x {documents}", f"{1e3 * times['ours']:.2f}", f"{1e3 * times['theirs']:.1f}", f"{ratio:.1f}"], 1 / ratio


def main() -> None:
    pin(1)
    torch.set_num_threads(1)
    results = [measured(*shape) for shape in SHAPES]
    table(
        "losses",
        "Loss and gradient of a batch, lambdas of nDCG, one core; sentence-transformers' LambdaLoss with LambdaRankScheme",
        ["queries x documents", "exactrank, ms", "sentence-transformers, ms", "times as fast"],
        [row for row, _ in results],
        {row[0]: cost for row, cost in results},
    )


if __name__ == "__main__":
    sys.exit(main())
