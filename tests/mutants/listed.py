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
    """Mutants of one file; ``owners`` are names of test files without ``test_`` and suffix, or of a test in one, as ``rankers::test_x``."""
    tests = tuple("tests/test_{}.py{}{}".format(*owner.partition("::")) for owner in owners.split())
    return [Mutant(file, was, is_now, tests) for was, is_now in changes]


OPTIMIZERS = [
    *of(
        "optimizers/slopes.py",
        "slope_optimizers",
        ("first / (1 - fading_fast)", "first"),
        ("np.sqrt(second / (1 - fading))", "np.sqrt(second)"),
    ),
    *of(
        "optimizers/slopes.py",
        "slope_optimizers",
        ("self.decay if value < state.value", "self.decay if value < state.best"),
        ("stale = 0 if value > state.best", "stale = 0 if value >= state.best"),
    ),
    *of(
        "optimizers/slopes.py",
        "slope_optimizers",
        ("for s, y, product in reversed(state.moves)", "for s, y, product in state.moves"),
        ("q *= product / dot(y, y)", "q *= product / dot(q, y)"),
    ),
    *of(
        "optimizers/coordinate.py",
        "coordinate",
        ("max(float(np.abs(theta).max()), 1e-300) / max", "max(float(np.abs(theta).min()), 1e-300) / max"),
        ("math.ceil(self.share * dimension)", "math.floor(self.share * dimension)"),
    ),
    *of("optimizers/coordinate.py", "coordinate", ("np.argmax(gains)", "np.argmin(gains)")),
    *of("optimizers/coordinate.py", "coordinate", ("guard.value >= least", "guard.value > least")),
    *of("optimizers/step_search.py", "step_search", ("gain <= 0 or gain < self.tolerance", "gain < self.tolerance")),
    *of("optimizers/approximation.py", "spsa", (".mean(axis=0) / (2 * c)", ".mean(axis=0) / c")),
    *of("optimizers/approximation.py", "spsa", ("2 * np.count_nonzero(D) < LOOKS", "np.count_nonzero(D) < LOOKS")),
    *of("optimizers/boosting.py", "adarank", ("problem.weight * exp(-performed)", "exp(-performed)")),
    *of("optimizers/boosting.py", "rankboost", ("abs(made.edge) >= SURE", "made.edge >= SURE")),
    *of("optimizers/cutting_plane.py", "cutting_plane", ("max(state.duality.dual, dual)", "dual")),
    *of(
        "optimizers/concave_convex.py", "concave_convex", ("state.theta + 2 * (theta - state.theta)", "state.theta + (theta - state.theta)")
    ),
    *of("optimizers/concave_convex.py", "concave_convex", ("state.pull * state.theta + state.h[1])", "state.pull * state.theta)")),
    *of("optimizers/slopes.py", "concave_convex", ("/ (2 * problem.strength)", "/ (4 * problem.strength)")),
]

OBJECTIVES = [
    *of(
        "objectives/profile.py",
        "line_search",
        ("max(high, 0.0)).best(low, high)", "max(high, 0.0)).best()"),
        ("return self.weights[first : first + len(weights)]", "return weights"),
    ),
    *of("objectives/linear_profile.py", "directrank profile", ("theta += alpha * direction", "theta += direction")),
    *of("measures/bound.py", "bound", ("| (best == worst) |", "|")),
    *of("objectives/step_function.py", "profile line_search", ("values.max() - SAME_VALUE", "values.max()")),
    *of("objectives/softmax.py", "directrank", ("self._ridge / 2 * dot", "self._ridge * dot")),
    *of("objectives/ridge.py", "rankers directrank", ("np.sqrt(np.repeat(data.weights", "(np.repeat(data.weights")),
    *of("objectives/ideal_likelihood.py", "directrank", ("np.minimum(better, bound.measure.cutoff)", "better")),
    *of("objectives/parametric.py", "network gradient_rankers", ("slope - self.l2 * away", "slope - self.l2 / 2 * away")),
    *of(
        "objectives/losses.py",
        "listwise",
        ("max(MOST, data.grade_range[1] - data.grade_range[0])", "MOST"),
        ("np.where(one_grade, 0, ", "np.where(one_grade, 1, "),
        ("replace(self.measure, k=None)", "self.measure"),
    ),
    *of("objectives/lambdas.py", "cost", ("upper * (upper + 1) / 2", "upper * (upper - 1) / 2")),
    *of(
        "objectives/parametric.py",
        "regularized_risk",
        ("away = theta - self._origin\n        return value", "away = theta\n        return value"),
    ),
    *of("objectives/measured.py", "adarank", ("if turned else (1.0,)", "if not turned else (1.0,)")),
]

