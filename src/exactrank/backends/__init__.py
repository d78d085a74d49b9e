"""Backends: who answers questions about data in several files, besides this process."""
