"""Estimators of other libraries as rankers: trained by their own ``fit``, and read as our models (`exactrank.imports.estimator`).

So what they learn can be cross-fitted, blended, saved as data and exported. An estimator gets the queries as it takes them, as ``group``,
``group_id`` or ``qid``; a regression, which takes none, gets rows. Where there is validation data, it chooses how many of the trees to
keep, by the measure itself, as for the tree rankers of this library. Seed and threads are handed on where the estimator leaves them open.
"""

import inspect
from collections.abc import Collection
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from exactrank.data.ranking_data import RankingData
from exactrank.errors import ExactRankError, IncompatibleError, SettingError
from exactrank.imports.estimator import from_estimator
from exactrank.rankers.base import Ranker
from exactrank.reasons import reason_of
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import TreeMissing
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.settings import setting
from exactrank.text import written
from exactrank.training.judge import Judge, Task
from exactrank.training.progress import Trained
from exactrank.training.run import Recorder
from exactrank.training.selection import StepChoice


class Foreign(Ranker):
    """An estimator of LightGBM, XGBoost or CatBoost, or a linear one of scikit-learn.

    >>> from sklearn.linear_model import LinearRegression
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> Foreign(measure="RR", estimator=LinearRegression()).fit(data).weights_.round(3)
    array([0., 1.])
    """

    name = "foreign"

    estimator: object = setting(default=None, help="What is trained; it is cloned, and stays as it is.")
    missing: TreeMissing = setting(  # type: ignore[assignment]
        default="error", help="What a missing value is: an error, 0, the feature's mean, or kept for the estimator."
    )

    @property
    def title(self) -> str:
        """The estimator as it is written in Python, with its library and the settings that are not the default ones."""
        kind, estimator = type(self.estimator), cast(Any, self.estimator)
        usual = [one for base in kind.__mro__ if "__init__" in vars(base) for one in inspect.signature(base).parameters.values()]
        given = {name: value for name, value in estimator.get_params(deep=False).items() if value is not None and not _is_nan(value)}
        own = {name: value for name, value in given.items() if not any(one.name == name and one.default is value for one in usual)}
        return f"{kind.__module__.partition('.')[0]}.{kind.__name__}({' '.join(written(dict(sorted(own.items()))).split())})"

    @property
    def runs_in_threads(self) -> bool:
        """The estimator sees to threads itself."""
        return False

    @property
    def keeps_missing(self) -> bool:
        """Can the estimator? The linear ones of scikit-learn cannot."""
        return not type(self.estimator).__module__.startswith("sklearn")

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        scorer = recorder.remembered("scorer", lambda: self._learnt(task))
        return Trained(scorer, recorder.finished(scorer, task.verdict, 1, 1), 1)

    def _learnt(self, task: Task) -> Scorer:
        """What the estimator learns from the queries of ``task``, for features as its data has them."""
        estimator, data = self._open_settings_filled(task), task.data
        try:
            estimator.fit(data.values, data.y, **self._queries(estimator, task))
            scorer: Any = from_estimator(estimator).scorer
        except ExactRankError:
            raise
        except Exception as error:
            raise IncompatibleError(f"{self.title} cannot be trained here: {reason_of(error)}") from error
        if scorer.n_features != data.n_features:
            raise IncompatibleError(f"{self.title} reads {scorer.n_features} of {data.n_features} features; let it read all of them")
        return _chosen(scorer.relative_to(data.offset, data.feature_names), task)

    def _open_settings_filled(self, task: Task) -> Any:  # noqa: ANN401  (of any library)
        """A clone of the estimator, with seed and threads where it names none."""
        estimator: Any = clone(self.estimator)
        given = estimator.get_params()
        if type(estimator).__module__.startswith("catboost"):  # which names only what was given
            own = {"random_seed": self.seed, "thread_count": task.threads, "allow_writing_files": False, "verbose": False}
            taken = {"random_seed": ("random_state",), "verbose": ("silent", "logging_level", "verbose_eval")}
            open_ones = {name for name in own if not {name, *taken.get(name, ())} & given.keys()}
        else:
            own = {"random_state": self.seed, "n_jobs": task.threads}
            open_ones = {name for name in own.keys() & given.keys() if given[name] is None}
        return estimator.set_params(**{name: own[name] for name in open_ones if own[name] is not None})

    def _queries(self, estimator: Any, task: Task) -> dict[str, Any]:  # noqa: ANN401
        """What ``fit`` takes besides rows and grades: which row belongs to which query, weights, and validation data to stop by."""
        data, takes = task.data, inspect.signature(estimator.fit).parameters.keys()
        found: dict[str, Any] = {}
        if "group_id" in takes:  # CatBoost
            found["group_id"] = _numbers(data)
        elif {"group", "qid"} & takes:
            found |= {"group": data.sizes} if "group" in takes else {"qid": _numbers(data)}
        weight = data.query_weight
        if weight is not None and np.any(weight != weight[0]):
            if not {"sample_weight", "group_weight"} & takes:
                raise SettingError(f"{self.title} takes no weights, and the queries have some; leave out query_weight, or this ranker")
            by_group = "group" in found and type(estimator).__module__.startswith("xgboost")
            name = "group_weight" if "group_weight" in takes else "sample_weight"
            found[name] = weight if by_group else np.repeat(weight, data.sizes)
        stops = any(estimator.get_params().get(name) for name in ("early_stopping_rounds", "early_stopping_round", "od_wait"))
        if stops and task.valid is not None and "eval_set" in takes:
            found |= self._evaluated(task.valid, takes, found)
        return found

    def _evaluated(self, valid: RankingData, takes: Collection[str], found: dict[str, Any]) -> dict[str, Any]:
        """Validation data as an estimator takes it whose ``fit`` has these arguments, of which some were ``found``."""
        if "group_id" in found:
            from catboost import Pool

            return {"eval_set": Pool(valid.values, valid.y, group_id=_numbers(valid))}
        own = {"eval_group": [valid.sizes]} if "group" in found else {"eval_qid": [_numbers(valid)]} if "qid" in found else {}
        sets = {"eval_X": valid.values, "eval_y": valid.y} if "eval_X" in takes else {"eval_set": [(valid.values, valid.y)]}
        return {**sets, **own}


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def _numbers(data: RankingData) -> Any:  # noqa: ANN401
    """The number of each document's query."""
    return np.repeat(np.arange(data.n_queries), data.sizes)


def _chosen(scorer: Scorer, task: Task) -> Scorer:
    """The first trees of ``scorer``, as many as validation data selects; without any, or of another kind, all of it."""
    if not isinstance(scorer, TreeEnsemble) or task.valid is None:
        return scorer
    parts = (task.data, task.valid)
    judge: Judge[list[Any]] = Judge(task, lambda sums, part: sums[part is task.valid])
    sums, choice = [np.zeros(part.n_documents) for part in parts], None
    for count, tree in enumerate(scorer.single_trees(), 1):
        sums = [own + tree.score(part.X, task.threads) for own, part in zip(sums, parts, strict=True)]
        verdict = judge(sums, 0.0)
        choice = StepChoice.of(count, verdict) if choice is None else choice.after(count, verdict)
    return scorer if choice is None else TreeEnsemble(scorer.table.first(choice.candidate), scorer.feature_names)
