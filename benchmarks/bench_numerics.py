"""Question: what do linear algebra and elementary functions cost that give the same bits on every processor, beside those of NumPy?

One core; OpenBLAS has one thread. The Gram matrix is that of 480,000 documents with 136 features, as ridge regression adds it up, in
blocks.
"""

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits
from timing import interleaved, pin, table

from exactrank._support import numerics

DOCUMENTS, FEATURES, BLOCK = 480_000, 136, 16_000
NUMBERS = 1_000_000


def gram(product: Callable[[np.ndarray], np.ndarray], blocks: list[np.ndarray]) -> np.ndarray:
    return np.sum([product(block) for block in blocks], axis=0)


def pairs() -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Our work and NumPy's, by name."""
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((BLOCK, FEATURES)) for _ in range(DOCUMENTS // BLOCK)]
    symmetric = gram(numerics.gram, blocks[:1])
    vector, weights, hidden = rng.standard_normal(FEATURES), rng.standard_normal((FEATURES, 512)), rng.standard_normal((512, FEATURES))
    x = rng.standard_normal(NUMBERS)
    size, uniform = np.abs(x), np.random.default_rng(1)
    return {
        "Gram matrix, 480,000 x 136": (lambda: gram(numerics.gram, blocks), lambda: gram(lambda block: block.T @ block, blocks)),
        "matrix times vector, 16,000 x 136": (lambda: numerics.matmul(blocks[0], vector), lambda: blocks[0] @ vector),
        "matrix times matrix, 512 x 136 x 512": (lambda: numerics.matmul(hidden, weights), lambda: hidden @ weights),
        "Cholesky and solution, 136": (lambda: numerics.solve(symmetric, vector), lambda: np.linalg.solve(symmetric, vector)),
        "eigenvalues and vectors, 136": (lambda: numerics.eigh(symmetric), lambda: np.linalg.eigh(symmetric)),
        "exp of a million": (lambda: numerics.exp(x), lambda: np.exp(x)),
        "log of a million": (lambda: numerics.log(size), lambda: np.log(size)),
        "log1p of a million": (lambda: numerics.log1p(size), lambda: np.log1p(size)),
        "tanh of a million": (lambda: numerics.tanh(x), lambda: np.tanh(x)),
        "a million normal draws": (lambda: numerics.standard_normal(uniform, NUMBERS), lambda: uniform.standard_normal(NUMBERS)),
    }


def main() -> None:
    pin(1)
    rows, costs = [], {}
    with threadpool_limits(1):
        for name, (ours, theirs) in pairs().items():
            times = interleaved({"ours": ours, "numpy": theirs}, 7)
            costs[name] = times["ours"] / times["numpy"]
            rows.append([name, f"{1000 * times['ours']:.3g}", f"{1000 * times['numpy']:.3g}", f"{costs[name]:.2f}"])
    header = ["work", "exactrank, ms", "NumPy, ms", "ratio"]
    table("kernels", "The same bits everywhere, beside NumPy with OpenBLAS on one core", header, rows, costs)


if __name__ == "__main__":
    main()
