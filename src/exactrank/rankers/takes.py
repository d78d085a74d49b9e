"""What a ranker can learn from, declared once; `exactrank.rankers.checks` refuses the rest."""

from dataclasses import dataclass
from typing import Literal

from exactrank.models.base import Scorer


@dataclass(frozen=True)
class Takes:
    """What a ranker can learn from; nothing but grades and numbers in one place, unless it says more."""

    document_weights: bool = False  #: weights of single documents (``sample_weight``)
    constraints: bool = False  #: on other measures
    categories: bool = False  #: features that are categories
    pairs: bool | Literal["by measure"] = False  #: of documents, beside the grades; "by measure": if that counts them
    start: tuple[type[Scorer], ...] = ()  #: the kinds of scorer that ``fit(start=...)`` can go on from
    shards: bool = False  #: data in several files
    sharded_document_weights: bool = False  #: weights of single documents there
    sharded_validation: bool = True  #: validation data there; otherwise that is read as one
    kernels: bool = False  #: a backend with kernels of its own, such as those of a GPU
