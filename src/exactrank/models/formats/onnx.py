"""ONNX files that exactrank exported: beside the graph, their metadata hold the model that the graph was made from.

The graph is for other programs and is not translated back. A checksum ties the two together: a graph that was changed since, and one that
another library wrote, are refused.
"""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import xxhash

from exactrank.data.frame import library
from exactrank.errors import DataError
from exactrank.models.formats.content import ALWAYS, DAMAGED, PER_BYTE, Content, Reader
from exactrank.models.formats.own import MODEL
from exactrank.models.model import Model


def properties(model: Model, graph: Any) -> dict[str, str]:
    """Return the metadata that make ``model`` readable from a file with ``graph``: its own file, packed, and the checksum of the graph."""
    return {"model": base64.b64encode(zlib.compress(model.to_bytes())).decode(), "graph": _checksum(graph)}


def _checksum(graph: Any) -> str:
    return xxhash.xxh3_128_hexdigest(graph.SerializeToString(deterministic=True))


def _read(content: Content) -> Model | Any:
    onnx = library("onnx", "ONNX files", "onnx")
    try:
        file = onnx.load_from_string(content.data)
    except library("google.protobuf.message", "ONNX files", "onnx").DecodeError:
        raise DataError(f"it is not an ONNX file, or an incomplete one; {DAMAGED}") from None
    known = {entry.key: entry.value for entry in file.metadata_props if isinstance(entry.value, str)}  # bytes are damaged text
    if not {"model", "graph"} <= set(known):
        raise DataError("only graphs that exactrank exported can be read; load the model that the graph was made from")
    if known["graph"] != _checksum(file.graph):
        raise DataError("the graph was changed after exactrank exported it; load the model that it was made from")
    return MODEL.read(replace(content, data=_unpacked(known, max(ALWAYS, PER_BYTE * len(content.data)))))


def _unpacked(known: Mapping[str, str], most: int) -> bytes:
    """The model's file, of at most ``most`` bytes."""
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(base64.b64decode(known["model"], validate=True), most)
    except (ValueError, zlib.error):
        raise DataError(f"the metadata hold no packed model; {DAMAGED}") from None
    if not unpacker.eof:
        raise DataError(f"the model in the metadata is incomplete, or larger than {most:,} bytes; {DAMAGED}")
    return found


READER = Reader(lambda content: content.data[:1] == b"\x08", _read)
