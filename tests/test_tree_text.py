"""LightGBM's text: trees taken, weighted and joined without loss, and damage refused with its place."""

from dataclasses import fields, replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import exactrank as xr
from exactrank.scorers.plain_tree import PlainTree, text_of
from exactrank.scorers.tree_edits import first_trees, for_ranking, joined, scaled
from exactrank.scorers.tree_text import ModelText, TreeTable

from .reference.trees import tree_scores
from .test_tree_ensemble import TEXT, boosters, hard_rows, trained

TREES = TEXT.index("\nend of trees\n")


@given(boosters(), st.integers(0, 99), st.data())
@settings(max_examples=20)
def test_the_first_trees_are_what_lightgbm_writes(booster, seed, data):
    text, count = booster.model_to_string(), data.draw(st.integers(1, booster.num_trees()))
    assert first_trees(text, count) == booster.model_to_string(num_iteration=count)
    X = hard_rows(text, seed)
    assert xr.TreeEnsemble(first_trees(text, 0)).score(X).tolist() == [0.0] * len(X)
    assert joined(first_trees(text, 0), text) == text
    assert joined(text, first_trees(text, 0)) == text


@given(boosters(), st.integers(0, 99), st.data())
@settings(max_examples=20)
def test_weights_go_into_the_leaves(booster, seed, data):
    text, trees = booster.model_to_string(), booster.num_trees()
    weights = data.draw(st.lists(st.one_of(st.just(1.0), st.floats(-3, 3)), min_size=trees, max_size=trees))
    changed, X = scaled(text, weights), hard_rows(text, seed)
    leaf = booster.predict(X, pred_leaf=True).reshape(len(X), trees)
    theirs = [sum((w * booster.get_leaf_output(t, k) for t, (w, k) in enumerate(zip(weights, own, strict=True))), 0.0) for own in leaf]
    assert xr.TreeEnsemble(changed).score(X).tolist() == theirs == lgb.Booster(model_str=changed).predict(X, raw_score=True).tolist()
    assert xr.TreeEnsemble(changed).shrinkage.tolist() == (xr.TreeEnsemble(text).shrinkage * weights).tolist()
    assert scaled(text, [1.0] * trees) == text
    contributions = lgb.Booster(model_str=changed).predict(X[:40], pred_contrib=True)
    np.testing.assert_allclose(contributions.sum(axis=1), theirs[:40], atol=1e-9)


@given(boosters(), st.integers(0, 99))
@settings(max_examples=20)
def test_joined_models_add_up(booster, seed):
    text = booster.model_to_string()
    assume(booster.num_trees() > 1)
    head, whole = first_trees(text, 1), joined(first_trees(text, 1), text)
    X, read = hard_rows(text, seed), lgb.Booster(model_str=whole)
    assert read.num_trees() == 1 + booster.num_trees() == xr.TreeEnsemble(whole).n_trees
    assert xr.TreeEnsemble(whole).score(X).tobytes() == read.predict(X, raw_score=True).tobytes()
    np.testing.assert_allclose(read.predict(X, raw_score=True), sum(xr.TreeEnsemble(part).score(X) for part in (head, text)), atol=1e-12)
    assert read.model_to_string() == whole


