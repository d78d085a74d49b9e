"""Claim: `exactrank --help` answers in under 0.5 s."""

import subprocess
import sys
from pathlib import Path

from timing import best, table

PROGRAM = Path(sys.executable).with_name("exactrank")


def main() -> None:
    works = {
        "exactrank --help": [PROGRAM, "--help"],
        "python -c 'import exactrank'": [sys.executable, "-c", "import exactrank"],
        "python -c 'import exactrank as xr; xr.evaluate'": [sys.executable, "-c", "import exactrank as xr; xr.evaluate"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    rows = [
        [name, f"{1e3 * best(lambda c=command: subprocess.run(c, capture_output=True, check=True), 10):.0f} ms"]
        for name, command in works.items()
    ]
    table("Start-up", ["command", "time"], rows)


if __name__ == "__main__":
    sys.exit(main())
