"""The tables that say who is best: one a data set, one over all of them, and every method against every other."""

from collections.abc import Mapping, Sequence

from exactrank.compare.page.numbers import MINUS, interval, megabytes, p_value, plain, signed
from exactrank.compare.page.table import Cell, Column, Row, Table, number, words
from exactrank.compare.standings import LEVEL, Effort, Standing
from exactrank.compare.statistics.paired import TESTS
from exactrank.compare.statistics.pairs import Pair

#: By measure: how all methods stand, in their order.
Board = Mapping[str, Sequence[Standing]]


def leaderboard(caption: str, board: Board, efforts: Sequence[Effort]) -> Table:
    """One data set: each method by every measure, and what it took."""
    measured = [column for i, measure in enumerate(board) for column in _measure_columns(measure, with_parts=i == 0)]
    effort = ["fit (s)", "tuning (s)", "memory (MB)", *(["folds"] if any(own.of > 1 for own in efforts) else [])]
    columns = [
        Column("letter", words=True),
        Column("method", words=True),
        *measured,
        *(Column(title, "effort") for title in effort),
    ]
    rows = [_row(i, [own[i] for own in board.values()], took, len(measured)) for i, took in enumerate(efforts)]
    return Table(caption, columns, rows)


def verdict(measure: str, standings: Sequence[Standing]) -> str:
    """Who is best, in a sentence; nothing where no method has a mean."""
    best = [own for own in standings if own.best]
    if not best:
        return ""
    names, first = " and ".join(own.method for own in best), best[0]
    letters = ", ".join(first.better_than.split() if " " in first.better_than else first.better_than)
    beaten = f"significantly better than {letters}" if letters else "not significantly better than any other"
    return f"Best by {measure}: {names} with {plain(first.mean)} ({interval(first.interval)}), {beaten}."


def overview(names: Sequence[str], boards: Mapping[str, Board], winning: Mapping[str, Mapping[str, int]]) -> Table:
    """All data sets: the means of the first measure side by side, and by every measure how often a method beats another."""
    first = next(iter(winning))
    columns = [Column("method", words=True), *(Column(name, f"{first}, test") for name in boards)]
    columns += [Column(measure, "winning number") for measure in winning]
    rows = [
        Row(
            (
                words(name, "name"),
                *(_mean(board[first][i]) for board in boards.values()),
                *(number(own[name], f"{own[name]:,}") for own in winning.values()),
            )
        )
        for i, name in enumerate(names)
    ]
    return Table("All data sets", columns, rows)


def pairs_table(caption: str, pairs: Sequence[Pair]) -> Table:
    """Every method against those after it, by one measure."""
    columns = [Column("first", words=True), Column("second", words=True)]
    columns += [Column(title, f"first {MINUS} second") for title in ("difference", "95% interval")]
    columns += [Column(test, group) for group in ("p", "p, adjusted") for test in TESTS]
    columns += [Column(title, "effect size") for title in ("Cohen's d", "rank-biserial")]
    columns += [Column(title, "queries") for title in ("wins", "ties", "losses")]
    return Table(caption, columns, [_pair(pair) for pair in pairs])


def _measure_columns(measure: str, *, with_parts: bool) -> list[Column]:
    parts = [Column("train", measure), Column("validation", measure)] if with_parts else []
    return [*parts, Column("test", measure), Column("95% interval", measure), Column("better than", measure, words=True)]


def _row(place: int, standings: Sequence[Standing], effort: Effort, measured: int) -> Row:
    method = (Cell(standings[0].letter, float(place), "letter"), words(effort.method, "name"))
    missing = f"failed: {effort.failed}" if effort.failed else "" if effort.folds else "not run yet"
    if missing:
        return Row((*method, Cell(missing, kind="failed", span=measured), *_took(effort)), last=True)
    return Row((*method, *(cell for i, own in enumerate(standings) for cell in _measured(own, with_parts=i == 0)), *_took(effort)))


def _took(effort: Effort) -> list[Cell]:
    seconds = [number(own, plain(own, 2)) for own in (effort.seconds, effort.tuning)]
    folds = [number(effort.folds, f"{effort.folds}/{effort.of}")] if effort.of > 1 else []
    return [*seconds, number(effort.memory or None, megabytes(effort.memory)), *folds]


def _measured(standing: Standing, *, with_parts: bool) -> list[Cell]:
    """The cells of one measure."""
    parts = [number(standing.train), number(standing.valid)] if with_parts else []
    marks = Cell(standing.better_than, float(len(standing.better_than)), "marks")
    return [*parts, _mean(standing), number(standing.interval[0], interval(standing.interval, 3), "quiet"), marks]


def _mean(standing: Standing) -> Cell:
    return number(standing.mean, kind="best" if standing.best else "")


def _pair(pair: Pair) -> Row:
    difference = number(pair.difference, signed(pair.difference)), number(pair.interval[0], interval(pair.interval), "quiet")
    tests = [number(by[test], p_value(by[test]), "clear" if by[test] < LEVEL else "") for by in (pair.p, pair.adjusted) for test in TESTS]
    effect = [number(value, signed(value, 3)) for value in (pair.effect, pair.rank_biserial)]
    counts = [number(count, f"{count:,}") for count in (pair.wins, pair.ties, pair.losses)]
    return Row((words(pair.first, "name"), words(pair.second, "name"), *difference, *tests, *effect, *counts))
