"""Help, examples, lists and completion: nothing is cut at 80 columns, what is shown runs, and it answers without numerical libraries."""

import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app, compare as compare_command
from exactrank.cli.examples import EXAMPLES, examples_of
from exactrank.cli.names import complete_measure, complete_methods, complete_ranker, peers, rankers
from exactrank.cli.train import training_command
from exactrank.compare import CONTENDERS
from exactrank.measures.parse import known_measures
from exactrank.rankers import RANKERS
from tests.driver import commands as driver

WIDTH = 80
HEAVY = {"numpy", "scipy", "sklearn", "lightgbm", "pandas", "matplotlib"}


def pages(group=None, before=()):
    """The words of every command and every group, those of single methods among them, and itself."""
    group = group or get_command(app)
    yield " ".join(before), group
    for name in group.list_commands(None):
        command = training_command(name) if before == ("train",) else group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from pages(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


PAGES = dict(pages())


def shown(words, width=WIDTH):
    result = CliRunner().invoke(app, [*words.split(), "--help"], env={"COLUMNS": str(width), "NO_COLOR": "1"}, prog_name="exactrank")
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("words", PAGES)
@pytest.mark.parametrize("width", [WIDTH, 50])
def test_nothing_is_cut(words, width):
    page = shown(words, width)
    assert "…" not in page
    assert max(map(len, page.splitlines())) <= width
    message = " ".join(page.replace("│", " ").split())
    for option in PAGES[words].params:
        for name in (*option.opts, *option.secondary_opts) if option.param_type_name == "option" else ():
            assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page), f"{words} --help does not show {name} whole"
        if width == WIDTH and option.help:
            assert " ".join(option.help.split()) in message, f"{words} --help does not say all of {option.name}"


@pytest.mark.parametrize("words", PAGES)
def test_flags_are_shown_alone_and_options_with_a_word_for_their_value(words):
    page = shown(words, 110)
    for option in PAGES[words].params:
        if option.param_type_name == "option":
            name = max((*option.opts, *option.secondary_opts), key=len)
            after = re.search(rf"^│ (?:-\w, |--[\w-]+ / )?{name}(?![\w-])(?P<value> \S+)?", page, re.MULTILINE)["value"]
            assert (after is None) == bool(option.is_flag), (words, name, after)
            assert after is None or re.fullmatch(r" [A-Z][\w=:,.|-]*", after), (words, name, after)


def test_options_stand_in_panels():
    page = shown("train lambdamart")
    titles = re.findall(r"^╭─ (.+?) ─+╮$", page, re.MULTILINE)
    assert titles == ["Arguments", "Data", "Training", "Trees", "Lambda function", "Output", "Examples"]
    panel = {title: page.split(f"╭─ {title} ")[1].split("╰─")[0] for title in titles}
    for title, names in {
        "Data": ("--valid", "--missing", "--query-column"),
        "Training": ("--measure", "--learning-rate", "--seed", "--resume"),
        "Trees": ("--leaves", "--feature-fraction"),
        "Lambda function": ("--lambdas", "--weighted-by"),
        "Output": ("--out", "--force", "--json"),
    }.items():
        assert all(name in panel[title] for name in names), title


def test_lists_say_what_the_docstrings_of_methods_say():
    """They are read from the sources, without importing the methods."""
    ours = {name: RANKERS[name] for name in RANKERS.builtin} | {name: CONTENDERS[name] for name in CONTENDERS.builtin}
    assert {name: line for name, line in (rankers() | peers()).items() if name in ours} == {
        name: kind.__doc__.partition("\n")[0] for name, kind in ours.items()
    }


