"""How much work goes into finding weights and into knowing how good they are."""

from dataclasses import dataclass

from exactrank.errors import DataError


@dataclass(frozen=True)
class Effort:
    """Folds, bootstrap samples, and what the certificate of three systems may cost; see [`xr.fuse`][exactrank.fuse]."""

    folds: int = 5
    bootstrap: int = 200
    tolerance: float = 1e-3
    cells: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.folds < 0 or self.folds == 1:
            raise DataError(f"folds={self.folds} leaves nothing to tune on; give at least 2, or 0 for no cross-validation")
        for name, value, least in (("bootstrap", self.bootstrap, 0), ("cells", self.cells, 1), ("tolerance", self.tolerance, 0)):
            if value is not None and not value >= least:
                raise DataError(f"{name} must be at least {least}, got {value}")