TRAINING = [
    *of(
        "training/run.py",
        "training combinators",
        ("now.stale < self.patience", "now.stale <= self.patience"),
        ("step=before + progress.step", "step=progress.step"),
        ("before + (parts - number) * progress.steps", "before + parts * progress.steps"),
    ),
    *of(
        "training/run.py",
        "training",
        ("entries[recorder.beside(self.chain)] = now.state", "pass"),
        ("trained = entries[recorder.place] = now.result()", "trained = now.result()"),
    ),
    *of(
        "training/combinators.py",
        "training combinators",
        ("chosen_of(ends).best_number >= patience", "chosen_of(ends).best_number > patience"),
        ("run(ends[-1].iterate if ends else start, part)", "run(start, part)"),
        ("== self.part, 0.0, weights)", "== self.part, weights, 0.0)"),
        ("data.weights * (drawn == 0)", "data.weights * (drawn == 1)"),
    ),
    *of(
        "training/selection.py",
        "selection combinators",
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
        "ties",
        ('measure if measure.ties == "expected" else', 'measure if measure.ties in ("expected", "docid") else'),
    ),
    *of(
        "training/judge.py",
        "training combinators",
        ("asked.mean_of(of_asked)", "selects.mean_of(of_selects)"),
    ),
]

MODELS = [
    *of(
        "scorers/base.py",
        "scorers::test_scores_that_overflow_are_refused_in_our_words_alone",
        ("if not np.all(np.isfinite(scores)):", "if False:"),
    ),
    *of(
        "scorers/sum.py",
        "scorers::test_scores_that_overflow_are_refused_in_our_words_alone",
        ('scaled: ClassVar[str] = "the weights"', "other = 0"),
    ),
    *of(
        "imports/ranklib.py",
        "imports::test_damaged_ranklib_models_are_refused_with_the_place",
        ('"output") and path and tag', '"output") and tag'),
        ('"split" and (path or not nodes)', '"split"'),
    ),
]

TREES = [
    *of(
        "trees/growth.py",
        "forest_rankers::test_a_feature_that_is_constant_or_missing_is_split_between_both",
        ("bins < np.diff(layout.start)[feature]", "bins <= np.diff(layout.start)[feature]"),
    ),
    *of("trees/growth.py", "forest::test_units_hold_the_largest_force", ("min(SUM_BITS, 62 - count_bits)", "SUM_BITS")),
    *of(
        "trees/part.py",
        "forest_rankers::test_documents_of_weight_0_are_not_there",
        ("documents & (data.sample_weight > 0)", "documents & (data.sample_weight >= 0)"),
    ),
    *of(
        "trees/part.py",
        "forest_rankers::test_a_weight_is_as_many_copies_to_the_bit_where_forces_are_whole",
        ("curvature *= data.sample_weight", "pass"),
    ),
    *of(
        "trees/part.py",
        "forest_rankers::test_the_largest_force_may_pull_down",
        (
            "slope = max(float(self._slope.max(initial=0.0)), -float(self._slope.min(initial=0.0)))",
            "slope = float(self._slope.max(initial=0.0))",
        ),
    ),
    *of(
        "trees/part.py",
        "forest_rankers::test_an_objective_without_curvature_counts_as_one_of_curvature_1",
        ("return weights if self.data.sample_weight is None else weights * self.data.sample_weight", "return weights"),
    ),
    *of(
        "trees/bins.py",
        "forest_rankers::test_few_distinct_documents_are_told_apart_however_many_there_are",
        ("if limit < _ALL and _are_alike(sample, limit, threads):", "if False:"),
    ),
    *of(
        "trees/bins.py",
        "forest_rankers::test_a_document_unlike_all_others_has_a_bin_of_its_own",
        ("np.ceil(counts * share)", "np.floor(counts * share)"),
    ),
    *of(
        "trees/bins.py",
        "forest_rankers::test_missing_values_that_only_validation_data_has_are_judged_as_they_score",
        ("(missing > 0) & (self.kinds == NUMBER)", "(missing > 1000) & (self.kinds == NUMBER)"),
    ),
    *of(
        "rankers/boosted.py",
        "forest_rankers::test_categories_of_large_numbers_are_refused_before_training",
        ("if largest >= MOST_CATEGORIES:", "if largest > MOST_CATEGORIES:"),
    ),
]

MUTANTS = OPTIMIZERS + OBJECTIVES + TRAINING + MODELS + TREES
