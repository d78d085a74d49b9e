"""Claim: LambdaMART and DirectRankTrees are at or above the best of LightGBM, XGBoost and CatBoost, each with as many settings to choose
from on validation data.

Quality, not speed. Data: ``--artificial FOLDER`` with letor.*.npz (1,000 queries x 40 documents x 46 features), and, from ``--data
FOLDER`` (by default ``../shared/data``), MQ2008 and ClueWeb09: five parts in turn, three to train, one to validate, one to test. All
grow at most 500 trees, with patience 50 on validation nDCG@10. Settings are a rate and a size of trees; ``--settings 1`` takes the
first of each. The mean over test queries comes with its 95% bootstrap interval, and the p-value of a paired randomisation test against
the best peer.
"""

import sys
import time
from pathlib import Path

import catboost
import lightgbm as lgb
import numpy as np
import xgboost as xgb
from bench_mq2008 import joined
from timing import table, with_artificial

import exactrank as xr
from exactrank.compare.statistics.paired import randomisation
from exactrank.measures.evaluate import bootstrap_intervals

TREES, PATIENCE, MEASURE = 500, 50, "nDCG@10"
#: A rate and a number of leaves (for CatBoost's symmetric trees the depth of as many or more).
SETTINGS = [(0.1, 31), (0.05, 31), (0.1, 8), (0.05, 8), (0.03, 31), (0.03, 8)]
Sets = tuple[xr.RankingData, xr.RankingData, xr.RankingData]


def value(data: xr.RankingData, scores: np.ndarray) -> np.ndarray:
    return xr.evaluate(MEASURE, data, scores)[MEASURE].values


def ours(make: type, **more):
    def scores(sets: Sets, rate: float, leaves: int, threads: int) -> tuple[float, np.ndarray]:
        train, valid, test = sets
        ranker = make(MEASURE, trees=TREES, patience=PATIENCE, leaves=leaves, threads=threads, **({"learning_rate": rate} | more))
        ranker.fit(train, valid=valid)
        return ranker.model_.training["valid"], ranker.predict(test)

    return scores


def lightgbm(objective: str):
    def scores(sets: Sets, rate: float, leaves: int, threads: int) -> tuple[float, np.ndarray]:
        train, valid, test = sets
        given = {
            "objective": objective,
            "learning_rate": rate,
            "num_leaves": leaves,
            "num_threads": threads,
            "verbose": -1,
            "metric": "none",
        }
        data = lgb.Dataset(train.X, train.y, group=train.sizes, params=given)
        held_out = lgb.Dataset(valid.X, valid.y, group=valid.sizes, reference=data)

        def judge(scores: np.ndarray, _: lgb.Dataset) -> tuple[str, float, bool]:
            return MEASURE, value(valid, scores).mean(), True

        model = lgb.train(given, data, TREES, [held_out], feval=judge, callbacks=[lgb.early_stopping(PATIENCE, verbose=False)])
        return model.best_score["valid_0"][MEASURE], model.predict(test.X)

    return scores


def xgboost(sets: Sets, rate: float, leaves: int, threads: int) -> tuple[float, np.ndarray]:
    train, valid, test = sets
    data, held_out = (xgb.DMatrix(each.X, each.y, group=each.sizes, nthread=threads) for each in (train, valid))
    given = {"objective": "rank:ndcg", "eta": rate, "max_leaves": leaves, "max_depth": 0, "grow_policy": "lossguide", "nthread": threads}

    def judge(scores: np.ndarray, _: xgb.DMatrix) -> tuple[str, float]:
        return MEASURE, value(valid, scores).mean()

    stop = xgb.callback.EarlyStopping(PATIENCE, metric_name=MEASURE, maximize=True, save_best=True)
    model = xgb.train(
        given | {"tree_method": "hist"}, data, TREES, [(held_out, "valid")], custom_metric=judge, callbacks=[stop], verbose_eval=False
    )
    return value(valid, model.predict(held_out)).mean(), model.predict(xgb.DMatrix(test.X))


def cat(loss: str):
    def scores(sets: Sets, rate: float, leaves: int, threads: int) -> tuple[float, np.ndarray]:
        train, valid, test = sets
        depth = int(np.ceil(np.log2(leaves + 1)))
        pools = [catboost.Pool(each.X, each.y, group_id=np.repeat(np.arange(each.n_queries), each.sizes)) for each in (train, valid)]
        given = {"loss_function": loss, "learning_rate": rate, "depth": depth, "iterations": TREES, "eval_metric": "NDCG:top=10;type=Exp"}
        model = catboost.CatBoost(given | {"thread_count": threads, "verbose": False, "random_seed": 0, "allow_writing_files": False})
        model.fit(pools[0], eval_set=pools[1], early_stopping_rounds=PATIENCE, use_best_model=True)
        return value(valid, model.predict(valid.X)).mean(), model.predict(test.X)

    return scores


