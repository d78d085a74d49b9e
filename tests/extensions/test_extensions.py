"""A measure, a loss, a format, an export target and a backend, each in one file that uses only what docs/extend.md shows."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.optimizers import LBFGS
from tests.extensions.process_backend import ProcessBackend
from tests.extensions.top_document_loss import TopDocumentLoss
from tests.extensions.zipf_gain import ZipfGain
from tests.strategies import GRADES

# Importing the measure registered it; other tests list all measures.
er.Measure.registry.builtin = {name: measure for name, measure in er.Measure.registry.builtin.items() if measure is not ZipfGain}

FOLDER = Path(__file__).parent
ENTRY_POINTS = """\
[exactrank.measures]
zNDG = zipf_gain:ZipfGain
[exactrank.formats]
tab = tab_format:TabFormat
[exactrank.targets]
rules = rules_target:Rules
"""


def ranking_data(queries=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * 12, 4)).round(3)
    y = np.digitize(X @ [1.5, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=len(X)), [0.5, 2.0])
    return er.RankingData.from_arrays(X, y, qid=np.arange(len(X)) // 12, feature_names=["bm25", "age", "clicks", "noise"])


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with the three files that have entry points, installed as pip would."""
    for name in ("zipf_gain", "tab_format", "rules_target"):
        shutil.copy(FOLDER / f"{name}.py", tmp_path)
    info = tmp_path / "extensions-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extensions\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(er.Measure.registry, "builtin", dict(er.Measure.registry.builtin))
    return tmp_path


def exactrank(*words):
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout


@given(y=st.lists(GRADES, min_size=1, max_size=8), k=st.one_of(st.none(), st.integers(1, 9)))
def test_the_measure_equals_its_definition(y, k):
    gains = [2.0 ** max(grade, 0.0) - 1 for grade in y]

    def value(ranking):
        return sum(gain / rank for rank, gain in enumerate(ranking[:k], 1))

    ideal = value(sorted(gains, reverse=True))
    data = er.RankingData.from_arrays(None, y, group=[len(y)])
    result = er.evaluate(data, -np.arange(len(y)), ZipfGain(k=k))
    assert [*result.means.values()] == [pytest.approx(value(gains) / ideal if ideal else 0.0)]
    deltas = ZipfGain(k=k).swap_deltas(y)
    for i in range(len(y)):
        for j in range(len(y)):
            swapped = gains.copy()
            swapped[i], swapped[j] = gains[j], gains[i]
            assert deltas[i, j] == pytest.approx((value(swapped) - value(gains)) / ideal if ideal else 0.0, abs=1e-12)


def test_every_kind_of_ranker_trains_on_the_measure():
    data = ranking_data()
    for ranker in (er.DirectRank, er.LambdaRank, er.Ridge):
        assert ranker(ZipfGain(k=5)).fit(data).score(data) > 0.8
    assert er.LambdaMART(ZipfGain(k=5), trees=10, bags=0).fit(data).score(data) > 0.8


@settings(max_examples=50)
@given(rows=st.lists(st.tuples(GRADES, st.floats(-5, 5)), min_size=1, max_size=8))
def test_the_gradient_of_the_loss_is_that_of_its_value(rows):
    y, s = map(np.array, zip(*rows, strict=True))
    data = er.RankingData.from_arrays(None, y, group=[len(y)])
    answer = er.losses.slopes(data, s, TopDocumentLoss())
    for i, step in enumerate(1e-5 * np.eye(len(y))):
        above, below = (er.losses.slopes(data, s + sign * step, TopDocumentLoss()).values.sum() for sign in (1, -1))
        assert answer.slope[i] == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_networks_and_trees_train_on_the_loss():
    data = ranking_data()
    network = er.Composed("RR(rel=2)", scorer=er.models.NetworkModel(4), objective=TopDocumentLoss(), optimizer=LBFGS(), max_iter=20)
    trees = er.LambdaMART("RR(rel=2)", lambdas=TopDocumentLoss(), trees=20, bags=0)
    baseline = er.evaluate(data, data.X[:, 3], "RR(rel=2)").means["RR(rel=2)"]
    for ranker in (network, trees):
        assert ranker.fit(data).score(data) > baseline + 0.2


def test_the_format_is_read_written_and_converted(installed):
    data = ranking_data()
    er.write(data, "data.tab")
    copy = er.read("data.tab")
    assert copy.feature_names == data.feature_names
    assert np.array_equal(copy.X, data.X)
    assert np.array_equal(copy.y, data.y)
    exactrank("convert", "data.tab", "data.parquet")
    assert np.array_equal(er.read("data.parquet").X, data.X)
    Path("bad.tab").write_text("query\tgrade\tbm25\n1\t0\t2.5\n1\t1\n")
    with pytest.raises(er.errors.DataError, match=r"bad\.tab:3: has 2 columns, but the header has 3"):
        er.read("bad.tab")


def test_the_target_writes_what_the_model_computes(installed):
    data = ranking_data()
    er.write(data, "data.tab")
    model = er.LambdaMART(trees=8, leaves=6, bags=0, missing="zero").fit(data).model_
    export = er.export(model, "rules")
    assert export.text.count("?") == 5 * (len(export.text.splitlines()) - 1) > 0
    check = export.check(data)
    assert (check.beyond_rounding, check.of_export) == (0, check.of_model)
    with pytest.raises(er.errors.IncompatibleError, match="rules cannot express weights of features"):
        er.export(er.Ridge().fit(data), "rules")
    model.save("model.json")
    shown = exactrank("export", "model.json", "--to", "rules", "--out", "model.rules", "--check", "data.tab")
    assert "documents that differ by more than rounding" in shown
    assert Path("model.rules").read_text() == export.text


def test_commands_use_the_measure_and_the_format(installed):
    er.write(ranking_data(), "data.tab")
    exactrank("train", "ridge", "data.tab", "--out", "model.json", "-m", "zNDG@5")
    assert "zNDG@5" in exactrank("evaluate", "data.tab", "model.json", "-m", "zNDG@5")


@pytest.fixture(scope="module")
def processes():
    backend = ProcessBackend(2)
    yield backend
    backend.close()


@pytest.mark.parametrize(
    "ranker",
    [er.Ridge("nDCG@5"), er.DirectRank("nDCG@5", max_iter=3), er.LambdaMART("nDCG@5", trees=3, bags=0)],
    ids=lambda ranker: ranker.name,
)
def test_the_backend_gives_the_same_bits(ranker, processes, tmp_path):
    data = ranking_data(4000)  # several parts: none is smaller than 20,000 documents
    for number, queries in enumerate(np.array_split(np.arange(4000), 3)):
        er.write(data.take_queries(queries), tmp_path / f"part-{number}.xr")
    shards, asked = er.read_shards(str(tmp_path / "part-*.xr")), processes.asked
    elsewhere = ranker.set_params(backend=processes).fit(shards)
    assert processes.asked > asked
    per_query = er.evaluate(shards, elsewhere.model_, "nDCG@5", backend=processes).per_query
    scores = elsewhere.predict(data)
    here = ranker.set_params(backend=None).fit(shards)
    assert np.array_equal(scores, here.predict(data))
    assert np.array_equal(per_query, er.evaluate(data, scores, "nDCG@5").per_query)


def test_each_extension_is_one_file_that_uses_public_names_only():
    for path in FOLDER.glob("[!_]*.py"):
        if not path.name.startswith("test_"):
            imports = {line.split()[1] for line in path.read_text().splitlines() if line.startswith(("import exactrank", "from exactrank"))}
            assert imports <= {"exactrank", "exactrank.extend"}, path.name
