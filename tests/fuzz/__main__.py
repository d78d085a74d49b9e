"""Fuzz all targets, or those that are named, each for an equal share of the time.

Inputs run in a process that writes each one down before it tries it, so a crash leaves the input that caused it. Defects are made
small and saved in build/fuzz with what they said.
"""

import argparse
import json
import mmap
import os
import shutil
import struct
import sys
import time
import traceback
import zlib
from pathlib import Path
from typing import NoReturn

import numpy as np

from tests.fuzz.minimize import minimized
from tests.fuzz.target import CORPUS, Target
from tests.fuzz.targets import TARGETS
from tests.fuzz.trial import Outcome, apart, ended, limit_memory, tried, watch

FOLDER = Path("build/fuzz")
BROKEN = 70  #: the exit code of a process in which the fuzzer itself failed
TALLY = struct.Struct("<3Q")  #: inputs that were tried, read, refused; shared with the process that tries


def fuzzed(target: Target, seconds: float, seed: int, limit: float) -> tuple[tuple[int, int, int], dict[str, Path]]:
    """How many inputs there were, and the one that showed each defect first."""
    folder = FOLDER / target.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tally, until, draws = mmap.mmap(-1, TALLY.size), time.monotonic() + seconds, np.random.SeedSequence(seed)
    while time.monotonic() < until:
        pid = os.fork()
        if pid == 0:
            _child(target, folder, until, np.random.default_rng(draws.spawn(1)[0]), limit, tally)
        draws.spawn(1)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == BROKEN:
            raise SystemExit(f"{target.name}: the fuzzer itself failed, see above")
        crash = ended(code)
        if crash is not None:
            _save(folder, target, crash)
    return TALLY.unpack(tally), {path.with_suffix("").name: path for path in sorted(folder.glob(f"defect-*{target.suffix}"))}


def _child(target: Target, folder: Path, until: float, rng: np.random.Generator, limit: float, tally: mmap.mmap) -> NoReturn:
    """Try inputs in this process, which ends with them."""
    try:
        limit_memory()
        _loop(target, folder, until, rng, limit, tally)
    except BaseException:
        traceback.print_exc()
        os._exit(BROKEN)
    os._exit(0)


def _loop(target: Target, folder: Path, until: float, rng: np.random.Generator, limit: float, tally: mmap.mmap) -> None:
    path, count = folder / f"input{target.suffix}", dict(zip(("tried", "read", "refused"), TALLY.unpack(tally), strict=True))
    while time.monotonic() < until:
        path.write_bytes(target.drawn(rng))
        watch(limit)
        outcome = tried(target, path)
        if outcome.verdict == "defect":
            _save(folder, target, outcome)
        for name in {"tried", outcome.verdict} & count.keys():
            count[name] += 1
        tally[:] = TALLY.pack(*count.values())


def _save(folder: Path, target: Target, outcome: Outcome) -> None:
    """Keep the input of a defect that is new."""
    path = folder / f"defect-{zlib.crc32(outcome.said.encode()):08x}{target.suffix}"
    if not path.exists():
        path.write_bytes((folder / f"input{target.suffix}").read_bytes())
        path.with_suffix(".said").write_text(f"{outcome.said}\n{outcome.told}", errors="backslashreplace")


def reduced(target: Target, path: Path, limit: float) -> Outcome:
    """Write a smaller input with the same defect beside that at ``path``; the defect is returned."""
    first, candidate = apart(target, path, limit), path.with_name(f"candidate{target.suffix}")

    def fails(content: bytes) -> bool:
        candidate.write_bytes(content)
        return apart(target, candidate, limit).said == first.said

    if first.verdict == "defect":
        path.with_name(f"small-{path.name}").write_bytes(minimized(path.read_bytes(), fails))
    return first


def replayed(limit: float) -> int:
    """Print the outcome of each input of the corpus as JSON."""
    scratch = FOLDER / f"replay-{os.getpid()}"
    scratch.mkdir(parents=True)
    outcomes = {}
    for target in TARGETS.values():
        for path in target.corpus():
            copy = scratch / path.name
            copy.write_bytes(path.read_bytes())
            outcome = apart(target, copy, limit)
            outcomes[f"{target.name}/{path.name}"] = [outcome.verdict, outcome.said, outcome.told]
    for path in scratch.iterdir():
        path.unlink()
    scratch.rmdir()
    print(json.dumps(outcomes))
    return 0


def fuzz(names: list[str], seconds: float, seed: int, limit: float) -> int:
    """Fuzz, print a line per target and what is to be done about each defect; 1 where there is one."""
    print(f"fuzzing {len(names)} targets for {seconds:g} s with seed {seed}", flush=True)
    defects = 0
    for name in names:
        (inputs, read, refused), result = fuzzed(TARGETS[name], seconds / len(names), seed, limit)
        print(f"{name:15}{inputs:10,} inputs: {read:,} read, {refused:,} refused, {len(result)} defects", flush=True)
        for path in result.values():
            outcome = reduced(TARGETS[name], path, limit)
            message = path.with_suffix(".said").read_text().partition("\n")[0]
            print(f"  {path}: {message}" + ("" if outcome.said == message else f" (again: {outcome.said or outcome.verdict})"), flush=True)
        defects += len(result)
    if defects:
        print(f"{defects} DEFECTS; fix each, and keep its input in {CORPUS.name}/TARGET as refused-WHAT-IS-WRONG or read-WHAT-IS-ODD")
    return int(defects > 0)


def main() -> int:
    """The command."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all by default")
    arguments.add_argument("--seconds", type=float, default=60, help="in all")
    arguments.add_argument("--seed", type=int, default=int(time.time()))
    arguments.add_argument("--limit", type=float, default=10, help="seconds for one input")
    arguments.add_argument("--replay", action="store_true", help="try the corpus instead, and print the outcomes as JSON")
    options = arguments.parse_args()
    return replayed(options.limit) if options.replay else fuzz(options.targets or [*TARGETS], options.seconds, options.seed, options.limit)


if __name__ == "__main__":
    sys.exit(main())
