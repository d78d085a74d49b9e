"""The ledger: what every benchmark last came to, in benchmarks/ledger, one JSON file per benchmark with one entry per table.

    python benchmarks/ledger.py compare FOLDER     names what costs over 15% more in FOLDER than in the ledger, and ends with 1 then
    python benchmarks/ledger.py docs               writes the tables of the ledger into the documentation

An entry has the table as printed, the date, the commit and the arguments of the run, and the *costs* of our own work: time or memory
as a share of what a peer or a yardstick took in the same run. So costs of different machines and days can be compared. An entry is
only replaced by a run with the same arguments. In the documentation its table follows a line ``<!-- ledger: evaluate.alone -->``. A cell
of it may stand in a sentence, as ``<!-- ledger: evaluate.alone / ROW / COLUMN -->1.5<!-- /ledger -->``; the column may be cut short.
Published experiments have files of their own kind (`benchmarks.reproduce`), whose cells are named by the experiment, the entry and the
table: ``<!-- ledger: reproduce.spsa-table / reduced, seed 0 / Table 1 / RankNet / test -->``.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LEDGER = ROOT / "benchmarks" / "ledger"
#: A run writes its tables to the folder that this environment variable names, if any.
FOLDER = "BENCH_LEDGER"
#: A cost that grows by more than this factor is told.
SLOWER = 1.15
#: A cell in a sentence.
CELL = r"<!-- ledger: (?P<place>[\w-]+\.[\w-]+ / [^>]*?) -->[^<]*<!-- /ledger -->"
#: What a run depends on; the ledger and the pages, which runs write, are no part of it.
CODE = ("src", "benchmarks", "CMakeLists.txt", ":!benchmarks/ledger")
#: What an entry says, of a benchmark and of an experiment.
BENCHMARK = {"title", "date", "commit", "arguments", "table", "costs"}
EXPERIMENT = {"verdict", "summary", "checks", "tables", "settings", "overrides", "scale", "seed", "data", "seconds", "fingerprints"}
Entry = dict[str, Any]


def record(name: str, title: str, lines: list[str], costs: Mapping[str, float]) -> None:
    """Put a table of the benchmark that is running into its file."""
    if FOLDER not in os.environ:
        return
    path = Path(os.environ[FOLDER]) / f"{Path(sys.argv[0]).stem.removeprefix('bench_')}.json"
    entries, called = entries_of(path) if path.exists() else {}, arguments()
    if name in entries and entries[name]["arguments"] != called:
        print(f"not kept: the ledger has {name} of a run with {entries[name]['arguments']}, not {called}", file=sys.stderr)
        return
    entries[name] = {
        "title": title,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit(),
        "arguments": called,
        "table": lines,
        "costs": {label: float(f"{cost:.4g}") for label, cost in costs.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n")


def arguments() -> list[str]:
    """Return the arguments of the benchmark, without the names of folders and the place of data that it finds by itself."""
    words = ["FOLDER" if Path(word).exists() else word for word in sys.argv[1:]]
    if "--data" in words:
        del words[words.index("--data") :][:2]
    return ["--artificial", "FOLDER", *words] if os.environ.get("ARTIFICIAL") and "--artificial" not in words else words


def commit() -> str:
    """The commit that is checked out, marked if code was changed since; unknown outside a repository."""

    def answer(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    name = answer("describe", "--always")
    return (name + "-dirty" * bool(answer("status", "--porcelain", "--", *CODE))) if name else "unknown"


def entries_of(path: Path) -> dict[str, Entry]:
    """Return the entries of a file of the ledger, or of experiments."""
    if not path.exists():
        known = ", ".join(sorted(other.stem for other in path.parent.glob("*.json")))
        raise ValueError(f"{path.name} is not in the ledger; there are {known or 'no others'}")
    entries = json.loads(path.read_text())
    for name, entry in entries.items():
        if absent := (EXPERIMENT if "checks" in entry else BENCHMARK) - entry.keys():
            raise ValueError(
                f"{path.name}: {name} has no {', '.join(sorted(absent))}, so it is of another version of the ledger; run it again"
            )
    return entries


def slower(run: Path, ledger: Path = LEDGER) -> Iterator[str]:
    """Yield the costs that are higher in the files of ``run`` than in those of ``ledger``, if both had the same arguments."""
    for path in sorted(run.glob("*.json")):
        before = entries_of(ledger / path.name) if (ledger / path.name).exists() else {}
        for name, entry in entries_of(path).items():
            known = before.get(name, {"arguments": None, "costs": {}})
            for label, cost in entry["costs"].items() if known["arguments"] == entry["arguments"] else ():
                if cost > SLOWER * known["costs"].get(label, cost):
                    was = known["costs"][label]
                    since = f"{known['commit']}, {known['date']}"
                    yield f"{path.stem}.{name}: {label}: {cost:.4g}, {cost / was:.2f} times the {was:.4g} of the ledger ({since})"


def cell(place: str, ledger: Path = LEDGER) -> str:
    """The cell of a table that a mark names."""
    table, *words = place.split(" / ")
    folder, _, name = table.rpartition(".")
    if folder == "reproduce":
        entry, title, *words = words
        tables = only(entries_of(ledger / folder / f"{name}.json"), entry, place)["tables"]
        lines = only(tables, title, place)
    else:
        lines = only(entries_of(ledger / f"{folder}.json"), name, place)["table"]
    row, column = words
    header, *rows = ([text.strip() for text in line.strip("|").split("|")] for line in lines if not line.startswith(("|-", "| -")))
    number = only({name: number for number, name in enumerate(header)}, column, place)
    values = [cells[number] for cells in rows if row in (cells[0], ", ".join(cells[:2]))]
    if len(values) != 1:
        raise ValueError(f"{place}: {len(values)} rows are called {row!r}; there are {', '.join(cells[0] for cells in rows)}")
    return values[0]


def only(named: Mapping[str, Any], start: str, place: str) -> Any:
    """Return what is called ``start``, or the only one whose name starts so."""
    names = [name for name in named if name == start] or [name for name in named if name.startswith(start)]
    if len(names) != 1:
        raise ValueError(f"{place}: {len(names)} of the names {', '.join(named)} start with {start!r}")
    return named[names[0]]


def with_tables(page: str, ledger: Path = LEDGER) -> str:
    """A page of the documentation with the tables and cells of the ledger at its marks."""

    def table(match: re.Match[str]) -> str:
        entry = only(entries_of(ledger / f"{match['file']}.json"), match["name"], f"{match['file']}.{match['name']}")
        after = "\n" if match.end() < len(match.string) else ""  # a paragraph begins after a blank line
        return match["mark"] + "".join(f"{line}\n" for line in entry["table"]) + after

    page = re.sub(CELL, lambda match: f"<!-- ledger: {match['place']} -->{cell(match['place'], ledger)}<!-- /ledger -->", page)
    return re.sub(r"(?P<mark><!-- ledger: (?!reproduce\.)(?P<file>\w+)\.(?P<name>[\w-]+) -->\n\n)(?:\|.*\n)*\n*", table, page)


def main(command: str, *folders: str) -> int:
    if command == "compare":
        results = [line for folder in folders for line in slower(Path(folder))]
        print("\n".join(results) or f"nothing costs over {SLOWER - 1:.0%} more than in the ledger")
        return int(bool(results))
    if command == "docs":
        for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
            path.write_text(with_tables(path.read_text()))
        return 0
    sys.exit(__doc__)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except ValueError as error:
        sys.exit(str(error))
