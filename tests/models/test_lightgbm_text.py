"""LightGBM's text: written as LightGBM reads it, read without loss, and damage refused with its place."""

import re
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.models.lightgbm_text import read_lightgbm, write_lightgbm
from tests.models.test_tree_ensemble import TEXT, boosters, ensemble, hard_rows, same, trained
from tests.reference.trees import tree_scores

TREES = TEXT.index("\nend of trees\n")


def sizes(trees):
    return " ".join(str(len(tree)) for tree in trees)


def blocks(text):
    """The trees of a text, each from its number to the next."""
    return re.findall(r"^Tree=.*?(?=^Tree=|^end of trees)", text, re.MULTILINE | re.DOTALL)


@given(st.integers(0, TREES + len("\nend of trees")))
def test_truncated_text_is_refused(length):
    with pytest.raises(er.errors.DataError):
        er.models.TreeEnsemble.of_lightgbm(TEXT[:length])


@given(st.integers(0, TREES), st.integers(0, 3), st.text("0123456789-+.e= \nTabinf", max_size=3))
@settings(max_examples=120)
def test_damaged_text_is_refused_or_means_what_it_says(at, cut, put):
    """With the sizes in the header made good, so that more than they can notice it."""
    damaged = TEXT[:at] + put + TEXT[at + cut :]
    mended = damaged.replace(sizes(blocks(TEXT)), sizes(blocks(damaged)), 1)
    for text in (damaged, mended):
        try:
            scorer = er.models.TreeEnsemble.of_lightgbm(text)
        except er.errors.DataError:
            continue
        X = np.zeros((3, scorer.n_features), np.float32) + np.array([[0], [1], [np.nan]], np.float32)
        assert scorer.score(X).tolist() == tree_scores(text, X)


def in_tree(name, change):
    """``TEXT`` with a line of its second tree changed."""
    trees = blocks(TEXT)
    lines = trees[1].split("\n")
    lines = [f"{name}={change(line.partition('=')[2].split(' '))}" if line.startswith(name + "=") else line for line in lines]
    changed = [trees[0], "\n".join(lines), trees[2]]
    return TEXT.replace(sizes(trees), sizes(changed)).replace(trees[1], changed[1])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("left_child", lambda words: " ".join(["9", *words[1:]]), "tree 1: child 9 is out of range"),
        ("left_child", lambda words: " ".join(["-9", *words[1:]]), "tree 1: child -9 is out of range"),
        ("right_child", lambda words: " ".join([*words[:-1], "1"]), "tree 1: child 1 is out of range or leads back"),
        (
            "right_child",
            lambda words: " ".join(["-1" if word.startswith("-") else word for word in words]),
            "tree 1: child -1 is the child of two splits",
        ),
        ("left_child", lambda words: " ".join(words[:-1]), "tree 1: left_child has .* instead of 7 numbers"),
        ("split_feature", lambda words: " ".join(["4", *words[1:]]), "tree 1: split_feature has 4, which is below 0 or not below 4"),
        ("decision_type", lambda words: " ".join(["12", *words[1:]]), "tree 1: decision_type has 12"),
        ("leaf_value", lambda words: " ".join(["inf", *words[1:]]), "tree 1: leaf_value inf is not finite"),
        ("leaf_value", lambda words: " ".join(["1_0", *words[1:]]), "tree 1: leaf_value has '1_0"),
        ("threshold", lambda words: " ".join(["nan", *words[1:]]), "tree 1: threshold has 'nan"),
        ("decision_type", lambda words: " ".join(["1"] * len(words)), "tree 1: threshold .* names a set of categories that is not there"),
        ("num_leaves", lambda words: "0", "tree 1: num_leaves has 0"),
        ("num_leaves", lambda words: "99", "tree 1: decision_type has .* instead of 98"),
        ("num_cat", lambda words: "99", "tree 1: cat_boundaries has .* instead of 100"),
        ("cat_boundaries", lambda words: " ".join(["0"] * len(words)), "tree 1: cat_boundaries do not rise"),
        ("cat_threshold", lambda words: " ".join(["4294967296", *words[1:]]), "tree 1: cat_threshold has 4294967296"),
        ("leaf_count", lambda words: " ".join(["-1", *words[1:]]), "tree 1: leaf_count has -1"),
        ("is_linear", lambda words: "1", "tree 1 has linear models in its leaves; train with linear_tree=false"),
    ],
)
def test_damage_is_named_with_its_tree(name, change, message):
    assert in_tree(name, " ".join) == TEXT
    with pytest.raises(er.errors.DataError, match=message):
        er.models.TreeEnsemble.of_lightgbm(in_tree(name, change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with a line 'tree', not ''; give what Booster.model_to_string returns"),
        (TEXT.replace("version=v4", "version=v3"), "version 'v3'; load and save it with LightGBM 4"),
        (TEXT.replace("num_tree_per_iteration=1", "num_tree_per_iteration=3"), "give '3' scores per row"),
        (TEXT.replace("label_index=0", "label_index=0\naverage_output"), "a random forest"),
        (TEXT.replace("max_feature_idx=3", "max_feature_idx=4"), "max_feature_idx is '4'"),
        (TEXT.replace("feature_infos=", "infos="), "no line feature_infos="),
        (TEXT.replace("Tree=1\n", "Tree=2\n"), "the header announces trees"),
        (TEXT.replace("Tree=1\n", "Tree=1\nnum_leaves=3\n"), "the header announces trees"),
    ],
)
def test_text_that_cannot_be_read_is_refused_with_the_remedy(text, message):
    with pytest.raises(er.errors.DataError, match=message):
        er.models.TreeEnsemble.of_lightgbm(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"linear_tree": True}, "linear models in its leaves"),
        ({"objective": "multiclass", "num_class": 9}, "'9' scores per row"),
        ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, "a random forest, whose scores are means"),
    ],
)
def test_other_kinds_of_lightgbm_models_are_refused(arguments, message):
    with pytest.raises(er.errors.DataError, match=message):
        er.models.TreeEnsemble.of_lightgbm(trained(categorical=False, **arguments).model_to_string())


