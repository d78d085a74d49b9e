"""Where arrays lie and kernels run: a GPU, through CuPy.

`kernels.cu` is CUDA source, compiled for the GPU at hand when first used and kept by CuPy; nothing is compiled when exactrank is
installed. This is the only file that knows CuPy. Whatever has its array functions and runs the kernels can take its place: the tests run
them on the processor.
"""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np

from exactrank.errors import IncompatibleError

Array = Any  #: of CuPy, or NumPy in the tests: both have the same functions, and neither is typed by the other

#: Threads of a block; kernels work for any number.
BLOCK = 128


class Device(Protocol):
    """Arrays and kernels of one place."""

    xp: Any  #: the module of array functions

    def __hash__(self) -> int: ...

    def launch(self, kernel: str, threads: int, real: np.dtype[Any], *args: object) -> None:
        """Run ``kernel``, compiled for scores of type ``real``, with ``threads`` threads. An argument of None is a null pointer."""

    def launch_blocks(self, kernel: str, blocks: int, threads: int, shared: int, *args: object) -> None:
        """Run ``kernel``, whose blocks of ``threads`` threads work together, with ``shared`` bytes of shared memory per block."""


class Cuda:
    """The current GPU."""

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError:
            raise IncompatibleError(
                "computing on the GPU needs CuPy: pip install 'exactrank[cuda]' (for CUDA 13), or cupy-cuda12x for CUDA 12"
            ) from None
        self.xp = cupy

    def launch(self, kernel: str, threads: int, real: np.dtype[Any], *args: object) -> None:
        _compiled(real.name)(kernel)((-(-threads // BLOCK),), (BLOCK,), _pointers(args))

    def launch_blocks(self, kernel: str, blocks: int, threads: int, shared: int, *args: object) -> None:
        _compiled("float64")(kernel)((blocks,), (threads,), _pointers(args), shared_mem=shared)


def _pointers(args: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(np.uint64(0) if argument is None else argument for argument in args)


@cache
def cuda() -> Cuda:
    """The current GPU; an IncompatibleError where CuPy is not installed."""
    return Cuda()


@cache
def _compiled(real: str) -> Callable[[str], Any]:
    """The kernels for scores of that type, by name."""
    import cupy

    options = ("-std=c++17", f"-DREAL={ {'float32': 'float', 'float64': 'double'}[real] }", "--use_fast_math")
    module = cupy.RawModule(code=source(), options=options)
    return cache(module.get_function)


def source() -> str:
    """The kernels."""
    return files("exactrank.gpu").joinpath("kernels.cu").read_text("utf-8")
