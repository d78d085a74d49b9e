"""Scores that somebody else made, as a contender: one per line, or a TREC run."""

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.files import missing_file, open_bytes
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.results import FeatureWeights, Point
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from exactrank.errors import DataError

#: The largest file of scores, in bytes: a fixed part, and a part per document.
LARGEST, LARGEST_LINE = 16 << 20, 1 << 10


@dataclass(frozen=True)
class ScoresFile(Contender):
    """The scores in the file ``path``, in which ``{dataset}`` and ``{fold}`` stand for the names of these.

    One per line: for the test documents of the fold, or for all documents of the file that is divided, in its order. A TREC run is
    matched by query and document, as in `er.evaluate`: documents that the data lacks count as not relevant and keep their
    ranks, and those that the run lacks count as not retrieved. If the data has no document ids, a run names the rows of the whole file.
    """

    name: str
    path: str

    @property
    def about(self) -> str:
        return f"Scores from {self.path}"

    @property
    def fingerprint(self) -> str:
        """Other content is another contender."""
        anywhere = glob.escape(self.path).replace("{dataset}", "*").replace("{fold}", "*")
        return repr((self, [(file, os.stat(file).st_size, os.stat(file).st_mtime_ns) for file in sorted(glob.glob(anywhere))]))

    def fit(self, task: ContenderTask, settings: Mapping[str, Any]) -> Fitted:
        path = self.path.replace("{dataset}", task.dataset).replace("{fold}", task.fold.name)
        test, whole = task.fold.test, sum(part.n_documents for part in (task.fold.train, task.fold.valid, task.fold.test))
        check_scores_file(path, whole)
        with open_bytes(path) as file:
            lines = file.read().rstrip().splitlines()
        one_a_line = bool(lines) and len(lines[0].split()) == 1
        if not one_a_line:
            if test.docid is None:
                test = replace(test, docid=TextColumn.of(test.group(task.test_rows)))
            rows, scores = read_scores(path, test)
            return GivenScores({"path": path, "unjudged": rows.n_documents - test.n_documents}, {"test": scores}, {"test": rows})
        if len(lines) == test.n_documents:
            scores = read_scores(path, test)[1]
        elif len(lines) == whole:
            scores = read_scores(path, RankingData.from_arrays(None, np.zeros(whole), group=[whole]))[1][task.test_rows]
        else:
            raise DataError(
                f"{path} has {len(lines):,} lines; give one score for each of the {test.n_documents:,} test documents of {task.fold.name},"
                f" or for each of the {whole:,} of the whole file"
            )
        return GivenScores({"path": path}, {"test": scores})


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Scores by the part whose documents they are for, in the order of its rows; there is no model.

    ``documents`` are those that the scores are for, by part, where these are more than the part has: what a run retrieved besides.
    """

    settings: Mapping[str, Any]
    given: Mapping[str, PerDocument]
    documents: Mapping[str, RankingData] = field(default_factory=dict)
    curve: tuple[Point, ...] = ()
    weights: FeatureWeights | None = None

    def scores(self, part: str, data: RankingData) -> PerDocument | None:
        """Those that were given."""
        return self.given.get(part)

    def save(self, folder: Path, name: str) -> None:
        """Nothing: there is no model."""


def check_scores_file(path: str | os.PathLike[str], documents: int) -> None:
    """Raise where ``path`` is a pipe, a device or a folder, or larger than the scores of the documents can be."""
    if not os.path.exists(path):
        raise missing_file(path)
    if not os.path.isfile(path):
        raise DataError(f"{path} is not a regular file; write the scores to one")
    size, most = os.stat(path).st_size, LARGEST + LARGEST_LINE * documents
    if size > most:
        raise DataError(
            f"{path} has {size:,} bytes, too many for scores of {documents:,} documents (at most {most:,}); check what it holds"
        )
