"""Ranking models behind HTTP: ``documents.py`` reads requests, ``models.py`` loads and reloads the models, ``app.py`` answers, and
``server.py`` runs the process, or several that share a port.
"""
