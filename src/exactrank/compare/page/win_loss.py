"""Query by query against a baseline: the differences as the page first shows them, and the values from which its script draws others.

Values are whole numbers of 1/`UNIT`, here and in the script, so that both draw the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from exactrank._support.arrays import PerQuery
from exactrank.compare.page.svg import SPAN, Span, chart, element, framed, stretched, whole
from exactrank.compare.standings import Shared
from exactrank.compare.statistics.pairs import Pair

UNIT = 10_000
COLUMNS = 240  #: bars that can be told apart side by side


@dataclass(frozen=True)
class WinLoss:
    """All methods against the baseline, which has a place too, where it does not show."""

    baseline: str
    opponents: Sequence[tuple[str, str, Markup]]  #: name; wins, ties and losses; chart
    queries: int
    drawn: int
    values: dict[str, Any]  #: for the script


def win_loss(shared: Shared, measure: str, pairs: Sequence[Pair], baseline: str) -> WinLoss | None:
    """None where fewer than two methods have values."""
    names = list(shared.values)
    if len(names) < 2:
        return None
    table = np.stack([shared.values[name] for name in names])
    rounded = np.rint(np.where(np.isfinite(table), table, np.nan) * UNIT)
    base = names.index(baseline) if baseline in names else 0
    counts = [[(0, 0, 0) for _ in names] for _ in names]  # wins, ties and losses of every method against every other
    for pair in pairs:
        i, j = names.index(pair.first), names.index(pair.second)
        counts[i][j], counts[j][i] = (pair.wins, pair.ties, pair.losses), (pair.losses, pair.ties, pair.wins)
    some = rounded[:, np.isfinite(rounded).any(axis=0)]
    reach = float((np.nanmax(some, axis=0) - np.nanmin(some, axis=0)).max(initial=0.0)) / UNIT or 1.0
    ends = -1.05 * reach, 1.05 * reach
    opponents = []
    for name, own, against in zip(names, rounded, counts, strict=True):
        label = f"{name} against {names[base]}, query by query"
        drawn = win_loss_chart((own - rounded[base]) / UNIT, ends, label, f"difference of {measure}")
        opponents.append((name, "{} won, {} tied, {} lost".format(*against[base]), drawn))
    known = int(np.isfinite(rounded).all(axis=0).sum())
    values = [[int(v) if math.isfinite(v) else None for v in own] for own in rounded.tolist()]
    held = {"names": names, "qid": shared.qid, "values": values, "counts": counts, "unit": UNIT, "columns": COLUMNS}
    return WinLoss(names[base], opponents, known, min(known, COLUMNS), {**held, "span": SPAN, "reach": ends[1]})


def win_loss_chart(differences: PerQuery, ends: Span, label: str, title: str) -> Markup:
    """Differences from the largest to the smallest: above the line where the method wins, below where it loses."""
    _, y, axes, padding = framed((0.0, 1.0), ends, ("queries, best first", title), many=0)
    found = differences[drawn_places(differences)].tolist()
    zero = element("path", class_="axis", d=f"M0 {whole(y(0.0))}H{SPAN:g}")
    areas = [element("path", class_=name, d=d) for name, d in zip(("win", "loss"), win_loss_areas(found, ends[1]), strict=True)]
    return chart(label, [axes, stretched(*areas, zero)], padding, near="x")


def win_loss_areas(differences: Sequence[float], reach: float) -> tuple[str, str]:
    """The ``d`` of what lies above the line and of what lies below it, of differences in order; the page's script has a twin of this.

    >>> win_loss_areas([0.5, 0.0, -1.0], 1.0)
    ('M0 1000V500H667V1000Z', 'M1333 1000V2000H2000V1000Z')
    """
    column, zero = SPAN / max(len(differences), 1), SPAN / 2
    areas = []
    for sign in (1, -1):
        own = [(i, value) for i, value in enumerate(differences) if sign * value > 0]
        tops = "".join(f"V{whole(zero * (1 - value / reach))}H{whole((i + 1) * column)}" for i, value in own)
        areas.append(f"M{whole(own[0][0] * column)} {zero:g}{tops}V{zero:g}Z" if own else "")
    return areas[0], areas[1]


def drawn_places(differences: PerQuery) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Which queries are drawn, from the largest difference down: all, or `COLUMNS` of them that are evenly spaced in that order.

    >>> drawn_places(np.array([0.5, np.nan, -1.0, 2.0])).tolist()
    [3, 0, 2]
    """
    order = np.argsort(-differences, kind="stable")
    order = order[np.isfinite(differences[order])]
    return order if len(order) <= COLUMNS else order[np.arange(COLUMNS) * (len(order) - 1) // (COLUMNS - 1)]
