"""What all scorers share."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from exactrank.arrays import Matrix, PerDocument


class Scorer(Protocol):
    """An immutable function from features to scores that can be written as JSON and read back."""

    kind: ClassVar[str]  #: its key in `exactrank.scorers.KINDS`

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that it reads, in order; none where they are known by position alone."""

    @property
    def n_features(self) -> int:
        """How many features it reads."""

    def score(self, X: Matrix, threads: int | None = None) -> PerDocument:
        """The score of each row."""

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values."""

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Scorer":
        """The scorer that `to_record` described; errors name ``where`` it was read."""
