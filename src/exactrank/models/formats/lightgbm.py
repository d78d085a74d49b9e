"""The text that LightGBM's ``Booster.save_model`` writes."""

from exactrank.models.formats.content import Reader
from exactrank.models.model import Model
from exactrank.models.tree_ensemble import TreeEnsemble

READER = Reader(lambda content: content.data.startswith(b"tree\n"), lambda content: Model(TreeEnsemble.of_lightgbm(content.text)))
