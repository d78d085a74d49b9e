"""The command that answers requests by models."""

import re
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  #: of a model
HOST = re.compile(r"[A-Za-z0-9_.:%-]+")


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL | NAME=MODEL ...", help="Model files; a name is by default that of the file.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any that is free.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that answer, each with the models in its memory.")] = 1,
    max_documents: Annotated[int, typer.Option(min=1, help="Maximum number of documents in a request.")] = 10_000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Maximum size of a request's body.")] = 32 << 20,
    timeout: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds that a request may take.")] = 10.0,
    unknown: Annotated[str, typer.Option(help="Features that a model does not have: refuse or ignore.")] = "refuse",
    watch: Annotated[float, typer.Option(min=0, max=86400, help="Seconds between two looks at the model files; 0: never.")] = 1.0,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line of JSON per request.")] = False,
) -> None:
    """Serve models over HTTP: POST the documents of a query, get their scores and their order."""
    from exactrank.errors import IncompatibleError, SettingError

    try:
        import fastapi  # noqa: F401
        import httptools  # noqa: F401
        import orjson  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise IncompatibleError(f"serve needs {error.name}, which is not installed; pip install 'exactrank[serve]'") from None
    from exactrank.serve.app import Rules
    from exactrank.serve.server import serve as served

    paths: dict[str, Path] = {}
    for given in models:
        name, found, path = given.partition("=")
        name, path = (name, path) if found and "/" not in name else (Path(given).name.partition(".")[0], given)
        if not NAME.fullmatch(name):
            raise SettingError(f"a model cannot be called {name!r}; write NAME=MODEL with letters, digits, - and _")
        if name in paths:
            raise SettingError(f"two models are called {name!r}; write NAME=MODEL to give each its own")
        paths[name] = Path(path)
    if unknown not in ("refuse", "ignore"):
        raise SettingError(f"--unknown is {unknown!r}; expected refuse or ignore")
    if not HOST.fullmatch(host):
        raise SettingError(f"--host is {host!r}; give an address of this machine, such as 127.0.0.1 or ::1, or its name")
    rule = cast(Literal["refuse", "ignore"], unknown)
    served(paths, host, port, workers, Rules(max_documents, max_bytes, timeout, rule, watch, access_log))
