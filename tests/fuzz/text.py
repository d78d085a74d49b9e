"""Text by lines: LETOR, TREC runs and qrels, and files of scores."""

from functools import cache
from pathlib import Path

import numpy as np

import exactrank as er
from exactrank.data.formats.trec import from_trec, read_qrels, read_run, scores_of
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from tests.fuzz.mutations import ODD_WORDS, mutated, one_of, soup
from tests.fuzz.target import Target, require
from tests.fuzz.usage import use, use_file

LETOR = [
    b"1",
    b"0",
    b"-1",
    b"2.5",
    b" ",
    b" ",
    b" ",
    b"\n",
    b"\n",
    b" qid:",
    b" qid:1",
    b" qid:a",
    b":",
    b" 1:",
    b" 1:0.5",
    b" 2:1e-3",
    b" 0:1",
]
LETOR += [b" 3000000000:1", b" 70000:1", b"# docid = a", b" #", b" 1:NULL", b" 1:nan", *ODD_WORDS]
TREC = [
    b"1",
    b"2",
    b" ",
    b" ",
    b" ",
    b"\n",
    b"\n",
    b" 0 ",
    b" Q0 ",
    b" d1 ",
    b" d2 ",
    b"1.5",
    b" bm25\n",
    b"1 Q0 d1 1 2.5 bm25\n",
    b"1 0 d1 1\n",
]
TREC += [*ODD_WORDS]


def letor_text(rng: np.random.Generator) -> bytes:
    """Lines of words at random, or a good file with some bytes changed."""
    if rng.random() < 0.4:
        return soup(rng, LETOR)
    line = b"%d qid:%d 1:%g 3:%g # docid = d%d"
    lines = [line % (rng.integers(4), i // 4, rng.normal(), rng.normal(), i) for i in range(rng.integers(1, 30))]
    return mutated(rng, b"\n".join(lines), LETOR)


def trec_text(rng: np.random.Generator, line: bytes) -> bytes:
    """Lines of words at random, or a good file, whose line is like ``line``, with some bytes changed."""
    if rng.random() < 0.4:
        return soup(rng, TREC)
    return mutated(rng, b"".join(line % (i // 4, i % 6, rng.integers(5)) for i in range(rng.integers(1, 30))), TREC)


def scores_text(rng: np.random.Generator) -> bytes:
    """As many scores as `judged` has documents, some of them odd, or anything."""
    if rng.random() < 0.2:
        return soup(rng, TREC)
    lines = [b"%g" % rng.normal() for _ in range(judged().n_documents)]
    if rng.random() < 0.5:
        lines[rng.integers(len(lines))] = one_of(rng, ODD_WORDS)
        return b"\n".join(lines)
    return mutated(rng, b"\n".join(lines))


@cache
def judged() -> RankingData:
    """Judged documents for runs and scores."""
    grades = np.arange(24) % 3.0
    return RankingData.from_arrays(None, grades, qid=np.arange(24) // 6, docid=[f"d{i % 6}" for i in range(24)])


def use_qrels(path: Path) -> None:
    """Judgments alone."""
    use(from_trec(read_qrels(path)))


def use_run(path: Path) -> None:
    """A run beside judgments, and as their feature."""
    run = read_run(path)
    data, scores = scores_of(judged(), run)
    require(len(scores) == data.n_documents, "there is a score per document")
    use(data)
    er.evaluate(data, scores, ["nDCG@10", "AP"])


def use_scores(path: Path) -> None:
    """Scores evaluated on the data that they belong to."""
    data, scores = read_scores(path, judged())
    require(len(scores) == data.n_documents and not np.any(np.isnan(scores)), "there is a score per document, and it is a number")
    er.evaluate(data, scores, ["nDCG@10", "AP"])


TARGETS = [
    Target("letor", ".txt", letor_text, use_file),
    Target("qrels", ".qrels", lambda rng: trec_text(rng, b"%d 0 d%d %d\n"), use_qrels),
    Target("runs", ".run", lambda rng: trec_text(rng, b"%d Q0 d%d 1 %d.5 bm25\n"), use_run),
    Target("scores", ".scores", scores_text, use_scores),
]
