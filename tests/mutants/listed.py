"""The mutants: in which file what is changed into what, and which tests should notice.

What is changed must be there exactly once, so that a mutant whose line has changed since is told and not skipped. Choose lines whose
change leaves something that still works, only worse: a sign that breaks everything is noticed by anything.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """``was`` becomes ``is_now`` in a ``file`` of the package; ``owners`` are the tests that should fail."""

    file: str
    was: str
    is_now: str
    owners: tuple[str, ...]


def of(file: str, owners: str, *changes: tuple[str, str]) -> list[Mutant]:
    """Mutants of one file; ``owners`` are test files without ``test_`` and suffix, or tests in them, as ``rankers/rankers::test_x``."""
    return [Mutant(file, was, is_now, tuple(map(test_of, owners.split()))) for was, is_now in changes]


def test_of(owner: str) -> str:
    """Return the path of a test file, or of a test in it, for pytest."""
    path, separator, test = owner.partition("::")
    folder, _, name = path.rpartition("/")
    return f"tests/{folder}/test_{name}.py{separator}{test}"


OPTIMIZERS = [
    *of(
        "learning/optimizers/slopes.py",
        "learning/optimizers/slope_optimizers",
        ("first / (1 - fading_fast)", "first"),
        ("np.sqrt(second / (1 - fading))", "np.sqrt(second)"),
    ),
    *of(
        "learning/optimizers/slopes.py",
        "learning/optimizers/slope_optimizers",
        ("self.decay if value < state.value", "self.decay if value < state.best"),
        ("stale = 0 if value > state.best", "stale = 0 if value >= state.best"),
    ),
    *of(
        "learning/optimizers/slopes.py",
        "learning/optimizers/slope_optimizers",
        ("for s, y, product in reversed(state.moves)", "for s, y, product in state.moves"),
        ("q *= product / dot(y, y)", "q *= product / dot(q, y)"),
    ),
    *of(
        "learning/optimizers/coordinate.py",
        "learning/optimizers/coordinate",
        ("max(float(np.abs(theta).max()), 1e-300) / max", "max(float(np.abs(theta).min()), 1e-300) / max"),
        ("math.ceil(self.share * dimension)", "math.floor(self.share * dimension)"),
    ),
    *of("learning/optimizers/coordinate.py", "learning/optimizers/coordinate", ("np.argmax(gains)", "np.argmin(gains)")),
    *of("learning/optimizers/coordinate.py", "learning/optimizers/coordinate", ("guard.value >= least", "guard.value > least")),
    *of(
        "learning/optimizers/step_search.py",
        "learning/optimizers/step_search",
        ("gain <= 0 or gain < self.tolerance", "gain < self.tolerance"),
    ),
    *of("learning/optimizers/approximation.py", "learning/optimizers/spsa", (".mean(axis=0) / (2 * c)", ".mean(axis=0) / c")),
    *of(
        "learning/optimizers/approximation.py",
        "learning/optimizers/spsa",
        ("2 * np.count_nonzero(D) < LOOKS", "np.count_nonzero(D) < LOOKS"),
    ),
    *of("learning/optimizers/boosting.py", "rankers/adarank", ("problem.weight * exp(-performance)", "exp(-performance)")),
    *of("learning/optimizers/boosting.py", "rankers/rankboost", ("abs(step.edge) >= SURE", "step.edge >= SURE")),
    *of("learning/optimizers/cutting_plane.py", "learning/optimizers/cutting_plane", ("max(state.duality.dual, dual)", "dual")),
    *of(
        "learning/optimizers/concave_convex.py",
        "learning/optimizers/concave_convex",
        ("state.theta + 2 * (theta - state.theta)", "state.theta + (theta - state.theta)"),
    ),
    *of(
        "learning/optimizers/concave_convex.py",
        "learning/optimizers/concave_convex",
        ("state.pull * state.theta + state.h[1])", "state.pull * state.theta)"),
    ),
    *of("learning/optimizers/slopes.py", "learning/optimizers/concave_convex", ("/ (2 * problem.strength)", "/ (4 * problem.strength)")),
]

OBJECTIVES = [
    *of(
        "learning/objectives/profile.py",
        "learning/objectives/line_search",
        ("max(high, 0.0)).best(low, high)", "max(high, 0.0)).best()"),
        ("return self.weights[first : first + len(weights)]", "return weights"),
    ),
    *of(
        "learning/objectives/linear_profile.py",
        "rankers/directrank learning/objectives/profile",
        ("theta += alpha * direction", "theta += direction"),
    ),
    *of("measures/bound.py", "measures/bound", ("| (best == worst) |", "|")),
    *of(
        "learning/objectives/step_function.py",
        "learning/objectives/profile learning/objectives/line_search",
        ("values.max() - SAME_VALUE", "values.max()"),
    ),
    *of("learning/objectives/softmax.py", "rankers/directrank", ("self._ridge / 2 * dot", "self._ridge * dot")),
    *of(
        "learning/objectives/ridge.py", "rankers/rankers rankers/directrank", ("np.sqrt(np.repeat(data.weights", "(np.repeat(data.weights")
    ),
    *of("learning/objectives/ideal_likelihood.py", "rankers/directrank", ("else better, bound.measure.cutoff)", "else better, sizes)")),
    *of(
        "learning/objectives/parametric.py",
        "models/network rankers/gradient_rankers",
        ("slope - self.l2 * away", "slope - self.l2 / 2 * away"),
    ),
    *of(
        "learning/objectives/losses.py",
        "learning/objectives/listwise",
        ("max(MOST, data.grade_range[1] - data.grade_range[0])", "MOST"),
        ("np.where(one_grade, 0, ", "np.where(one_grade, 1, "),
        ("replace(self.measure, k=None)", "self.measure"),
    ),
    *of("learning/objectives/lambdas.py", "rankers/cost", ("upper * (upper + 1) / 2", "upper * (upper - 1) / 2")),
    *of(
        "learning/objectives/parametric.py",
        "learning/objectives/regularized_risk",
        ("away = theta - self._origin\n        return value", "away = theta\n        return value"),
    ),
    *of("learning/objectives/measured.py", "rankers/adarank", ("if turned else (1.0,)", "if not turned else (1.0,)")),
]

TRAINING = [
    *of(
        "learning/training/run.py",
        "learning/training/training learning/training/combinators",
        ("now.choice.best_number >= self.patience", "now.choice.best_number > self.patience"),
        ("step=before + progress.step", "step=progress.step"),
        ("before + (parts - number) * progress.steps", "before + parts * progress.steps"),
    ),
    *of(
        "learning/training/run.py",
        "learning/training/training",
        ("entries[recorder.shared_key(self.chain)] = now.state", "pass"),
        ("result = entries[recorder.place] = now.result()", "result = now.result()"),
    ),
    *of(
        "learning/training/combinators.py",
        "learning/training/training learning/training/combinators",
        ("choose_run(ends).best_number >= patience", "choose_run(ends).best_number > patience"),
        ("run(ends[-1].iterate if ends else start, part)", "run(start, part)"),
        ("== self.fold, 0.0, weights)", "== self.fold, weights, 0.0)"),
        ("data.weights * (counts == 0)", "data.weights * (counts == 1)"),
    ),
    *of(
        "learning/training/selection.py",
        "learning/training/selection learning/training/combinators",
        ("len(shares) / (len(shares) - 1)", "1.0"),
        ("difference <= MARGIN *", "difference < 2 * MARGIN *"),
        ("if not verdict.goodness > self.best.goodness", "if not verdict.goodness >= self.best.goodness"),
        ("[-WINDOW:]", "[-WINDOW - 1 :]"),
        ("smooth.goodness > self.verdict.goodness", "smooth.goodness >= self.verdict.goodness"),
        ("end - length + average(", "average("),
        ("- ROUNDING * abs(sums.max())", ""),
    ),
    *of(
        "measures/ties.py",
        "measures/ties",
        ('measure if measure.ties == "expected" else', 'measure if measure.ties in ("expected", "docid") else'),
    ),
    *of(
        "learning/training/judge.py",
        "learning/training/training learning/training/combinators",
        ("Verdict(value, reported.mean_of(reported_values)", "Verdict(value, selecting.mean_of(selecting_values)"),
    ),
]

MODELS = [
    *of(
        "models/base.py",
        "models/scorers::test_scores_that_overflow_are_refused_in_our_words_alone",
        ("if not np.all(np.isfinite(scores)):", "if False:"),
    ),
    *of(
        "models/sum.py",
        "models/scorers::test_scores_that_overflow_are_refused_in_our_words_alone",
        ('scaled: ClassVar[str] = "the weights"', "other = 0"),
    ),
    *of(
        "models/formats/ranklib.py",
        "models/imports::test_damaged_ranklib_models_are_refused_with_the_place",
        ('"output") and path and tag', '"output") and tag'),
        ('"split" and (path or not nodes)', '"split"'),
    ),
]

TREES = [
    *of(
        "learning/trees/growth.py",
        "rankers/forest_rankers::test_a_feature_that_is_constant_or_missing_is_split_between_both",
        ("bins < np.diff(layout.start)[feature]", "bins <= np.diff(layout.start)[feature]"),
    ),
    *of(
        "learning/trees/growth.py",
        "learning/trees/forest::test_units_hold_the_largest_force",
        ("min(SUM_BITS, 62 - count_bits)", "SUM_BITS"),
    ),
    *of(
        "learning/trees/part.py",
        "rankers/forest_rankers::test_documents_of_weight_0_are_not_there",
        ("documents & (data.sample_weight > 0)", "documents & (data.sample_weight >= 0)"),
    ),
    *of(
        "learning/trees/part.py",
        "rankers/forest_rankers::test_a_weight_is_as_many_copies_to_the_bit_where_forces_are_whole",
        ("curvature *= data.sample_weight", "pass"),
    ),
    *of(
        "learning/trees/part.py",
        "rankers/forest_rankers::test_the_largest_force_may_pull_down",
        (
            "slope = max(float(self._slope.max(initial=0.0)), -float(self._slope.min(initial=0.0)))",
            "slope = float(self._slope.max(initial=0.0))",
        ),
    ),
    *of(
        "learning/trees/part.py",
        "rankers/forest_rankers::test_an_objective_without_curvature_counts_as_one_of_curvature_1",
        ("return weights if self.data.sample_weight is None else weights * self.data.sample_weight", "return weights"),
    ),
    *of(
        "learning/trees/bins.py",
        "rankers/forest_rankers::test_few_distinct_documents_are_told_apart_however_many_there_are",
        ("if limit < _ALL and _are_alike(sample, limit, threads):", "if False:"),
    ),
    *of(
        "learning/trees/bins.py",
        "rankers/forest_rankers::test_a_document_unlike_all_others_has_a_bin_of_its_own",
        ("np.ceil(counts * share)", "np.floor(counts * share)"),
    ),
    *of(
        "learning/trees/bins.py",
        "rankers/forest_rankers::test_missing_values_that_only_validation_data_has_are_judged_as_they_score",
        ("(missing > 0) & (self.kinds == NUMBER)", "(missing > 1000) & (self.kinds == NUMBER)"),
    ),
    *of(
        "rankers/boosted.py",
        "rankers/forest_rankers::test_categories_of_large_numbers_are_refused_before_training",
        ("if largest >= MOST_CATEGORIES:", "if largest > MOST_CATEGORIES:"),
    ),
]

SHARDS = [
    *of(
        "data/shards.py",
        "backends/engine::test_partitions_end_where_files_do_unless_a_wide_block_spans_two",
        ("files[0] != files[2] or ", ""),
        ("indptr[begins[-1]] > limit", "indptr[begins[-1]] >= limit"),
    ),
    *of(
        "data/sharded.py",
        "rankers/partitioned_rankers::test_some_queries_of_several_files_are_those_of_one",
        ("int(places[-1]) + 1", "int(places[-1])"),
    ),
    *of(
        "data/sharded.py",
        "rankers/partitioned_rankers::test_an_estimate_is_that_of_one_file_query_by_query",
        ("places + part.first_document", "places"),
    ),
    *of(
        "data/sharded.py",
        "rankers/partitioned_rankers::test_bags_are_those_of_one_file",
        ("part.first, part.is_complete, part.first_document)", "part.first, True, part.first_document)"),
    ),
    *of(
        "rankers/training_data.py",
        "rankers/numbers::test_content_order_is_that_of_the_hashes_of_rows",
        ("np.where(holes > 0, np.maximum(largest, np.abs(fill_values)), largest)", "largest"),
    ),
]

MUTANTS = OPTIMIZERS + OBJECTIVES + TRAINING + MODELS + TREES + SHARDS