@given(boosters(), st.integers(0, 99))
@settings(max_examples=40)
def test_a_table_is_written_as_the_text_that_it_was_read_from(booster, seed):
    """To the bit in everything that decides a score, sets of categories and documents included; LightGBM reads it too."""
    text = booster.model_to_string()
    table, X = ensemble(text).table, hard_rows(text, seed)
    again = write_lightgbm(table)
    assert same(ensemble(again).table, table)
    for raw in (True, False):
        assert lgb.Booster(model_str=again).predict(X, raw_score=raw).tobytes() == booster.predict(X, raw_score=True).tobytes()
    assert (
        lgb.Booster(model_str=again)
        .model_to_string(importance_type="split")
        .partition("feature_importances")[2]
        .startswith(again.partition("feature_importances")[2].partition("\n\n")[0])
    )


@given(boosters())
@settings(max_examples=20)
def test_documents_are_counted_as_lightgbm_counts_them(booster):
    text = booster.model_to_string()
    again = write_lightgbm(ensemble(text).table)
    for ours, theirs in zip(blocks(again), blocks(text), strict=True):
        for name in ("leaf_count", "internal_count"):
            line = re.compile(f"^{name}=.*$", re.MULTILINE)
            assert line.search(ours)[0] == line.search(theirs)[0]


def test_shares_of_documents_become_counts():
    table = ensemble(TEXT).table
    shares = replace(table, cover=table.cover / 3)
    X = hard_rows(TEXT, 0)
    theirs = lgb.Booster(model_str=write_lightgbm(shares)).predict(X, pred_contrib=True)
    np.testing.assert_allclose(theirs, er.models.TreeEnsemble(table).contributions(X), atol=1e-4)
    nobody = write_lightgbm(replace(table, cover=np.zeros(len(table.cover))))
    assert np.all(np.isfinite(lgb.Booster(model_str=nobody).predict(X, pred_contrib=True)))


def test_a_tree_that_does_not_say_how_many_documents_it_has_counts_each_leaf_as_one():
    text = re.sub("^leaf_count=.*$", "leaf_count=", TEXT, flags=re.MULTILINE)
    table = read_lightgbm(text.replace(sizes(blocks(TEXT)), sizes(blocks(text))))[0]
    assert table.cover.tolist() == [1.0] * len(table.leaf_value)


def test_names_and_levels_are_written_where_lightgbm_keeps_them():
    table, levels = ensemble(TEXT).table, {"d": tuple("abc"), "a": ("x y", '"')}
    text = write_lightgbm(table, ("a", "b", "c", "d"), levels)
    assert lgb.Booster(model_str=text).pandas_categorical == [["x y", '"'], ["a", "b", "c"]]
    read, names, known = read_lightgbm(text)
    assert same(read, table)
    assert (names, known) == (("a", "b", "c", "d"), levels)
    assert read_lightgbm(write_lightgbm(table, ("a b", "b", "c", "d")))[1:] == ((), {})


@pytest.mark.parametrize("known", ["[[", "[3]", '[["a"]]', '[["a", "a"], ["b"]]', '[["a", ""], ["b"]]', "[" * 5000 + "]" * 5000])
def test_levels_that_are_not_clear_are_left_out(known):
    text = write_lightgbm(ensemble(TEXT).table, ("a", "b", "c", "d"), {"d": ("x",), "a": ("y",)})
    assert re.search("^pandas_categorical:.*$", text, re.MULTILINE)
    changed = re.sub("^pandas_categorical:.*$", lambda _: f"pandas_categorical:{known}", text, flags=re.MULTILINE)
    assert read_lightgbm(changed)[2] == {}
