"""Off-policy evaluation from clicks, and interleaving."""

import contextlib
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.clicks.off_policy import ESTIMATORS, linear_measures
from exactrank.data.synthetic import CubicPolynomial
from exactrank.errors import LeftOutWarning
from exactrank.measures.parse import parse_measure
from tests.reference import clicks as rows_twin, off_policy as twin

MEASURE = "DCG(gain='linear')@3"
THETA = {1: 1.0, 2: 0.5, 3: 0.3, 4: 0.25}
DOCUMENTS = [(query, document) for query in "ab" for document in "vwxyz"]


def log_of(rows: list[rows_twin.Row]) -> er.clicks.Clicks:
    query, document, rank, clicked, session, weight = zip(*rows, strict=True)
    return er.clicks.Clicks.from_arrays(query, document, rank, clicked, session=session, weight=weight)


def documents(order=DOCUMENTS) -> er.RankingData:
    return er.RankingData.from_arrays(None, np.zeros(len(order)), qid=[q for q, _ in order], docid=[d for _, d in order])


@st.composite
def logs(draw, weighted: bool = True) -> list[rows_twin.Row]:
    """Pages for both queries, with at least a click; document z of each query is never shown."""
    rows = []
    for session in range(draw(st.integers(2, 7))):
        query, page = "ab"[session % 2], draw(st.permutations("vwxy"))
        weight = draw(st.sampled_from([1.0, 2.0, 0.3])) if weighted else 1.0
        rows += [(query, d, k, draw(st.integers(0, 1)), str(session), weight) for k, d in enumerate(page[: draw(st.integers(1, 4))], 1)]
    assume(any(row[3] for row in rows))
    return rows


scores_of = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=10, max_size=10)


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    return CubicPolynomial(features=6, documents=12, document_ids=True).data(10)


@pytest.fixture(scope="module")
def simulated(data):
    return er.clicks.simulate_clicks(data, sessions=50, seed=3)


# ---- the estimates


@settings(deadline=None)
@given(logs(), scores_of, scores_of, st.sampled_from(ESTIMATORS), st.sampled_from([0.0, 0.4, 1.0]), st.permutations(DOCUMENTS))
def test_estimates_are_those_of_the_definitions(rows, scores, model, estimator, clip, order):
    baseline = {"baseline": model} if estimator == "doubly-robust" else {}
    ours = er.evaluate(documents(order), scores, MEASURE, clicks=log_of(rows), propensity=THETA, estimator=estimator, clip=clip, **baseline)
    by_document = (dict(zip(order, values, strict=True)) for values in (scores, model))
    ranked, relevance = by_document
    assert np.isclose(ours.means[MEASURE], twin.estimate(rows, ranked, THETA, estimator, clip, relevance, 3), rtol=1e-12)


@settings(deadline=None)
@given(logs(weighted=False), scores_of, st.sampled_from(ESTIMATORS), st.data())
def test_a_duplicated_impression_is_a_weight_of_two(rows, scores, estimator, drawn):
    again = drawn.draw(st.lists(st.sampled_from(rows), unique=True))
    weighted = log_of([(*row[:5], 2.0) if row in again else row for row in rows])
    ours, theirs = (
        er.evaluate(documents(), scores, MEASURE, clicks=log, propensity=THETA, estimator=estimator, clip=0.4)
        for log in (weighted, log_of([*rows, *again]))
    )
    assert np.array_equal(ours.per_query, theirs.per_query)
    assert np.array_equal(ours.weight, theirs.weight)
    assert np.isclose(ours.effective_sample_size, theirs.effective_sample_size, rtol=1e-12)
    assert (ours.clicks, ours.unseen) == (theirs.clicks, theirs.unseen)
    assert np.isclose(ours.clipped, theirs.clipped)


