"""Output files are whole or absent, even when the process is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

import exactrank as er
from exactrank._support.files import whole_file


def test_a_failure_keeps_the_old_file(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), whole_file(path, force=True) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.bin"]


def test_existing_files_are_refused_without_force(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with pytest.raises(er.errors.OutputExistsError, match=r"out\.bin already exists.*--force"), whole_file(path):
        pytest.fail("the block must not run")
    with whole_file(path, force=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_outputs_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "out.bin") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "out.bin").stat().st_mode & 0o777 == 0o640


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "out.bin"
    with pytest.raises(er.errors.OutputExistsError), whole_file(path) as file:
        file.write(b"mine")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"


def test_a_killed_process_leaves_the_old_file(tmp_path):
    """A real process, killed while it writes over an existing cache."""
    target = tmp_path / "data.xr"
    target.write_bytes(b"old")
    command = [sys.executable, "-c", "from exactrank.cli import main; main()", "generate", str(target), "--queries", "1000000", "--force"]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while not any(p.stat().st_size > 1 << 20 for p in tmp_path.glob(".data.xr.*.part")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert target.read_bytes() == b"old"
