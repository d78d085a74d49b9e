"""Nothing that a user owns is lost: by killed runs, by two at a time, by special files; real processes and real signals."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import unicodedata
from importlib import import_module
from itertools import product

import pytest
from typer.testing import CliRunner

import exactrank as er
from exactrank._support import locks
from exactrank._support.files import scratch_folder, whole_file, whole_files
from exactrank.cli import app
from exactrank.compare.fitting import file_stem
from exactrank.compare.folder import LOCK
from exactrank.data.synthetic import CubicPolynomial
from exactrank.reproduce import find_experiment
from tests.cli.test_cli import PROGRAM
from tests.compare.comparisons import make_comparison
from tests.compare.test_compare import place_at, started
from tests.events import HANGS, wait_until


@pytest.fixture(scope="module")
def data():
    return CubicPolynomial(features=3, documents=6, grades=3, noise=0.2).data(12)


@pytest.fixture
def folder(tmp_path, data, monkeypatch):
    """The current folder, with data and a finished model."""
    er.write(data, tmp_path / "web.txt")
    er.Ridge().fit(data).save(tmp_path / "ridge.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"}, catch_exceptions=False)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# What an output may replace


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, dangling = tmp_path / "there" / "a.txt", tmp_path / "link.txt", tmp_path / "dangling.txt"
    target.write_bytes(b"old")
    link.symlink_to(target)
    dangling.symlink_to("there/new.txt")
    with pytest.raises(er.errors.OutputExistsError), whole_file(link):
        pytest.fail("the block must not run")
    for path in (link, dangling):
        with whole_file(path, force=path == link) as file:
            file.write(b"new")
        assert path.is_symlink()
        assert path.read_bytes() == b"new"
    assert names(tmp_path / "there") == ["a.txt", "new.txt"]
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "loop"])
def test_what_is_no_regular_file_is_never_replaced(tmp_path, kind):
    path = tmp_path / "special"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    elif kind == "loop":
        path.symlink_to(path)
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    before = os.lstat(path)
    is_loop = kind == "loop"
    says = "special cannot be opened: its symbolic links" if is_loop else "special is not a regular file and will not be replaced"
    with pytest.raises(er.errors.DataError if is_loop else OSError, match=says), whole_file(path, force=True):
        pytest.fail("the block must not run")
    assert os.path.samestat(before, os.lstat(path))
    assert names(tmp_path) == ["special"]


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path, bits):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(bits)
    with whole_file(path, force=True) as file:
        (part,) = tmp_path.glob(".a.txt.*.part")
        assert part.stat().st_mode & 0o077 == 0, "nobody sees more of it than before"
        file.write(b"new")
    assert path.stat().st_mode & 0o777 == bits


def test_of_several_files_none_appears_before_all_are_whole(tmp_path):
    with pytest.raises(RuntimeError), whole_files(tmp_path / "a", tmp_path / "b") as (first, second):
        first.write(b"1")
        second.write(b"2")
        raise RuntimeError
    assert names(tmp_path) == []
    with pytest.raises(er.errors.DataError, match="two outputs would go to"), whole_files(tmp_path / "a", tmp_path / "a"):
        pytest.fail("the block must not run")
    assert names(tmp_path) == []


def test_names_as_long_as_file_systems_allow(tmp_path):
    for name in ("a" * 255, "ä" * 127, "a" * 254 + "b"):
        with whole_file(tmp_path / name) as file:
            file.write(name.encode())
        assert (tmp_path / name).read_bytes() == name.encode()
    assert len(names(tmp_path)) == 3


@pytest.mark.parametrize("old", [True, False])
def test_a_full_disk_names_the_output_and_what_is_left_of_it(folder, old):
    """The system refuses to let any file grow beyond 2 kB."""
    if old:
        (folder / "out.txt").write_text("old")
    limited = ["bash", "-c", 'ulimit -f 2; exec "$@"', "bash", PROGRAM, "convert", "web.txt", "out.txt", "--force"]
    result = subprocess.run(limited, capture_output=True, text=True, check=False)
    left = "the file that was there is unchanged" if old else "nothing was written there"
    assert (result.returncode, result.stderr) == (1, f"exactrank: out.txt: File too large; {left}\n")
    assert names(folder) == (["out.txt"] if old else []) + ["ridge.json", "web.txt"]
    assert not old or (folder / "out.txt").read_text() == "old"


# Standard output


@pytest.mark.parametrize("out", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_gets_the_whole_output_and_nothing_else(folder, out, capfd, data):
    result = invoke("convert", "web.txt", out, "--json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(result.stderr) == {"path": out, "documents": 72, "bytes": None}
    assert capfd.readouterr().out.encode() == (folder / "web.txt").read_bytes()
    result = invoke("predict", "ridge.json", "web.txt", "--out", out)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"{out}: 72 documents\n")
    assert [float(line) for line in capfd.readouterr().out.splitlines()] == er.load("ridge.json").predict(data).tolist()
    result = invoke("train", "ridge", "web.txt", "--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(capfd.readouterr().out) == json.loads((folder / "ridge.json").read_text())
    assert names(folder) == ["ridge.json", "web.txt"]


def test_what_standard_output_cannot_be_is_said(folder):
    for arguments, message in (
        (("train", "ridge", "web.txt", "--out", "-", "--resume"), "--resume continues from a file"),
        (("reproduce", "jumping-points", "--out", "-"), "give a folder"),
        (("compare", "web.txt", "--methods", "ridge", "--out", "-"), "give a folder"),
        (("inspect", "importance", "ridge.json", "web.txt", "--plot", "-"), "names no kind of picture"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr
    assert names(folder) == ["ridge.json", "web.txt"]


# Outputs that cannot be written are found before the work


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", "ridge", "none.txt", "--out", "nowhere/m.json"),
        ("train", "ridge", "none.txt", "--out", "nowhere/m.json"),
        ("predict", "none.json", "none.txt", "--out", "nowhere/s.txt"),
        ("convert", "none.qrels", "nowhere/d.xr", "--run", "none.run"),
        ("fuse", "none.qrels", "--run", "none.run", "--save", "nowhere/w.json"),
        ("fuse", "none.qrels", "--run", "none.run", "--run", "none.run", "--plot", "nowhere/w.png"),
        ("inspect", "optimality", "none.json", "none.txt", "--plot", "nowhere/p.png"),
        ("inspect", "importance", "none.json", "none.txt", "--plot", "nowhere/p.png"),
        ("inspect", "smoothness", "none.json", "none.txt", "--plot", "nowhere/p.png"),
        ("compare", "none.txt", "--methods", "ridge", "--out", "web.txt/out"),
    ],
)
def test_the_output_is_opened_first(folder, arguments):
    """Neither the data nor the model is there either; it is the output that is told."""
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert "nowhere" in result.stderr or "web.txt/out" in result.stderr
    assert "none" not in result.stderr
    assert names(folder) == ["ridge.json", "web.txt"]


def test_the_files_of_an_experiment_are_opened_first(folder, monkeypatch):
    monkeypatch.setattr(find_experiment("jumping-points"), "run", lambda self, tell: pytest.fail("the work was begun"))
    result = invoke("reproduce", "jumping-points", "--out", "web.txt/out")
    assert result.exit_code == 1
    assert "web.txt/out" in result.stderr


def test_two_outputs_of_a_command_are_two_files(folder):
    result = invoke("fuse", "none.qrels", "--run", "none.run", "--run", "none.run", "--save", "w.svg", "--plot", "./w.svg", "--force")
    assert result.exit_code == 2
    assert "two outputs would go to w.svg" in result.stderr


# What dead processes leave


WRITING = """
import sys, time
from pathlib import Path
from exactrank._support.files import scratch_folder, whole_file
place = Path(sys.argv[1])
with whole_file(place / "out.txt") as file, scratch_folder(place) as scratch:
    (scratch / "copy.xr").write_text("data")
    (place / "begun").touch()
    print("begun", flush=True)
    time.sleep(600)
