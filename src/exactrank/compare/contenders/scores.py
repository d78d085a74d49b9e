"""Files of scores as contenders: one score per line, or a TREC run."""

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.files import missing_file, open_bytes
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.results import Settings
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from exactrank.errors import DataError

#: The largest file of scores, in bytes: a fixed part, and a part per document.
LARGEST, LARGEST_LINE = 16 << 20, 1 << 10


@dataclass(frozen=True)
class ScoresFile(Contender):
    """The scores in the file ``path``, in which ``{dataset}`` and ``{fold}`` stand for the names of the data set and the fold.

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
        """The size and time of each file, since other content makes another contender."""
        pattern = glob.escape(self.path).replace("{dataset}", "*").replace("{fold}", "*")
        return repr((self, [(file, os.stat(file).st_size, os.stat(file).st_mtime_ns) for file in sorted(glob.glob(pattern))]))

    def fit(self, task: ContenderTask, settings: Settings) -> Fitted:
        path = self.path.replace("{dataset}", task.dataset).replace("{fold}", task.fold.name)
        test, all_documents = task.fold.test, sum(part.n_documents for part in (task.fold.train, task.fold.valid, task.fold.test))
        check_scores_file(path, all_documents)
        with open_bytes(path) as file:
            lines = file.read().rstrip().splitlines()
        if not lines or len(lines[0].split()) > 1:  # a run
            if test.docid is None:
                test = replace(test, docid=TextColumn.of(test.group(task.test_rows)))
            rows, scores = read_scores(path, test)
            return precomputed_scores({"path": path, "unjudged": rows.n_documents - test.n_documents}, {"test": scores}, {"test": rows})
        if len(lines) == test.n_documents:
            scores = read_scores(path, test)[1]
        elif len(lines) == all_documents:
            data = RankingData.from_arrays(None, np.zeros(all_documents), group=[all_documents])
            scores = read_scores(path, data)[1][task.test_rows]
        else:
            raise DataError(
                f"{path} has {len(lines):,} lines; give one score for each of the {test.n_documents:,} test documents of {task.fold.name},"
                f" or for each of the {all_documents:,} of the whole file"
            )
        return precomputed_scores({"path": path}, {"test": scores})


def precomputed_scores(settings: Settings, by_part: Mapping[str, PerDocument], documents: Mapping[str, RankingData] = {}) -> Fitted:
    """Return scores by part of the fold, without a model; a run may retrieve more ``documents`` than a part has."""
    return Fitted(settings, lambda part, data: by_part.get(part), documents=documents)


def check_scores_file(path: str | os.PathLike[str], documents: int) -> None:
    """Raise if ``path`` is a pipe, a device or a folder, or larger than the scores of the documents can be."""
    if not os.path.exists(path):
        raise missing_file(path)
    if not os.path.isfile(path):
        raise DataError(f"{path} is not a regular file; write the scores to one")
    size, largest = os.stat(path).st_size, LARGEST + LARGEST_LINE * documents
    if size > largest:
        raise DataError(
            f"{path} has {size:,} bytes, too many for scores of {documents:,} documents (at most {largest:,}); check its content"
        )
