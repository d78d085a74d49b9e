"""The HTTP application: routes, limits and answers.

FastAPI provides the routes and OpenAPI. `exactrank.serve.documents` reads the bodies: a hundred documents are thousands of numbers, and
pydantic would take longer to check them than the model takes to score them.

Small bodies are answered on the event loop. Large ones are answered in a thread, so that other requests need not wait, and within the time
limit. Bodies that are being received, or that wait for that thread, share a limit on memory.
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
from exactrank.serve.models import Models, ServedModel
from exactrank.serve.schema import REFUSALS, ModelDescription, ModelList, RankedDocuments, ServiceStatus, body_schema

access = logging.getLogger("exactrank.access")
BODIES = 8  #: all bodies in memory together may take this many times `Rules.max_bytes`
SMALL_BODY = 1 << 20  #: bytes; a body up to this size is answered on the event loop, which takes a few milliseconds
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
class RankingService:
    """Answers ranking requests with the current models, within the rules; large bodies are scored in a thread."""

    models: Models
    rules: Rules
    large: ThreadPoolExecutor
    bytes_held: int = 0  #: total size of the bodies of all requests in progress

    async def answer(self, name: str, request: Request) -> Response:
        """Score and rank the documents of a request, or return the refusal that says why not."""
        current = self.models.served.get(name)
        if current is None:
            return _no_model(name)
        parts: list[bytes] = []
        try:
            return await self._answer(name, current, request, parts)
        finally:
            self.bytes_held -= sum(map(len, parts))

    async def _answer(self, name: str, current: ServedModel, request: Request, parts: list[bytes]) -> Response:
        seconds = self.rules.timeout
        try:
            async with asyncio.timeout(seconds):
                await self._receive(request, parts)
        except RequestError as error:
            return _refusal(error)
        except TimeoutError:
            return _refusal(RequestError(408, f"the body did not arrive within {seconds:g} s; send it faster, or raise --timeout"))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        body = b"".join(parts)
        if len(body) <= SMALL_BODY:
            return rank_documents(name, current, body, self.rules)
        try:
            work = asyncio.get_running_loop().run_in_executor(self.large, rank_documents, name, current, body, self.rules)
            return await asyncio.wait_for(work, seconds)
        except TimeoutError:
            problem = f"no time was left for a large request within {seconds:g} s"
            return _refusal(RequestError(503, f"{problem}; send fewer documents, send it later, or raise --timeout"))

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        """Append the parts of the body to ``parts``; refuse a body of the wrong type, a long one, and one that memory has no room for."""
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
        """Watch the models' files while the service runs."""
        watcher = asyncio.create_task(_watch(self.models, self.rules.watch)) if self.rules.watch else None
        yield
        if watcher is not None:
            watcher.cancel()
        self.large.shutdown(wait=False, cancel_futures=True)


def make_app(models: Models, rules: Rules) -> ASGIApp:
    """Return the ASGI application of the service."""
    ranking = RankingService(models, rules, ThreadPoolExecutor(1, "large"))
    app = FastAPI(title="exactrank serve", version=__version__, description=ABOUT, lifespan=ranking.running, redirect_slashes=False)
    default, default_model = next(iter(models.served.items()))
    rank_options: dict[str, Any] = {
        "response_model": None,
        "responses": {200: {"model": RankedDocuments, "description": "Scores and ranking."}} | REFUSALS,
        "openapi_extra": body_schema(default_model.model.scorer),
        "tags": ["rank"],
    }

    @app.post("/rank", summary="Score and rank documents with the first model", **rank_options)
    async def rank(request: Request) -> Response:
        return await ranking.answer(default, request)

    @app.post("/models/{name}/rank", summary="Score and rank documents with a model", **rank_options)
    async def rank_by(name: str, request: Request) -> Response:
        return await ranking.answer(name, request)

    @app.get("/models", tags=["models"], summary="All models")
    async def listing() -> ModelList:
        return ModelList(models=[model.describe(name) for name, model in models.served.items()])

    @app.get("/models/{name}", tags=["models"], summary="What a model reads, and what it is worth", response_model=ModelDescription,
             responses={404: REFUSALS[404], 422: REFUSALS[422]})  # fmt: skip
    async def model_description(name: str) -> ModelDescription | Response:
        return models.served[name].describe(name) if name in models.served else _no_model(name)

    @app.get("/health", tags=["state"], summary="Is the process alive?")
    async def health() -> ServiceStatus:
        return ServiceStatus(status="alive")

    @app.get("/ready", tags=["state"], summary="Are all models loaded?")
    async def ready() -> ServiceStatus:
        return ServiceStatus(status="ready", models=list(models.served))

    app_with_shortcut = _RankShortcut(app, ranking, {"/rank": default} | {f"/models/{name}/rank": name for name in models.served})
    return _AccessLog(app_with_shortcut) if rules.access_log else app_with_shortcut


def rank_documents(name: str, current: ServedModel, body: bytes, rules: Rules) -> Response:
    """Return the answer to a body, scored by the current model."""
    try:
        documents = read_documents(body, current.model.scorer, rules.unknown, rules.max_documents)
        try:
            scores = current.model.with_cutoff(None).predict(documents.rows, 1)
        except ExactRankError as error:
            raise RequestError(422, str(error), documents.first_unusual_place()) from None
    except RequestError as error:
        return _refusal(error)
    except MemoryError:
        return _refusal(RequestError(413, "there is not enough memory for these documents; send fewer at a time"))
    order = np.argsort(-scores, kind="stable")
    if current.model.cutoff is not None:
        order = order[current.model.cutoff.keep(scores, np.array([0, len(scores)]))[order]]
    content = {"model": name, "version": current.version, "scores": scores, "order": order}
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")


def _check_head(request: Request, rules: Rules) -> None:
    """Raise if the headers announce a body that is of another type, compressed, or too long."""
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


def _refusal(error: RequestError) -> Response:
    headers = {"connection": "close"} if error.status in (408, 413) else {"retry-after": "1"} if error.status == 503 else None
    return JSONResponse({"detail": error.detail, "place": error.place}, error.status, headers)


def _no_model(name: str) -> Response:
    return _refusal(RequestError(404, f"there is no model {name[:200]!r}; GET /models lists them"))


async def _watch(models: Models, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(models.refresh)


@dataclass(frozen=True)
class _RankShortcut:
    """Passes ranking requests for known models directly to `RankingService`, which halves the overhead, and all others to `app`."""

    app: ASGIApp
    ranking: RankingService
    paths: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self.paths.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if name is None:
            return await self.app(scope, receive, send)
        return await (await self.ranking.answer(name, Request(scope, receive)))(scope, receive, send)


@dataclass(frozen=True)
class _AccessLog:
    """Access log: a line of JSON per request on standard output."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, status = time.perf_counter(), 0

        async def log_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, log_status)
        finally:
            ms = round(1e3 * (time.perf_counter() - start), 3)
            client = scope["client"][0] if scope.get("client") else None
            line = {"time": time.time(), "client": client, "method": scope["method"], "path": scope["path"], "status": status, "ms": ms}
            access.info(json.dumps(line))
