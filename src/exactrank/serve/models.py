"""The models of a service by name, each with the file it came from, which is read again when it changes.

A new file is read completely and scores a row of zeros before it replaces the old model in one step. If it cannot be
read, the old model stays; the log and `Models.described` say why.
"""

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from exactrank.errors import DataError
from exactrank.loading import load
from exactrank.reasons import reason_of
from exactrank.scorers.model import Model
from exactrank.text import encoded

log = logging.getLogger(__name__)
Stamp = tuple[int, int, int] | None  #: of a file: inode, size, time of its last change; None if there is no file


@dataclass(frozen=True)
class Served:
    """A model that answers, and the state of its file when it was read."""

    path: Path
    stamp: Stamp
    model: Model
    version: str  #: sixteen hexadecimal digits of a checksum of the whole model
    loaded: datetime
    problem: str | None = None  #: why the current file has not replaced it

    @classmethod
    def read(cls, path: Path) -> "Served":
        """The model at ``path``, after it has scored a row."""
        stamp, model = stamp_of(path), load(path, kind=Model)
        if stamp != stamp_of(path):
            raise DataError(f"{path} changed while it was read; it is read again once it stays the same")
        model.predict(np.zeros((1, model.scorer.n_features)), 1)
        return cls(path, stamp, model, xxhash.xxh3_64_hexdigest(model.to_bytes()), datetime.now(UTC))

    def described(self, name: str) -> dict[str, Any]:
        """What a client may know about it."""
        model, scorer = self.model, self.model.scorer
        return {
            "name": name,
            "version": self.version,
            "kind": scorer.kind,
            "n_features": scorer.n_features,
            "features": [encoded(each).decode() for each in scorer.feature_names] or None,
            "missing": scorer.missing,
            "measure": _text(model.measure),
            "ranker": _text(model.ranker),
            "estimate": _number(model.training.get("estimate")),
            "interval": _interval(model.training.get("interval")),
            "library": encoded(model.library).decode(),
            "loaded": self.loaded.isoformat(timespec="seconds"),
            "problem": self.problem,
        }


@dataclass
class Models:
    """Models by name; the first answers requests that name none."""

    served: dict[str, Served] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Mapping[str, Path]) -> "Models":
        """The models at ``paths``."""
        return cls({name: Served.read(path) for name, path in paths.items()})

    def refresh(self) -> None:
        """Read the files that have changed."""
        for name, old in list(self.served.items()):
            stamp = stamp_of(old.path)
            if stamp == old.stamp:
                continue
            try:
                new = Served.read(old.path)
            except Exception as error:  # whatever is wrong with a file, the service continues and reports it
                new = replace(old, stamp=stamp, problem=reason_of(error).replace(str(old.path), old.path.name))
                log.warning("%s: %s; version %s continues to answer", name, new.problem, old.version)
            else:
                log.warning("%s: version %s has replaced %s", name, new.version, old.version)
            self.served[name] = new


def stamp_of(path: Path) -> Stamp:
    """What distinguishes the file at ``path`` from one that replaced it."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _text(given: str | None) -> str | None:
    return None if given is None else encoded(given).decode()


def _number(given: object) -> float | None:
    return float(given) if isinstance(given, int | float) and abs(given) <= sys.float_info.max else None


def _interval(given: object) -> list[float | None] | None:
    return [_number(end) for end in given] if isinstance(given, list) and len(given) == 2 else None
