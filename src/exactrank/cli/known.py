"""What the command line knows of methods without importing them.

The settings of a ranker are known once it is imported, with the numerical libraries that it needs, which takes a second or two. So that
help, lists and completion answer at once, what they say of our own methods is kept in ``methods.json``. The tests hold it against the
declarations; ``python -m tests.cli.test_cli_help`` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

from exactrank._support.registry import Registry
from exactrank.errors import ExactRankError
from exactrank.rankers import RANKERS

STORED = Path(__file__).with_name("methods.json")


def rankers() -> dict[str, str]:
    """Every ranker, with a line about it; of one that another package adds and that cannot be imported, why."""
    ours = {name: record["about"] for name, record in stored()["rankers"].items()}
    return {name: ours.get(name) or _about(name) for name in RANKERS}


def peers() -> dict[str, str]:
    """What else a comparison knows by name, with a line about each of ours."""
    ours = stored()["peers"]
    return {name: ours.get(name, "of another package") for name in Registry("method", dict(ours), "exactrank.contenders")}


def stored() -> dict[str, Any]:
    """The file: under ``rankers`` a line about each and its options, under ``peers`` a line about each."""
    found: dict[str, Any] = json.loads(STORED.read_text("utf-8"))
    return found


def first_line(kind: type) -> str:
    """Of the documentation of a class."""
    return (kind.__doc__ or "").partition("\n")[0]


def _about(name: str) -> str:
    try:
        return first_line(RANKERS[name])
    except ExactRankError as error:
        return str(error)
