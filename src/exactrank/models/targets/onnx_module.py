"""Modules of the user's own as nodes of ONNX: PyTorch writes the graph, here it is made a part of a larger one."""

import warnings
from io import BytesIO
from typing import Any

from exactrank.data.frame import library
from exactrank.errors import IncompatibleError
from exactrank.models.deep import Net, trained_module


def module_graph(net: Net, opset: int, prefix: str, z: str) -> Any:
    """The graph of the module of ``net``: its input is called ``z``, all other names begin with ``prefix``."""
    torch, onnx = library("torch", "ONNX files of modules", "torch"), library("onnx", "ONNX files", "onnx")
    module, written = trained_module(net), BytesIO()
    # Two documents, since one would do for an axis of any length. The exporter by tracing writes the old operators that all runtimes have.
    given, axes = torch.zeros(2, net.n_features), {"z": {0: "documents"}}
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # of its age, and of what it leaves constant in shapes
            torch.onnx.export(
                module, (given,), written, input_names=["z"], output_names=["s"], dynamic_axes=axes, opset_version=opset, dynamo=False
            )
    except RuntimeError as error:
        raise IncompatibleError(
            f"PyTorch cannot write {net.of} as ONNX: {str(error).splitlines()[0]}; use operators that torch.onnx.export knows"
        ) from error
    graph = onnx.compose.add_prefix_graph(onnx.load_from_string(written.getvalue()).graph, prefix)
    for node in graph.node:
        node.input[:] = [z if name == f"{prefix}z" else name for name in node.input]
    return graph
