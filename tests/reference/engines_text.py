"""Slow twins of engines that read expressions: one document after the other, by Python's own arithmetic."""

import math
import re


def vespa_import(model):
    """The rank expression of a LightGBM model in JSON, in the form of Vespa's importer."""

    def written(node):
        if "leaf_value" in node:
            return str(node["leaf_value"])
        name, threshold = model["feature_names"][node["split_feature"]], node["threshold"]
        test = f"!({name} >= {threshold})" if node["default_left"] else f"{name} < {threshold}"
        return f"if ({test}, {written(node['left_child'])}, {written(node['right_child'])})"

    return " + \n".join(written(tree["tree_structure"]) for tree in model["tree_info"])


def vespa_score(expression, names, row):
    """A rank expression for one document."""
    variables = {}
    for number, name in sorted(enumerate(names), key=lambda pair: -len(pair[1])):
        expression = re.sub(re.escape(name) + r"(?![\w(.])", f"x_{number}", expression)
        variables[f"x_{number}"] = float(row[number])
    python = re.sub(r"\bif \(", "if_(", expression).replace("!(", "not (").replace("\n", " ")
    functions = {"if_": lambda test, yes, no: yes if test else no, "tanh": math.tanh, "isNan": math.isnan}
    return eval(python, {"__builtins__": {}}, variables | functions)
