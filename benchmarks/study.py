"""What choosing defaults (choose_defaults.py) and testing them (bench_quality.py) share: data sets, cross-fitting, and results that are
kept in a folder, so that a run that was broken off goes on where it was. Two runs may share a folder.
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
#: Real sets in five parts, the last of which choosing defaults never reads; and LightGBM's example, which comes as training and test data.
IN_PARTS, EXAMPLE = ("MQ2008", "OHSUMED", "ClueWeb09"), "lightgbm-lambdarank"
PARTS = (1, 2, 3, 4, 5)
Array = np.ndarray
#: Scores of the documents of a set.
Score = Callable[[er.RankingData], Array]
#: What learns from training data, with validation data to choose by.
Fit = Callable[[er.RankingData, er.RankingData], Score]


def parser(about: str, kept: str) -> argparse.ArgumentParser:
    """The options of both scripts; results are kept in the folder ``kept`` of build."""
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with MQ2008, OHSUMED, ...")
    options.add_argument("--sets", nargs="+", help="names of sets; by default all")
    options.add_argument("--tiny", action="store_true", help="tiny artificial sets in the place of all others: does the script work?")
    options.add_argument("--cache", type=Path, default=ROOT / "build" / kept, help="folder of results")
    options.add_argument("--version", help="results of the same version are not taken again; by default a checksum of the package")
    return options


def asked(options: argparse.ArgumentParser, what: str, names: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """Those of the ``known`` that are named, or all; others end the program."""
    if unknown := sorted(set(names or ()) - set(known)):
        options.error(f"there is no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return [each for each in known if not names or each in names]


def part(folder: Path, number: int) -> er.RankingData:
    """A part of a set, a file such as S3.txt.gz or part3.txt."""
    found = sorted(folder.glob(f"*{number}.*"))
    if len(found) != 1:
        raise SystemExit(f"{folder} has {len(found)} files for part {number}; expected one, named as S{number}.txt.gz or part{number}.txt")
    return er.read(found[0])


def joined(parts: Sequence[er.RankingData], width: int = 0) -> er.RankingData:
    """All parts as one set, with ``width`` features or as many as the widest has."""
    width = max(width, *(one.n_features for one in parts))
    X = np.concatenate([np.pad(one.values, ((0, 0), (0, width - one.n_features))) for one in parts])
    return er.RankingData.from_arrays(X, np.concatenate([one.y for one in parts]), group=np.concatenate([one.sizes for one in parts]))


def five_folds(folder: Path) -> list[Fold]:
    """As LETOR's: fold k trains on the parts k, k + 1 and k + 2, validates on k + 3 and tests on k + 4, in a circle."""
    parts = [part(folder, number) for number in PARTS]
    width = max(one.n_features for one in parts)

    def turned(first: int, last: int) -> er.RankingData:
        return joined([parts[number % 5] for number in range(first, last)], width)

    return [Fold(str(k + 1), turned(k, k + 3), turned(k + 3, k + 4), turned(k + 4, k + 5)) for k in range(5)]


def artificial(queries: int, documents: int, features: int, noise: float, bent: float, seed: int) -> er.RankingData:
    """Five grades of how good documents are: linear in correlated factors, and for the part ``bent`` a sum of products of two or three.

    Queries are of different size and level, and features are seen as they are, exponentiated, counted or clipped.
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
    Z = standardized(Z)
    linear = Z @ (rng.normal(size=features) * (rng.random(features) < 0.4))
    products = sum(rng.normal() * np.tanh(Z[:, rng.integers(0, features, rng.integers(2, 4))] / 1.5).prod(axis=1) for _ in range(features))
    good = (1 - bent) * standardized(linear) + bent * standardized(products)
    good = good + noise * rng.normal(size=count) + 0.3 * rng.normal(size=queries)[query]
    grades = np.searchsorted(np.quantile(good, [0.6, 0.8, 0.92, 0.98]), good)
    seen = np.choose(rng.integers(0, 4, features), [Z, np.exp(Z), np.floor(np.exp(1.2 * Z + 1.5)), np.maximum(10 * Z - 3, 0)])
    return er.RankingData.from_arrays(seen.astype(np.float32), grades, qid=query)


def standardized(values: Array) -> Array:
    return (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-12)


def cross_fitted(fit: Fit, data: er.RankingData, others: er.RankingData, parts: int = 5, spare: int = 0) -> tuple[Array, Array]:
    """Scores of ``data`` out of fold, and of ``others``: those of a model for each part of the queries, which chooses its iterate.

    Each model's scores are divided by their deviation within queries; those of ``others`` are the mean of all models. With ``spare=1``
    the next part is left out too, and the scores out of fold are of that part: it had no say in when the model stopped.
    """
    dealt = deal_folds(data.n_queries, min(parts, data.n_queries), seed=0)
    count, out_of_fold, elsewhere = dealt.max() + 1, np.full(data.n_documents, np.nan), np.zeros(others.n_documents)
    for number in range(count):
        scored = dealt == (number + spare) % count
        chooses = dealt == number
        score = fit(data.take_queries(~(scored | chooses)), data.take_queries(chooses))
        own = score(data)
        size = deviation(own, data.indptr) or 1.0
        rows = np.repeat(scored, data.sizes)
        out_of_fold[rows] = own[rows] / size
        elsewhere += score(others) / size / count
    return out_of_fold, elsewhere


def values_of(data: er.RankingData, scores: Array) -> Array:
    """nDCG@10 of each query, 0 where nothing is relevant."""
    return er.evaluate(data, scores, MEASURE, threads=1)[MEASURE].values


@cache
def version() -> str:
    """What tells states of the package apart: a checksum of its files, of the core too."""
    package, found = Path(er.__file__).parent, sha256()
    for path in sorted(each for each in package.rglob("*") if each.suffix in (".py", ".so", ".pyd")):
        found.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:12]


def kept(folder: Path, name: Iterable[object], of: Any, work: Callable[[], dict[str, Any]]) -> dict[str, Array]:
    """The arrays that ``work`` gives, from a file in ``folder`` where it was done before.

    ``of`` is all that they depend on, which tells files apart; ``name`` is for people who look into the folder.
    """
    about = json.dumps(of, sort_keys=True, default=str)
    shown = "".join(letter if letter.isalnum() or letter in "=-," else "." for letter in ".".join(map(str, name)))[:150]
    path = folder / f"{shown}.{sha256(about.encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        found = work()
        with whole_file(path, force=True) as file:
            np.savez(file, of=np.array(about), **found)
    with np.load(path) as arrays:
        return dict(arrays)
