"""The package itself: public names, whatever was imported before; what is released, and under which names."""

import email
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path

import pytest

import exactrank as er
from exactrank import _core
from tests import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize(
    "first", ["", "import exactrank.compare.compare", "from exactrank.compare import compare", "import exactrank.cli.compare"]
)
def test_the_function_compare_hides_the_package_of_that_name_in_any_order(first):
    program = f"{first}\nimport exactrank as er\nassert er.compare.__module__ == 'exactrank.compare.compare', er.compare"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names_are_what_they_say():
    assert [name for name in er.__all__ if getattr(er, name).__name__ != name] == []
    with pytest.raises(AttributeError, match="no attribute 'workbench'"):
        _ = er.workbench


def test_one_core_for_python_3_12_and_later():
    stable = sys.version_info >= (3, 12) and not sysconfig.get_config_var("Py_GIL_DISABLED")
    assert Path(_core.__file__).name.endswith(".abi3.so" if stable else sysconfig.get_config_var("EXT_SUFFIX"))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("sdist")
    program = f"import scikit_build_core.build as b; b.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    (path,) = folder.iterdir()
    with tarfile.open(path) as archive:
        top = archive.getnames()[0].split("/")[0]
        yield path, {name.removeprefix(f"{top}/") for name in archive.getnames()}, archive.extractfile(f"{top}/PKG-INFO").read().decode()


def test_the_source_release_has_all_that_a_build_needs_and_no_more(released):
    path, names, _ = released
    if not (ROOT / ".git").exists():
        pytest.skip("no clone: which files belong to the project is not known")
    tracked = {*subprocess.run(["git", "ls-files"], check=True, cwd=ROOT, capture_output=True, text=True).stdout.split()}
    papers = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"}
    assert names & tracked == {name for name in tracked if name.startswith("src/")} | {"CMakeLists.txt", "pyproject.toml"} | papers
    assert not any(name.endswith((".so", ".pyc")) for name in names)
    assert path.stat().st_size < 1 << 20


def test_the_release_names_its_license_and_its_home(released):
    metadata = email.message_from_string(released[2])
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert not any("License ::" in line for line in metadata.get_all("Classifier"))
    assert {line.split(",")[0] for line in metadata.get_all("Project-URL")} == {"Repository", "Issues", "Changelog"}


def test_the_repository_has_one_address():
    home = PROJECT["project"]["urls"]["Repository"]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*.yml"), ROOT / "CITATION.cff", ROOT / "pyproject.toml", *ROOT.glob("docs/**/*.md")]
    named = {url for page in pages for url in re.findall(r"https://git\w+\.com/[\w-]+/exactrank\b", page.read_text())}
    assert named == {home}
    assert f'repository-code: "{home}"' in (ROOT / "CITATION.cff").read_text()


def test_wheels_are_built_for_each_python_that_is_named():
    named = {line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if "Python :: 3." in line}
    (minors,) = re.findall(r"cp31\{([\d,]+)\}", PROJECT["tool"]["cibuildwheel"]["build"])
    assert named <= {f"3.1{minor}" for minor in minors.split(",")}


CORE_ALONE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
BLOCKED = "jinja2 latex2mathml lightgbm matplotlib onnx pandas pyarrow safetensors torch".split()
sys.meta_path.insert(0, Missing())
import numpy as np
import exactrank as er
X = np.random.default_rng(0).normal(size=(200, 3))
data = er.RankingData.from_arrays(X, (X[:, 0] > 0).astype(float), qid=np.arange(200) // 10)
for ranker in (er.DirectRank(restarts=1), er.LambdaMART(trees=3)):
    er.evaluate(data, ranker.fit(data), "nDCG@10")
er.fuse(data, folds=2, bootstrap=0)
er.compare_runs(data, {"a": X[:, 0], "b": X[:, 1]})
try:
    er.compare(data, ["ridge"])
except er.errors.IncompatibleError as error:
    print(error)
"""


def test_the_core_alone_trains_evaluates_and_names_the_extra_of_what_it_lacks():
    program = subprocess.run([sys.executable, "-c", CORE_ALONE], check=True, capture_output=True, text=True)
    assert program.stdout == "comparisons need jinja2, which is not installed; pip install 'exactrank[report]'\n"


def test_messages_and_pages_name_extras_that_exist():
    extras = PROJECT["project"]["optional-dependencies"]
    files = [*ROOT.glob("src/exactrank/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    named = {name for file in files for found in re.findall(r"exactrank\[([\w,]+)\]", file.read_text()) for name in found.split(",")}
    called = {name for file in files for name in re.findall(r'library\([^()]*, "[^"]+", "(\w+)"\)', file.read_text())}
    assert named | called <= {*extras}
    everything = {name for extra in (extras["all"]) for name in re.findall(r"exactrank\[([\w,]+)\]", extra)[0].split(",")}
    assert {*extras} - everything == {"all", "bench", "check", "cuda", "eland", "test", "torch"}
