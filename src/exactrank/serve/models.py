"""The models of a service by name, each with the file that it came from and is read from anew when that changes.

A new file is read whole, and has scored a row of zeros, before it takes the place of the old one, at once. One that cannot be
read leaves the old model where it is; why is told in the log and by `Models.described`.
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

from exactrank.errors import DataError, IncompatibleError
from exactrank.imports.load import load
from exactrank.reasons import reason_of
from exactrank.scorers.model import Model
from exactrank.text import encoded

log = logging.getLogger(__name__)
Stamp = tuple[int, int, int] | None  #: of a file: number, size, time of its last change; None where there is none


@dataclass(frozen=True)
class Served:
    """A model that answers, and its file as it was when it was read."""

    path: Path
    stamp: Stamp
    model: Model
    version: str  #: sixteen hexadecimal digits of a checksum of all that the model is
    loaded: datetime
    problem: str | None = None  #: why the file as it is now has not taken its place

    @classmethod
    def read(cls, path: Path) -> "Served":
        """The model at ``path``, once it has scored."""
        stamp, model = stamp_of(path), load(path)
        if not isinstance(model, Model):
            raise IncompatibleError(f"{path} is a fusion of systems, not a model; exactrank fuse apply takes it")
        if stamp != stamp_of(path):
            raise DataError(f"{path} changed while it was read; it is read again when it stays as it is")
        model.predict(np.zeros((1, model.scorer.n_features)), 1)
        return cls(path, stamp, model, xxhash.xxh3_64_hexdigest(model.to_bytes()), datetime.now(UTC))

    def described(self, name: str) -> dict[str, Any]:
        """What a client may know of it."""
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
    """Models by name; the first is the one that is asked where a request names none."""

    served: dict[str, Served] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Mapping[str, Path]) -> "Models":
        """The models at ``paths``."""
        return cls({name: Served.read(path) for name, path in paths.items()})

    def refresh(self) -> None:
        """Read those files anew that have changed."""
        for name, old in list(self.served.items()):
            stamp = stamp_of(old.path)
            if stamp == old.stamp:
                continue
            try:
                new = Served.read(old.path)
            except Exception as error:  # whatever is wrong with a file, the service goes on and says so
                new = replace(old, stamp=stamp, problem=reason_of(error).replace(str(old.path), old.path.name))
                log.warning("%s: %s; version %s goes on answering", name, new.problem, old.version)
            else:
                log.warning("%s: version %s has taken the place of %s", name, new.version, old.version)
            self.served[name] = new


def stamp_of(path: Path) -> Stamp:
    """What tells the file at ``path`` from one that took its place."""
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
