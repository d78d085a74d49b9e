"""Count what makes the package hard to read, and refuse to let it grow.

    python benchmarks/counts.py

A limit is the number of today, so that it can only fall: whoever lowers a number lowers its limit. Only a new feature may add lines and
files, its own. `make check` runs this.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "exactrank"
#: Classes that say where documents lie; only `data` and `backends` may ask which of them a dataset is.
LOCATIONS = re.compile(r"isinstance\([^\n]*\b(?:ShardedData|Dataset|Part|LocalBackend|Partition)\b")
LIMITS = {
    "lines of Python": 55_690,
    "files": 371,
    "signatures with Any": 71,
    "casts": 3,
    "tests of where a dataset lies": 0,
    "repeated class names": 0,
    "lines of Ranker": 240,
    "longest method of Ranker": 12,
}


def count() -> dict[str, int]:
    """Return each of the numbers that have a limit."""
    texts = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    nodes = [node for text in texts.values() for node in ast.walk(ast.parse(text))]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    ranker = next(node for node in classes if node.name == "Ranker")
    elsewhere = [text for path, text in texts.items() if path.relative_to(PACKAGE).parts[0] not in ("data", "backends")]
    return {
        "lines of Python": sum(text.count("\n") for text in texts.values()),
        "files": len(texts),
        "signatures with Any": sum(has_any(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)),
        "casts": sum(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast" for node in nodes),
        "tests of where a dataset lies": sum(len(LOCATIONS.findall(text)) for text in elsewhere),
        "repeated class names": sum(number > 1 for number in Counter(node.name for node in classes).values()),
        "lines of Ranker": length(ranker),
        "longest method of Ranker": max(body_length(node) for node in ranker.body if isinstance(node, ast.FunctionDef)),
    }


def has_any(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether an annotation of the function's arguments or of its result contains `Any`."""
    return any(isinstance(node, ast.Name) and node.id == "Any" for annotation in annotations(function) for node in ast.walk(annotation))


def annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.annotation is not None:
            yield argument.annotation
    if function.returns is not None:
        yield function.returns


def length(node: ast.ClassDef | ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def body_length(function: ast.FunctionDef) -> int:
    """Return the lines of a function without its signature and its docstring."""
    statements = function.body[1:] if ast.get_docstring(function) and len(function.body) > 1 else function.body
    return (function.end_lineno or 0) - statements[0].lineno + 1


def main() -> int:
    """Print the numbers beside their limits; 1 if one is exceeded."""
    numbers = count()
    for name, number in numbers.items():
        remark = f"  more than {LIMITS[name]:,}" if number > LIMITS[name] else f"  lower its limit, {LIMITS[name]:,}"
        print(f"{name:32}{number:8,}{remark if number != LIMITS[name] else ''}")
    return int(any(number > LIMITS[name] for name, number in numbers.items()))


if __name__ == "__main__":
    sys.exit(main())
