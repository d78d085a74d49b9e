"""The tables of a report: standings, pairs, divisions and fits; and numbers as the report writes them.

A column may stand in a group of columns, and a cell has a value to sort by besides its text.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from string import ascii_lowercase

from exactrank._support.text import settings_text
from exactrank.compare.results import DataSummary, Fit
from exactrank.compare.standings import Effort, MethodStanding
from exactrank.compare.statistics import LEVEL, TESTS, Pair

#: The standing of each method by each measure.
Board = Mapping[str, Sequence[MethodStanding]]
NONE, MINUS = "\u2013", "\u2212"
NAMED = 4  #: methods that a sentence names
_LEADING = re.compile(r"[<+]?(-?\d+(?:\.\d+)?)")


def plain(value: float | None, decimals: int = 4) -> str:
    """Write a number with a true minus sign, or a dash where there is none.

    >>> plain(0.51234), plain(-1200.5, 1), plain(float("nan")), plain(-0.00001)
    ('0.5123', '−1,200.5', '–', '0.0000')
    """
    return NONE if value is None or not math.isfinite(value) else f"{value:z,.{decimals}f}".replace("-", MINUS)


def with_sign(value: float | None, decimals: int = 4) -> str:
    """Write a number with its sign.

    >>> with_sign(0.25, 2), with_sign(-0.25, 2), with_sign(0.0, 2)
    ('+0.25', '−0.25', '0.00')
    """
    text = plain(value, decimals)
    return f"+{text}" if value is not None and value > 0 and any(c in "123456789" for c in text) else text


def interval(ends: tuple[float, float], decimals: int = 4) -> str:
    """Write both ends of an interval.

    >>> interval((0.1, 0.25)), interval((float("nan"), float("nan")))
    ('0.1000 to 0.2500', '–')
    """
    return f"{plain(ends[0], decimals)} to {plain(ends[1], decimals)}" if all(map(math.isfinite, ends)) else NONE


def probability(p: float) -> str:
    """Write a p-value, never as 0.

    >>> probability(0.0123), probability(1e-9)
    ('0.0123', '<0.0001')
    """
    return "<0.0001" if p < 0.00005 else plain(p)


def compact(value: float) -> str:
    """Write a number to four significant digits.

    >>> compact(0.000012345), compact(1234567.0), compact(-0.5)
    ('1.234e−05', '1.235e+06', '−0.5')
    """
    return f"{value:.4g}".replace("-", MINUS) if math.isfinite(value) else NONE


@dataclass(frozen=True)
class Column:
    """A column; ``words`` are set to the left, numbers to the right."""

    title: str
    group: str = ""
    words: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell; the page sorts by ``order``: None stands last, and so does a row with a cell that spans columns."""

    text: str
    order: float | str | None = None
    kind: str = ""  #: a class of the style
    span: int = 1

    @property
    def hidden_order(self) -> str | None:
        """The order if the page's script cannot read it from the text.

        >>> Cell("-1,234.5 to 2", -1234.496).hidden_order, Cell("b", 1.0).hidden_order, Cell(NONE).hidden_order
        (None, '1.0', '')
        """
        if self.order is None:
            return ""
        if isinstance(self.order, str):
            return None if self.order == self.text.casefold() else self.order
        leading = _LEADING.match(self.text.replace(",", "").replace(MINUS, "-"))
        near = leading is not None and abs(float(leading[1]) - self.order) <= 0.01
        return None if near else str(self.order)


@dataclass(frozen=True)
class ReportTable:
    """A table with a caption that says what it shows."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Titles of groups with their numbers of columns; empty if there are no groups."""
        groups = [(title, len(list(columns))) for title, columns in groupby(column.group for column in self.columns)]
        return groups if any(title for title, _ in groups) else []

    @property
    def firsts(self) -> set[int]:
        """The first column of each group except the first group."""
        return {j for j in range(1, len(self.columns)) if self.columns[j].group != self.columns[j - 1].group}


def words(text: str, kind: str = "") -> Cell:
    """Return a cell of text, sorted by it."""
    return Cell(text, text.casefold(), kind)


