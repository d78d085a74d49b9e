"""TorchRanker: a network of several layers, or any PyTorch module, trained on the measure.

    s(x) = f((t(x) - mean) / scale),    t(x) = sign(x) log(1 + |x|)                                             (1)

f is a multilayer perceptron with layer norm, or a module of the user's own; it is trained by AdamW along the forces of any objective of
scores, in batches of whole queries of any length (`exactrank.torch.epochs`). The measure itself, on validation data, says which epoch to
keep. PyTorch trains; a trained perceptron needs it no more (`exactrank.models.deep`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from exactrank._support.arrays import Floats
from exactrank._support.libraries import library
from exactrank._support.numerics import log1p
from exactrank._support.settings import SOME, VALID, Range, setting
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.learning.training.combinators import map_iterates
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder, Run
from exactrank.measures.base import Measure
from exactrank.models.base import Scorer
from exactrank.models.deep import MODULE, Deep, Net, Tensors, Transform
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes
from exactrank.rankers.lambda_function import LambdaFunction

if TYPE_CHECKING:
    from exactrank.torch.epochs import ModuleProblem


class TorchRanker(LambdaFunction, Ranker):
    """A deep network, or a PyTorch module of your own, by forces between documents.

    ``module`` is an ``nn.Module`` that gives one score per row, or a function that makes one for a number of features, e.g. its class.
    """

    name = "torch"
    takes = Takes(pairs=True, start=(Deep,))
    libraries = ("exactrank.torch.epochs", "torch._dynamo")  # which the first optimizer imports, slowly

    module: object = setting(
        default=None,
        help="In Python: an nn.Module that gives one score per row of features, or a function that makes one for a number of features; by"
        " default a multilayer perceptron.",
    )
    hidden: Sequence[int] = setting(
        default=(512, 256, 128), help="Number of units in each hidden layer of the perceptron.", only={"module": (None,)},
        search=((64, 32), (256, 128), (512, 256, 128)),
    )  # fmt: skip
    dropout: float = setting(
        default=0.0, help="Share of the units that are left out at random in each batch of training.", at_least=0, below=1,
        only={"module": (None,)}, search=Range(0.0, 0.5),
    )  # fmt: skip
    transform: Transform = setting(
        default="log1p", help="What is done to features before they are standardized: sign(x) log(1 + |x|), or nothing."
    )
    learning_rate: float = setting(default=0.001, help="Learning rate of AdamW.", above=0, at_most=1e30, search=Range(1e-4, 1e-2, log=True))
    weight_decay: float = setting(
        default=0.01, help="Share of each parameter, times the learning rate, that is taken away in each step.", at_least=0,
        search=Range(1e-4, 1.0, log=True),
    )  # fmt: skip
    max_iter: int = setting(default=100, help="Maximum number of epochs.", at_least=1, free=True)
    patience: int = setting(
        default=20,
        help="Stop when the measure on validation data has not improved for this number of epochs.",
        at_least=1,
        only={VALID: SOME},
        free=True,
    )
    batch_size: int = setting(default=32, help="Number of queries in a batch.", at_least=1)
    device: str = setting(default="cpu", help="Where to train: cpu, or cuda for a GPU.")

    @property
    def runs_in_threads(self) -> bool:
        """False: PyTorch has its own threads."""
        return False

    def check_values(self) -> None:
        """Raise if a setting has a value that it may not have, or PyTorch is not installed."""
        super().check_values()
        library("torch", "TorchRanker and its modules", "torch")
        from exactrank.torch.epochs import device_by_name

        if not all(units >= 1 for units in self.hidden):
            raise SettingError(f"TorchRanker: hidden={tuple(self.hidden)!r}; give at least one unit for each layer")
        if self.module is not None and not callable(self.module):
            meant = f"; if it is the measure, give measure={self.module!r}" if isinstance(self.module, str | Measure) else ""
            raise SettingError(f"TorchRanker: module={self.module!r} is neither an nn.Module nor a function that makes one{meant}")
        device_by_name(self.device)
        self._module_reference()

    def _module_reference(self) -> tuple[str, dict[str, object]] | None:
        """Return the name of the class or function that makes the module, and its arguments; None for the perceptron."""
        if self.module is None:
            return None
        factory, arguments = (self.module.func, dict(self.module.keywords)) if isinstance(self.module, partial) else (self.module, {})
        if isinstance(self.module, partial) and self.module.args:
            raise SettingError("TorchRanker: the module is a partial function with arguments without names; give them by name")
        try:
            json.dumps(arguments, allow_nan=False)
        except (TypeError, ValueError):
            raise SettingError(f"TorchRanker: the module's arguments {arguments!r} cannot be written to a model file as JSON") from None
        kind = factory if hasattr(factory, "__qualname__") else type(factory)
        return f"{kind.__module__}:{kind.__qualname__}", arguments

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        from exactrank.torch.epochs import Epochs

        problem = self._problem(task)
        patience = None if task.valid is None else self.patience
        optimizer = Epochs(self.learning_rate, self.weight_decay, self.batch_size)
        judge: Judge[Tensors] = Judge(task, lambda tensors: partial(problem.scores, tensors))
        run = Run(optimizer, problem, problem.copy_weights(), judge, self.max_iter, [self.seed, task.bag], patience)
        return map_iterates(run, partial(self._scorer, problem.net, task.data.feature_names), recorder)

    def _problem(self, task: Task) -> "ModuleProblem":
        from exactrank.torch.epochs import ModuleProblem, device_by_name, initial_module, mlp

        data, device, named = task.data.gather(), device_by_name(self.device), self._module_reference()
        made_by: Callable[..., Any] = partial(mlp, hidden=tuple(self.hidden), dropout=self.dropout)
        of, arguments = None, dict[str, Any]()
        if named is not None:
            (of, arguments), made_by = named, self.module  # type: ignore[assignment]
            made_by = made_by.func if isinstance(made_by, partial) else made_by
        seed = int(np.random.default_rng([self.seed, task.bag]).integers(2**63))
        module = initial_module(made_by, data.n_features, arguments, seed, device)
        mean, scale = _moments(data, self.transform)
        # Until it is trained, the network is no more than what it does to features.
        net = Net({"mean": mean, "scale": scale}, 1.0, self.transform, of or "untrained", arguments, made_by)
        if not isinstance(task.start, Deep):
            return ModuleProblem(module, net, data, self._objective(task.measure), device)
        scaling, weights = self._start_tensors(task.start, of, {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()})
        problem = ModuleProblem(module, replace(net, tensors=scaling), data, self._objective(task.measure), device)
        problem.set_weights(weights)
        return problem

    def _start_tensors(self, start: Deep, of: str | None, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Tensors, Tensors]:
        """Return the mean and scale of features in the model to continue, and the weights of its network."""
        net = start.nets[0]
        weights = {name.removeprefix(MODULE): tensor for name, tensor in net.tensors.items() if name not in ("mean", "scale")}
        weight_shapes = {name: tensor.shape for name, tensor in weights.items()}
        if len(start.nets) > 1 or net.of != of or net.transform != self.transform or weight_shapes != shapes:
            has = f"{start.size} with transform={net.transform!r}"
            raise IncompatibleError(f"the model to start from is {has}; give the same module, hidden and transform, or another start")
        return {name: net.tensors[name] for name in ("mean", "scale")}, weights

    def _scorer(self, net: Net, names: tuple[str, ...], tensors: Tensors) -> Scorer:
        """Return the scorer with these weights."""
        is_own_module = self.module is not None
        weights = {f"{MODULE if is_own_module else ''}{name}": values for name, values in tensors.items()}
        origin: Mapping[str, Any] = {"of": net.of, "arguments": net.arguments, "factory": net.factory} if is_own_module else {}
        return Deep((Net({**net.tensors, **weights}, 1.0, self.transform, **origin),), names)


def _moments(data: RankingData, transform: Transform) -> tuple[Floats, Floats]:
    """Return the mean and deviation of each feature after ``transform``; the deviation of a constant feature is 1."""
    if transform == "log1p":
        total = np.zeros((2, data.n_features))
        for start in range(0, len(data.X), 1 << 16):
            block = data.X[start : start + (1 << 16)].astype(np.float64)
            moved = np.sign(block) * log1p(np.abs(block))
            total += moved.sum(axis=0), np.square(moved).sum(axis=0)
        mean = total[0] / len(data.X)
        deviation = np.sqrt(np.maximum(total[1] / len(data.X) - mean * mean, 0.0))
        deviation[deviation < 1e-7 * np.abs(mean)] = 0.0  # what rounding leaves of a constant
    else:
        mean, deviation = data.moments
    return mean, np.where(deviation > 0, deviation, 1.0)
