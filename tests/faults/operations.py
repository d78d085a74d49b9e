"""The commands that write, on data so small that a run takes milliseconds."""

from dataclasses import dataclass
from pathlib import Path

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial


@dataclass(frozen=True)
class Operation:
    """A command with ``{data}``, ``{model}`` ... for inputs, which writes the file ``out`` in the folder that it runs in."""

    name: str
    command: str
    out: str
    exact: bool = True  #: whether it writes the same bytes each time; else whatever can be loaded is whole
    kept: str = ""  #: a file that a run which fails leaves on purpose, to go on from, and that a run which succeeds removes

    def arguments(self, inputs: dict[str, Path]) -> list[str]:
        """The words of the command."""
        return [word.format(**inputs) for word in self.command.split()]


def make_inputs(folder: Path) -> dict[str, Path]:
    """The files that operations read."""
    data = CubicPolynomial(features=3, documents=6, grades=3, noise=0.2).data(8)
    inputs = {"data": folder / "data.xr", "text": folder / "data.txt", "model": folder / "model.json"}
    inputs |= {"fusion": folder / "fusion.json", "run1": folder / "1.run", "run2": folder / "2.run"}
    er.write(data, inputs["data"])
    er.write(data, inputs["text"])
    er.Ridge(measure="nDCG@10").fit(data).save(inputs["model"])
    er.fuse(data, systems=["1", "2"], folds=0, bootstrap=0).save(inputs["fusion"])
    inputs |= {"log": folder / "log.csv", "features": folder / "features.xr"}
    shown = CubicPolynomial(features=3, documents=6, document_ids=True).data(4)
    er.write(shown, inputs["features"])
    er.clicks.write_clicks(er.clicks.simulate_clicks(shown, sessions=3).clicks, inputs["log"])
    inputs["pairs"] = folder / "pairs.csv"
    inputs["pairs"].write_text(f"query_id,better,worse\n{shown.qid[0]},{shown.docid[0]},{shown.docid[1]}\n")
    for feature in ("1", "2"):
        er.write_run(data, inputs[f"run{feature}"], feature)
    return inputs


#: Those that take milliseconds.
QUICK = {
    "convert": Operation("convert", "convert {text} out.xr --force", "out.xr"),
    "train": Operation(
        "train", "train directrank {data} --out out.json --force --threads 2 --restarts 1", "out.json", kept="out.json.checkpoint"
    ),
    "predict": Operation("predict", "predict {model} {data} --out out.txt --force", "out.txt"),
    "export": Operation("export", "export {model} --to onnx --out out.onnx --force", "out.onnx"),
    "fuse": Operation("fuse", "fuse {data} --system 1 --system 2 --save out.json --force --folds 0 --bootstrap 0", "out.json"),
    "fuse apply": Operation("fuse apply", "fuse apply {fusion} --run {run1} --run {run2} --out out.run --force", "out.run"),
}
OPERATIONS = QUICK | {
    "card": Operation("card", "card {model} --out out.md --force", "out.md"),
    "parquet": Operation("parquet", "convert {text} out.parquet --force", "out.parquet"),
    "gzip": Operation("gzip", "convert {data} out.txt.gz --force", "out.txt.gz"),
    "generate": Operation("generate", "generate out.xr --queries 9 --documents 5 --features 3 --force", "out.xr"),
    "clicks": Operation("clicks", "clicks {log} {features} --out out.xr --propensity 1/k --force", "out.xr"),
    "pairs": Operation("pairs", "pairs {pairs} {features} --out out.xr --force", "out.xr"),
    "pareto": Operation("pareto", "pareto {data} --system 1 --system 2 -m nDCG@10 -m P@3 --save out.csv --force", "out.csv"),
    "ridge": Operation("ridge", "train ridge {data} --out out.json --force", "out.json", kept="out.json.checkpoint"),
    "tune": Operation(
        "tune", "tune ridge {data} --out out.json --force --trials 2 --folds 2 --workers 1 --threads 1", "out.json", exact=False
    ),
}
