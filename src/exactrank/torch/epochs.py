"""Training of a PyTorch module on ranking data, as an optimizer and its problem. `exactrank.TorchRanker` runs it.

A step is an epoch: AdamW over batches of whole queries, in random order,

    theta <- theta - rate (m / (sqrt(v) + epsilon) + decay theta),    m, v the running means of the gradient and its square      (1)

(Loshchilov & Hutter 2019). The loss of a batch is minus the objective, with each query weighted by its weight over the mean weight of all
queries. Between two steps the whole state is in arrays, so that training can be saved and resumed to the bit. Random numbers come from
separate seeds, and PyTorch's global generators are restored afterwards. On the processor a single thread computes, so that the number of
cores does not change the model.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from threading import RLock
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.serialize import storable
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.learning.objectives.score_space import Objective
from exactrank.learning.optimizers.base import Draws, State, drawing_from, draws_of
from exactrank.models.deep import EPSILON, Net, Tensors, flat_scores, fresh_module
from exactrank.torch.loss import RankingLoss

ROWS = 1 << 16  #: rows that are scored at a time
_generators = RLock()  #: guards PyTorch's generators, which all threads share


def mlp(n_features: int, hidden: tuple[int, ...], dropout: float) -> nn.Module:
    """Return a network of linear layers, each with layer norm, ReLU and dropout, and an output layer without a constant."""
    widths = [n_features, *hidden]
    layers = [
        _chain(linear=nn.Linear(width, units), norm=nn.LayerNorm(units, EPSILON), relu=nn.ReLU(), dropout=nn.Dropout(dropout))
        for width, units in pairwise(widths)
    ]
    return _chain(layers=nn.Sequential(*layers), output=nn.Linear(widths[-1], 1, bias=False))


def device_by_name(name: str) -> torch.device:
    """Return the device called ``name``, after checking that it exists."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise SettingError(f'device={name!r} is not a PyTorch device; give "cpu" or "cuda"') from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise IncompatibleError(f'device={name!r}, but PyTorch finds no GPU; give device="cpu", or install PyTorch for CUDA')
    return device


@contextmanager
def repeatable(seed: int, device: torch.device) -> Iterator[None]:
    """Let PyTorch draw from ``seed`` and compute in one thread, and restore both afterwards. Other fits wait meanwhile."""
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
    """The problem of training ``module`` for ``objective`` on the queries of ``data`` that have weight; ``net`` prepares its inputs."""

    module: nn.Module
    net: Net  #: its tensors describe the features only
    data: RankingData
    objective: Objective
    device: torch.device

    @cached_property
    def queries(self) -> Rows:
        """Return the numbers of the queries that have weight."""
        return np.flatnonzero(self.data.weights > 0)

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor]:
        """Return the standardized features and the grades, on the device."""
        return self._inputs(self.data), torch.tensor(self.data.y, device=self.device, dtype=torch.float64)

    @cached_property
    def _inputs_by_id(self) -> dict[int, tuple[RankingData, Tensor]]:
        return {}

    def _inputs(self, part: RankingData) -> Tensor:
        inputs = np.empty(part.X.shape, np.float32)
        for start in range(0, len(inputs), ROWS):
            inputs[start : start + ROWS] = self.net.inputs(part.X[start : start + ROWS])
        return torch.from_numpy(inputs).to(self.device)

    def set_weights(self, tensors: Tensors) -> None:
        """Set the weights of the module."""
        with torch.no_grad():
            for name, parameter in self.module.state_dict().items():
                parameter.copy_(torch.from_numpy(np.asarray(tensors[name])))

    def copy_weights(self) -> Tensors:
        """Return copies of the weights of the module as arrays."""
        return {name: parameter.detach().cpu().numpy().copy() for name, parameter in self.module.state_dict().items()}

    def scores(self, tensors: Tensors, part: RankingData) -> PerDocument:
        """Return the scores of the documents of ``part``; its standardized features are cached."""
        if part is self.data:
            inputs = self._tensors[0]
        else:
            if id(part) not in self._inputs_by_id:
                self._inputs_by_id[id(part)] = part, self._inputs(part)  # the data is kept too, so that no other object gets its id
            inputs = self._inputs_by_id[id(part)][1]
        with repeatable(0, self.device), torch.inference_mode():
            self.set_weights(tensors)
            self.module.eval()
            blocks = [flat_scores(self.module(block), len(block)) for block in torch.split(inputs, ROWS)]
            return np.asarray(torch.cat(blocks).double().cpu().numpy())

    def loss(self, loss: RankingLoss, queries: Rows) -> tuple[Tensor, Tensor]:
        """Return the scores of the documents of ``queries``, and their loss."""
        begin, end = self.data.indptr[queries], self.data.indptr[queries + 1]
        rows = torch.from_numpy(np.concatenate([np.arange(first, last) for first, last in zip(begin, end, strict=True)])).to(self.device)
        X, y = self._tensors
        weight = torch.tensor(self.data.weights[queries] / self.data.weights[self.queries].mean() / len(queries), device=self.device)
        scores = flat_scores(self.module(X[rows]), len(rows))
        if not bool(torch.isfinite(scores).all()):
            return scores, scores.sum()
        return scores, loss(scores, y[rows], lengths=torch.from_numpy(end - begin), query_weight=weight)


