"""The folder of a comparison: one run at a time; copies of data are deleted afterwards; only files that a comparison made are deleted.

A run holds a lock on its folder, and has a scratch folder for its copies of the data. The files of an earlier run are known by its
records: results have names that end in a hash, and each names its model files.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from exactrank._support.files import checked_path, output_folder, scratch_folder, sweep_parts
from exactrank._support.locks import exclusive
from exactrank.compare.results import FILES, RECORD, Fit, Results, read_record
from exactrank.compare.schedule import FITS, MODELS, RESULT
from exactrank.errors import DataError, OutputExistsError

#: The file that a run locks.
LOCK = ".exactrank.lock"


@dataclass(frozen=True)
class ComparisonFolder:
    """The folder of a comparison; its ``scratch`` folder is deleted afterwards."""

    folder: Path
    scratch: Path

    def __fspath__(self) -> str:
        return os.fspath(self.folder)


@contextmanager
def comparison_folder(out: str | os.PathLike[str] | None, resume: bool = False, force: bool = False) -> Iterator[ComparisonFolder]:
    """Lock the folder ``out``, or make one that is deleted afterwards; a `ComparisonFolder` is passed through."""
    if isinstance(out, ComparisonFolder):
        yield out
        return
    if out is None:
        with scratch_folder() as folder, scratch_folder(folder) as scratch:
            yield ComparisonFolder(folder, scratch)
        return
    folder = checked_path(out)
    if folder.exists() and not folder.is_dir():
        raise OutputExistsError(f"{folder} is a file; give a folder for the report")
    with output_folder(folder), exclusive(folder / LOCK) as is_locked, ExitStack() as cleanup:
        if not is_locked:
            raise OutputExistsError(f"another comparison is running in {folder}; wait until it ends, or choose another folder")
        _check_content(folder, resume, force)
        if force and not resume:
            _delete_comparison(folder)
        for subfolder in (folder, folder / FITS, folder / MODELS):
            # Fits that were killed leave incomplete files: those of earlier runs, and in the end those of this one.
            sweep_parts(subfolder)
            cleanup.callback(sweep_parts, subfolder)
        with scratch_folder(folder) as scratch:
            yield ComparisonFolder(folder, scratch)


def _check_content(folder: Path, resume: bool, force: bool) -> None:
    """Raise if something is in the folder that the run may not replace."""
    names = {path.name for path in folder.iterdir()} - {LOCK}
    if names and not (resume or force):
        raise OutputExistsError(
            f"{folder} exists and is not empty; continue it with resume=True (--resume),"
            " begin again with force=True (--force), or choose another"
        )
    foreign = sorted(names & set(FILES))
    if foreign and not force and RECORD not in names and not _results(folder):
        raise OutputExistsError(
            f"{folder} holds {', '.join(foreign)} but no comparison to resume;"
            " replace what has the names of our files with force=True (--force), or choose another"
        )


def _results(folder: Path) -> list[Path]:
    return [path for path in (folder / FITS).glob("*.json") if RESULT.search(path.name)]


def _delete_comparison(folder: Path) -> None:
    """Delete the files of an earlier comparison in ``folder``, and nothing else."""
    record = folder / RECORD
    fits = list(read_record(Results, record).fits) if record.exists() else []
    results = _results(folder)
    for path in results:
        if ".final." in path.name:
            with suppress(DataError):  # it is damaged, and names no models
                fits.append(read_record(Fit, path))
    for model in {folder / MODELS / name for fit in fits for name in fit.models if os.path.basename(name) == name}:
        if model.is_dir() and not model.is_symlink():  # as the models of some libraries are
            shutil.rmtree(model)
        else:
            model.unlink(missing_ok=True)
    for path in (*results, record):
        path.unlink(missing_ok=True)
