"""All faults at every call of all operations, or those that are named: ``python -m tests.faults [operation | kind ...]``."""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.driver import Driver
from tests.faults.comparing import COMPARE, ComparisonBench
from tests.faults.laws import Bench
from tests.faults.operations import OPERATIONS, make_inputs
from tests.faults.shim import KINDS, UNAVAILABLE
from tests.faults.sweep import FAULTS, swept


def main(words: list[str]) -> int:
    """Print a line per operation and fault, and every law that was broken; 1 where one was."""
    kinds, names = [word for word in words if word in KINDS], [word for word in words if word not in KINDS]
    if UNAVAILABLE:
        print(UNAVAILABLE)
        return 0
    failures, tried, begun = 0, 0, time.monotonic()
    with TemporaryDirectory() as name, Driver(Path(name)) as driver:
        inputs = make_inputs(Path(name))
        for each in names or [*OPERATIONS, COMPARE.name]:
            there = Path(name)
            bench = ComparisonBench(driver, inputs, there) if each == COMPARE.name else Bench(OPERATIONS[each], driver, inputs, there)
            for fault in (fault for fault in FAULTS if not kinds or fault.kind in kinds):
                calls, broken = swept(bench, fault)
                tried, failures = tried + calls, failures + len(broken)
                print(f"{each:10} {str(fault).replace(' 0', ' n'):30} {calls:5} calls, {len(broken)} broken", flush=True)
                print("".join(f"    {each}\n" for each in broken), end="", flush=True)
    print(f"{tried:,} faults, {failures} broken laws, {time.monotonic() - begun:.0f} s")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
