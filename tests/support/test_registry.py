"""Rankers, measures, formats and contenders of other packages, which are installed as pip would: modules beside their dist-info."""

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import exactrank as er
from exactrank._support.registry import Registry
from exactrank.cli import app
from exactrank.compare.contenders import find_contender
from exactrank.data.files import FORMATS
from exactrank.measures.parse import known_measures
from exactrank.rankers import RANKERS

MODULE = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from exactrank.compare.contender import Contender
from exactrank.data.formats.letor import LetorFormat
from exactrank.measures.binary import RBP
from exactrank.rankers.ridge import Ridge

class FarRidge(Ridge):
    \"\"\"Ridge regression from elsewhere.\"\"\"
    name = "far-ridge"

@dataclass(frozen=True, repr=False)
class FarRBP(RBP):
    name: ClassVar[str] = "FarRBP"
    aliases: ClassVar[dict] = {"FarAway": {"p": 0.5}}

class FarText(LetorFormat):
    name = "far text"

class FarContender(Contender):
    name = "far"
    about = "from elsewhere"
    def fit(self, task, settings):
        raise NotImplementedError
"""
GOOD = {
    "rankers": "far-ridge = elsewhere_module:FarRidge",
    "measures": "FarRBP = elsewhere_module:FarRBP\nFarAway = elsewhere_module:FarRBP",
    "formats": "far = elsewhere_module:FarText",
    "contenders": "far = elsewhere_module:FarContender",
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package with these lines of entry points by group, and a module of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(er.Measure.registry, "builtin", dict(er.Measure.registry.builtin))

    def installed(package, points, source=MODULE):
        module = f"{package}_module"
        monkeypatch.delitem(sys.modules, module, raising=False)
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("".join(f"[exactrank.{group}]\n{lines}\n" for group, lines in points.items()))
        return tmp_path

    return installed


def exactrank(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def test_each_kind_is_found_by_its_name_like_ours(install):
    assert "far-ridge" not in RANKERS
    path = install("elsewhere", GOOD)
    data = er.RankingData.from_arrays(np.eye(4), [0, 1, 0, 2], qid=[1, 1, 2, 2])
    assert list(RANKERS) == [*RANKERS.builtin, "far-ridge"]
    assert find_contender("far-ridge").kind is RANKERS["far-ridge"]
    assert find_contender("far").about == "from elsewhere"
    assert "FarRBP" in known_measures()
    with pytest.raises(er.errors.MeasureError, match="did you mean FarRBP"):
        er.parse_measure("FarRPB")
    ours, theirs = er.parse_measure("RBP(p=0.5)"), er.parse_measure("farrbp(p=0.5)")
    assert er.parse_measure("FarAway") == theirs
    assert [*er.evaluate(data, [1.0, 2, 3, 4], ours).means.values()] == [*er.evaluate(data, [1.0, 2, 3, 4], theirs).means.values()]
    er.write(data, path / "data.far")
    assert type(FORMATS["far"]()).__name__ == "FarText"
    assert np.array_equal(er.read(path / "data.far").y, data.y)
    assert known_measures().count("FarRBP") == 1  # also once it is imported


def test_commands_train_compare_and_list_them(install):
    install("elsewhere", GOOD)
    assert "Ridge regression from elsewhere." in exactrank("train", "--help").stdout
    exactrank("generate", "data.far", "--queries", 12, "--documents", 6, "--features", 3)
    result = exactrank("train", "far-ridge", "data.far", "--out", "m.json", "-m", "FarRBP")
    assert result.exit_code == 0, result.stderr
    result = exactrank("evaluate", "data.far", "--feature", "1", "-m", "FarAway")
    assert result.exit_code == 0, result.stderr
    assert "FarRBP" in result.stdout


@pytest.mark.parametrize(
    ("points", "source", "ask", "message"),
    [
        ({"rankers": "odd = elsewhere_module:X"}, "raise NameError('odd')", lambda: RANKERS["odd"], "NameError: odd"),
        ({"rankers": "odd = elsewhere_module:X"}, "import sys; sys.exit(3)", lambda: find_contender("odd"), "SystemExit: 3"),
        ({"rankers": "odd = elsewhere_module:X"}, "class X: pass", lambda: RANKERS["odd"], "elsewhere_module:X is no ranker"),
        ({"measures": "odd = elsewhere_module:X"}, "class X: pass", lambda: er.parse_measure("odd"), "elsewhere_module:X is no measure"),
        ({"measures": "odd = elsewhere_module:X"}, "", lambda: er.parse_measure("odd"), "no attribute 'X'"),
        ({"formats": "odd = elsewhere_module:X"}, "class X: pass", lambda: FORMATS["odd"], "elsewhere_module:X is no format"),
        ({"contenders": "odd = elsewhere_module:X"}, "X = 3", lambda: find_contender("odd"), "elsewhere_module:X is no method"),
    ],
)
def test_one_that_is_broken_is_told_with_its_package_where_it_is_asked_for(install, points, source, ask, message):
    install("elsewhere", points, source)
    with pytest.raises(er.errors.ExactRankError, match=rf"^odd: .*{message}.*the package elsewhere$"):
        ask()
    assert RANKERS["ridge"] is er.Ridge


def test_a_broken_ranker_breaks_no_other_command(install):
    install("elsewhere", {"rankers": "odd = elsewhere_module:X"}, "raise NameError('odd')")
    listed = exactrank("train", "--help")
    assert listed.exit_code == 0
    assert "ridge" in listed.stdout
    result = exactrank("train", "odd")
    assert result.exit_code == 2
    assert result.stderr == "exactrank: odd: cannot import elsewhere_module:X (NameError: odd); fix or uninstall the package elsewhere\n"


def test_a_name_that_is_taken_stays_with_its_owner(install):
    install("elsewhere", {"rankers": "ridge = elsewhere_module:FarRidge", "formats": "far = elsewhere_module:FarText"})
    install("zebra", {"formats": "far = zebra_module:FarText"})
    with pytest.warns(er.errors.PluginWarning, match="the package elsewhere adds a ranker 'ridge', but exactrank already has that name"):
        assert list(RANKERS) == list(RANKERS.builtin)
    assert RANKERS["ridge"] is er.Ridge
    with pytest.warns(
        er.errors.PluginWarning, match="the package zebra adds a format 'far', but the package elsewhere already has that name"
    ):
        assert FORMATS["far"].__module__ == "elsewhere_module"


def test_a_measure_cannot_take_the_name_of_another(install):
    source = MODULE.replace("FarRBP", "Bpref").replace('aliases: ClassVar[dict] = {"FarAway": {"p": 0.5}}', "")
    install("elsewhere", {"measures": "other = elsewhere_module:Bpref"}, source)
    with pytest.raises(er.errors.DataError, match=r"exactrank.measures.pairwise already has a measure 'Bpref'.*the package elsewhere"):
        er.parse_measure("other")
    assert er.parse_measure("Bpref") == er.measures.Bpref()


def test_what_is_not_there_is_told_with_what_is():
    registry = Registry("color", {"red": 1, "green": "exactrank.errors:DataError"})
    assert registry["green"] is er.errors.DataError
    with pytest.raises(er.errors.DataError, match=r"there is no color 'gren' \(did you mean green\?\); there are red, green"):
        registry["gren"]
