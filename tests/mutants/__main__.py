"""Applies each mutant to a copy of the package and runs the tests that own it there: ``python -m tests.mutants [WORD ...]``.

With words, only mutants that have one of them in their file or line. Ends with 1 where fewer than nine tenths are noticed, or where a
mutant's line is no longer there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import exactrank

from .listed import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
#: The share of mutants that the tests have to notice.
LEAST = 0.9
#: Seconds after which a mutant makes its tests hang, which is noticed as well.
PATIENCE = 120


def copied(folder: Path) -> Path:
    """A copy of the package, its core included, beside a copy of its tests."""
    shutil.copytree(Path(exactrank.__file__).parent, folder / "exactrank", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def passes(folder: Path, tests: tuple[str, ...], seconds: float | None = None) -> bool:
    """Whether all ``tests`` pass there, within ``seconds`` where they are given."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    if result.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run {' '.join(tests)}:\n{result.stdout.decode()}")
    return result.returncode == 0


def fate(mutant: Mutant, folder: Path) -> str:
    """What becomes of ``mutant``: "killed", "survived", or "stale" where its line is not there."""
    path = folder / "exactrank" / mutant.file
    text = path.read_text()
    if text.count(mutant.was) != 1:
        return "stale"
    path.write_text(text.replace(mutant.was, mutant.is_now))
    try:
        return "survived" if passes(folder, mutant.owners, PATIENCE) else "killed"
    finally:
        path.write_text(text)


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not words or any(word in f"{mutant.file} {mutant.was}" for word in words)]
    fates = []
    with tempfile.TemporaryDirectory() as name:
        folder = copied(Path(name))
        owners = tuple(sorted({test for mutant in chosen for test in mutant.owners}))
        if not passes(folder, owners):
            raise SystemExit(f"without any mutant one of these fails: {' '.join(owners)}")
        for mutant in chosen:
            fates.append(fate(mutant, folder))
            print(f"{fates[-1]:9} {mutant.file:36} {mutant.was}  ->  {mutant.is_now}", flush=True)
    killed = fates.count("killed")
    print(f"{killed} of {len(fates)} killed, {fates.count('stale')} stale")
    return int(killed < LEAST * len(fates) or "stale" in fates)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
