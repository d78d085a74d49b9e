"""Search engines that a hybrid search can be tuned for: one file with the scores and the configuration of each."""

from exactrank._support.registry import Registry
from exactrank.fusion.engines import elasticsearch, opensearch, qdrant, vespa, weaviate
from exactrank.fusion.engines.base import SearchEngine

ENGINES: Registry[SearchEngine] = Registry(
    "engine",
    {
        engine.name: engine
        for engine in (
            *(elasticsearch.LINEAR, elasticsearch.RRF, opensearch.NORMALIZATION, opensearch.RRF),
            *(vespa.VESPA, qdrant.QDRANT, weaviate.WEAVIATE),
        )
    },
)