"""


def test_the_next_run_sweeps_what_dead_ones_left_and_nothing_else(tmp_path):
    dead, alive = tmp_path / "dead", tmp_path / "alive"
    processes = []
    for place in (dead, alive):
        place.mkdir()
        for mine in ("exactrank-0123456789abcdef", "exactrank-mine", ".out.txt.mine.part"):
            (place / mine).mkdir()
        mine = names(place)
        processes.append(subprocess.Popen([sys.executable, "-c", WRITING, str(place)], stdout=subprocess.PIPE))
    for process in processes:
        assert process.stdout.readline() == b"begun\n"
    processes[0].kill()
    processes[0].communicate()
    for place, left in ((dead, 0), (alive, 3)):
        assert len(names(place)) == len(mine) + 4
        with whole_file(place / "out.txt") as file, scratch_folder(place) as scratch:
            assert len(names(place)) == len(mine) + 4 + left
            assert names(scratch) == []
            file.write(b"mine")
        assert len(names(place)) == len(mine) + 2 + left
    assert names(dead) == sorted([*mine, "begun", "out.txt"])
    assert [path.read_text() for path in alive.glob("exactrank-*/copy.xr")] == ["data"]
    processes[1].kill()
    processes[1].communicate()


@pytest.mark.parametrize("lock", [True, False])
def test_a_file_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch, lock):
    locked, swept = locks._try_lock, []

    def sweeping(handle):
        result = locked(handle)
        if not swept:
            swept.extend(tmp_path.glob(".*.part"))
            swept[0].unlink()
            return lock
        return result

    monkeypatch.setattr(locks, "_try_lock", sweeping)
    with whole_file(tmp_path / "out.txt") as file:
        assert len(swept) == 1
        file.write(b"whole")
    assert names(tmp_path) == ["out.txt"]
    assert (tmp_path / "out.txt").read_bytes() == b"whole"


def test_where_there_are_no_locks_nothing_is_swept(tmp_path, monkeypatch):
    leftover = tmp_path / ".out.txt.0123456789abcdef.part"
    leftover.write_text("half")

    def refuse(handle, operation):
        raise OSError(95, "Operation not supported")

    with monkeypatch.context() as patched:
        patched.setattr(locks.fcntl, "flock", refuse)
        with whole_file(tmp_path / "out.txt") as file, scratch_folder(tmp_path):
            file.write(b"whole")
    assert names(tmp_path) == [leftover.name, "out.txt"]
    with whole_file(tmp_path / "out.txt", force=True) as file:
        file.write(b"again")
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_command_like_ctrl_c(tmp_path, how):
    target = tmp_path / "data.xr"
    target.write_bytes(b"old")
    command = [PROGRAM, "generate", target, "--queries", "1000000000", "--force"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: any(part.stat().st_size > 1 << 20 for part in tmp_path.glob(".data.xr.*.part")), process)
    process.send_signal(how)
    assert process.communicate(timeout=120) == ("", "exactrank: interrupted\n")
    assert process.returncode == 1
    assert names(tmp_path) == ["data.xr"]
    assert target.read_bytes() == b"old"


# Training


def test_training_that_is_ended_leaves_the_finished_model(folder):
    finished = (folder / "ridge.json").read_bytes()
    command = ["train", "spsarank", "web.txt", "--out", "ridge.json"]
    endless = [PROGRAM, *command, "--max-iter", "1000000000", "--force"]
    process = subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until((folder / "ridge.json.checkpoint").exists, process)
    for more in ([], ["--force"], ["--resume"]):
        result = invoke(*command, *more)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "another process is training ridge.json" in result.stderr
    process.send_signal(signal.SIGTERM)
    printed, message = process.communicate(timeout=HANGS)
    kept = "ridge.json.checkpoint holds the best model so far, and ridge.json is as it was; the same command with --resume continues"
    assert (process.returncode, message) == (1, f"exactrank: interrupted; {kept}\n")
    assert "ridge.json.checkpoint" in printed
    assert (folder / "ridge.json").read_bytes() == finished
    assert names(folder) == ["ridge.json", "ridge.json.checkpoint", "web.txt"]
    checkpoint = (folder / "ridge.json.checkpoint").read_bytes()

    result = invoke("predict", "ridge.json.checkpoint", "web.txt")
    assert result.exit_code == 0
    assert "ridge.json.checkpoint is unfinished: its training was interrupted" in result.stderr
    assert invoke("predict", "ridge.json", "web.txt").stderr == ""
    assert "is unfinished" in invoke("inspect", "importance", "ridge.json.checkpoint", "web.txt").stderr

    (folder / "ridge.json").rename(folder / "old.json")
    result = invoke(*command)
    assert result.exit_code == 2
    assert "--resume continues it, --force begins again" in result.stderr
    assert (folder / "ridge.json.checkpoint").read_bytes() == checkpoint
    assert "max_iter=1000000000, not 1" in invoke(*command, "--max-iter", 1, "--resume").stderr
    assert invoke(*command, "--max-iter", 1, "--force").exit_code == 0
    assert names(folder) == ["old.json", "ridge.json", "web.txt"]
    assert not er.load("ridge.json").training["interrupted"]


#: Trains with a checkpoint after every tree, no file larger than a limit; prints after each how many trees had grown at the checkpoint.
SHORT_OF_SPACE = """
import resource, sys
import exactrank as er
from exactrank.cli import app
from exactrank.models.model import Model
from exactrank._support.serialize import from_record
from exactrank.learning.training import run

