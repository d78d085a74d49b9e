"""SQL: one query that gives the score of each row of a table, in standard SQL.

    SELECT id, t0 + t1 + ... FROM (SELECT id, CASE WHEN x0 <= 5e-1 THEN ... END AS t0, ... FROM (SELECT id, CAST(...) AS x0, ... FROM docs))

Numbers have an exponent, which makes them doubles, and columns are cast: a plain 0.5 is a decimal, and some databases then round the
feature to a decimal. Planning one column per tree takes a thirtieth of the time of a sum of nested cases.
"""

import re
import sqlite3
from collections.abc import Sequence
from math import tanh
from typing import ClassVar

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.settings import setting
from exactrank.data.duplicates import first_duplicate
from exactrank.errors import IncompatibleError, SettingError
from exactrank.models.targets.expression import smooth_parts, sum_text
from exactrank.models.targets.nested import nest
from exactrank.models.targets.plain import Plain, Tree
from exactrank.models.targets.target import Rows, Target

TERMS = 900  #: maximum number of terms of a sum; SQLite and DuckDB allow expressions of at most 1,000 levels
SLOW = 100  #: number of trees above which planning the query takes seconds
_NAME = re.compile("[^\0\ud800-\udfff]+")
_SEPARATOR = ",\n  "
_NUMBER = re.compile(r'"(?:[^"]|"")*"|\b\d+(?:\.\d+)?e[-+]?\d+')


class Sql(Target):
    """A query, for batches and audits."""

    name, suffix = "sql", ".sql"
    kinds, adds, missing = ("linear", "network", "trees"), True, ("zero", "mean", "keep")
    names: ClassVar = _NAME

    table: str = setting(default="documents", help="The table of features; a dot separates schema and table.")
    id: str = setting(default="doc_id", help="The column to return beside the score.")

    def check(self, terms: Plain) -> None:
        super().check(terms)
        for name in ("table", "id", "model_name"):
            value = getattr(self, name)
            if not _NAME.fullmatch(value) or (name == "table" and "" in value.split(".")):
                raise SettingError(f"sql: {name}={value!r} is not a valid name in a database; give another one")
        twice = first_duplicate([column.casefold() for column in (self.id, *terms.features)])
        if twice is not None:
            raise IncompatibleError(f"sql: two columns are called {twice!r}, since case does not count; rename the feature")
        terms_of_sum = len(terms.trees) + sum(map(len, smooth_parts(terms, terms.features).values()))
        if terms_of_sum > TERMS:
            raise IncompatibleError(
                f"sql: the model is a sum of {terms_of_sum:,} terms, but databases allow {TERMS}; train fewer trees, or export to c"
            )

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        fill, used = terms.fill.tolist(), _used_features(terms)
        routed = all(np.array_equal(tree.missing_left, terms.fill[tree.feature] <= tree.threshold) for tree in terms.trees)
        columns = [f"CAST({_quote(feature)} AS DOUBLE PRECISION)" for feature in terms.features]
        first = [f"COALESCE({column}, {_number(by)})" if routed else column for column, by in zip(columns, fill, strict=True)]
        values = [f"x{j}" if routed else f"COALESCE(x{j}, {_number(by)})" for j, by in enumerate(fill)]
        smooth = [part for parts in smooth_parts(terms, values, _number).values() for part in parts]
        trees = [f"CAST({_case(tree, routed)} AS DOUBLE PRECISION) AS t{number}" for number, tree in enumerate(terms.trees)]
        name, column = _quote(self.model_name), _quote(self.id)
        features = [f"{column} AS id", *(f"{first[j]} AS x{j}" for j in used)]
        query = f"SELECT\n  {_SEPARATOR.join(features)}\nFROM {self._table}"
        if trees:
            passed = [f"x{j}" for j in used if smooth]
            query = f"SELECT\n  {_SEPARATOR.join(['id', *passed, *trees])}\nFROM (\n{query}\n) AS features"
        total = sum_text([*smooth, *(f"t{number}" for number in range(len(trees)))])
        remarks = ["a missing value is NULL; databases sort NaN above all numbers, so turn it into NULL"]
        if len(trees) > SLOW:
            remarks.append(f"{len(trees)} trees take a database seconds to plan; DuckDB is faster after PRAGMA disable_optimizer")
        return f"SELECT id AS {column}, {total} AS {name}\nFROM (\n{query}\n) AS scored\n", remarks

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        """Return the scores of SQLite; it may read decimals wrong in the last bit, so numbers are passed as doubles."""
        place_of: dict[str, int] = {}
        connection = sqlite3.connect(":memory:")
        limit = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)

        def parameter(match: re.Match[str]) -> str:
            text = match[0]
            if text.startswith('"') or (text not in place_of and len(place_of) == limit):
                return text
            return f"?{place_of.setdefault(text, len(place_of) + 1)}"

        query = _NUMBER.sub(parameter, content.decode().replace(f"FROM {self._table}\n", "FROM features\n"))
        try:
            connection.create_function("tanh", 1, tanh, deterministic=True)
            columns = ", ".join([_quote(self.id), *map(_quote, features)])
            connection.execute(f"CREATE TABLE features ({columns})")
            connection.executemany(
                f"INSERT INTO features VALUES (?{', ?' * len(features)})", ([i, *row] for i, row in enumerate(rows.tolist()))
            )
            score_of = dict(connection.execute(query, [float(number) for number in place_of]))
        except sqlite3.Error as error:
            raise IncompatibleError(f"SQLite cannot run the query ({error}); train a smaller model, or check --to python") from None
        finally:
            connection.close()
        return np.array([score_of[i] for i in range(len(rows))], np.float64)

    @property
    def _table(self) -> str:
        return ".".join(map(_quote, self.table.split(".")))


def _used_features(terms: Plain) -> list[int]:
    """Return the features that the score depends on."""
    is_used = np.zeros(len(terms.features), bool)
    for weights in (terms.linear, None if terms.units is None else terms.units.weights):
        if weights is not None:
            is_used |= np.any(np.atleast_2d(weights) != 0, axis=0)
    for tree in terms.trees:
        is_used[tree.feature] = True
    return [int(j) for j in np.flatnonzero(is_used)]


def _case(tree: Tree, routed: bool) -> str:
    tests = [f"x{j} <= {_number(t)}" for j, t in zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)]
    if not routed:
        tests = [
            f"x{j} IS NULL OR {test}" if left else test
            for j, test, left in zip(tree.feature.tolist(), tests, tree.missing_left, strict=True)
        ]
    leaves = tree.leaf.tolist()
    return nest(tree, lambda leaf: _number(leaves[leaf]), lambda node, left, right: f"CASE WHEN {tests[node]} THEN {left} ELSE {right} END")


def _number(value: float) -> str:
    """Return a literal that is a double in databases that follow the standard."""
    return repr(value) if "e" in repr(value) else f"{value!r}e0"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
