"""Claim: `exactrank --help` answers in under 0.5 s."""

import subprocess
import sys
from pathlib import Path

from timing import interleaved, table

PROGRAM = Path(sys.executable).with_name("exactrank")


def main() -> None:
    works = {
        "exactrank --help": [PROGRAM, "--help"],
        "python -c 'import exactrank'": [sys.executable, "-c", "import exactrank"],
        "python -c 'import exactrank as er; er.evaluate'": [sys.executable, "-c", "import exactrank as er; er.evaluate"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    runs = {name: lambda command=command: subprocess.run(command, capture_output=True, check=True) for name, command in works.items()}
    times = interleaved(runs, 10)
    costs = {name: t / times["python -c pass"] for name, t in times.items()}
    table("times", "Start-up", ["command", "time"], [[name, f"{1e3 * t:.0f} ms"] for name, t in times.items()], costs)


if __name__ == "__main__":
    sys.exit(main())
