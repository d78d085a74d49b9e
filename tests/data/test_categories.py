"""Features that are text or categories: codes in data, levels in models, and every path that a model with levels may take."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.data.alignment import align_features
from exactrank.data.describe import describe
from exactrank.data.files import read_with, stream, write_stream
from exactrank.data.formats import arrow, csv
from exactrank.data.formats.base import ReadOptions
from exactrank.data.formats.cache_footer import parse_footer
from exactrank.data.levels import codes_of, levels_in
from exactrank.data.ranking_data import checksum
from exactrank.errors import DataError, IncompatibleError, LeftOutWarning, SettingError
from exactrank.models.targets import TARGETS
from exactrank.serve.documents import RequestError, read_documents
from tests.reference.trees import booster_of

KINDS = ["red", "green", "blue", "Größe", "a b", "7", "<b>"]
TREES = pytest.mark.parametrize("kind", [er.LambdaMART, er.MART, er.DirectRankTrees])
FEATURES = ["color", "x", "shop"]


def table(seed=0, queries=40, levels=KINDS, missing=0.05):
    """A frame whose grades depend on a category that is text, on a number, and not on another category."""
    rng, rows = np.random.default_rng(seed), 8 * queries
    worth = dict(zip(levels, np.linspace(0, 2, len(levels)), strict=True))
    color = rng.choice(levels, rows)
    x = rng.normal(size=rows)
    grade = np.clip(np.round([worth[text] for text in color] + 0.3 * x), 0, 3)
    frame = pd.DataFrame({"query_id": np.repeat(np.arange(queries), 8), "relevance": grade, "color": color, "x": x})
    frame["shop"] = pd.Categorical(rng.choice(["s1", "s2"], rows), categories=["s2", "unused", "s1"])
    frame.loc[rng.random(rows) < missing, "color"] = None
    return frame


def fitted(kind=er.LambdaMART, frame=None, **more):
    return kind(**{"trees": 8, "min_documents": 3, "bags": 0, **more}).fit(er.RankingData.from_frame(table() if frame is None else frame))


# ---- data


texts = st.one_of(st.none(), st.text(max_size=3).filter(lambda text: "\x00" not in text and text.isprintable()))


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=1, max_size=30))
def test_codes_stand_for_the_texts(column):
    levels = levels_in(column, "f")
    assert levels == tuple(sorted({text for text in column if text}))
    codes = codes_of(column, levels)
    assert [None if np.isnan(code) else levels[int(code)] for code in codes] == [text or None for text in column]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_kind_of_frame_has_the_same_codes_and_levels(data):
    """Whatever library holds the texts, in whatever type, and in whatever order that type has its levels."""
    column = data.draw(st.lists(texts, min_size=1, max_size=12))
    known = sorted({text for text in column if text is not None}) or ["x"]
    turned = data.draw(st.permutations(known))
    rows = {"query_id": [1] * len(column), "relevance": [0.0] * len(column), "f": column}
    strings = pl.DataFrame(rows, schema_overrides={"f": pl.String})
    dictionary = pa.array(column, pa.string()).dictionary_encode()
    frames = [
        strings,
        strings.lazy(),
        strings.with_columns(pl.col("f").cast(pl.Categorical)),
        strings.with_columns(pl.col("f").cast(pl.Enum(turned))),
        pd.DataFrame(rows | {"f": pd.Categorical(column, categories=turned)}),
        pd.DataFrame(rows | {"f": pd.Series(column, dtype=object)}) if any(text is not None for text in column) else strings,
        pa.table(rows | {"f": dictionary}),
    ]
    named = er.data.Columns(features=("f",))
    ours = [er.RankingData.from_frame(frame, named) for frame in frames]
    for each in ours:
        assert each.levels == {"f": levels_in(column, "f")}
        assert np.array_equal(each.X[:, 0], codes_of(column, each.levels["f"]), equal_nan=True)


def test_categories_that_are_numbers_are_categories():
    """A pandas category of whole numbers is no amount, alone in a matrix or beside others."""
    frame = pd.DataFrame({"f": pd.Categorical([30, 10, 30, None])})
    data = er.RankingData.from_arrays(frame, [0, 1, 2, 0], group=[4])
    assert data.levels == {"f": ("10", "30")}
    assert np.array_equal(data.X[:, 0], [1, 0, 1, np.nan], equal_nan=True)


def test_what_is_left_out_is_said_with_the_remedy():
    frame = table(queries=4).assign(title=[f"t{i}" for i in range(32)], when=pd.Timestamp("2020-01-01"), parts=[[1]] * 32)
    with pytest.warns(LeftOutWarning) as warned:
        data = er.RankingData.from_frame(frame)
    assert data.feature_names == ("color", "x", "shop")
    (message,) = [str(each.message) for each in warned]
    for told in ("'title' (text that seldom repeats)", "'when' (holds Datetime", "'parts' (holds", "Columns(features=...)"):
        assert told in message
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(er.RankingData.from_frame(frame, er.data.Columns(features=("title", "x"))).levels["title"]) == 32


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["red", "red", "blue", "blue", "green"], ""),
        (["red", "red", "blue", "green"], "text that seldom repeats"),
        (["red", None, "", "red"], ""),
        ([None, "", None], "text that seldom repeats"),
        ([f"t{number // 2}" for number in range(2000)], ""),
        ([f"t{number // 2}" for number in range(2002)], "more than 1,000 different texts"),
    ],
)
def test_text_that_nobody_named_is_a_feature_where_it_repeats(texts, why):
    frame = pl.DataFrame({"query_id": [1] * len(texts), "relevance": [0.0] * len(texts), "f": texts}, schema_overrides={"f": pl.String})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        data = er.RankingData.from_frame(frame)
    assert data.feature_names == (() if why else ("f",))
    assert [str(each.message).startswith(f"frame: left out 'f' ({why})") for each in warned] == ([True] if why else [])


def test_many_columns_are_not_all_named():
    frame = pd.DataFrame({"query_id": [1], "relevance": [0.0]} | {f"t{j}": ["only"] for j in range(30)})
    with pytest.warns(LeftOutWarning, match="'t9' .* and 20 more;"):
        er.RankingData.from_frame(frame)


@pytest.mark.parametrize("suffix", ["xr", "parquet", "csv"])
def test_files_keep_levels(tmp_path, suffix):
    data = er.RankingData.from_frame(table())
    er.write(data, tmp_path / f"data.{suffix}")
    again = er.read(tmp_path / f"data.{suffix}")
    assert again.levels == data.levels
    assert np.array_equal(again.X, data.X, equal_nan=True)
    er.write(again, tmp_path / "again.xr")
    assert er.read(tmp_path / "again.xr").levels == data.levels


def test_codes_without_a_level_are_missing(tmp_path):
    """As data made by hand, or a forged file, may have them."""
    codes = np.array([[1.0], [7.0], [-1.0], [0.5], [np.nan]], np.float32)
    data = er.RankingData.from_arrays(codes, np.zeros(5), group=[5], feature_names=["f"])
    data = replace(data, levels={"f": ("a", "b")})
    assert np.array_equal(align_features(data, ("f",), levels={"f": ("b",)}).X[:, 0], [0, *[np.nan] * 4], equal_nan=True)
    for suffix in ("csv", "parquet"):
        er.write(data, tmp_path / f"data.{suffix}")
        again = read_with(tmp_path / f"data.{suffix}", ReadOptions(columns=er.data.Columns(features=("f",))))
        assert again.levels == {"f": ("b",)}
        assert np.array_equal(again.X[:, 0], [0, *[np.nan] * 4], equal_nan=True)


@pytest.mark.parametrize("levels", [[], {"f": "ab"}, {"f": ["a", "a"]}, {"f": [1]}, {"g": ["a"]}, {"f": [""]}])
def test_a_cache_with_odd_levels_is_refused(tmp_path, levels):
    er.write(er.RankingData.from_arrays([[0.0]], [0], group=[1], feature_names=["f"]), tmp_path / "data.xr")
    content = (tmp_path / "data.xr").read_bytes()
    end = content.rindex(b'{"feature_names"')
    footer = json.loads(content[end:]) | {"levels": levels}
    with pytest.raises(DataError, match="levels"):
        parse_footer(json.dumps(footer).encode(), end)
    assert parse_footer(json.dumps(footer | {"levels": {"f": ["a"]}}).encode(), end).levels == {"f": ("a",)}


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_blocks_of_a_file_share_their_levels(tmp_path, suffix, monkeypatch):
    """Levels that come late in a file are known from its first block on."""
    frame = table(queries=60, levels=[kind for kind in KINDS if kind != "7"]).sort_values("color", kind="stable")
    path = tmp_path / f"data.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    monkeypatch.setattr(arrow, "BLOCK_CELLS", 100)
    monkeypatch.setattr(csv, "CSV_BLOCK", 1 << 11)
    theirs = er.RankingData.from_frame(frame)
    write_stream(stream(path, ReadOptions()), tmp_path / "data.xr")
    for ours in (er.read(path), er.read(tmp_path / "data.xr")):
        assert ours.levels == theirs.levels
        assert np.array_equal(ours.X, theirs.X, equal_nan=True)


def test_text_for_numbers_is_refused_by_letor(tmp_path):
    with pytest.raises(IncompatibleError, match=r"LETOR text holds numbers, and 'color', 'shop' are categories; write .xr"):
        er.write(er.RankingData.from_frame(table()), tmp_path / "data.txt")


@pytest.mark.parametrize(
    ("levels", "message"),
    [({"y": ("a",)}, "'y', which is not a feature"), ({"f": ("a", "a")}, "different texts"), ({"f": ("",)}, "none of them empty")],
)
def test_levels_that_cannot_be(levels, message):
    data = er.RankingData.from_arrays([[0.0]], [0], group=[1], feature_names=["f"])
    with pytest.raises(DataError, match=message):
        er.RankingData(data.X, data.y, data.indptr, data.qid, ("f",), levels=levels)


def test_levels_stay_with_the_queries_and_count_in_the_checksum():
    frame = table(missing=0)
    data = er.RankingData.from_frame(frame)
    assert data.take_queries([3, 1]).levels == data.levels
    other = er.RankingData.from_frame(frame.assign(color=[f"z{text}" for text in frame.color]))
    codes = {level: f"z{level}" for level in data.levels["color"]}
    assert other.levels["color"] == tuple(sorted(codes.values()))
    assert np.array_equal(other.X, data.X)
    assert checksum(other) != checksum(data)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.permutations("abcde"), st.integers(0, 5))
def test_data_is_brought_to_the_levels_of_others(column, turned, count):
    """Codes stand for the same texts; those that the others lack are missing."""
    ours = tuple(turned[:count])
    data = er.RankingData.from_frame(pd.DataFrame({"query_id": 1, "relevance": 0.0, "f": column}), er.data.Columns(features=("f",)))
    result = align_features(data, ("f",), levels={"f": ours})
    assert np.array_equal(result.X[:, 0], codes_of(column, ours), equal_nan=True)
    assert result.levels == {"f": ours}


# ---- rankers and models


@TREES
def test_trees_learn_from_categories_and_models_encode_frames(kind, tmp_path):
    frame = table()
    ranker = fitted(kind, frame)
    data = er.RankingData.from_frame(frame)
    used = dict(zip(data.feature_names, ranker.model_.scorer.importance("split"), strict=True))
    assert used["color"] > 0
    without = fitted(kind, frame.drop(columns="color"))
    assert ranker.score(data) > without.score(er.RankingData.from_frame(frame.drop(columns="color"))) + 0.02
    scores = ranker.predict(data)
    ranker.save(tmp_path / "model.json")
    model = er.load(tmp_path / "model.json")
    assert model.scorer.levels == data.levels
    for rows in (frame[FEATURES], frame[FEATURES[::-1]], pl.from_pandas(frame[FEATURES]), data, data.X):
        assert np.array_equal(model.predict(rows), scores)
    assert np.array_equal(booster_of(model.scorer).predict(data.X, raw_score=True), scores)


@TREES
def test_the_order_of_levels_in_a_frame_changes_nothing(kind):
    """Neither in predictions nor in the model itself; nor does the order of the rows within a query."""
    frame = table()
    ranker, rng = fitted(kind, frame), np.random.default_rng(1)
    for _ in range(3):
        turned = frame.assign(
            color=pd.Categorical(frame.color, categories=rng.permutation(KINDS)),
            shop=frame.shop.cat.reorder_categories(["unused", "s1", "s2"]),
        )
        assert np.array_equal(ranker.predict(turned[FEATURES]), ranker.predict(frame[FEATURES]))
        assert fitted(kind, turned).model_.to_bytes() == ranker.model_.to_bytes()


def test_fit_of_a_frame_and_grades_is_that_of_the_data():
    frame = table()
    ranker = er.LambdaMART(trees=8, min_documents=3, bags=0).fit(frame[FEATURES], frame.relevance, qid=frame.query_id)
    assert ranker.model_.to_bytes() == fitted(frame=frame).model_.to_bytes()


@TREES
def test_unseen_levels_and_nulls_are_missing_values(kind):
    ranker, frame = fitted(kind), table(seed=3, missing=0.0)
    scored = [ranker.predict(frame.assign(color=text)[FEATURES]) for text in (None, "unseen", "", "RED")]
    for each in scored[1:]:
        assert np.array_equal(each, scored[0])
    rows = er.RankingData.from_frame(frame.assign(color="red")).X.copy()
    rows[:, 0] = np.nan
    assert np.array_equal(ranker.predict(rows), scored[0])


def test_validation_data_is_read_by_the_levels_of_the_training_data():
    """It has other levels, so that its own codes would be others: what chooses the number of trees is the same as for the whole frame."""
    train, valid = table(0), table(1, levels=[*KINDS[::-1], "absent"])
    data, held_out = er.RankingData.from_frame(train), er.RankingData.from_frame(valid)
    ours = er.LambdaMART(trees=30, min_documents=3, patience=3, bags=0).fit(data, valid=held_out)
    theirs = er.LambdaMART(trees=30, min_documents=3, patience=3, bags=0).fit(
        data, valid=(valid[FEATURES], valid.relevance, valid.query_id)
    )
    assert ours.model_.to_bytes() == theirs.model_.to_bytes()
    assert ours.model_.training["valid"] == pytest.approx(ours.score(held_out))


@TREES
@pytest.mark.parametrize("count", [1, 2, 300])
def test_few_and_many_levels(kind, count):
    """LightGBM's scores and ours are the same to the bit, also of levels too rare for a bin; so are those of trees as they grow."""
    rng = np.random.default_rng(0)
    levels = [f"level {number}" for number in range(count)]
    weight = 1 / np.arange(1, count + 1)
    frame = table(queries=150)
    frame["color"] = rng.choice(levels, len(frame), p=weight / weight.sum())
    frame["relevance"] = np.clip(np.round(rng.normal(size=len(frame)) + frame.color.str[6:].astype(int) % 3), 0, 3)
    ranker = fitted(kind, frame)
    data = er.RankingData.from_frame(frame)
    assert len(data.levels["color"]) == frame.color.nunique()
    scores = ranker.predict(data)
    assert np.array_equal(booster_of(ranker.model_.scorer).predict(data.X, raw_score=True), scores)
    assert ranker.model_.training["value"] == ranker.score(data)


