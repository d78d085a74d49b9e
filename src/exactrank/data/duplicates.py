"""Refuse ids and columns that occur twice: it is unknown which one is meant, so errors name the places of both."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from exactrank.errors import DataError

if TYPE_CHECKING:
    from exactrank.data.ranking_data import RankingData


def duplicate_places(keys: Iterable[Hashable]) -> tuple[int, int] | None:
    """Return both places of the first key that occurs twice, counted from 0; None if there is no such key.

    >>> duplicate_places("abcb"), duplicate_places("abc")
    ((1, 3), None)
    """
    first_place: dict[Hashable, int] = {}
    for place, key in enumerate(keys):
        if first_place.setdefault(key, place) != place:
            return first_place[key], place
    return None


def first_duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that occurs twice; None if there is no such name.

    >>> first_duplicate("abcb"), first_duplicate("abc")
    ('b', None)
    """
    names = list(names)
    places = duplicate_places(names)
    return None if places is None else names[places[0]]


def check_columns(labels: Iterable[Hashable], place: str) -> None:
    """Raise if two columns of the table at ``place`` have the same name."""
    labels = list(labels)
    if (places := duplicate_places(labels)) is not None:
        first, second = (position + 1 for position in places)
        raise DataError(f"{place}: columns {first} and {second} are both called {labels[places[0]]!r}; rename or remove one of them")


def check_features(names: Sequence[str]) -> None:
    """Raise if two features have the same name, since weights are matched to features by name."""
    if len(set(names)) < len(names) and (places := duplicate_places(names)) is not None:
        raise DataError(f"features {places[0]} and {places[1]} (from 0) are both called {names[places[0]]!r}; give each its own name")


def check_documents(data: "RankingData") -> None:
    """Raise if a query has two documents with the same id; empty ids do not count."""
    if data.docid is None:
        return
    for query, (first, last) in enumerate(pairwise(data.indptr.tolist())):
        rows_with_id = [row for row in range(first, last) if data.docid[row]]
        if (places := duplicate_places(data.docid[row] for row in rows_with_id)) is not None:
            first_row, second_row = (
                rows_with_id[place] if data.order is None else int(data.order[rows_with_id[place]]) for place in places
            )
            document = f"document {data.docid[rows_with_id[places[0]]]!r}"
            raise DataError(f"query {data.qid[query]!s} has {document} in the rows {first_row} and {second_row} (from 0); keep one of them")
