"""Building blocks of your own measures, losses, optimizers, rankers, formats, export targets and backends.

Names are imported when first used, so that a measure does not import rankers.
"""

from typing import TYPE_CHECKING

from exactrank._support.registry import lazy_getattr

if TYPE_CHECKING:
    from exactrank._support.arrays import PerDocument as PerDocument
    from exactrank._support.files import open_bytes as open_bytes
    from exactrank._support.numerics import standard_normal as standard_normal
    from exactrank._support.serialize import storable as storable
    from exactrank._support.settings import setting as setting
    from exactrank.data.backend import Backend as Backend, answer as answer
    from exactrank.data.dataset import Question as Question
    from exactrank.data.formats.base import ReadOptions as ReadOptions, Stream as Stream, stream_of as stream_of
    from exactrank.learning.objectives.score_space import by_query as by_query
    from exactrank.learning.optimizers.base import (
        Draws as Draws,
        State as State,
        Theta as Theta,
        Valued as Valued,
        drawing_from as drawing_from,
        draws_of as draws_of,
    )
    from exactrank.measures.binary import Binary as Binary
    from exactrank.measures.families import Cascade as Cascade, Positional as Positional
    from exactrank.models.targets.nested import leaf_values as leaf_values, nest as nest
    from exactrank.models.targets.plain import Plain as Plain, Tree as Tree
    from exactrank.models.targets.target import Rows as Rows, Target as Target
    from exactrank.rankers.base import Ranker as Ranker

#: In which module each name is.
PUBLIC = {
    "Backend": "data.backend",
    "Binary": "measures.binary",
    "Cascade": "measures.families",
    "Draws": "learning.optimizers.base",
    "PerDocument": "_support.arrays",
    "Plain": "models.targets.plain",
    "Positional": "measures.families",
    "Question": "data.dataset",
    "Ranker": "rankers.base",
    "ReadOptions": "data.formats.base",
    "Rows": "models.targets.target",
    "State": "learning.optimizers.base",
    "Stream": "data.formats.base",
    "Target": "models.targets.target",
    "Theta": "learning.optimizers.base",
    "Tree": "models.targets.plain",
    "Valued": "learning.optimizers.base",
    "answer": "data.backend",
    "by_query": "learning.objectives.score_space",
    "drawing_from": "learning.optimizers.base",
    "draws_of": "learning.optimizers.base",
    "leaf_values": "models.targets.nested",
    "nest": "models.targets.nested",
    "open_bytes": "_support.files",
    "setting": "_support.settings",
    "standard_normal": "_support.numerics",
    "storable": "_support.serialize",
    "stream_of": "data.formats.base",
}
__getattr__ = lazy_getattr("exactrank", PUBLIC)