@pytest.mark.parametrize("kind", [er.Ridge, er.DirectRank, er.LambdaRank, er.RankBoost, er.CoordinateAscent, er.RankSVM])
def test_other_rankers_refuse_with_the_remedy(kind):
    message = (
        r"takes numbers alone, and there are categories in 'color', 'shop'; encode them as numbers, leave them out, or use a tree ranker"
    )
    with pytest.raises(IncompatibleError, match=message):
        kind().fit(er.RankingData.from_frame(table(missing=0.0)))


def test_a_blend_of_trees_takes_categories(tmp_path):
    frame = table(missing=0.0)
    blend = er.Blend(members="lambdamart(trees=4, min_documents=3), mart(trees=4, min_documents=3)", bags=3).fit(
        er.RankingData.from_frame(frame)
    )
    blend.save(tmp_path / "model.json")
    assert np.array_equal(er.load(tmp_path / "model.json").predict(frame[FEATURES]), blend.predict(er.RankingData.from_frame(frame)))


@pytest.mark.parametrize("bagging", ["draws", "cross-fit", "bootstrap"])
def test_bags_keep_levels(bagging):
    frame = table()
    ranker = fitted(frame=frame, bags=3, bagging=bagging)
    assert ranker.model_.scorer.levels == er.RankingData.from_frame(frame).levels
    assert np.array_equal(ranker.predict(frame[FEATURES]), ranker.predict(er.RankingData.from_frame(frame)))


