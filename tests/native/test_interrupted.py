"""Ctrl-C ends native work soon, and a signal that raises nothing changes nothing: the cases are in `interrupted`."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests import ROOT
from tests.native.interrupted import CASES, RANKERS

SECONDS = 5.0  #: of processors, which no other process takes; generous: what is measured is a twentieth of a second


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.native.interrupted", *arguments]


@pytest.fixture(scope="module")
def ends() -> dict[str, Any]:
    """How each case ended; those at and after one that does not end are missing."""
    child = subprocess.run(program(*CASES), cwd=ROOT, capture_output=True, text=True, check=False)
    ends = {line["name"]: line for line in map(json.loads, child.stdout.splitlines())}
    return {name: ends.get(name, child.stderr[-2000:]) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_signal_ends_native_work(name: str, ends: dict[str, Any]) -> None:
    end = ends[name]
    assert isinstance(end, dict), end
    assert end["ended"] in (("KeyboardInterrupt", "interrupted") if name in RANKERS else ("KeyboardInterrupt",))
    assert 0 <= end["after"] < SECONDS


def test_a_handler_that_raises_nothing_changes_nothing() -> None:
    child = subprocess.run(program("calm"), cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(child.stdout) == {"same": True, "in the main thread alone": True}


def test_ctrl_c_reaches_a_process_within_a_kernel() -> None:
    arguments = program("within a call", "lambdas of AP")
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "at work\n"
        child.send_signal(signal.SIGINT)
        _, err = child.communicate()
    assert err.rstrip().endswith("KeyboardInterrupt")
