"""Text and JSON of corrected evaluations: what a machine's grades add, and how far it agrees with people."""

from typing import TYPE_CHECKING

from exactrank.cli.common import json_number
from exactrank.cli.terminal import PlainTable, show

if TYPE_CHECKING:
    from exactrank.compare.results import MachineSummary
    from exactrank.measures.machine_grades import CorrectedMean, Correction


def show_correction(correction: "Correction") -> None:
    """Print the human mean beside what the machine adds to it, and the agreement of the two."""
    for name, mean in correction.means.items():
        if mean.human is not None:
            low, high = mean.human.interval
            show(f"{name} of people alone: {mean.human.mean:.4f} ({low:.4f} .. {high:.4f}). Corrected: {mean.remark}.")
    agreement = correction.agreement
    if agreement is None:
        show("People and the machine have graded no document in common.")
        return
    low, high = agreement.interval
    side = "higher" if agreement.bias >= 0 else "lower"
    show(
        f"Agreement on {agreement.documents:,} documents: weighted kappa {agreement.kappa:.3f} ({low:.3f} .. {high:.3f}). The machine"
        f" grades {abs(agreement.bias):.3f} {side} on average."
    )
    if agreement.table:
        counts = PlainTable("people \\ machine", *(f"{grade:g}" for grade in agreement.grades))
        for grade, row in zip(agreement.grades, agreement.table, strict=True):
            counts.row(f"{grade:g}", *(f"{count:,}" for count in row))
        show(counts)


def json_corrected_mean(mean: "CorrectedMean") -> dict[str, object]:
    """Return what a machine's grades add to a mean as a record."""
    human = mean if mean.human is None else mean.human
    return {
        "human_mean": json_number(human.mean),
        "human_interval": [json_number(end) for end in human.interval],
        "machine_weight": mean.machine_weight,
        "human_queries": mean.human_queries,
        "further_queries": mean.further_queries,
        "worth": json_number(mean.worth),
    }


def json_summary(machine: "MachineSummary") -> dict[str, object]:
    """Return how far people and the machine of a comparison agree as a record."""
    interval = None if machine.kappa_interval is None else [json_number(end) for end in machine.kappa_interval]
    return {"documents": machine.documents, "kappa": machine.kappa, "interval": interval, "bias": machine.bias}


def json_correction(correction: "Correction") -> dict[str, object]:
    """Return the same as a record."""
    means = {name: json_corrected_mean(mean) for name, mean in correction.means.items()}
    agreement = correction.agreement
    if agreement is None:
        return {"measures": means, "agreement": None}
    return {
        "measures": means,
        "agreement": {
            "documents": agreement.documents,
            "kappa": json_number(agreement.kappa),
            "interval": [json_number(end) for end in agreement.interval],
            "bias": agreement.bias,
            "grades": list(agreement.grades),
            "table": [list(row) for row in agreement.table],
        },
    }
