"""One input tried: read, refused, or a defect; here, or in a process of its own that may crash or hang."""

import faulthandler
import os
import pickle
import resource
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from exactrank.errors import ExactRankError
from tests.fuzz.target import NoInputError, Target, require

MEMORY = 2 << 30  #: bytes that an input may take beyond what the libraries have
LONGEST = 20_000  #: characters of an error


@dataclass(frozen=True)
class Outcome:
    """What came of an input; of a defect the ``said`` names its place, so that two inputs with the same defect say the same."""

    verdict: str  #: "read", "refused", "defect", or "void" where it is no input
    said: str = ""
    told: str = ""  #: the traceback of a defect


def tried(target: Target, path: Path) -> Outcome:
    """The outcome, in this process."""
    try:
        target.used(path)
    except ExactRankError as error:
        return _refused(error)
    except NoInputError as error:
        return Outcome("void", str(error))
    except Exception as error:
        return Outcome("defect", _place(error), "".join(traceback.format_exception(error))[-LONGEST:])
    return Outcome("read")


def _refused(error: ExactRankError) -> Outcome:
    message = str(error)
    try:
        require(0 < len(message) <= LONGEST, "an error says something, in at most 20 kB")
    except Exception as broken:
        return Outcome("defect", f"{_place(broken)} {type(error).__name__} of {len(message)} characters", message[:LONGEST])
    return Outcome("refused", message)


def _place(error: BaseException) -> str:
    """The type of an error and the innermost line of the library that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    frames_of_ours = [frame for frame in frames if "/exactrank/" in frame.filename] or list(frames)
    return f"{type(error).__name__} at {Path(frames_of_ours[-1].filename).name}:{frames_of_ours[-1].name}" + (
        f": {error}" if type(error).__name__ == "BrokenLawError" else ""
    )


def limit_memory() -> None:
    """Bound the memory of this process, unless a sanitizer needs all addresses for itself."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY,) * 2)


def watch(seconds: float) -> None:
    """End this process with a traceback where the next input takes longer, in native code too."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)


def apart(target: Target, path: Path, seconds: float) -> Outcome:
    """The outcome in a process of its own."""
    hears, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(hears)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        limit_memory()
        watch(seconds)
        with os.fdopen(says, "wb") as pipe:
            pipe.write(pickle.dumps(tried(target, path)))
        os._exit(0)
    os.close(says)
    with os.fdopen(hears, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    return ended(os.waitstatus_to_exitcode(status)) or pickle.loads(answer)


def ended(code: int) -> Outcome | None:
    """The defect that the end of a process shows, where it shows one."""
    if code == 0:
        return None
    return Outcome("defect", signal.Signals(-code).name if code < 0 else f"a hang, or an error of a sanitizer (exit code {code})")
