"""The measures of a comparison as equations, in MathML, which browsers set without a script or a font of their own.

Each is written with the settings that the measure has: its gain, its discount, from which grade on a document is relevant. Measures that
differ in their cutoff alone share one. They are the equations of the docstrings of ``exactrank.measures``, where their sources are.
"""

from collections.abc import Sequence

from markupsafe import Markup

from exactrank.compare.page.svg import element
from exactrank.compare.page.table import MINUS
from exactrank.measures import AP, DCG, ERR, NDCG, RBP, RR, Bpref, MeanNDCG, Measure, PairwiseCorrect, Precision, Recall, Success, Total
from exactrank.measures.binary import Binary

Part = str | Markup  #: text becomes a number, a letter, an operator or a word
Line = Sequence[Part]

#: What is said of a query with nothing relevant, and of documents with the same score.
EMPTY = {0: "counts as 0", 1: "counts as 1", "skip": "is left out of the mean"}
TIES = {
    "input": "stay in the order in which they were given",
    "pessimistic": "are ranked from the lowest grade up, which is the worst order",
    "expected": "count by the mean over all their orders",
    "docid": "are ranked by document id, descending, as trec_eval does",
}
_OPERATORS = set("=≤≥<>()[]-+∑∏,")


def equations(measure: Measure) -> list[Markup]:
    """Its definition for one query, and what stands in it; nothing for a kind of measure that is not known here."""
    return [element("math", _row(*line), display="block") for line in _lines(measure)]


def symbols(measure: Measure) -> str:
    """What stands in its equations besides ranks and grades."""
    match measure:
        case NDCG() | MeanNDCG():
            table = "" if isinstance(measure.gain, str) else f" The gains are {dict(measure.gain)}."
            return f"IDCG is the DCG of the documents in order of grade.{table}"
        case AP():
            return f"N is the number of relevant documents{', at most k' if measure.norm == 'cutoff' else ''}."
        case Precision(norm="list"):
            return "n is k, or the number of documents where that is smaller."
        case RR():
            return "r is the first rank with a relevant document."
        case PairwiseCorrect():
            return "Sums are over pairs of documents a and b of which a is better; [a, b] is 1 where a is ranked above b."
        case Bpref():
            return (
                "R and N count the judged documents that are relevant and that are not; n counts the latter above the relevant document d."
            )
        case _:
            return ""


def policies(measure: Measure) -> str:
    """What happens to queries with nothing relevant, to ties and to short lists.

    >>> policies(AP(empty="skip"))
    'A query with nothing relevant is left out of the mean. Documents with the same score stay in the order in which they were given.'
    """
    short = " A list with fewer than k documents counts as 0." if isinstance(measure, NDCG) and measure.short == "zero" else ""
    return f"A query with nothing relevant {EMPTY[measure.empty]}. Documents with the same score {TIES[measure.ties]}.{short}"


