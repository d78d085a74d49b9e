"""exactrank for PyTorch: ``import exactrank.torch as xt`` (``pip install 'exactrank[torch]'``).

`RankingLoss` trains any model on any objective of scores, for lists of any length; `evaluate` and `Metrics` return the numbers of
`exactrank.evaluate`. `CrossEncoderLoss` and `Weights` train cross-encoders of sentence-transformers.
"""

from exactrank.torch.evaluate import Metrics as Metrics, evaluate as evaluate
from exactrank.torch.loss import RankingLoss as RankingLoss
from exactrank.torch.sentence_transformers import CrossEncoderLoss as CrossEncoderLoss, Weights as Weights

__all__ = ["CrossEncoderLoss", "Metrics", "RankingLoss", "Weights", "evaluate"]
