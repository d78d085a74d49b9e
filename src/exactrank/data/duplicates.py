"""The rule for ids and columns that occur twice: nobody knows which of them is meant, so they are refused, with the places of both."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from exactrank.errors import DataError

if TYPE_CHECKING:
    from exactrank.data.ranking_data import RankingData


def duplicate_places(keys: Iterable[Hashable]) -> tuple[int, int] | None:
    """Return the two places of the first key that occurs again, counted from 0, or None.

    >>> duplicate_places("abcb"), duplicate_places("abc")
    ((1, 3), None)
    """
    first: dict[Hashable, int] = {}
    for place, key in enumerate(keys):
        if first.setdefault(key, place) != place:
            return first[key], place
    return None


def check_columns(labels: Iterable[Any], place: str) -> None:
    """Raise where two columns of the table at ``place`` have the same name."""
    labels = list(labels)
    if (places := duplicate_places(labels)) is not None:
        first, again = (at + 1 for at in places)
        raise DataError(f"{place}: columns {first} and {again} are both called {labels[places[0]]!r}; rename or remove one of them")


def check_features(names: Sequence[str]) -> None:
    """Raise where two features have the same name, by which weights are matched."""
    if len(set(names)) < len(names) and (places := duplicate_places(names)) is not None:
        raise DataError(f"features {places[0]} and {places[1]} (from 0) are both called {names[places[0]]!r}; give each its own name")


def check_documents(data: "RankingData") -> None:
    """Raise where a query has two documents of the same id; an empty one is no id."""
    for query, (first, last) in enumerate(pairwise(data.indptr.tolist())):
        known = [row for row in range(first, last) if data.docid is not None and data.docid[row]]
        if (places := duplicate_places(data.docid[row] for row in known)) is not None:  # type: ignore[index]  # there are ids
            rows = [known[at] if data.order is None else int(data.order[known[at]]) for at in places]
            document = f"document {data.docid[known[places[0]]]!r}"  # type: ignore[index]
            raise DataError(f"query {data.qid[query]!s} has {document} in the rows {rows[0]} and {rows[1]} (from 0); keep one of them")
