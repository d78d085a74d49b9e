"""The examples in docstrings, of the package as it is installed."""

import doctest
import importlib
import pkgutil

import pytest

import exactrank

MODULES = [m.name for m in pkgutil.walk_packages(exactrank.__path__, "exactrank.") if m.name != "exactrank._core"]
TORCH = "exactrank.torch"


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name.startswith(TORCH):
        pytest.importorskip("torch", reason="needs PyTorch: pip install 'exactrank[torch]'")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(bool(t.examples) for name in MODULES if not name.startswith(TORCH) for t in finder.find(importlib.import_module(name))) > 10
