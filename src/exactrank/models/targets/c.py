"""C: one function from the features of a document, in order, to its score. It is C99 and needs at most ``tanh`` from the library."""

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence

import numpy as np

from exactrank import __version__
from exactrank._support.arrays import PerDocument
from exactrank._support.files import scratch_folder
from exactrank.errors import IncompatibleError
from exactrank.models.targets.generated_code import check_function_name, tables
from exactrank.models.targets.plain import Plain
from exactrank.models.targets.target import Rows, Target

_PLAIN = re.compile(rb"[A-Za-z0-9_ ().,:-]")
_HEAD = """\
/* A model of exactrank {version} as a function. x has one number per feature, in the order of {name}_features; NaN is a missing value.
   Compile with -ffp-contract=off for the same bits on all machines, and without -ffast-math, which ignores NaN. */
{include}
const int {name}_width = {width};
const char *const {name}_features[] = {features};

double {name}(const double *x) {{
    double score = {constant!r};
    int i;
"""
_FILLED = """\
    static const double fill[] = {fill};
    double filled[{width}];
    for (i = 0; i < {width}; i++) filled[i] = x[i] != x[i] ? fill[i] : x[i];
"""
_LINEAR = """\
    {{
        static const double weights[] = {weights};
        for (i = 0; i < {width}; i++) score += weights[i] * filled[i];
    }}
"""
_NETWORK = """\
    {{
        static const double output[] = {output};
        static const double bias[] = {bias};
        static const double weights[] = {weights};
        int unit;
        for (unit = 0; unit < {units}; unit++) {{
            double sum = bias[unit];
            for (i = 0; i < {width}; i++) sum += weights[unit * {width} + i] * filled[i];
            score += output[unit] * tanh(sum);
        }}
    }}
"""
_TREES = """\
    {{
        static const struct {{ int feature; double threshold; int missing_left, left, right; }} nodes[] = {nodes};
        static const double leaves[] = {leaves};
        static const int roots[] = {roots};
        for (i = 0; i < {trees}; i++) {{
            int node = roots[i];
            while (node >= 0) {{
                double value = x[nodes[node].feature];
                int goes_left = value <= nodes[node].threshold || (nodes[node].missing_left && value != value);
                node = goes_left ? nodes[node].left : nodes[node].right;
            }}
            score += leaves[~node];
        }}
    }}
"""


class C(Target):
    """A translation unit with one function, named after the model, and the names of its features."""

    name, suffix = "c", ".c"
    kinds, adds, missing = ("linear", "network", "trees"), True, ("zero", "mean", "keep")

    def check(self, terms: Plain) -> None:
        super().check(terms)
        check_function_name(self.name, self.model_name)

    def write(self, terms: Plain) -> tuple[str, Sequence[str]]:
        width, units = len(terms.features), terms.units
        include = "#include <math.h>\n" if units is not None else ""
        features = _initializer(map(_string, terms.features))
        text = _HEAD.format(
            version=__version__, name=self.model_name, include=include, width=width, features=features, constant=terms.constant
        )
        if terms.linear is not None or units is not None:
            text += _FILLED.format(fill=_numbers(terms.fill), width=width)
        if terms.linear is not None:
            text += _LINEAR.format(weights=_numbers(terms.linear), width=width)
        if units is not None:
            arrays = {name: _numbers(getattr(units, name)) for name in ("output", "bias", "weights")}
            text += _NETWORK.format(units=len(units.bias), width=width, **arrays)
        if terms.trees:
            roots, nodes, leaves = tables(terms.trees)
            rows = [f"{{{', '.join(map(repr, node))}}}" for node in nodes] or ["{0, 0, 0, 0, 0}"]
            text += _TREES.format(nodes=_initializer(rows), leaves=_numbers(leaves), roots=_initializer(map(str, roots)), trees=len(roots))
        return text + "    return score;\n}\n", []

    def scores(self, content: bytes, rows: Rows, features: Sequence[str]) -> PerDocument:
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            raise IncompatibleError("there is no C compiler, so the export cannot be checked; install one, set CC, or check --to python")
        with scratch_folder() as folder:
            source, library = folder / "model.c", folder / "model.so"
            source.write_bytes(content)
            command = [compiler, "-O1", "-std=c99", "-ffp-contract=off", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise IncompatibleError(f"{compiler} cannot compile the export ({result.stderr.strip()[:200]}); set CC to another compiler")
            function = ctypes.CDLL(str(library))[self.model_name]
            function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_double
            doubles = np.ascontiguousarray(rows, np.float64)
            return np.array([function(row.ctypes.data) for row in doubles], np.float64)


def _string(text: str) -> str:
    """Return a C literal, in which every character with a special meaning is escaped."""
    letters = (bytes([byte]) for byte in text.encode(errors="surrogateescape"))
    return '"' + "".join(letter.decode() if _PLAIN.fullmatch(letter) else f"\\{letter[0]:03o}" for letter in letters) + '"'


def _numbers(values: Sequence[float] | np.ndarray) -> str:
    return _initializer(map(repr, np.ravel(values).tolist()))


def _initializer(words: Iterable[str]) -> str:
    return "{\n" + ",\n".join(f"        {word}" for word in words) + "}"
