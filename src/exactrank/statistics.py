"""Statistics of comparisons: paired tests, effect sizes, adjustment for several tests, letters, means corrected by a few human grades."""

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
    "CorrectedMean",
    "Pair",
    "agreement",
    "all_pairs",
    "cohens_d",
    "corrected_mean",
    "drop_missing",
    "holm",
    "letter",
    "letters",
    "paired_t",
    "randomization",
    "rank_biserial",
    "signed_ranks",
    "spread",
    "wilcoxon",
    "winning_numbers",
    "wins_ties_losses",
]
