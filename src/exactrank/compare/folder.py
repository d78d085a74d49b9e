"""The folder of a comparison: one run at a time, data that is gone afterwards, and nothing deleted that no comparison made.

A run holds a lock on its folder. Its copies of the data lie in a scratch folder of its own. What an earlier run left is known by its
records: results have names that end in a hash, and each says which model files belong to it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from exactrank._support.files import checked_path, output_folder, scratch_folder, sweep_parts
from exactrank._support.locks import exclusive
from exactrank.compare.race import FITS, MODELS, RESULT
from exactrank.compare.results import FILES, RECORD, Fit, Results, read_record
from exactrank.errors import DataError, OutputExistsError

#: The file that a run locks.
LOCK = ".exactrank.lock"


@dataclass(frozen=True)
class Workplace:
    """Where a comparison works: ``folder`` is kept, ``scratch`` is not."""

    folder: Path
    scratch: Path

    def __fspath__(self) -> str:
        return os.fspath(self.folder)


@contextmanager
def workplace(out: str | os.PathLike[str] | None, resume: bool = False, force: bool = False) -> Iterator[Workplace]:
    """The folder ``out`` for this run alone, or one that is gone afterwards; a `Workplace` is taken as it is."""
    if isinstance(out, Workplace):
        yield out
        return
    if out is None:
        with scratch_folder() as folder, scratch_folder(folder) as scratch:
            yield Workplace(folder, scratch)
        return
    folder = checked_path(out)
    if folder.exists() and not folder.is_dir():
        raise OutputExistsError(f"{folder} is a file; give a folder for the report")
    with output_folder(folder), exclusive(folder / LOCK) as ours, ExitStack() as swept:
        if not ours:
            raise OutputExistsError(f"another comparison is running in {folder}; wait until it ends, or choose another folder")
        _check_content(folder, resume, force)
        if force and not resume:
            _forget(folder)
        for place in (folder, folder / FITS, folder / MODELS):
            # what fits that were killed had begun to write: those of earlier runs, and in the end those of this one
            sweep_parts(place)
            swept.callback(sweep_parts, place)
        with scratch_folder(folder) as scratch:
            yield Workplace(folder, scratch)


def _check_content(folder: Path, resume: bool, force: bool) -> None:
    """Raise if something is in the folder that the run may not replace."""
    there = {path.name for path in folder.iterdir()} - {LOCK}
    if there and not (resume or force):
        raise OutputExistsError(
            f"{folder} exists and is not empty; pass --resume (resume=True) to continue it,"
            " --force (force=True) to begin again, or choose another"
        )
    foreign = sorted(there & set(FILES))
    if foreign and not force and RECORD not in there and not _results(folder):
        raise OutputExistsError(
            f"{folder} holds {', '.join(foreign)} but no comparison to resume;"
            " pass --force (force=True) to replace what has the names of our files, or choose another"
        )


def _results(folder: Path) -> list[Path]:
    return [path for path in (folder / FITS).glob("*.json") if RESULT.search(path.name)]


def _forget(folder: Path) -> None:
    """Delete what an earlier comparison left in ``folder``, and nothing else."""
    record = folder / RECORD
    fits = list(read_record(Results, record).fits) if record.exists() else []
    results = _results(folder)
    for path in results:
        if ".final." in path.name:
            with suppress(DataError):  # it is damaged, and knows of no models
                fits.append(read_record(Fit, path))
    for model in {folder / MODELS / name for fit in fits for name in fit.models if os.path.basename(name) == name}:
        if model.is_dir() and not model.is_symlink():  # as the models of some libraries are
            shutil.rmtree(model)
        else:
            model.unlink(missing_ok=True)
    for path in (*results, record):
        path.unlink(missing_ok=True)
