"""What combinators make of their runs, one law each; and what the judge reports and selects by. Resuming is in `test_training`."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.learning.training.combinators import bootstrap, cross_validate, phases, trials
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained, Verdict
from exactrank.learning.training.run import Recorder, Run
from exactrank.learning.training.selection import choose
from tests.learning.training.test_training import Walk


def ending_at(goodness, iterate):
    return lambda recorder: Trained(iterate, Verdict(goodness, None, goodness), 1, "")


def test_of_equal_iterates_the_first_is_kept():
    moved = Run(Walk(), 6.0, np.zeros(1), lambda theta, value: Verdict(0.5, None, 0.5), 9, 3)(Recorder())
    assert moved.steps == 9
    assert moved.iterate.tolist() == [0.0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_of_trials_the_first_of_the_best_goes_on_from_where_it_came(values):
    asked = []

    def rest(number, iterate, recorder):
        asked.append((number, iterate))
        return ending_at(-1.0, "rest")(recorder)

    tried = [ending_at(float(value), f"end of {number}") for number, value in enumerate(values)]
    kept = trials(tried, [partial(rest, number) for number in range(len(values))], Recorder())
    best = values.index(max(values))
    assert asked == [(best, f"end of {best}")]
    assert kept.iterate == f"end of {best}"  # since what followed was worse


def test_each_phase_begins_where_the_best_of_the_one_before_ended():
    begun = []

    def phase(name, start, recorder):
        begun.append(start)
        return ending_at({"a": 1.0, "b": 3.0, "c": 2.0}[name], name)(recorder)

    kept = phases([partial(phase, name) for name in "abc"], "start", Recorder())
    assert begun == ["start", "a", "b"]
    assert kept.iterate == "b"


@given(queries=st.integers(2, 9), folds=st.integers(2, 4), seed=st.integers(0, 9))
def test_candidates_are_judged_by_queries_that_they_have_not_seen(queries, folds, seed):
    """The first knows by heart what it has seen, and nothing else; the second ties all, which is half right everywhere."""
    data = er.RankingData.from_arrays(None, [1, 0] * queries, group=[2] * queries)

    judge = Judge(Task(er.parse_measure("nDCG(ties='expected')"), data), lambda iterate: lambda part: iterate)

    def runs(given):
        by_heart = np.where(np.repeat(given.weights > 0, 2), given.y, -given.y)
        return [
            lambda recorder, iterate=iterate: Trained(iterate, Verdict(0.0, None, 0.0)) for iterate in (by_heart, np.zeros(2 * queries))
        ]

    assert choose(cross_validate(runs, 2, judge, folds, seed, Recorder())).number == 1


@given(st.integers(1, 20), st.integers(0, 99), st.booleans())
def test_a_bootstrap_sample_draws_as_many_queries_as_there_are_and_leaves_the_others_out(queries, seed, weighted):
    weight = 1.0 + np.arange(queries) if weighted else None
    data = er.RankingData.from_arrays(None, [1, 0] * queries, group=[2] * queries, query_weight=weight)
    drawn, left = bootstrap(data, np.random.default_rng(seed))
    assert np.sum(drawn / data.weights) == pytest.approx(queries)
    np.testing.assert_array_equal(left, np.where(drawn == 0, data.weights, 0.0))


@pytest.mark.parametrize("ties", ["input", "pessimistic", "expected"])
@pytest.mark.parametrize("validated", [False, True])
def test_the_measure_is_reported_as_asked_and_selects_by_the_worst_order_of_ties(ties, validated):
    train, valid = (er.RankingData.from_arrays(None, y, group=[3, 3]) for y in ([2, 0, 1, 1, 0, 0], [1, 0, 2, 0, 1, 0]))
    measure = er.parse_measure(f"nDCG(ties='{ties}')@2")

    def mean(asked, data):
        return er.evaluate(data, np.zeros(6), asked).means[str(asked)]

    verdict = Judge(Task(measure, train, valid if validated else None), lambda iterate: lambda data: np.zeros(6))(None, 9.0)
    assert verdict.value == mean(measure, train)
    assert verdict.valid == (mean(measure, valid) if validated else None)
    severe = measure if ties == "expected" else er.parse_measure("nDCG(ties='pessimistic')@2")
    assert verdict.goodness == mean(severe, valid if validated else train)


def test_the_objective_selects_where_that_is_asked_and_nothing_validates():
    data = er.RankingData.from_arrays(None, [1, 0], group=[2])
    by_objective = {"score": lambda iterate: lambda data: np.zeros(2), "by_objective": True}
    assert Judge(Task(er.measures.NDCG(), data), **by_objective)(None, 9.0).goodness == 9.0
    assert Judge(Task(er.measures.NDCG(), data, data), **by_objective)(None, 9.0).goodness < 1.0