def test_models_of_other_data_are_joined_and_those_of_other_features_are_not():
    parts = [ModelText.of(trained(seed).model_to_string()) for seed in (0, 1)]
    whole = ModelText.of(joined(*(part.written() for part in parts)))
    assert whole.trees == parts[0].trees + parts[1].trees
    ends = [[float(end) for end in part.header["feature_infos"].split()[0][1:-1].split(":")] for part in (*parts, whole)]
    assert ends[2] == [min(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])]
    text = trained().model_to_string()
    with pytest.raises(xr.IncompatibleError, match=r"differ in feature_names, 'Column_0.* and 'Column_0 b"):
        joined(text, text.replace("Column_1", "b"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: scaled(text, [1.0]), "1 weights, .* for 3 trees"),
        (lambda text: scaled(text, [1.0, np.nan, 1.0]), "give one finite weight per tree"),
        (lambda text: scaled(text, [1.0, 1.0, 1e308]), "tree 2: leaf_value overflows; give a smaller weight"),
        (lambda text: first_trees(text, 4), "there are 3 trees, so the first 4"),
        (lambda text: first_trees(text, -1), "the first -1"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change, said):
    text = scaled(trained(trees=3).model_to_string(), [1.0, 1.0, 100.0])
    with pytest.raises(xr.DataError, match=said):
        change(text)


@given(st.integers(0, TREES + len("\nend of trees")))
def test_truncated_text_is_refused(length):
    with pytest.raises(xr.DataError):
        xr.TreeEnsemble(TEXT[:length])


@given(st.integers(0, TREES), st.integers(0, 3), st.text("0123456789-+.e= \nTabinf", max_size=3))
@settings(max_examples=120)
def test_damaged_text_is_refused_or_means_what_it_says(at, cut, put):
    """With the sizes in the header made good, so that more than they can notice it."""
    damaged = TEXT[:at] + put + TEXT[at + cut :]
    blocks = damaged[: TREES + len(damaged) - len(TEXT)].split("\nTree=")
    sizes = " ".join(str(len("Tree=" + block) + 1) for block in blocks[1:])
    mended = damaged.replace(ModelText.of(TEXT).header["tree_sizes"], sizes, 1)
    for text in (damaged, mended):
        try:
            scorer = xr.TreeEnsemble(text)
        except xr.DataError:
            continue
        X = np.zeros((3, scorer.n_features), np.float32) + np.array([[0], [1], [np.nan]], np.float32)
        assert scorer.score(X).tolist() == tree_scores(text, X)


def in_tree(name, change):
    """``TEXT`` with a line of its second tree changed."""
    model = ModelText.of(TEXT)
    lines = model.trees[1].split("\n")
    lines = [f"{name}={change(line.partition('=')[2].split(' '))}" if line.startswith(name + "=") else line for line in lines]
    trees = [model.trees[0], "\n".join(lines), model.trees[2]]
    sizes = " ".join(str(len(f"Tree={t}\n{tree}")) for t, tree in enumerate(trees))
    return TEXT.replace(model.header["tree_sizes"], sizes).replace(model.trees[1], trees[1])


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("left_child", lambda words: " ".join(["9", *words[1:]]), "tree 1: a child is out of range"),
        ("left_child", lambda words: " ".join(["-9", *words[1:]]), "tree 1: a child is out of range"),
        ("right_child", lambda words: " ".join([*words[:-1], "1"]), "tree 1: a child is out of range or leads back"),
        (
            "right_child",
            lambda words: " ".join(["-1" if word.startswith("-") else word for word in words]),
            "tree 1: a node or leaf is the child of two",
        ),
        ("left_child", lambda words: " ".join(words[:-1]), "tree 1: left_child has .* instead of 7 numbers"),
        ("split_feature", lambda words: " ".join(["4", *words[1:]]), "tree 1: split_feature has numbers that are below 0 or not below 4"),
        ("decision_type", lambda words: " ".join(["12", *words[1:]]), "tree 1: decision_type has numbers"),
        ("leaf_value", lambda words: " ".join(["inf", *words[1:]]), "tree 1: leaf_value has numbers that are not finite"),
        ("leaf_value", lambda words: " ".join(["1_0", *words[1:]]), "tree 1: leaf_value has '1_0"),
        ("threshold", lambda words: " ".join(["nan", *words[1:]]), "tree 1: threshold has 'nan"),
        ("decision_type", lambda words: " ".join(["1"] * len(words)), "tree 1: threshold names a set that is not there"),
        ("num_leaves", lambda words: "0", "tree 1: num_leaves has numbers"),
        ("num_leaves", lambda words: "99", "tree 1: decision_type has .* instead of 98"),
        ("num_cat", lambda words: "99", "tree 1: cat_boundaries has .* instead of 100"),
        ("cat_boundaries", lambda words: " ".join(["0"] * len(words)), "tree 1: cat_boundaries do not rise"),
        ("cat_threshold", lambda words: " ".join(["4294967296", *words[1:]]), "tree 1: cat_threshold has numbers"),
        ("is_linear", lambda words: "1", "tree 1 has linear models in its leaves; train with linear_tree=false"),
    ],
)
def test_damage_is_named_with_its_tree(name, change, said):
    assert in_tree(name, " ".join) == TEXT
    with pytest.raises(xr.DataError, match=said):
        xr.TreeEnsemble(in_tree(name, change))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with a line 'tree', not ''; give what Booster.model_to_string returns"),
        (TEXT.replace("version=v4", "version=v3"), "version 'v3'; load and save it with LightGBM 4"),
        (TEXT.replace("num_tree_per_iteration=1", "num_tree_per_iteration=3"), "give '3' scores per row"),
        (TEXT.replace("label_index=0", "label_index=0\naverage_output"), "a random forest"),
        (TEXT.replace("max_feature_idx=3", "max_feature_idx=4"), "max_feature_idx is '4'"),
        (TEXT.replace("feature_infos=", "infos="), "no line feature_infos="),
        (TEXT.replace("Tree=1\n", "Tree=2\n"), "the header tells of trees"),
        (TEXT.replace("Tree=1\n", "Tree=1\nnum_leaves=3\n"), "the header tells of trees"),
    ],
)
def test_text_that_cannot_be_read_is_refused_with_the_remedy(text, said):
    with pytest.raises(xr.DataError, match=said):
        xr.TreeEnsemble(text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"linear_tree": True}, "linear models in its leaves"),
        ({"objective": "multiclass", "num_class": 9}, "'9' scores per row"),
        ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, "a random forest, whose scores are means"),
    ],
)
def test_other_kinds_of_lightgbm_models_are_refused(given, said):
    with pytest.raises(xr.DataError, match=said):
        xr.TreeEnsemble(trained(categorical=False, **given).model_to_string())


