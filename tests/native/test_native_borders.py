"""No call of the native core, however wrong its arrays, does worse than raise: the table is in `native_borders`."""

import json
import subprocess
import sys

import numpy as np
import pytest

from exactrank import _core
from tests import ROOT
from tests.native.native_borders import ABSTRACT, CALLS, entry_points


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """By entry point, what went wrong there; those at and after a crash are missing."""
    command, root = [sys.executable, "-m", "tests.native.native_borders"], ROOT
    child = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, f"{lines[-1:]}: {child.stderr[-3000:]}"
    return {line["name"]: line["problems"] for line in lines if "name" in line}


def test_every_entry_point_has_a_row() -> None:
    assert entry_points() == set(CALLS)


@pytest.mark.parametrize("name", sorted(ABSTRACT))
def test_what_is_abstract_cannot_be_made(name: str) -> None:
    with pytest.raises(TypeError, match="no constructor"):
        getattr(_core, name.removesuffix(".__init__"))()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_wrong_calls_are_refused_with_words(name: str, found: dict[str, list[str]]) -> None:
    assert found[name] == []


#: Arrays that what is made keeps a pointer into: a converted copy would be gone after the call.
KEPT = {
    "BoundMeasure.__init__": ("grades", "indptr", "tie_key", "weight"),
    "LambdaRule.__init__": ("grades", "tie_key"),
    "StructuredLoss.__init__": ("targets",),
    "approx_ndcg": ("worths",),
    "finite_difference": ("grades", "tie_key"),
    "listnet": ("targets",),
    "positional_separation": ("worths",),
    "rank_cosine": ("targets",),
    "smooth_measure": ("worths",),
    "squared_error": ("grades", "parts"),
}


@pytest.mark.parametrize(("name", "argument"), [(name, one) for name, arguments in KEPT.items() for one in arguments])
def test_what_is_kept_is_never_a_converted_copy(name: str, argument: str) -> None:
    function = getattr(_core, name.removesuffix(".__init__"))
    given = CALLS[name]()
    function(**given)
    for other in (given[argument].astype(np.float32), np.repeat(given[argument], 2)[::2]):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            function(**given | {argument: other})
