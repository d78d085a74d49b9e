"""The tables that say who is best: one per data set, one over all of them, and every method against every other."""

from collections.abc import Mapping, Sequence
from string import ascii_lowercase

from exactrank.compare.page.table import MIB, MINUS, Cell, Column, ReportTable, interval, number, plain, probability, signed, words
from exactrank.compare.standings import LEVEL, Effort, MethodStanding
from exactrank.compare.statistics.paired import TESTS
from exactrank.compare.statistics.pairs import Pair

#: By measure: how all methods stand, in their order.
Board = Mapping[str, Sequence[MethodStanding]]
NAMED = 4  #: methods that a sentence names


def leaderboard(caption: str, board: Board, efforts: Sequence[Effort]) -> ReportTable:
    """One data set: each method by every measure, by the first also on train and validation data, and what it took."""
    first, divided = next(iter(board)), any(took.of > 1 for took in efforts)
    method, measured = [Column("letter", words=True), Column("method", words=True)], []
    for measure in board:
        parts = ("train", "validation") if measure == first else ()
        measured += [Column(title, measure) for title in (*parts, "test", "95% interval")]
        measured.append(Column("better than", measure, words=True))
    effort = [Column(title, "effort") for title in ("fit (s)", "tuning (s)", "memory (MiB)", *(["folds"] if divided else []))]
    rows = []
    for i, took in enumerate(efforts):
        cells = [Cell(board[first][i].letter, float(i), "letter"), words(took.method, "name")]
        missing = f"failed: {took.failed}" if took.failed else "" if took.folds else "not run yet"
        if missing:
            cells.append(Cell(missing, kind="failed", span=len(measured)))
        for measure, standings in () if missing else board.items():
            own = standings[i]
            cells += [number(own.train), number(own.valid)] if measure == first else []
            cells += [_mean(own), number(own.interval[0], interval(own.interval, 3), "quiet")]
            cells.append(Cell(own.better_than, float(len(own.better_than)), "marks"))
        cells += [number(seconds, plain(seconds, 2)) for seconds in (took.seconds, took.tuning)]
        mebibytes = took.memory // MIB or None
        cells.append(number(mebibytes, f"{mebibytes:,}" if mebibytes else None))
        rows.append([*cells, number(took.folds, f"{took.folds}/{took.of}")] if divided else cells)
    return ReportTable(caption, [*method, *measured, *effort], rows)


def verdict(measure: str, standings: Sequence[MethodStanding]) -> str:
    """Who is best, in a sentence; nothing where no method has a mean."""
    best = [own for own in standings if own.best]
    if not best:
        return ""
    first, others = best[0], sum(own.mean == own.mean for own in standings) - 1
    letters = first.better_than.split() if len(standings) > len(ascii_lowercase) else list(first.better_than)
    beaten = [own.method for own in standings if own.letter in letters]
    which = (
        "every other method"
        if len(beaten) == others > 1
        else ", ".join(beaten)
        if len(beaten) <= NAMED
        else f"{len(beaten)} of {others} others"
    )
    told = f"significantly better than {which}" if beaten else "not significantly better than any other"
    names, alone = " and ".join(own.method for own in best), f", {told}" if others else ""
    return f"Best by {measure}: {names} with {plain(first.mean)} ({interval(first.interval)}){alone}."


def overview(names: Sequence[str], boards: Mapping[str, Board], winning: Mapping[str, Mapping[str, int]]) -> ReportTable:
    """All data sets: the means of the first measure side by side, and by every measure how often a method beats another."""
    first = next(iter(winning))
    columns = [Column("method", words=True), *(Column(name, f"{first}, test") for name in boards)]
    columns += [Column(measure, "winning number") for measure in winning]
    rows = []
    for i, name in enumerate(names):
        means = [_mean(board[first][i]) for board in boards.values()]
        rows.append([words(name, "name"), *means, *(number(own[name], f"{own[name]:,}") for own in winning.values())])
    return ReportTable("All data sets", columns, rows)


def pairs_table(caption: str, pairs: Sequence[Pair]) -> ReportTable:
    """Every method against those after it, by one measure."""
    columns = [Column("first", words=True), Column("second", words=True)]
    columns += [Column(title, f"first {MINUS} second") for title in ("difference", "95% interval")]
    columns += [Column(test, group) for group in ("p", "p, adjusted") for test in TESTS]
    columns += [Column(title, "effect size") for title in ("Cohen's d", "rank-biserial")]
    columns += [Column(title, "queries") for title in ("wins", "ties", "losses")]
    rows = []
    for pair in pairs:
        cells = [words(pair.first, "name"), words(pair.second, "name")]
        cells += [number(pair.difference, signed(pair.difference)), number(pair.interval[0], interval(pair.interval), "quiet")]
        for p in (by[test] for by in (pair.p, pair.adjusted) for test in TESTS):
            cells.append(number(p, probability(p), "clear" if p < LEVEL else ""))
        cells += [number(value, signed(value, 3)) for value in (pair.effect, pair.rank_biserial)]
        rows.append([*cells, *(number(count, f"{count:,}") for count in (pair.wins, pair.ties, pair.losses))])
    return ReportTable(caption, columns, rows)


def _mean(standing: MethodStanding) -> Cell:
    return number(standing.mean, kind="best" if standing.best else "")
