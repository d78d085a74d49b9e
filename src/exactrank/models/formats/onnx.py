"""ONNX files that exactrank exported: beside the graph, their metadata hold the model that the graph was made from.

The graph is for other programs and is not translated back. A checksum ties the two together: a graph that was changed since, and one that
another library wrote, are refused.
"""

import base64
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import xxhash

from exactrank._support.libraries import library
from exactrank.errors import DataError
from exactrank.models.formats.content import ALWAYS, DAMAGED, PER_BYTE, Content, Loaded, Reader
from exactrank.models.formats.own import MODEL
from exactrank.models.model import Model

if TYPE_CHECKING:
    from onnx import GraphProto


def properties(model: Model, graph: "GraphProto") -> dict[str, str]:
    """Return the metadata that make ``model`` readable from a file with ``graph``: its own file, packed, and the checksum of the graph."""
    return {"model": base64.b64encode(zlib.compress(model.to_bytes())).decode(), "graph": _checksum(graph)}


def _checksum(graph: "GraphProto") -> str:
    return xxhash.xxh3_128_hexdigest(graph.SerializeToString(deterministic=True))


def _read(content: Content) -> Loaded:
    onnx = library("onnx", "ONNX files", "onnx")
    try:
        file = onnx.load_from_string(content.data)
    except library("google.protobuf.message", "ONNX files", "onnx").DecodeError:
        raise DataError(f"it is not an ONNX file, or an incomplete one; {DAMAGED}") from None
    metadata = {entry.key: entry.value for entry in file.metadata_props if isinstance(entry.value, str)}  # bytes are damaged text
    if not {"model", "graph"} <= set(metadata):
        raise DataError("only graphs that exactrank exported can be read; load the model that the graph was made from")
    if metadata["graph"] != _checksum(file.graph):
        raise DataError("the graph was changed after exactrank exported it; load the model that it was made from")
    return MODEL.read(replace(content, data=_unpack(metadata["model"], max(ALWAYS, PER_BYTE * len(content.data)))))


def _unpack(text: str, limit: int) -> bytes:
    """Return the model's file, of at most ``limit`` bytes."""
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(base64.b64decode(text, validate=True), limit)
    except (ValueError, zlib.error):
        raise DataError(f"the metadata hold no packed model; {DAMAGED}") from None
    if not unpacker.eof:
        raise DataError(f"the model in the metadata is incomplete, or larger than {limit:,} bytes; {DAMAGED}")
    return content


READER = Reader(lambda content: content.data[:1] == b"\x08", _read)