@storable
@dataclass(frozen=True, kw_only=True)
class EpochState(State[Tensors]):
    """State of training: the running means of (1) by the names of the parameters, and the number of batches they are means of."""

    first: Tensors = field(default_factory=dict, repr=False)
    second: Tensors = field(default_factory=dict, repr=False)
    batches: int = 0
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class Epochs:
    """AdamW, (1), as an optimizer whose step is an epoch."""

    asks: ClassVar[type] = object

    learning_rate: float
    weight_decay: float
    batch_size: int

    def init(self, problem: ModuleProblem, theta: Tensors, rng: np.random.Generator) -> EpochState:
        """Return the state before the first epoch."""
        return EpochState(theta, 0.0, draws=draws_of(rng))

    def step(self, problem: ModuleProblem, state: EpochState) -> EpochState:
        """Return the state after another epoch."""
        rng = drawing_from(state.draws)
        order, seed = rng.permutation(problem.queries), int(rng.integers(2**63))
        loss = RankingLoss(problem.objective, reduction="sum").to(problem.device)
        with repeatable(seed, problem.device):
            problem.set_weights(state.theta)
            optimizer = self._optimizer(problem, state)
            problem.module.train()
            loss.step.fill_(state.batches)  # sampled lambdas draw by this number
            total, batches = 0.0, state.batches
            for begin in range(0, len(order), self.batch_size):
                queries = order[begin : begin + self.batch_size]
                scores, value = problem.loss(loss, queries)
                if not bool(torch.isfinite(scores).all()):
                    return self._diverge(state)
                optimizer.zero_grad()
                torch.autograd.backward(value)
                optimizer.step()
                total, batches = total - float(value.detach()) * len(queries), batches + 1
            theta = problem.copy_weights()
        if not all(np.all(np.isfinite(weights)) for weights in theta.values()):
            return self._diverge(state)
        parameters = [(name, optimizer.state[p]) for name, p in _parameters(problem.module) if p in optimizer.state]
        first, second = ({name: means[key].cpu().numpy().copy() for name, means in parameters} for key in ("exp_avg", "exp_avg_sq"))
        return EpochState(theta, total / len(order), state.steps + 1, first=first, second=second, batches=batches, draws=draws_of(rng))

    def _diverge(self, state: EpochState) -> EpochState:
        trouble = f"a learning rate of {self.learning_rate:g} diverged in epoch {state.steps + 1}; use a smaller learning_rate"
        return replace(state, is_done=True, trouble=trouble)

    def _optimizer(self, problem: ModuleProblem, state: EpochState) -> torch.optim.AdamW:
        parameters = _parameters(problem.module)
        optimizer = torch.optim.AdamW(
            [parameter for _, parameter in parameters], self.learning_rate, weight_decay=self.weight_decay, foreach=False
        )
        for name, parameter in parameters:
            if name in state.first:
                means = {"exp_avg": state.first[name], "exp_avg_sq": state.second[name]}
                optimizer.state[parameter] = {key: torch.tensor(values, device=problem.device) for key, values in means.items()}
                optimizer.state[parameter]["step"] = torch.tensor(float(state.batches))
        return optimizer


def _parameters(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]


def initial_module(
    factory: Callable[..., nn.Module], n_features: int, arguments: Mapping[str, object], seed: int, device: torch.device
) -> nn.Module:
    """Make a module with random weights drawn from ``seed``, and check its output for two documents."""
    with repeatable(seed, device):
        module: nn.Module = fresh_module(factory, n_features, arguments).to(device)
        if not _parameters(module):
            raise IncompatibleError("the module has no parameters that could be trained; give one with layers that require gradients")
        module.eval()
        with torch.no_grad():
            try:
                output = module(torch.zeros(2, n_features, device=device))
            except RuntimeError as error:
                raise IncompatibleError(
                    f"the module cannot read two documents of {n_features} features: {str(error).splitlines()[0]}; make it for that number"
                ) from None
            flat_scores(output, 2)
    return module


def _chain(**modules: nn.Module) -> nn.Module:
    """Return the modules in sequence, by name."""
    return nn.Sequential(OrderedDict(modules))