def _lines(measure: Measure) -> list[Line]:
    """One line for each equation, that of the measure first."""
    relevant = _relevant(measure, "r") if isinstance(measure, Binary) else ()
    match measure:
        case MeanNDCG():
            most = "k" if measure.k else "n"
            cut = NDCG(k=1, gain=measure.gain, discount=measure.discount)
            return [("MeanNDCG", "=", _over(("1",), (most,)), _limits("∑", ("k", "=", "1"), (most,)), "nDCG@k"), *_lines(cut)]
        case NDCG():
            share = _over((_cut(measure, "DCG"),), (_cut(measure, "IDCG"),))
            return [(_cut(measure, "nDCG"), "=", share), (_cut(measure, "DCG"), "=", _to(measure), *_discounted(measure))]
        case DCG():
            return [(_cut(measure, "DCG"), "=", _to(measure), *_discounted(measure))]
        case ERR():
            going_on = _limits("∏", ("t", "<", "r")), "(", "1", "-", _sub("u", "t"), ")"
            stop = _over((_sup("2", _sub("y", "r")), "-", "1"), (_sup("2", f"{measure.max_grade:g}"),))
            value = _to(measure), _over(("1",), ("r",)), _sub("u", "r"), *going_on
            return [(_cut(measure, "ERR"), "=", *value), (_sub("u", "r"), "=", stop)]
        case Precision():
            return [("P@k", "=", _over(("1",), ("k" if measure.norm == "cutoff" else "n",)), _to(measure), *relevant)]
        case Recall():
            return [("R@k", "=", _over((_to(measure), *relevant), (_limits("∑", ("r",)), *relevant)))]
        case RBP():
            p = f"{measure.p:g}"
            return [(_cut(measure, "RBP"), "=", "(", "1", "-", p, ")", _to(measure), *relevant, _sup(p, "r", "-", "1"))]
        case AP():
            precision = _over((_sub("C", "r"),), ("r",))
            mean = _cut(measure, "AP"), "=", _over(("1",), ("N",)), _to(measure), *relevant, precision
            return [mean, (_sub("C", "r"), "=", _limits("∑", ("t", "≤", "r")), *_relevant(measure, "t"))]
        case RR():
            return [(_cut(measure, "RR"), "=", _over(("1",), ("r",)))]
        case Total():
            return [(_cut(measure, "Total"), "=", _to(measure), _sub("c" if measure.column else "y", "r"))]
        case Success():
            return [(_cut(measure, "Success"), "=", _limits("max", ("r", "≤", "k") if measure.k else ("r",)), *relevant)]
        case PairwiseCorrect():
            pairs = _limits("∑", ("a", ",", "b"))
            return [("PairwiseCorrect", "=", _over((pairs, "[", "a", ",", "b", "]"), (pairs, "1")))]
        case Bpref():
            lost = _over(("min", "(", "n", ",", "R", ")"), ("min", "(", "R", ",", "N", ")"))
            return [("Bpref", "=", _over(("1",), ("R",)), _limits("∑", ("d",)), "(", "1", "-", lost, ")")]
        case _:
            return []


def _relevant(measure: Binary, at: str) -> Line:
    return "[", _sub("y", at), "≥", f"{measure.rel:g}", "]"


def _discounted(measure: DCG) -> Line:
    """The gain of a rank's document times the discount of the rank."""
    gain: Line = {"exp2": (_sup("2", _sub("y", "r")), "-", "1"), "linear": (_sub("y", "r"),)}.get(str(measure.gain), ())
    gain = gain or ("gain of ", _sub("y", "r"))
    match measure.discount:
        case "log2":
            return (_over(gain, (_sub("log", "2"), "(", "1", "+", "r", ")")),)
        case "letor":
            return (_over(gain, ("max", "(", "1", ",", _sub("log", "2"), "r", ")")),)
        case _:
            return "(", *gain, ")", " times the discount of ", "r"


def _to(measure: Measure) -> Markup:
    """The sum over ranks, down to the cutoff where there is one."""
    return _limits("∑", ("r", "≤", "k") if measure.k else ("r",))


def _cut(measure: Measure, name: str) -> str:
    return f"{name}@k" if measure.k else name


def _row(*parts: Part) -> Markup:
    return element("mrow", *(part if isinstance(part, Markup) else _token(part) for part in parts))


def _token(text: str) -> Markup:
    """A number, an operator, a letter or a word.

    >>> _token("0.8"), _token("="), _token("r")
    (Markup('<mn>0.8</mn>'), Markup('<mo>=</mo>'), Markup('<mi>r</mi>'))
    """
    if text.replace(".", "").replace("-", "").isdigit():
        return element("mn", text)
    if text in _OPERATORS:
        return element("mo", text.replace("-", MINUS), stretchy="false" if text in "()[]" else None)
    return element("mi", text) if len(text) == 1 or text in ("log", "min", "max") else element("mtext", text)


def _limits(base: str, below: Line, above: Line = ()) -> Markup:
    if above:
        return element("munderover", _token(base), _row(*below), _row(*above))
    return element("munder", _token(base), _row(*below))


def _sub(base: str, index: str) -> Markup:
    return element("msub", _token(base), _token(index))


def _sup(base: str, *power: Part) -> Markup:
    return element("msup", _token(base), _row(*power))


def _over(above: Line, below: Line) -> Markup:
    return element("mfrac", _row(*above), _row(*below))
