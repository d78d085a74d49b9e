"""What a pass over long queries costs is said before the work begins."""

import warnings

import numpy as np
import pytest

import exactrank as er
from exactrank.learning.objectives.losses import SmoothMeasure
from exactrank.learning.objectives.parametric import Parametric
from exactrank.learning.objectives.score_space import CostWarning, Pairwise, announce_cost
from exactrank.models.architecture import form_of

LONG = er.RankingData.from_arrays(np.arange(150_000.0)[:, None] % 7, np.arange(150_000) % 3, group=[70_000, 79_000, 1_000])
SHORT = er.RankingData.from_arrays(None, [0, 1, 2, 1, 0, 1, 1], group=[4, 2, 1])


@pytest.mark.parametrize(
    "limits", [{}, {"truncation": 1}, {"truncation": 2, "neighbors": 1}, {"neighbors": 2}, {"measure": er.measures.NDCG(k=1)}], ids=str
)
def test_pairs_are_those_that_meet(limits: dict[str, object]) -> None:
    rule = er.losses.Lambdas(**limits)  # type: ignore[arg-type]
    upper = min(rule.truncation or 9, rule.measure.cutoff if rule.measure else 9)
    met = [(i, j) for n in (4, 2, 1) for i in range(min(n, upper)) for j in range(i + 1, n) if j - i <= (rule.neighbors or 9)]
    assert len(met) <= rule.pairs(SHORT) <= len(met) + 3 * (rule.neighbors or 0) ** 2
    assert er.losses.SampledLambdas(samples=3, **limits).pairs(SHORT) == 3 * rule.pairs(SHORT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "objective",
    [
        er.losses.Lambdas(),
        er.losses.Lambdas(er.measures.AP()),
        er.losses.FiniteDifference(er.measures.NDCG()),
        SmoothMeasure(er.measures.NDCG()),
        er.losses.SampledLambdas(er.measures.NDCG(k=9), samples=2000),
    ],
    ids=str,
)
def test_what_is_quadratic_is_announced(objective: Pairwise) -> None:
    with pytest.warns(CostWarning, match=r"pairs of documents, which takes about \d+ s on one thread; the longest query has 79000"):
        announce_cost(objective, LONG)


@pytest.mark.parametrize(
    "objective",
    [
        er.losses.Lambdas(truncation=10),
        er.losses.Lambdas(neighbors=10),
        er.losses.Lambdas(er.measures.NDCG(k=10)),
        SmoothMeasure(er.measures.NDCG(k=10)),
        er.losses.PairHinge(),
    ],
    ids=str,
)
def test_what_is_not_is_not(objective: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        announce_cost(objective, LONG)


def test_an_objective_says_it_when_it_meets_the_data() -> None:
    with pytest.warns(CostWarning, match="truncation=10"):
        Parametric(er.losses.Lambdas(), form_of(None).on(LONG), LONG)


@pytest.mark.parametrize(
    "ranker", [er.RankNet(max_iter=1), er.SmoothRank(max_iter=1), er.ApproxNDCG(max_iter=1), er.LambdaMART(trees=1, bags=0)], ids=str
)
def test_every_fit_says_it(ranker: er.RankNet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactrank.learning.objectives.score_space.MANY_PAIRS", 10)
    data = er.RankingData.from_arrays(np.arange(80.0)[:, None] % 7, np.arange(80) % 3, group=[40, 40])
    with pytest.warns(CostWarning, match="the longest query has 40"):
        ranker.fit(data)


@pytest.mark.parametrize("name", ["truncation", "neighbors"])
@pytest.mark.parametrize("limit", [0, 1.5, 2**40, float("nan")])
def test_limits_are_whole_numbers(name: str, limit: float) -> None:
    with pytest.raises(er.errors.SettingError, match=f"{name} must be a whole number of at least 1"):
        er.losses.Lambdas(**{name: limit})  # type: ignore[arg-type]
