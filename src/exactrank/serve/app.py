"""The answers of the service. FastAPI provides the routes and OpenAPI; bodies are read by `exactrank.serve.documents`, since a hundred
documents are thousands of numbers, and pydantic would take longer to check them than the model takes to score them.

Small bodies are answered where they arrive; large ones in a thread, so that others need not wait, and within the time limit. Bodies that
are being received, or wait for that thread, share a limit on memory.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exactrank import __version__
from exactrank.errors import ExactRankError
from exactrank.serve.documents import RequestError, Unknown, read_documents
from exactrank.serve.models import Models, Served
from exactrank.serve.schema import REFUSALS, Listing, ModelDescription, Ranked, ServiceState, body_schema

access = logging.getLogger("exactrank.access")
BODIES = 8  #: times `Rules.max_bytes` is what all bodies in memory may take together
AT_ONCE = 1 << 20  #: bytes; a body up to this size is answered where it arrives, which takes some milliseconds
ABOUT = """Scores the documents of a query with models of exactrank, and ranks them.

Scores equal those of `exactrank predict` bit for bit. No request names a file, and nothing in a request is executed."""


@dataclass(frozen=True)
class Rules:
    """The limits of a request, and how often files are checked."""

    max_documents: int = 10_000
    max_bytes: int = 32 << 20
    timeout: float = 10.0  #: seconds for a request, from its first line to its answer
    unknown: Unknown = "refuse"  #: what to do with features that a model does not have
    watch: float = 1.0  #: seconds between two checks of the models' files; 0: never
    access_log: bool = False


@dataclass
class Ranking:
    """Answers with scores from models that may change, within the rules; large bodies in a thread."""

    models: Models
    rules: Rules
    large: ThreadPoolExecutor
    bytes_held: int = 0  #: of the bodies of all requests in progress

    async def answer(self, name: str, request: Request) -> Response:
        """Scores and order of the documents in a request, or why there are none."""
        served = self.models.served.get(name)
        if served is None:
            return _no_model(name)
        held: list[bytes] = []
        try:
            return await self._answer(name, served, request, held)
        finally:
            self.bytes_held -= sum(map(len, held))

    async def _answer(self, name: str, served: Served, request: Request, parts: list[bytes]) -> Response:
        seconds = self.rules.timeout
        try:
            async with asyncio.timeout(seconds):
                await self._receive(request, parts)
        except RequestError as refused:
            return _refusal(refused)
        except TimeoutError:
            return _refusal(RequestError(408, f"the body did not arrive within {seconds:g} s; send it faster, or raise --timeout"))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        body = b"".join(parts)
        if len(body) <= AT_ONCE:
            return ranked(name, served, body, self.rules)
        try:
            work = asyncio.get_running_loop().run_in_executor(self.large, ranked, name, served, body, self.rules)
            return await asyncio.wait_for(work, seconds)
        except TimeoutError:
            told = f"no time was left for a large request within {seconds:g} s"
            return _refusal(RequestError(503, f"{told}; send fewer documents, send it later, or raise --timeout"))

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        """Append the parts of the body to ``parts``, if it is of the right type, not too long, and there is room for it."""
        _check_head(request, self.rules)
        received = 0
        async for part in request.stream():
            parts.append(part)
            received += len(part)
            self.bytes_held += len(part)
            if received > self.rules.max_bytes:
                raise _too_long(self.rules)
            if self.bytes_held > BODIES * self.rules.max_bytes:
                raise RequestError(503, "too many large requests are in progress; try again later")

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """Watch the files while the service runs."""
        watching = asyncio.create_task(_watch(self.models, self.rules.watch)) if self.rules.watch else None
        yield
        if watching is not None:
            watching.cancel()
        self.large.shutdown(wait=False, cancel_futures=True)


def make_app(models: Models, rules: Rules) -> ASGIApp:
    """The service."""
    ranking = Ranking(models, rules, ThreadPoolExecutor(1, "large"))
    app = FastAPI(title="exactrank serve", version=__version__, description=ABOUT, lifespan=ranking.running, redirect_slashes=False)
    first, served = next(iter(models.served.items()))
    told: dict[str, Any] = {
        "response_model": None,
        "responses": {200: {"model": Ranked, "description": "Scores and ranking."}} | REFUSALS,
        "openapi_extra": body_schema(served.model.scorer),
        "tags": ["rank"],
    }

    @app.post("/rank", summary="Score and rank documents with the first model", **told)
    async def rank(request: Request) -> Response:
        return await ranking.answer(first, request)

    @app.post("/models/{name}/rank", summary="Score and rank documents with a model", **told)
    async def rank_by(name: str, request: Request) -> Response:
        return await ranking.answer(name, request)

    @app.get("/models", tags=["models"], summary="All models")
    async def listing() -> Listing:
        return Listing(models=[ModelDescription(**each.described(name)) for name, each in models.served.items()])

    @app.get("/models/{name}", tags=["models"], summary="What a model reads, and what it is worth", response_model=ModelDescription,
             responses={404: REFUSALS[404], 422: REFUSALS[422]})  # fmt: skip
    async def one(name: str) -> Any:
        return models.served[name].described(name) if name in models.served else _no_model(name)

    @app.get("/health", tags=["state"], summary="Is the process alive?")
    async def health() -> ServiceState:
        return ServiceState(status="alive")

    @app.get("/ready", tags=["state"], summary="Are all models loaded?")
    async def ready() -> ServiceState:
        return ServiceState(status="ready", models=list(models.served))

    straight = _Straight(app, ranking, {"/rank": first} | {f"/models/{name}/rank": name for name in models.served})
    return _AccessLog(straight) if rules.access_log else straight


def ranked(name: str, served: Served, body: bytes, rules: Rules) -> Response:
    """The answer to a body, from the current model."""
    try:
        documents = read_documents(body, served.model.scorer, rules.unknown, rules.max_documents)
        try:
            scores = served.model.predict(documents.rows, 1)
        except ExactRankError as error:
            raise RequestError(422, str(error), documents.first_odd()) from None
    except RequestError as refused:
        return _refusal(refused)
    except MemoryError:
        return _refusal(RequestError(413, "there is not enough memory for these documents; send fewer at a time"))
    order = np.argsort(-scores, kind="stable")
    content = {"model": name, "version": served.version, "scores": scores, "order": order}
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")


def _check_head(request: Request, rules: Rules) -> None:
    """Refuse a body by its headers, if it is of another type or longer than allowed."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise RequestError(415, f"the body is of type {kind[:100]!r}; send JSON, with the header Content-Type: application/json")
    coding = request.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise RequestError(415, f"the body is encoded as {coding[:100]!r}; send it unencoded")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > rules.max_bytes:
        raise _too_long(rules)


