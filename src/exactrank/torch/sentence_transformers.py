"""Training of cross-encoders of sentence-transformers, versions 4 to 6, on any objective of scores.

`CrossEncoderLoss` takes the place of that library's listwise losses in its ``CrossEncoderTrainer``. `Weights` is a weighting scheme for its
``LambdaLoss``, which pads the lists and needs memory for all pairs. Neither imports the library: they only call the model.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exactrank.errors import DataError, IncompatibleError
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.torch.loss import RankingLoss


class CrossEncoderLoss(torch.nn.Module):
    """Minus ``objective`` as a loss for sentence-transformers' ``CrossEncoderTrainer``: the mean over the queries of a batch.

    The dataset has the columns that the library's ``LambdaLoss`` takes: a query, a list of any number of documents, and their grades.
    ``mini_batch_size`` is the number of query-document pairs that the model scores at a time; None: the number of queries in the
    batch, as in the library's own losses; 0 or less: all pairs at once.
    """

    def __init__(self, model: torch.nn.Module, objective: Objective, mini_batch_size: int | None = None) -> None:
        super().__init__()
        labels = getattr(model, "num_labels", None)
        if labels != 1:
            raise IncompatibleError(f"the model outputs {labels} numbers per pair; ranking needs one: use CrossEncoder(..., num_labels=1)")
        self.model = model
        self.ranking = RankingLoss(objective)
        self.mini_batch_size = mini_batch_size

    def forward(
        self,
        inputs: Sequence[Sequence[Any]],
        labels: Sequence[Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> Tensor:
        """Return the loss of a batch: ``inputs`` are the queries and the list of documents of each, ``labels`` their grades."""
        if len(inputs) != 2:
            raise DataError(f"the dataset has {len(inputs)} columns beside the grades; give two: a query and a list of documents")
        queries, documents = inputs
        if any(isinstance(listed, str) for listed in documents) or (isinstance(labels, Tensor) and labels.ndim != 2):
            raise DataError(
                "each query needs a list of documents and a list of grades, but a column holds single values; group the rows by query"
            )
        lengths = [len(listed) for listed in documents]
        for number, (length, grades) in enumerate(zip(lengths, labels, strict=True)):
            if length != len(grades):
                raise DataError(f"query {number} of the batch has {length} documents and {len(grades)} grades; give one grade per document")
        pairs = [*chain.from_iterable(zip(repeat(query), listed) for query, listed in zip(queries, documents, strict=True))]
        if not pairs:
            raise DataError(f"none of the {len(queries)} queries of the batch has documents; leave such queries out of the dataset")
        size = len(queries) if self.mini_batch_size is None else self.mini_batch_size
        size = size if size > 0 else len(pairs)
        scores = torch.cat([self._scores(pairs[first : first + size], prompt, task) for first in range(0, len(pairs), size)])
        return self.ranking(scores, torch.cat([*labels]).to(scores.device), lengths=lengths)

    def _scores(self, pairs: list[tuple[str, str]], prompt: str | None, task: str | None) -> Tensor:
        model: Any = self.model
        if hasattr(model, "preprocess"):
            scores = model(_move(model.preprocess(pairs, prompt=prompt, task=task), model.device))["scores"]
        elif prompt is None and task is None:
            tokens = model.tokenizer(pairs, padding=True, truncation=True, return_tensors="pt")
            scores = model(**_move(tokens, model.device))[0]
        else:
            raise IncompatibleError("prompts and tasks of cross-encoders need sentence-transformers 6 or later")
        return scores.view(-1)

    def get_config_dict(self) -> dict[str, object]:
        """Return the settings of the loss for the model card."""
        return {"objective": str(self.ranking.objective), "mini_batch_size": self.mini_batch_size}

    @property
    def citation(self) -> str:
        """BibTeX entry for the model card: the paper on lambda functions."""
        return """
@inproceedings{burges2006learning,
    title = "Learning to Rank with Nonsmooth Cost Functions",
    author = "Burges, Christopher J. C. and Ragno, Robert and Le, Quoc Viet",
    booktitle = "Advances in Neural Information Processing Systems 19",
    pages = "193--200",
    year = "2006",
}
"""


class Weights(torch.nn.Module):
    """A weighting scheme for sentence-transformers' ``LambdaLoss``: how much a swap of two documents changes ``measure``.

    ``LambdaLoss`` pads lists with documents of grade 0, which do not affect measures of the top of a list. Bpref and PairwiseCorrect
    count them: use those with lists of equal length, or with `CrossEncoderLoss`.

    >>> Weights("AP")(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([[0.0, 1.0]]))
    tensor([[[0.0000, 0.5000],
             [0.5000, 0.0000]]])
    """

    def __init__(self, measure: str | Measure) -> None:
        super().__init__()
        self.measure = parse_measure(measure)

    def forward(self, gain: Tensor, discount: Tensor, true_sorted: Tensor) -> Tensor:
        """Return the absolute change by each swap, queries x ranks x ranks; ``true_sorted`` are the grades in ranked order."""
        deltas = [self.measure.swap_deltas(grades) for grades in true_sorted.detach().to("cpu", torch.float64).numpy()]
        return torch.from_numpy(np.abs(np.stack(deltas))).to(gain)

    def extra_repr(self) -> str:
        return str(self.measure)


def _move(tokens: Mapping[str, object], device: torch.device) -> dict[str, object]:
    return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in tokens.items()}
