"""Statistics of comparisons: paired tests, effect sizes, adjustment for several tests, and letters for groups that do not differ."""

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

__all__ = [
    "TESTS",
    "Pair",
    "all_pairs",
    "cohens_d",
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
