"""What all pictures share: the kinds of file, and matplotlib, which is optional."""

from importlib.util import find_spec
from pathlib import Path

from exactrank.errors import DataError, IncompatibleError

SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Raise where a picture cannot be made at ``path``: before the work, not after it."""
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: the suffix {path.suffix!r} names no kind of picture; use one of {', '.join(SUFFIXES)}")
    if find_spec("matplotlib") is None:
        raise IncompatibleError("a picture needs matplotlib, which is not installed; pip install 'exactrank[report]'")