@settings(deadline=None)
@given(logs(), scores_of, st.sampled_from([0.25, 0.3, 0.7]))
def test_snips_stays_when_all_propensities_are_scaled(rows, scores, scale):
    log, scaled = log_of(rows), {rank: value * scale for rank, value in THETA.items()}
    ours, theirs = (
        er.evaluate(documents(), scores, MEASURE, clicks=log, propensity=theta, estimator="snips", clip=0) for theta in (THETA, scaled)
    )
    assert np.isclose(ours.means[MEASURE], theirs.means[MEASURE], rtol=1e-12)
    assert np.allclose(ours.intervals[MEASURE], theirs.intervals[MEASURE], rtol=1e-9)
    assert np.isclose(ours.effective_sample_size, theirs.effective_sample_size, rtol=1e-12)


def test_propensity_one_is_plain_evaluation_to_the_bit(simulated, data):
    log, scores = simulated.clicks, data.X[:, 0]
    measures = [MEASURE, "DCG(gain='linear', discount='letor', ties='docid')"]
    rates = log.to_data(data, np.ones(10))
    assert rates.docid.tolist() == data.docid.tolist()  # all were shown
    plain = er.evaluate(rates, scores, measures)
    for estimator in ("ips", "doubly-robust"):
        ours = er.evaluate(data, scores, measures, clicks=log, propensity=np.ones(10), estimator=estimator)
        assert np.array_equal(ours.per_query, plain.per_query)
        assert ours.means == plain.means
        assert ours.intervals == plain.intervals
    assert ours.effective_sample_size == ours.clicks == log.clicked.sum()
    assert ours.clipped == 0.0
    assert ours.unseen == dict.fromkeys(measures, 0.0)


def test_effective_sample_size_and_clipping(simulated, data):
    log = simulated.clicks
    few = er.evaluate(data, data.y, MEASURE, clicks=log, propensity="1/k", clip=0.25)
    theta = np.maximum(1 / log.rank[log.clicked], 0.25)
    assert np.isclose(few.effective_sample_size, np.sum(1 / theta) ** 2 / np.sum(1 / theta**2))
    assert np.isclose(few.clipped, np.mean(log.rank[log.clicked] > 4))
    every = er.evaluate(data, data.y, MEASURE, clicks=log, propensity="1/k", clip=1.0)
    assert every.effective_sample_size == every.clicks


def test_what_was_never_shown_is_told():
    rows = [("a", "v", 1, 1, "1", 1.0), ("b", "v", 1, 1, "2", 1.0)]
    found = er.evaluate(documents(), [2, 1, 1, 1, 1, 1, 1, 1, 1, 2], "DCG(gain='linear')@1", clicks=log_of(rows), propensity=[1.0])
    assert found.unseen == {"DCG(gain='linear')@1": 0.5}
    assert found.per_query.tolist() == [[1.0, 0.0]]


# ---- bias, by simulation


def deviations(data, estimates, seeds=24) -> dict[str, tuple[float, float]]:
    """Of each of ``estimates``, settings by name, in simulations: the mean difference from the truth, and its standard error."""
    found: dict[str, list[float]] = {name: [] for name in estimates}
    for seed in range(seeds):
        made = er.clicks.simulate_clicks(data, sessions=60, page_size=12, seed=seed)
        truth = er.RankingData.from_arrays(None, made.relevance, group=data.sizes)
        for name, own in estimates.items():
            model = {"baseline": own["model"](made.relevance)} if "model" in own else {}
            scores, clip = data.X[:, 0], own.get("clip", 0.0)
            log = made.clicks.take(made.clicks.rank <= own.get("shown", 12))
            ours = er.evaluate(data, scores, MEASURE, clicks=log, propensity="1/k", estimator=own["estimator"], clip=clip, **model)
            expected = er.evaluate(truth, scores, MEASURE).means[MEASURE]
            mass = np.mean(np.add.reduceat(made.relevance, data.indptr[:-1])) if own["estimator"] == "snips" else 1.0
            found[name].append(ours.means[MEASURE] - expected / mass)
    return {name: (float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(seeds))) for name, each in found.items()}


