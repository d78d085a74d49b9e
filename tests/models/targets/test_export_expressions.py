"""Vespa and Lucene: what is written scores as the model does, by slow twins, by what real engines gave, and by Lucene itself."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.models.targets.expression import evaluate_text
from exactrank.models.targets.lucene_expression import MOST, TERMS, _tree, byte_code
from exactrank.models.targets.plain import plain
from exactrank.models.targets.vespa import import_expression
from exactrank.models.tree_ensemble import TreeEnsemble
from tests import GOLDEN
from tests.models.targets.engine_rows import FEATURES, as_data, forest, models, rows_near
from tests.reference.engines_text import vespa_import, vespa_score

ENGINES = GOLDEN / "engines"
TARGETS = ["vespa", "lucene-expression"]


def twin_scores(export, rows, features=FEATURES):
    return export.target.scores(export.content, rows.astype(np.float64), features)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(TARGETS))
def test_scores_are_those_of_the_model(seed, target):
    missing = "zero" if target == "lucene-expression" else "keep"  # which it refuses: a document without a value gets 0
    for kind, scorer in models(seed, missing).items():
        export, rows = er.export(scorer, target), rows_near(scorer, seed)
        if kind in ("thresholds", "trees"):
            np.testing.assert_array_equal(twin_scores(export, rows), scorer.score(rows))
        assert export.check(as_data(rows)).beyond_rounding == 0


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(["keep", "zero"]))
def test_vespa_sends_missing_values_where_the_model_does(seed, missing):
    scorer = forest(seed, missing)
    rows = rows_near(scorer, seed, holes=0.3)
    np.testing.assert_array_equal(twin_scores(er.export(scorer, "vespa"), rows), scorer.score(rows))
    linear = er.models.Linear(np.array([0.5, -1.5, 2.0]), FEATURES, missing="zero")
    both = er.models.Sum((linear, scorer), np.array([1.0, 0.5]))
    assert er.export(both, "vespa").check(as_data(rows)).beyond_rounding == 0


def test_lucene_takes_absent_values_for_0():
    scorer = forest(1, "zero")
    rows = rows_near(scorer, 1, holes=0.3)
    np.testing.assert_array_equal(twin_scores(er.export(scorer, "lucene-expression"), rows), scorer.score(rows))
    kept = forest(2, "keep")
    with pytest.raises(IncompatibleError, match=r"\(missing='keep'\); train with missing='zero'"):
        er.export(kept, "lucene-expression")


@pytest.mark.parametrize("case", ["no_missing", "nan_missing"])
def test_vespa_imports_what_the_real_importer_does(case):
    golden = json.loads((ENGINES / f"{case}.json").read_text())
    booster = lgb.Booster(model_str=golden["lightgbm_text"])

    def numbers_as_python_writes_them(text):
        return re.sub(r"(?<![\w.])\d[\d.]*(?:[eE][-+]?\d+)?", lambda result: repr(float(result[0])), text).replace("\n", "")

    expression, ours = golden["vespa"]["expression"], vespa_import(booster.dump_model())
    assert numbers_as_python_writes_them(ours) == numbers_as_python_writes_them(expression)
    X, features = np.array(golden["X"], np.float64), golden["features"]
    slow = [vespa_score(expression, features, row) for row in X]
    fast = evaluate_text(expression, dict(zip(features, X.T, strict=True)))
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_array_equal(fast, evaluate_text(import_expression(booster.dump_model()), dict(zip(features, X.T, strict=True))))
    # The importer asks x < t, so a row at a threshold, 1e-35, may differ; with the thresholds that we write none does.
    expected, at = np.array(golden["lightgbm_scores"]), np.any(np.float32(1e-35) == X, axis=1)
    np.testing.assert_array_equal(fast[~at], expected[~at])
    assert np.array_equal(fast, expected) == (case == "no_missing")
    export = er.export(TreeEnsemble.of_lightgbm(golden["lightgbm_text"]), "vespa")
    np.testing.assert_array_equal(export.target.scores(export.content, X, features), expected)
    slow = [vespa_score(vespa_import(json.loads(export.text)), features, row) for row in X]
    np.testing.assert_array_equal(slow, expected)


def test_vespa_writes_the_four_keys_that_its_importer_reads():
    model = json.loads(er.export(forest(0), "vespa").text)
    assert list(model) == ["objective", "feature_names", "pandas_categorical", "tree_info"]
    assert (model["objective"], model["feature_names"], model["pandas_categorical"]) == ("lambdarank", list(FEATURES), [])


def test_vespa_knows_its_own_features_from_functions():
    named = er.models.Linear(np.array([0.5, -1.0]), ("bm25(title)", "fieldMatch(title).completeness"))
    export = er.export(named, "vespa", model_name="mine")
    assert "0.5 * bm25(title) +\n            -1.0 * fieldMatch(title).completeness" in export.text
    assert export.remarks == ("save it as schemas/SCHEMA/mine.profile in the application, where SCHEMA is the name of your schema",)
    assert "function bm25() { expression: ... }" in er.export(forest(0), "vespa").remarks[1]


@pytest.mark.parametrize("name", ["if", "tanh", "a b", "1a", "a}", "title-bm25", "bm25(title", "é", ""])
def test_names_that_vespa_cannot_read_are_refused(name):
    with pytest.raises(IncompatibleError, match="vespa cannot have a feature called"):
        er.export(er.models.Linear(np.ones(2), ("fine", name)), "vespa")


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_no_numbers_never_come_to_an_export(weight):
    with pytest.raises(DataError, match="finite"):
        er.models.Linear(np.array([weight]), ("a",))


@pytest.mark.parametrize("name", ["", "a b", "1a", "if", "default", "a(b)", "bm25", "é"])
def test_a_rank_profile_needs_a_name_of_its_own(name):
    with pytest.raises(SettingError, match=re.escape(f"model_name={name!r}")):
        er.export(forest(0), "vespa", model_name=name)
    with pytest.raises(SettingError, match="needs a function 'a_linear', but a feature has that name"):
        er.export(er.models.Linear(np.ones(1), ("a_linear",)), "vespa", model_name="a")


@pytest.mark.parametrize("name", ["a b", "1a", "a-b", "a.", "a'", "é"])
def test_names_that_lucene_cannot_read_are_refused(name):
    with pytest.raises(IncompatibleError, match="lucene-expression cannot have a feature called"):
        er.export(er.models.Linear(np.ones(1), (name,)), "lucene-expression")


def test_lucene_variables():
    linear = er.models.Linear(np.array([0.5, -1.0]), ("_score", "stats.age"))
    export = er.export(linear, "lucene-expression", variables="doc")
    assert export.text == "0.5 * _score - 1.0 * doc['stats.age'].value\n"
    np.testing.assert_array_equal(twin_scores(export, np.array([[2.0, 3.0]]), linear.feature_names), [-2.0])
    assert er.export(er.models.Linear(np.zeros(1), ("a",)), "lucene-expression").text == "0.0\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a +", "where a value"),
        ("a c", "neither"),
        ("(a", "where '\\)'"),
        ("a a", "should end"),
        ("b + 1", "neither"),
        ("a ? 1", "where ':'"),
    ],
)
def test_a_damaged_expression_is_refused(text, says):
    with pytest.raises(DataError, match=says):
        evaluate_text(text, {"a": np.ones(2)})


def test_expressions_are_read_up_to_a_depth():
    assert evaluate_text("(" * 150 + "a" + ")" * 150, {"a": np.ones(2)}).tolist() == [1.0, 1.0]
    with pytest.raises(DataError, match="nested too deeply"):
        evaluate_text("(" * 50_000 + "a" + ")" * 50_000, {"a": np.ones(2)})


def large_forest(count):
    """So many trees of 31 leaves, of noise."""
    rng = np.random.default_rng(0)
    data = er.RankingData.from_arrays(rng.normal(size=(600, 3)), rng.integers(0, 3, 600), group=[20] * 30, feature_names=FEATURES)
    return er.LambdaMART(trees=count, bags=0, leaves=31, min_documents=1, missing="zero").fit(data).model_.scorer


def test_what_java_would_not_take_is_refused():
    with pytest.raises(IncompatibleError, match=r"bytes of byte code, above 60,000 .* train fewer or smaller trees"):
        er.export(large_forest(90), "lucene-expression")
    wide = er.models.Linear(np.ones(TERMS + 1), tuple(f"x{j}" for j in range(TERMS + 1)))
    with pytest.raises(IncompatibleError, match="1,001 terms"):
        er.export(wide, "lucene-expression")
    assert "interpreted" in er.export(large_forest(20), "lucene-expression").remarks[1]


JAVA = """
import java.nio.file.*; import java.util.*;
import org.apache.lucene.expressions.*; import org.apache.lucene.expressions.js.*; import org.apache.lucene.search.*;
public class Scores {
  public static void main(String[] files) throws Exception {
    for (String file : files) {
      List<String> lines = Files.readAllLines(Paths.get(file));
      List<String> names = Arrays.asList(lines.get(1).split(" "));
      Expression expression;
      try { expression = JavascriptCompiler.compile(lines.get(0)); }
      catch (org.objectweb.asm.MethodTooLargeException error) { System.out.println("size " + error.getCodeSize()); continue; }
      DoubleValues[] values = new DoubleValues[expression.variables.length];
      double[][] row = new double[1][];
      for (int i = 0; i < values.length; i++) {
        final int at = names.indexOf(expression.variables[i]);
        values[i] = new DoubleValues() {
          public double doubleValue() { return row[0][at]; }
          public boolean advanceExact(int doc) { return true; }
        };
      }
      StringBuilder out = new StringBuilder("scores");
      for (String line : lines.subList(2, lines.size())) {
        row[0] = Arrays.stream(line.split(" ")).mapToDouble(Double::parseDouble).toArray();
        out.append(" ").append(expression.evaluate(values));
      }
      System.out.println(out);
    }
  }
}
"""
JARS = [f"/usr/share/java/{name}.jar" for name in ("asm", "asm-commons", "antlr4-runtime")]


@pytest.fixture(scope="module")
def lucene(tmp_path_factory):
    """A function that gives the scores of expressions for rows by Lucene, or the size of one that is too large."""
    jars = [
        *JARS,
        *map(str, Path("/usr/share/java").glob("lucene-core-*.jar")),
        *map(str, Path("/usr/share/java").glob("lucene-expr*-*.jar")),
    ]
    if shutil.which("javac") is None or len(jars) < 5 or not all(Path(jar).exists() for jar in jars):
        pytest.skip("needs a JDK and Debian's liblucene8-java, libasm-java and libantlr4-runtime-java")
    folder = tmp_path_factory.mktemp("lucene")
    (folder / "Scores.java").write_text(JAVA)

    def scores(cases):
        for number, (expression, names, rows) in enumerate(cases):
            lines = [expression.strip(), " ".join(names), *(" ".join(map(repr, row)) for row in rows.tolist())]
            (folder / str(number)).write_text("\n".join(lines))
        command = [
            "java",
            "-Xss16m",
            "-cp",
            ":".join(jars),
            str(folder / "Scores.java"),
            *(str(folder / str(n)) for n in range(len(cases))),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        result = (line.split() for line in done.stdout.splitlines())
        return [int(words[1]) if words[0] == "size" else np.array([float(word) for word in words[1:]]) for words in result]

    return scores


def test_lucene_itself_scores_as_the_model_does(lucene):
    known = [(kind, scorer, seed) for seed in range(4) for kind, scorer in models(seed).items()]
    wide = er.models.Linear(np.linspace(-1, 1, TERMS), tuple(f"x{j}" for j in range(TERMS)))
    known += [("trees", large_forest(67), 0), ("linear", wide, 0)]  # the largest that are written
    cases, expected = [], []
    for kind, scorer, seed in known:
        export, rows = er.export(scorer, "lucene-expression"), rows_near(scorer, seed, count=120 if scorer is not wide else 2)
        cases.append((export.text, scorer.feature_names, rows.astype(np.float64)))
        expected.append((kind, twin_scores(export, rows, scorer.feature_names), scorer.score(rows)))
    assert 0.9 * MOST < byte_code(plain(er.Model(known[-2][1]))) <= MOST
    too_large = plain(er.Model(large_forest(90)))
    cases.append((" + ".join(_tree(tree, FEATURES) for tree in too_large.trees), FEATURES, np.zeros((1, 3))))
    *theirs, size = lucene(cases)
    assert isinstance(size, int)  # that of the byte code which Java would not take
    assert size <= byte_code(too_large) <= 1.1 * size
    for (kind, twin, model), own in zip(expected, theirs, strict=True):
        if kind in ("network", "sum"):  # Java's tanh is its own
            np.testing.assert_allclose(own, twin, rtol=1e-13, atol=1e-13)
        else:
            np.testing.assert_array_equal(own, twin)
        np.testing.assert_allclose(own, model, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("target", ["vespa", "lucene-expression"])
def test_features_that_are_numbered_as_in_letor_get_a_prefix(target):
    model = er.models.Linear(np.array([0.5, -1.0]), ("1", "2"))
    export = er.export(model, target)
    assert "0.5 * feature_1" in export.text
    assert "feature '1' is called feature_1, and so on" in export.remarks[0]
    data = er.RankingData.from_arrays([[1.0, 2.0], [3.0, 0.0]], [0, 1], qid=[1, 1], feature_names=["1", "2"])
    assert export.check(data).largest == 0.0


def test_features_are_renamed_for_an_export():
    model = er.models.Linear(np.array([0.5, -1.0]), ("title", "2"))
    export = er.export(model, "vespa", rename={"title": "bm25(title)", "2": "age"})
    assert "0.5 * bm25(title) +\n            -1.0 * age" in export.text
    assert not any("is called" in remark for remark in export.remarks)
    for rename, message in (
        ({"body": "x"}, "rename has 'body', and the model's features are title, 2"),
        ({"title": "feature_2"}, "two features would be called 'feature_2'"),
    ):
        with pytest.raises(er.errors.SettingError, match=message):
            er.export(model, "vespa", rename=rename)
    with pytest.raises(IncompatibleError, match="cannot have a feature called 'a b'"):
        er.export(model, "vespa", rename={"title": "a b"})