def number(value: float | None, text: str | None = None, kind: str = "") -> Cell:
    """Return a cell of a number, sorted by its value.

    >>> number(0.5), number(float("nan")).order
    (Cell(text='0.5000', order=0.5, kind='', span=1), None)
    """
    finite = value is not None and math.isfinite(value)
    return Cell(plain(value) if text is None else text, value if finite else None, kind)


def leaderboard(caption: str, board: Board, efforts: Sequence[Effort]) -> ReportTable:
    """Tabulate one data set: each method by every measure, by the first also on train and validation data, and its effort."""
    first, several_folds = next(iter(board)), any(effort.of > 1 for effort in efforts)
    by_measure = []
    for measure in board:
        titles = (*(("train", "validation") if measure == first else ()), "test", "95% interval")
        by_measure += [*(Column(title, measure) for title in titles), Column("better than", measure, words=True)]
    costs = [Column(title, "effort") for title in ("fit (s)", "tuning (s)", "memory (MiB)", *(["folds"] if several_folds else []))]
    rows = []
    for i, effort in enumerate(efforts):
        cells = [Cell(board[first][i].letter, float(i), "letter"), words(effort.method, "name")]
        missing = f"failed: {effort.failed}" if effort.failed else "" if effort.folds else "not run yet"
        if missing:
            cells.append(Cell(missing, kind="failed", span=len(by_measure)))
        for measure, standings in () if missing else board.items():
            row = standings[i]
            cells += [number(row.train), number(row.valid)] if measure == first else []
            cells += [number(row.mean, kind="best" if row.best else ""), number(row.interval[0], interval(row.interval, 3), "quiet")]
            cells.append(Cell(row.better_than, float(len(row.better_than)), "marks"))
        cells += [number(seconds, plain(seconds, 2)) for seconds in (effort.seconds, effort.tuning)]
        mebibytes = effort.memory >> 20 or None
        cells.append(number(mebibytes, f"{mebibytes:,}" if mebibytes else None))
        rows.append([*cells, number(effort.folds, f"{effort.folds}/{effort.of}")] if several_folds else cells)
    return ReportTable(caption, [Column("letter", words=True), Column("method", words=True), *by_measure, *costs], rows)


def verdict(measure: str, standings: Sequence[MethodStanding]) -> str:
    """Return a sentence that names the best method; empty if no method has a mean."""
    best = [row for row in standings if row.best]
    if not best:
        return ""
    leader, rivals = best[0], sum(row.mean == row.mean for row in standings) - 1
    letters = leader.better_than.split() if len(standings) > len(ascii_lowercase) else list(leader.better_than)
    beaten = [row.method for row in standings if row.letter in letters]
    if len(beaten) == rivals > 1:
        which = "every other method"
    else:
        which = ", ".join(beaten) if len(beaten) <= NAMED else f"{len(beaten)} of {rivals} others"
    significance = f", significantly better than {which}" if beaten else ", not significantly better than any other" if rivals else ""
    names = " and ".join(row.method for row in best)
    return f"Best by {measure}: {names} with {plain(leader.mean)} ({interval(leader.interval)}){significance}."


def overview(names: Sequence[str], boards: Mapping[str, Board], winning: Mapping[str, Mapping[str, int]]) -> ReportTable:
    """Tabulate all data sets: means of the first measure side by side, and by every measure how often a method beats another."""
    first = next(iter(winning))
    columns = [Column("method", words=True), *(Column(name, f"{first}, test") for name in boards)]
    columns += [Column(measure, "winning number") for measure in winning]
    rows = []
    for i, name in enumerate(names):
        standings = [board[first][i] for board in boards.values()]
        means = [number(row.mean, kind="best" if row.best else "") for row in standings]
        rows.append([words(name, "name"), *means, *(number(wins[name], f"{wins[name]:,}") for wins in winning.values())])
    return ReportTable("All data sets", columns, rows)


