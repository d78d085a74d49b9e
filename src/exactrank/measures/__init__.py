"""Ranking measures; see `base` for what they have in common and `families` for their mathematics."""

from exactrank.measures.base import Measure
from exactrank.measures.binary import AP, RBP, RR, Precision, Recall, Success
from exactrank.measures.graded import DCG, ERR, NDCG, MeanNDCG, Total
from exactrank.measures.judged import Judged
from exactrank.measures.pairwise import Bpref, PairwiseCorrect

__all__ = [
    "AP",
    "DCG",
    "ERR",
    "NDCG",
    "RBP",
    "RR",
    "Bpref",
    "Judged",
    "MeanNDCG",
    "Measure",
    "PairwiseCorrect",
    "Precision",
    "Recall",
    "Success",
    "Total",
]
