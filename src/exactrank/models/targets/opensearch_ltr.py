"""The LTR plugin of OpenSearch, which has the formats of Elasticsearch's plugin, and its own flag for absent features."""

from typing import Any, ClassVar

import numpy as np

from exactrank._support.json_values import JSONValue
from exactrank._support.settings import setting
from exactrank.data.alignment import name_list
from exactrank.errors import IncompatibleError, SettingError
from exactrank.models.targets.elasticsearch_ltr import ElasticsearchLTR, Node
from exactrank.models.targets.plain import Plain


class OpenSearchLTR(ElasticsearchLTR):
    """The body of ``_createmodel``."""

    name = "opensearch-ltr"
    since: ClassVar[str] = "OpenSearch 3.8"

    missing_as_zero: bool = setting(
        default=False, help="Have OpenSearch 3.8 and later treat absent features as 0, where trees are written as xgboost."
    )

    def check(self, terms: Plain) -> None:
        super().check(terms)
        if self.missing_as_zero and self.form(terms) != "xgboost":
            raise SettingError(f"missing_as_zero has no effect with format={self.form(terms)!r}, which always does so; leave it out")
        if self.missing_as_zero and terms.missing == "keep":
            names = name_list(terms.missing_unlike_zero())
            raise IncompatibleError(
                f"missing_as_zero treats missing values as 0, but the model does not treat those of {names} so; leave it out, or train"
                " with missing='zero'"
            )

    def definition_of(self, trees: list[Node]) -> JSONValue:
        """Return the definition, with the flag only if it was requested, since older versions refuse it."""
        return {"objective": "rank:ndcg", "splits": trees, "missing_as_zero": True} if self.missing_as_zero else trees

    def trees_in(self, definition: Any) -> tuple[list[Node], float]:
        """Return the trees, and the value of an absent feature: 0 or NaN, by the flag."""
        return (definition["splits"], 0.0) if isinstance(definition, dict) else (definition, np.nan)
