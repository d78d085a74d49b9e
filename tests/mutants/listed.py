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
        "optimizers/adam.py",
        "slope_optimizers",
        ("first / (1 - self.b1**t)", "first"),
        ("np.sqrt(second / (1 - self.b2**t))", "np.sqrt(second)"),
    ),
    *of(
        "optimizers/sgd.py",
        "slope_optimizers",
        ("self.decay if value < state.value", "self.decay if value < state.best"),
        ("stale=0 if value > state.best", "stale=0 if value >= state.best"),
    ),
    *of(
        "optimizers/lbfgs.py",
        "slope_optimizers",
        ("for s, y in reversed(state.moves)", "for s, y in state.moves"),
        ("q *= (s @ y) / (y @ y)", "q *= (s @ s) / (y @ y)"),
    ),
    *of(
        "optimizers/coordinate.py",
        "coordinate",
        ("max(float(np.abs(theta).max()), 1e-300) / max", "max(float(np.abs(theta).min()), 1e-300) / max"),
        ("math.ceil(self.share * dimension)", "math.floor(self.share * dimension)"),
    ),
    *of("optimizers/powell.py", "coordinate", ("np.argmax(gains)", "np.argmin(gains)")),
    *of("optimizers/guarded.py", "coordinate", ("self.guard.value >= self.least", "self.guard.value > self.least")),
    *of("optimizers/step_search.py", "step_search", ("gain <= 0 or gain < self.tolerance", "gain < self.tolerance")),
    *of("optimizers/spsa.py", "spsa", (".mean(axis=0) / (2 * c)", ".mean(axis=0) / c")),
    *of("optimizers/surroundings.py", "spsa", ("2 * np.count_nonzero(D) < LOOKS", "np.count_nonzero(D) < LOOKS")),
    *of("optimizers/ada_rank.py", "adarank", ("problem.weight * np.exp(-performed)", "np.exp(-performed)")),
    *of("optimizers/rank_boost.py", "rankboost", ("abs(made.edge) >= SURE", "made.edge >= SURE")),
    *of("optimizers/cutting_plane.py", "cutting_plane", ("max(state.duality.dual, dual)", "dual")),
    *of("optimizers/concave_convex.py", "concave_convex", ("start + 2 * (theta - start)", "start + (theta - start)")),
    *of("optimizers/strongly_convex.py", "concave_convex", ("/ (2 * problem.strength)", "/ (4 * problem.strength)")),
]

OBJECTIVES = [
    *of(
        "objectives/line_search.py",
        "line_search",
        ("steps.best(low, high)", "steps.best()"),
        ("high=high, weight=weight, threads", "high=high, threads"),
    ),
    *of("objectives/linear_profile.py", "directrank profile", ("theta += alpha * direction", "theta += direction")),
    *of("measures/bound.py", "bound", ("| (best == worst) |", "|")),
    *of("objectives/step_function.py", "profile line_search", ("values.max() - SAME_VALUE", "values.max()")),
    *of("objectives/softmax.py", "directrank", ("self._ridge / 2 * float", "self._ridge * float")),
    *of("objectives/ridge.py", "rankers directrank", ("np.sqrt(np.repeat(data.weights", "(np.repeat(data.weights")),
    *of("objectives/likelihood.py", "directrank", ("np.minimum(better, bound.measure.cutoff)", "better")),
    *of("objectives/parametric.py", "network gradient_rankers", ("- self.l2 * self._away", "- self.l2 / 2 * self._away")),
    *of("objectives/listnet.py", "listwise", ("max(MOST, float(np.ptp(data.y)))", "MOST")),
    *of("objectives/listmle.py", "listwise", ("np.where(one_grade, 0, ", "np.where(one_grade, 1, ")),
    *of("objectives/approx_ndcg.py", "listwise", ("replace(self.measure, k=None)", "self.measure")),
    *of("objectives/lambdas.py", "cost", ("upper * (upper + 1) / 2", "upper * (upper - 1) / 2")),
    *of("objectives/regularised_risk.py", "regularised_risk", ("theta - self.centre", "theta")),
    *of("objectives/query_performance.py", "adarank", ("if self.turned else (1.0,)", "if not self.turned else (1.0,)")),
]

TRAINING = [
    *of(
        "training/loop.py",
        "training combinators",
        ("verdict.goodness > before.verdict.goodness", "verdict.goodness >= before.verdict.goodness"),
        ("now.stale >= self.patience", "now.stale > self.patience"),
    ),
    *of(
        "training/recorder.py",
        "training combinators",
        ("step=before + progress.step", "step=progress.step"),
        ("before + (parts - number) * progress.steps", "before + parts * progress.steps"),
    ),
    *of(
        "training/combinators.py",
        "training combinators",
        ("patience is not None and stale >= patience", "patience is not None and stale > patience"),
        ("best = max(range(len(ends))", "best = min(range(len(ends))"),
        ("run(reached, part)", "run(start, part)"),
        ("np.where(fold == part, 0.0, weight)", "np.where(fold == part, weight, 0.0)"),
        ("data.weights * (drawn == 0)", "data.weights * (drawn == 1)"),
    ),
    *of(
        "training/judge.py",
        "training combinators",
        ('measure if measure.ties == "expected" else', 'measure if measure.ties == "input" else'),
        (
            "self._means(self._asked_of_valid, self._severe_of_valid, iterate)",
            "self._means(self._severe_of_valid, self._severe_of_valid, iterate)",
        ),
    ),
]

MUTANTS = OPTIMIZERS + OBJECTIVES + TRAINING
