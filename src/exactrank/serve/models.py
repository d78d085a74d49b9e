"""The models of a service by name, each with its file, which is reloaded when it changes.

A new model is read completely and scores a row of zeros before it replaces the old one in a single step. If it cannot be
read, the old model stays; the log and `ServedModel.describe` say why.
"""

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import xxhash

from exactrank._support.text import encode, reason_of
from exactrank.errors import DataError
from exactrank.loading import load
from exactrank.models.model import Model
from exactrank.serve.schema import ModelDescription

log = logging.getLogger(__name__)
Stamp = tuple[int, int, int] | None  #: a file's inode, size and time of last change; None if there is no file


@dataclass(frozen=True)
class ServedModel:
    """A loaded model, and the state of its file when it was read."""

    path: Path
    stamp: Stamp
    model: Model
    version: str  #: sixteen hexadecimal digits of a checksum of the whole model
    loaded: datetime
    problem: str | None = None  #: why the current file has not replaced it

    @classmethod
    def read(cls, path: Path) -> "ServedModel":
        """Load the model at ``path``, after a trial on a row of zeros."""
        stamp, model = stamp_of(path), load(path, kind=Model)
        if stamp != stamp_of(path):
            raise DataError(f"{path} changed while it was read; it is read again once it stays the same")
        model.with_cutoff(None).predict(np.zeros((1, model.scorer.n_features)), 1)
        return cls(path, stamp, model, xxhash.xxh3_64_hexdigest(model.to_bytes()), datetime.now(UTC))

    def describe(self, name: str) -> ModelDescription:
        """Return the description of the model for clients."""
        model, scorer = self.model, self.model.scorer
        return ModelDescription(
            name=name,
            version=self.version,
            kind=scorer.kind,
            n_features=scorer.n_features,
            features=[encode(feature).decode() for feature in scorer.feature_names] or None,
            missing=scorer.missing,
            measure=_text(model.measure),
            ranker=_text(model.ranker),
            estimate=_number(model.training.get("estimate")),
            interval=_interval(model.training.get("interval")),
            library=encode(model.library).decode(),
            loaded=self.loaded.isoformat(timespec="seconds"),
            problem=self.problem,
        )


@dataclass
class Models:
    """The models of a service by name; the first answers requests that name none."""

    served: dict[str, ServedModel] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Mapping[str, Path]) -> "Models":
        """Load the models at ``paths``."""
        return cls({name: ServedModel.read(path) for name, path in paths.items()})

    def refresh(self) -> None:
        """Reload the models whose files have changed."""
        for name, old in list(self.served.items()):
            stamp = stamp_of(old.path)
            if stamp == old.stamp:
                continue
            try:
                new = ServedModel.read(old.path)
            except Exception as error:  # whatever is wrong with a file, the service continues and reports it
                new = replace(old, stamp=stamp, problem=reason_of(error).replace(str(old.path), old.path.name))
                log.warning("%s: %s; version %s continues to answer", name, new.problem, old.version)
            else:
                log.warning("%s: version %s has replaced %s", name, new.version, old.version)
            self.served[name] = new


def stamp_of(path: Path) -> Stamp:
    """Return the numbers that distinguish the file at ``path`` from one that replaces it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _text(text: str | None) -> str | None:
    return None if text is None else encode(text).decode()


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) <= sys.float_info.max else None


def _interval(ends: object) -> list[float | None] | None:
    return [_number(end) for end in ends] if isinstance(ends, list) and len(ends) == 2 else None
