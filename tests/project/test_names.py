"""Every class of the package has a name of its own, so that a name in a message, a stack or a search means one thing."""

import ast
from collections import defaultdict

from tests import ROOT

PACKAGE = ROOT / "src" / "exactrank"


def repeated_names(package):
    """The places of every class name that is defined more than once."""
    places = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(package)}:{node.lineno}")
    return {name: where for name, where in places.items() if len(where) > 1}


def test_every_class_name_is_defined_once():
    assert repeated_names(PACKAGE) == {}
