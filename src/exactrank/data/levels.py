"""Categories: text in the place of numbers, kept in X as codes, with the levels that they stand for.

    x_ij = k  <=>  the text of row i is levels[j][k],    NaN  <=>  it is missing, empty, or none of the levels      (1)

The levels of data are the texts that it has, sorted: so neither the order of the rows nor the order of the levels in a frame's own type
changes anything. A model keeps the levels of its training data, and data is brought to those by `recode` before it is scored.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank.errors import DataError, IncompatibleError

Levels: TypeAlias = Mapping[str, tuple[str, ...]]  #: by the name of the feature
NO_LEVELS: Levels = MappingProxyType({})
MOST = 1 << 24  #: levels of a feature, whose codes single precision can hold


def levels_in(texts: Iterable[str | None], name: str) -> tuple[str, ...]:
    """The different texts of a feature called ``name``, sorted.

    >>> levels_in(["b", "", None, "a", "b"], "color")
    ('a', 'b')
    """
    found = tuple(sorted({text for text in texts if text}))
    if len(found) > MOST:
        raise DataError(f"feature {name!r} has {len(found):,} levels, more than {MOST:,}; leave it out, or make it one of fewer")
    return found


def codes_of(texts: Iterable[str | None], levels: Sequence[str]) -> npt.NDArray[np.float32]:
    """(1) of each text.

    >>> codes_of(["b", None, "z", "a"], ["a", "b"])
    array([ 1., nan, nan,  0.], dtype=float32)
    """
    code = {level: number for number, level in enumerate(levels)}
    return np.array([code.get(text, np.nan) if text else np.nan for text in texts], np.float32)


def places_of(codes: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """Codes as whole numbers; ``count``, that of the levels, stands for a missing one, and for one that has no level.

    >>> places_of(np.array([1.0, np.nan, 7.0, -1.0, 0.5], np.float32), 2)
    array([1, 2, 2, 2, 2])
    """
    with np.errstate(invalid="ignore"):
        known = (codes >= 0) & (codes < count) & (codes == np.floor(codes))
    return np.where(known, codes, count).astype(np.int64)


def check_levels(levels: Levels, names: Sequence[str]) -> None:
    """Raise unless each feature of ``levels`` is one of ``names`` and has different texts, none of them empty, for levels."""
    for name, own in levels.items():
        if name not in names:
            raise DataError(f"levels has {name!r}, which is no feature; give the levels of features that are there")
        if not all(isinstance(level, str) and level for level in own) or len(set(own)) != len(own):
            raise DataError(f"the levels of {name!r} must be different texts, none of them empty")


def check_codes(
    X: npt.NDArray[np.float32], rows: slice, names: Sequence[str], levels: Levels, offset: npt.NDArray[np.float64] | None
) -> None:
    """Raise where one of these rows of a feature with ``levels`` holds a number that is not one of its codes (1), nor missing."""
    for name, own in levels.items():
        j = names.index(name)
        if offset is not None and offset[j] != 0:
            raise DataError(f"offset[{j}] is {offset[j]:g}, but feature {name!r} has levels, and codes have no offset")
        codes = X[rows, j]
        strange = np.flatnonzero((places_of(codes, len(own)) == len(own)) & ~np.isnan(codes))
        if len(strange):
            number = codes[strange[0]]
            raise DataError(f"X[{rows.start + strange[0]}, {j}] is {number:g}; {name!r} has codes from 0 to {len(own) - 1}, or NaN")


def recode(
    X: npt.NDArray[np.float32], names: Sequence[str], found: Levels, wanted: Levels, owner: str
) -> dict[int, npt.NDArray[np.float32]]:
    """The columns of ``X`` whose codes are others by the levels that ``owner`` has, by number; levels that it lacks are missing values."""
    changed = {}
    for j, name in enumerate(names):
        theirs, ours = found.get(name), wanted.get(name)
        if theirs == ours:
            continue
        if theirs is None and not np.isnan(X[:, j]).all():
            kinds = ", ".join(map(repr, (ours or ())[:3])) + (", ..." if len(ours or ()) > 3 else "")
            raise IncompatibleError(
                f"feature {name!r} holds numbers in the data, but it is a category of {owner}, with the levels {kinds};"
                " give the column as text or as categories"
            )
        if ours is None:
            raise IncompatibleError(
                f"feature {name!r} holds categories in the data, but {owner} has numbers for it; give the column as numbers"
            )
        if theirs is not None:
            place = np.append(codes_of(theirs, ours), np.float32(np.nan))
            changed[j] = place[places_of(X[:, j], len(theirs))]
    return changed
