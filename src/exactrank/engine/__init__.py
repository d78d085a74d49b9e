"""Engines: who answers questions about data that lies in several files, and in which order their answers are added up."""
