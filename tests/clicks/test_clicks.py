"""Click logs: reading, propensities, grades for training, simulated clicks."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.clicks import position_based
from exactrank.clicks.propensities import read_propensities
from exactrank.clicks.reading_down import cascade, dbn
from exactrank.compare.standings import standings
from exactrank.data.synthetic import CubicPolynomial
from exactrank.errors import LeftOutWarning
from tests.reference import clicks as twin

pd = pytest.importorskip("pandas", reason="logs are read from frames")
pytest.importorskip("pyarrow", reason="logs are read through Arrow")
ARRAYS = ("query", "document", "rank", "clicked", "session", "weight")
MEASURE = "DCG(gain='linear')@5"


def log_of(rows: list[twin.Row]) -> er.clicks.Clicks:
    query, document, rank, clicked, session, weight = zip(*rows, strict=True)
    return er.clicks.Clicks.from_arrays(query, document, rank, clicked, session=session, weight=weight)


def frame_of(rows: list[twin.Row]):
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "rank", "clicked", "session_id", "weight"])


def same(ours: er.clicks.Clicks, theirs: er.clicks.Clicks) -> bool:
    ids = all(getattr(ours, name).tolist() == getattr(theirs, name).tolist() for name in ("queries", "documents", "sessions"))
    return ids and all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in ARRAYS)


@st.composite
def rows_of_pages(draw, weighted: bool = True) -> list[twin.Row]:
    """Pages of a few documents, each at a rank of its own, as a log has them."""
    rows = []
    for session in range(draw(st.integers(1, 8))):
        query, documents = draw(st.sampled_from("ab")), draw(st.permutations("wxyz"))
        weight = draw(st.sampled_from([1.0, 2.0, 0.3])) if weighted else 1.0
        rows += [
            (query, document, rank, draw(st.integers(0, 1)), str(session), weight)
            for rank, document in enumerate(documents[: draw(st.integers(1, 4))], 1)
        ]
    return rows


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    return CubicPolynomial(features=6, documents=12, document_ids=True).data(40)


@pytest.fixture(scope="module")
def simulated(data) -> "er.clicks.simulate.Simulated":
    return er.clicks.simulate_clicks(data, sessions=250, seed=3)


# ---- the log


@given(rows_of_pages(), st.randoms(use_true_random=False))
def test_rows_in_any_order_from_anywhere_are_the_same_log(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert same(log_of(rows), log_of(shuffled))
    assert same(log_of(rows), er.clicks.read_clicks(frame_of(shuffled)))


@given(rows_of_pages())
def test_cells_are_sums_over_equal_impressions(rows):
    log = log_of(rows)
    ours = {
        (log.queries[log.cells.query[p]], log.documents[log.cells.document[p]], int(k)): (n, c)
        for p, k, n, c in zip(log.cells.pair, log.cells.rank, log.cells.impressions, log.cells.clicks, strict=True)
    }
    theirs = twin.cells(rows)
    assert ours.keys() == theirs.keys()
    assert all(np.allclose(ours[key], theirs[key], rtol=1e-12) for key in ours)


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.tsv", "log.csv.gz"])
def test_files_hold_the_log(simulated, tmp_path, name):
    log, path = simulated.clicks.take(np.arange(5000)), tmp_path / name
    frame = log.to_frame().sample(frac=1, random_state=1)
    if name.endswith(".parquet"):
        frame.to_parquet(path, row_group_size=700)
    else:
        frame.to_csv(path, index=False, sep="\t" if "tsv" in name else ",")
    assert same(er.clicks.read_clicks(path), er.clicks.read_clicks(frame))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_written_log_reads_back(simulated, tmp_path, suffix):
    er.clicks.write_clicks(simulated.clicks, tmp_path / f"log{suffix}")
    assert same(er.clicks.read_clicks(tmp_path / f"log{suffix}"), simulated.clicks)
    with pytest.raises(er.errors.OutputExistsError):
        er.clicks.write_clicks(simulated.clicks, tmp_path / f"log{suffix}")


def test_polars_arrow_and_categories(simulated):
    polars = pytest.importorskip("polars", reason="one kind of frame")
    frame = simulated.clicks.take(np.arange(1000)).to_frame()
    expected = er.clicks.read_clicks(frame)
    assert same(er.clicks.read_clicks(polars.from_pandas(frame)), expected)
    assert same(er.clicks.read_clicks(frame.astype({"query_id": "category", "doc_id": "category"})), expected)
    assert same(er.clicks.read_clicks(frame.assign(clicked=frame.clicked.astype(bool), query_id=frame.query_id.astype(int))), expected)


def test_columns_of_other_names_and_time():
    frame = pd.DataFrame({"q": [1, 1], "d": ["a", "b"], "pos": [1, 2], "hit": [0, 1], "at": pd.to_datetime(["2026-01-02", "2026-01-01"])})
    log = er.clicks.read_clicks(frame, columns=er.clicks.ClickColumns("q", "d", "pos", "hit", time="at"))
    summary = log.describe()
    assert (summary.queries, summary.documents, summary.sessions, summary.clicks) == (1, 2, None, 1.0)
    assert str(summary.first).startswith("2026-01-01")
    assert "2 impressions of 2 documents for 1 query" in log._repr_html_()


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("rank", 0, "rank 'rank' of row 2 .from 0. is 0; .*add 1 if yours count from 0"),
        ("rank", 1.5, "is 1.5; ranks are whole numbers"),
        ("rank", None, "row 2 .from 0. is missing"),
        ("clicked", 2, "is 2; .*give how often as its weight"),
        ("clicked", "yes", "give every column values of one kind"),
        ("weight", -1.0, "weight.2. is -1.0; weights must be finite and not negative"),
        ("query_id", None, "query id 'query_id' of row 2 .from 0. is missing"),
    ],
)
def test_bad_rows_are_named(column, value, says):
    frame = frame_of([("a", "x", 1, 0, "s", 1.0), ("a", "y", 2, 1, "s", 1.0), ("a", "z", 3, 0, "s", 1.0)]).astype(object)
    frame.loc[2, column] = value
    if column != "clicked" or value != "yes":
        frame = frame.infer_objects()
    with pytest.raises(er.errors.DataError, match=says):
        er.clicks.read_clicks(frame)


def test_bad_logs_are_refused(tmp_path):
    frame = frame_of([("a", "x", 1, 0, "s", 1.0)])
    with pytest.raises(er.errors.DataError, match=r"has no column 'rank' for the rank; it has 'query_id', 'doc_id', .*--rank-column"):
        er.clicks.read_clicks(frame.drop(columns="rank"))
    with pytest.raises(er.errors.DataError, match=r"has no column 'visit' for the session id"):
        er.clicks.read_clicks(frame, columns=er.clicks.ClickColumns(session="visit"))
    with pytest.raises(er.errors.DataError, match=r"holds no impressions"):
        er.clicks.read_clicks(frame.head(0))
    with pytest.raises(er.errors.DataError, match=r"no impressions"):
        er.clicks.Clicks.from_arrays([], [], [], [])
    with pytest.raises(er.errors.DataError, match=r"clicked has shape \(1,\)"):
        er.clicks.Clicks.from_arrays([1, 1], [1, 2], [1, 2], [0])
    (tmp_path / "log.csv").write_text("query_id,doc_id,rank,clicked\na,x,first,0\n")
    with pytest.raises(er.errors.DataError, match=r"log.csv: column 'rank': .*'first'"):
        er.clicks.read_clicks(tmp_path / "log.csv")
    (tmp_path / "log.bin").write_text("nothing")
    with pytest.raises(er.errors.DataError, match=r"ends neither in .csv nor in .tsv"):
        er.clicks.read_clicks(tmp_path / "log.bin")


# ---- propensities


def clicks_of(propensity, seed):
    """100,000 impressions of a position-based model."""
    data = CubicPolynomial(features=6, documents=12, grades=2, document_ids=True).data(40)
    return er.clicks.simulate_clicks(data, sessions=250, seed=seed, propensity=propensity)


@pytest.mark.parametrize("seed", range(20))
def test_em_is_within_two_hundredths_at_every_rank(seed):
    simulated = clicks_of("1/k", seed)
    found = simulated.clicks.propensities("em", bootstrap=0).value
    assert np.abs(found - simulated.propensities.value).max() < 0.02


def test_harvested_propensities_are_recovered():
    """The standard error is about 0.012, so a few of all ranks are beyond 0.02 by chance."""
    errors = []
    for seed in range(6):
        simulated = clicks_of("1/k", seed)
        errors.append(simulated.clicks.propensities("harvest", bootstrap=0).value - simulated.propensities.value)
    assert np.median(np.abs(errors).max(axis=1)) < 0.02
    assert np.abs(np.mean(errors, axis=0)).max() < 0.015


def test_what_is_in_doubt_is_shrunk_towards_a_power_and_nothing_else():
    """Of a power of the rank much noise goes; a curve that is no power stays as the likelihood has it, and with more clicks both do."""
    uneven = np.array([1.0, 0.6, 0.9, 0.3, 0.5, 0.2, 0.4, 0.1, 0.3, 0.2])
    for truth, nearer in ((1 / np.arange(1, 11), 0.7), (uneven, 1.05)):
        errors = []
        for seed in range(3):
            cells = position_based.comparable_cells(clicks_of(truth, seed).clicks.cells)
            both, _ = position_based.em(cells)
            raw = both[:10] / both[0]
            errors.append([position_based.shrink(cells, both) - truth, raw - truth])
            often = replace(cells, impressions=1e4 * cells.impressions, clicks=1e4 * cells.clicks)
            assert np.allclose(position_based.shrink(often, both), raw, rtol=1e-3)
        ours, theirs = np.sqrt(np.mean(np.square(errors), axis=(0, 2)))
        assert ours < nearer * theirs


@pytest.mark.parametrize("method", ["cascade", "dbn"])
def test_the_cascade_is_recovered(data, method):
    simulated = er.clicks.simulate_clicks(data, "cascade", sessions=250)
    estimate = simulated.clicks.propensities(method, bootstrap=0)
    assert np.abs(estimate.value - simulated.propensities.value).max() < 0.02


@settings(deadline=None)
@given(rows_of_pages())
def test_models_that_read_down_equal_their_definitions(rows):
    log = log_of(rows)
    for ours, theirs in ((cascade, twin.examined_by_cascade), (dbn, twin.examined_by_dbn)):
        expected = theirs(rows)
        assert np.allclose(ours(log, log.weights), [expected[k] for k in sorted(expected)], rtol=1e-9, atol=1e-12)


def told_apart(rows):
    """What EM looks at, and the same rows for the twin; None where the log tells nothing."""
    log = log_of(rows)
    try:
        cells = position_based.comparable_cells(log.cells)
    except er.errors.DataError:
        return None
    names = [(log.queries[q], log.documents[d]) for q, d in zip(log.cells.query, log.cells.document, strict=True)]
    used = sorted({names[p] for p in log.cells.pair[cells.which]}, key=names.index)
    return cells, used, [row for row in rows if row[:2] in used]


@settings(deadline=None)
@given(rows_of_pages())
def test_a_step_of_em_and_its_likelihood_equal_their_definitions(rows):
    if (result := told_apart(rows)) is None:
        return
    seen, used, rows = result
    theta, gamma = np.linspace(0.9, 0.4, len(seen.ranks)), np.linspace(0.2, 0.7, len(used))
    by_rank, by_pair = dict(zip(seen.ranks.tolist(), theta, strict=True)), dict(zip(used, gamma, strict=True))
    after_theta, after_gamma = twin.em_step(rows, by_rank, by_pair)
    both = np.append(theta, gamma)
    theirs = [after_theta.get(k, position_based.LEAST) for k in by_rank] + [after_gamma[pair] for pair in used]
    assert np.allclose(position_based._step(seen, both), theirs, rtol=1e-9)
    assert np.isclose(position_based.likelihood(seen, both), twin.log_likelihood(rows, by_rank, by_pair), rtol=1e-9)


@settings(deadline=None, max_examples=50)
@given(rows_of_pages())
def test_the_likelihood_of_em_never_falls(rows):
    if (result := told_apart(rows)) is not None:
        _, history = position_based.em(result[0])
        assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(history))


@given(rows_of_pages())
def test_two_ranks_are_compared_by_mantel_and_haenszel(rows):
    two = [row for row in rows if row[2] <= 2]
    if (result := told_apart(two)) is None:
        return
    up, down = twin.meetings(two, 1, 2), twin.meetings(two, 2, 1)
    ours = position_based.harvest(result[0])
    if up > 0 and down > 0 and len(ours) == 2:
        assert np.isclose(ours[1], down / up, rtol=1e-9)


def test_intervals_hold_the_truth_and_the_seed_repeats_them(simulated):
    estimate = simulated.clicks.propensities("harvest", bootstrap=100, seed=1)
    truth = simulated.propensities.value
    assert np.mean((estimate.low <= truth) & (truth <= estimate.high)) >= 0.8
    assert np.all(estimate.low <= estimate.value)
    assert np.all(estimate.value <= estimate.high)
    again, other = (simulated.clicks.propensities("harvest", bootstrap=100, seed=seed) for seed in (1, 2))
    assert np.array_equal(again.low, estimate.low)
    assert not np.array_equal(other.low, estimate.low)
    assert estimate.units == "sessions"


def test_a_log_without_sessions_draws_queries(simulated):
    log = er.clicks.read_clicks(simulated.clicks.to_frame().drop(columns="session_id"))
    assert log.propensities("harvest", bootstrap=5).units == "queries"
    with pytest.raises(er.errors.IncompatibleError, match="needs a column of sessions"):
        log.propensities("dbn")


def test_what_identifies_nothing_is_refused(simulated):
    def propensities(*rows, **settings):
        query, document, rank, clicked = zip(*rows, strict=True)
        return er.clicks.Clicks.from_arrays(query, document, rank, clicked, session=[1] * len(rows)).propensities("em", **settings)

    with pytest.raises(er.errors.DataError, match="every document was seen at one rank only"):
        propensities((1, "a", 1, 1), (1, "b", 2, 0), (1, "b", 2, 1), bootstrap=0)
    with pytest.raises(er.errors.DataError, match=r"rank 2 has no click, .*clicks.take\(clicks.rank < 2\)"):
        propensities((1, "a", 1, 1), (1, "a", 2, 0), bootstrap=0)
    apart = [(1, d, k, c) for d, ranks in (("a", (1, 2)), ("b", (3, 4))) for k in ranks for c in (0, 1)]
    with pytest.raises(er.errors.DataError, match=r"at rank 1 .*and at rank 3, so their propensities cannot be compared"):
        propensities(*apart, bootstrap=0)
    with pytest.raises(er.errors.DataError, match="the log has only one session, so sessions cannot be resampled; give bootstrap=0"):
        propensities((1, "a", 1, 1), (1, "a", 2, 1))
    with pytest.raises(er.errors.DataError, match=r"of the pages have several clicks, .*use dbn"):
        simulated.clicks.propensities("cascade")


def test_given_numbers(simulated, tmp_path):
    log = simulated.clicks
    assert log.propensities("1/k").value.tolist() == log.propensities([1 / k for k in range(1, 11)]).value.tolist()
    assert np.allclose(log.propensities("1/k^0.5").value, 1 / np.sqrt(np.arange(1, 11)))
    for bad, says in (([1, 0], "rank 2 is 0"), ([1.5], "rank 1 is 1.5"), ({0: 1.0}, "from 1"), ("1/q", "is not a known method")):
        with pytest.raises(er.errors.DataError, match=says):
            log.propensities(bad)
    with pytest.raises(er.errors.DataError, match=r"no propensity of rank \d+, only of ranks 1 to 2"):
        log.to_data(log.to_frame(), [1.0, 0.5])
    (tmp_path / "curve.csv").write_text("rank,propensity\n1,1\n2,0.25\n")
    (tmp_path / "curve.json").write_text(json.dumps(log.propensities([1.0, 0.25]).to_json()))
    for name in ("curve.csv", "curve.json"):
        assert read_propensities(tmp_path / name).value.tolist() == [1.0, 0.25]
    (tmp_path / "bad.csv").write_text("k,p\n1,1\n")
    with pytest.raises(
        er.errors.DataError, match=r"bad.csv does not hold a propensity for each rank; give CSV with the columns rank and propensity"
    ):
        read_propensities(tmp_path / "bad.csv")


def test_the_picture_shows_the_curve_and_its_interval(simulated):
    axes = simulated.clicks.propensities("harvest", bootstrap=5).figure().axes[0]
    assert len(axes.lines[0].get_xdata()) == 10
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["95% interval", "propensity (harvest)"]


# ---- to data


@settings(deadline=None)
@given(rows_of_pages(), st.sampled_from([0.0, 0.4]))
def test_grades_are_clicks_over_propensity(rows, clip):
    theta = {1: 1.0, 2: 0.5, 3: 0.3, 4: 0.25}
    pairs = sorted({row[:2] for row in rows}, reverse=True)
    features = pd.DataFrame({"query_id": [q for q, _ in pairs], "doc_id": [d for _, d in pairs], "x": np.arange(len(pairs))})
    data = log_of(rows).to_data(features, theta, clip=clip)
    expected = twin.grades(rows, theta, clip)
    ours = data.to_frame()
    assert len(ours) == len(pairs)
    for query, document, grade, weight in zip(ours.query_id, ours.doc_id, ours.relevance, ours.query_weight, strict=True):
        assert np.isclose(grade, expected[query, document], rtol=1e-12)
        assert np.isclose(weight, sum(row[5] for row in rows if row[0] == query))


def test_propensity_one_gives_click_rates_to_the_bit(simulated, data):
    log = simulated.clicks
    ones = log.to_data(data, np.ones(10))
    frame = log.to_frame().groupby("doc_id").clicked.agg(["sum", "count"])
    expected = (frame["sum"] / frame["count"]).loc[ones.docid.tolist()].to_numpy()
    assert np.array_equal(ones.y, expected)
    scores = np.arange(ones.n_documents, dtype=float)
    plain = er.RankingData.from_arrays(ones.X, expected, qid=np.repeat(ones.qid, ones.sizes), query_weight=ones.query_weight)
    assert er.evaluate(ones, scores, [MEASURE]).means == er.evaluate(plain, scores, [MEASURE]).means


@given(rows_of_pages(weighted=False), st.data())
def test_a_duplicated_impression_is_a_weight_of_two(rows, drawn):
    again = drawn.draw(st.lists(st.sampled_from(rows), unique=True))
    weighted = [(*row[:5], 2.0) if row in again else row for row in rows]
    doubled, ours = log_of([*rows, *again]), log_of(weighted)
    features = pd.DataFrame(sorted({row[:2] for row in rows}), columns=["query_id", "doc_id"]).assign(x=1.0)
    theirs, result = (log.to_data(features, "1/k") for log in (doubled, ours))
    assert np.array_equal(theirs.y, result.y)
    assert np.array_equal(theirs.query_weight, result.query_weight)


def test_the_estimate_is_unbiased(data):
    """The mean of IPS estimates over simulations is within two standard errors of the true DCG, that of raw clicks is far from it."""
    few = data.take_queries(np.arange(10))
    estimates, naive = [], []

    def value(graded: er.RankingData) -> float:
        return er.evaluate(graded, few.X[:, 0], [MEASURE]).means[MEASURE]

    for seed in range(30):
        simulated_clicks = er.clicks.simulate_clicks(few, sessions=60, page_size=12, seed=seed)
        truth = value(er.RankingData.from_arrays(None, simulated_clicks.relevance, group=few.sizes))
        for result, propensity in ((estimates, simulated_clicks.propensities), (naive, np.ones(12))):
            result.append(value(simulated_clicks.clicks.to_data(few, propensity, clip=0.0)) - truth)
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates)) < 2 * error
    assert abs(np.mean(naive)) > 10 * error


def test_features_from_anywhere(simulated, data, tmp_path):
    log, expected = simulated.clicks, simulated.clicks.to_data(data, "1/k")
    for name in ("features.xr", "features.parquet", "features.csv"):
        er.write(data, tmp_path / name)
        result = log.to_data(tmp_path / name, "1/k")
        assert result.docid.tolist() == expected.docid.tolist()
        assert np.array_equal(result.X, expected.X)
        assert np.array_equal(result.y, expected.y)
    result = log.to_data(data.to_frame().drop(columns="relevance"), "1/k")
    assert np.array_equal(result.y, expected.y)


def test_bad_features_are_refused(simulated, data):
    log = simulated.clicks
    with pytest.raises(er.errors.DataError, match=r"documents of the log have no features: '1-1' of query '1', .*unknown='drop'"):
        log.to_data(data.take_queries(np.arange(1, 40)), "1/k")
    with pytest.warns(LeftOutWarning, match=r"left out: .* documents of the log have no features"):
        assert log.to_data(data.take_queries(np.arange(1, 40)), "1/k", unknown="drop").n_queries == 39
    with pytest.raises(er.errors.DataError, match="more than once"):
        log.to_data(pd.concat([data.to_frame()] * 2), "1/k")
    with pytest.raises(er.errors.DataError, match="no document ids"):
        log.to_data(data.to_frame().drop(columns="doc_id"), "1/k")
    with pytest.raises(er.errors.DataError, match="clip must be from 0 to 1, got 2"):
        log.to_data(data, "1/k", clip=2)


def test_methods_take_grades_of_any_size(simulated, data):
    train = simulated.clicks.to_data(data, "1/k")
    for ranker in (
        er.DirectRank(measure=MEASURE, max_iter=2, bags=0),
        er.LambdaMART(measure=MEASURE, trees=5, bags=0),
        er.Blend(measure=MEASURE, members="ridge,lambdamart(trees=3)", bags=3),
    ):
        assert np.isfinite(ranker.fit(train).score(train))
    fused = er.fuse(train, systems=train.feature_names[:2], measure=MEASURE, bootstrap=0, folds=0)
    assert np.isfinite(fused.value)
    assert fused.value == pytest.approx(er.evaluate(train, fused.predict(train), MEASURE).means[MEASURE])


def test_clicks_are_compared_by_their_weights(simulated, data):
    log = simulated.clicks.to_frame()
    some = log[(log["query_id"].astype(str).str[-1] > "4") | (log["rank"] < 9)]  # fewer impressions of some queries
    train = er.clicks.read_clicks(some).to_data(data, "1/k", unknown="drop")
    comparison = er.compare(train, ["ridge", "directrank(max_iter=1, bags=0)"], MEASURE, folds=3, workers=1, threads=1)
    weight = dict(zip(map(str, train.qid.tolist()), train.query_weight.tolist(), strict=True))
    assert len(set(weight.values())) > 1
    (summary,) = comparison.datasets
    queries = [query for fold in summary.folds for query in fold.test_qid]
    assert sorted(queries) == sorted(weight)
    for own in standings(comparison, summary.name, MEASURE):
        values = [value for fit in comparison.fits if fit.method == own.method for value in fit.test[MEASURE]]
        assert own.mean == pytest.approx(np.average(values, weights=[weight[query] for query in queries]))


def test_kept_columns_stay_with_their_documents_and_pairs_come_later(simulated, data):
    rich = replace(data, extra_columns={"price": np.arange(data.n_documents, dtype=float)})
    result = simulated.clicks.to_data(rich, "1/k")
    prices = dict(zip(zip(np.repeat(rich.qid, rich.sizes), rich.docid, strict=True), rich.extra_columns["price"], strict=True))
    ids = zip(np.repeat(result.qid, result.sizes), result.docid, strict=True)
    assert result.extra_columns["price"].tolist() == [prices[each] for each in ids]
    judged = er.pairs.with_pairs(data, {"query_id": [data.qid[0]], "better": [data.docid[0]], "worse": [data.docid[1]]})
    with pytest.raises(
        er.errors.DataError, match=r"the features have 1 pairs; give pairs to what to_data returns, with er.pairs.with_pairs"
    ):
        simulated.clicks.to_data(judged, "1/k")


# ---- simulated clicks


def test_simulated_clicks_repeat_and_refuse_nonsense(data):
    few = data.take_queries([0, 1])
    assert same(er.clicks.simulate_clicks(few, seed=1).clicks, er.clicks.simulate_clicks(few, seed=1).clicks)
    assert not same(er.clicks.simulate_clicks(few, seed=1).clicks, er.clicks.simulate_clicks(few, seed=2).clicks)
    with pytest.raises(er.errors.DataError, match="'random' is not a click model"):
        er.clicks.simulate_clicks(few, "random")
    with pytest.raises(er.errors.SettingError, match="sessions must be at least 1, got 0"):
        er.clicks.simulate_clicks(few, sessions=0)
    with pytest.raises(er.errors.DataError, match="no document ids"):
        er.clicks.simulate_clicks(CubicPolynomial(features=3, documents=4).data(2))
