"""Ranking data: the immutable `RankingData`, data in several files, folds and pairs, and one file per format in `formats`."""

from typing import TYPE_CHECKING

from exactrank._support.registry import lazy_getattr

if TYPE_CHECKING:
    from exactrank.data.folds import read_parts as read_parts
    from exactrank.data.formats.base import Columns as Columns
    from exactrank.data.shards import Shards as Shards

#: In which module each public name is that does not stand at the top.
PUBLIC = {"Columns": "formats.base", "Shards": "shards", "read_parts": "folds"}
__getattr__ = lazy_getattr(__name__, PUBLIC)
