"""Ranking data: the immutable `RankingData`, and one file a format."""
