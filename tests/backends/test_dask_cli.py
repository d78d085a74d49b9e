"""Clusters and data in several files on the command line: good and bad input, progress, Ctrl-C, processes that are killed and resumed."""

import errno
import json
import os
import pty
import re
import select
import signal
import sys
from pathlib import Path

import pytest

import exactrank as er
from exactrank.cli.cluster import backend_at, shards_at
from exactrank.data.backend import LocalBackend
from exactrank.data.dataset import EachPart
from exactrank.data.formats.base import Columns, ReadOptions
from exactrank.data.sharded import open_shards
from tests.backends.test_engine import made
from tests.cli.test_cli import called, ok, refused
from tests.events import gone, wait_until
from tests.faults.shim import UNAVAILABLE, Fault

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
TRAIN = ("train", "directrank", "--bags", 0, "--threads", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same data whole and in several files of several formats, and a model of it."""
    folder = tmp_path_factory.mktemp("folder")
    whole = made(8, 1300)
    er.write(whole, folder / "whole.xr")
    for format_ in ("parquet", "csv", "txt"):
        for number, (first, last) in enumerate([(0, 500), (500, 1300)]):
            part = er.data.shards.query_range(whole, first, last)
            er.write(part, folder / f"{format_}-{number}.{format_}")
    ok("convert", "whole.xr", "shards", "--shards", 3, cwd=folder)
    ok(*TRAIN, "--max-iter", 1, "whole.xr", "--out", "whole.json", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def address():
    quiet = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, **quiet) as cluster:
        yield cluster.scheduler_address


def weights(path):
    """Text has no names of features."""
    return er.load(path).scorer.weights.tolist()


@pytest.mark.parametrize("data", ["shards", "shards/part-*.xr", "parquet-*.parquet", "whole.xr"])
def test_training_and_evaluation_on_a_cluster_are_those_of_one_file(folder, address, data):
    name = f"{data.replace('/', '-').replace('*', '')}.json"
    ok(*TRAIN, "--max-iter", 1, data, "--out", name, "--dask", address, cwd=folder)
    assert weights(folder / name) == weights(folder / "whole.json")
    shown = [
        json.loads(ok("evaluate", *given, "--json", cwd=folder))["measures"]
        for given in ((data, name, "--dask", address), ("whole.xr", "whole.json"))
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("data", ["csv-*.csv", "txt-*.txt", "shards/shards.json", "file://{folder}/parquet-?.parquet"])
def test_files_of_any_format_and_urls_are_worked_through_here(folder, data):
    name = f"{re.sub('[^a-z]', '', data)}.json"
    ok(*TRAIN, "--max-iter", 1, data.format(folder=folder), "--out", name, cwd=folder)
    assert weights(folder / name) == weights(folder / "whole.json")


def test_urls_of_other_systems_are_fetched(folder):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    for path in folder.glob("shards/*"):
        fsspec.filesystem("memory").pipe_file(f"/bucket/{path.name}", path.read_bytes())
    whole = er.read(folder / "whole.xr")
    for url in ("memory://bucket/part-*.xr", "memory://bucket/shards.json"):
        dataset = open_shards(er.read_shards(url), LocalBackend(), 5_000)
        assert dataset.ask(EachPart(lambda part: part.data.y.tolist())) == [
            whole.y[whole.indptr[part.first] : whole.indptr[part.first + part.queries]].tolist() for part in dataset.partitions
        ]
    assert [Path(file.path).name for file in shards_at(Path("memory://bucket/part-*.xr"), False, ReadOptions()).files] == [
        f"part-000{number}.xr" for number in range(3)
    ]
    with pytest.raises(er.errors.DataError, match=r"memory://bucket/other\.xr cannot be fetched: .*; check the address and the rights"):
        open_shards(er.read_shards("memory://bucket/other.xr"), LocalBackend())
    with pytest.raises(er.errors.DataError, match=r"nosuch://a: .*nosuch"):
        open_shards(er.read_shards("nosuch://a"), LocalBackend())


def test_how_to_read_is_that_of_the_options(folder, tmp_path):
    for number in range(2):
        table = (folder / f"csv-{number}.csv").read_text().replace("query_id", "q", 1).replace("relevance", "grade", 1)
        (tmp_path / f"{number}.csv").write_text(table)
    columns = ("--query-column", "q", "--relevance-column", "grade")
    ok(*TRAIN, "--max-iter", 1, "?.csv", "--out", "m.json", *columns, cwd=tmp_path)
    assert weights(tmp_path / "m.json") == weights(folder / "whole.json")
    assert er.read_shards(tmp_path / "?.csv", columns=Columns(query="q", relevance="grade")).options.columns.query == "q"


def test_several_files_are_converted_to_one_or_to_others(folder, tmp_path):
    ok("convert", folder / "csv-*.csv", tmp_path / "one.xr")
    ok("convert", folder / "txt-*.txt", tmp_path / "many", "--shards", 4)
    first, whole = er.read(tmp_path / "one.xr"), er.read(folder / "whole.xr")
    assert first.X.tobytes() == whole.X.tobytes()
    assert first.qid.tolist() == whole.qid.tolist()
    many = open_shards(er.read_shards(tmp_path / "many"), LocalBackend())
    assert (many.n_queries, len(many.facts)) == (1300, 4)
    (tmp_path / "csv-2.csv").write_text("query_id,relevance,other\n9000,1,2\n")
    (tmp_path / "csv-1.csv").write_bytes((folder / "csv-1.csv").read_bytes())
    refused(2, "csv-2.csv and", "convert", tmp_path / "csv-*.csv", tmp_path / "two.xr")
    assert not (tmp_path / "two.xr").exists()


def test_shards_are_replaced_only_when_told(tmp_path, folder):
    ok("convert", folder / "whole.xr", "shards", "--shards", 3, cwd=tmp_path)
    refused(
        2, "shards/shards.json already exists; give another folder, or --force", "convert", "none.xr", "shards", "--shards", 2, cwd=tmp_path
    )
    ok("convert", folder / "whole.xr", "shards", "--shards", 2, "--force", cwd=tmp_path)
    assert sorted(path.name for path in (tmp_path / "shards").iterdir()) == ["part-0000-b.xr", "part-0001-b.xr", "shards.json"]
    (tmp_path / "mine.xr").write_text("mine")
    manifest = tmp_path / "shards/shards.json"
    manifest.write_text(manifest.read_text().replace("part-0001-b.xr", "../mine.xr"))
    ok("convert", folder / "whole.xr", "shards", "--shards", 2, "--force", cwd=tmp_path)
    assert (tmp_path / "mine.xr").exists()
    manifest.write_text("damaged")
    ok("convert", folder / "whole.xr", "shards", "--shards", 2, "--force", cwd=tmp_path)
    whole = folder / "whole.xr"
    refused(2, "--shards 1301 is more than the 1,300 queries", "convert", whole, "more", "--shards", 1301, cwd=tmp_path)
    refused(2, "--columns keeps the features of one cache by column", "convert", whole, "more", "--shards", 2, "--columns", cwd=tmp_path)
    assert not (tmp_path / "more").exists()


@pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE)
@pytest.mark.parametrize(("kind", "action"), [("write", "fail"), ("rename", "kill")])
def test_earlier_shards_stay_until_the_new_ones_are_complete(tmp_path, folder, driver, kind, action):
    """A fault at each call in turn: a whole set of shards is there, the old one or the new one."""
    for number in range(1, 30):
        ok("convert", folder / "whole.xr", "shards", "--shards", 3, "--force", cwd=tmp_path)
        command = ("convert", folder / "txt-0.txt", "shards", "--shards", 2, "--force")
        ended = driver.run(*command, at=tmp_path, fault=Fault(kind, action, number, errno.EIO))
        dataset = open_shards(er.read_shards(tmp_path / "shards"), LocalBackend())
        assert (dataset.n_queries, len(dataset.facts)) == ((500, 2) if ended.code == 0 else (1300, 3))
        if ended.count < number:
            assert number > 4
            return
    raise AssertionError(f"there are more than 29 calls of {kind}")


def test_bad_input_is_told(folder, monkeypatch):
    train = (*TRAIN, "shards", "--out", "bad.json")
    refused(
        2, "--dask names a cluster, and --workers starts one; give one of them", *train, "--dask", "tcp://a", "--workers", 2, cwd=folder
    )
    refused(2, "Invalid value for '--workers': Input should be greater than or equal to 1", *train, "--workers", 0, cwd=folder)
    refused(2, "none-*.xr: there is no such file; check the pattern", *TRAIN, "none-*.xr", "--out", "bad.json", cwd=folder)
    refused(2, "only a model can score where they lie; give one model", "evaluate", "shards", "--feature", "1", cwd=folder)
    by_query = ("train", "lambdarank", "shards", "--out", "bad.json", "--solver", "sgd", "--learning-rate", "0.1")
    refused(2, "updates query by query (sgd) would go from file to file with every query; use solver='adam'", *by_query, cwd=folder)
    monkeypatch.setattr("exactrank.cli.cluster.SECONDS_TO_CONNECT", 1)
    for address in ("tcp://127.0.0.1:1", "nonsense://1", "no-port", ""):
        with (
            pytest.raises(
                er.errors.EngineError,
                match=rf"no scheduler answers at {address} \(.+\); check the address, or start one with dask scheduler",
            ),
            backend_at(address, None),
        ):
            pass
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(
            er.errors.IncompatibleError,
            match=r"--dask and --workers need distributed, which is not installed; pip install 'exactrank\[dask\]'",
        ),
        backend_at("a", None),
    ):
        pass


#: The command line, in which training does not end by itself: after a number of checkpoints, the same question is asked forever.
ENDLESS = """
import sys
from exactrank.cli import main
from exactrank.backends.dask import DaskBackend
from exactrank.models.model import Model
from exactrank.learning.training import run

run.SECONDS_BETWEEN_CHECKPOINTS, run.TIMES_BETWEEN_CHECKPOINTS = 0.0, 0
left, save, ask = int(sys.argv.pop(1)), Model.save, DaskBackend.ask

def counted(model, path, **how):
    global left
    save(model, path, **how)
    left -= 1

def asked(engine, data, question):
    while left <= 0:
        ask(engine, data, question)
    return ask(engine, data, question)

Model.save, DaskBackend.ask = counted, asked
main()
"""


class Terminal:
    """A command in a terminal of its own, with what it shows there; it makes a number of ``checkpoints`` and does not end."""

    def __init__(self, at, checkpoints, *arguments):
        self.shown = ""
        self.pid, self._handle = pty.fork()
        if self.pid == 0:
            os.chdir(at)
            os.environ |= {"COLUMNS": "150", "TERM": "xterm"}
            os.execv(sys.executable, [sys.executable, "-c", ENDLESS, str(checkpoints), *map(str, arguments)])

    def wait(self, until):
        """Read what is shown until there is what ``until`` asks for, or the end."""

        def over():
            if select.select([self._handle], [], [], 0)[0]:
                try:
                    self.shown += os.read(self._handle, 1 << 16).decode(errors="replace")
                except OSError:  # the other side has ended
                    return True
            return until()

        wait_until(over)

    def press_ctrl_c(self):
        """As a user does: the terminal sends the signal to all processes."""
        os.write(self._handle, b"\x03")

    def ended(self):
        """The exit code."""
        self.wait(lambda: False)
        os.close(self._handle)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def children(pid):
    return [int(each) for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_training_is_interrupted_killed_and_resumed_to_the_same_bits(folder, monkeypatch):
    """On workers of this machine: Ctrl-C, then SIGKILL; nobody is left behind, and the third run finishes the model.

    All steps are compared, those of restarts that did not win too.
    """
    command = (*TRAIN, "shards", "--max-iter", 3, "--restarts", 12, "--start", "random", "--out", "long.json")
    checkpoint = folder / "long.json.checkpoint"
    first = Terminal(folder, 3, *command, "--workers", 2)
    first.wait(lambda: checkpoint.exists() and re.search("left +nDCG@10 .*2 workers, [0-9.]+ MB", first.shown))
    others = children(first.pid)
    assert len(others) >= 2
    first.press_ctrl_c()
    assert first.ended() == 1
    assert "interrupted; long.json.checkpoint holds the best model so far; the same command with --resume continues" in first.shown
    assert "Traceback" not in first.shown
    assert all(map(gone, others))
    begun = checkpoint.stat().st_mtime_ns

    second = Terminal(folder, 3, *command, "--resume", "--workers", 2)
    second.wait(lambda: checkpoint.stat().st_mtime_ns != begun)
    others = children(second.pid)
    os.kill(second.pid, signal.SIGKILL)
    assert second.ended() == -signal.SIGKILL
    assert all(map(gone, others))
    assert not (folder / "long.json").exists()

    fitted, fit = [], er.DirectRank.fit
    monkeypatch.setattr(er.DirectRank, "fit", lambda self, *args, **more: fitted.append(fit(self, *args, **more)))
    monkeypatch.chdir(folder)
    called(0, *command, "--resume")
    assert not checkpoint.exists()
    called(0, *TRAIN, "whole.xr", "--max-iter", 3, "--restarts", 12, "--start", "random", "--out", "unbroken.json")
    assert weights("long.json") == weights("unbroken.json")
    resumed, unbroken = (ranker.history_ for ranker in fitted)
    assert resumed == unbroken
