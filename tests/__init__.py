"""The tests of exactrank; folders are those of the package."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  #: of the project
GOLDEN = ROOT / "tests" / "golden"  #: files that must stay readable, and numbers that must not change
