"""The command that serves models over HTTP."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  #: of a model
HOST = re.compile(r"[A-Za-z0-9_.:%-]+")


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="[NAME=]MODEL", help="Model files; a model is named by its file if NAME= is missing.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 stands for all addresses of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any free port.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Number of processes that answer, each with the models in its memory.")] = 1,
    max_documents: Annotated[int, typer.Option(min=1, help="Maximum number of documents in a request.")] = 10_000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Maximum size of a request's body.")] = 32 << 20,
    timeout: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds that a request may take.")] = 10.0,
    unknown: Annotated[Literal["refuse", "ignore"], typer.Option(help="Treatment of features that a model does not have.")] = "refuse",
    watch: Annotated[
        float, typer.Option(min=0, max=86400, help="Seconds between two checks whether model files have changed; 0: never.")
    ] = 1.0,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print one line of JSON per request.")] = False,
) -> None:
    """Serve models over HTTP: POST the documents of a query, and get their scores and their order."""
    from exactrank._support.libraries import library
    from exactrank.errors import SettingError

    for name in ("fastapi", "httptools", "orjson", "uvicorn"):
        library(name, "services", "serve")
    from exactrank.serve.app import Rules
    from exactrank.serve.server import serve as serve_models

    paths: dict[str, Path] = {}
    for argument in models:
        name, equals, path = argument.partition("=")
        name, path = (name, path) if equals and "/" not in name else (Path(argument).name.partition(".")[0], argument)
        if not NAME.fullmatch(name):
            raise SettingError(f"a model cannot be called {name!r}; write NAME=MODEL with letters, digits, - and _")
        if name in paths:
            raise SettingError(f"two models are called {name!r}; write NAME=MODEL to give each its own name")
        paths[name] = Path(path)
    if not HOST.fullmatch(host):
        raise SettingError(f"--host is {host!r}; give an address of this machine, such as 127.0.0.1 or ::1, or its name")
    serve_models(paths, host, port, workers, Rules(max_documents, max_bytes, timeout, unknown, watch, access_log))
