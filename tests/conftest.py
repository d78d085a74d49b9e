"""Settings for all tests, and what several files share.

Each law is checked on thirty examples, the same on every machine and in every run, without deadlines on a busy machine.
``--hypothesis-profile thorough`` draws a thousand new ones.
"""

import os
import signal
from importlib.util import find_spec

import pytest
from hypothesis import settings

from tests.driver import Driver
from tests.faults.operations import make_inputs

settings.register_profile("exactrank", deadline=None, print_blob=True, max_examples=30, derandomize=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("exactrank")

# Whoever starts the tests in the background, or by nohup, has these ignored; tests of Ctrl-C and of hanging up send them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Models of Hugging Face are made here; nothing is fetched or asked.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def pytest_collection_modifyitems(items):
    """The ranker of PyTorch is tested where that is installed."""
    if find_spec("torch") is None:
        for item in items:
            given = getattr(getattr(item, "callspec", None), "params", {}).values()
            asks = any(isinstance(each, str) and each == "torch" for each in given)
            if asks and item.path.stem not in ("test_docs", "test_cli_help"):
                item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A process that runs commands with faults and under limits."""
    with Driver(tmp_path_factory.mktemp("driver")) as started:
        yield started


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Small files for those commands, by what they are."""
    return make_inputs(tmp_path_factory.mktemp("inputs"))
