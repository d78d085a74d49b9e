"""What a part of some data has to know of the whole."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Whole:
    """Facts about all documents and queries of the data that some data is a part of."""

    grades: tuple[float, float]  #: the least and the largest
    longest: int  #: how many documents the query with the most has
    pairs: bool = False  #: are there pairs of documents beside the grades?
    column: str | None = None  #: that the grades were taken from, where they are not the data's own
