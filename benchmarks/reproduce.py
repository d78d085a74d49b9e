"""Run published experiments again, keep what they find in the ledger, and write docs/reproduce.md from it.

    python -m benchmarks.reproduce                            all experiments on a reduced scale, then the page
    python -m benchmarks.reproduce NAME ... --full            some on the scale of the papers
    python -m benchmarks.reproduce NAME --data FOLDER         on folds as LETOR has them; FOLDER's name is kept, not its path
    python -m benchmarks.reproduce NAME --set epochs=60       with other settings; repeatable
    python -m benchmarks.reproduce --page                     write the page alone

Code with changes that are not committed is refused, since no commit would say what was run; ``--allow-dirty`` marks such entries.

The ledger has a file for each experiment, benchmarks/ledger/reproduce/NAME.json, with an entry for each scale, seed and set of data: its
verdict, inequalities and tables, and *fingerprints* of the experiment at a tiny scale: the bits of the models of each ranker that it
trains, and of all its numbers. A change that moves them makes the entry stale, which tests name.
"""

import argparse
import ast
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.ledger import LEDGER, ROOT, Entry, commit, entries_of, with_tables

from exactrank.errors import ExactRankError
from exactrank.rankers.base import Ranker
from exactrank.reproduce import EXPERIMENTS, find_experiment
from exactrank.reproduce.experiment import Experiment
from exactrank.reproduce.finding import Finding

FOLDER, PAGE = LEDGER / "reproduce", ROOT / "docs" / "reproduce.md"
#: Settings with which each experiment runs in less than a second or two.
TINY = {
    "lambdarank-ranknet": {"queries": (60, 30, 60), "hidden": (None, 2), "rates": (1e-3, 1e-2), "epochs": 3},
    "lambda-functions": {"queries": (40, 20, 40), "rates": (1e-2,), "epochs": 2},
    "lambdarank-intranet": {"queries": 25, "hidden": (None, 2), "rates": (1e-3,), "epochs": 2},
    "lambdarank-web": {"queries": (60, 30, 60), "hidden": (None, 2), "rates": (1e-3, 1e-2), "epochs": 3},
    "lambdarank-optimality": {"queries": (30, 20, 1), "rates": (1e-3, 1e-2), "epochs": 3},
    "line-search-example": {},
    "directrank-letor": {"sets": ("TD2003", "OHSUMED", "MQ2007"), "queries": 20, "folds": 1, "starts": 2},
    "directrank-large": {"yahoo": (30, 15, 20), "microsoft": (20, 15, 20), "starts": 1},
    "directrank-err-map": {"queries": (30, 15, 20)},
    "directrank-times": {"queries": (30, 15, 20)},
    "unbiased": {"train": 20, "test": 10, "sessions": (40, 60), "trees": 3},
    "directrank-starts": {"yahoo": (60, 10, 20), "microsoft": (60, 10, 20), "starts": 2},
    "jumping-points": {"queries": 5, "sizes": (6, 8, 12), "draws": 2},
    "ranknet-speedup": {"queries": 10, "lists": (4, 8), "hidden": (None, 2), "repeats": 2, "epochs": 2},
    "spsa-convergence": {"queries": 10, "evaluations": 64, "runs": 2, "factors": (1, 2)},
    "spsa-table": {"queries": (30, 20, 30), "rates": (1e-3, 1e-2), "epochs": 3, "steps": 10, "factors": (0.5, 1.0)},
    "spsa-queries": {"queries": (10, 20), "test": 20, "rates": (1e-2,), "epochs": 2, "steps": 5},
    "directrank-order": {"queries": (20, 10, 10), "starts": 1},
    "directrank-consistency": {"train": (5, 10), "test": 20},
    "structured-bounds": {"features": 2, "queries": 20, "noises": (1.0,), "strengths": (1.0,)},
    "structured-ndcg": {"web_1": (8, 5, 5), "web_2": (8, 5, 5)},
    "structured-times": {"queries": 10, "strengths": (10.0, 1.0), "repeats": 1},
    "tree-tables": {"yahoo": (60, 20, 20), "microsoft": (30, 20, 20), "leaves": (3, 5), "trees": 5},
    "smoothness": {"queries": 60, "samples": (10, 20), "hidden": (None, 2), "rates": (1e-3,), "epochs": 3},
    "smoothness-web": {"queries": 60, "hidden": (2,), "rates": (1e-3,), "epochs": 3},
}
#: What the checks say that do not hang on the clock, in experiments whose other numbers do.
TIMED = {"ranknet-speedup": "same parameters", "structured-times": "reach(es)? the", "directrank-times": "^$"}
#: Longer tables are left to the ledger.
LONGEST = 30
#: The fingerprint of an experiment's numbers, beside those of its rankers.
NUMBERS = "numbers"


def tiny(name: str, **settings: Any) -> Experiment:
    """Return an experiment at a scale at which its numbers mean nothing."""
    return find_experiment(name)(**({"features": 5, "documents": 10, "threads": 1} | TINY[name] | settings))


