"""The systems of a hybrid search as data, one feature each: from runs, from a frame, or from some features of other data.

A system's name is its key in a mapping, or the name of its run's file. An engine breaks ties by its number of a document, which is the same
in all its lists. So the documents of a query are in the order of the runs, whatever their grades, and of equal scores the earlier row wins.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from exactrank._support.arguments import checked_list
from exactrank._support.files import checked_path
from exactrank.data.duplicates import first_duplicate
from exactrank.data.formats.base import Columns
from exactrank.data.formats.trec import UNJUDGED, ByQuery, Judgments, RetrievalRun, from_trec, read_qrels, read_run
from exactrank.data.ranking_data import RankingData
from exactrank.data.sharded import open_shards
from exactrank.data.shards import Shards, concatenate
from exactrank.errors import DataError

Source = str | os.PathLike[str] | RetrievalRun


def systems_from_runs(qrels: str | os.PathLike[str], runs: Mapping[str, Source] | Sequence[Source]) -> RankingData:
    """Read judgments and TREC runs as data for [`er.fuse`][exactrank.fuse], with one feature per run.

    ``runs`` maps names of systems to files or to results of [`er.read_run`][exactrank.read_run]; in a list, files are named by their stem
    and runs by their tag.
    """
    named, judged = named_runs(runs), read_qrels(qrels).by_query
    data = from_trec(_pool(judged, named, judged), named)
    _check_common_queries(named)
    return data


def systems_to_judge(grades: ByQuery, runs: Mapping[str, Source]) -> RankingData:
    """Read runs as data with these grades: all their queries and documents, judged or not, and the judged documents of no run."""
    named = named_runs(runs)
    _check_common_queries(named)
    queries = dict.fromkeys(query for run in named for query in run.by_query)
    if grades and queries.keys().isdisjoint(grades):
        theirs, ours = next(iter(grades)), next(iter(queries))
        raise DataError(f"no judged query (such as {theirs!r}) is in a run (such as {ours!r}); give files of the same queries")
    return from_trec(_pool(queries, named, grades), named)


def systems_without_grades(runs: Mapping[str, Source]) -> RankingData:
    """Read runs as data without judgments: all their queries and documents."""
    named = named_runs(runs)
    _check_common_queries(named)
    return from_trec(_pool(dict.fromkeys(query for run in named for query in run.by_query), named, {}), named)


def systems_from_frame(frame: object, systems: Sequence[str], columns: Columns | None = None) -> RankingData:
    """Read score columns of a pandas, polars or Arrow frame as data for [`er.fuse`][exactrank.fuse]; null: not retrieved."""
    return RankingData.from_frame(frame, replace(columns or Columns(), features=distinct(systems)))


def select_systems(data: RankingData, systems: Sequence[str]) -> RankingData:
    """Return data with only the features ``systems``, in its own order."""
    absent = [name for name in distinct(systems) if name not in data.feature_names]
    if absent:
        names = ", ".join(data.feature_names[:20]) + (", ..." if data.n_features > 20 else "")
        raise DataError(f"the data has no system {', '.join(map(repr, absent))}; it has {names or 'none'}")
    texts = [name for name in systems if name in data.levels]
    if texts:
        raise DataError(f"system {texts[0]!r} holds text, not scores; leave it out, or give its scores as numbers")
    columns = [data.feature_names.index(name) for name in systems]
    X = data.X if columns == list(range(data.n_features)) else data.X[:, columns]
    offset = None if data.offset is None else data.offset[columns]
    return replace(data, X=X, feature_names=tuple(systems), order=None, offset=offset, levels={})


def systems_in_shards(shards: Shards, systems: Sequence[str] | None, columns: Sequence[str] = ()) -> RankingData:
    """Read only the features ``systems``, and other ``columns``, of data in several files, one part at a time."""
    data = open_shards(shards, None)
    named = data.feature_names if systems is None else distinct(systems)
    further = [name for name in dict.fromkeys(columns) if name not in named and name not in data.facts[0].extra_columns]
    columns = [*named, *further]
    return concatenate([select_systems(partition.load(), columns) for partition in data.partitions])


def named_runs(runs: Mapping[str, Source] | Sequence[Source]) -> list[RetrievalRun]:
    """Return the runs with the names of their systems as tags."""
    listed = runs if isinstance(runs, Mapping) else checked_list("runs", runs, "a list of runs, or a mapping of names to runs")
    pairs = list(listed.items()) if isinstance(listed, Mapping) else [(system_name(run), run) for run in listed]
    distinct([name for name, _ in pairs])
    return [replace(source if isinstance(source, RetrievalRun) else read_run(source), tag=name) for name, source in pairs]


def _check_common_queries(runs: Sequence[RetrievalRun]) -> None:
    """Raise if a run has no query in common with any other."""
    for run in runs:
        rest = [other_run for other_run in runs if other_run is not run]
        if rest and all(run.by_query.keys().isdisjoint(other_run.by_query) for other_run in rest):
            ours, theirs = next(iter(run.by_query)), next(iter(rest[0].by_query))
            raise DataError(
                f"no query of run {run.tag!r} (such as {ours!r}) is in another run (such as {theirs!r} of {rest[0].tag!r}); "
                "give runs of the same queries"
            )


def system_name(run: Source) -> str:
    """Return the tag of a run, or the name of its file without suffixes.

    >>> system_name("runs/bm25.run.gz")
    'bm25'
    """
    return run.tag if isinstance(run, RetrievalRun) else checked_path(run).name.removesuffix(".gz").rsplit(".", 1)[0]


def distinct(systems: Sequence[str]) -> tuple[str, ...]:
    """Return the names, or raise if two are the same."""
    systems = checked_list("systems", systems, "a list of names")
    repeated = first_duplicate(systems)
    if repeated is not None:
        raise DataError(f"system {repeated!r} is named twice; give each its own name (for runs: NAME=FILE)")
    return tuple(systems)


def _pool(queries: Iterable[str], runs: Sequence[RetrievalRun], grades: ByQuery) -> Judgments:
    """Return all documents of some queries with their grades: those of the runs in their order, then judged ones of no run."""
    qid, docid, grade = list[str](), list[str](), list[float]()
    for query in queries:
        judged, pool = grades.get(query, {}), dict[str, float]()
        for run in runs:
            pool |= run.by_query.get(query, {})
        documents = list(pool | judged)
        qid += [query] * len(documents)
        docid += documents
        grade += [judged.get(document, UNJUDGED) for document in documents]
    return Judgments(qid, docid, np.array(grade))