run.SECONDS_BETWEEN_CHECKPOINTS, run.TIMES_BETWEEN_CHECKPOINTS = 0.0, 0
save = Model.save

def watched(model, path, **how):
    try:
        save(model, path, **how)
    finally:
        if "checkpoint" in str(path):
            print(len(from_record(er.load(path).run, "the checkpoint")["history"]), flush=True)

Model.save = watched
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
app(sys.argv[2:])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux is sure to end a write at the limit")
def test_training_goes_on_when_there_is_no_space_for_a_checkpoint(folder):
    """A checkpoint, which holds what to resume from, is larger than the model in the end: the system refuses to write one that large."""
    train = ("train", "lambdamart", "web.txt", "--trees", "20", "--bags", "0", "--min-documents", "1", "--out")
    assert invoke(*train, "whole.json").exit_code == 0
    limit = 4 * (folder / "whole.json").stat().st_size  # which has the few best trees
    command = [sys.executable, "-c", SHORT_OF_SPACE, str(limit), *train, "m.json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"}, timeout=120)
    assert result.returncode == 0, result.stderr
    message = " ".join(result.stderr.split())
    assert "m.json.checkpoint could not be written (File too large; the file that was there is unchanged); training continues" in message
    left = [int(line) for line in result.stdout.splitlines() if line.isdigit()]
    last = left[-1]
    assert left == [*range(1, last), *[last] * (21 - last)]  # the last that fitted stayed whole
    assert 1 < last < 20
    assert (folder / "m.json").read_bytes() == (folder / "whole.json").read_bytes()
    assert names(folder) == ["m.json", "ridge.json", "web.txt", "whole.json"]


