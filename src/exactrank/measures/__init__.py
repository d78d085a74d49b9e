"""Ranking measures, one file each; see `base` for what they have in common and `families` for their mathematics."""

from exactrank.measures.ap import AP
from exactrank.measures.base import Measure
from exactrank.measures.bpref import Bpref
from exactrank.measures.dcg import DCG, NDCG, MeanNDCG
from exactrank.measures.err import ERR
from exactrank.measures.first_relevant import RR, Success
from exactrank.measures.pairwise import PairwiseCorrect
from exactrank.measures.precision import Precision, Recall
from exactrank.measures.rbp import RBP

__all__ = ["AP", "DCG", "ERR", "NDCG", "RBP", "RR", "Bpref", "MeanNDCG", "Measure", "PairwiseCorrect", "Precision", "Recall", "Success"]