def pairs_table(caption: str, pairs: Sequence[Pair]) -> ReportTable:
    """Tabulate every method against those after it, by one measure."""
    columns, tests = [Column("first", words=True), Column("second", words=True)], list(pairs[0].p) if pairs else list(TESTS)
    columns += [Column(title, f"first {MINUS} second") for title in ("difference", "95% interval")]
    columns += [Column(test, group) for group in ("p", "p, adjusted") for test in tests]
    columns += [Column(title, "effect size") for title in ("Cohen's d", "rank-biserial")]
    columns += [Column(title, "queries") for title in ("wins", "ties", "losses")]
    rows = []
    for pair in pairs:
        cells = [words(pair.first, "name"), words(pair.second, "name")]
        cells += [number(pair.difference, with_sign(pair.difference)), number(pair.interval[0], interval(pair.interval), "quiet")]
        for p in (by_test[test] for by_test in (pair.p, pair.adjusted) for test in tests):
            cells.append(number(p, probability(p), "clear" if p < LEVEL else ""))
        cells += [number(value, with_sign(value, 3)) for value in (pair.effect, pair.rank_biserial)]
        rows.append([*cells, *(number(count, f"{count:,}") for count in (pair.wins, pair.ties, pair.losses))])
    return ReportTable(caption, columns, rows)


def folds_table(data: DataSummary) -> ReportTable:
    """Tabulate the sizes of the parts of each division."""
    sizes = [Column(title, part) for part in ("train", "validation", "test") for title in ("queries", "documents")]
    rows = []
    for fold in data.folds:
        counts = [count for part in (fold.train, fold.valid, fold.test) for count in (part.queries, part.documents)]
        rows.append([words(fold.name, "name"), *(number(count, f"{count:,}") for count in counts), words(fold.checksum, "code")])
    return ReportTable(f"Divisions of {data.name}", [Column("fold", words=True), *sizes, Column("checksum", words=True)], rows)


@dataclass(frozen=True)
class FitRecord:
    """The fits of a method on a data set; settings that differ between folds stand in the table of the folds."""

    method: str
    dataset: str
    failed: bool
    settings: Sequence[tuple[str, str]]
    folds: ReportTable
    trials: ReportTable | None


def fit_records(fits: Iterable[Fit]) -> list[FitRecord]:
    """Describe each method on each data set: settings, in the notation of Python, and trials."""
    groups: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits:
        groups.setdefault((fit.method, fit.dataset), []).append(fit)
    records = []
    for (method, dataset), group in groups.items():
        by_fold = [{name: repr(value) for name, value in fit.settings.items()} for fit in group]
        common = {name: text for name, text in by_fold[0].items() if all(settings.get(name) == text for settings in by_fold)}
        folds, trials = [], []
        for fit, settings in zip(group, by_fold, strict=True):
            text = ", ".join(f"{name}={value}" for name, value in settings.items() if name not in common)
            outcome = Cell(f"failed: {fit.failed}", None, "failed") if fit.failed else words(text, "code")
            folds.append([words(fit.fold, "name"), number(fit.seconds, plain(fit.seconds, 2)), outcome])
            best = max((trial.valid for trial in fit.trials if trial.valid is not None), default=None)
            for i, trial in enumerate(fit.trials):
                text = (settings_text(trial.settings) or "the defaults") + (f": {trial.failed}" if trial.failed else "")
                valid = Cell("failed", None, "failed") if trial.failed else number(trial.valid, kind="best" if trial.valid == best else "")
                seconds = number(trial.seconds, plain(trial.seconds, 2))
                trials.append([words(fit.fold), number(i, str(i)), valid, seconds, words(text, "code")])
        columns = [Column("fold", words=True), Column("fit (s)"), Column("settings of this fold", words=True)]
        titles = [Column("fold", words=True), Column("trial"), Column("validation"), Column("seconds"), Column("settings", words=True)]
        table = ReportTable("Trials of tuning", titles, trials) if trials else None
        failed = any(fit.failed for fit in group)
        records.append(FitRecord(method, dataset, failed, list(common.items()), ReportTable("Folds", columns, folds), table))
    return records