def test_a_checkpoint_is_not_replaced_by_a_worse_one(folder, monkeypatch):
    """A ranker that cannot go on from where it was begins again, and is ended once more before it came as far."""
    from exactrank.rankers.coordinate_ascent import CoordinateAscent

    far = CoordinateAscent(restarts=3, tries=8).fit(er.read("web.txt")).model_
    record = json.loads(far.to_bytes())
    record["training"]["interrupted"] = True
    (folder / "m.json.checkpoint").write_text(json.dumps(record))
    ended = CoordinateAscent._fit

    def soon(self, task, recorder):
        record_step = recorder.record

        def interrupted_record(*step):
            record_step(*step)
            raise KeyboardInterrupt

        recorder.record = interrupted_record
        return ended(self, task, recorder)

    monkeypatch.setattr(CoordinateAscent, "_fit", soon)
    result = invoke("train", "coordinate-ascent", "web.txt", "--out", "m.json", "--restarts", 3, "--tries", 8, "--resume")
    assert result.exit_code == 1
    assert "m.json.checkpoint holds the best model so far; the same command with --resume continues" in result.stderr
    assert json.loads((folder / "m.json.checkpoint").read_text()) == record
    assert not (folder / "m.json").exists()


def test_tuning_that_is_ended_says_so(folder, data, monkeypatch):
    def interrupted(advance):
        raise KeyboardInterrupt

    def ended(advance):
        if advance.completed:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        er.tune(data, "ridge", progress=interrupted)
    with pytest.warns(er.errors.InterruptedWarning, match="tuning was interrupted"):
        tuning = er.tune(data.take_queries(range(8)), "ridge", valid=data.take_queries(range(8, 12)), trials=50, progress=ended)
    assert not tuning.complete
    assert 0 < len(tuning.trials) < 50
    monkeypatch.setattr(import_module("exactrank.compare.tune"), "tune", lambda *arguments, **options: tuning)
    result = invoke("tune", "ridge", "web.txt", "--out", "m.json")
    assert result.exit_code == 1
    assert f"m.json has the best settings of the {len(tuning.trials)} trials that were finished" in result.stderr
    assert er.load("m.json").params | {"backend": None} == tuning.ranker.get_params()


