"""The model file: its schema holds for every kind of model, files of this version stay readable, and cards are fit to be shown."""

import copy
import json
import re
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.cli import app
from exactrank.models import KINDS
from exactrank.rankers import RANKERS
from tests import GOLDEN
from tests.fuzz.mutations import changed_json

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
MODELS = sorted((GOLDEN / "models").glob("*.json"))
OLD = sorted((GOLDEN / "models_of_version_1").glob("*.json"))
SCHEMA = json.loads(resources.files("exactrank.models").joinpath("model.schema.json").read_text())
VALID = jsonschema.Draft202012Validator(SCHEMA)
#: What makes rankers quick.
FEW = {"max_iter": 2, "trees": 3, "restarts": 1, "hidden": 2, "bags": 0, "trials": 1, "folds": 2, "starts": 1}


def record(path):
    return json.loads(path.read_text())


def judged(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] + rng.normal(0, 0.5, 80), [-0.5, 0.5])
    return er.RankingData.from_arrays(X, y, qid=np.arange(80) // 8, feature_names=["bm25", "a|b", "c"])


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]) >= set(KINDS)


@pytest.mark.parametrize("name", sorted(set(RANKERS) - {"blend", "composed"}))
@pytest.mark.filterwarnings("ignore")
def test_every_ranker_writes_what_the_schema_says(name):
    ranker = RANKERS[name]
    known = {key: value for key, value in FEW.items() if key in ranker().get_params() and not (key == "hidden" and name != "ranknet")}
    try:
        model = ranker(**known).fit(judged()).model_
    except er.errors.SettingError:  # one of these has no effect beside the others
        model = ranker(**{key: known[key] for key in known if key == "trees" or key == "max_iter"}).fit(judged()).model_
    written = json.loads(model.to_bytes())
    VALID.validate(written)
    assert {"value", "steps", "interrupted"} <= set(written["training"])
    assert model.card().startswith("# Model card\n")


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_files_of_version_1_stay_loadable_with_the_same_scores(path):
    golden, model = record(GOLDEN / "scores.json"), er.load(path)
    assert record(path)["version"] == 1
    assert model.predict(np.array(golden["X"])).tolist() == golden["scores"][path.stem]
    assert json.loads(model.to_bytes()) == record(GOLDEN / "models" / path.name)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_files_of_this_version_stay_loadable_with_the_same_scores(path):
    golden, model = record(GOLDEN / "scores.json"), er.load(path)
    scores = model.predict(np.array(golden["X"]))
    assert scores.tolist() == golden["scores"][path.stem]
    VALID.validate(record(path))
    assert json.loads(model.to_bytes())["scorer"] == record(path)["scorer"]


def test_there_is_a_golden_file_of_every_kind():
    assert {record(path)["scorer"]["kind"] for path in MODELS} == set(KINDS)
    assert {path.stem for path in MODELS} == {path.stem for path in OLD} | {"kernel"} == set(record(GOLDEN / "scores.json")["scores"])


@given(st.integers(0, 10**6), st.sampled_from(MODELS))
@settings(max_examples=50, deadline=None)
def test_what_can_be_loaded_is_saved_by_the_schema(tmp_path_factory, seed, path):
    """Whatever was changed, it is refused, or means something that the schema allows."""
    file = tmp_path_factory.mktemp("changed") / "m.json"
    file.write_text(json.dumps(changed_json(np.random.default_rng(seed), record(path))))
    try:
        model = er.load(file)
    except er.errors.DataError:
        return
    VALID.validate(json.loads(model.to_bytes()))
    assert model.card()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("version",), 3), (("version",), True), (("format",), "other"), (("scorer", "kind"), "forest"), (("scorer", "weights"), {}),
        (("scorer", "weights", "bm25"), "x"), (("scorer", "missing"), "maybe"), (("training", "steps"), "many"),
        (("training", "interrupted"), 1), (("training", "value"), []), (("training", "chosen"), []), (("data", "queries"), "x"),
        (("data", "documents"), True), (("data", "checksum"), 5), (("seed",), 0.5), (("scorer", "fill"), None), (("params",), []),
    ],
)  # fmt: skip
def test_the_schema_and_the_reader_refuse_the_same(place, value, tmp_path):
    damaged = copy.deepcopy(record(GOLDEN / "models" / "linear.json"))
    at = damaged
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value
    assert not VALID.is_valid(damaged)
    (tmp_path / "m.json").write_text(json.dumps(damaged))
    with pytest.raises(er.errors.DataError, match=r"m\.json"):
        er.load(tmp_path / "m.json")


# Cards

WICKED = ["<script>alert(1)</script>", "[x](javascript:1)", "a|b\n# heading", "\x1b[2J", "![x](y)", "`x`", "_x_", "\u202eabc"]


def test_cards_show_names_as_words():
    """Whatever names are, they stay in their cells: the card has its own headings, tables and fences only."""
    pages = [er.Model(er.models.Linear(np.arange(1.0, 9.0), names), ranker=names[0], params={names[1]: names[2]}).card()
             for names in (tuple(WICKED), tuple("abcdefgh"))]  # fmt: skip
    shapes = [[re.sub(r"^\|.*", "|", line) for line in page.split("\n")] for page in pages]
    assert shapes[0] == shapes[1]
    assert all(line.isprintable() for line in pages[0].split("\n"))
    assert not re.search(
        r"(?<!\\)<script|(?<!\\)\]\(|(?<!\\)`x", pages[0].partition("## Use")[0].replace("`exactrank inspect importance`", "")
    )
    rows = [line for line in pages[0].split("\n") if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in rows)


def test_cards_say_what_is_known():
    ranker = er.Ridge(bags=3, bagging="cross-fit").fit(judged())
    page = ranker.model_.card()
    low, high = ranker.estimate_.interval
    for message in (
        f"{ranker.estimate_.mean:.6g}",
        f"{low:.4g} .. {high:.4g}",
        "| queries | 10 |",
        "| documents | 80 |",
        "bagging | cross-fit",
    ):
        assert message in page
    wide = er.Model(er.models.Linear(np.arange(1.0, 151.0))).card()
    assert "The first 100 of 150 features" in wide
    assert "column 149" in wide
    assert "column 49 " not in wide
    assert "Quality" not in wide
    broken_off = er.Model(er.models.Linear(np.ones(1)), training={"interrupted": True}).card()
    assert "interrupted: this is the best model up to then" in broken_off


def test_the_command_writes_the_card(tmp_path):
    from typer.testing import CliRunner

    path = str(GOLDEN / "models" / "trees.json")
    printed = CliRunner().invoke(app, ["card", path]).stdout
    assert printed == er.load(path).card()
    out = tmp_path / "model.card.md"
    assert CliRunner().invoke(app, ["card", path, "--out", str(out)]).exit_code == 0
    assert out.read_text() == printed
    assert CliRunner().invoke(app, ["card", path, "--out", str(out)]).exit_code == 2
    assert CliRunner().invoke(app, ["card", path, "--out", str(out), "--force"]).exit_code == 0
