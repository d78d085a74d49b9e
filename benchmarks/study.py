"""Data sets, cross-fitting and a cache of results, for the scripts that choose defaults and test them (bench_quality.py).

Results are stored in a folder, so that an interrupted run continues where it stopped. Two runs may share a folder.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from ledger import ROOT

import exactrank as er
from exactrank._support.files import whole_file
from exactrank.data.folds import Fold, deal_folds
from exactrank.learning.objectives.within_query import deviation

MEASURE = "nDCG@10"
#: Real sets in five parts, of which choose_defaults.py never reads the last; and LightGBM's example, which has training and test data.
IN_PARTS, EXAMPLE = ("MQ2008", "OHSUMED", "ClueWeb09"), "lightgbm-lambdarank"
PARTS = (1, 2, 3, 4, 5)
Array = np.ndarray
#: Scores of the documents of a set.
Score = Callable[[er.RankingData], Array]
#: Fits a method to training data, with validation data that chooses its iterate.
Fit = Callable[[er.RankingData, er.RankingData], Score]


def parser(about: str, folder: str) -> argparse.ArgumentParser:
    """Return the options of both scripts; by default results are stored in ``folder`` of build."""
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with MQ2008, OHSUMED, ...")
    options.add_argument("--sets", nargs="+", help="names of sets; by default all")
    options.add_argument("--tiny", action="store_true", help="tiny artificial sets instead of all others, to see whether the script works")
    options.add_argument("--cache", type=Path, default=ROOT / "build" / folder, help="folder of results")
    options.add_argument("--version", help="results of the same version are not computed again; by default a checksum of the package")
    return options


def select_names(options: argparse.ArgumentParser, what: str, names: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """Return the ``known`` names that are among ``names``, or all without names; an unknown name ends the program."""
    if unknown := sorted(set(names or ()) - set(known)):
        options.error(f"there is no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return [each for each in known if not names or each in names]


def part(folder: Path, number: int) -> er.RankingData:
    """Read a part of a set, from a file such as S3.txt.gz or part3.txt."""
    paths = sorted(folder.glob(f"*{number}.*"))
    if len(paths) != 1:
        raise SystemExit(f"{folder} has {len(paths)} files for part {number}; expected one, named as S{number}.txt.gz or part{number}.txt")
    return er.read(paths[0])


def join_sets(parts: Sequence[er.RankingData], width: int = 0) -> er.RankingData:
    """Return all parts as one set, with ``width`` features or as many as the widest part has."""
    width = max(width, *(one.n_features for one in parts))
    X = np.concatenate([np.pad(one.values, ((0, 0), (0, width - one.n_features))) for one in parts])
    return er.RankingData.from_arrays(X, np.concatenate([one.y for one in parts]), group=np.concatenate([one.sizes for one in parts]))


def five_folds(folder: Path) -> list[Fold]:
    """Return LETOR's folds: fold k trains on the parts k, k + 1 and k + 2, validates on k + 3 and tests on k + 4, in a circle."""
    parts = [part(folder, number) for number in PARTS]
    width = max(one.n_features for one in parts)

    def parts_from(first: int, last: int) -> er.RankingData:
        return join_sets([parts[number % 5] for number in range(first, last)], width)

    return [Fold(str(k + 1), parts_from(k, k + 3), parts_from(k + 3, k + 4), parts_from(k + 4, k + 5)) for k in range(5)]


def artificial(queries: int, documents: int, features: int, noise: float, bent: float, seed: int) -> er.RankingData:
    """Return data with five grades of a quality that is linear in correlated factors and, for the share ``bent``, a sum of products.

    Queries differ in size and level. Features are given as they are, exponentiated, counted or clipped.
    """
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.gamma(3.0, documents / 3, queries).round().astype(int), 1, 8 * documents)
    query, count, factors = np.repeat(np.arange(queries), sizes), sizes.sum(), max(4, features // 5)
    loadings = rng.normal(size=(factors, features)) * (rng.random((factors, features)) < 0.25)
    Z = (
        rng.normal(size=(count, factors)) @ loadings
        + rng.normal(size=(count, features))
        + 0.5 * rng.normal(size=(queries, features))[query]
    )
    Z = standardize(Z)
    linear = Z @ (rng.normal(size=features) * (rng.random(features) < 0.4))
    products = sum(rng.normal() * np.tanh(Z[:, rng.integers(0, features, rng.integers(2, 4))] / 1.5).prod(axis=1) for _ in range(features))
    good = (1 - bent) * standardize(linear) + bent * standardize(products)
    good = good + noise * rng.normal(size=count) + 0.3 * rng.normal(size=queries)[query]
    grades = np.searchsorted(np.quantile(good, [0.6, 0.8, 0.92, 0.98]), good)
    columns = np.choose(rng.integers(0, 4, features), [Z, np.exp(Z), np.floor(np.exp(1.2 * Z + 1.5)), np.maximum(10 * Z - 3, 0)])
    return er.RankingData.from_arrays(columns.astype(np.float32), grades, qid=query)


def standardize(values: Array) -> Array:
    return (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-12)


def cross_fit_scores(fit: Fit, data: er.RankingData, others: er.RankingData, parts: int = 5, spare: int = 0) -> tuple[Array, Array]:
    """Return the scores of ``data`` out of fold, and of ``others``, by one model per part of the queries, which that part stops.

    Each model's scores are divided by their deviation within queries; those of ``others`` are the mean of all models. With ``spare=1``
    the next part is left out too, and the scores out of fold are of that part, which did not decide when the model stopped.
    """
    dealt = deal_folds(data.n_queries, min(parts, data.n_queries), seed=0)
    count, out_of_fold, elsewhere = dealt.max() + 1, np.full(data.n_documents, np.nan), np.zeros(others.n_documents)
    for number in range(count):
        scored = dealt == (number + spare) % count
        chooses = dealt == number
        score = fit(data.take_queries(~(scored | chooses)), data.take_queries(chooses))
        scores = score(data)
        size = deviation(scores, data.indptr) or 1.0
        rows = np.repeat(scored, data.sizes)
        out_of_fold[rows] = scores[rows] / size
        elsewhere += score(others) / size / count
    return out_of_fold, elsewhere


def values_of(data: er.RankingData, scores: Array) -> Array:
    """Return nDCG@10 of each query, 0 if nothing is relevant."""
    return er.evaluate(data, scores, MEASURE, threads=1)[MEASURE].values


@cache
def version() -> str:
    """Return a checksum of the files of the package, of the core too, which distinguishes its versions."""
    package, checksum = Path(er.__file__).parent, sha256()
    for path in sorted(each for each in package.rglob("*") if each.suffix in (".py", ".so", ".pyd")):
        checksum.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return checksum.hexdigest()[:12]


def cached_arrays(folder: Path, name: Iterable[object], of: Any, work: Callable[[], dict[str, Any]]) -> dict[str, Array]:
    """Return the arrays that ``work`` computes, from a file in ``folder`` if they were computed before.

    ``of`` is everything that they depend on, and distinguishes the files; ``name`` is for people who look into the folder.
    """
    about = json.dumps(of, sort_keys=True, default=str)
    shown = "".join(letter if letter.isalnum() or letter in "=-," else "." for letter in ".".join(map(str, name)))[:150]
    path = folder / f"{shown}.{sha256(about.encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        arrays_by_name = work()
        with whole_file(path, force=True) as file:
            np.savez(file, of=np.array(about), **arrays_by_name)
    with np.load(path) as arrays:
        return dict(arrays)
