"""Two rankers on one page: team-draft interleaving, and the preference of users for one of them.

The rankers take turns, in an order that a coin decides in each round, and each adds its best document that is not yet on the page; the
document is in its team. The ranker whose team got more clicks wins the page (Radlinski, Kurup & Joachims 2008). Both teams have the same
expected ranks, so position bias favors neither, and no propensities are needed: a second opinion on an off-policy estimate.

Pages of one query show nearly the same documents, so they are not independent, and many pages of few queries prove little. The test and the
interval therefore take each query as one observation: its lead is the number of pages that a wins less those that b wins. If each page
comes from the traffic, queries are drawn with the users, and sessions are the observations that are independent: ``by="session"``. A log
of traffic grows, and people look at it again and again; so with times there is an interval that allows it
(`exactrank._support.always_valid`), of the mean over sessions of a's share of the pages, in the order in which the sessions began.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank._support.always_valid import AlwaysValidMean, always_valid
from exactrank._support.arguments import check_count, wrong_kind
from exactrank._support.arrays import AnyArray, Floats, Ids, Rows
from exactrank._support.distributions import sign_test
from exactrank._support.tables import ROWS, Table, Tabular, Values, small_table
from exactrank.clicks.log import DEEPEST, Clicks, Codes, check_clicks, sums_of
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.data.validation import array_of
from exactrank.errors import DataError, SettingError
from exactrank.measures.bootstrap import RESAMPLES
from exactrank.measures.evaluate import checked_scores

TEAMS = ("a", "b")
MOST_SHOWN = 10**7  #: maximum number of documents on all pages together
KEYS = ("session_id", "query_id", "doc_id")


@dataclass(frozen=True, eq=False, repr=False)
class Interleaved(Tabular):
    """Pages of two rankers, one row per document shown; `to_frame` gives a frame."""

    row: Rows  #: of the data, in the caller's order
    session: Rows  #: each page has its own number, from 1
    query: Ids
    document: Ids
    rank: Rows
    team: npt.NDArray[np.str_]  #: "a" or "b"

    def _columns(self) -> Mapping[str, Values]:
        return {"session_id": self.session, "query_id": self.query, "doc_id": self.document, "rank": self.rank, "team": self.team}

    def _glance(self) -> Table:
        return small_table(repr(self), [(name, values[:ROWS]) for name, values in self._columns().items()], len(self.row))

    def __repr__(self) -> str:
        return f"Interleaved({len(np.unique(self.session)):,} pages, {len(self.row):,} documents)"


def interleave(data: RankingData, a: npt.ArrayLike, b: npt.ArrayLike, *, pages: int = 1, depth: int = 10, seed: int = 0) -> Interleaved:
    """Make ``pages`` pages for each query of ``data``, of at most ``depth`` documents, by the scores of two rankers.

    ``data`` needs document ids; a score of -inf means that the ranker did not retrieve the document.
    """
    check_data(data)
    if data.docid is None:
        raise DataError("the data has no document ids, by which a click log names documents; read it with ids")
    check_count("depth", depth, 1, DEEPEST)
    check_count("pages", pages, 1, max(1, MOST_SHOWN // (data.n_queries * min(depth, data.longest))))
    check_count("seed", seed, 0)
    scores = [data.group(checked_scores(data, each, name)) for each, name in ((a, "a"), (b, "b"))]
    rows: list[int] = []
    teams: list[int] = []
    lengths: list[int] = []
    for q in range(data.n_queries):
        first, last = data.indptr[q], data.indptr[q + 1]
        ranked = [_ranking(each[first:last], int(first)) for each in scores]
        for page in range(pages):
            drafted = _draft(ranked, depth, np.random.default_rng([seed, q, page]))
            rows += [row for row, _ in drafted]
            teams += [team for _, team in drafted]
            lengths.append(len(drafted))
    row, length = np.array(rows, np.int64), np.array(lengths, np.int64)
    query = np.repeat(np.repeat(data.qid, pages), length)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length) + 1
    document = np.array(data.docid.take(row).tolist(), dtype=str)
    callers = row if data.order is None else data.order[row]
    return Interleaved(callers, np.repeat(np.arange(1, len(length) + 1), length), query, document, rank, np.array(TEAMS)[teams])


def _ranking(scores: Floats, first: int) -> list[int]:
    """Return the retrieved rows of a query by falling score."""
    if np.isnan(scores).any():
        raise DataError(f"the score of row {first + int(np.flatnonzero(np.isnan(scores))[0])} is nan; scores must be numbers")
    order = np.argsort(-scores, kind="stable")
    return [first + int(i) for i in order if scores[i] > -np.inf]


def _draft(ranked: list[list[int]], depth: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Draft a page: its rows, and the team of each."""
    page: dict[int, int] = {}
    remaining = [iter(ranking) for ranking in ranked]
    while len(page) < depth:
        before, begins = len(page), int(rng.integers(2))
        for team in (begins, 1 - begins):
            best = next((row for row in remaining[team] if row not in page), None)
            if best is not None and len(page) < depth:
                page[best] = team
        if len(page) == before:
            break
    return list(page.items())


