"""What requests and answers look like, for OpenAPI. Requests are read by `exactrank.serve.documents`, which is the one that checks them."""

from typing import Any

from pydantic import BaseModel, Field

MOST_SHOWN = 20  #: features of a model for which there are examples
#: A value of a feature.
_CELL = {"type": ["number", "null"], "description": "null is a missing value, for which the model's policy stands."}
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
            "description": "One object per document, with every feature of the model by its name.",
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
            "description": "One row per document, one number per feature. Read fastest where it is the first key.",
        },
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What the columns are; without it they are the model's features, in its order.",
        },
    },
}


def body_schema(features: tuple[str, ...], width: int) -> dict[str, Any]:
    """The body of a request, with examples for a model of these features."""
    examples = {
        "by name": {
            "summary": "Two documents, the features by name",
            "value": {"documents": [dict.fromkeys(features, x) for x in (0.5, 1.0)]},
        },
        "rows": {
            "summary": "Two documents as rows, in the order of the model's features",
            "value": {"features": [[0.5] * width, [1.0] * width]},
        },
    }
    shown = {} if width > MOST_SHOWN else {"examples": {form: one for form, one in examples.items() if features or form == "rows"}}
    return {
        "requestBody": {
            "required": True,
            "description": "The documents of one query.",
            "content": {"application/json": {"schema": {"oneOf": [_BY_NAME, _ROWS]}} | shown},
        }
    }


class Ranked(BaseModel):
    """The scores of the documents, and their ranking."""

    model: str = Field(description="The name of the model that answered.")
    version: str = Field(description="Which state of it answered: all scores of an answer are by this one.")
    scores: list[float] = Field(description="The score of each document, in the order of the request; higher is better.")
    order: list[int] = Field(description="The documents from the best to the worst, by their place in the request from 0; ties keep it.")

    model_config = {
        "json_schema_extra": {"example": {"model": "web", "version": "5f0c2a9d81b3e647", "scores": [0.2, 1.7], "order": [1, 0]}}
    }


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str = Field(description="What is wrong, and what to do.")
    place: str | None = Field(None, description="The part of the body that it is about, such as documents[3].bm25.")


class Described(BaseModel):
    """A model: what it reads, and what it is worth."""

    name: str
    version: str = Field(description="A checksum of the model; answers carry it.")
    kind: str = Field(description="linear, network, thresholds, trees or sum.")
    n_features: int
    features: list[str] | None = Field(description="Names in order; null where features are known by position alone.")
    missing: str = Field(description="What a missing value is: error, zero, mean or keep.")
    measure: str | None = Field(description="What it was trained on.")
    ranker: str | None
    estimate: float | None = Field(description="The measure on queries that it has not met, estimated in training.")
    interval: list[float | None] | None = Field(description="The 95% interval of the estimate.")
    library: str = Field(description="The version of exactrank that wrote it.")
    loaded: str = Field(description="When it was read.")
    problem: str | None = Field(description="Why its file, as it is now, has not taken its place.")


class Listing(BaseModel):
    """All models; the first answers where none is named."""

    models: list[Described]


class State(BaseModel):
    """How the service is."""

    status: str
    models: list[str] = []


#: What may be answered instead of scores.
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": what}
    for status, what in {
        400: "The body is not JSON.",
        404: "There is no such model.",
        408: "The body did not arrive in time.",
        413: "The body is too large, or there are too many documents.",
        415: "The body is of another type than JSON, or compressed.",
        422: "The documents are not as the model needs them.",
        503: "There was no time to answer: other large requests came first.",
    }.items()
}
