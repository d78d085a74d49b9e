"""Doctests of docstrings as code blocks; Markdown would take ``>>>`` for quotations. Named in mkdocs.yml."""

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class DoctestBlocks(griffe.Extension):
    """Fences every doctest."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called once for each documented object."""
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(lambda result: f"```pycon\n{result[0]}\n```", obj.docstring.value)