def test_estimates_are_unbiased_where_they_should_be(data):
    """Within two standard errors of the truth: where the weights are right, or the model is."""

    def wrong(relevance):
        return 1 - relevance

    found = deviations(
        data,
        {
            "ips": {"estimator": "ips"},
            "snips": {"estimator": "snips"},
            "clipped ips": {"estimator": "ips", "clip": 0.5},
            "right weights, wrong model": {"estimator": "doubly-robust", "model": wrong},
            "wrong weights, right model": {"estimator": "doubly-robust", "clip": 0.5, "model": np.asarray},
            "unseen documents, right model": {"estimator": "doubly-robust", "shown": 1, "model": np.asarray},
            "unseen documents, ips": {"estimator": "ips", "shown": 1},
            "both wrong": {"estimator": "doubly-robust", "clip": 0.5, "model": wrong},
        },
    )
    biased = {"clipped ips", "unseen documents, ips", "both wrong"}
    for name, (mean, error) in found.items():
        assert abs(mean) > 3 * error if name in biased else abs(mean) < 2 * error, (name, mean, error)
    assert found["wrong weights, right model"][1] < 0.7 * found["ips"][1]


def test_the_gain_over_another_ranker(simulated, data):
    log = simulated.clicks
    for estimator in ESTIMATORS:
        good, bad = (er.evaluate(data, scores, MEASURE, clicks=log, propensity="1/k", estimator=estimator) for scores in (data.y, -data.y))
        gain = good.gain_over(bad)
        assert np.isclose(gain.means[MEASURE], good.means[MEASURE] - bad.means[MEASURE])
        assert gain.intervals[MEASURE][0] > 0
    with pytest.raises(er.errors.IncompatibleError, match="evaluate both alike"):
        good.gain_over(er.evaluate(data, data.y, MEASURE, clicks=log, propensity="1/k"))


# ---- measures


LINEAR = ["DCG(gain='linear')@10", "DCG(gain='linear', discount=[1, 0.5])", "DCG(gain='linear', ties='expected')"]
OTHERS = ["nDCG(gain='linear')@10", "nDCG@10", "DCG@10", "AP", "ERR@10", "RR", "MeanNDCG", "P@5", "R@5", "RBP", "AUC", "Bpref", "Success@5"]
OTHERS += ["DCG(gain='linear', empty='skip')", "DCG(gain='linear', ties='pessimistic')", "DCG(gain={0: 0, 1: 1})@5"]


@pytest.mark.parametrize("measure", LINEAR)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=6, max_size=6), st.lists(st.floats(0, 9), min_size=6, max_size=6), scores_of
)
def test_linear_measures_add_up(measure, one, other, scores):
    def value(grades):
        data = er.RankingData.from_arrays(None, grades, group=[6])
        return er.evaluate(data, scores[:6], measure).means[measure]

    assert parse_measure(measure).is_linear
    assert np.isclose(value(np.array(one) + 2 * np.array(other)), value(one) + 2 * value(other))


@pytest.mark.parametrize("measure", OTHERS)
def test_other_measures_are_refused(measure, simulated, data):
    with pytest.raises(er.errors.MeasureError, match=r"is not linear in the grades.*use DCG\(gain='linear'\)@10"):
        er.evaluate(data, data.y, measure, clicks=simulated.clicks, propensity="1/k")


def test_linear_measures_are_found_by_what_they_are():
    assert linear_measures() == ["DCG(gain='linear')@10", "Total@10"]


# ---- bad input


def test_bad_settings_are_refused(simulated, data):
    log = simulated.clicks

    def evaluate(**settings):
        return er.evaluate(data, data.y, MEASURE, **{"clicks": log, "propensity": "1/k"} | settings)

    for settings_, says in (
        ({"propensity": None}, r"needs propensities; give propensity=clicks.propensities\(\)"),
        ({"estimator": "snip"}, r"'snip' is not an estimator \(did you mean snips\?\); use one of ips, snips, doubly-robust"),
        ({"clip": 1.5}, "clip must be from 0 to 1, got 1.5"),
        ({"clip": -0.1}, "clip must be from 0 to 1, got -0.1"),
        ({"unknown": "keep"}, "unknown='keep' is neither"),
        ({"baseline": data.y}, "a baseline is for estimator='doubly-robust', not for 'ips'"),
        ({"baseline": data.y - 1, "estimator": "doubly-robust"}, "the baseline of a document is -1; relevance is a number from 0"),
        ({"baseline": [1.0], "estimator": "doubly-robust"}, "baseline has shape"),
        ({"clicks": None}, "give clicks= too"),
        ({"clicks": log.take(~log.clicked)}, "no document of the data was clicked"),
        ({"clicks": log.take(log.query == 0)}, "from one query only"),
        ({"propensity": [1.0]}, "no propensity of rank"),
    ):
        with pytest.raises(er.errors.DataError, match=says):
            evaluate(**settings_)


