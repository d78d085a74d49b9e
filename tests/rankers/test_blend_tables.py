"""Blends of real tables: text columns, numbers that are categories, and missing values."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import exactrank as er
from exactrank.rankers.numeric import NumericData

FEATURES = ["color", "price", "shop", "stars"]
WORTH = {"red": 0.0, "green": 0.6, "blue": 1.2, "Größe <b>": 1.8}
MEMBERS = "ridge, ranknet(hidden=2, max_iter=3), mart(trees=8, min_documents=3), lambdamart(trees=8, min_documents=3)"
NUMBERS = "ridge, ranknet(hidden=2, max_iter=3)"  #: of these the ones that take numbers alone


def table(seed=0, queries=40, missing=0.1):
    """A frame whose grades depend on a category that is text and on two numbers, with missing values in all."""
    rng, rows = np.random.default_rng(seed), 8 * queries
    frame = pd.DataFrame({"query_id": np.repeat(np.arange(queries), 8), "color": rng.choice(list(WORTH), rows)})
    frame["price"], frame["stars"] = rng.normal(size=rows), rng.integers(0, 5, rows).astype(float)
    frame["shop"] = pd.Categorical(rng.choice(["s1", "s2"], rows))
    frame["relevance"] = np.clip(np.round(frame.color.map(WORTH) + 0.7 * frame.price + 0.1 * frame.stars), 0, 3)
    for name in FEATURES:
        frame.loc[rng.random(rows) < missing, name] = None
    return frame


def blended(frame=None, **more):
    frame = table() if frame is None else frame
    ranker = er.Blend("nDCG@5", **({"members": MEMBERS, "bags": 3, "threads": 1} | more))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return ranker.fit(er.RankingData.from_frame(frame))


def test_a_frame_with_text_and_holes_goes_all_the_way(tmp_path):
    frame, new = table(), table(seed=1)
    with pytest.warns(UserWarning, match="without 'color', 'shop'") as caught:
        blend = er.Blend("nDCG@5", members=MEMBERS, bags=3, threads=1).fit(frame[FEATURES], frame.relevance, qid=frame.query_id)
    message = f"{NUMBERS}: without 'color', 'shop', since categories are not amounts"
    assert [str(each.message) for each in caught] == [f"Blend: {message}"]
    chosen = blend.model_.training["chosen"]
    assert chosen["remarks"] == [message, f"{NUMBERS}: the feature's mean stands for missing values"]
    assert set(chosen["weights"]) == {"linear", "network", "trees"}
    blend.save(tmp_path / "model.json")
    model = er.load(tmp_path / "model.json")
    assert model.training["chosen"] == chosen
    data = er.RankingData.from_frame(new)
    scores = blend.predict(data)
    assert np.all(np.isfinite(scores))
    for rows in (new[FEATURES], new[FEATURES[::-1]], data):
        assert np.array_equal(model.predict(rows), scores)
    assert er.evaluate(data, scores, "nDCG@5")["nDCG@5"].mean == blend.score(data)
    assert blend.model_.training["value"] == blend.score(er.RankingData.from_frame(frame))
    numbers = new.drop(columns=["color", "shop"])
    without = er.Blend("nDCG@5", members=MEMBERS, bags=3, threads=1).fit(er.RankingData.from_frame(frame.drop(columns=["color", "shop"])))
    assert blend.score(data) > without.score(er.RankingData.from_frame(numbers)) + 0.02, "the categories count"


def test_the_default_members_take_real_tables():
    """All of them train, and each is the model or a part of it."""
    blend = blended(members="all", weighting="equal")
    assert len(blend.model_.training["chosen"]["members"]) == len(er.rankers.blend.SETS["all"])
    assert {part.kind for part in blend.model_.scorer.parts} == {"linear", "trees"}


def test_linear_members_learn_from_what_is_written():
    """From the numbers with their means in the place of missing values: the linear part is a multiple of that of numbers alone."""
    frame = table()
    data = er.RankingData.from_frame(frame)
    linear = next(part for part in blended(frame, weighting="equal").model_.scorer.parts if part.kind == "linear")
    price, stars = (data.feature_names.index(name) for name in ("price", "stars"))
    numbers = er.RankingData.from_frame(frame.drop(columns=["color", "shop"]))
    theirs = blended(frame.drop(columns=["color", "shop"]), members="ridge", missing="mean").model_.scorer
    assert np.all(np.delete(linear.weights, [price, stars]) == 0)
    ratio = linear.weights[[price, stars]] / theirs.weights
    assert numbers.feature_names == ("price", "stars")
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    np.testing.assert_allclose(linear.fill[[price, stars]], [frame.price.mean(), frame.stars.mean()], rtol=1e-6)


def test_the_order_of_the_rows_changes_neither_models_nor_scores():
    frame = table()
    blend, rng = blended(frame), np.random.default_rng(0)
    turned = frame.sample(frac=1.0, random_state=1).sort_values("query_id", kind="stable")
    assert blended(turned).model_.scorer.to_record() == blend.model_.scorer.to_record()
    rows = rng.permutation(len(frame))
    assert np.array_equal(blend.predict(frame[FEATURES].iloc[rows]), blend.predict(frame[FEATURES])[rows])


def test_levels_that_are_new_and_holes_that_are_new_are_missing_values():
    """Also where the training data had none."""
    blend = blended(table(missing=0.0))
    new = table(seed=2, missing=0.0)
    assert np.array_equal(blend.predict(new.assign(color="mauve")[FEATURES]), blend.predict(new.assign(color=None)[FEATURES]))
    assert np.all(np.isfinite(blend.predict(new.assign(price=np.nan)[FEATURES])))


def test_numbers_are_categories_where_the_setting_says_so():
    frame = table().drop(columns=["color", "shop"])
    blend = blended(frame, categorical=["stars"], weighting="equal")
    linear, network, trees = (
        next(part for part in blend.model_.scorer.parts if part.kind == kind) for kind in ("linear", "network", "trees")
    )
    stars = linear.feature_names.index("stars")
    assert linear.weights[stars] == 0
    assert np.all(network.weights[:, stars] == 0)
    assert trees.importance("split")[stars] > 0
    assert trees.table.decision[trees.table.feature == stars].tolist() != []
    amounts = blended(frame, weighting="equal")
    assert amounts.model_.to_bytes() != blend.model_.to_bytes()
    assert not np.array_equal(amounts.predict(frame[["price", "stars"]]), blend.predict(frame[["price", "stars"]]))


def test_without_holes_models_are_as_strict_as_their_members():
    data = replace(er.RankingData.from_frame(table(missing=0.0).drop(columns=["color", "shop"])))
    linear = er.Blend("nDCG@5", members="ridge", bags=3).fit(data)
    assert linear.model_.scorer.missing == "error"
    with pytest.raises(er.errors.DataError, match="values are missing"):
        linear.predict(np.full((1, 2), np.nan))


@pytest.mark.parametrize("after", [1, 5])
def test_a_model_that_is_broken_off_reads_the_table(after):
    """The first member splits categories, whatever the order in which they are named."""
    frame, steps = table(), []

    def listener(progress):
        steps.append(progress)
        if len(steps) == after:
            raise KeyboardInterrupt

    with pytest.warns(er.errors.InterruptedWarning), pytest.warns(UserWarning, match="without 'color', 'shop'"):
        blend = er.Blend("nDCG@5", members=MEMBERS, bags=3, threads=1).fit(er.RankingData.from_frame(frame), progress=listener)
    assert blend.model_.scorer.levels == er.RankingData.from_frame(frame).levels
    assert np.all(np.isfinite(blend.predict(frame[FEATURES])))


def test_a_family_without_weight_stays_where_it_knows_the_levels(monkeypatch):
    monkeypatch.setattr(er.rankers.blend, "best_weights", lambda bound, scores, equal: np.eye(len(scores))[-1])
    blend = blended(members="ridge, mart(trees=3, min_documents=3)")
    assert blend.model_.training["chosen"]["weights"] == {"trees": 0.0, "linear": 1.0}
    assert np.all(np.isfinite(blend.predict(table(seed=1)[FEATURES])))


def test_stand_ins_are_of_differences_where_float32_is_too_short():
    frame = table().drop(columns=["color", "shop"])
    frame["price"] = 1e9 + frame.price.round(3)
    data = er.RankingData.from_frame(frame)
    assert data.offset is not None
    blend = blended(frame, weighting="equal")
    linear = next(part for part in blend.model_.scorer.parts if part.kind == "linear")
    price = linear.feature_names.index("price")
    assert linear.fill[price] == pytest.approx(frame.price.mean(), abs=1e-3)
    assert blend.model_.training["value"] == blend.score(data)
    assert np.array_equal(blend.predict(frame[["price", "stars"]]), blend.predict(data))


def test_data_in_several_files_give_the_same_bits(tmp_path):
    frame = table(queries=30).drop(columns=["color", "shop"])
    data = er.RankingData.from_frame(frame)
    for number in range(3):
        er.write(data.take_queries(range(10 * number, 10 * number + 10)), tmp_path / f"{number}.xr")
    members = "ridge, listnet(max_iter=3), mart(trees=5, min_documents=3)"
    shards = er.read_shards([tmp_path / f"{number}.xr" for number in range(3)])
    more = {"members": members, "bags": 3, "threads": 1, "categorical": ["stars"]}
    with pytest.warns(UserWarning, match="without 'stars'"):
        ours, whole = (er.Blend("nDCG@5", **more).fit(each) for each in (shards, data))
    assert ours.model_.scorer.to_record() == whole.model_.scorer.to_record()
    assert ours.model_.scorer.parts[0].missing == "mean"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"members": "linear"},
            r"Blend: its members take numbers alone, and there are categories in 'color', 'shop'; .* as members='all' does",
        ),
        ({"missing": "mean"}, "would put a level in the place of a missing one"),
        ({"missing": "error"}, "values are missing"),
        ({"categorical": ["weight"]}, r"categorical names 'weight', which is not a feature; there are .*color"),
    ],
)
def test_what_is_still_refused(given, message):
    with pytest.raises(er.errors.ExactRankError, match=message):
        blended(**given)


def test_a_member_whose_model_cannot_leave_a_feature_out_is_left_out_with_a_remark():
    pytest.importorskip("torch")
    with pytest.warns(UserWarning, match=r"torch.* is left out of the blend: a .* model cannot leave out 'color', 'shop'"):
        blend = er.Blend("nDCG@5", members="mart(trees=3, min_documents=3), torch(max_iter=1, hidden=(2,))", bags=3, threads=1).fit(
            er.RankingData.from_frame(table())
        )
    assert "torch" in blend.model_.training["chosen"]["remarks"][-1]


def test_complete_numbers_are_taken_as_they_are():
    data = er.RankingData.from_frame(table(missing=0.0).drop(columns=["color", "shop"]))
    assert NumericData.of(data, (), keep=False, threads=1).data is data
