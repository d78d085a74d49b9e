"""Parameters of LightGBM that tree rankers pass on as they are, by LightGBM's names or aliases.

Only those that say how a tree is grown. What is a setting of the ranker is refused with its name here, and so is what would have no effect
beside an objective and a loop of our own, or would grow something other than a sum of trees with constant leaves.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import lightgbm as lgb

from exactrank.data.alignment import listed
from exactrank.errors import SettingError
from exactrank.text import did_you_mean

#: What is passed on.
PASSED_ON = (
    "bin_construct_sample_cnt", "cat_l2", "cat_smooth", "cegb_penalty_feature_coupled", "cegb_penalty_feature_lazy", "cegb_penalty_split",
    "cegb_tradeoff", "enable_bundle", "feature_contri", "feature_fraction_bynode", "forcedbins_filename", "forcedsplits_filename",
    "histogram_pool_size", "interaction_constraints", "is_enable_sparse", "lambda_l1", "max_bin_by_feature", "max_cat_threshold",
    "max_cat_to_onehot", "max_delta_step", "min_data_in_bin", "min_data_per_group", "min_gain_to_split", "monotone_constraints_method",
    "monotone_penalty", "path_smooth",
)  # fmt: skip
#: What tree rankers have settings for.
OURS = {
    "bagging_by_query": "query_fraction", "bagging_fraction": "query_fraction", "bagging_freq": "query_fraction", "bagging_seed": "seed",
    "categorical_feature": "categorical", "data_random_seed": "seed", "early_stopping_round": "patience", "extra_seed": "seed",
    "extra_trees": "extra", "feature_fraction": "feature_fraction", "feature_fraction_seed": "seed", "lambda_l2": "l2",
    "learning_rate": "learning_rate", "max_bin": "bins", "max_depth": "depth", "metric": "measure", "min_data_in_leaf": "min_documents",
    "min_sum_hessian_in_leaf": "min_curvature", "monotone_constraints": "monotone", "num_iterations": "trees", "num_leaves": "leaves",
    "num_threads": "threads", "seed": "seed", "use_missing": "missing", "zero_as_missing": "missing",
}  # fmt: skip


def passed_on(given: Mapping[str, object], names: Sequence[str], owner: str) -> dict[str, object]:
    """``given`` by LightGBM's main names, features by their numbers; ``names`` are those of the features.

    >>> passed_on({"reg_alpha": 0.1, "interaction_constraints": [["a", "b"], ["c"]]}, ["a", "b", "c"], "LambdaMART")
    {'lambda_l1': 0.1, 'interaction_constraints': [[0, 1], [2]]}
    """
    aliases: Mapping[str, Sequence[str]] = lgb.basic._ConfigAliases._get_all_param_aliases()  # LightGBM tells them nowhere else
    main = {alias: name for name, others in aliases.items() for alias in (name, *others)}
    found: dict[str, object] = {}
    for word, value in given.items():
        name = main.get(word, word)
        if name in OURS:
            raise SettingError(f"{owner}: lightgbm has {word!r}, which is a setting of {owner}; give {OURS[name]}=... in its place")
        if name not in PASSED_ON:
            meant = did_you_mean(word, [alias for alias, own in main.items() if own in PASSED_ON])
            what = "has no effect here" if name in aliases else "is no parameter of LightGBM"
            raise SettingError(f"{owner}: lightgbm has {word!r}, which {what}{meant}; it passes on {', '.join(PASSED_ON)}")
        if name in found:
            both = " and ".join(repr(other) for other in given if main.get(other) == name)
            raise SettingError(f"{owner}: lightgbm has {both}, which are the same; leave out one of them")
        if name.endswith("_filename") and not Path(str(value)).is_file():
            raise SettingError(f"{owner}: lightgbm has {word}={value!r}, and there is no such file; give the path of one")
        found[name] = _numbered(value, names, owner) if name == "interaction_constraints" else value
    return found


def _numbered(value: object, names: Sequence[str], owner: str) -> list[list[int]]:
    """Groups of features, which may be given by their names, by their numbers."""
    numbers: dict[object, int] = {name: number for number, name in enumerate(names)} | {number: number for number in range(len(names))}
    if not isinstance(value, Sequence) or not all(isinstance(group, Sequence) and not isinstance(group, str) for group in value):
        raise SettingError(
            f"{owner}: interaction_constraints={value!r} is not a list of groups of features, as [['bm25', 'age'], ['price']]"
        )
    unknown = [one for group in value for one in group if one not in numbers]
    if unknown:
        raise SettingError(f"{owner}: interaction_constraints names {unknown[0]!r}, which is no feature; there are {listed(list(names))}")
    return [[numbers[one] for one in group] for group in value]
