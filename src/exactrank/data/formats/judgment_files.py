"""Judgments from and for tools in which people judge: our plans, Quepid and OpenSearch's search relevance workbench.

CSV     query,document,...,grade       the plan of `er.judging_plan`; rows without a grade are not judged yet
        query,docid,rating             Quepid's export and import of ratings
JSON    {"judgmentRatings": [{"query": ..., "ratings": [{"docId": ..., "rating": "2.0"}, ...]}, ...]}
                                       OpenSearch's import of judgments
"""

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping

import numpy as np

from exactrank._support.files import checked_path, line_blocks, whole_file
from exactrank._support.numerals import number
from exactrank.data.formats.trec import ByQuery, Judgments, read_qrels, with_ids
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

#: Names of columns, in lower case.
COLUMNS = {
    "query": ("query", "qid", "query_id", "query_text"),
    "document": ("document", "docid", "doc_id", "document_id"),
    "grade": ("grade", "rating", "relevance", "judgment"),
}
Row = tuple[str, str, str, str]  #: place in the file, query, document, grade


def read_judgments(path: str | os.PathLike[str]) -> Judgments:
    """Read judgments of a plan, of Quepid (.csv), of OpenSearch (.json), or TREC qrels.

    A document without a grade is not judged yet, and left out. A document that is judged twice must have the same grade.
    """
    suffix = checked_path(path).suffix.lower()
    if suffix not in (".csv", ".json"):
        return read_qrels(path)
    text = b"".join(line_blocks(path, 1 << 20)).decode("utf-8-sig", "surrogateescape")
    grades: dict[tuple[str, str], float] = {}
    for place, query, document, grade in _json_rows(path, text) if suffix == ".json" else _csv_rows(path, text):
        if not grade.strip():
            continue
        value = _grade(place, grade)
        if grades.setdefault((query, document), value) != value:
            earlier = grades[query, document]
            raise DataError(f"{place}: query {query!r}, document {document!r} has the grades {earlier:g} and {value:g}; remove one of them")
    if not grades:
        raise DataError(f"{path}: no document has a grade; fill in the column grade of a plan, or give TREC qrels")
    return Judgments([query for query, _ in grades], [document for _, document in grades], np.array(list(grades.values())))


def write_judgments(path: str | os.PathLike[str], data: RankingData, force: bool = False) -> int:
    """Write the judged documents for Quepid (.csv) or OpenSearch (.json), and return their number."""
    suffix = checked_path(path).suffix.lower()
    if suffix not in (".csv", ".json"):
        raise DataError(f"{path}: judgments are written as .csv (Quepid) or .json (OpenSearch); give one of these")
    named = with_ids(data)
    assert named.docid is not None
    queries = np.repeat(data.qid, data.sizes).tolist()
    rows = [
        (str(query), document, f"{grade:.12g}")
        for query, document, grade in zip(queries, named.docid.tolist(), data.y.tolist(), strict=True)
        if grade >= 0
    ]
    text = _quepid(rows) if suffix == ".csv" else _opensearch(rows, checked_path(path).stem)
    with whole_file(path, force=force) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    return len(rows)


def merge_judgments(sources: Mapping[str, Judgments]) -> ByQuery:
    """Return the grades of all sources, by query and document; raise if two contradict each other."""
    grades: dict[str, dict[str, float]] = {}
    for source, judgments in sources.items():
        for query, document, grade in zip(judgments.qid, judgments.docid, judgments.grade.tolist(), strict=True):
            earlier = grades.setdefault(query, {}).setdefault(document, grade)
            if earlier != grade and min(earlier, grade) >= 0:
                place = f"{source}: query {query!r}, document {document!r}"
                raise DataError(f"{place} has the grade {grade:g}, and {earlier:g} elsewhere; remove one of them")
            grades[query][document] = max(earlier, grade)  # below 0 is unjudged
    return grades


def _grade(place: str, text: str) -> float:
    try:
        value = number(text)
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        raise DataError(f"{place}: grade {text[:40]!r} is not a number of at least 0; leave it empty if the document is not judged")
    return value


def _csv_rows(path: str | os.PathLike[str], text: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text))
    header = [name.strip().lower() for name in next(reader, [])]
    columns = {kind: next((header.index(name) for name in names if name in header), None) for kind, names in COLUMNS.items()}
    lacking = [kind for kind, column in columns.items() if column is None]
    if lacking:
        raise DataError(f"{path}:1: no column {lacking[0]!r}; expected a header such as query,document,grade or query,docid,rating")
    query, document, grade = (int(column or 0) for column in columns.values())
    for row in reader:
        place = f"{path}:{reader.line_num}"
        if row and len(row) <= max(query, document, grade):
            raise DataError(f"{place}: has {len(row)} columns instead of {len(header)}")
        if row:
            yield place, row[query], row[document], row[grade]


def _json_rows(path: str | os.PathLike[str], text: str) -> Iterator[Row]:
    expected = f'{path}: expected {{"judgmentRatings": [{{"query": ..., "ratings": [{{"docId": ..., "rating": ...}}]}}]}}'
    try:
        for entry in json.loads(text)["judgmentRatings"]:
            for rating in entry["ratings"]:
                yield f"{path}: query {entry['query']!r}", str(entry["query"]), str(rating["docId"]), str(rating["rating"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{expected}, as OpenSearch imports judgments") from None


def _quepid(rows: list[tuple[str, str, str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("query", "docid", "rating"), *rows])
    return text.getvalue()


def _opensearch(rows: list[tuple[str, str, str]], name: str) -> str:
    ratings: dict[str, list[dict[str, str]]] = {}
    for query, document, grade in rows:
        ratings.setdefault(query, []).append({"docId": document, "rating": grade})
    listed = [{"query": query, "ratings": rated} for query, rated in ratings.items()]
    return json.dumps({"name": name, "type": "IMPORT_JUDGMENT", "judgmentRatings": listed}, indent=2) + "\n"
