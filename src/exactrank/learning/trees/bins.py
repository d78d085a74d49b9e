"""Bins for the values of features; the same for any order of the documents, any cut into files and any number of threads.

Cuts come from a sample of the documents, which a hash of their features draws (`src/native/trees/bins.hpp`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank._support.arrays import Matrix
from exactrank.data.dataset import Answerer, EachPart, Part

#: Documents in the sample, about; as many as this per bin if there are many bins.
SAMPLE, SAMPLE_PER_BIN = 1 << 16, 4
NUMBER, NUMBER_OR_MISSING, CATEGORY = 0, 1, 2  #: kinds of features
MOST_CATEGORIES = 1 << 20  #: above the numbers of all categories: a set of them takes 128 KiB of a model at most
_ALL = (1 << 64) - 1
#: Of an eighth of a sample, about 8,000 documents, fewer distinct ones than this are too few: the hash draws all equal documents, or none.
DISTINCT = 512


@dataclass(frozen=True, eq=False)
class Layout:
    """The cuts of feature f are ``cuts[start[f]:start[f + 1]]``; those of a category are the categories that have a bin."""

    start: npt.NDArray[np.int64]
    cuts: npt.NDArray[np.float64]
    kinds: npt.NDArray[np.uint8]  #: of each feature

    @cached_property
    def native(self) -> _core.BinLayout:
        """The layout as the kernels take it."""
        return _core.BinLayout.of_cuts(self.start, self.cuts, self.kinds)

    @cached_property
    def key(self) -> str:
        """A hash that distinguishes it from other layouts."""
        return xxh3_128_hexdigest(self.start.tobytes() + self.cuts.tobytes() + self.kinds.tobytes())

    @cached_property
    def is_used(self) -> npt.NDArray[np.bool_]:
        """A mask of the features with more than one bin."""
        return np.asarray(np.diff(self.start) + (self.kinds != NUMBER) > 0)

    def __getstate__(self) -> dict[str, object]:
        """Return what travels: the native layout is made again."""
        return {name: vars(self)[name] for name in ("start", "cuts", "kinds")}

    def with_missing(self, X: Matrix, threads: int) -> "Layout":
        """Return the same bins, with one for missing values of every feature that ``X`` lacks somewhere: a tree has a side for them."""
        _, _, missing, _ = _core.summarize_columns(X, threads)
        kinds = np.where((missing > 0) & (self.kinds == NUMBER), NUMBER_OR_MISSING, self.kinds).astype(np.uint8)
        return self if np.array_equal(kinds, self.kinds) else replace(self, kinds=kinds)

    @classmethod
    def of(cls, data: Answerer, documents: int, bins: int, categorical: Sequence[int], threads: int) -> "Layout":
        """Return the layout of at most ``bins`` bins per feature, beside one for missing values."""
        size = max(SAMPLE, SAMPLE_PER_BIN * bins)
        limit = _ALL if documents <= size else int(2.0**64 * (size / documents))
        answers = data.ask(EachPart(Sampling(limit, threads)))
        has_missing = np.any([missing for missing, _ in answers], axis=0)
        kinds = np.where(has_missing, NUMBER_OR_MISSING, NUMBER).astype(np.uint8)
        kinds[list(categorical)] = CATEGORY
        sample = answers[0][1] if len(answers) == 1 else np.concatenate([rows for _, rows in answers])
        if limit < _ALL and _are_alike(sample, limit, threads):
            sample = _repeat_rows(data.ask(EachPart(distinct_rows)), size / documents)
        native = _core.BinLayout.of_sample(sample, min(bins, 65_534), kinds, threads)
        return cls(native.start, native.cuts, kinds)


@dataclass(frozen=True)
class Sampling:
    """Asks for a mask of the features with missing values in a part, and for its documents that are in the sample."""

    limit: int  #: documents are in the sample whose hash is at most this
    threads: int

    def __call__(self, part: Part) -> tuple[npt.NDArray[np.bool_], Matrix]:
        X = part.data.X
        _, _, missing, _ = _core.summarize_columns(X, self.threads)
        if self.limit == _ALL and part.is_complete:
            return missing > 0, X
        return missing > 0, np.ascontiguousarray(X[_core.sampled_rows(X, self.limit, self.threads)])


def distinct_rows(part: Part) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Return the distinct documents of ``part``, and the number of copies of each."""
    rows, counts = np.unique(part.data.X.view(np.uint32), axis=0, return_counts=True)
    return rows.view(np.float32), counts.astype(np.int64)


def _are_alike(sample: Matrix, limit: int, threads: int) -> bool:
    """Return whether there are so few distinct documents that values may be missing from the sample."""
    rows = sample[_core.sampled_rows(sample, limit // 8, threads)]
    return len(np.unique(rows.view(np.uint32), axis=0)) < DISTINCT


def _repeat_rows(answers: Sequence[tuple[Matrix, npt.NDArray[np.int64]]], share: float) -> Matrix:
    """Return each distinct document of all parts as often as its ``share`` of the sample, at least once."""
    rows, inverse = np.unique(np.concatenate([rows for rows, _ in answers]).view(np.uint32), axis=0, return_inverse=True)
    counts = np.zeros(len(rows), np.int64)
    np.add.at(counts, inverse.ravel(), np.concatenate([counts for _, counts in answers]))
    return np.ascontiguousarray(np.repeat(rows, np.ceil(counts * share).astype(np.int64), axis=0).view(np.float32))