@dataclass(frozen=True)
class Preference:
    """Result of a comparison of two rankers by users' clicks."""

    a_wins: int  #: pages
    b_wins: int
    ties: int  #: pages with as many clicks on both teams, mostly none
    a_rate: float  #: the share of pages that a wins, ties counted as a half to each
    by: Literal["query", "session"]  #: the observations of the interval and the test
    observations: int  #: with a page in the log
    interval: tuple[float, float]  #: of the rate, 95%, by bootstrap over the observations
    p: float  #: of the sign test: the probability of leads as uneven as these if each observation might as well prefer the other ranker
    at_any_time: AlwaysValidMean | None  #: of a's share of the pages of a session; None by query, or if the log has no times

    def __str__(self) -> str:
        low, high = self.interval
        wins = f"a wins {self.a_wins:,} pages, b wins {self.b_wins:,}, {self.ties:,} ties"
        observations = f"{self.observations:,} {'queries' if self.by == 'query' else 'sessions'}"
        return f"{wins}: a has {self.a_rate:.3f} [{low:.3f}, {high:.3f}], p = {self.p:.3g} ({observations})"


def preference(log: Clicks, teams: object, *, by: Literal["query", "session"] = "query", seed: int = 0) -> Preference:
    """Count the pages of ``log`` that each ranker won; clicks count by their weight.

    ``teams`` has the team of each document of each page: the result of `interleave`, or a frame or mapping with the columns
    ``session_id``, ``query_id``, ``doc_id`` and ``team``, which is ``"a"`` or ``"b"``. Each page of the log must be there. ``by`` names
    what is independent: ``"query"``, or ``"session"`` for pages from live traffic.
    """
    check_clicks(log)
    if by not in ("query", "session"):
        raise SettingError(f"by={by!r}: give 'query' or 'session'")
    if log.session is None or log.sessions is None:
        raise DataError("the log has no sessions, so its pages cannot be told apart; name their column")
    page, sign = _pages_and_signs(log, log.sessions.tolist(), log.session, teams)
    lead = np.sign(sums_of(page, sign * log.weights * log.clicked)).astype(np.int64)
    a, b = int(np.sum(lead > 0)), int(np.sum(lead < 0))
    if a + b == 0:
        raise DataError(f"none of the {len(lead):,} pages was won, so there is no preference to see; give a log with clicks")
    codes = log.query if by == "query" else log.session
    members = np.zeros(len(lead), np.int64)
    members[page] = codes
    _, number = np.unique(members, return_inverse=True)
    pages = np.bincount(number)
    leads = np.zeros(len(pages), np.int64)
    np.add.at(leads, number, lead)
    low, high = np.quantile(_resampled_rates(leads, pages, np.random.default_rng(seed)), [0.025, 0.975])
    rate = (1 + (a - b) / len(lead)) / 2
    at_any_time = None if by == "query" or log.time is None else _at_any_time(leads / pages, number[page], log.time)
    return Preference(a, b, len(lead) - a - b, rate, by, len(pages), (float(low), float(high)), sign_test(leads), at_any_time)


def _at_any_time(leads: Floats, session: Rows, time: AnyArray) -> AlwaysValidMean:
    """Return the mean share of a in sessions, in the order of their first impressions; ``session`` and ``time`` are by row."""
    in_time = session[np.argsort(time, kind="stable")]
    _, first = np.unique(in_time, return_index=True)
    lead = always_valid(leads[np.argsort(first)])
    low, high = ((1 + end) / 2 for end in lead.interval)
    return replace(lead, mean=(1 + lead.mean) / 2, interval=(low, high))


def _resampled_rates(leads: Rows, pages: Rows, rng: np.random.Generator) -> Floats:
    """Return the rates of a in bootstrap samples of the observations, from the lead and the number of pages of each."""
    samples = (rng.integers(0, len(pages), len(pages)) for _ in range(RESAMPLES))
    return np.array([(1 + np.sum(leads[places]) / np.sum(pages[places])) / 2 for places in samples])


def _pages_and_signs(log: Clicks, sessions: list[str], session: Codes, teams: object) -> tuple[Rows, Floats]:
    """Return the page of each row of the log, and +1 if its document was in team a, -1 in team b."""
    columns = teams._columns() if isinstance(teams, Interleaved) else teams
    if not hasattr(columns, "__getitem__") or isinstance(columns, str | bytes):
        raise wrong_kind("teams", teams, f"what er.clicks.interleave returned, or a frame with the columns {', '.join(KEYS)} and team")
    try:
        keys = [array_of(columns[name]).astype(str).tolist() for name in KEYS]
        named = array_of(columns["team"]).astype(str)
    except (KeyError, TypeError, IndexError) as error:
        raise DataError(f"teams need the columns {', '.join(KEYS)} and team ({type(error).__name__}: {error})") from None
    bad = np.flatnonzero(~np.isin(named, TEAMS))
    if len(bad):
        raise DataError(f"team[{bad[0]}] is {str(named[bad[0]])!r}; a team is 'a' or 'b'")
    team = dict(zip(zip(*keys, strict=True), np.where(named == "a", 1.0, -1.0).tolist(), strict=True))
    ids = (sessions, log.queries.tolist(), log.documents.tolist())
    rows = zip(session.tolist(), log.query.tolist(), log.document.tolist(), strict=True)
    sign = np.array([team.get((ids[0][s], ids[1][q], ids[2][d]), np.nan) for s, q, d in rows])
    lost = np.flatnonzero(np.isnan(sign))
    if len(lost):
        s, q, d = session[lost[0]], log.query[lost[0]], log.document[lost[0]]
        which = f"document {ids[2][d]!r} of query {ids[1][q]!r} in session {ids[0][s]!r}"
        raise DataError(f"{len(lost):,} of {len(sign):,} impressions have no team, such as {which}; give all, by the same ids")
    return np.unique(session.astype(np.int64) * len(log.queries) + log.query, return_inverse=True)[1], sign