@given(boosters(), st.integers(0, 99))
@settings(max_examples=40)
def test_a_table_is_written_as_the_text_that_it_was_read_from(booster, seed):
    """To the bit in everything that decides a score, sets of categories included; LightGBM reads it too."""
    text = booster.model_to_string()
    table, X = TreeTable.of(ModelText.of(text)), hard_rows(text, seed)
    again = table.text()
    read = TreeTable.of(ModelText.of(again))
    assert all(np.array_equal(getattr(read, field.name), getattr(table, field.name)) for field in fields(TreeTable))
    assert xr.TreeEnsemble(again).score(X).tobytes() == xr.TreeEnsemble(text).score(X).tobytes()
    for raw in (True, False):
        assert lgb.Booster(model_str=again).predict(X, raw_score=raw).tobytes() == booster.predict(X, raw_score=True).tobytes()
    assert (
        lgb.Booster(model_str=again)
        .model_to_string(importance_type="split")
        .partition("feature_importances")[2]
        .startswith(again.partition("feature_importances")[2].partition("\n\n")[0])
    )


@st.composite
def plain_trees(draw, n_features=3):
    """Random trees whose nodes stand in a random order, with some that nothing leads to."""
    splits = draw(st.integers(0, 12))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    left, right, leaves = [-1], [-1], [0]
    for _ in range(splits):
        node = leaves.pop(rng.integers(len(leaves)))
        left[node], right[node] = len(left), len(left) + 1
        leaves += [len(left), len(left) + 1]
        left += [-1, -1]
        right += [-1, -1]
    nodes, lost = len(left), draw(st.integers(0, 2))
    place = np.concatenate([[0], 1 + rng.permutation(nodes - 1 + lost)])[:nodes]  # of each node
    sides = np.full((2, nodes + lost), -1)
    for side, own in enumerate((left, right)):
        sides[side, place] = [place[child] if child >= 0 else -1 for child in own]
    size = nodes + lost
    missing = rng.random(size) < 0.5 if draw(st.booleans()) else None
    threshold = rng.choice([0.0, 0.5, -1.0, 1e-35, np.float32(0.1), 3.0], size)
    return PlainTree(rng.integers(0, n_features, size), threshold, *sides, rng.normal(size=size), missing)


