"""Claim: `exactrank serve` with two workers on two cores, which the load generator shares, answers 2,000 requests per second of 100
documents with a linear model, 99% of them within 20 ms.

The generator is wrk (Debian's package), on the loopback interface, with kept-alive connections. *Paced* connections pause at random so
that 2,000 requests per second are asked for; *at full speed* each of eight connections asks again as soon as it has an answer. Features are
written as the shortest decimals of single precision. CPU time is that of the workers and of wrk, by request: it tells what a busy machine
hides. Other processes on the two cores lengthen the waits, so the best of several runs counts.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from timing import in_yards, pin, table

import exactrank as er

DOCUMENTS, RATE, CONNECTIONS, LIMIT = 100, 2000, 64, 20
TICKS = os.sysconf("SC_CLK_TCK")
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local file = io.open(os.getenv("BODY"), "rb")
wrk.body = file:read("*a")
local pause = tonumber(os.getenv("PAUSE"))
if pause > 0 then function delay() return math.random(0, 2 * pause) end end
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """The answers that wrk counted in a run, and the processor time of the workers and of wrk."""

    rate: float  # requests per second
    median: float  # milliseconds
    slow: float  # milliseconds, 99%
    worker_cpu: float  # milliseconds per request
    wrk_cpu: float


@contextmanager
def serving(model: Path) -> Iterator[tuple[str, int]]:
    """The address of a service with two workers, and its process."""
    command = [sys.executable, "-c", "from exactrank.cli import main; main()", "serve", str(model), "--port", "0", "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = re.search(r"http://\S+", process.stderr.readline())[0]
            for _ in range(20):  # whichever worker is the last
                urllib.request.urlopen(f"{address}/ready", timeout=30).read()
            yield address, process.pid
        finally:
            process.terminate()


def cpu_of_children(pid: int) -> float:
    """Seconds of all processes that ``pid`` started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    stats = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split() for child in children]
    return sum(int(each[11]) + int(each[12]) for each in stats) / TICKS


def load(address: str, pid: int, body: Path, script: Path, seconds: int, paced: bool) -> Load:
    connections = CONNECTIONS if paced else 8
    pause = round(1000 * connections / RATE) - 4 if paced else 0
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), f"{address}/rank"]
    before, own_times = cpu_of_children(pid), os.times()
    message = subprocess.run(command, env=os.environ | {"BODY": str(body), "PAUSE": str(pause)}, capture_output=True, text=True, check=True)
    after, spent = cpu_of_children(pid), os.times()
    requests, duration, median, slow, errors = map(int, re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+)", message.stdout).groups())
    assert errors == 0, message.stdout
    wrk = spent.children_user + spent.children_system - own_times.children_user - own_times.children_system
    return Load(1e6 * requests / duration, median / 1e3, slow / 1e3, 1e3 * (after - before) / requests, 1e3 * wrk / requests)


def bodies(folder: Path, width: int) -> dict[str, Path]:
    rows = np.random.default_rng(1).standard_normal((DOCUMENTS, width)).astype(np.float32)
    cells = [[str(cell) for cell in row] for row in rows]
    by_name = [{f"feature_{j}": float(cell) for j, cell in enumerate(row)} for row in cells]
    texts = {
        "rows": '{"features": [' + ",".join(f"[{','.join(row)}]" for row in cells) + "]}",
        "by name": json.dumps({"documents": by_name}),
    }
    for form, text in texts.items():
        (folder / f"{form}{width}.json").write_text(text)
    return {form: folder / f"{form}{width}.json" for form in texts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=2, help="of each run")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        print("skipped: there is no wrk; apt-get install wrk")
        return
    pin(2)
    printed, costs = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "load.lua").write_text(SCRIPT)
        for width in (10, 136):
            weights = np.random.default_rng(0).standard_normal(width)
            er.Model(er.models.Linear(weights, tuple(f"feature_{j}" for j in range(width)))).save(folder / f"linear{width}.json")
            with serving(folder / f"linear{width}.json") as (address, pid):
                time.sleep(1)
                for form, body in bodies(folder, width).items():
                    runs = {paced: [load(address, pid, body, folder / "load.lua", options.seconds, paced) for _ in range(options.runs)]
                            for paced in (True, False)}  # fmt: skip
                    paced, full = min(runs[True], key=lambda run: run.slow), max(runs[False], key=lambda run: run.rate)
                    cheapest = min((run for some in runs.values() for run in some), key=lambda run: run.worker_cpu)
                    label = f"{width} features, {form}"
                    costs |= in_yards({label: cheapest.worker_cpu / 1e3})
                    printed.append(
                        [label, f"{body.stat().st_size / 1e3:.0f}", f"{paced.rate:,.0f}", f"{paced.median:.1f}", f"{paced.slow:.1f}",
                         f"{full.rate:,.0f}", f"{cheapest.worker_cpu:.2f}", f"{cheapest.wrk_cpu:.2f}"]
                    )  # fmt: skip
    header = ["requests of 100 documents", "kB", "paced, per second", "median, ms", f"99%, ms (claim: {LIMIT})", "full speed, per second",
              "CPU of workers, ms per request", "CPU of wrk, ms"]  # fmt: skip
    table("load", "Linear model, two workers and wrk on two cores", header, printed, costs)


if __name__ == "__main__":
    sys.exit(main())
