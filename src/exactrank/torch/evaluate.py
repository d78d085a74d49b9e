"""Evaluation of scores that are tensors: `exactrank.evaluate` for a training loop."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from exactrank.data.validation import check_numbers
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.bound import means_over_queries, values_of
from exactrank.measures.parse import parse_measure
from exactrank.torch.groups import Grouped, Grouping, TensorCache, checked_groups, data_of, group

Measures = str | Measure | Sequence[str | Measure]
#: Lists, and a function from scores to the values of their queries, one row per measure.
BoundMeasures = tuple[Grouped, Callable[[Tensor], Tensor]]


def evaluate(
    scores: Tensor, grades: Tensor, measures: Measures, *, query_weight: Tensor | None = None, **grouping: Unpack[Grouping]
) -> dict[str, float]:
    """Return the mean over queries of each measure, equal to that of [`er.evaluate`][exactrank.evaluate].

    Documents are grouped by ``lengths``, ``offsets`` or query ids (``qid``) in any order.

    >>> evaluate(torch.tensor([0.3, 0.2, 0.1, 0.9]), torch.tensor([0, 2, 1, 0]), ["nDCG@10", "RR"], lengths=[3, 1])
    {'nDCG@10': 0.32950090240120666, 'RR': 0.25}
    """
    metrics = Metrics(measures)
    metrics.update(scores, grades, query_weight=query_weight, **grouping)
    return metrics.compute()


class Metrics:
    """Measures over many batches: ``update`` with each, ``compute`` the means over all queries, ``reset``. No query spans two batches."""

    def __init__(self, measures: Measures) -> None:
        measure_list = [measures] if isinstance(measures, str | Measure) else list(measures)
        self.measures = {str(measure): parse_measure(measure) for measure in measure_list}
        self._bound: TensorCache[BoundMeasures] = TensorCache()
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._values: list[Tensor] = []
        self._weights: list[Tensor] = []

    @torch.no_grad()
    def update(self, scores: Tensor, grades: Tensor, *, query_weight: Tensor | None = None, **grouping: Unpack[Grouping]) -> Tensor:
        """Add a batch, and return the values of its queries, one row per measure. Skipped queries have NaN."""
        if scores.ndim != 1 or scores.shape != grades.shape:
            raise DataError(f"scores have the shape {tuple(scores.shape)} and grades {tuple(grades.shape)}; give one of each per document")
        if scores.device != grades.device:
            raise DataError(f"scores are on {scores.device} and grades on {grades.device}; move them to one device")
        kind, groups = checked_groups(len(scores), scores.device, **grouping)
        lists, values_of_scores = self._bound.of((groups, grades), partial(self._on, kind), kind)
        values = values_of_scores(scores if lists.take is None else scores[lists.take])
        weight = values.new_ones(lists.queries) if query_weight is None else query_weight.to(values.device, torch.float64)
        if weight.shape != (lists.queries,):
            raise DataError(f"query_weight has shape {tuple(weight.shape)} for {lists.queries} queries")
        self._values.append(values)
        self._weights.append(weight)
        return values

    def compute(self) -> dict[str, float]:
        """Return the weighted mean over queries of each measure."""
        if not self._values:
            raise DataError("there is nothing to compute; update with a batch first")
        values, weights = torch.cat(self._values, dim=1).cpu().numpy(), torch.cat(self._weights).cpu().numpy()
        check_numbers("query_weight", weights)
        return dict(zip(self.measures, means_over_queries(values, weights).tolist(), strict=True))

    def _on(self, kind: str, groups: Tensor, grades: Tensor) -> BoundMeasures:
        """Return the lists of ``groups``, and the measures on ``grades`` as a function of their scores."""
        lists = group(kind, groups, len(grades))
        if lists.rows is not None:
            raise DataError(f"{lists.queries - len(lists.lengths)} queries have no documents; leave them out of evaluation")
        y, measures = grades if lists.take is None else grades[lists.take], list(self.measures.values())
        if grades.is_cuda:
            from exactrank.torch.cuda import measures_on

            return lists, measures_on(measures, lists, y)
        data = data_of(y, lists)
        bound = [measure.on(data) for measure in measures]
        return lists, lambda scores: torch.from_numpy(values_of(bound, scores.double().numpy())[0])