def _too_long(rules: Rules) -> RequestError:
    return RequestError(413, f"the body has more than {rules.max_bytes:,} bytes; send fewer documents, or raise --max-bytes")


def _refusal(refused: RequestError) -> Response:
    headers = {"connection": "close"} if refused.status in (408, 413) else {"retry-after": "1"} if refused.status == 503 else None
    return JSONResponse({"detail": refused.detail, "place": refused.place}, refused.status, headers)


def _no_model(name: str) -> Response:
    return _refusal(RequestError(404, f"there is no model {name[:200]!r}; GET /models lists them"))


async def _watch(models: Models, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(models.refresh)


@dataclass(frozen=True)
class _Straight:
    """Documents for known models go straight to their answer, which halves the overhead; everything else goes through `app`."""

    app: ASGIApp
    ranking: Ranking
    paths: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self.paths.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if name is None:
            return await self.app(scope, receive, send)
        return await (await self.ranking.answer(name, Request(scope, receive)))(scope, receive, send)


@dataclass(frozen=True)
class _AccessLog:
    """One line of JSON per request on standard output."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            ms = round(1e3 * (time.perf_counter() - start), 3)
            client = scope["client"][0] if scope.get("client") else None
            line = {"time": time.time(), "client": client, "method": scope["method"], "path": scope["path"], "status": status, "ms": ms}
            access.info(json.dumps(line))
