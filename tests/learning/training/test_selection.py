"""Selection: the standard error of paired differences, the rule that keeps one of several candidates, and what is told of it."""

import json
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from sklearn.base import clone

import exactrank as er
from exactrank._support.serialize import from_record, to_record
from exactrank.learning.training import selection
from exactrank.learning.training.combinators import restarts
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained, Verdict
from exactrank.learning.training.run import Recorder, Run
from exactrank.learning.training.selection import (
    MARGIN,
    WINDOW,
    StepChoice,
    average,
    choose,
    choose_on_paths,
    is_better,
    standard_error,
    verdicts_by,
)
from tests.cli.test_cli import called
from tests.learning.training.test_training import Walk, test_a_composition_that_is_broken_off_anywhere_arrives_at_the_same as resumed
from tests.rankers.test_partitioned_rankers import Shuffled, cut_into
from tests.rankers.test_rankers import rows


def margin(value):
    return patch.object(selection, "MARGIN", value)


@st.composite
def candidates(draw, most=6):
    """Values of each candidate on each query, NaN where a query does not count, and weights; candidates have much in common."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, queries = draw(st.integers(1, most)), draw(st.integers(1, 12))
    values = rng.random(queries) + draw(st.sampled_from([0.01, 0.5])) * rng.normal(size=(count, queries))
    values += draw(st.sampled_from([0.0, 0.02, 0.3])) * np.arange(count)[:, None]
    values[:, rng.random(queries) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    assume(not np.isnan(values).all())
    weights = rng.integers(0, 3, queries).astype(float) if draw(st.booleans()) else np.ones(queries)
    assume(weights[~np.isnan(values[0])].sum() > 0)
    return values, weights


def slow_error(a, b, weights):
    """The standard error query by query."""
    pairs = [(x - y, w) for x, y, w in zip(a, b, weights, strict=True) if x == x and y == y and w > 0]
    if len(pairs) < 2:
        return 0.0
    total = sum(w for _, w in pairs)
    mean = sum(w * d for d, w in pairs) / total
    return float(np.sqrt(len(pairs) / (len(pairs) - 1) * sum((w / total * (d - mean)) ** 2 for d, w in pairs)))


@given(candidates(), st.sampled_from([1.0, 3.0, 1e300]))
def test_the_standard_error_is_that_of_the_paired_differences(drawn, unit):
    """Whatever the unit of the weights; with equal ones it is that of a mean."""
    values, weights = drawn
    first, second = (Verdict(0.0, 0.0, 0.0, own, unit * weights) for own in (values[0], values[-1]))
    assert standard_error(first, second) == pytest.approx(slow_error(values[0], values[-1], weights), rel=1e-9, abs=1e-15)
    assert standard_error(second, first) == pytest.approx(standard_error(first, second), rel=1e-9, abs=1e-15)
    alike = [Verdict(0.0, 0.0, 0.0, own) for own in (values[0], values[-1])]
    differences = (values[0] - values[-1])[~np.isnan(values[0])]
    if len(differences) > 1:
        assert standard_error(*alike) == pytest.approx(np.std(differences, ddof=1) / np.sqrt(len(differences)), rel=1e-9, abs=1e-15)


def test_the_standard_error_is_unknown_without_values_of_queries():
    known, unknown = Verdict(0.5, 0.5, 0.5, np.zeros(3)), Verdict(0.6, None, 0.6)
    assert np.isnan(standard_error(known, unknown))
    assert is_better(unknown, known)
    assert not is_better(known, unknown)


@given(candidates(), st.sampled_from([0.0, 0.25, 1.0, 3.0]))
def test_what_is_kept_is_no_worse_than_the_best_by_more_than_the_margin(drawn, size):
    """And no better candidate comes before it; it is what a slow twin keeps."""
    verdicts = verdicts_by(*drawn)
    with margin(size):
        choice = choose(verdicts)
        means = [verdict.goodness for verdict in verdicts]
        assert choice.best_number == int(np.argmax(means))
        difference = means[choice.best_number] - means[choice.number]
        assert difference <= size * slow_error(drawn[0][choice.best_number], drawn[0][choice.number], drawn[1]) + 1e-12
        assert all(mean < means[choice.number] for mean in means[: choice.number])
        assert choice.number <= choice.best_number
        kept = best = 0
        for number, mean in enumerate(means):
            best, new = (number, True) if mean > means[best] else (best, False)
            edge = size * slow_error(drawn[0][number], drawn[0][kept], drawn[1])
            assume(not new or abs(mean - means[kept] - edge) > 1e-12)
            kept = number if new and mean - means[kept] > edge else kept
        assert choice.number == kept


@given(candidates())
def test_a_margin_of_zero_keeps_the_first_of_the_best(drawn):
    verdicts = verdicts_by(*drawn)
    first = int(np.argmax([verdict.goodness for verdict in verdicts]))
    with margin(0.0):
        assert choose(verdicts).number == first
    assert choose([Verdict(one.value, None, one.goodness) for one in verdicts]).number == first


@given(candidates(), st.randoms(use_true_random=False))
def test_only_the_order_from_simple_to_complex_matters(drawn, random):
    """Not that of the queries, nor candidates that repeat a simpler one or have a lower mean than another before."""
    values, weights = drawn
    choice = choose(verdicts_by(values, weights))
    number = choice.number
    assert choose(verdicts_by(np.concatenate([values, values]), weights)).best_number == choice.best_number
    queries = random.sample(range(len(weights)), len(weights))
    assert choose(verdicts_by(values[:, queries], weights[queries])).number == number or on_the_edge(values, weights)
    assert choose(verdicts_by(np.concatenate([values, values]), weights)).number == number
    assert choose(verdicts_by(np.concatenate([values, values[:1] - 0.1]), weights)).number == number


def on_the_edge(values, weights):
    """Does the rule depend on rounding?"""
    verdicts = verdicts_by(values, weights)
    gaps = [abs(a.goodness - b.goodness - MARGIN * standard_error(a, b)) for a in verdicts for b in verdicts if a is not b]
    means = [abs(a.goodness - b.goodness) for a in verdicts for b in verdicts if a is not b]
    return min(gaps + means) < 1e-12


@given(st.integers(0, 99), st.integers(2, 8))
def test_the_last_bit_decides_nothing_among_candidates_within_the_noise(seed, count):
    """If candidates differ by last bits alone, any may be the best; the simplest is kept all the same."""
    noise = np.random.default_rng(seed).normal(size=(count, 50))
    values = 0.5 + 0.1 * (noise - noise.mean(axis=1, keepdims=True))
    for favorite in range(count):
        shaken = verdicts_by(values * np.where(np.arange(count) == favorite, 1 + 1e-15, 1 - 1e-15)[:, None], np.ones(50))
        assert choose(shaken).number == 0
        assert choose(shaken).best_number == favorite


def slow_average(values, weights):
    """The average choice of the samples, computed one sample and one candidate at a time."""
    rng, positions = np.random.default_rng(0), []
    for _ in range(selection.SAMPLES):
        drawn = rng.integers(0, len(weights), len(weights))
        sums = [sum(weights[q] * own[q] for q in drawn if own[q] == own[q]) for own in values]
        positions.append(np.mean([number for number, own in enumerate(sums) if own >= max(sums) - 1e-11]))
    return np.mean(positions)


@given(candidates())
@settings(max_examples=20, deadline=None)
def test_samples_of_the_queries_choose_a_strength_on_average(drawn):
    position = slow_average(*drawn)
    choice = average(verdicts_by(*drawn))
    assert abs(choice.number - position) <= 0.5 + 1e-9
    assert choice.best_number == int(np.argmax([verdict.goodness for verdict in verdicts_by(*drawn)]))


def test_strengths_that_are_level_share_and_queries_without_weight_have_no_say():
    weights, level = np.ones(6), np.zeros((11, 6))

    def number():
        return average(verdicts_by(level, weights)).number

    assert number() == 5
    level[3] = 1.0
    assert number() == 3
    level[7, :3] = 1.5
    assert 3 < number() < 7
    weights[:3] = 0.0
    level[:, 5] = np.nan
    assert number() == 3
    level[:] = np.nan
    assert number() == 5


def test_strengths_that_differ_by_rounding_alone_share():
    values = np.full((11, 6), 0.7)
    values[10] = np.nextafter(0.7, 1.0)
    assert average(verdicts_by(values, np.ones(6))).number == 5


@given(st.integers(0, 99))
def test_a_strength_hardly_moves_with_the_values(seed):
    """What moves a maximum from one end of a flat path to the other moves the average by a step at most."""
    rng = np.random.default_rng(seed)
    values = 0.5 + 0.1 * rng.normal(size=(11, 50))
    values -= values.mean(axis=1, keepdims=True)
    numbers = [average(verdicts_by(values + 1e-3 * (np.arange(11) == favorite)[:, None], np.ones(50))).number for favorite in (0, 10)]
    assert numbers[1] - numbers[0] in (0, 1)


@given(st.lists(candidates(most=4), min_size=1, max_size=3))
def test_of_several_paths_each_averages_and_the_margin_decides_between_them(drawn):
    queries = min(len(weights) for _, weights in drawn)
    paths = [verdicts_by(np.nan_to_num(values[:, :queries]), np.ones(queries)) for values, _ in drawn]
    kept = [path[average(path).number] for path in paths]
    number = choose_on_paths([verdict for path in paths for verdict in path], [len(path) for path in paths])
    assert [verdict for path in paths for verdict in path][number] is kept[choose(kept).number]


def noisy(theta, value):
    """A judge of walks whose validation queries differ much."""
    rng = np.random.default_rng(int(1000 * theta[0]) % 2**32)
    values = theta[0] / 3 + rng.normal(size=4)
    return Verdict(float(theta[0]), float(theta[0]), float(values.mean()), values)


@given(st.integers(0, 99), st.sampled_from([None, 2, 5]))
def test_a_run_keeps_the_step_that_is_best_with_those_before_it_and_is_patient_by_single_steps(seed, patience):
    steps = []

    def judge(theta, value):
        steps.append(noisy(theta, value))
        return steps[-1]

    trained = Run(Walk(0.3), 6.0, np.zeros(1), judge, 20, seed, patience)(Recorder())
    means = [verdict.goodness for verdict in steps]
    smooth = [np.mean(means[max(0, step - WINDOW + 1) : step + 1]) for step in range(len(means))]
    kept, best = int(np.argmax(smooth)), int(np.argmax(means))
    assert trained.verdict.values is steps[kept].values
    assert trained.verdict.goodness == pytest.approx(smooth[kept])
    message = [(one.name, one.selected) for one in trained.alternatives]
    assert message == [(f"step {step}", step == kept) for step in dict.fromkeys([best, kept])]
    if patience is not None and len(means) <= 20:
        assert len(means) == int(np.argmax(means)) + patience + 1


def test_compositions_resume_to_the_bit_with_the_values_of_queries():
    with patch("tests.learning.training.test_training.judge", noisy):
        resumed()


def test_where_the_training_data_selects_the_first_of_the_best_steps_is_kept():
    choice = StepChoice.of(0, Verdict(0.1, None, 0.1))
    for step, value in enumerate([0.3, 0.1, 0.4, 0.4, 0.2], 1):
        choice = choice.after(step, Verdict(value, None, value), step)
    assert (choice.candidate, choice.verdict.goodness, choice.best_number) == (3, 0.4, 3)


@pytest.mark.parametrize("weight", [None, [1.0, 3.0]])
def test_the_judge_gives_the_values_of_validation_queries_and_their_weights(weight):
    train, valid = (er.RankingData.from_arrays(None, [1, 0, 0, 1], group=[2, 2], query_weight=weight) for _ in range(2))
    verdict = Judge(Task(er.parse_measure("P@1"), train, valid), lambda _: lambda part: np.array([1.0, 0.0, 1.0, 0.0]))(None, 0.0)
    assert verdict.values.tolist() == [1.0, 0.0]
    assert verdict.goodness == (0.5 if weight is None else 0.25)
    assert verdict.weights is None if weight is None else verdict.weights.tolist() == weight
    assert Judge(Task(er.parse_measure("P@1"), train), lambda _: lambda part: np.zeros(4))(None, 0.0).values is None


def test_what_folds_choose_is_what_is_trained():
    train, _, _ = parts()
    with patch("exactrank.rankers.large_margin.choose_on_paths", return_value=4):
        ranker = er.RankSVM("nDCG@3").fit(train)
    assert [one.selected for one in ranker.selection_.candidates] == [number == 4 for number in range(9)]
    assert f"l2={ranker.model_.training['chosen']['l2']:.3g}" == ranker.selection_.choice.name


def test_a_choice_survives_the_journal():
    choice = StepChoice.of("a", Verdict(0.1, 0.2, 0.3, np.array([0.1, np.nan]), np.array([1.0, 2.0])), 3)
    again = from_record(json.loads(json.dumps(to_record(choice))), "here")
    assert (again.candidate, again.verdict, again.number, again.best_number, again.recent) == ("a", choice.verdict, 3, 3, (0.3,))
    np.testing.assert_array_equal(again.best.values, choice.best.values)
    np.testing.assert_array_equal(again.best.weights, choice.best.weights)


@given(candidates())
def test_of_runs_the_rule_keeps_one_and_tells_how_close_the_others_are(drawn):
    verdicts = verdicts_by(*drawn)
    runs = [lambda recorder, number=number: Trained(number, verdicts[number]) for number in range(len(verdicts))]
    names = [f"start {number}" for number in range(len(runs))]
    trained = restarts(runs, Recorder(), names=names)
    choice = choose(verdicts)
    assert trained.iterate == choice.number
    if len(runs) > 1:
        best = verdicts[choice.best_number]
        message = [(one.name, one.mean, one.difference, one.error, one.selected) for one in trained.alternatives]
        assert message == [
            (name, own.goodness, own.goodness - best.goodness, standard_error(best, own), number == choice.number)
            for number, (name, own) in enumerate(zip(names, verdicts, strict=True))
        ]


def parts(queries=40, weight=None):
    X, y, qid = rows(queries=3 * queries, noise=1.0)
    cuts = [(qid >= first) & (qid < first + queries) for first in (0, queries, 2 * queries)]
    return [er.RankingData.from_arrays(X[cut], y[cut], qid=qid[cut], query_weight=weight) for cut in cuts]


@pytest.mark.parametrize(
    ("ranker", "names"),
    [
        (er.Ridge("nDCG@3"), "l2="),
        (er.RankSVM("nDCG@3"), "l2="),
        (er.StructuredRank("nDCG@3"), "bound="),
        (er.LambdaMART("nDCG@3", trees=20, min_documents=5, bags=0), "step "),
        (er.ListNet("nDCG@3"), "step "),
        (er.LambdaRank("nDCG@3", start="random", max_iter=20), "learning_rate="),
        (er.CoordinateAscent("nDCG@3", restarts=2, max_iter=2), "start "),
        (er.DirectRank("nDCG@3", bags=2, bagging="bootstrap"), "start="),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fitted_ranker_tells_what_validation_data_chose(ranker, names):
    train, valid, _ = parts()
    result = ranker.fit(train, valid=valid).selection_
    assert all(one.name.startswith((names, "the rest")) for one in result.candidates)
    assert sum(one.selected for one in result.candidates) == 1
    assert max(one.difference for one in result.candidates) == 0
    assert result.choice.mean == pytest.approx(ranker.score(valid), abs=0.03)  # but for ties, and steps before
    assert str(result).startswith(f"chose {result.choice.name} (held-out nDCG@3 {result.choice.mean:.4f}")
    assert list(result.to_frame()["selected"]) == [one.selected for one in result.candidates]
    assert result.choice.name in result._repr_html_()
    chosen = ranker.model_.training.get("chosen", {})
    assert all(f"{name}={value:.3g}" in result.choice.name for name, value in chosen.items() if name == "l2")


def test_folds_tell_what_they_chose_and_the_training_data_alone_chooses_nothing():
    train, _, _ = parts()
    for ranker in (er.Ridge("nDCG@3"), er.RankSVM("nDCG@3")):
        result = ranker.fit(train).selection_
        assert len(result.candidates) > 8
        assert f"{ranker.model_.training['chosen']['l2']:.3g}" in result.choice.name
    for ranker in (er.LambdaMART("nDCG@3", trees=5, min_documents=5, bags=0), er.DirectRank("nDCG@3", bags=0, restarts=2, max_iter=1)):
        result = ranker.fit(train).selection_
        assert (result.choice, str(result)) == (None, "nothing to choose")


@pytest.mark.parametrize("ranker", [er.Ridge("nDCG@3"), er.RankSVM("nDCG@3"), er.LambdaMART("nDCG@3", trees=9, min_documents=5, bags=0)])
def test_validation_data_in_several_files_chooses_as_one_file(ranker, tmp_path):
    ranker, data = clone(ranker).set_params(backend=Shuffled()), parts(weight=1.0 + np.arange(40) % 3)

    def chosen(*ends):
        train, valid = (cut_into(part, tmp_path, ends, f"{name}-{len(ends)}") for part, name in zip(data, ("train", "valid"), strict=False))
        return ranker.fit(train, valid=valid).selection_

    assert chosen() == chosen(7, 21)
    if not isinstance(ranker, er.LambdaMART):  # whose trees differ a little where nothing was cut
        assert chosen() == ranker.set_params(backend=None).fit(data[0], valid=data[1]).selection_


def test_the_command_line_tells_what_was_chosen(tmp_path):
    train, valid, _ = parts()
    er.write(train, tmp_path / "train.xr")
    er.write(valid, tmp_path / "valid.xr")
    message = called(0, "train", "ridge", tmp_path / "train.xr", "--valid", tmp_path / "valid.xr", "--out", tmp_path / "model.json")
    assert str(er.Ridge().fit(train, valid=valid).selection_) in message