def fingerprints(name: str) -> dict[str, str]:
    """Return hashes of what the experiment trains at a tiny scale, by ranker, and of its numbers that do not depend on the clock."""
    with recorded_models() as hashes:
        finding = tiny(name).run()
    numbers = [(check.left, check.right) for check in finding.checks if re.search(TIMED.get(name, ""), check.says)]
    cells = [] if name in TIMED else [cell for table in finding.tables for row in table.rows for cell in row if isinstance(cell, float)]
    rounded = [f"{number:.10g}" for number in (*np.ravel(numbers).tolist(), *cells)]
    digests = {ranker: content.hexdigest()[:16] for ranker, content in sorted(hashes.items())}
    return digests | {NUMBERS: sha256(" ".join(rounded).encode()).hexdigest()[:16]}


@contextmanager
def recorded_models() -> Iterator[dict[str, Any]]:
    """Hash the scores that each model gives its training data, by the class of the ranker."""
    fit, hashes = Ranker.fit, dict[str, Any]()

    def recording_fit(self: Ranker, train: Any, *args: Any, **settings: Any) -> Ranker:
        fit(self, train, *args, **settings)
        hashes.setdefault(type(self).__name__, sha256()).update(np.asarray(self.predict(train)).tobytes())
        return self

    Ranker.fit = recording_fit  # type: ignore[method-assign]
    try:
        yield hashes
    finally:
        Ranker.fit = fit  # type: ignore[method-assign]


# ---- entries


def experiment_of(name: str, scale: str, seed: int, settings: dict[str, Any]) -> Experiment:
    """Return the experiment, reduced or full, on one thread, with other ``settings``."""
    kind = find_experiment(name)
    return replace(kind.full(seed) if scale == "full" else kind(seed=seed), **{"threads": 1} | settings)


def key_of(scale: str, seed: int, data: Sequence[str], settings: dict[str, Any]) -> str:
    """Return the name of an entry, such as ``full, seed 0, on MQ2008, epochs=60``."""
    words = [scale, f"seed {seed}", *([f"on {' and '.join(data)}"] if data else [])]
    return ", ".join([*words, *(f"{key}={value!r}" for key, value in settings.items())])


def run(name: str, scale: str, seed: int, folders: Sequence[Path], settings: dict[str, Any]) -> None:
    """Run an experiment and put what it finds into the ledger."""
    names, version = [folder.resolve().name for folder in folders], commit()
    experiment, start = experiment_of(name, scale, seed, settings), time.perf_counter()
    arguments = {"data": tuple(map(str, folders))} if folders else {}
    finding = replace(experiment, **arguments).run(lambda line: print(f"  {line}"[:140], file=sys.stderr))
    seconds = time.perf_counter() - start
    entry = entry_of(finding) | {"settings": repr(experiment), "overrides": {key: repr(value) for key, value in settings.items()}}
    entry |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": version, "scale": scale, "seed": seed, "data": names}
    entry |= {"seconds": float(f"{seconds:.2g}"), "fingerprints": fingerprints(name)}
    path, key = FOLDER / f"{name}.json", key_of(scale, seed, names, settings)
    entries = (entries_of(path) if path.exists() else {}) | {key: entry}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dict(sorted(entries.items(), key=order)), indent=1, ensure_ascii=False) + "\n")
    print(f"{name}, {key}: {finding.verdict} ({seconds:.0f} s)")


def order(item: tuple[str, Entry]) -> tuple[bool, int, list[str], str]:
    """Sort entries by scale, then by data and seed."""
    key, entry = item
    return entry["scale"] == "full", len(entry["data"]), entry["data"], key


def entry_of(finding: Finding) -> Entry:
    """Return what an entry says of a finding."""
    checks = [[check.says, float(f"{check.left:.6g}"), float(f"{check.right:.6g}")] for check in finding.checks]
    tables = {table.title: table.markdown().split("\n") for table in finding.tables}
    return {"verdict": finding.verdict, "summary": finding.summary, "checks": checks, "tables": tables}


def staleness(name: str, today: dict[str, str] | None = None) -> Iterator[str]:
    """Yield why entries of the experiment do not say what its code finds today."""
    path = FOLDER / f"{name}.json"
    entries = entries_of(path) if path.exists() else {}
    today = today or (fingerprints(name) if entries else {})
    for key, entry in entries.items():
        since, again = f"since {entry['date']} ({entry['commit']})", f"python -m benchmarks.reproduce {name}"
        overrides = {setting: ast.literal_eval(value) for setting, value in entry["overrides"].items()}
        if repr(experiment_of(name, entry["scale"], entry["seed"], overrides)) != entry["settings"]:
            yield f"{name}, {key}: its settings have changed {since}; run {again}"
        for part in sorted(today.keys() | entry["fingerprints"].keys()):
            if today.get(part) != entry["fingerprints"].get(part):
                what = "the numbers" if part == NUMBERS else f"the bits of {part}"
                yield f"{name}, {key}: {what} have changed {since}; run {again}"


