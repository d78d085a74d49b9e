"""How much of the package a fit visits: distinct functions and files, and the lines of Python in all.

    python benchmarks/trace.py

A function counts once, however often it is called, in this process, its threads and the processes that it starts. Comprehensions,
lambdas, generated methods and the bodies of modules and classes do not count, nor does what runs only because a module is imported.
So the numbers say how much there is to follow for a reader; they depend neither on the size of the data nor on earlier imports.
"""

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

import exactrank
from exactrank import DirectRank, LambdaMART, LambdaRank, RankingData, compare

PACKAGE = Path(exactrank.__file__).parent
#: The environment variable that names the file to which every process appends the functions that it visits.
VISITED = "EXACTRANK_VISITED"
#: What Python runs first in each process that finds it in a folder of PYTHONPATH.
SITECUSTOMIZE = f"import runpy; runpy.run_path({__file__!r}, run_name='watched')"


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(f"{PACKAGE}{os.sep}")


def is_function(code: CodeType) -> bool:
    return is_ours(code) and bool(code.co_flags & CO_OPTIMIZED) and not code.co_name.startswith("<")


def is_import(frame: FrameType | None) -> bool:
    """Return whether the body of one of our modules is among the callers."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and is_ours(frame.f_code):
            return True
        frame = frame.f_back
    return False


def watch() -> None:
    """From now on, append each function of the package that is called to the file; forked processes go on with it."""
    reported = set()
    record = os.open(os.environ[VISITED], os.O_WRONLY | os.O_APPEND)

    def called(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code not in reported and is_function(code) and not is_import(frame):
            reported.add(code)
            os.write(record, f"{code.co_filename}:{code.co_firstlineno}\n".encode())

    threading.setprofile(called)
    sys.setprofile(called)


def visited(work: Callable[[Path], object]) -> tuple[int, int]:
    """Return how many functions and files ``work`` visits, which gets a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "visited").touch()
        (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
        os.environ |= {VISITED: str(folder / "visited"), "PYTHONPATH": os.pathsep.join([name, *sys.path[1:]])}
        watch()
        try:
            work(folder)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        functions = set((folder / "visited").read_text().splitlines())
    return len(functions), len({function.rpartition(":")[0] for function in functions})


def drawn(queries: int, documents: int = 20, features: int = 10) -> RankingData:
    X = np.random.default_rng(queries).standard_normal((queries * documents, features))
    return RankingData.from_arrays(X, np.digitize(X.sum(axis=1), [0, 3, 6]), qid=np.repeat(np.arange(queries), documents))


def main() -> None:
    train, valid = drawn(200), drawn(100)
    works = {
        "DirectRank": lambda folder: DirectRank().fit(train, valid=valid),
        "LambdaMART": lambda folder: LambdaMART(trees=10, bags=0).fit(train, valid=valid),
        "LambdaRank": lambda folder: LambdaRank().fit(train, valid=valid),
        "compare": lambda folder: compare(train, ["directrank", "lambdamart(trees=10, bags=0)", "lambdarank"], out=folder / "report"),
    }
    print(f"{'':12}{'functions':>10}{'files':>8}")
    for name, work in works.items():
        functions, files = visited(work)
        print(f"{name:12}{functions:10}{files:8}", flush=True)
    lines = sum(path.read_bytes().count(b"\n") for path in PACKAGE.rglob("*.py"))
    print(f"{lines:,} lines of Python in {PACKAGE.name}")


if __name__ == "__main__":
    main()
elif __name__ == "watched":
    watch()
