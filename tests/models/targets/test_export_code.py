"""Python and C: the written function is run, and scores as the model does."""

import ctypes
import math
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import IncompatibleError, SettingError
from exactrank.models.network import Network
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.targets.generated_code import check_function_name
from exactrank.models.targets.plain import plain
from tests.models.targets.engine_rows import FEATURES, as_data, forest, models, rows_near
from tests.models.targets.test_export import plain_scores

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
TARGETS = ["python", pytest.param("c", marks=needs_compiler)]
ODD = ("", "a b", 'quote"', "'", "back\\slash", "??/", "*/ int x; /*", "{name}", "%s", "\n", "\0", "é", "\udcff", "while", "score", "x0")


def twin_scores(export, rows, features=FEATURES):
    return export.target.scores(export.content, rows.astype(np.float64), features)


def function_of(export):
    namespace = {}
    exec(export.text, namespace)
    return namespace[export.target.model_name]


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6))
def test_scores_are_those_of_the_model(target, seed):
    for kind, scorer in models(seed).items():
        export, rows = er.export(scorer, target), rows_near(scorer, seed)
        if kind in ("thresholds", "trees"):
            np.testing.assert_array_equal(twin_scores(export, rows), scorer.score(rows))
        else:
            assert export.check(as_data(rows)).beyond_rounding == 0


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), missing=st.sampled_from(["keep", "zero", "mean"]))
def test_missing_values_are_what_the_model_takes_them_for(target, seed, missing):
    scorer = forest(seed, missing)
    rows = rows_near(scorer, seed, holes=0.3)
    np.testing.assert_array_equal(twin_scores(er.export(scorer, target), rows), scorer.score(rows))
    linear = er.models.Linear(np.array([0.5, -1.5, 2.0]), FEATURES, missing="zero" if missing == "keep" else missing, fill=scorer.fill)
    both = er.models.Sum((linear, scorer), np.array([1.0, 0.5]))
    assert er.export(both, target).check(as_data(rows)).beyond_rounding == 0


@needs_compiler
@settings(max_examples=2)
@given(seed=st.integers(0, 10**6))
def test_python_and_c_agree_to_the_bit(seed):
    """But for tanh, which is each library's own; the row by row formula is near both."""
    for kind, scorer in models(seed).items():
        rows = rows_near(scorer, seed)
        python, c = (twin_scores(er.export(scorer, target), rows) for target in ("python", "c"))
        if kind not in ("network", "sum"):
            np.testing.assert_array_equal(python, c)
        np.testing.assert_allclose(python, plain_scores(plain(er.Model(scorer)), rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("none", [{}, {"bm25": None}, {"bm25": math.nan}])
def test_absent_none_and_nan_are_missing(none):
    scorer = er.models.Linear(np.array([2.0, 1.0]), ("bm25", "age"), missing="mean", fill=np.array([10.0, 1.0]))
    assert function_of(er.export(scorer, "python"))({"age": 3, "another": 7} | none) == 23.0


@pytest.mark.parametrize("target", TARGETS)
def test_any_name_of_a_feature_will_do(target):
    linear = er.models.Linear(np.arange(1.0, len(ODD) + 1), ODD)
    row = np.arange(2.0, len(ODD) + 2)[None]
    assert twin_scores(er.export(linear, target), row, ODD).tolist() == [float(row[0] @ linear.weights)]


@needs_compiler
def test_c_is_clean_and_knows_its_features(tmp_path):
    names = tuple(name for name in ODD if "\0" not in name)  # which ends a string of C
    for kind, scorer in (models(3) | {"odd": er.models.Linear(np.ones(len(names)), names)}).items():
        source, library = tmp_path / "m.c", tmp_path / f"{kind}.so"
        er.export(scorer, "c", model_name="mine").save(source, force=True)
        command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC", "-o", library, source, "-lm"]
        subprocess.run(command, check=True)
        loaded = ctypes.CDLL(str(library))
        width = ctypes.c_int.in_dll(loaded, "mine_width").value
        known = (ctypes.c_char_p * width).in_dll(loaded, "mine_features")
        assert [name.decode(errors="surrogateescape") for name in known] == list(scorer.feature_names)


@pytest.mark.parametrize("target", ["python", "c"])
@pytest.mark.parametrize("name", ["", "a b", "1a", "while", "_a", "é", "a()"])
def test_a_function_needs_a_name(target, name):
    with pytest.raises(SettingError, match="cannot be the name of a function"):
        er.export(er.models.Linear(np.ones(1), ("a",)), target, model_name=name)


NETWORK = Network(np.ones((1, 1)), np.zeros(1), np.ones(1), np.zeros(1), np.ones(1), ("a",))
TAKEN = {
    "c": ["exp", "expf", "NAN", "INFINITY", "HUGE_VAL", "M_PI", "isnan", "y0", "lgamma_r", "malloc", "errno", "linux", "decltype"],
    "python": ["float", "zip", "None", "match", "print"],
}


@pytest.mark.parametrize(("target", "name"), [(target, name) for target, names in TAKEN.items() for name in names])
def test_a_function_cannot_have_a_name_that_is_taken(target, name):
    with pytest.raises(SettingError, match=f"{target}: model_name='{name}' cannot be .* e.g. model_name='score_{name}'"):
        er.export(NETWORK, target, model_name=name)
    assert twin_scores(er.export(NETWORK, target, model_name=f"score_{name}"), np.zeros((1, 1)), ("a",)).tolist() == [0.0]


@needs_compiler
def test_every_name_of_the_mathematical_header_is_taken(tmp_path):
    """Whatever the compiler's own header declares or defines, with all its extensions; names with _ first are refused by their form."""
    (tmp_path / "m.c").write_text("#include <math.h>\n")
    names = set()
    for form in ([], ["-std=c99"], ["-D_GNU_SOURCE"]):
        declared, defined = (
            subprocess.run(["cc", *form, *mode, tmp_path / "m.c"], check=True, capture_output=True, text=True).stdout
            for mode in (["-E", "-P"], ["-E", "-dM"])
        )
        names |= set(re.findall(r"\b[A-Za-z]\w*(?= *\()", declared)) | set(re.findall(r"^#define ([A-Za-z]\w*)", defined, re.MULTILINE))
    assert {"exp", "NAN", "INFINITY"} <= names
    for name in names:
        with pytest.raises(SettingError, match="cannot be the name of a function"):
            check_function_name("c", name)


def test_without_a_compiler_a_check_says_so(monkeypatch):
    export = er.export(forest(0), "c")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(IncompatibleError, match=r"no C compiler.*install one, set CC, or check --to python"):
        twin_scores(export, np.zeros((1, 3)))
    monkeypatch.setenv("CC", "false")
    with pytest.raises(IncompatibleError, match="cannot compile the export"):
        twin_scores(export, np.zeros((1, 3)))


@pytest.mark.parametrize("target", TARGETS)
def test_trees_of_a_single_leaf(target):
    nothing = er.models.Thresholds((np.empty(0),), (np.empty(0),), ("a",))
    stump = er.models.Sum((nothing, er.models.TreeEnsemble(single_leaf(), ("a",))), np.array([1.0, 2.0]))
    assert twin_scores(er.export(stump, target), np.ones((2, 1)), ("a",)).tolist() == stump.score(np.ones((2, 1))).tolist() == [1.0, 1.0]


def single_leaf():
    """A tree that gives every row 0.5."""
    root = np.array([-1])
    return table_of([PlainTree(np.zeros(1, int), np.zeros(1), root, root, np.array([0.5]))], 1)
