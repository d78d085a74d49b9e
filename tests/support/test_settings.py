"""The laws of settings, over all rankers and all their settings.

A wrong value is a SettingError before any work. Any other value of a setting changes the model, or is refused because it has no effect
beside the others. What the declaration says is what the constructor, the search space and the command line have.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Literal, get_origin

import numpy as np
import pytest
from sklearn.base import clone

import exactrank as er
from exactrank._support.settings import SOME, VALID, Range, Setting, setting
from exactrank.cli.ranker_options import parameters
from exactrank.errors import SettingError
from exactrank.rankers import RANKERS
from exactrank.rankers.base import Ranker

#: Settings that keep a fit short.
SHORT = {"trees": 6, "max_iter": 8, "leaves": 4, "min_documents": 2, "members": "ridge, mart(trees=6)"}
#: Results do not depend on them; or only where something is random.
EXEMPT = {"threads", "seed", "backend"}
ALL = [(name, one) for name in RANKERS for one in RANKERS[name].settings]


def data_of(seed, queries=24):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * 9, 5)).round(1)
    X[:, 4] = rng.integers(0, 6, len(X))  # kinds, of which the odd ones are good
    y = np.clip(np.round(X[:, 0] - X[:, 1] * X[:, 2] + X[:, 4] % 2 + rng.normal(size=len(X))), 0, 3)
    return er.RankingData.from_arrays(X.astype(np.float32), y, qid=np.repeat(np.arange(queries), 9), feature_names=list("abcde"))


@cache
def parts():
    return data_of(0), data_of(1)


def wrong_values(declaration: Setting):
    """Values that the setting must not have."""
    yield object()
    if declaration.choices:
        yield declaration.choices[0] + "x"
    numeric = int in declaration.kinds or float in declaration.kinds
    if numeric:
        yield from (np.nan, "5", 1j)
        for limit, step in ((declaration.at_least, -1), (declaration.above, 0), (declaration.at_most, 1), (declaration.below, 0)):
            if limit is not None:
                yield type(limit)(limit + step * (1 + abs(limit)))
    if int in declaration.kinds and float not in declaration.kinds:
        yield 2.5
    if bool in declaration.kinds and not numeric:
        yield 2


@pytest.mark.parametrize(("name", "of"), ALL)
def test_a_wrong_value_is_told_before_any_work(name, of):
    ranker = RANKERS[name]
    for value in wrong_values(ranker.settings[of]):
        with pytest.raises(SettingError, match=f"{ranker.__name__}: {of}="):
            ranker(**{of: value}).fit("no data at all")


def others(declaration: Setting):
    """Some values that the setting may have, and has not by default."""
    if declaration.search is not None:
        search = declaration.search
        yield from ((search.low, search.high) if isinstance(search, Range) else search)
    yield from declaration.choices
    if str in declaration.kinds:
        yield "AP"
    if declaration.name == "module":  # of TorchRanker, tested where PyTorch is installed
        yield lambda n_features: import_module("torch").nn.Linear(n_features, 1)
    if bool in declaration.kinds:
        yield not declaration.default
    if int in declaration.kinds:
        yield from (3, 2, 1, 5)
    if float in declaration.kinds:
        yield from (0.03, 0.3, 0.7, 3.0, 30.0)
    for kind in declaration.kinds:
        if isinstance(get_origin(kind), type) and get_origin(kind) is not Literal:
            if issubclass(get_origin(kind), Mapping):
                yield {"a": -1, "b": -1}
            else:
                yield from ([["a"], ["b", "c"]], ["e"])


def context(ranker: type[Ranker], of: str):
    """Settings under which the one called ``of`` has an effect, as declared."""
    result = {"query_fraction": 0.7} if of in ("bags", "bagging") and "query_fraction" in ranker.settings else {}
    for other, allowed in ranker.settings[of].only.items() - {(VALID, SOME)}:
        result |= context(ranker, other)
        result[other] = next(filter(None, others(ranker.settings[other]))) if allowed is SOME else allowed[0]
    return result


def fitted(ranker, valid, given):
    """Scores and number of steps, or why it was refused."""
    long = {"max_iter": 60, "trees": 40} if "patience" in given or "restarts" in given else {}
    one_model = {"bags": 0} if "trees" in ranker.settings else {}  # forest, not ten
    short = {name: value for name, value in (SHORT | long | one_model).items() if name in ranker.settings and name not in given}
    try:
        one_model = ranker(**short, **given).fit(parts()[0], valid=valid)
    except (SettingError, er.errors.IncompatibleError) as refused:
        return str(refused), 0
    return one_model.predict(parts()[0]).tobytes(), one_model.model_.training["steps"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "of"), [(name, of) for name, of in ALL if of not in EXEMPT | {"measure", "missing"}])
def test_another_value_changes_the_fit_or_is_refused(name, of):
    """With validation data or without: some settings say how long to go on, or what to do where there is none."""
    ranker = RANKERS[name]
    first, under = ranker.settings[of], context(ranker, of)
    tried = [value for value in others(first) if not first.is_default(value) and SHORT.get(of) != value and allowed(first, value)]
    assert tried, f"no other value of {of} is known; add one to others()"
    for valid in (parts()[1], None):
        usual = fitted(ranker, valid, under | ({of: first.default} if of in ("patience", "restarts") else {}))
        assert not isinstance(usual[0], str), usual
        if any(fitted(ranker, valid, under | {of: value}) != usual for value in tried):
            return
    pytest.fail(f"{ranker.__name__}: {of}={tried} are taken, and change nothing")


def allowed(declaration: Setting, value: object) -> bool:
    try:
        declaration.check(value, "")
    except SettingError:
        return False
    return True


@pytest.mark.parametrize(("name", "of"), [(name, of) for name, of in ALL if RANKERS[name].settings[of].only])
def test_a_setting_without_effect_is_refused(name, of):
    """Where what it needs beside it is not there, whatever else is."""
    ranker = RANKERS[name]
    first = ranker.settings[of]
    value = next(value for value in others(first) if not first.is_default(value))
    train, _ = parts()
    at_rest = ranker(**{of: value})
    if of not in at_rest.ineffective_settings(train):
        pytest.skip("by default what it needs is there")
    with pytest.raises(SettingError, match=f"{of}=.* has no effect with(out)? .*; leave it out, or give"):
        at_rest.fit(train)


@pytest.mark.parametrize("name", RANKERS)
def test_the_declaration_is_all_there_is(name):
    ranker = RANKERS[name]
    positional = [of for of, one in inspect.signature(ranker).parameters.items() if one.kind is not one.KEYWORD_ONLY]
    assert positional == ["measure"]
    assert list(inspect.signature(ranker).parameters) == sorted(ranker.settings, key=lambda of: of != positional[0])
    assert ranker().get_params() == {of: one.default for of, one in ranker.settings.items()}
    assert dict(ranker.space) == {of: one.search for of, one in ranker.settings.items() if one.search is not None}
    assert clone(ranker(seed=3)).seed == 3
    assert all(one.help.endswith(".") for one in ranker.settings.values())
    written = {parameter.name for parameter in parameters(ranker)}
    shared = {"measure", "seed", "threads", "missing", "bags", "bagging"} & set(ranker.settings)
    assert len(shared) >= 5
    assert shared <= written <= set(ranker.settings)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: er.LambdaMART(n_estimators=5), "has no setting 'n_estimators'; here it is called trees"),
        (lambda: er.LambdaMART().set_params(num_leaves=5), "has no setting 'num_leaves'; here it is called leaves"),
        (lambda: er.LambdaMART(eta=5), "here it is called learning_rate"),
        (lambda: er.DirectRank(max_rounds=5), "here it is called max_iter"),
        (lambda: er.Ridge(sede=5), "did you mean seed?"),
        (lambda: er.Ridge(judge_by_objective=5), "it has measure, "),
        (lambda: er.DirectRank(order="cyclc").fit("x"), 'order=\'cyclc\' is not "cyclic", "random" or "greedy"; did you mean "cyclic"?'),
    ],
)
def test_what_is_said_of_a_mistake(made, message):
    with pytest.raises(SettingError) as error:
        made()
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


def test_a_subclass_changes_a_default_and_keeps_the_declaration():
    class Strong(er.Ridge):
        l2: float = 5.0

    assert Strong().l2 == 5.0
    assert Strong.settings["l2"].above == er.Ridge.settings["l2"].above == 0
    assert er.Ridge().l2 != 5.0


def test_a_ranker_of_a_user_declares_a_setting_in_a_line():
    class Doubled(er.Ridge):
        times: int = setting(default=2, help="How often.", at_least=1, only={"l2": (0.5,)})

    data, _ = parts()
    Doubled(l2=0.5, times=3).check_effects(data)
    with pytest.raises(SettingError, match=r"times=3 has no effect with l2='auto'; leave it out, or give l2=0\.5"):
        Doubled(times=3).check_effects(data)


@pytest.mark.parametrize("name", [name for name in RANKERS if VALID in getattr(RANKERS[name].settings.get("patience"), "only", ())])
def test_patience_is_refused_where_nothing_validates(name):
    """Cross-fitting does: it holds out queries for each model."""
    ranker, (train, _) = RANKERS[name], parts()
    with pytest.raises(SettingError) as refused:
        ranker(patience=3, bags=0).fit(train)
    remedy = 'leave it out, or give valid, or bags with bagging="cross-fit"'
    assert str(refused.value) == f"{ranker.__name__}: patience=3 has no effect without validation data; {remedy}"
    assert "patience" not in ranker(patience=3).ineffective_settings(train, validated=True)
    assert "patience" not in ranker(patience=3, bags=3, bagging="cross-fit").ineffective_settings(train)
    assert "patience" in ranker(patience=3, bags=3, bagging="bootstrap").ineffective_settings(train)
    ranker(patience=ranker.settings["patience"].default, **{of: value for of, value in SHORT.items() if of in ranker.settings}).fit(train)


def test_most_rankers_have_a_patience_that_needs_validation_data():
    asks = {name for name in RANKERS if VALID in getattr(RANKERS[name].settings.get("patience"), "only", ())}
    assert asks >= {"mart", "lambdamart", "directrank-trees", "ranknet", "lambdarank", "rankboost", "ranksvm", "structuredrank"}
