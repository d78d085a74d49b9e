"""Nothing here ever asks for the network: not at import, not in any command, not in a process that a command starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import exactrank
from tests.faults.shim import UNAVAILABLE, Fault, Plan, environment

pytestmark = pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE)
FORBIDDEN = Fault("network", "fail", 1, lasts=True)
COMMANDS = [
    "info {data}",
    "convert {text} a.parquet",
    "convert {text} a.csv",
    "generate a.xr --queries 5",
    "evaluate {data} --feature 1 -m nDCG@10",
    "train lambdamart {data} --out a.json --trees 2",
    "train ranknet {data} --out b.json --max-iter 1",
    "predict {model} {data} --out scores.txt",
    "fuse {data} --system 1 --system 2 --folds 2 --bootstrap 5 --plot a.svg",
    "tune ridge {data} --out c.json --trials 2 --folds 2",
    "compare {data} --methods ridge,lightgbm(trees=2) --folds 3 --out report",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offline")
    (folder / "tmp").mkdir()
    return folder


def test_commands(driver, inputs, folder):
    """The shim counts sockets other than those within the machine, and questions for names, of all processes."""
    for command in COMMANDS:
        ended = driver.run(*(word.format(**inputs) for word in command.split()), at=folder, fault=FORBIDDEN)
        assert ended.code == 0, (command, ended.err)
        assert ended.count == 0, command


def test_importing_everything(folder):
    """Every module of the package, in a process in which any question to the network is counted."""
    modules = [
        ".".join(path.relative_to(Path(exactrank.__file__).parents[1]).with_suffix("").parts)
        for path in Path(exactrank.__file__).parent.rglob("*.py")
    ]
    assert len(modules) > 100
    assert counted(folder, f"import importlib\nfor name in {modules}: importlib.import_module(name.removesuffix('.__init__'))") == 0


def test_the_shim_would_notice(folder):
    assert counted(folder, "import socket\nwith socket.socket(socket.AF_INET) as s: s.connect(('127.0.0.1', 9))") == 1
    assert counted(folder, "import socket\nsocket.getaddrinfo('localhost', 80)") == 1
    assert counted(folder, "import socket\nsocket.socketpair(socket.AF_UNIX)") == 0


def counted(folder, program):
    """How often the program asks for the network."""
    variables = environment(folder)
    plan = Plan()
    plan.arm(FORBIDDEN, str(folder))
    Path(variables["EXACTRANK_FAULTS"]).write_bytes(bytes(plan))
    subprocess.run([sys.executable, "-c", program], env=os.environ | variables, capture_output=True, check=False, timeout=120)
    return Plan.from_buffer_copy(Path(variables["EXACTRANK_FAULTS"]).read_bytes()).count
