"""Discounted cumulative gain (Järvelin & Kekäläinen 2002) and its share of the ideal.

    DCG@k  = sum_{r<=k} gain(y_r) discount(r)                                                               (1)
    nDCG@k = DCG@k / (DCG@k of the documents in order of grade)                                             (2)
    MeanNDCG = (nDCG@1 + ... + nDCG@n) / n, n documents                                                     (3)

``short='zero'`` gives 0 to a list with fewer than k documents, as the LETOR scripts do; ``'pad'`` takes it as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.measures.families import Positional
from exactrank.measures.gains import (
    DiscountTable,
    GainTable,
    discount_values,
    frozen_discount,
    frozen_gain,
    gain_values,
    native_gain,
)


@dataclass(frozen=True, repr=False)
class DCG(Positional):
    """Discounted cumulative gain, (1)."""

    gain: str | Mapping[float, float] | GainTable = "exp2"
    discount: str | Sequence[float] | DiscountTable = "log2"

    name: ClassVar[str] = "DCG"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", frozen_gain(self.gain))
        object.__setattr__(self, "discount", frozen_discount(self.discount))

    @classmethod
    def from_notation(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """ir_measures' ``dcg='exp-log2'`` and ``gains={...}`` in terms of the fields."""
        settings = dict(settings)
        if "dcg" in settings:
            forms = {"log2": "linear", "exp-log2": "exp2"}
            if settings["dcg"] not in list(forms):
                raise ValueError(f"dcg={settings['dcg']!r} is not one of 'log2', 'exp-log2'")
            settings |= {"gain": forms[settings.pop("dcg")], "discount": "log2"}
        if "gains" in settings:
            settings["gain"] = settings.pop("gains")
        return settings

    @property
    def native_gain(self) -> _core.Gain | None:
        return native_gain(self.gain)  # type: ignore[arg-type]  # frozen in __post_init__

    def usefulness(self, y: PerDocument) -> PerDocument:
        return gain_values(self.gain, y)  # type: ignore[arg-type]

    def discounts(self, n: int) -> PerDocument:
        return discount_values(self.discount, n)  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class NDCG(DCG):
    """DCG as a share of the best possible, (2)."""

    short: Literal["pad", "zero"] = "pad"

    name: ClassVar[str] = "nDCG"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("short", ("pad", "zero"))

    @property
    def normaliser(self) -> Literal["ideal"]:
        return "ideal"

    @property
    def short_is_zero(self) -> bool:
        return self.short == "zero" and self.k is not None


@dataclass(frozen=True, repr=False)
class MeanNDCG(DCG):
    """nDCG averaged over all cutoffs (up to ``k``, where given), (3): the MeanNDCG of the LETOR scripts."""

    name: ClassVar[str] = "MeanNDCG"

    @property
    def normaliser(self) -> Literal["mean_ideal"]:
        return "mean_ideal"
