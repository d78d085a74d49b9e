"""Two examples for every command, which its help shows and the tests run.

They run one after the other in a folder with ``train.txt``, ``valid.txt``, ``test.txt``, pairs of documents of the first in
``judgments.csv``, the parts ``S1.txt`` to ``S5.txt``, judgments ``qrels.txt`` with the runs ``bm25.run`` and ``dense.run``, and the outputs
of earlier examples.
"""

from collections.abc import Mapping

#: By the words of the command, without ``exactrank``.
EXAMPLES: Mapping[str, tuple[str, str]] = {
    "info": ("info train.txt", "info train.txt --json"),
    "convert": ("convert train.txt train.xr", "convert qrels.txt hybrid.csv --run bm25.run --run dense.run"),
    "pairs": ("pairs judgments.csv train.txt --out judged.xr", "pairs judgments.csv train.txt --bradley-terry --out graded.txt"),
    "generate": ("generate artificial.txt --queries 100", "generate shown.csv --queries 20 --clicks pbm --log log.csv"),
    "clicks": (
        "clicks log.csv shown.csv --out clicked.xr",
        "clicks log.csv shown.csv --out clicked.parquet --propensity 1/k --clip 0.1",
    ),
    "train": ("train ridge train.txt --out model.json", "train lambdamart train.txt --valid valid.txt --trees 100 --out trees.json"),
    "tune": (
        "tune ridge train.txt --out tuned.json",
        "tune 'lambdamart(trees=50, bags=0)' train.txt --valid valid.txt --trials 5 --out best.json",
    ),
    "compare": (
        "compare train.txt --methods ridge,lambdamart -m nDCG@10 -m AP --out report",
        "compare --parts S1.txt S2.txt S3.txt S4.txt S5.txt --methods ridge,listnet --out rotated",
    ),
    "demo": ("demo", "demo --out elsewhere --seed 1"),
    "evaluate": ("evaluate test.txt model.json", "evaluate qrels.txt bm25.run dense.run -m nDCG@10 -m 'AP(rel=2)'"),
    "predict": ("predict model.json test.txt --out scores.txt", "predict model.json test.txt --out test.run --depth 100"),
    "cutoff": (
        "cutoff test.txt scores.txt --goal 'utility(gain=1, cost=0.2)' --attach model.json --out cut.json",
        "cutoff qrels.txt bm25.run --by depth --plot depth.png",
    ),
    "power": (
        "power qrels.txt bm25.run dense.run --difference 0.01",
        "power qrels.txt bm25.run dense.run -m AP --power 0.9 --json",
    ),
    "inspect": ("inspect importance model.json test.txt", "inspect optimality model.json test.txt -m nDCG@5"),
    "inspect optimality": ("inspect optimality model.json test.txt", "inspect optimality model.json test.txt -m AP --plot weights.svg"),
    "inspect forces": ("inspect forces train.txt --lambdas step", "inspect forces train.txt --lambdas logistic -m AP --queries 5"),
    "inspect importance": ("inspect importance model.json test.txt", "inspect importance trees.json test.txt --top 5 --plot drops.svg"),
    "inspect smoothness": ("inspect smoothness model.json test.txt", "inspect smoothness model.json test.txt --percent 20 --plot c.svg"),
    "fuse": (
        "fuse qrels.txt --run bm25.run --run dense.run --save fusion.json",
        "fuse qrels.txt --run bm25.run --run dense.run --for elasticsearch",
    ),
    "fuse apply": (
        "fuse apply fusion.json --run bm25.run --run dense.run --out fused.run",
        "fuse apply fusion.json --run bm25=bm25.run --run dense=dense.run --out -",
    ),
    "pareto": (
        "pareto qrels.txt --run bm25.run --run dense.run -m nDCG@10 -m R@100 --plot front.png",
        "pareto test.txt --model model.json -m nDCG@10 -m P@5 --save front.csv",
    ),
    "judge": (
        "judge --run bm25.run --run dense.run --judged qrels.txt --limit 20 --out plan.csv",
        "judge --run bm25.run --run dense.run --judged qrels.txt --decide run --epsilon 0.01 --export ratings.csv",
    ),
    "card": ("card model.json", "card model.json --out card.md"),
    "export": ("export model.json --to solr", "export trees.json --to lightgbm --out trees.txt --check test.txt"),
    "serve": ("serve model.json", "serve first=model.json second=trees.json --port 8080"),
    "methods": ("methods", "methods --json"),
    "measures": ("measures", "measures --json"),
    "reproduce": ("reproduce", "reproduce line-search-example --out results"),
    "": ("demo", "train lambdamart train.txt --out model.json"),
}


def examples_of(command: str) -> list[str]:
    """Return two lines that show ``command``; all commands ``train METHOD`` share theirs.

    >>> examples_of("card")
    ['exactrank card model.json', 'exactrank card model.json --out card.md']
    """
    group, _, method = command.partition(" ")
    if group == "train" and method:
        lines: tuple[str, ...] = (
            f"train {method} train.txt --out {method}.json",
            f"train {method} train.txt --valid valid.txt -m nDCG@5 --out {method}-5.json",
        )
    else:
        lines = EXAMPLES.get(command, ())
    return [f"exactrank {line}" for line in lines]
