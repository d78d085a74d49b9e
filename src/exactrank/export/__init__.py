"""Models in the formats of serving engines and languages; one file per target, found by its name in `TARGETS`.

Other packages can add targets by entry points of the group ``exactrank.targets``.
"""

from exactrank.export.target import Target
from exactrank.registry import Registry

TARGETS: Registry[type[Target]] = Registry(
    "export target",
    {
        "c": "exactrank.export.c:C",
        "elasticsearch": "exactrank.export.elasticsearch:Elasticsearch",
        "elasticsearch-ltr": "exactrank.export.elasticsearch_ltr:ElasticsearchLTR",
        "lightgbm": "exactrank.export.lightgbm:LightGBMText",
        "lucene-expression": "exactrank.export.lucene_expression:LuceneExpression",
        "onnx": "exactrank.export.onnx:Onnx",
        "opensearch-ltr": "exactrank.export.opensearch_ltr:OpenSearchLTR",
        "python": "exactrank.export.python:Python",
        "ranklib": "exactrank.export.ranklib:RankLib",
        "solr": "exactrank.export.solr:Solr",
        "sql": "exactrank.export.sql:Sql",
        "vespa": "exactrank.export.vespa:Vespa",
    },
    group="exactrank.targets",
    fits=lambda found: isinstance(found, type) and issubclass(found, Target),
)
