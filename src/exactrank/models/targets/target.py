"""Export targets: formats that engines or languages read, with the arithmetic by which they score.

A target writes a model in `Plain` terms, with remarks if that is not exact, and computes the scores that its engine would give: in
float32 if the engine does so, with its comparisons, its slack and its rule for absent features.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument
from exactrank._support.files import whole_file
from exactrank._support.settings import Configured, setting
from exactrank.data.alignment import name_list
from exactrank.data.duplicates import first_duplicate
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.measures.base import Measure
from exactrank.models.model import Model
from exactrank.models.targets.plain import Plain, plain

if TYPE_CHECKING:
    from exactrank.models.targets.check import Check

#: One row per document, one column per feature of the model, NaN where a value is missing.
Rows = npt.NDArray[np.float64]
_PREFIX = "feature_"
_WORDS = {"linear": "weights of features", "network": "hidden units", "deep": "deep networks", "trees": "trees"}
_REMEDY = {
    "linear": "train a linear model, e.g. Blend(members='linear')",
    "network": "train a network, e.g. LambdaRank(hidden=10)",
    "deep": "train a deep network, e.g. TorchRanker()",
    "trees": "train trees, e.g. Blend(members='trees')",
}


@dataclass(frozen=True, eq=False)
class Export:
    """A model as a target writes it; created by [`er.export`][exactrank.export]."""

    content: bytes = field(repr=False)
    remarks: tuple[str, ...]  #: what is not exact, and how to use the content
    target: "Target"
    model: Model = field(repr=False)

    @property
    def text(self) -> str:
        """The content as text, for formats that are text."""
        return self.content.decode()

    def check(self, data: RankingData, measure: str | Measure | None = None, threads: int | None = None) -> "Check":
        """Score ``data`` in the arithmetic of the target's engine, and compare; ``measure`` is by default the one trained on."""
        from exactrank.models.targets.check import check_export

        return check_export(self, data, measure, threads)

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the content; an existing file is replaced only with ``force``, and stays whole if writing fails."""
        with whole_file(path, force=force) as file:
            file.write(self.content)


class Target(Configured, ABC):
    """A format to export to; its annotated attributes are the settings that `er.export` takes."""

    name: ClassVar[str]  #: its key in `exactrank.export.TARGETS`
    suffix: ClassVar[str]  #: the usual suffix of its files
    is_text: ClassVar[bool] = True  #: True if the output can be shown
    kinds: ClassVar[tuple[str, ...]]  #: the kinds of terms it can write: linear, network, deep, trees
    adds: ClassVar[bool] = False  #: True if it can add up several kinds
    missing: ClassVar[tuple[Literal["zero", "mean", "keep"], ...]] = ("zero",)  #: supported values of `Plain.missing`
    names: ClassVar[re.Pattern[str] | None] = None  #: the form of names of features
    names_remedy: ClassVar[str] = "rename the feature"
    precision: ClassVar[type[np.floating]] = np.float64  #: in which its engine adds up

    model_name: str = setting(default="exactrank", help="Name of the model where it is used.")

    rename: Mapping[str, str] | None = setting(
        default=None,
        help="Names of features in the export, by their names in the model, e.g. {'title': 'bm25(title)'}. By default names that the target"
        " cannot read because they are whole numbers, as in LETOR text, get the prefix feature_.",
    )

    def export(self, model: Model) -> Export:
        """Return ``model`` in this format."""
        self.check_values()
        terms = self.named_terms(model)
        self.check(terms)
        content, remarks = self.write(terms)
        names = self.terms(model).features
        numbered = [
            name for name, exported in zip(names, terms.features, strict=True) if exported != name and name not in (self.rename or {})
        ]
        if numbered:
            remarks = [
                f"{self.name} takes no numbers for names: feature {numbered[0]!r} is called {_PREFIX}{numbered[0]}, and so on",
                *remarks,
            ]
        return Export(content.encode() if isinstance(content, str) else content, tuple(remarks), self, model)

    def named_terms(self, model: Model) -> Plain:
        """Return ``model`` in plain terms, whose features have the names of the export."""
        terms, names = self.terms(model), self.rename or {}
        unknown = next((name for name in names if name not in terms.features), None)
        if unknown is not None:
            raise SettingError(f"{self.name}: rename has {unknown!r}, and the model's features are {name_list(list(terms.features))}")
        features = tuple(names.get(name) or self._readable(name) for name in terms.features)
        repeated = first_duplicate(features)
        if repeated is not None:
            raise SettingError(f"{self.name}: two features would be called {repeated!r}; give each its own name by rename")
        return replace(terms, features=features)

    def _readable(self, name: str) -> str:
        """Return ``name`` with a prefix if it is a whole number and the target reads it only then."""
        needs_prefix = (
            self.names is not None and name.isdecimal() and not self.names.fullmatch(name) and self.names.fullmatch(_PREFIX + name)
        )
        return _PREFIX + name if needs_prefix else name

    def terms(self, model: Model) -> Plain:
        """Return ``model`` in plain terms."""
        return plain(model)

    @abstractmethod
    def write(self, terms: Plain) -> tuple[str | bytes, Sequence[str]]:
        """Return the content of the export, and remarks."""

    @abstractmethod
    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        """Return the scores that the engine would give ``rows``, computed in its arithmetic from the content that `write` returned."""

    def check(self, terms: Plain) -> None:
        """Raise if the target cannot express the model."""
        if not terms.kinds:
            raise IncompatibleError("the model has no weights, units or trees, and scores all documents the same; train it again")
        for kind in terms.kinds:
            if kind not in self.kinds:
                remedy = " or ".join(_REMEDY[supported] for supported in self.kinds)
                raise IncompatibleError(f"{self.name} cannot express {_WORDS[kind]}; {remedy}, or export to another target")
        if len(terms.kinds) > 1 and not self.adds:
            has = " and ".join(_WORDS[kind] for kind in terms.kinds)
            remedy = " or ".join(_REMEDY[kind] for kind in terms.kinds)
            raise IncompatibleError(f"{self.name} cannot add up {has}; {remedy}, or export to onnx, vespa, sql, python or c")
        if terms.missing not in self.missing:
            ways = " or ".join(f"missing={way!r}" for way in self.missing)
            names = terms.missing_unlike_zero()
            of_features = f" of {name_list(names)}" if names else ""
            raise IncompatibleError(
                f"{self.name} cannot treat missing values{of_features} as the model does (missing={terms.model.scorer.missing!r});"
                f" train with {ways}"
            )
        for feature in terms.features:
            if self.names is not None and not self.names.fullmatch(feature):
                raise IncompatibleError(f"{self.name} cannot have a feature called {feature!r}; {self.names_remedy}")
