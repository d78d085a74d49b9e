"""Pages that fetch nothing: the theme would ask GitHub for the stars of the repository. Named as a hook in mkdocs.yml."""

from typing import Any


def on_post_page(output: str, **kwargs: Any) -> str:
    """Called by mkdocs once for each finished page: the link to the repository stays, without its script."""
    return output.replace(' data-md-component="source"', "")
