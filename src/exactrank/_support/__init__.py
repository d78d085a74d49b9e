"""Foundations that know nothing of ranking: files, numbers, text, settings, tables and pictures."""
