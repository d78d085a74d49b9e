"""The same bits on every processor: no function that differs is called where it decides something, and nothing differs.

PyTorch, CUDA and the models of other libraries are excepted, as docs/numbers.md says.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from exactrank.rankers import RANKERS
from tests.project.processors import DIGESTS, EMULATIONS, RESULTS, digests_on

PACKAGE, NATIVE = Path("src/exactrank"), Path("src/native")
#: Functions of NumPy that pass work to BLAS, LAPACK, or vector and C libraries.
NUMPY = {
    "arccosh", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "convolve", "corrcoef", "correlate", "cos", "cosh", "cov", "dot",
    "einsum", "exp", "exp2", "expm1", "float_power", "geomspace", "hypot", "inner", "linalg", "log", "log10", "log1p", "log2",
    "logaddexp", "logspace", "matmul", "polyfit", "polynomial", "power", "roots", "sin", "sinh", "tan", "tanh", "tensordot", "vdot",
}  # fmt: skip
MATH = {
    "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "dist", "erf", "erfc", "exp", "exp2", "expm1", "gamma",
    "hypot", "lgamma", "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "tan", "tanh",
}  # fmt: skip
#: Draws of NumPy's generators that take logarithms, exponentials or powers.
DRAWS = {
    "beta", "binomial", "chisquare", "dirichlet", "exponential", "gamma", "geometric", "gumbel", "laplace", "logistic", "lognormal",
    "multinomial", "multivariate_normal", "negative_binomial", "normal", "pareto", "poisson", "standard_exponential", "standard_gamma",
    "standard_normal", "standard_t", "triangular", "vonmises", "zipf",
}  # fmt: skip
LIBRARIES = ("scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats")
#: Modules, folders and functions that may call them, and why.
EXCEPTED = {
    "torch": "PyTorch's own kernels differ",
    "backends/cuda": "CUDA's own kernels differ",
    "inspect/optimality.py:_draw_whole": "places in a picture",
}


def calls(source: str, path: str = "") -> Iterator[tuple[int, str]]:
    """The lines of the module ``source`` that call something whose last bit depends on the processor, and what they call."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and f"{path}:{node.name}" in EXCEPTED)]
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                yield node.lineno, "@"
            case ast.BinOp(op=ast.Pow(), left=left, right=right) if not is_exact_power(left, right):
                yield node.lineno, "**"
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in NUMPY:
                yield node.lineno, f"np.{name}"
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in MATH:
                yield node.lineno, f"math.{name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="rng" | "draws" | "generator") | ast.Call(), attr=name)) if name in DRAWS:
                yield node.lineno, f"rng.{name}"
            case ast.ImportFrom(module=str(name), names=names):
                imported = [name, *(f"{name}.{alias.name}" for alias in names)]
                yield from ((node.lineno, each) for each in imported if each.startswith(LIBRARIES))
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names if alias.name.startswith(LIBRARIES))


def is_exact_power(base: ast.expr, exponent: ast.expr) -> bool:
    """Squares are products, powers of 2 are exact, and so are whole numbers."""
    squares = isinstance(exponent, ast.Constant) and exponent.value == 2
    return squares or (
        isinstance(base, ast.Constant) and (base.value == 2 or (isinstance(base.value, int) and isinstance(exponent, ast.Constant)))
    )


def is_excepted(path: str) -> bool:
    return any(path == name or path.startswith(name + "/") for name in EXCEPTED)


def test_no_python_module_calls_what_differs():
    modules = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    assert len(modules) > 200
    decides = {name: source for name, source in modules.items() if not is_excepted(name)}
    assert [f"{name}:{line}: {call}" for name, source in decides.items() for line, call in calls(source, name)] == []


@pytest.mark.parametrize(
    "source",
    [
        "a @ b", "a @= b", "x ** 0.5", "10.0 ** k", "p ** np.arange(3)", "np.exp(x)", "np.linalg.norm(x)", "math.log(x)",
        "rng.standard_normal(3)", "np.random.default_rng(0).normal()",
        "from scipy import stats", "from scipy.optimize import minimize", "import scipy.linalg",
    ],
)  # fmt: skip
def test_the_guard_sees_what_differs(source):
    assert list(calls(source))


@pytest.mark.parametrize(
    "source", ["x ** 2", "2.0 ** k", "10 ** 7", "np.sqrt(x)", "x * y", "from scipy.sparse import coo_array", "rng.random(3)"]
)
def test_the_guard_passes_what_is_the_same(source):
    assert not list(calls(source))


def test_no_kernel_calls_the_c_library():
    called = re.compile(r"std::(exp|exp2|expm1|log|log1p|log2|log10|pow|tanh|sin|cos|cbrt|hypot|lgamma|erf)\(")
    paths = [*NATIVE.rglob("*.hpp"), *NATIVE.rglob("*.cpp")]
    assert len(paths) > 50
    assert [f"{path}: {found[0]}" for path in paths for found in called.finditer(path.read_text())] == []


def test_every_ranker_is_among_the_results():
    rankers = {RANKERS[name].__name__ for name in RANKERS} - {"TorchRanker"}
    assert rankers - {name.partition(",")[0] for name in RESULTS} == set()


@pytest.mark.parametrize("emulation", [None, *EMULATIONS])
def test_every_result_has_the_bits_of_all_machines(emulation):
    """The recorded digests were computed on AMD and Intel processors, with several versions of Python and NumPy."""
    golden, ours = json.loads(DIGESTS.read_text()), digests_on(emulation, [])
    assert {name: ours[name] for name in RESULTS if ours[name] != golden[name]} == {}
