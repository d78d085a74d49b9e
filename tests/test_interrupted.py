"""Ctrl-C ends native work soon, and a signal that raises nothing changes nothing: the cases are in `interrupted`."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.interrupted import CASES, RANKERS

ROOT = Path(__file__).parents[1]
SECONDS = 5.0  #: generous: what is measured is a tenth of a second


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.interrupted", *arguments]


@pytest.fixture(scope="module")
def ends() -> dict[str, Any]:
    """How each case ended; those at and after one that does not end are missing."""
    child = subprocess.Popen(program(*CASES), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = child.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
    found = {line["name"]: line for line in map(json.loads, out.splitlines())}
    return {name: found.get(name, err[-2000:]) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_signal_ends_native_work(name: str, ends: dict[str, Any]) -> None:
    end = ends[name]
    assert end["ended"] in (("KeyboardInterrupt", "interrupted") if name in RANKERS else ("KeyboardInterrupt",))
    assert 0 <= end["after"] < SECONDS


def test_a_handler_that_raises_nothing_changes_nothing() -> None:
    child = subprocess.run(program("calm"), cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(child.stdout)
    assert found["same"]
    assert found["during"] > 1
    assert found["in the main thread alone"]


def test_ctrl_c_reaches_a_process_within_a_kernel() -> None:
    script = (
        "import signal\n"
        "from tests.interrupted import CASES\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('at work', flush=True)\n"
        "CASES['lambdas of AP']()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=SECONDS)
    assert err.rstrip().endswith("KeyboardInterrupt")
