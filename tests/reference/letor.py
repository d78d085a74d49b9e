"""LETOR text parsed line by line with Python's own split and float."""

import re

import numpy as np


def parse(text):
    """Rows as (grade, query id, {feature id: float32 value}, comment or None), from bytes of well-formed text."""
    rows = []
    for line in text.split(b"\n"):
        body, mark, comment = line.partition(b"#")
        tokens = body.split()
        if not tokens:
            continue
        features = {}
        for token in tokens[2:]:
            feature, value = token.split(b":")
            with np.errstate(over="ignore"):
                features[int(feature)] = np.float32(float(value))
        rows.append((float(tokens[0]), tokens[1].removeprefix(b"qid:"), features, comment.strip(b" \t\r") if mark else None))
    return rows


def matrix(rows):
    """The dense float32 matrix and the id of its first column."""
    ids = [i for _, _, features, _ in rows for i in features]
    first = 0 if 0 in ids else 1
    X = np.zeros((len(rows), max(ids, default=first - 1) - first + 1), np.float32)
    for x, (_, _, features, _) in zip(X, rows, strict=True):
        for feature, value in features.items():
            x[feature - first] = value
    return X, first


def docid(comment):
    """The document id in a comment: after 'docid =', or the only word."""
    text = (comment or b"").decode("utf-8", "surrogateescape")
    blanks = " \t\r"
    if "docid" in text:
        rest = text.split("docid", 1)[1].lstrip(blanks)
        rest = rest[1:].lstrip(blanks) if rest.startswith("=") else rest
        return re.match(r"[^ \t\r]*", rest)[0]
    return text if not re.search(r"[ \t\r]", text) else ""
