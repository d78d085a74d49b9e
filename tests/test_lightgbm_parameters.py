"""Parameters of LightGBM that tree rankers pass on."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

import exactrank as xr
from exactrank.rankers.lightgbm_parameters import OURS, PASSED_ON

from .driver import commands
from .reference.trees import booster_of
from .test_rankers import judged, quick, rows


def trees(**lightgbm):
    return quick("lambdamart", leaves=6, lightgbm=lightgbm or None).fit(judged(queries=30))


def test_interaction_constraints_hold():
    X, y, qid = rows(queries=30)
    frame = pd.DataFrame(X, columns=["bm25", "age", "price", "pages"])
    groups = [["bm25", "price"], ["age", "pages"]]
    for given in (groups, [[0, 2], [1, 3]]):
        model = quick("lambdamart", leaves=6, lightgbm={"interaction_constraints": given}).fit(frame, y, qid=qid).model_
        for branch in branches(booster_of(model.scorer).dump_model()):
            assert branch <= {0, 2} or branch <= {1, 3}
    free = quick("lambdamart", leaves=6).fit(frame, y, qid=qid).model_
    assert not all(branch <= {0, 2} or branch <= {1, 3} for branch in branches(booster_of(free.scorer).dump_model()))


def branches(model):
    """The features on each way from the root to a leaf."""

    def below(node, seen):
        if "split_feature" not in node:
            yield seen
            return
        for side in ("left_child", "right_child"):
            yield from below(node[side], seen | {node["split_feature"]})

    for tree in model["tree_info"]:
        yield from below(tree["tree_structure"], frozenset())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # no split gains so much
def test_a_parameter_does_what_it_does_in_lightgbm():
    assert trees(lambda_l1=5.0).predict(judged()) != pytest.approx(trees().predict(judged()))
    assert np.array_equal(trees(reg_alpha=5.0).predict(judged()), trees(lambda_l1=5.0).predict(judged())), "aliases are the same"
    assert trees(min_gain_to_split=1e9).model_.scorer.n_trees <= 1


def test_names_are_lightgbm_s():
    known = lgb.basic._ConfigAliases._get_all_param_aliases()
    assert set(PASSED_ON) <= set(known)
    assert set(OURS) <= set(known)
    assert set(OURS.values()) <= set(xr.LambdaMART.settings)
    assert not set(PASSED_ON) & set(OURS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_estimators": 3}, "'n_estimators', which is a setting of LambdaMART; give trees=... in its place"),
        ({"num_leaves": 3}, "give leaves=... in its place"),
        ({"subsample": 0.5}, "give query_fraction=... in its place"),
        ({"lambdal1": 2}, r"'lambdal1', which is no parameter of LightGBM \(did you mean lambda_l1\?\); it passes on bin_"),
        ({"objective": "binary"}, "'objective', which has no effect here; it passes on"),
        ({"linear_tree": True}, "'linear_tree', which has no effect here"),
        ({"reg_alpha": 1, "lambda_l1": 2}, "'reg_alpha' and 'lambda_l1', which are the same; leave out one"),
        ({"lambda_l1": -1}, r"LightGBM refuses lightgbm=\{'lambda_l1': -1\}: Check failed: \(lambda_l1\) >= \(0.0\); change it"),
        ({"lambda_l1": {}}, "LightGBM refuses"),
        ({"feature_contri": [1, 2]}, "LightGBM refuses"),
        ({"interaction_constraints": [["nope"]]}, "interaction_constraints names 'nope', which is no feature; there are x0, x1, x2, x3"),
        ({"interaction_constraints": [[9]]}, "names 9, which is no feature"),
        ({"interaction_constraints": ["x0", "x1"]}, "is not a list of groups of features"),
        ({"forcedsplits_filename": "nowhere.json"}, "there is no such file"),
        ([("lambda_l1", 1)], "is not a mapping of text to any value or None"),
    ],
)
def test_what_cannot_be_passed_on_is_refused(given, said):
    with pytest.raises(xr.SettingError, match=said):
        quick("lambdamart", lightgbm=given).fit(judged())


def test_the_command_line_passes_them_on(tmp_path):
    xr.write(judged(), tmp_path / "train.txt")
    done = commands().run(
        *("train", "lambdamart", "train.txt", "--out", "m.json", "--trees", "3", "--min-documents", "1"),
        *("--lightgbm", "lambda_l1=0.5", "--lightgbm", "monotone_constraints_method=basic"),
        at=tmp_path,
    )
    assert done.code == 0, done
    assert xr.load(tmp_path / "m.json").params["lightgbm"] == {"lambda_l1": 0.5, "monotone_constraints_method": "basic"}
