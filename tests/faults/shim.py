"""The shim: built with ``cc``, armed through a file that all processes map."""

import ctypes
import errno
import mmap
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
KINDS = ("write", "sync", "rename", "map", "truncate", "open", "unlink", "allocate", "thread", "fork", "network")
ACTIONS = ("count", "fail", "short", "kill")
VARIABLE = "EXACTRANK_FAULTS"
#: Why there is no shim here, or nothing.
UNAVAILABLE = (
    "the shim needs Linux"
    if sys.platform != "linux"
    else "there is no C compiler to build the shim with"
    if shutil.which("cc") is None
    else ""
)


@dataclass(frozen=True)
class Fault:
    """What happens at the ``n``-th call of a kind: nothing, an error, half of a write, or the end of the process."""

    kind: str
    action: str = "count"
    n: int = 0
    error: int = errno.EIO
    lasts: bool = False  #: all later calls fail too, as on a full disk
    size: int = 1 << 16  #: bytes from which on an allocation counts

    def __str__(self) -> str:
        what = errno.errorcode[self.error] if self.action == "fail" else self.action
        return f"{what} at {self.kind} {self.n}" + (" and after" if self.lasts else "")


class Plan(ctypes.Structure):
    """As in shim.c."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        ("n", ctypes.c_uint64),
        ("kind", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("error", ctypes.c_uint32),
        ("lasts", ctypes.c_uint32),
        ("size", ctypes.c_uint64),
        ("folder", ctypes.c_char * 4096),
    )

    @classmethod
    def shared(cls) -> "Plan":
        """That of this process and its children."""
        with open(os.environ[VARIABLE], "r+b") as file:
            return cls.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(cls)))

    def arm(self, fault: Fault, folder: str) -> None:
        """From now on calls count; the kind comes last, since the others mean nothing without it."""
        self.kind = len(KINDS)
        self.count, self.n, self.action, self.error = 0, fault.n, ACTIONS.index(fault.action), fault.error
        self.lasts, self.size, self.folder = fault.lasts, fault.size, folder.encode()
        self.kind = KINDS.index(fault.kind)

    def disarm(self) -> int:
        """No call counts any more; how many did."""
        self.kind = len(KINDS)
        return int(self.count)


def environment(folder: Path) -> dict[str, str]:
    """The variables of a process with the shim, which is built in ``folder``; it counts nothing until it is armed."""
    library, plan = folder / "shim.so", folder / "plan"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    empty = Plan()
    empty.disarm()
    plan.write_bytes(bytes(empty))
    return {"LD_PRELOAD": str(library), VARIABLE: str(plan)}
