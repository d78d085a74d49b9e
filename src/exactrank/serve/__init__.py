"""Models behind HTTP: ``documents.py`` reads a request, ``models.py`` keeps the models and reads them anew, ``app.py`` answers,
``server.py`` is the process, or several that share a port.
"""
