"""Regression trees that grow along the slope of an objective: bins, growth, and the documents of a forest, wherever they lie."""
