"""Categories: features whose values are texts. X holds their codes, and ``levels`` the text of each code.

    x_ij = k  <=>  the text of row i is levels[j][k],    NaN  <=>  it is missing, empty, or not one of the levels   (1)

The levels of data are its different texts, sorted, so neither the order of the rows nor the order of categories in a frame changes them. A
model has the levels of its training data, and `recode` converts other data to them before it is scored.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank.errors import DataError, IncompatibleError

Levels: TypeAlias = Mapping[str, tuple[str, ...]]  #: by the name of the feature
NO_LEVELS: Levels = MappingProxyType({})
MAX_LEVELS = 1 << 24  #: of a feature: single precision holds all their codes


def levels_in(texts: Iterable[str | None], name: str) -> tuple[str, ...]:
    """Return the different texts of the feature ``name``, sorted.

    >>> levels_in(["b", "", None, "a", "b"], "color")
    ('a', 'b')
    """
    levels = tuple(sorted({text for text in texts if text}))
    if len(levels) > MAX_LEVELS:
        raise DataError(f"feature {name!r} has {len(levels):,} levels, more than {MAX_LEVELS:,}; leave it out, or make it one of fewer")
    return levels


def codes_of(texts: Iterable[str | None], levels: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the code (1) of each text.

    >>> codes_of(["b", None, "z", "a"], ["a", "b"])
    array([ 1., nan, nan,  0.], dtype=float32)
    """
    code = {level: number for number, level in enumerate(levels)}
    return np.array([code.get(text, np.nan) if text else np.nan for text in texts], np.float32)


def places_of(codes: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """Return codes as whole numbers; a missing code, or one without a level, becomes ``count``, the number of levels.

    >>> places_of(np.array([1.0, np.nan, 7.0, -1.0, 0.5], np.float32), 2)
    array([1, 2, 2, 2, 2])
    """
    with np.errstate(invalid="ignore"):
        is_level = (codes >= 0) & (codes < count) & (codes == np.floor(codes))
    return np.where(is_level, codes, count).astype(np.int64)


def check_levels(levels: Levels, names: Sequence[str]) -> None:
    """Raise unless each feature of ``levels`` is one of ``names`` and its levels are different texts that are not empty."""
    for name, texts in levels.items():
        if name not in names:
            raise DataError(f"levels has {name!r}, which is not a feature; give the levels of existing features")
        if not all(isinstance(level, str) and level for level in texts) or len(set(texts)) != len(texts):
            raise DataError(f"the levels of {name!r} must be different texts, none of them empty")


def check_codes(
    X: npt.NDArray[np.float32], rows: slice, names: Sequence[str], levels: Levels, offset: npt.NDArray[np.float64] | None
) -> None:
    """Raise if one of these ``rows`` of a feature with ``levels`` holds neither one of its codes (1) nor NaN."""
    for name, texts in levels.items():
        j = names.index(name)
        if offset is not None and offset[j] != 0:
            raise DataError(f"offset[{j}] is {offset[j]:g}, but feature {name!r} has levels, and codes have no offset")
        codes = X[rows, j]
        wrong = np.flatnonzero((places_of(codes, len(texts)) == len(texts)) & ~np.isnan(codes))
        if len(wrong):
            number = codes[wrong[0]]
            raise DataError(f"X[{rows.start + wrong[0]}, {j}] is {number:g}; {name!r} has codes from 0 to {len(texts) - 1}, or NaN")


def recode(X: npt.NDArray[np.float32], names: Sequence[str], old: Levels, new: Levels, owner: str) -> dict[int, npt.NDArray[np.float32]]:
    """Return, by number, the columns whose codes change from ``old`` to ``new`` levels; levels that ``owner`` lacks become NaN."""
    changed = {}
    for j, name in enumerate(names):
        old_texts, new_texts = old.get(name), new.get(name)
        if old_texts == new_texts:
            continue
        if old_texts is None and not np.isnan(X[:, j]).all():
            kinds = ", ".join(map(repr, (new_texts or ())[:3])) + (", ..." if len(new_texts or ()) > 3 else "")
            raise IncompatibleError(
                f"feature {name!r} holds numbers in the data, but it is a category of {owner}, with the levels {kinds};"
                " give the column as text or as categories"
            )
        if new_texts is None:
            raise IncompatibleError(
                f"feature {name!r} holds categories in the data, but {owner} has numbers for it; give the column as numbers"
            )
        if old_texts is not None:
            place = np.append(codes_of(old_texts, new_texts), np.float32(np.nan))
            changed[j] = place[places_of(X[:, j], len(old_texts))]
    return changed
