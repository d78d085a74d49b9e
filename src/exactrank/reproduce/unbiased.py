"""Training on raw clicks, on clicks over propensities and on true grades.

Joachims, Swaminathan & Schnabel (2017) train a ranking SVM on clicks of a position-based model. Weighted by 1 / propensity it comes close
to training on the true grades. Here DirectRank and LambdaMART maximize DCG@10 of grades that are raw click rates, clicks over the true
propensities, over those that EM finds in the log, or the truth. With v the value on test data,

    share of the gap = (v(clicks / propensity) - v(raw clicks)) / (v(true grades) - v(raw clicks))  >  0.95     (1)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactrank._support.tables import Table
from exactrank.clicks.simulate import simulate_clicks
from exactrank.data.ranking_data import RankingData
from exactrank.measures import DCG
from exactrank.rankers.base import Ranker
from exactrank.rankers.directrank import DirectRank
from exactrank.rankers.lambdamart import LambdaMART
from exactrank.reproduce.experiment import Experiment, Piece, Tell, fit_ranker
from exactrank.reproduce.finding import Inequality, Panel, curves

MEASURE = DCG(gain="linear", k=10)
RECOVERED = 0.95  #: of (1)
RAW, TRUE = "raw clicks", "true grades"
IPS, EM = "clicks / true propensity", "clicks / propensity by EM"


def share(values: dict[str, float], name: str) -> float:
    """(1), for the grades called ``name``.

    >>> share({RAW: 1.0, IPS: 1.5, TRUE: 2.0}, IPS)
    0.5
    """
    return (values[name] - values[RAW]) / (values[TRUE] - values[RAW])


@dataclass(frozen=True, kw_only=True)
class Unbiased(Experiment, name="unbiased", full={"features": 20, "train": 1_000, "sessions": (10, 40, 160, 640, 2_560)}):
    """Clicks in several numbers of ``sessions`` per query of ``train`` queries, each of which shows 10 documents; ``test`` queries."""

    features: int = 10
    documents: int = 20
    train: int = 400
    test: int = 1_000
    sessions: tuple[int, ...] = (25, 100, 400, 1_600)
    trees: int = 100

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        source = self._source(document_ids=True)
        train, test = source.data(self.train), source.data(self.test, self.train + 1)
        rows: list[list[str | int | float]] = []
        for name, ranker in self._rankers().items():
            grown: dict[str, list[float]] = {RAW: [], IPS: [], EM: [], TRUE: []}
            tell(f"{name}, {TRUE}")
            best = fit_ranker(ranker, train).score(test)
            for sessions in self.sessions:
                values = {TRUE: best}
                for grades, data in self._grade(train, sessions).items():
                    tell(f"{name}, {sessions} sessions per query, {grades}")
                    values[grades] = fit_ranker(ranker, data).score(test)
                for grades, value in values.items():
                    grown[grades].append(value)
                shares = [share(values, each) for each in (IPS, EM)]
                rows.append([name, sessions, *(values[each] for each in grown), *(f"{each:.1%}" for each in shares)])
            for grades, part in zip((IPS, EM), shares, strict=True):
                yield Inequality(f"{name}: {grades}, share of the gap between raw clicks and true grades", RECOVERED, part)
            yield f"{name} with {sessions} sessions per query recovers {shares[0]:.1%} of the gap by {IPS}, {shares[1]:.1%} by EM's."
            yield Panel(name, "sessions per query", f"{MEASURE}, test data", curves(grown, self.sessions), log="x")
        columns = ("method", "sessions per query", *grown, "share", "share, EM")
        yield Table(f"{MEASURE}, test data, by the grades trained on", columns, rows)

    def _rankers(self) -> dict[str, Ranker]:
        settings: dict[str, Any] = {"measure": MEASURE, "seed": self.seed, "threads": self.threads}
        return {"DirectRank": DirectRank(**settings), "LambdaMART": LambdaMART(trees=self.trees, bags=0, **settings)}

    def _grade(self, train: RankingData, sessions: int) -> dict[str, RankingData]:
        """The training data with grades made of clicks."""
        simulation = simulate_clicks(train, sessions=sessions, seed=self.seed)
        curve: dict[str, Any] = {
            RAW: np.ones(len(simulation.propensities.rank)),
            IPS: simulation.propensities,
            EM: simulation.clicks.propensities("em", bootstrap=0),
        }
        return {name: simulation.clicks.to_data(train, each, clip=0.0) for name, each in curve.items()}