def test_bad_logs_are_refused(simulated, data):
    one = er.clicks.Clicks.from_arrays(["a", "b"], ["v", "v"], [1, 1], [1, 1], session=[1, 1])
    with pytest.raises(er.errors.DataError, match=r"from one session only, .*give a larger log"):
        er.evaluate(documents(), np.arange(10), MEASURE, clicks=one, propensity="1/k")
    with pytest.raises(er.errors.DataError, match="no query of the log is in the data"):
        er.evaluate(documents(), np.arange(10), MEASURE, clicks=simulated.clicks, propensity="1/k")
    odd = er.clicks.Clicks.from_arrays(
        ["a", "b", "c"], ["v", "judge_by_objective-of", "v"], [1, 1, 1], [1, 1, 1]
    )  # query c is not asked for
    with pytest.raises(er.errors.DataError, match="1 of 2 documents of the log have no features: 'judge_by_objective-of' of query 'b'"):
        er.evaluate(documents(), np.arange(10), MEASURE, clicks=odd, propensity="1/k")
    with pytest.warns(LeftOutWarning, match="judge_by_objective-of"):
        found = er.evaluate(documents(), np.arange(10), MEASURE, clicks=odd, propensity="1/k", unknown="drop")
    assert (found.clicks, found.effective_sample_size) == (1, 1)
    with pytest.raises(er.errors.DataError, match="no document ids"):
        without = er.RankingData.from_arrays(None, [0, 1], qid=["a", "b"])
        er.evaluate(without, [1, 2], MEASURE, clicks=odd, propensity="1/k")


# ---- the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data, simulated):
    made = tmp_path_factory.mktemp("clicks")
    er.write(data, made / "data.csv")
    er.clicks.write_clicks(simulated.clicks, made / "log.csv")
    for name, scores in (("live", data.X[:, 0]), ("new", data.y)):
        (made / name).write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    return made


def run(folder, *arguments):
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, ["evaluate", "data.csv", *arguments])


def test_the_command_estimates_as_python_does(folder, data, simulated):
    settings_ = {"clicks": simulated.clicks, "propensity": "1/k", "estimator": "snips", "clip": 0.2, "seed": 3}
    live, new = (er.evaluate(data, scores, MEASURE, **settings_) for scores in (data.X[:, 0], data.y))
    words = ["--clicks", "log.csv", "--propensity", "1/k", "--estimator", "snips", "--clip", "0.2", "--seed", "3", "-m", MEASURE]
    found = json.loads(run(folder, "live", "new", *words, "--json", "--per-query").stdout)
    assert (found["estimator"], found["clipped"]) == ("snips", new.clipped)
    assert (found["clicks"], found["effective_sample_size"]) == (new.clicks, new.effective_sample_size)
    ours = found["rankings"]["new"][MEASURE]
    assert (ours["mean"], tuple(ours["interval"])) == (new.means[MEASURE], new.intervals[MEASURE])
    assert list(ours["per_query"].values()) == new[MEASURE].values.tolist()
    assert ours["gain"]["mean"] == new.gain_over(live).means[MEASURE]
    shown = run(folder, "live", "new", *words, "--per-query").stdout
    assert f"{new.means[MEASURE]:.4f}" in shown
    assert "gain over" in shown
    assert f"snips with propensities by given: {new.clicks:,.0f} clicks on 10 queries" in " ".join(shown.split())


