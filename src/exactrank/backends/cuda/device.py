"""The GPU, through CuPy.

The kernels are CUDA source, `*.cu`, compiled for the GPU when first used and cached by CuPy; nothing is compiled when exactrank is
installed. This is the only file that imports CuPy. Whatever has its array functions and runs the kernels can take its place: the tests run
them on the processor.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank.errors import IncompatibleError

Array = Any  #: of CuPy, or NumPy in the tests: both have the same functions, and neither is typed by the other
Kernel = Any  #: a compiled function of CuPy, which has no types
Real: TypeAlias = np.dtype[np.float32] | np.dtype[np.float64]  #: the type of scores in a kernel
N = TypeVar("N", bound=np.generic)

#: The files of kernels, each after those that it uses.
KERNELS = "lists", "measures", "lambdas", "losses", "line_search", "forces", "forest"
#: Those whose numbers have the bits of the processor: every product and every sum is rounded.
EXACT = "lists", "forces", "forest"
#: Blocks that want more memory than this have to say so before.
SHARED_MEMORY = 48 << 10
#: Threads of a block; kernels work for any number.
BLOCK = 128
NULL = np.uint64(0)
REAL = np.dtype(np.float64)  #: of kernels whose scores are always in double precision


class Device(Protocol):
    """Arrays and kernels of a GPU, or of what stands for it."""

    xp: Any  #: the module of array functions
    out_of_memory: type[Exception]  #: what it raises if its memory does not suffice

    def __hash__(self) -> int: ...

    def launch(self, kernel: str, threads: int, real: Real, *args: object) -> None:
        """Run ``kernel``, compiled for scores of type ``real``, with ``threads`` threads. An argument of None is a null pointer."""

    def launch_blocks(self, kernel: str, blocks: int, threads: int, shared: int, real: Real, *args: object) -> None:
        """Run ``kernel`` with blocks of ``threads`` threads that work together and have ``shared`` bytes of memory each."""

    def host_array(self, size: int, kind: type[N]) -> npt.NDArray[N]:
        """Return an array of the host that the device copies to quickly."""

    def fetch(self, array: Array, target: npt.NDArray[np.generic]) -> None:
        """Copy ``array`` to ``target`` on the host."""


class Cuda:
    """The current GPU."""

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError:
            raise IncompatibleError(
                "computing on the GPU needs CuPy: pip install 'exactrank[cuda]' (for CUDA 13), or cupy-cuda12x for CUDA 12"
            ) from None
        try:
            cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise IncompatibleError(f"there is no GPU that CuPy can use ({error}); compute on the processor, without a backend") from None
        self.xp = cupy
        self.out_of_memory = cupy.cuda.memory.OutOfMemoryError

    def launch(self, kernel: str, threads: int, real: Real, *args: object) -> None:
        _function(real, kernel)((-(-threads // BLOCK),), (BLOCK,), _pointers(args))

    def launch_blocks(self, kernel: str, blocks: int, threads: int, shared: int, real: Real, *args: object) -> None:
        function = _function(real, kernel)
        if shared > SHARED_MEMORY and function.max_dynamic_shared_size_bytes < shared:
            function.max_dynamic_shared_size_bytes = shared
        function((blocks,), (threads,), _pointers(args), shared_mem=shared)

    def host_array(self, size: int, kind: type[N]) -> npt.NDArray[N]:
        import cupyx

        return cupyx.empty_pinned(size, kind)  # type: ignore[no-any-return]

    def fetch(self, array: Array, target: npt.NDArray[np.generic]) -> None:
        array.get(out=target)


def _pointers(args: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(NULL if argument is None else argument for argument in args)


@contextmanager
def memory_for(documents: int, device: Device, remedy: str = "give fewer documents or features, or leave out backend") -> Iterator[None]:
    """Raise an error with the ``remedy`` if the memory of ``device`` does not suffice for that number of documents."""
    try:
        yield
    except device.out_of_memory as error:
        raise IncompatibleError(f"the GPU has too little memory for {documents:,} documents ({error}); {remedy}") from error


@cache
def cuda() -> Cuda:
    """Return the current GPU; an IncompatibleError if there is none, or no CuPy."""
    return Cuda()


def on_host(array: Array) -> Array:
    """Return an array of NumPy."""
    return array if isinstance(array, np.ndarray) else array.get()


@cache
def _function(real: Real, kernel: str) -> Kernel:
    """Return the kernel for scores of that type."""
    is_exact = f"void {kernel}(" in source(EXACT[1:])
    return _module(real, is_exact).get_function(kernel)


@cache
def _module(real: Real, is_exact: bool) -> Kernel:
    import cupy

    arithmetic = "--fmad=false" if is_exact else "--use_fast_math"
    options = ("-std=c++17", f"-DREAL={ {'float32': 'float', 'float64': 'double'}[real.name] }", arithmetic)
    names = EXACT if is_exact else tuple(name for name in KERNELS if name not in EXACT[1:])
    return cupy.RawModule(code=source(names), options=options)


def source(names: tuple[str, ...] = KERNELS) -> str:
    """Return the kernels of these files."""
    return "\n".join(files("exactrank.backends.cuda").joinpath(f"{name}.cu").read_text("utf-8") for name in names)
