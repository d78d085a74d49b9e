"""Training of a PyTorch module on ranking data, as an optimizer and its problem: what `exactrank.TorchRanker` runs.

A step is an epoch: AdamW over batches of whole queries, in random order,

    theta <- theta - rate (m / (sqrt(v) + epsilon) + decay theta),    m, v the running means of the gradient and its square      (1)

(Loshchilov & Hutter 2019). The loss of a batch is minus the objective, each query times its weight over the mean weight of all. Between two
steps everything is in arrays, so that training can be saved and resumed to the bit. Draws come from seeds of their own; PyTorch's
global generators are left as they were. On the processor one thread computes, so that the number of cores does not change the model.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from threading import RLock
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.objectives.score_space import Objective
from exactrank.optimizers.base import Draws, State, drawing_from, draws_of
from exactrank.scorers.deep import EPSILON, Net, Tensors, flat_scores, fresh_module
from exactrank.stored import storable
from exactrank.torch.loss import RankingLoss

ROWS = 1 << 16  #: that are scored at a time
_generators = RLock()  #: of PyTorch, which all threads share


def mlp(n_features: int, hidden: tuple[int, ...], dropout: float) -> nn.Module:
    """The ready network: linear layers, each with layer norm and ReLU, and an output without a constant."""
    widths = [n_features, *hidden]
    layers = [
        _chain(linear=nn.Linear(width, units), norm=nn.LayerNorm(units, EPSILON), relu=nn.ReLU(), dropout=nn.Dropout(dropout))
        for width, units in pairwise(widths)
    ]
    return _chain(layers=nn.Sequential(*layers), output=nn.Linear(widths[-1], 1, bias=False))


def device_called(name: str) -> torch.device:
    """The device, once it is there."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise SettingError(f'device={name!r} is no device of PyTorch; give "cpu" or "cuda"') from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise IncompatibleError(f'device={name!r}, but PyTorch finds no GPU; give device="cpu", or install PyTorch for CUDA')
    return device


@contextmanager
def repeatable(seed: int, device: torch.device) -> Iterator[None]:
    """Within it PyTorch draws from ``seed``, in one thread; afterwards all is as it was. Other fits wait meanwhile."""
    threads = torch.get_num_threads()
    with _generators, torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@dataclass(frozen=True, eq=False)
class ModuleProblem:
    """A module to be trained for ``objective`` on the queries of ``data`` that have weight; ``net`` says what it gets of features."""

    module: nn.Module
    net: Net  #: whose tensors are of the features alone
    data: RankingData
    objective: Objective
    device: torch.device

    @cached_property
    def queries(self) -> Any:
        """The numbers of those that have weight."""
        return np.flatnonzero(self.data.weights > 0)

    @cached_property
    def _held(self) -> tuple[Tensor, Tensor]:
        """Standardised features and grades, on the device."""
        return self._inputs(self.data), torch.tensor(self.data.y, device=self.device, dtype=torch.float64)

    @cached_property
    def _kept(self) -> dict[int, tuple[RankingData, Tensor]]:
        return {}

    def _inputs(self, part: RankingData) -> Tensor:
        whole = np.empty(part.X.shape, np.float32)
        for start in range(0, len(whole), ROWS):
            whole[start : start + ROWS] = self.net.inputs(part.X[start : start + ROWS])
        return torch.from_numpy(whole).to(self.device)

    def put(self, tensors: Tensors) -> None:
        """Give the module other weights."""
        with torch.no_grad():
            for name, own in self.module.state_dict().items():
                own.copy_(torch.from_numpy(np.asarray(tensors[name])))

    def taken(self) -> dict[str, Any]:
        """The weights of the module, as arrays of their own."""
        return {name: own.detach().cpu().numpy().copy() for name, own in self.module.state_dict().items()}

    def scores(self, tensors: Tensors, part: RankingData) -> PerDocument:
        """The scores of the documents of ``part``, whose features are kept for the next time."""
        if part is self.data:
            inputs = self._held[0]
        else:
            if id(part) not in self._kept:
                self._kept[id(part)] = part, self._inputs(part)  # with the data itself, so that no other gets its id
            inputs = self._kept[id(part)][1]
        with repeatable(0, self.device), torch.inference_mode():
            self.put(tensors)
            self.module.eval()
            blocks = [flat_scores(self.module(some), len(some)) for some in torch.split(inputs, ROWS)]
            return np.asarray(torch.cat(blocks).double().cpu().numpy())

    def loss(self, loss: RankingLoss, queries: Any) -> tuple[Tensor, Tensor]:
        """The scores of some queries, and their loss."""
        begin, end = self.data.indptr[queries], self.data.indptr[queries + 1]
        rows = torch.from_numpy(np.concatenate([np.arange(first, last) for first, last in zip(begin, end, strict=True)])).to(self.device)
        X, y = self._held
        weight = torch.tensor(self.data.weights[queries] / self.data.weights[self.queries].mean() / len(queries), device=self.device)
        scores = flat_scores(self.module(X[rows]), len(rows))
        if not bool(torch.isfinite(scores).all()):
            return scores, scores.sum()
        return scores, loss(scores, y[rows], lengths=torch.from_numpy(end - begin), query_weight=weight)