@pytest.mark.parametrize("missing", ["zero", "mean"])
def test_no_level_stands_for_a_missing_one(missing):
    with pytest.raises(SettingError, match="would put a level in the place of a missing one"):
        fitted(missing=missing)


def test_a_category_has_no_order():
    with pytest.raises(SettingError, match="'color' cannot be categorical and monotone"):
        fitted(monotone={"color": 1})


def test_numbers_for_a_category_and_the_reverse_are_refused():
    ranker, frame = fitted(), table()
    with pytest.raises(
        IncompatibleError, match=r"'color' holds numbers in the data, but it is a category of the model, with the levels '7'"
    ):
        ranker.predict(frame.assign(color=1.0)[FEATURES])
    with pytest.raises(IncompatibleError, match="'x' holds categories in the data, but the model has numbers for it"):
        ranker.predict(frame.assign(x="a")[FEATURES])
    nothing = frame.assign(color=np.nan)
    assert np.array_equal(ranker.predict(nothing[FEATURES]), ranker.predict(frame.assign(color=None)[FEATURES]))


def test_training_that_was_broken_off_goes_on(tmp_path):
    frame = table()
    data, models = er.RankingData.from_frame(frame), []
    er.LambdaMART(trees=4, min_documents=3, bags=0).fit(data, checkpoint=models.append)
    again = er.LambdaMART(trees=8, min_documents=3, bags=0).fit(data, resume=er.load(_saved(models[-1], tmp_path)))
    assert np.array_equal(again.predict(data), fitted(frame=frame).predict(data))
    other = er.RankingData.from_frame(frame.assign(color=["z" + str(text) for text in frame.color]))
    with pytest.raises(IncompatibleError, match="data="):
        er.LambdaMART(trees=8, min_documents=3, bags=0).fit(other, resume=models[-1])


