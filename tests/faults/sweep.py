"""Every n of every fault."""

import errno
from dataclasses import replace

from tests.faults.comparing import ComparisonBench
from tests.faults.laws import Bench
from tests.faults.shim import Fault

FAULTS = [
    Fault("write", "fail", error=errno.EIO),
    Fault("write", "fail", error=errno.ENOSPC, lasts=True),
    Fault("write", "short"),
    Fault("write", "kill"),
    Fault("sync", "fail", error=errno.EIO),
    Fault("sync", "kill"),
    Fault("rename", "fail", error=errno.EIO),
    Fault("rename", "kill"),
    Fault("map", "fail", error=errno.ENOMEM),
    Fault("map", "kill"),
    Fault("truncate", "fail", error=errno.ENOSPC),
    Fault("truncate", "kill"),
    Fault("open", "fail", error=errno.EMFILE),
    Fault("open", "fail", error=errno.ENOSPC, lasts=True),
    Fault("open", "kill"),
    Fault("unlink", "fail", error=errno.EIO),
    Fault("unlink", "kill"),
    Fault("allocate", "fail", error=errno.ENOMEM),
    Fault("allocate", "fail", error=errno.ENOMEM, lasts=True),
    Fault("thread", "fail", error=errno.EAGAIN),
    Fault("thread", "fail", error=errno.EAGAIN, lasts=True),
    Fault("fork", "fail", error=errno.EAGAIN, lasts=True),
]
MOST = 3000  #: calls of a kind; an operation with more never ends


def swept(bench: Bench | ComparisonBench, fault: Fault, step: int = 1) -> tuple[int, list[str]]:
    """At how many calls the fault happened, until the operation went through, and the laws that were broken.

    With a ``step`` of n only every n-th call is tried.
    """
    broken = []
    for tried, n in enumerate(range(1, MOST, step)):
        try:
            if not bench.struck(replace(fault, n=n)):
                return tried, broken
        except AssertionError as error:
            broken.append(str(error))
    raise AssertionError(f"{bench.operation.name} has more than {MOST} calls of {fault.kind}")
