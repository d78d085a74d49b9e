"""The statistics of a comparison of rankers, query by query and over several data sets."""
