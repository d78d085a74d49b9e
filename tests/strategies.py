"""Random inputs that are hard on ranking code: few distinct scores and grades, short lists, nothing relevant."""

import math

import numpy as np
from hypothesis import strategies as st

from exactrank.measures import AP, DCG, ERR, NDCG, RBP, RR, Bpref, Judged, MeanNDCG, PairwiseCorrect, Precision, Recall, Success, Total

GRADES = st.one_of(st.integers(0, 4).map(float), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.7, 3.25]))
SCORES = st.one_of(
    st.sampled_from([-math.inf, -1.0, 0.0, -0.0, 0.5, 0.5 + 2**-40, 1.0]),
    st.floats(-1e3, 1e3, allow_nan=False),
    st.floats(allow_nan=False, allow_infinity=False),
)

_EMPTY = st.sampled_from([0, 1, "skip"])
_TIES = st.sampled_from(["input", "pessimistic", "expected"])
_K = st.integers(1, 8)
_MAYBE_K = st.one_of(st.none(), _K)
_REL = st.sampled_from([1, 2, 0.5])
_POLICY = {"empty": _EMPTY, "ties": _TIES}
_GAINS = st.sampled_from(["exp2", "linear", {g: g * g for g in (-1.0, 0.0, 0.5, 1.0, 1.7, 2.0, 3.0, 3.25, 4.0)}])
_DISCOUNTS = st.sampled_from(["log2", "letor", (1.0, 0.5, 0.25)])

MEASURES = st.one_of(
    st.builds(DCG, k=_MAYBE_K, gain=_GAINS, discount=_DISCOUNTS, **_POLICY),
    st.builds(NDCG, k=_MAYBE_K, gain=_GAINS, discount=_DISCOUNTS, short=st.sampled_from(["pad", "zero"]), **_POLICY),
    st.builds(MeanNDCG, k=_MAYBE_K, gain=_GAINS, discount=_DISCOUNTS, **_POLICY),
    st.builds(Precision, k=_K, rel=_REL, norm=st.sampled_from(["cutoff", "list"]), **_POLICY),
    st.builds(Recall, k=_K, rel=_REL, **_POLICY),
    st.builds(Success, k=_K, rel=_REL, **_POLICY),
    st.builds(RR, k=_MAYBE_K, rel=_REL, **_POLICY),
    st.builds(AP, k=_MAYBE_K, rel=_REL, norm=st.sampled_from(["total", "cutoff"]), **_POLICY),
    st.builds(ERR, k=_MAYBE_K, max_grade=st.sampled_from([4, 5.5]), **_POLICY),
    st.builds(RBP, k=_MAYBE_K, rel=_REL, p=st.floats(0.05, 0.95), **_POLICY),
    st.builds(Bpref, rel=_REL, **_POLICY),
    st.builds(Total, k=_K, **_POLICY),
    st.builds(Judged, k=_MAYBE_K, **_POLICY),
    st.builds(PairwiseCorrect, rel=st.one_of(st.none(), _REL), **_POLICY),
)


@st.composite
def queries(draw, max_queries=4, max_documents=6):
    """(y, s, qid), the rows of several queries interleaved."""
    rows = draw(st.lists(st.tuples(GRADES, SCORES, st.integers(0, max_queries - 1)), min_size=1, max_size=max_queries * max_documents))
    kept, count = [], {}
    for row in rows:
        count[row[2]] = count.get(row[2], 0) + 1
        if count[row[2]] <= max_documents:
            kept.append(row)
    y, s, qid = zip(*kept, strict=True)
    return np.array(y), np.array(s), np.array(qid)
