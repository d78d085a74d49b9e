"""Many tests at once: p-values adjusted so that the chance of even one false finding keeps to the level (Holm 1979).

With p_(1) <= ... <= p_(m) the p-values in order,

    adjusted_(i) = max over j <= i of min(1, (m - j + 1) p_(j))                                                       (1)

It is never larger than Bonferroni's m p, and like it asks nothing of how the tests hang together.
"""

import numpy as np
import numpy.typing as npt

from exactrank.errors import DataError


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """(1), in the order of ``p``. A test without an answer (NaN) stays so, and is not counted in m.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    adjusted = np.array(p, np.float64)
    if adjusted.ndim != 1:
        raise DataError(f"p-values have the shape {adjusted.shape}; expected one number a test")
    wrong = (adjusted < 0) | (adjusted > 1)
    if wrong.any():
        raise DataError(f"p-value {adjusted[wrong][0]} of test {int(wrong.argmax())} (from 0) is not between 0 and 1")
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN sorts last
    stepped = adjusted[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return adjusted
