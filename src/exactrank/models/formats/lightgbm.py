"""The text that LightGBM's ``Booster.save_model`` writes."""

from exactrank.models.formats.content import Content, Reader
from exactrank.models.model import Model
from exactrank.models.tree_ensemble import TreeEnsemble


def _is_text(content: Content) -> bool:
    return content.data.startswith(b"tree\n")


READER = Reader(_is_text, lambda content: Model(TreeEnsemble.of_lightgbm(content.text)))
