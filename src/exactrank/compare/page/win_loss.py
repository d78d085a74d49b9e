"""Query by query against a baseline: the differences as the page first shows them, and the values from which its script draws others.

Values are whole numbers of 1/`UNIT`, here and in the script, so that both draw the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from exactrank.compare.page.charts import COLUMNS, win_loss_chart
from exactrank.compare.page.numbers import plain, signed
from exactrank.compare.standings import Shared
from exactrank.compare.statistics.pairs import Pair

UNIT = 10_000


@dataclass(frozen=True)
class Opponent:
    """One method against the baseline."""

    name: str
    count: str  #: wins, ties, losses
    chart: Markup


@dataclass(frozen=True)
class WinLoss:
    """All methods against the baseline, which has a place too, where it does not show."""

    baseline: str
    opponents: Sequence[Opponent]
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
    counts = _counts(names, pairs)
    reach = _reach(whole)
    opponents = [
        Opponent(
            name,
            "{} wins, {} ties, {} losses".format(*counts[i][base]),
            win_loss_chart(
                (whole[i] - whole[base]) / UNIT,
                _tips(shared.qid, (name, whole[i]), (names[base], whole[base])),
                reach,
                f"{name} against {names[base]}, query by query",
                f"difference of {measure}",
            ),
        )
        for i, name in enumerate(names)
    ]
    known = int(np.isfinite(whole).all(axis=0).sum())
    values = {
        "names": names,
        "qid": shared.qid,
        "values": [_json(own) for own in whole],
        "counts": counts,
        "unit": UNIT,
        "columns": COLUMNS,
    }
    return WinLoss(names[base], opponents, known, min(known, COLUMNS), values)


def _counts(names: Sequence[str], pairs: Sequence[Pair]) -> list[list[tuple[int, int, int]]]:
    """Wins, ties and losses of every method against every other."""
    counts = [[(0, 0, 0) for _ in names] for _ in names]
    for pair in pairs:
        i, j = names.index(pair.first), names.index(pair.second)
        counts[i][j], counts[j][i] = (pair.wins, pair.ties, pair.losses), (pair.losses, pair.ties, pair.wins)
    return counts


def _reach(whole: npt.NDArray[np.float64]) -> float:
    """The largest difference of any two methods on any query."""
    known = whole[:, np.isfinite(whole).any(axis=0)]
    spread = np.nanmax(known, axis=0) - np.nanmin(known, axis=0) if known.size else np.zeros(1)
    return float(spread.max()) / UNIT or 1.0


def _tips(qid: Sequence[str], own: tuple[str, npt.NDArray[np.float64]], base: tuple[str, npt.NDArray[np.float64]]) -> list[str]:
    return [
        f"query {query}\n{own[0]}: {plain(a)}\n{base[0]}: {plain(b)}\ndifference: {signed(a - b)}"
        for query, a, b in zip(qid, (own[1] / UNIT).tolist(), (base[1] / UNIT).tolist(), strict=True)
    ]


def _json(own: npt.NDArray[np.float64]) -> list[int | None]:
    return [int(v) if np.isfinite(v) else None for v in own.tolist()]
