"""Every input that ever failed, or could: what was refused is refused with an `ExactRankError`, what was read is read, and nothing else.

The name of a file begins with what must come of it, ``refused-`` or ``read-``, and then says what is special about it. The inputs of
``forged_caches`` are edits to a good cache, made by ``tests/fuzz/caches.py`` with right checksums.
"""

import json
import subprocess
import sys

import pytest

from tests.fuzz.targets import TARGETS

INPUTS = [f"{target.name}/{path.name}" for target in TARGETS.values() for path in target.corpus()]


@pytest.fixture(scope="module")
def outcomes():
    """Each input is tried in a process of its own, with little memory and ten seconds."""
    result = subprocess.run([sys.executable, "-m", "tests.fuzz", "--replay"], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_that_failed_once(outcomes, name):
    verdict, said, message = outcomes[name]
    assert verdict == name.partition("/")[2].partition("-")[0], f"{verdict}: {said}\n{message}"


def test_the_judge_sees_defects(tmp_path):
    """A target that crashes, hangs, fails or takes memory without bound is a defect, whose input is made small."""
    from tests.fuzz.minimize import minimized
    from tests.fuzz.target import Target
    from tests.fuzz.trial import apart

    def misbehave(path):
        import os
        import threading

        {b"crash": os.abort, b"hang": threading.Event().wait, b"fail": lambda: 1 / 0, b"memory": lambda: bytearray(8 << 30)}[
            path.read_bytes()
        ]()

    message = {}
    for word, seconds in ((b"crash", 60), (b"hang", 0.5), (b"fail", 60), (b"memory", 60)):
        (tmp_path / "input.txt").write_bytes(word)
        message[word] = apart(Target("bad", ".txt", lambda rng: b"", misbehave), tmp_path / "input.txt", seconds)
    assert {outcome.verdict for outcome in message.values()} == {"defect"}
    assert message[b"crash"].said == "SIGABRT"
    assert "hang" in message[b"hang"].said
    assert "ZeroDivisionError" in message[b"fail"].said
    assert "MemoryError" in message[b"memory"].said
    assert minimized(b"many bytes, of which X is the bad one", lambda content: b"X" in content) == b"X"
