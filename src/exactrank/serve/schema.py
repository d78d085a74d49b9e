"""The schema of requests and answers, for OpenAPI. `exactrank.serve.documents` reads and checks the requests themselves."""

from typing import Any

from pydantic import BaseModel, Field

from exactrank.models.base import Scorer

MAX_EXAMPLE_FEATURES = 20  #: for a model with more features there are no examples
#: The value of a feature.
_CELL = {
    "type": ["number", "string", "null"],
    "description": "A number; the text of a category; null is a missing value, which is handled as the model specifies.",
}
_BY_NAME = {
    "type": "object",
    "title": "Documents by feature name",
    "required": ["documents"],
    "additionalProperties": False,
    "properties": {
        "documents": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "additionalProperties": _CELL},
            "description": "One object per document, with every feature of the model by name.",
        }
    },
}
_ROWS = {
    "type": "object",
    "title": "Rows of numbers",
    "required": ["features"],
    "additionalProperties": False,
    "properties": {
        "features": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "array", "minItems": 1, "items": _CELL},
            "description": "One row per document, one number per feature. Reading is fastest if this is the first key.",
        },
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The names of the columns; by default they are the model's features, in its order.",
        },
    },
}


def body_schema(scorer: Scorer) -> dict[str, object]:
    """Return the schema of a request's body, with examples for the model."""
    features, width = scorer.feature_names, scorer.n_features
    rows = [[(scorer.levels.get(name) or (number,))[0] for name in features] or [number] * width for number in (0.5, 1.0)]
    examples = {
        "by name": {
            "summary": "Two documents, the features by name",
            "value": {"documents": [dict(zip(features, row, strict=False)) for row in rows]},
        },
        "rows": {
            "summary": "Two documents as rows, in the order of the model's features",
            "value": {"features": rows},
        },
    }
    shown_examples = (
        {}
        if width > MAX_EXAMPLE_FEATURES
        else {"examples": {form: example for form, example in examples.items() if features or form == "rows"}}
    )
    return {
        "requestBody": {
            "required": True,
            "description": "The documents of one query.",
            "content": {"application/json": {"schema": {"oneOf": [_BY_NAME, _ROWS]}} | shown_examples},
        }
    }


class RankedDocuments(BaseModel):
    """The scores of the documents, and their ranking."""

    model: str = Field(description="The name of the model that answered.")
    version: str = Field(description="The version of the model; all scores of an answer come from it.")
    scores: list[float] = Field(description="The score of each document, in the order of the request; higher is better.")
    order: list[int] = Field(
        description="The documents from best to worst, by position in the request from 0; ties keep the request's order."
        " With a cutoff in the model's file, only those that it keeps."
    )

    model_config = {
        "json_schema_extra": {"example": {"model": "web", "version": "5f0c2a9d81b3e647", "scores": [0.2, 1.7], "order": [1, 0]}}
    }


class RequestProblem(BaseModel):
    """The reason why a request was refused."""

    detail: str = Field(description="What is wrong, and what to do.")
    place: str | None = Field(None, description="The part of the body it refers to, such as documents[3].bm25.")


class ModelDescription(BaseModel):
    """A model: the features it reads, and how good it is."""

    name: str
    version: str = Field(description="A checksum of the model; answers carry it.")
    kind: str = Field(description="deep, kernel, linear, network, thresholds, trees or sum.")
    n_features: int
    features: list[str] | None = Field(description="Names in order; null if features are known only by position.")
    missing: str = Field(description="How a missing value is handled: error, zero, mean or keep.")
    measure: str | None = Field(description="What it was trained on.")
    ranker: str | None
    estimate: float | None = Field(description="The measure on queries that it has not seen, estimated in training.")
    interval: list[float | None] | None = Field(description="The 95% interval of the estimate.")
    library: str = Field(description="The version of exactrank that wrote it.")
    loaded: str = Field(description="When it was read.")
    problem: str | None = Field(description="Why its current file has not replaced it.")


class ModelList(BaseModel):
    """The models of the service; the first answers requests that name none."""

    models: list[ModelDescription]


class ServiceStatus(BaseModel):
    """The status of the service."""

    status: str
    models: list[str] = []


#: The answers other than scores, by HTTP status.
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": RequestProblem, "description": reason}
    for status, reason in {
        400: "The body is not JSON.",
        404: "There is no such model.",
        408: "The body did not arrive in time.",
        413: "The body is too large, or there are too many documents.",
        415: "The body is not JSON, or it is compressed.",
        422: "The documents are not as the model needs them.",
        503: "There was no time to answer, because other large requests came first.",
    }.items()
}
