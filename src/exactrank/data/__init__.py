"""Ranking data: the immutable `RankingData`, and one file per format."""