def _saved(model, folder):
    model.save(folder / "model.json")
    return folder / "model.json"


def test_the_file_has_levels_and_fits_its_schema(tmp_path):
    record = json.loads(_saved(fitted().model_, tmp_path).read_text())
    schema = json.loads((Path(er.__file__).parent / "models" / "model.schema.json").read_text())
    Draft202012Validator(schema).validate(record)
    assert record["scorer"]["levels"]["shop"] == ["s1", "s2"]
    for levels in ([], {"color": "red"}, {"color": ["red", "red"]}, {"color": [1]}, {"color": [""]}, {"other": ["red"]}):
        record["scorer"]["levels"] = levels
        (tmp_path / "odd.json").write_text(json.dumps(record))
        with pytest.raises(DataError, match="levels"):
            er.load(tmp_path / "odd.json")
        assert levels == {"other": ["red"]} or not Draft202012Validator(schema).is_valid(record)


# ---- other libraries, exports, services


def test_lightgbm_reads_the_export_with_pandas(tmp_path):
    frame = table()
    ranker = fitted(frame=frame)
    export = er.export(ranker, "lightgbm")
    assert any("'color', 'shop' from pandas columns of dtype category" in remark for remark in export.remarks)
    turned = frame.assign(color=pd.Categorical(frame.color, categories=KINDS[::-1]))
    booster = lgb.Booster(model_str=export.content.decode())
    assert np.array_equal(booster.predict(turned[FEATURES], raw_score=True), ranker.predict(frame[FEATURES]))
    (tmp_path / "model.txt").write_bytes(export.content)
    assert np.array_equal(er.load(tmp_path / "model.txt").predict(frame[FEATURES]), ranker.predict(frame[FEATURES]))