def test_the_command_needs_no_measure_and_takes_a_feature(folder, data, simulated):
    found = json.loads(run(folder, "--feature", "2", "--clicks", "log.csv", "--propensity", "1/k", "--json").stdout)
    expected = er.evaluate(data, data.X[:, 1], "DCG(gain='linear')@10", clicks=simulated.clicks, propensity="1/k")
    assert found["rankings"]["2"]["DCG(gain='linear')@10"]["mean"] == expected.means["DCG(gain='linear')@10"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--estimator", "snips"], "add --clicks LOG, or leave it out"),
        (["--clicks", "log.csv", "-m", "AP"], "AP is not linear in the grades"),
        (["--clicks", "data.csv"], "data.csv"),
        (["--clicks", "log.csv", "--clip", "7"], "clip must be from 0 to 1, got 7"),
    ],
)
def test_the_command_refuses_nonsense(folder, words, says):
    ended = run(folder, "live", *words)
    assert ended.exit_code == 2
    assert says in ended.stderr


# ---- interleaving


@settings(deadline=None)
@given(scores_of, scores_of, st.integers(1, 7), st.integers(0, 5))
def test_a_draft_takes_the_best_that_is_left(a, b, depth, seed):
    a = [-np.inf if score == 0.0 else score for score in a]
    data, pages = documents(), er.clicks.interleave(documents(), a, b, pages=2, depth=depth, seed=seed)
    best = {}
    for q, first in (("a", 0), ("b", 5)):
        for team, scores in (("a", a), ("b", b)):
            order = sorted(range(first, first + 5), key=lambda i: -scores[i])
            best[q, team] = [data.docid[i] for i in order if scores[i] > -np.inf]
    for page in range(1, 5):
        rows = np.flatnonzero(pages.session == page)
        query, seen = pages.query[rows[0]], []
        assert pages.rank[rows].tolist() == list(range(1, len(rows) + 1))
        assert len(rows) == min(depth, 5)
        for row in rows:
            left = [document for document in best[query, pages.team[row]] if document not in seen]
            assert pages.document[row] == left[0] == data.docid[int(pages.row[row])]
            seen.append(pages.document[row])
    if np.all(np.isfinite(a)):
        counts = [np.sum(pages.team[pages.session == page] == "a") for page in range(1, 5)]
        assert all(abs(2 * count - min(depth, 5)) <= 1 for count in counts)


@given(logs(), st.randoms(use_true_random=False))
def test_pages_are_won_by_clicks(rows, random):
    team = {(session, query, document): random.choice("ab") for query, document, _, _, session, _ in rows}
    keys = list(team)
    frame = dict(zip(("session_id", "query_id", "doc_id"), zip(*keys, strict=True), strict=True)) | {"team": [team[key] for key in keys]}
    a, b, ties = twin.wins(rows, team)
    if a + b == 0:
        with pytest.raises(er.errors.DataError, match="pages was won"):
            er.clicks.preference(log_of(rows), frame)
        return
    found = er.clicks.preference(log_of(rows), frame)
    assert (found.a_wins, found.b_wins, found.ties) == (a, b, ties)
    assert np.isclose(found.a_rate, (a + ties / 2) / (a + b + ties))
    assert found.interval[0] <= found.a_rate <= found.interval[1]


def clicked_on(data, pages, seed=0) -> er.clicks.Clicks:
    attractive = (0.1 + 0.8 * data.y / data.y.max())[pages.row]
    clicked = np.random.default_rng(seed).random(len(pages.row)) < attractive / pages.rank
    return er.clicks.Clicks.from_arrays(pages.query, pages.document, pages.rank, clicked, session=pages.session)


def test_users_prefer_the_better_ranker_and_none_of_equals(data):
    equal = []
    for seed in range(10):
        pages = er.clicks.interleave(data, data.y, data.y, pages=20, seed=seed)
        equal.append(er.clicks.preference(clicked_on(data, pages, seed), pages).p)
    assert np.mean(np.array(equal) < 0.05) <= 0.2
    pages = er.clicks.interleave(data, data.y, data.X[:, 0], pages=20)
    found, swapped = er.clicks.preference(clicked_on(data, pages), pages), er.clicks.interleave(data, data.X[:, 0], data.y, pages=20)
    assert found.interval[0] > 0.5
    assert found.p < 0.01
    assert str(found).startswith(f"a wins {found.a_wins}")
    assert er.clicks.preference(clicked_on(data, swapped), swapped).interval[1] < 0.5


