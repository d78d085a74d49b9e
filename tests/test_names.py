"""Every class of the package has a name of its own, so that a name in a message, a stack or a search means one thing."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "exactrank"
#: Names that still stand for several classes, with the module whose class is to be renamed, and its new name. It only gets shorter.
STILL_REPEATED = {
    "Forces": ("objectives/parametric.py", "ForceProblem"),
    "History": ("trees/part.py", "TreeHistory"),
    "Path": ("objectives/partitioned_profile.py", "ProfilePath"),
    "Question": ("trees/part.py", "TreeQuestion"),
    "State": ("objectives/partitioned_search.py", "PartSearchState"),
    "_Sums": ("objectives/pair_exponential.py", "_PairSums"),
}


def repeated_names(package):
    """The places of every class name that is defined more than once."""
    places = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(package)}:{node.lineno}")
    return {name: where for name, where in places.items() if len(where) > 1}


def test_every_class_name_is_defined_once():
    """A name that is done must leave the list, so that it cannot come back."""
    repeated = repeated_names(PACKAGE)
    assert {name: where for name, where in repeated.items() if name not in STILL_REPEATED} == {}
    assert STILL_REPEATED.keys() - repeated.keys() == set()


def test_the_new_names_are_free():
    defined = {
        node.name for path in PACKAGE.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    }
    assert not defined & {name for _, name in STILL_REPEATED.values()}


def test_a_repeated_name_is_found(tmp_path):
    (tmp_path / "a.py").write_text("class Tree: ...\nclass Leaf: ...\n")
    (tmp_path / "b.py").write_text("def grow():\n    class Tree: ...\n")
    assert repeated_names(tmp_path) == {"Tree": ["a.py:1", "b.py:2"]}
