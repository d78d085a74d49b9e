"""A smaller input with the same defect."""

import time
from collections.abc import Callable, Iterator


def minimized(content: bytes, fails: Callable[[bytes], bool], seconds: float = 3) -> bytes:
    """``content`` without whatever parts it can fail without, as far as the time goes: halves, then quarters, down to bytes."""
    until, size = time.monotonic() + seconds, len(content)
    while size >= 1:
        shorter = next((c for c in _without(content, size) if time.monotonic() < until and fails(c)), None)
        if shorter is None:
            size //= 2
        else:
            content = shorter
            size = min(size, len(content))
    return content


def _without(content: bytes, size: int) -> Iterator[bytes]:
    return (content[:at] + content[at + size :] for at in range(0, len(content), size))