def test_pages_of_one_query_are_not_independent():
    """Users who prefer either ranker by the query, half of the queries each, have no preference, however many pages there are."""
    rng, small = np.random.default_rng(0), []
    for _ in range(100):
        prefers = rng.choice([-1, 1], 12)
        pages = [
            (f"s{q}-{page}", f"q{q}", team, clicked)
            for q in range(12)
            for page in range(30)
            for team, clicked in zip("ab", [prefers[q] > 0, prefers[q] < 0], strict=True)
        ]
        session, query, team, clicked = map(list, zip(*pages, strict=True))
        log = er.clicks.Clicks.from_arrays(query, team, [1, 2] * (len(pages) // 2), clicked, session=session)
        frame = {"session_id": session, "query_id": query, "doc_id": team, "team": team}
        preference = er.clicks.preference(log, frame)
        assert preference.observations == 12
        small.append(preference.p < 0.05)
    assert np.mean(small) <= 0.1


def test_sessions_of_live_traffic_and_a_log_that_grows(data):
    """By session a busy query counts as often as it is asked; the interval at any time narrows as the log grows, and takes its times."""
    pages = er.clicks.interleave(data, data.y, data.X[:, 0], pages=20)
    log = clicked_on(data, pages)
    time = 10**6 - np.array(log.sessions.tolist(), int)[log.session]  # later sessions have smaller numbers
    timed = replace(log, time=time)
    by_query, found = er.clicks.preference(timed, pages), er.clicks.preference(timed, pages, by="session")
    assert (found.by, found.observations) == ("session", len(np.unique(pages.session)))
    assert found.a_rate == by_query.a_rate == pytest.approx(found.at_any_time.mean)  # a page per session
    assert "sessions)" in str(found)
    assert by_query.at_any_time is None
    assert er.clicks.preference(log, pages, by="session").at_any_time is None
    early = timed.take(timed.time <= np.median(time))
    before = er.clicks.preference(early, pages, by="session").at_any_time
    low, high = found.at_any_time.interval
    assert 0.5 < low < found.a_rate < high
    assert before.interval[0] <= low
    assert high <= before.interval[1]
    with pytest.raises(er.errors.SettingError, match="by='user': give 'query' or 'session'"):
        er.clicks.preference(log, pages, by="user")


def test_bad_interleaving_is_refused(data):
    for settings_, says in (
        ({"pages": 0}, "pages must be .* 1, got 0"),
        ({"depth": 0}, "depth must"),
        ({"seed": -1}, "seed must be at least 0"),
    ):
        with pytest.raises(er.errors.SettingError, match=says):
            er.clicks.interleave(data, data.y, data.y, **settings_)
    with pytest.raises(er.errors.DataError, match="score of row 0 is nan"):
        er.clicks.interleave(data, np.full(data.n_documents, np.nan), data.y)
    with pytest.raises(er.errors.DataError, match="b has shape"):
        er.clicks.interleave(data, data.y, [1.0])
    pages = er.clicks.interleave(data, data.y, data.X[:, 0])
    log = clicked_on(data, pages)
    frame = dict(pages._columns())
    with pytest.raises(er.errors.DataError, match="have no team, such as document"):
        er.clicks.preference(log, {name: values[:5] for name, values in frame.items()})
    with pytest.raises(er.errors.DataError, match=r"team\[0\] is 'c'; a team is 'a' or 'b'"):
        er.clicks.preference(log, frame | {"team": np.full(len(pages.row), "c")})
    with pytest.raises(er.errors.DataError, match="teams need the columns session_id, query_id, doc_id and team"):
        er.clicks.preference(log, {"team": frame["team"]})
    with pytest.raises(er.errors.DataError, match="the log has no sessions"):
        er.clicks.preference(er.clicks.Clicks.from_arrays([1], [1], [1], [1]), frame)
