"""Query by query against a baseline: the differences as the page first shows them, and the values from which its script draws others.

Values are whole numbers of 1/`UNIT`, here and in the script, so that both draw the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from exactrank.arrays import PerQuery
from exactrank.compare.page.charts import SMALL
from exactrank.compare.page.svg import chart, element, framed
from exactrank.compare.page.table import plain, signed
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
    whole = np.rint(np.where(np.isfinite(table), table, np.nan) * UNIT)
    base = names.index(baseline) if baseline in names else 0
    counts = [[(0, 0, 0) for _ in names] for _ in names]  # wins, ties and losses of every method against every other
    for pair in pairs:
        i, j = names.index(pair.first), names.index(pair.second)
        counts[i][j], counts[j][i] = (pair.wins, pair.ties, pair.losses), (pair.losses, pair.ties, pair.wins)
    some = whole[:, np.isfinite(whole).any(axis=0)]
    reach = float((np.nanmax(some, axis=0) - np.nanmin(some, axis=0)).max(initial=0.0)) / UNIT or 1.0
    opponents = []
    for name, own, against in zip(names, whole, counts, strict=True):
        tips = [
            f"query {query}\n{name}: {plain(a)}\n{names[base]}: {plain(b)}\ndifference: {signed(a - b)}"
            for query, a, b in zip(shared.qid, (own / UNIT).tolist(), (whole[base] / UNIT).tolist(), strict=True)
        ]
        label = f"{name} against {names[base]}, query by query"
        drawn = win_loss_chart((own - whole[base]) / UNIT, tips, reach, label, f"difference of {measure}")
        opponents.append((name, "{} wins, {} ties, {} losses".format(*against[base]), drawn))
    known = int(np.isfinite(whole).all(axis=0).sum())
    values = [[int(v) if math.isfinite(v) else None for v in own] for own in whole.tolist()]
    held = {"names": names, "qid": shared.qid, "values": values, "counts": counts, "unit": UNIT, "columns": COLUMNS}
    return WinLoss(names[base], opponents, known, min(known, COLUMNS), held)


def win_loss_chart(differences: PerQuery, tips: Sequence[str], reach: float, label: str, title: str) -> Markup:
    """Differences from the largest to the smallest as bars up and down, on a scale from -``reach`` to ``reach``.

    The attributes ``data-left``, ``data-across``, ``data-zero`` and ``data-unit`` let the page's script draw other differences into it.
    """
    x, y, axes = framed(SMALL, (0.0, 1.0), (-1.05 * reach, 1.05 * reach), ("queries, best first", title), many=0)
    across, zero, unit = x.end - x.start, y(0.0), y(0.0) - y(1.0)
    order = drawn_places(differences)
    width = across / max(len(order), 1)
    bars = []
    for i, at in enumerate(order.tolist()):  # the page's script has a twin of this
        height = unit * float(differences[at])
        kind, top = "win" if height > 0 else "loss" if height < 0 else "tie", zero - max(height, 0.0)
        bars.append(element("rect", class_=kind, x=x.start + i * width, y=top, width=0.85 * width, height=abs(height), data_tip=tips[at]))
    parts = [axes, element("line", class_="axis", x1=x.start, x2=x.end, y1=zero, y2=zero), element("g", *bars, class_="bars")]
    where = {"data_left": x.start, "data_across": across, "data_zero": zero, "data_unit": unit}
    return chart(SMALL, label, parts, near="x", **{name: repr(value) for name, value in where.items()})


def drawn_places(differences: PerQuery) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Which queries are drawn, from the largest difference down: all, or `COLUMNS` of them that are evenly spaced in that order.

    >>> drawn_places(np.array([0.5, np.nan, -1.0, 2.0])).tolist()
    [3, 0, 2]
    """
    order = np.argsort(-differences, kind="stable")
    order = order[np.isfinite(differences[order])]
    return order if len(order) <= COLUMNS else order[np.arange(COLUMNS) * (len(order) - 1) // (COLUMNS - 1)]
