"""What is fuzzed: how its inputs are made, and how they are used."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.fuzz.mutations import mutated

CORPUS = Path(__file__).parents[1] / "corpus"


@dataclass(frozen=True)
class Target:
    """One kind of input: ``made`` draws one, ``used`` reads it and does with it what a user would do."""

    name: str
    suffix: str
    made: Callable[[np.random.Generator], bytes]
    used: Callable[[Path], None]

    def drawn(self, rng: np.random.Generator) -> bytes:
        """An input: mostly a new one, sometimes a mutation of one that failed before."""
        failed = self.corpus()
        if failed and rng.random() < 0.1:
            return mutated(rng, failed[rng.integers(len(failed))].read_bytes())
        return self.made(rng)

    def corpus(self) -> list[Path]:
        """The inputs that failed once."""
        return sorted((CORPUS / self.name).glob(f"*{self.suffix}"))


class NoInputError(Exception):
    """What was drawn does not make an input."""


class BrokenLawError(Exception):
    """An input was accepted that breaks a law of what was read."""


def require(holds: object, law: str) -> None:
    """Raise unless ``law`` holds; not ``assert``, which `python -O` leaves out."""
    if not holds:
        raise BrokenLawError(law)
