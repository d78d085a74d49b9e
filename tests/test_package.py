"""The package itself: public names, whatever was imported before."""

import subprocess
import sys

import pytest

import exactrank as xr


@pytest.mark.parametrize("name", ["compare", "fuse"])
@pytest.mark.parametrize("first", ["", "import exactrank.{0}.{0}", "from exactrank.{0} import {0}", "import exactrank.cli.{0}"])
def test_a_function_with_the_name_of_a_package_is_the_function_in_any_order(name, first):
    program = f"{first.format(name)}\nimport exactrank as xr\nassert xr.{name}.__module__ == 'exactrank.{name}.{name}', xr.{name}"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names_are_what_they_say():
    assert [name for name in xr.__all__ if getattr(xr, name).__name__ != name] == []
    with pytest.raises(AttributeError, match="no attribute 'workbench'"):
        _ = xr.workbench