#: Five forests whose trees see 70% of the queries and one threshold of each feature, and their mean.
BAGS = {"bags": 5, "query_fraction": 0.7, "extra": True}
METHODS = {
    "LambdaMART": ours(xr.LambdaMART),
    "LambdaMART, 5 bags": ours(xr.LambdaMART, near=0.0, **BAGS),
    "LambdaMART, sampled, 5 bags": ours(xr.LambdaMART, lambdas="sampled", **BAGS),
    "DirectRankTrees": ours(xr.DirectRankTrees),
    "DirectRankTrees, 5 bags": ours(xr.DirectRankTrees, **BAGS),
    "LightGBM lambdarank": lightgbm("lambdarank"),
    "LightGBM xendcg": lightgbm("rank_xendcg"),
    "XGBoost rank:ndcg": xgboost,
    "CatBoost YetiRank": cat("YetiRank"),
    "CatBoost QueryRMSE": cat("QueryRMSE"),
    "CatBoost StochasticRank": cat("StochasticRank:metric=NDCG;top=10;type=Exp"),
}
PEERS = [name for name in METHODS if name.startswith(("LightGBM", "XGBoost", "CatBoost"))]


def turned(parts: list[xr.RankingData]) -> list[Sets]:
    return [(joined([parts[(k + i) % 5] for i in range(3)]), joined([parts[(k + 3) % 5]]), joined([parts[(k + 4) % 5]])) for k in range(5)]


def every_set(data: Path, artificial: Path | None) -> dict[str, list[Sets]]:
    found = {}
    if artificial is not None:
        loaded = (np.load(artificial / f"letor.{part}.npz") for part in ("train", "vali", "test"))
        found["artificial"] = [tuple(xr.RankingData.from_arrays(part["X"], part["y"], qid=part["qid"]) for part in loaded)]
    for name, pattern in {"MQ2008": "S[1-5].txt*", "ClueWeb09": "part[1-5].txt*"}.items():
        if (data / name).is_dir():
            found[name] = turned([xr.read(path) for path in sorted((data / name).glob(pattern))])
    return found


def study(title: str, folds: list[Sets], settings: list[tuple[float, int]], threads: int, only: list[str]) -> None:
    values, seconds, chosen = {}, {}, {}
    for name in only:
        start, tested, picks = time.perf_counter(), [], []
        for sets in folds:
            runs = [(*METHODS[name](sets, rate, leaves, threads), (rate, leaves)) for rate, leaves in settings]
            _, scores, pick = max(runs, key=lambda run: run[0])
            tested.append(value(sets[2], scores))
            picks.append(pick)
        values[name], seconds[name], chosen[name] = np.concatenate(tested), time.perf_counter() - start, picks
        print(f"{title}: {name} {values[name].mean():.4f} in {seconds[name]:.0f} s, settings {picks}", file=sys.stderr)
    peers = [name for name in only if name in PEERS]
    peer = max(peers, key=lambda name: values[name].mean()) if peers else only[0]
    rows = []
    for name in sorted(only, key=lambda name: -values[name].mean()):
        low, high = bootstrap_intervals(values[name][None], np.ones(len(values[name])))[0]
        p = "" if name == peer else f"{randomisation(values[name] - values[peer]):.3f}"
        rows.append(
            [name, f"{values[name].mean():.4f}", f"{low:.4f} .. {high:.4f}", p, f"{seconds[name] / len(folds) / len(settings):.1f}"]
        )
    header = ["", "test nDCG@10", "95% interval", f"p against {peer}", "s a fit"]
    about = f"{title}: {len(next(iter(values.values()))):,} test queries, the best of {len(settings)} settings by validation data"
    table(title, about, header, rows)


def main() -> None:
    parser = with_artificial(__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--settings", type=int, default=2, choices=range(1, len(SETTINGS) + 1))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sets", nargs="*", help="of artificial, MQ2008 and ClueWeb09")
    given = parser.parse_args()
    for title, folds in every_set(given.data, given.artificial).items():
        if not given.sets or title in given.sets:
            study(title, folds, SETTINGS[: given.settings], given.threads, given.only)


if __name__ == "__main__":
    sys.exit(main())