# ---- the page


def overview() -> Iterator[str]:
    """Yield a table with a row for each figure and table of the papers."""
    yield "| paper | where | experiment | reduced | full |"
    yield "|---|---|---|---|---|"
    for name in EXPERIMENTS:
        kind = find_experiment(name)
        path = FOLDER / f"{name}.json"
        entries = entries_of(path) if path.exists() else {}
        cells = []
        for scale in ("reduced", "full"):
            verdicts = [f"{entry['verdict'].split(' inequ')[0]}{on(entry)}" for entry in entries.values() if entry["scale"] == scale]
            absent = "not run" if scale == "reduced" else "the same" if is_always_full(kind) else f"not run: {kind.estimate}"
            cells.append("; ".join(verdicts) or absent)
        yield from (f"| {kind.paper} | {place} | [`{name}`](#{name}) | {' | '.join(cells)} |" for place in kind.where)


def is_always_full(kind: type[Experiment]) -> bool:
    """Return whether the scale of the paper is the only one."""
    return kind.full() == kind()


def on(entry: Entry) -> str:
    """Return the seed and the data of an entry, where it is not the first seed of artificial data."""
    words = [f"seed {entry['seed']}"] * bool(entry["seed"]) + entry["data"]
    return f" ({', '.join(words)})" if words else ""


def section(name: str) -> Iterator[str]:
    """Yield what was published, what differs, ours at each scale with the verdict, inequalities that fail, and the tables."""
    kind, path = find_experiment(name), FOLDER / f"{name}.json"
    entries = entries_of(path) if path.exists() else {}
    yield from (f"{', '.join(kind.where)}. *Settings:* {kind.differs}", "", "| published | ours | scale | verdict |", "|---|---|---|---|")
    published = kind.published
    for key, entry in entries.items():
        run_by = f"{key}; {entry['seconds']:,.3g} s, {entry['date']}, `{entry['commit']}`"
        yield f"| {published} | {entry['summary']} | {run_by} | {entry['verdict']} |"
        published = ""
    if not is_always_full(kind) and not any(entry["scale"] == "full" for entry in entries.values()):
        yield f"| {published} | | full | not run: {kind.estimate} |"
    failed = [(key, *check) for key, entry in entries.items() for check in entry["checks"] if not check[1] < check[2]]
    if failed:
        yield from ("", "| does not hold | scale | left | right |", "|---|---|---|---|")
        yield from (f"| {says} | {key} | {left:.4g} | {right:.4g} |" for key, says, left, right in failed)
        yield from ("", f"*Tried:* {kind.tried}") if kind.tried else ()
    for key, entry in entries.items():
        for title, (header, rule, *rows) in entry["tables"].items():
            if len(rows) <= LONGEST:
                yield from ("", f"*{title}* ({key})", "", header, rule, *rows)
            else:
                yield from ("", f"*{title}* ({key}): {len(rows)} rows, in `benchmarks/ledger/reproduce/{name}.json`.")


def with_experiments(page: str) -> str:
    """Return a page with what the ledger says between the marks ``<!-- ledger: reproduce.NAME -->`` and ``<!-- /ledger -->``."""

    def block(match: re.Match[str]) -> str:
        lines = overview() if match["name"] is None else section(match["name"])
        return "\n".join((match["mark"], "", *lines, "", match["end"]))

    marks = r"(?P<mark><!-- ledger: reproduce(?:\.(?P<name>[\w-]+))? -->)\n.*?(?P<end><!-- /ledger -->)"
    return re.sub(marks, block, page, flags=re.DOTALL)


def setting(word: str) -> tuple[str, Any]:
    """Return the name and the value of a setting such as ``starts=10``."""
    name, _, value = word.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        raise argparse.ArgumentTypeError(f"{word!r} is not NAME=VALUE with a Python value, such as starts=10") from None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; by default all")
    parser.add_argument("--full", action="store_true", help="on the scale of the papers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder with Fold1, Fold2, ...; repeatable")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE", help="another setting; repeatable")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--allow-dirty", action="store_true", help="also with changes of the code that are not committed")
    options = parser.parse_args(arguments)
    if commit().endswith("-dirty") and not (options.page or options.allow_dirty):
        parser.error("the code has changes that are not committed; commit them, or give --allow-dirty")
    try:
        for name in () if options.page else options.names or EXPERIMENTS:
            known = {field.name for field in fields(find_experiment(name))}
            if unknown := sorted(dict(options.set).keys() - known):
                parser.error(f"{name} has no setting {', '.join(unknown)}; it has {', '.join(sorted(known))}")
            run(name, "full" if options.full else "reduced", options.seed, options.data, dict(options.set))
    except ExactRankError as error:
        parser.error(str(error))
    PAGE.write_text(with_tables(with_experiments(PAGE.read_text())))


if __name__ == "__main__":
    main()
