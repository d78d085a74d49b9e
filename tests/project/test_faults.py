"""Commands that write, with a fault at every call: the old file or the new one is there, whole, and the end is an honest one.

`make faults` sweeps all commands and all faults. Here are the commands that take milliseconds: one that maps what it writes and one that
writes twice, with the faults that matter most; and, since the others share their way of writing, those that tell whether they do.
"""

import errno

import pytest

from tests.faults.laws import OLD, Bench
from tests.faults.operations import OPERATIONS, QUICK
from tests.faults.shim import UNAVAILABLE, Fault
from tests.faults.sweep import FAULTS, swept

pytestmark = pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE)
#: What these are short for is in `FAULTS` too.
CHOSEN = [fault for fault in FAULTS if fault.kind not in ("thread", "fork") and not (fault.lasts and fault.kind in ("open", "allocate"))]
FEW = [fault for fault in CHOSEN if fault.kind in ("write", "rename") and fault.action != "short" and not fault.lasts]


@pytest.fixture(scope="module")
def benches(driver, inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("benches")
    return {name: Bench(OPERATIONS[name], driver, inputs, folder) for name in QUICK}


@pytest.mark.parametrize("name", QUICK)
def test_every_call_may_fail_or_be_the_last(benches, name):
    chosen = CHOSEN if name in ("convert", "train") else FEW
    results = {str(fault): swept(benches[name], fault, 25 if fault.kind == "allocate" else 1) for fault in chosen}
    assert not [law for _, broken in results.values() for law in broken]
    assert results["EIO at write 0"][0] >= 1
    assert results["kill at rename 0"][0] >= 1


def test_the_shim_strikes(benches):
    """Without faults nothing fails; a fault at the first write leaves the old file and says so."""
    bench = benches["convert"]
    with bench.folder() as folder:
        ended = bench.run(folder, Fault("write", "fail", 1, errno.ENOSPC))
        assert ended.code == 1
        assert "No space left on device" in ended.err
        assert (folder / "out.xr").read_bytes() == OLD
    with bench.folder() as folder:
        assert bench.run(folder, Fault("write")).count > 1


def test_the_laws_notice(benches, monkeypatch):
    """A bench that expects another file says that neither is there."""
    bench = benches["predict"]
    monkeypatch.setattr(bench, "new", b"another")
    with pytest.raises(AssertionError, match="neither the old file nor the new one"):
        bench.struck(Fault("write", "short", 1))
