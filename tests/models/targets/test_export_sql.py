"""SQL: DuckDB and SQLite run the query, and score as the model does."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import IncompatibleError, SettingError
from tests.models.targets.engine_rows import FEATURES, as_data, forest, models, rows_near
from tests.models.targets.test_export_code import ODD


def twin_scores(export, rows, features=FEATURES):
    return export.target.scores(export.content, rows.astype(np.float64), features)


@pytest.fixture
def duckdb():
    return pytest.importorskip("duckdb", reason="needs DuckDB")


def duckdb_scores(duckdb, export, rows, features=FEATURES):
    """The scores of rows of single precision, NULL for NaN, in their order."""
    connection = duckdb.connect()
    names = ['"' + name.replace('"', '""') + '"' for name in features]
    values = [[None if np.isnan(value) else value for value in row] for row in rows.tolist()]
    connection.execute(f"CREATE TABLE documents (doc_id INTEGER, {', '.join(f'{name} FLOAT' for name in names)})")
    connection.executemany(f"INSERT INTO documents VALUES (?{', ?' * len(names)})", [[i, *row] for i, row in enumerate(values)])
    connection.execute("PRAGMA disable_optimizer")
    result = connection.execute(f"SELECT * FROM ({export.text}) AS made ORDER BY doc_id").fetchall()
    connection.close()
    return np.array([score for _, score in result])


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_scores_are_those_of_the_model(seed):
    for kind, scorer in models(seed).items():
        export, rows = er.export(scorer, "sql"), rows_near(scorer, seed)
        if kind in ("thresholds", "trees"):
            np.testing.assert_array_equal(twin_scores(export, rows), scorer.score(rows))
        assert export.check(as_data(rows)).beyond_rounding == 0


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from(["keep", "zero", "mean"]), st.booleans())
def test_missing_values_are_what_the_model_takes_them_for(seed, missing, all_fill):
    scorer = forest(seed, missing)
    rows = rows_near(scorer, seed, holes=0.3)
    np.testing.assert_array_equal(twin_scores(er.export(scorer, "sql"), rows), scorer.score(rows))
    fill = np.array([0.5, -1.0, 2.0]) if scorer.fill is None or missing == "zero" else scorer.fill
    linear = er.models.Linear(np.array([0.5, -1.5, 2.0]), FEATURES, missing="zero" if missing == "zero" else "mean", fill=fill)
    whole = {"missing": "mean", "fill": fill} if all_fill else {}  # or each part in its own way
    both = er.models.Sum((linear, scorer), np.array([1.0, 0.5]), **whole)
    assert er.export(both, "sql").check(as_data(rows)).beyond_rounding == 0


def test_duckdb_scores_as_the_model_does(duckdb):
    for kind, scorer in models(5).items():
        export, rows = er.export(scorer, "sql"), rows_near(scorer, 5)
        real = duckdb_scores(duckdb, export, rows)
        if kind in ("network", "sum"):
            np.testing.assert_allclose(real, scorer.score(rows), rtol=1e-13, atol=1e-13)
        else:
            np.testing.assert_array_equal(real, twin_scores(export, rows))
            np.testing.assert_allclose(real, scorer.score(rows), rtol=1e-14, atol=1e-14 * (kind not in ("thresholds", "trees")))
    for missing in ("keep", "zero", "mean"):
        scorer = forest(7, missing)
        rows = rows_near(scorer, 7, holes=0.3)
        np.testing.assert_array_equal(duckdb_scores(duckdb, er.export(scorer, "sql"), rows), scorer.score(rows))


def test_any_name_will_do(duckdb):
    names = (*(name for name in ODD if name not in ("", "\0", "\udcff")), "id", "t0", "features", "given")
    linear = er.models.Linear(np.arange(1.0, len(names) + 1), names)
    row, expected = np.arange(2.0, len(names) + 2)[None], [float(np.arange(2.0, len(names) + 2) @ linear.weights)]
    export = er.export(linear, "sql")
    assert twin_scores(export, row, names).tolist() == duckdb_scores(duckdb, export, row, names).tolist() == expected
    odd = er.export(linear, "sql", table='my"schema.my table', id='x0 "', model_name="a b")
    assert 'FROM "my""schema"."my table"\n' in odd.text
    assert odd.text.startswith('SELECT id AS "x0 """, ')
    assert twin_scores(odd, row, names).tolist() == expected


@pytest.mark.parametrize("name", ["", "a\0", "\udcff"])
def test_names_that_no_database_has_are_refused(name):
    with pytest.raises(IncompatibleError, match="sql cannot have a feature called"):
        er.export(er.models.Linear(np.ones(1), (name,)), "sql")
    for setting in ("table", "id", "model_name"):
        with pytest.raises(SettingError, match=f"sql: {setting}="):
            er.export(er.models.Linear(np.ones(1), ("a",)), "sql", **{setting: name})


def test_columns_that_differ_by_case_alone_are_refused():
    with pytest.raises(IncompatibleError, match="two columns are called 'bm25'"):
        er.export(er.models.Linear(np.ones(2), ("bm25", "BM25")), "sql")
    with pytest.raises(IncompatibleError, match="two columns are called 'bm25'"):
        er.export(er.models.Linear(np.ones(1), ("bm25",)), "sql", id="BM25")


def test_the_largest_sums_are_run_and_larger_ones_refused(duckdb):
    def wide(count):
        return er.models.Linear(np.linspace(-1, 1, count), tuple(f"f{j}" for j in range(count)))

    rows = np.ones((2, 900))
    export = er.export(wide(900), "sql")
    for result in (twin_scores(export, rows, wide(900).feature_names), duckdb_scores(duckdb, export, rows, wide(900).feature_names)):
        np.testing.assert_allclose(result, 0.0, atol=1e-12)
    with pytest.raises(IncompatibleError, match=r"a sum of 1,000 terms.*train fewer trees, or export to c"):
        er.export(wide(1000), "sql")


def test_what_planning_takes_is_said():
    first = forest(5)
    few, many = (er.models.Sum((first,) * count, np.ones(count)) for count in (100 // first.n_trees, 100 // first.n_trees + 1))
    assert any("trees take a database seconds to plan" in remark for remark in er.export(many, "sql").remarks)
    assert not any("seconds" in remark for remark in er.export(few, "sql").remarks)


def test_only_what_is_used_has_to_be_in_the_table():
    export = er.export(er.models.Linear(np.array([1.0, 0.0, 2.0]), FEATURES), "sql")
    assert '"dense"' not in export.text


def test_a_query_that_sqlite_refuses_is_an_error_with_a_remedy():
    export = er.export(er.models.Linear(np.ones(2), ("a", "b")), "sql")
    with pytest.raises(IncompatibleError, match=r"SQLite cannot run the query .*no such column"):
        export.target.scores(export.content.replace(b"AS x1", b"AS x2"), np.ones((1, 2)), ("a", "b"))