def test_help_and_lists_import_nothing_heavy():
    code = (
        "import sys\nfrom exactrank.cli import app\n"
        "try:\n    app(prog_name='exactrank')\nexcept SystemExit as end:\n    code = end.code\n"
        f"print('HEAVY', code, sorted(set(sys.modules) & {HEAVY}))"
    )
    for words in (["--help"], ["compare", "--help"], ["train"], ["train", "--help"], ["methods"]):
        result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
        assert re.search(r"HEAVY [02] \[\]$", result.stdout.strip()), (words, result.stdout[-300:], result.stderr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `exactrank.cli.examples` promises."""
    place = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)
    names = ["train", "valid", "test", *(f"S{k}" for k in range(1, 6))]
    for number, name in enumerate(names):
        X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
        X[:, 0] += y
        qid = np.repeat(np.arange(12), 5) + 100 * number
        er.write(er.RankingData.from_arrays(X, y, qid=qid, docid=[f"d{i}" for i in range(60)]), place / f"{name}.txt")
    pairs = "".join(f"{q},d{5 * q},d{5 * q + 1}\n" for q in range(12))
    (place / "judgments.csv").write_text(f"query_id,better,worse\n{pairs}")
    grades = {(q, d): int(rng.integers(0, 3)) for q in range(12) for d in range(8)}
    (place / "qrels.txt").write_text("".join(f"{q} 0 d{d} {grade}\n" for (q, d), grade in grades.items()))
    for name in ("bm25", "dense"):
        lines = [f"{q} Q0 d{d} 1 {grade + rng.normal():.3f} {name}\n" for (q, d), grade in grades.items()]
        (place / f"{name}.run").write_text("".join(lines))
    return place


UNLIKE = {"serve", "demo"}  #: which do not end, and which take a minute


def run_examples(words, place):
    lines = examples_of(words)
    assert len(lines) == 2
    page = shown(words)
    message = " ".join(page.replace("│", " ").replace(" \\ ", " ").split())
    for line in lines:
        assert line in message
        again = ["--force"] if "--force" in page and " --out -" not in line else []  # another command may show the same example
        result = driver().run(*shlex.split(line)[1:], *again, at=place, COLUMNS="100")
        assert result.code == 0, f"{line}\n{result.err}"


def test_every_command_shows_two_examples_and_they_run(folder):
    """In their order: later ones use what earlier ones wrote."""
    assert {words for words in PAGES if not words.startswith("train ")} == set(EXAMPLES)
    for words in dict.fromkeys(["train", *EXAMPLES]):
        if words and words not in UNLIKE:
            run_examples(words, folder)


@pytest.mark.parametrize("method", RANKERS.builtin)
def test_every_method_shows_two_examples_and_they_run(method, folder):
    if method == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    run_examples(f"train {method}", folder)


def test_the_examples_of_serve_and_demo(folder, monkeypatch):
    served = []
    monkeypatch.chdir(folder)
    monkeypatch.setattr("exactrank.serve.server.serve", lambda paths, host, port, *more: served.append((list(paths), port)))
    monkeypatch.setattr(compare_command, "QUERIES", 12)
    monkeypatch.setattr(compare_command, "METHODS", ("ridge", "listnet"))
    for line in (*EXAMPLES["serve"], *EXAMPLES["demo"]):
        result = CliRunner().invoke(app, shlex.split(line))
        assert result.exit_code == 0, (line, result.output)
    assert served == [(["model"], 8000), (["first", "second"], 8080)]
    assert (folder / "exactrank-demo" / "report.html").exists()
    assert (folder / "elsewhere" / "report.html").exists()


def called(*words, code=0):
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "80"}, prog_name="exactrank")
    assert result.exit_code == code, result.output
    return result.output


def test_methods_and_measures_are_listed():
    methods, measures = json.loads(called("methods", "--json")), json.loads(called("measures", "--json"))
    assert list(methods["train"]) == list(rankers()) == list(RANKERS)
    assert set(methods["compare"]) == {*rankers(), *peers()} >= {"lightgbm", "xgboost", "catboost"}
    assert list(measures["measures"]) == known_measures()
    assert measures["measures"]["nDCG"]["settings"]["gain"] == "exp2"
    assert "trec_eval" in measures["presets"]
    for words, names in (("methods", methods["compare"]), ("measures", measures["measures"])):
        table = called(words)
        assert "…" not in table
        assert all(name in table for name in names)


@pytest.mark.parametrize(("typo", "meant"), [("lambdamrt", "lambdamart"), ("Ridge", "ridge"), ("coordinate_ascent", "coordinate-ascent")])
def test_a_method_that_is_misspelt_is_suggested(typo, meant):
    message = " ".join(called("train", typo, "data.txt", code=2).replace("│", " ").split())
    assert f"no ranker '{typo}' (did you mean {meant}?)" in message


def test_completion_of_methods_and_measures():
    assert complete_ranker("lambda") == ["lambdamart", "lambdarank"]
    assert complete_methods("ridge,light") == ["ridge,lightgbm"]
    assert complete_measure("nd") == ["nDCG"]
    assert complete_measure("ndcg") == ["nDCG@1", "nDCG@5", "nDCG@10", "nDCG@20"]
    assert complete_measure("AP@1") == ["AP@1", "AP@10"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("exactrank train lam", {"lambdamart", "lambdarank"}),
        ("exactrank train lambdamart --feature-f", {"--feature-fraction"}),
        ("exactrank tune lambdam", {"lambdamart"}),
        ("exactrank train ridge --measure nD", {"nDCG"}),
        ("exactrank compare d.txt --methods ridge,catb", {"ridge,catboost"}),
        ("exactrank me", {"methods", "measures"}),
    ],
)
def test_the_shell_is_offered(line, offered):
    """What bash asks the program, and what it answers."""
    words = line.split()
    environment = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_EXACTRANK_COMPLETE": "complete_bash"}
    code = "from exactrank.cli import app; app(prog_name='exactrank')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ | environment)
    assert set(result.stdout.split()) == offered, result.stderr


def test_completion_can_be_shown_and_installed():
    assert {"--install-completion", "--show-completion"} <= set(re.findall(r"--[\w-]+", shown("")))
