"""`exactrank export` as a user meets it: files and streams, what a check says, JSON, refusals with a remedy."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.models.targets import TARGETS
from tests.cli.test_cli import ok, refused, run
from tests.models.targets.test_export import Halves, data_of

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, data = tmp_path_factory.mktemp("export"), data_of(1)
    er.write(data, folder / "data.xr")
    er.Ridge(measure="nDCG@3").fit(data).save(folder / "linear.json")
    er.LambdaMART(measure="nDCG@3", trees=5, min_documents=1, bags=0).fit(data).save(folder / "trees.json")
    return folder


@pytest.fixture
def halves(monkeypatch):
    monkeypatch.setitem(TARGETS.builtin, "halves", Halves)


def test_a_file(files, tmp_path):
    shown = ok("export", files / "trees.json", "--to", "onnx", "--out", tmp_path / "m.onnx")
    content = (tmp_path / "m.onnx").read_bytes()
    assert shown == f"{tmp_path / 'm.onnx'}: {len(content):,} bytes\n"
    assert content == er.export(er.load(files / "trees.json"), "onnx").content


def test_a_check(files, tmp_path):
    result = run("export", files / "trees.json", "--to", "onnx", "--out", tmp_path / "m.onnx", "--check", files / "data.xr")
    assert result.code == 0
    for message in ("60 of 10 queries", "largest difference of scores                │ 0 ", "nDCG@3 of the export"):
        assert message in result.out
    assert result.err.startswith("exactrank: with one thread (intra_op_num_threads=1) ONNX Runtime adds up")
    another = ok("export", files / "trees.json", "--to", "onnx", "--out", "-", "--check", files / "data.xr", "-m", "AP", cwd=tmp_path)
    assert "AP of" not in another  # standard output is the model's


def halved(files, *options):
    """What the command prints and tells where the export is to the target that halves scores."""
    result = CliRunner().invoke(app, ["export", str(files / "linear.json"), "--to", "halves", *map(str, options)], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    assert "scores are halved" in result.stderr
    return result.stdout, result.stderr


def test_json(files, halves):
    linear, data = er.load(files / "linear.json"), er.read(files / "data.xr")
    ours = linear.predict(data)
    value = er.parse_measure("nDCG@3").on(data).mean(ours)
    assert json.loads(halved(files, "--check", files / "data.xr", "--json")[0]) == {
        "target": "halves",
        "bytes": len(er.export(linear, Halves()).content),
        "remarks": ["scores are halved"],
        "check": {
            "target": "halves",
            "queries": 10,
            "documents": 60,
            "largest": pytest.approx(np.abs(ours).max() / 2),
            "beyond_rounding": np.count_nonzero(ours),
            "changed_top": 0,
            "measure": linear.measure,
            "of_model": pytest.approx(value),
            "of_export": pytest.approx(value),
        },
    }
    assert json.loads(halved(files, "--json")[0])["check"] is None
    assert json.loads(halved(files, "--check", files / "data.xr", "-m", "AP", "--json")[0])["check"]["measure"].startswith("AP")


def test_text_goes_to_standard_output_alone(files, halves):
    text = er.export(er.load(files / "linear.json"), Halves()).text
    assert halved(files)[0] == text + "\n"
    out, err = halved(files, "--check", files / "data.xr")
    assert out == text + "\n"
    assert "halves beside the model" in err


def test_what_stands_there_stays(files, tmp_path):
    out = tmp_path / "m.onnx"
    out.write_bytes(b"mine")
    refused(2, "already exists", "export", files / "linear.json", "--to", "onnx", "--out", out)
    assert out.read_bytes() == b"mine"
    ok("export", files / "linear.json", "--to", "onnx", "--out", out, "--force")
    assert out.read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        ("trees.json", ["--to", "onnx"], "onnx is binary and cannot be printed; give a file, --out model.onnx"),
        ("trees.json", ["--to", "onxn", "--out", "m"], "there is no export target 'onxn' (did you mean onnx?)"),
        ("trees.json", ["--to", "", "--out", "m"], "'' is not a target; write e.g. solr"),
        ("trees.json", ["--to", "onnx(ml_opset=)", "--out", "m"], "cannot read the settings"),
        ("trees.json", ["--to", "onnx(ml_opset=2)", "--out", "m"], "ml_opset=2 is out of range"),
        ("trees.json", ["--to", "onnx(opset=3)", "--out", "m"], "has no setting 'opset'; did you mean ml_opset?"),
        ("trees.json", ["--to", "onnx", "--out", "m", "-m", "AP"], "add --check DATA, or leave it out"),
        ("trees.json", ["--to", "onnx", "--out", "m", "--check", "data.xr", "-m", "nGCD"], "nGCD"),
        ("data.xr", ["--to", "onnx", "--out", "m"], "is not a model"),
    ],
)
def test_refusals(files, model, options, says):
    refused(2, says, "export", files / model, *options, cwd=files)
    assert not (files / "m").exists()


def test_data_of_other_features_is_refused(files, tmp_path):
    other = er.RankingData.from_arrays([[1.0], [2.0]], [0, 1], group=[2], feature_names=["bm25"])
    er.write(other, tmp_path / "other.xr")
    arguments = ("export", files / "trees.json", "--to", "onnx", "--out", tmp_path / "m.onnx", "--check", tmp_path / "other.xr")
    refused(2, "dense", *arguments)
    assert not (tmp_path / "m.onnx").exists()
