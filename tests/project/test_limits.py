"""Limits of the system: memory, file size, open files, threads, processes, a full disk. A clear error or success, and nothing lost."""

import errno
import os
import subprocess

import pytest

import exactrank as er
from tests.faults.laws import OLD, Bench, check_clean, check_honest
from tests.faults.operations import OPERATIONS, QUICK
from tests.faults.shim import UNAVAILABLE, Fault

pytestmark = pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE)
MIB = 1 << 20


@pytest.fixture(scope="module")
def benches(driver, inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("benches")
    return {name: Bench(OPERATIONS[name], driver, inputs, folder) for name in [*QUICK, "tune"]}


def under(bench, **limits):
    """How the operation ends under limits, once all laws are seen to hold."""
    with bench.folder() as folder:
        ended = bench.driver.run(*bench.operation.arguments(bench.inputs), at=folder, limits=limits)
        assert ended.code in (0, 1, 2), ended
        assert (folder / bench.operation.out).read_bytes() == (bench.new if ended.code == 0 else OLD), ended
        check_honest(ended)
        check_clean(folder, bench.operation.out, bench.operation.kept)
    return ended


@pytest.mark.parametrize("name", QUICK)
def test_file_size(benches, name):
    bench = benches[name]
    sizes = [0, len(bench.new) // 2, len(bench.new) - 1]
    for size in sizes:
        ended = under(bench, FSIZE=size)
        assert ended.code == 1
        assert "File too large" in ended.err
    assert under(bench, FSIZE=len(bench.new) + 8192).code == 0


@pytest.mark.parametrize("name", QUICK)
def test_open_files(benches, name):
    """From three files, the standard ones, to as many as the command needs; the driver itself has some more open."""
    codes = [under(benches[name], NOFILE=files).code for files in range(3, 36, 8)]
    assert codes[0] == 1
    assert codes[-1] == 0


def test_memory(benches, tmp_path):
    """Data of 40 MB with ever more memory: an error that says so, until there is enough."""
    large = tmp_path / "large.xr"
    er.write(er.RankingData.from_arrays([[0.5] * 100] * 100_000, [1, 0] * 50_000, group=[100] * 1000), large)
    bench, codes = benches["predict"], []
    for size in (1, 8, 24, 400):
        with bench.folder() as folder:
            ended = bench.driver.run("convert", large, "out.txt", "--force", at=folder, limits={"AS": size * MIB})
            assert ended.code in (0, 1), ended
            check_honest(ended)
            assert ended.code == 0 or "memory" in ended.err.lower(), ended
            assert (ended.code == 0) == ((folder / "out.txt").read_bytes() != OLD)
            check_clean(folder, "out.txt")
        codes.append(ended.code)
    assert (codes[0], codes[-1]) == (1, 0)


@pytest.mark.parametrize("name", QUICK)
def test_threads_that_cannot_start(benches, name):
    """The caller's own thread does all the work, to the same bytes."""
    with benches[name].folder() as folder:
        ended = benches[name].run(folder, Fault("thread", "fail", 1, errno.EAGAIN, lasts=True))
        assert ended.code == 0, ended
        assert (folder / benches[name].operation.out).read_bytes() == benches[name].new


def test_processes_that_cannot_start(benches):
    assert benches["tune"].struck(Fault("fork", "fail", 1, errno.EAGAIN, lasts=True))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one MiB; where this user may not mount one, there is none."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only a user who may mount can have a small disk")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def test_a_full_disk(benches, small_disk):
    target = small_disk / "out.xr"
    target.write_bytes(OLD)
    (small_disk / "tmp").mkdir()
    ended = benches["convert"].driver.run("generate", "out.xr", "--queries", 100, "--features", 100, "--force", at=small_disk)
    assert ended.code == 1
    assert "No space left on device" in ended.err
    assert "out.xr" in ended.err
    check_honest(ended)
    assert target.read_bytes() == OLD
    assert sorted(path.name for path in small_disk.iterdir()) == ["out.xr", "tmp"]
