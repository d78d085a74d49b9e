"""Statistics of comparisons: paired tests, effect sizes, adjustment for several tests, letters, numbers of queries, intervals for test
sets that grow, means corrected by a few human grades.
"""

from exactrank._support.always_valid import AlwaysValidMean, always_valid
from exactrank.compare.sample_size import detectable_difference, power, sample_size
from exactrank.compare.statistics import (
    TESTS,
    Pair,
    all_pairs,
    cohens_d,
    drop_missing,
    holm,
    letter,
    letters,
    paired_t,
    randomization,
    rank_biserial,
    signed_ranks,
    spread,
    wilcoxon,
    winning_numbers,
    wins_ties_losses,
)
from exactrank.measures.machine_grades import Agreement, CorrectedMean, agreement, corrected_mean

__all__ = [
    "TESTS",
    "Agreement",
    "AlwaysValidMean",
    "CorrectedMean",
    "Pair",
    "agreement",
    "all_pairs",
    "always_valid",
    "cohens_d",
    "corrected_mean",
    "detectable_difference",
    "drop_missing",
    "holm",
    "letter",
    "letters",
    "paired_t",
    "power",
    "randomization",
    "rank_biserial",
    "sample_size",
    "signed_ranks",
    "spread",
    "wilcoxon",
    "winning_numbers",
    "wins_ties_losses",
]
