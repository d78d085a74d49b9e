"""Extra columns, which are not features: one number per document, such as a price, which measures can read instead of grades."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, Rows
from exactrank.data.formats.text_column import rows_of
from exactrank.data.immutable import immutable
from exactrank.data.validation import floats_of, refuse_masked_values
from exactrank.errors import DataError

ExtraColumns = Mapping[str, PerDocument]  #: numbers per document, by name


def check_extra_columns(columns: Mapping[str, npt.ArrayLike], documents: int, features: Sequence[str]) -> ExtraColumns:
    """Return the columns as immutable arrays; raise unless each has a unique name and one finite number per document.

    >>> check_extra_columns({"price": [1.0, float("nan")]}, 2, ())
    Traceback (most recent call last):
        ...
    exactrank.errors.DataError: column 'price' of document 1 is nan; give every document a number, e.g. 0
    """
    arrays: dict[str, PerDocument] = {}
    for name, numbers in columns.items():
        values = floats_of(f"column {name!r}", refuse_masked_values(numbers, name))
        if not isinstance(name, str) or not name or name in features:
            raise DataError(f"column {name!r} cannot be kept: its name must be text that no feature has; rename it")
        if values.shape != (documents,):
            raise DataError(f"column {name!r} has shape {values.shape} for {documents} documents; give one number per document")
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise DataError(f"column {name!r} of document {bad[0]} is {values[bad[0]]}; give every document a number, e.g. 0")
        arrays[name] = immutable(values)
    return arrays


def take_extra_columns(columns: ExtraColumns, rows: Rows | slice | None) -> ExtraColumns:
    """Return the ``rows`` of each column; all rows for None."""
    return {name: rows_of(values, rows) for name, values in columns.items()}


def concatenate_extra_columns(parts: Sequence[ExtraColumns]) -> ExtraColumns:
    """Return the columns that all parts have, concatenated."""
    shared = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: np.concatenate([part[name] for part in parts]) for name in shared}
