"""Statistics of comparisons: paired tests, effect sizes, adjustment for several tests, and letters for groups that do not differ."""

from exactrank.compare.statistics.paired import (
    TESTS,
    cohens_d,
    counted,
    paired_t,
    randomization,
    rank_biserial,
    signed_ranks,
    spread,
    wilcoxon,
    wins_ties_losses,
)
from exactrank.compare.statistics.pairs import Pair, all_pairs, holm, letter, letters, winning_numbers

__all__ = [
    "TESTS",
    "Pair",
    "all_pairs",
    "cohens_d",
    "counted",
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