def test_a_model_that_lightgbm_trained_on_pandas_reads_frames(tmp_path):
    frame = table()
    X = frame[FEATURES].assign(color=pd.Categorical(frame.color, categories=KINDS))
    theirs = lgb.LGBMRanker(n_estimators=5, min_child_samples=3, verbose=-1).fit(X, frame.relevance, group=[8] * 40)
    model = er.from_estimator(theirs)
    assert model.scorer.levels["color"] == tuple(KINDS)
    assert np.array_equal(model.predict(frame[FEATURES]), theirs.predict(X))


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "lightgbm"])
def test_exports_refuse_categories_by_name_with_the_remedy(target):
    with pytest.raises(
        IncompatibleError,
        match=r"a categorical split, which only --to lightgbm can write; .* train without 'color'.*, or with a column of 0 and 1",
    ):
        er.export(fitted(), target)


def test_the_card_and_the_summary_name_categories():
    assert "color (7 levels), shop (2 levels)" in fitted().model_.card()
    assert describe(er.RankingData.from_frame(table())).categories == {"color": 7, "shop": 2}


class Text(str):
    """A text that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Text.compared += 1
        return str.__eq__(self, other)


def test_a_service_looks_levels_up():
    """However many there are, a text is compared with a few of them only."""

    class Shops(er.models.Linear):
        levels = MappingProxyType({"shop": tuple(Text(f"{number:05}") for number in range(2000))})

    scorer = Shops(np.ones(1), ("shop",))
    assert read_documents(b'{"documents": [{"shop": "01999"}]}', scorer).rows.tolist() == [[1999]]
    Text.compared = 0
    body = json.dumps({"documents": [{"shop": f"{number:05}"} for number in range(1000, 2000)]}).encode()
    assert read_documents(body, scorer).rows.ravel().tolist() == [*range(1000, 2000)]
    assert Text.compared < 5000


def test_a_service_takes_texts():
    ranker, frame = fitted(), table()
    rows = frame[FEATURES].astype(object).where(frame[FEATURES].notna(), None)
    theirs = ranker.predict(frame[FEATURES])
    scorer = ranker.model_.scorer
    by_name = json.dumps({"documents": rows.to_dict("records")}).encode()
    by_position = json.dumps({"features": rows.to_numpy().tolist()}).encode()
    named = json.dumps({"features": rows[FEATURES[::-1]].to_numpy().tolist(), "names": FEATURES[::-1]}).encode()
    for body in (by_name, by_position, named):
        assert np.array_equal(ranker.predict(read_documents(body, scorer).rows), theirs)
    unseen = read_documents(b'{"documents": [{"color": "unseen", "x": 1, "shop": null}]}', scorer).rows
    assert np.array_equal(unseen, [[np.nan, 1, np.nan]], equal_nan=True)
    for body, place in (
        (b'{"documents": [{"color": 3, "x": 1, "shop": "s1"}]}', "documents[0].color"),
        (b'{"features": [[3, 1, 0]]}', "features[0][0]"),
        (b'{"documents": [{"color": "red", "x": "1", "shop": "s1"}]}', "documents[0].x"),
    ):
        with pytest.raises(RequestError) as refused:
            read_documents(body, scorer)
        assert refused.value.place == place


def test_importance_is_that_of_the_model_on_its_own_levels():
    frame = table()
    ranker = fitted(frame=frame)
    turned = er.RankingData.from_frame(frame[frame.color != "7"])  # all codes behind it are others
    result = er.inspect.importance(turned, ranker, repeats=1)
    assert turned.levels != ranker.model_.scorer.levels
    by_hand = align_features(turned, turned.feature_names, levels=ranker.model_.scorer.levels)
    assert result.per_feature == er.inspect.importance(by_hand, ranker, repeats=1).per_feature
    assert (
        result.value == er.evaluate(turned, ranker.predict(frame[frame.color != "7"][FEATURES]), result.measure).means[str(result.measure)]
    )


def test_commands_take_categories_and_say_what_they_leave_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = table(queries=20, levels=KINDS[:3]).assign(title=[f"t{number}" for number in range(160)])
    frame.to_csv("shop.csv", index=False)

    def run(*words):
        return CliRunner().invoke(app, [*map(str, words)])

    trained = run("train", "lambdamart", "shop.csv", "--out", "model.json", "--trees", 4, "--min-documents", 3)
    assert trained.exit_code == 0, trained.output
    assert "left out 'title' (text that seldom repeats); name the features in Columns(features=...) (--feature-columns)" in _line(
        trained.stderr
    )
    scored = run("predict", "model.json", "shop.csv", "--feature-columns", "x, color,shop")
    assert scored.exit_code == 0, scored.output
    assert "left out" not in scored.stderr
    theirs = er.load("model.json").predict(frame[FEATURES])
    assert np.array_equal([float(line) for line in scored.stdout.split()], theirs)
    refused = run("convert", "shop.csv", "shop.txt")
    assert refused.exit_code == 2
    assert "'color', 'shop' are categories; write .xr" in _line(refused.stderr)
    assert run("convert", "shop.csv", "shop.txt", "--feature-columns", "x").exit_code == 0
    assert "color: 3 levels, shop: 2 levels" in _line(run("info", "shop.csv").stdout)


def _line(text):
    return " ".join(text.split())


def test_a_comparison_has_categories():
    frame = table(queries=30, missing=0.0)
    data = er.RankingData.from_frame(frame)
    methods = ["lambdamart(trees=4, min_documents=3)", "lightgbm(trees=4)", lgb.LGBMRanker(n_estimators=4, verbose=-1), "ridge", "xgboost"]
    comparison = er.compare(data, methods, folds=3, threads=2)
    failed = {fit.method: fit.failed for fit in comparison.fits}
    assert [bool(reason) for reason in failed.values()] == [False, False, False, True, True]
    assert "use a tree ranker" in failed["ridge"]
    assert "XGBoost takes numbers alone here, and there are categories in 'color', 'shop'" in failed["xgboost"]


def test_parts_of_letors_rotation_share_their_levels(tmp_path):
    """Parts may have other levels, and so other codes for the same text; a fold has the text's own."""
    rng = np.random.default_rng(0)
    frames = []
    for number, colors in enumerate((["amber", "blue"], ["blue", "cyan"], ["dark"], ["amber", "dark"], ["cyan"])):
        frame = pd.DataFrame({"query_id": [f"{number}a"] * 4 + [f"{number}b"] * 4, "relevance": rng.integers(0, 2, 8)})
        frames.append(frame.assign(color=[colors[i % len(colors)] for i in range(8)], x=rng.normal(size=8)))
        frames[-1].to_parquet(tmp_path / f"S{number}.parquet")
    fold = er.data.read_parts([tmp_path / f"S{number}.parquet" for number in range(5)])[0]
    j = fold.train.feature_names.index("color")
    texts = [fold.train.levels["color"][int(code)] for code in fold.train.X[:, j]]
    assert texts == [text for frame in frames[:3] for text in frame["color"]]
