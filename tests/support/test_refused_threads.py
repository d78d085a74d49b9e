"""Where the system refuses threads, native work goes on with those that there are, to the same bits."""

import hashlib
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exactrank import _core
from tests import ROOT

STACK = 64 << 20  #: bytes of addresses of each thread
#: pthread_create fails once as many threads were started as the environment allows.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    static int started;
    const char *allowed = getenv("THREADS_ALLOWED");
    if (allowed && started++ >= atoi(allowed)) return EAGAIN;
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, start, argument);
}
"""


def digest(threads: int) -> str:
    """A hash of what evaluation, forces, scores and parsing give."""
    rng = np.random.default_rng(0)
    n, queries = 100_000, 100
    X, y, scores = rng.standard_normal((n, 5)).astype(np.float32), rng.integers(0, 3, n).astype(float), rng.standard_normal(n)
    indptr = np.arange(0, n + 1, n // queries)
    kernel = _core.positional(_core.Gain("exponential"), 1 / np.log2(np.arange(2, 12)), 10, "ideal", False, 0.0)
    forces = _core.lambdas(_core.LambdaRule(kernel, y, y, "logistic", 1.0, 100, 100, 0.0))
    parser = _core.LetorParser(False, True, -1, -1, 0, threads)
    text = "".join(f"{int(grade)} qid:{row // 9} 1:{row}\n" for row, grade in enumerate(y[:50_000]))
    parser.feed(np.frombuffer(text.encode(), np.uint8))
    results = [
        *_core.evaluate(scores, indptr, [(kernel, y, None, False)], threads),
        *_core.answers(forces, scores, indptr, np.ones(queries), True, True, threads),
        _core.linear_scores(X, np.ones(5), threads),
        parser.take()[0],
    ]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in results)).hexdigest()


def child(script: str, **environment: str) -> str:
    """What a process prints."""
    lines = f"import os, resource\nfrom tests.support.test_refused_threads import digest\n{script}\nprint(digest(8))"
    result = subprocess.run(
        [sys.executable, "-c", lines],
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK,) * 2),
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.strip()


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("a C compiler on Linux is needed to make a library that refuses threads")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "refuse.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "refuse.so", folder / "refuse.c", "-ldl"], check=True)
    return folder / "refuse.so"


@pytest.mark.parametrize("allowed", [0, 1, 6])
def test_a_thread_that_cannot_start_is_done_without(allowed: int, shim: Path) -> None:
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(shim)]))
    assert child(f"os.environ['THREADS_ALLOWED'] = '{allowed}'", LD_PRELOAD=preload) == digest(1)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are those of Linux")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer reserves more than any limit")
def test_a_limit_of_memory_leaves_the_threads_that_fit() -> None:
    """Two helpers of seven fit; half a stack is left for the work."""
    limit = (
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        f"room = pages * resource.getpagesize() + {5 * STACK // 2}\n"
        "resource.setrlimit(resource.RLIMIT_AS, (room, room))"
    )
    assert child(limit, MALLOC_ARENA_MAX="1") == digest(1)  # of which each thread would reserve some


def test_too_little_memory_is_an_error_with_words() -> None:
    wide = np.empty((1, 0), np.float32)
    rows = np.lib.stride_tricks.as_strided(wide, (2**50, 0), (0, 4))
    with pytest.raises(MemoryError, match="not enough memory"):
        _core.linear_scores(rows, np.empty(0), 1)