def walked(tree, row):
    node = 0
    while tree.left[node] >= 0:
        x, left = float(row[tree.feature[node]]), tree.missing_left
        x = 0.0 if abs(x) <= 1.0000000180025095e-35 or (np.isnan(x) and left is None) else x
        goes_left = left[node] if np.isnan(x) else x <= tree.threshold[node]
        node = tree.left[node] if goes_left else tree.right[node]
    return tree.value[node]


@given(st.lists(plain_trees(), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=60)
def test_plain_trees_are_written_as_they_are_walked(trees, seed):
    text = text_of(trees, 3, ["a", "b", "c d"])
    close = [np.nextafter(np.float32(t), np.float32(side)) for t in (0.0, 0.5, -1.0, 0.1, 3.0) for side in (-np.inf, np.inf)]
    X = np.random.default_rng(seed).choice(np.array([np.nan, 0.0, 0.5, -1.0, 0.1, 3.0, np.inf, *close], np.float32), (60, 3))
    theirs = [sum((walked(tree, row) for tree in trees), 0.0) for row in X]
    assert xr.TreeEnsemble(text).score(X).tolist() == theirs
    booster = lgb.Booster(model_str=text)
    assert booster.predict(X).tolist() == theirs
    np.testing.assert_allclose(booster.predict(X, pred_contrib=True).sum(axis=1), theirs, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"left": [1, 0, -1]}, "tree 1: node 0 is the child of two nodes, or of one below it"),
        ({"right": [1, -1, -1]}, "tree 1: node 1 is the child of two"),
        ({"right": [3, -1, -1]}, "tree 1: there is a child 3 but there are 3 nodes"),
        ({"right": [-2, -1, -1]}, "tree 1: there is a child -2"),
        ({"feature": [2, 0, 0]}, "tree 1: node 0 splits at a feature that is none of the 2"),
        ({"threshold": [np.nan, 0, 0]}, "tree 1: node 0 has no number for a threshold"),
        ({"value": [0, 1.0, np.inf]}, "tree 1: node 2 has no finite value"),
        ({"gain": [np.nan, 0, 0]}, "tree 1: node 0 has no number for a gain"),
        ({"cover": [0, -1, 1]}, "tree 1: node 1 has no cover"),
    ],
)
def test_what_is_no_tree_is_named_with_its_node(given, said):
    sound = {"feature": [1, 0, 0], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1], "value": [0, 1.0, 2.0]}
    stump = PlainTree(**{name: np.array(values) for name, values in sound.items()})
    text_of([stump], 2)
    with pytest.raises(xr.DataError, match=said):
        text_of([stump, replace(stump, **{name: np.array(values) for name, values in given.items()})], 2)
    with pytest.raises(xr.DataError, match="no trees"):
        text_of([], 2)


def test_an_objective_is_added_where_there_is_none():
    custom = TEXT.replace("objective=regression\n", "").replace("[objective: regression]", "[objective: custom]")
    assert "objective=" not in custom
    mended = for_ranking(custom)
    assert mended == TEXT.replace("objective=regression", "objective=lambdarank").replace(
        "[objective: regression]", "[objective: lambdarank]"
    )
    assert for_ranking(mended) == mended
    assert for_ranking(TEXT) == TEXT
