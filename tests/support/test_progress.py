"""Progress: one line in a terminal and in a notebook, a function instead, nothing anywhere else; and a warning after Ctrl-C."""

import os
import pty
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import exactrank as er
from exactrank._support.progress_bars import Advance, duration_text, progress_listener, times_text
from exactrank.learning.training.progress import Progress, line_of

TIMES = r"(\d+ d \d+ h|\d+ h \d+ min|\d+ min \d+ s|\d+ s)"
#: What may stand in a terminal: a title, the bar, a share, the time that is spent, the time left, and what is done.
FRAME = re.compile(rf"^[\w-]+ +[━╸╺]+ +(\d+% )?{TIMES} elapsed(, about {TIMES} left)?( .*)?$")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

WORK = """
import numpy as np, exactrank as er
rng = np.random.default_rng(0)
data = er.RankingData.from_arrays(rng.normal(size=(160, 3)), rng.integers(0, 3, 160), group=[8] * 20, feature_names=["a", "b", "c"])
"""
CALLS = {
    "fit": "er.LambdaMART(trees=40, bags=0).fit(data, progress={})",
    "tune": "er.tune(data, 'ridge', trials=2, folds=2, progress={})",
    "compare": "er.compare(data, ['ridge'], folds=3, progress={})",
    "fuse": "er.fuse(data, folds=2, bootstrap=5, cells=100, progress={})",
}


def in_terminal(code):
    """All that a process writes to its terminal."""
    pid, handle = pty.fork()
    if pid == 0:
        os.environ |= {"COLUMNS": "120", "TERM": "xterm"}
        os.execv(sys.executable, [sys.executable, "-c", code])
    message = b""
    while True:
        try:
            block = os.read(handle, 1 << 16)
        except OSError:  # EIO, which is its end
            break
        message += block
        if not block:
            break
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, message
    return message.decode()


@pytest.mark.parametrize("name", CALLS)
def test_a_terminal_shows_one_line_and_keeps_nothing_of_it(name):
    message = in_terminal(f"{WORK}{CALLS[name].format(True)}")
    frames = [line for line in re.split(r"[\r\n]+", ESCAPE.sub("", message)) if line.strip()]
    assert frames
    assert [line for line in frames if not FRAME.match(line.rstrip())] == []
    assert message.endswith("\x1b[2K")  # the line is erased


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_printed_but_where_somebody_watches(name, capfd):
    space = {}
    exec(WORK, space)
    exec(CALLS[name].format(True), space)
    exec(CALLS[name].format(False), space)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", CALLS)
def test_a_function_hears_of_every_step(name):
    message = []
    space = {"told": message}
    exec(WORK, space)
    exec(CALLS[name].format("told.append"), space)
    assert message
    if name == "fit":
        assert all(isinstance(each, Progress) for each in message)
        assert [each.step for each in message] == list(range(1, 41))
    else:
        assert all(isinstance(each, Advance) and 0 <= each.share <= 1 and each.running for each in message)
        assert [each.completed for each in message] == sorted(each.completed for each in message)


def test_anything_else_is_refused():
    with pytest.raises(er.errors.SettingError, match="progress='yes' is not True, False or a function"):
        er.Ridge().fit(data_of(12), progress="yes")
    with progress_listener(None, "", lambda step: step) as nobody:
        assert nobody is None


def data_of(queries):
    rng = np.random.default_rng(0)
    return er.RankingData.from_arrays(rng.normal(size=(queries * 8, 3)), rng.integers(0, 3, queries * 8), group=[8] * queries)


def interrupt(step):
    signal.raise_signal(signal.SIGINT)


def test_what_ctrl_c_ends_warns():
    data = data_of(30)
    with pytest.warns(er.errors.InterruptedWarning, match="training was interrupted; the best model so far is kept"):
        er.LambdaMART(trees=30, bags=0).fit(data, progress=lambda progress: interrupt(progress) if progress.step == 3 else None)
    with pytest.warns(er.errors.InterruptedWarning, match=r"tuning was interrupted; the best of \d+ trials is taken"):
        tuning = er.tune(data_of(12), "ridge", valid=data, trials=200, progress=lambda each: interrupt(each) if each.completed else None)
    assert not tuning.complete
    with pytest.warns(er.errors.InterruptedWarning, match="the comparison was interrupted; it holds the finished fits"):
        compared = er.compare(
            data, ["ridge"], folds=10, workers=1, progress=lambda advance: interrupt(advance) if advance.completed >= 2 else None
        )
    assert not compared.complete
    with pytest.raises(KeyboardInterrupt):
        er.fuse(data, progress=interrupt)


def test_times_cannot_be_misread():
    for seconds in (0, 0.4, 12, 59.6, 60, 75, 3599, 5714, 86400, 1e7):
        assert re.fullmatch(TIMES, duration_text(seconds)), duration_text(seconds)
    assert times_text(4, None) == times_text(4, 0) == "4 s elapsed"
    assert times_text(12, 12 / (12 + 5714)) == "12 s elapsed, about 1 h 35 min left"
    assert line_of("AP", Progress(0, 0, 0.5)).share is None


def test_a_notebook_shows_the_line_below_its_cell():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    watch = "from IPython.display import DisplayHandle as H\nlines = []\nH.update = lambda self, html: lines.append(html.data)\n"
    cells = [watch + WORK + CALLS["fit"].format(True) + ";", "print(sum('elapsed' in line for line in lines) > 0, repr(lines[-1]))"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    path = os.pathsep.join([str(Path(er.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    nbclient.NotebookClient(book, kernel_name="python3").execute(env=os.environ | {"PYTHONPATH": path})
    assert [output.output_type for output in book.cells[0].outputs] == ["display_data"]  # and no warning of rich
    assert book.cells[1].outputs[0].text == "True ''\n"
