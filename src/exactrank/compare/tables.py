"""The tables of a comparison: one a data set for people, winning numbers over all, and a long one for programs."""

from exactrank.compare.results import Results
from exactrank.compare.standings import LEVEL, MARKING_TEST, Effort, Standing, efforts, shared_values, standings, winning
from exactrank.table import Cell, Marked, Table

MIB = 1 << 20


def result_tables(comparison: Results) -> tuple[Table, ...]:
    """One table a data set and, where there are several, one of winning numbers."""
    tables = tuple(_of_dataset(comparison, data.name) for data in comparison.datasets)
    return (*tables, winning_table(comparison)) if len(tables) > 1 else tables


def winning_table(comparison: Results) -> Table:
    """How often each method beats another one, over all data sets."""
    wins = [winning(comparison, measure) for measure in comparison.measures]
    rows: list[list[Cell]] = [[method.name, *(won[method.name] for won in wins)] for method in comparison.methods]
    sets, others = len(comparison.datasets), len(comparison.methods) - 1
    note = f"How often a method's mean is above another's, over {sets} data sets; at most {sets * others} (Liu 2009)."
    return Table("Winning numbers", ("method", *comparison.measures), rows, note)


def long_table(comparison: Results) -> Table:
    """A row for each data set, measure and method."""
    columns = ("dataset", "measure", "method", "mean", "low", "high", "train", "validation", "better_than")
    effort_columns = ("fit_seconds", "tuning_seconds", "memory_bytes", "folds", "failed")
    rows: list[list[Cell]] = []
    for data in comparison.datasets:
        spent = efforts(comparison, data.name)
        for measure in comparison.measures:
            for one, took in zip(standings(comparison, data.name, measure), spent, strict=True):
                found: list[Cell] = [data.name, measure, one.method, one.mean, *one.interval, one.train, one.valid, one.better_than]
                rows.append([*found, took.seconds, took.tuning, took.memory, took.folds, took.failed])
    return Table("Results", (*columns, *effort_columns), rows)


def _of_dataset(comparison: Results, dataset: str) -> Table:
    first, *others = comparison.measures
    by_measure = [standings(comparison, dataset, measure) for measure in comparison.measures]
    spent = efforts(comparison, dataset)
    rows = [_row([found[number] for found in by_measure], took) for number, took in enumerate(spent)]
    columns = ("", "method", first, "95% interval", *others, "train", "valid", "fit s", "tuning s", "MiB")
    failures = [f"{took.method} failed: {took.failed}." for took in spent if took.failed]
    return Table(dataset, columns, rows, "\n".join([_note(comparison, dataset, first), *failures]))


def _row(found: list[Standing], took: Effort) -> list[Cell]:
    first = found[0]
    missing = "failed" if took.failed else "-"
    means = [missing if one.mean != one.mean else Marked(one.mean, one.better_than, one.best) for one in found]
    interval = "-" if first.mean != first.mean else f"{first.interval[0]:.3f}-{first.interval[1]:.3f}"
    effort: list[Cell] = [f"{took.seconds:.1f}", f"{took.tuning:.1f}", took.memory // MIB]
    return [first.letter, first.method, means[0], interval, *means[1:], first.train, first.valid, *effort]


def _note(comparison: Results, dataset: str, first: str) -> str:
    queries = len(shared_values(comparison, dataset, first).qid)
    said = (
        f"Test means over {queries:,} queries. Letters: significantly better than that method ({MARKING_TEST} test, Holm, p < {LEVEL:g})."
    )
    partial = "" if comparison.complete else " Interrupted: not all fits are there."
    return f"{said} Train and valid: {first}.{partial}"