@storable
@dataclass(frozen=True, kw_only=True)
class EpochState(State[Tensors]):
    """A state with the running means of (1), by the names of the parameters, and how many batches made them."""

    first: Mapping[str, Any] = field(default_factory=dict, repr=False)
    second: Mapping[str, Any] = field(default_factory=dict, repr=False)
    batches: int = 0
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class Epochs:
    """Descend by (1)."""

    asks: ClassVar[type] = object

    learning_rate: float
    weight_decay: float
    batch_size: int

    def init(self, problem: ModuleProblem, theta: Tensors, rng: np.random.Generator) -> EpochState:
        """Before the first epoch."""
        return EpochState(theta, 0.0, draws=draws_of(rng))

    def step(self, problem: ModuleProblem, state: EpochState) -> EpochState:
        """One epoch."""
        rng = drawing_from(state.draws)
        order, seed = rng.permutation(problem.queries), int(rng.integers(2**63))
        loss = RankingLoss(problem.objective, reduction="sum").to(problem.device)
        with repeatable(seed, problem.device):
            problem.put(state.theta)
            optimizer = self._optimizer(problem, state)
            problem.module.train()
            loss.step.fill_(state.batches)  # which the draws of sampled lambdas go by
            total, batches = 0.0, state.batches
            for begin in range(0, len(order), self.batch_size):
                some = order[begin : begin + self.batch_size]
                scores, value = problem.loss(loss, some)
                if not bool(torch.isfinite(scores).all()):
                    told = f"a learning rate of {self.learning_rate:g} diverged in epoch {state.steps + 1}; use a smaller learning_rate"
                    return replace(state, done=True, trouble=told)
                optimizer.zero_grad()
                torch.autograd.backward(value)
                optimizer.step()
                total, batches = total - float(value.detach()) * len(some), batches + 1
            theta = problem.taken()
        if not all(np.all(np.isfinite(own)) for own in theta.values()):
            told = f"a learning rate of {self.learning_rate:g} diverged in epoch {state.steps + 1}; use a smaller learning_rate"
            return replace(state, done=True, trouble=told)
        first, second = (
            {name: optimizer.state[own][key].cpu().numpy().copy() for name, own in _parameters(problem.module) if own in optimizer.state}
            for key in ("exp_avg", "exp_avg_sq")
        )
        return EpochState(theta, total / len(order), state.steps + 1, first=first, second=second, batches=batches, draws=draws_of(rng))

    def _optimizer(self, problem: ModuleProblem, state: EpochState) -> torch.optim.AdamW:
        parameters = _parameters(problem.module)
        made = torch.optim.AdamW([own for _, own in parameters], self.learning_rate, weight_decay=self.weight_decay, foreach=False)
        for name, own in parameters:
            if name in state.first:
                means = {"exp_avg": state.first[name], "exp_avg_sq": state.second[name]}
                made.state[own] = {key: torch.tensor(one, device=problem.device) for key, one in means.items()}
                made.state[own]["step"] = torch.tensor(float(state.batches))
        return made


def _parameters(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, own) for name, own in module.named_parameters() if own.requires_grad]


def begun(
    made_by: Callable[..., nn.Module], n_features: int, arguments: Mapping[str, object], seed: int, device: torch.device
) -> nn.Module:
    """A module whose random weights are drawn from ``seed``, after a look at what it gives for two documents."""
    with repeatable(seed, device):
        module: nn.Module = fresh_module(made_by, n_features, arguments).to(device)
        if not _parameters(module):
            raise IncompatibleError("the module has no parameters that could be trained; give one with layers that require gradients")
        module.eval()
        with torch.no_grad():
            try:
                found = module(torch.zeros(2, n_features, device=device))
            except RuntimeError as error:
                raise IncompatibleError(
                    f"the module cannot read two documents of {n_features} features: {str(error).splitlines()[0]}; make it for that number"
                ) from None
            flat_scores(found, 2)
    return module


def _chain(**modules: nn.Module) -> nn.Module:
    """One after the other, by name."""
    return nn.Sequential(OrderedDict(modules))
