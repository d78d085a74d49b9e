"""The GPU's kernels on the processor: its CUDA source compiled as C++, with blocks and threads as loops, and NumPy's arrays.

Threads of a block that work together take turns: each runs until it waits for the others.

So the arithmetic of every kernel, and all that calls them, is tested where there is no GPU.
"""

import ctypes
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from exactrank.backends.cuda.device import BLOCK, source

TOGETHER = 5  #: threads of a block that work together; kernels work for any number
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
SHIM = """
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>
#include <ucontext.h>
using namespace std;
struct Place { unsigned x; };
static Place blockIdx, blockDim, gridDim, threadIdx;
#define __global__
#define __device__
#define __shared__ static
static ucontext_t turns, waiting[64];
static vector<char> stacks(64 << 16);
static function<void()> work;
static int left_to_run;
static bool is_done[64];
#define __syncthreads() swapcontext(&waiting[threadIdx.x], &turns)
static void run_one() {
    work();
    is_done[threadIdx.x] = true;
    --left_to_run;
}
static void take_turns(int threads) {
    for (int t = 0; t < threads; ++t) {
        getcontext(&waiting[t]);
        waiting[t].uc_stack.ss_sp = &stacks[t << 16];
        waiting[t].uc_stack.ss_size = 1 << 16;
        waiting[t].uc_link = &turns;
        is_done[t] = false;
        makecontext(&waiting[t], run_one, 0);
    }
    for (left_to_run = threads; left_to_run > 0;)
        for (int t = 0; t < threads; ++t)
            if (!is_done[t]) threadIdx.x = t, swapcontext(&turns, &waiting[t]);
}
static long long shared_room[1 << 15];
static long long __double_as_longlong(double x) { long long bits; memcpy(&bits, &x, 8); return bits; }
static double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }
static double __dadd_rn(double a, double b) { return a + b; }
static double __dmul_rn(double a, double b) { return a * b; }
static int __float_as_int(float x) { int bits; memcpy(&bits, &x, 4); return bits; }
static float __int_as_float(int bits) { float x; memcpy(&x, &bits, 4); return x; }
static unsigned __funnelshift_r(unsigned low, unsigned high, int by) { return by ? low >> by | high << (32 - by) : low; }
static float __double2float_rd(double x) { const float y = (float)x; return y > x ? nextafterf(y, -INFINITY) : y; }
static float __double2float_ru(double x) { const float y = (float)x; return y < x ? nextafterf(y, INFINITY) : y; }
template <class T> static void atomicMax(T* at, T x) { *at = x > *at ? x : *at; }
template <class T> static T atomicAdd(T* at, T more) { const T was = *at; *at += more; return was; }
"""
SIGNATURE = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')


def _loop(name: str, parameters: str) -> str:
    """Functions that run a kernel, one thread after the other or the threads of a block together."""
    names = ", ".join(parameter.split()[-1].lstrip("*") for parameter in parameters.split(","))
    return f"""
extern "C" void loop_{name}(long blocks, int threads, {parameters}) {{
    blockDim.x = threads, gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {name}({names});
}}
extern "C" void together_{name}(long blocks, int threads, {parameters}) {{
    blockDim.x = threads, gridDim.x = blocks;
    work = [=] {{ {name}({names}); }};
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) take_turns(threads);
}}"""


@cache
def _library(real: str) -> ctypes.CDLL:
    assert COMPILER is not None
    kernels = source().replace("extern __shared__ index_t shared_room[];", "")
    code = f"#define REAL {real}\n" + SHIM + kernels + "".join(_loop(*found) for found in SIGNATURE.findall(kernels))
    folder = Path(tempfile.mkdtemp())
    (folder / "kernels.cpp").write_text(code)
    flags = ["-O2", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, str(folder / "kernels.cpp"), "-o", str(folder / "kernels.so")], check=True)
    library = ctypes.CDLL(str(folder / "kernels.so"))
    shutil.rmtree(folder)
    return library


class EmulatedGpu:
    """A `Device` on the processor."""

    xp = np
    out_of_memory = MemoryError

    def launch(self, kernel: str, threads: int, real: np.dtype[Any], *args: object) -> None:
        self._run(f"loop_{kernel}", -(-threads // BLOCK), BLOCK, real, args)

    def launch_blocks(self, kernel: str, blocks: int, threads: int, shared: int, real: np.dtype[Any], *args: object) -> None:
        assert shared <= 8 << 15
        self._run(f"together_{kernel}", blocks, TOGETHER, real, args)

    def host_array(self, size: int, kind: Any) -> np.ndarray:
        return np.empty(size, kind)

    def fetch(self, array: np.ndarray, target: np.ndarray) -> None:
        target[...] = array

    def _run(self, kernel: str, blocks: int, threads: int, real: np.dtype[Any], args: tuple[object, ...]) -> None:
        loop = getattr(_library({"float32": "float", "float64": "double"}[real.name]), kernel)
        loop(ctypes.c_long(blocks), ctypes.c_int(threads), *map(_passed, args))


def _passed(argument: object) -> Any:
    if argument is None:
        return ctypes.c_void_p()
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return ctypes.c_void_p(argument.ctypes.data)
    kinds: dict[type, Any] = {np.int32: ctypes.c_int32, np.int64: ctypes.c_int64, np.float64: ctypes.c_double}
    return kinds[type(argument)](argument.item())  # type: ignore[attr-defined]
