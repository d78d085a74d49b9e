"""A text format of another package: a header, then one line per document with its query, grade and features, separated by tabs."""

from pathlib import Path
from typing import BinaryIO

import numpy as np

import exactrank as er
from exactrank.extend import ReadOptions, Stream, open_bytes, stream_of


class TabFormat:
    """Reader and writer of text with tabs."""

    name = "text with tabs"

    def read(self, path: Path, options: ReadOptions) -> er.RankingData:
        with open_bytes(path) as file:
            (_, _, *features), *rows = (line.decode().rstrip("\n").split("\t") for line in file)
        for number, row in enumerate(rows, 2):
            if len(row) != len(features) + 2:
                raise er.errors.DataError(
                    f"{path}:{number}: has {len(row)} columns, but the header has {len(features) + 2}; give each line a number per feature"
                )
        numbers = np.array([row[1:] for row in rows], np.float64)
        return er.RankingData.from_arrays(numbers[:, 1:], numbers[:, 0], qid=[row[0] for row in rows], feature_names=features)

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        return stream_of(self.read(path, options))

    def write(self, file: BinaryIO, stream: Stream) -> None:
        file.write("\t".join(["query", "grade", *stream.feature_names]).encode() + b"\n")
        for block in stream.blocks:
            for query, grade, features in zip(block.qid.tolist(), block.y.tolist(), block.X.tolist(), strict=True):
                file.write("\t".join([str(query), *map(repr, [grade, *features])]).encode() + b"\n")
