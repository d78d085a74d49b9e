"""What a file format is: how to read it whole, as a stream, and how to write a stream to it.

One file per format; `formats.py` lists them and picks one by the file's name.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from exactrank.data.formats.stream import Stream
from exactrank.data.ranking_data import RankingData


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what; ``features=None`` takes every column of numbers or categories that has no other part."""

    query: str = "query_id"
    doc: str = "doc_id"
    relevance: str = "relevance"
    sample_weight: str = "sample_weight"
    query_weight: str = "query_weight"
    features: tuple[str, ...] | None = None
    graded: bool = True  #: whether there must be grades; if not, all are 0 where there are none
    keep: tuple[str, ...] = ()  #: numbers that are no features, for measures such as ``revenue@10``


@dataclass(frozen=True)
class ReadOptions:
    """How to read; each format uses those that concern it."""

    keep_missing: bool = False  #: text: keep nan, inf and NULL as missing values
    n_features: int | None = None  #: text: the number of features, where the file may lack the last ones
    first_feature: int | None = None  #: text: the id of the first feature, 0 or 1
    columns: Columns = field(default_factory=Columns)  #: tables
    verify: bool | slice = True  #: cache: check the features and strings of all queries, of some, or of none; all else always
    threads: int | None = None


class Format(Protocol):
    """A way to keep ranking data in a file."""

    name: str

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """All of the file."""
        ...

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """The file block by block."""
        ...

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Write all of ``stream``, block by block."""
        ...