# Comparisons


@pytest.mark.parametrize("more", [["--force"], ["--force", "--folds", "99"], ["--resume", "--folds", "99"]])
def test_a_comparison_deletes_nothing_of_the_user(folder, more):
    (folder / "data").mkdir()
    (folder / "data" / "mine.txt").write_text("mine")
    result = invoke("compare", "web.txt", "--methods", "ridge", "--folds", 3, "--out", ".", *more)
    assert result.exit_code == (2 if "99" in more else 0), result.output
    assert (folder / "data" / "mine.txt").read_text() == "mine"
    assert not {"ridge.json", "web.txt", "data"} - set(names(folder))
    assert not list(folder.glob("*exactrank*"))


def test_resuming_does_not_replace_what_no_comparison_made(folder):
    (folder / "results.csv").write_text("mine")
    arguments = ["compare", "web.txt", "--methods", "ridge", "--folds", 3, "--out", "."]
    result = invoke(*arguments, "--resume")
    assert result.exit_code == 2
    assert ". holds results.csv but no comparison to resume" in result.stderr
    with pytest.raises(er.errors.OutputExistsError, match=r"results\.csv already exists"):
        make_comparison().write(folder)
    assert names(folder) == ["results.csv", "ridge.json", "web.txt"]
    assert (folder / "results.csv").read_text() == "mine"


def test_a_second_comparison_is_refused_and_a_signal_leaves_nothing_behind(folder):
    out = folder / "out"
    with place_at(folder / "place") as (begun, _):
        first = started("web.txt", out, folder / "place")
        begun.line(first)
        before = names(out)
        for more in ([], ["--force"], ["--resume"]):
            result = invoke("compare", "web.txt", "--methods", "ridge", "--folds", 3, "--out", out, *more)
            assert (result.exit_code, result.stdout) == (2, "")
            assert "another comparison is running in" in result.stderr
        with pytest.raises(er.errors.OutputExistsError, match="another comparison is running"):
            er.compare(er.read("web.txt"), ["ridge"], folds=3, out=out, force=True)
        assert set(before) <= set(names(out))
        assert LOCK in before
        first.send_signal(signal.SIGTERM)
        _, message = first.communicate(timeout=HANGS)
    assert first.returncode == 1
    assert message == f"exactrank: interrupted; {out} holds the finished fits; the same command with --resume continues\n"
    assert names(out) == sorted(
        {"comparison.json", "fits", "models", "report.html", "results.csv", "tables.md", "tables.tex"} & set(names(out))
    )
    assert not list(out.rglob("*.part"))


def test_every_label_keeps_its_model(folder, data):
    long = "l" * 300
    methods = ["a b=ridge", "a.b=ridge(l2=1e6)", "A b=ridge(l2=10.0)", f"{long}=ridge"]
    comparison = er.compare(data, methods, folds=3, out=folder / "out")
    assert not any(fit.failed for fit in comparison.fits)
    kept = [model for fit in comparison.fits for model in fit.models]
    assert len({model.casefold() for model in kept}) == len(comparison.fits) == 12
    assert names(folder / "out" / "models") == sorted(kept)
    for fit in comparison.fits:
        assert er.load(folder / "out" / "models" / fit.models[0]).params["l2"] == fit.settings["l2"]


def test_no_two_labels_share_a_name_even_where_case_and_composition_are_ignored():
    similar = ["a b", "a.b", "a-b", "A-b", "a  b", "", "-", ".", "Fold1", "fold1", "FOLD1", "\u00e9", "e\u0301", "\u00df", "ss"]
    labels = list(product([*similar, "l" * 300, "l" * 301, "\ud800"], repeat=3))
    stems = [file_stem(*label) for label in labels]
    assert len({unicodedata.normalize("NFKD", stem).casefold() for stem in stems}) == len(labels)
    assert all(len(stem.encode()) <= 200 and "/" not in stem for stem in stems)
    assert file_stem("web", "Fold1", "small+deep_trees-2") == "web.Fold1.small+deep_trees-2"
