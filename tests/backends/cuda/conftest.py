"""The GPU that kernels are tested on: an emulated one and, where there is one, that of this machine."""

import pytest

from exactrank.backends.cuda.device import cuda
from tests.backends.cuda.emulated_gpu import EmulatedGpu


def gpus():
    yield pytest.param(EmulatedGpu, id="emulated")
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy absent, or no driver, or no GPU: each has an error of its own
        yield pytest.param(None, marks=pytest.mark.skip(reason=f"no GPU: {type(error).__name__}"), id="cuda")
    else:
        yield pytest.param(cuda, id="cuda")


@pytest.fixture(params=gpus())
def gpu(request):
    return request.param()


@pytest.fixture
def on_cuda(gpu, monkeypatch):
    """`CudaBackend` means this GPU."""
    for module in ("forest", "line_search"):
        monkeypatch.setattr(f"exactrank.backends.cuda.{module}.cuda", lambda: gpu)
