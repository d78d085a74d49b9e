"""Numbers as the report writes them; a dash where there is none."""

import math

NONE, MINUS = "\u2013", "\u2212"


def plain(value: float | None, decimals: int = 4) -> str:
    """With a true minus sign.

    >>> plain(0.51234), plain(-1200.5, 1), plain(float("nan")), plain(-0.00001)
    ('0.5123', '−1,200.5', '–', '0.0000')
    """
    if value is None or not math.isfinite(value):
        return NONE
    text = f"{value:,.{decimals}f}"
    return text.lstrip("-") if not any(c in "123456789" for c in text) else text.replace("-", MINUS)


def signed(value: float | None, decimals: int = 4) -> str:
    """With a plus sign too.

    >>> signed(0.25, 2), signed(-0.25, 2), signed(0.0, 2)
    ('+0.25', '−0.25', '0.00')
    """
    text = plain(value, decimals)
    return f"+{text}" if value is not None and value > 0 and text[0] in "0123456789" and any(c in "123456789" for c in text) else text


def interval(ends: tuple[float, float], decimals: int = 4) -> str:
    """Both ends of an interval.

    >>> interval((0.1, 0.25)), interval((float("nan"), float("nan")))
    ('0.1000 to 0.2500', '–')
    """
    return NONE if any(not math.isfinite(end) for end in ends) else f"{plain(ends[0], decimals)} to {plain(ends[1], decimals)}"


def p_value(value: float) -> str:
    """Never 0.

    >>> p_value(0.0321), p_value(1e-9)
    ('0.0321', '<0.0001')
    """
    return "<0.0001" if value < 0.00005 else plain(value)


def megabytes(value: int) -> str:
    """Of 10^6 bytes.

    >>> megabytes(123_456_789), megabytes(0)
    ('123', '–')
    """
    return plain(value / 1e6, 0) if value else NONE


def compact(value: float) -> str:
    """Four digits that count.

    >>> compact(0.000012345), compact(1234567.0), compact(-0.5)
    ('1.234e−05', '1.235e+06', '−0.5')
    """
    return f"{value:.4g}".replace("-", MINUS) if math.isfinite(value) else NONE
