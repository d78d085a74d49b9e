"""What all scorers share."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.precision import Offset


class Scorer(Protocol):
    """An immutable function from features to scores that can be written as JSON and read back."""

    kind: ClassVar[str]  #: its key in `exactrank.scorers.KINDS`

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that it reads, in order; none where they are known by position alone."""

    @property
    def n_features(self) -> int:
        """How many features it reads."""

    @property
    def offset(self) -> Offset | None:
        """What rows in double precision are kept as differences from before they are scored; none where float32 holds them."""

    def score(self, X: Matrix, threads: int | None = None, offset: Offset | None = None) -> PerDocument:
        """The score of each row of features, which are ``X`` plus ``offset``."""

    def anchored(self, offset: Offset | None) -> "Scorer":
        """The scorer of whole features that scores as this one does their differences from ``offset``."""

    def to_record(self) -> dict[str, Any]:
        """Itself as JSON values."""

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Scorer":
        """The scorer that `to_record` described; errors name ``where`` it was read."""
