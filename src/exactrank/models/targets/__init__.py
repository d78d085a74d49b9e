"""Models in the formats of serving engines and languages; one file per target, found by its name in `TARGETS`.

Other packages can add targets by entry points of the group ``exactrank.targets``.
"""

from exactrank._support.registry import Registry
from exactrank.models.targets.target import Target

TARGETS: Registry[type[Target]] = Registry(
    "export target",
    {
        "c": "exactrank.models.targets.c:C",
        "elasticsearch": "exactrank.models.targets.elasticsearch:Elasticsearch",
        "elasticsearch-ltr": "exactrank.models.targets.elasticsearch_ltr:ElasticsearchLTR",
        "lightgbm": "exactrank.models.targets.lightgbm:LightGBMText",
        "lucene-expression": "exactrank.models.targets.lucene_expression:LuceneExpression",
        "onnx": "exactrank.models.targets.onnx:Onnx",
        "opensearch-ltr": "exactrank.models.targets.opensearch_ltr:OpenSearchLTR",
        "python": "exactrank.models.targets.python:Python",
        "ranklib": "exactrank.models.targets.ranklib:RankLib",
        "solr": "exactrank.models.targets.solr:Solr",
        "sql": "exactrank.models.targets.sql:Sql",
        "vespa": "exactrank.models.targets.vespa:Vespa",
    },
    group="exactrank.targets",
    fits=lambda value: isinstance(value, type) and issubclass(value, Target),
)
