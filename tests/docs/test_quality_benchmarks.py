"""The scripts that choose and test defaults: what they pool, what they keep, and which data they read."""

import importlib

import numpy as np
import pytest

import exactrank as er
from tests import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def scripts(monkeypatch):
    """Modules of the folder by name."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


@pytest.fixture
def study(scripts):
    return scripts("study")


@pytest.fixture
def chooses(scripts):
    return scripts("choose_defaults")


@pytest.fixture
def quality(scripts):
    return scripts("bench_quality")


def written(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    er.write(data, path)


class TestCrossFitting:
    def data(self, study, queries=12):
        return study.artificial(queries, 6, 3, noise=0.5, bent=0.2, seed=0)

    @pytest.mark.parametrize(("parts", "spare"), [(5, 0), (6, 1)])
    def test_no_score_out_of_fold_is_of_a_model_that_saw_the_query(self, study, parts, spare):
        data = self.data(study)
        queries = np.repeat(np.arange(data.n_queries), data.sizes)
        seen, fits = {tuple(row): number for row, number in zip(data.X.tolist(), queries, strict=True)}, []

        def fit(train, chooses):
            known, chose = ({seen[tuple(row)] for row in part.X.tolist()} for part in (train, chooses))
            assert not known & chose
            fits.append((known, chose))
            number = len(fits)
            return lambda part: np.tile([number, -number], part.n_documents)[: part.n_documents].astype(float)

        out_of_fold, elsewhere = study.cross_fit_scores(fit, data, data, parts, spare)
        assert len(fits) == parts
        assert np.isfinite(out_of_fold).all()
        assert np.isfinite(elsewhere).all()
        covered = [set(range(data.n_queries)) - known - (chose if spare else set()) for known, chose in fits]
        assert sorted(query for own in covered for query in own) == list(range(data.n_queries))
        if not spare:
            assert all(chose == own for own, (_, chose) in zip(covered, fits, strict=True))

    def test_models_count_alike_whatever_the_size_of_their_scores(self, study):
        data, sizes = self.data(study), iter([1.0, 1e6, 1e-6, 3.0, 5.0])

        def fit(train, chooses):
            size = next(sizes)
            return lambda part: size * part.X[:, 0].astype(float)

        out_of_fold, elsewhere = study.cross_fit_scores(fit, data, data)
        np.testing.assert_allclose(out_of_fold, elsewhere, rtol=1e-9)


class TestKept:
    def test_work_is_done_once_and_again_for_anything_else(self, study, tmp_path):
        calls = []

        def work():
            calls.append(1)
            return {"values": np.arange(3.0), "seconds": 1.5}

        for of in ({"l2": 1}, {"l2": 1}, {"l2": 2}):
            result = study.cached_arrays(tmp_path / "kept", ("MQ2008", "a/b"), of, work)
            assert result["values"].tolist() == [0.0, 1.0, 2.0]
            assert result["seconds"] == 1.5
        assert len(calls) == 2

    def test_work_that_breaks_off_leaves_nothing(self, study, tmp_path):
        def work():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            study.cached_arrays(tmp_path, ("set",), {}, work)
        assert not list(tmp_path.iterdir())


class TestChoosing:
    def test_test_parts_need_not_be_there(self, study, chooses, tmp_path):
        parts = {number: study.artificial(4, 5, 3, 0.5, 0.2, seed=number) for number in range(1, 5)}
        for name in study.IN_PARTS:
            for number, data in parts.items():
                written(tmp_path / name / f"S{number}.txt", data)
        written(tmp_path / study.EXAMPLE / "rank.txt", parts[1])
        (tmp_path / study.EXAMPLE / "rank.txt").rename(tmp_path / study.EXAMPLE / "rank.train.gz")  # gzip is told by its first bytes
        sets = chooses.training_sets(tmp_path, tiny=False)
        assert [sets[name]().n_queries for name in study.IN_PARTS] == [16, 16, 16]
        assert sets["LightGBM's example"]().n_queries == 4
        assert len(sets.keys() - {*study.IN_PARTS, "LightGBM's example"}) >= 4

    def test_pooled_differences_count_sets_alike(self, chooses):
        values = {"large": np.full(1000, 0.5) + np.tile([0.1, -0.1], 500), "small": np.array([0.9, 0.7])}
        reference = {"large": np.full(1000, 0.4), "small": np.array([0.4, 0.4])}
        difference, error = chooses.pooled(values, reference)
        assert difference == pytest.approx((0.1 + 0.4) / 2)
        assert error == pytest.approx(np.hypot(0.1 / np.sqrt(999), 0.1 * np.sqrt(2) / np.sqrt(2)) / 2)

    def test_the_choice_for_a_set_is_made_on_the_others(self, chooses):
        values = {
            "default": {"a": np.array([0.5, 0.5]), "b": np.array([0.5, 0.5])},
            "good on a": {"a": np.array([0.9, 0.9]), "b": np.array([0.1, 0.1])},
            "good on b": {"a": np.array([0.2, 0.2]), "b": np.array([0.8, 0.8])},
        }
        result = chooses.best_elsewhere(values, "default")
        assert {name: own.tolist() for name, own in result.items()} == {"a": [0.2, 0.2], "b": [0.1, 0.1]}

    def test_weights_of_a_blend_are_chosen_out_of_fold_and_shrunk(self, study, chooses):
        train = study.artificial(20, 8, 3, 0.5, 0.2, seed=0)
        good, bad = np.append(train.y + 0.0, 1.0), np.append(-train.y + 0.0, 5.0)  # the last is of a document left out
        families = {"linear": [good], "trees": [bad]}
        rules = {back: chooses.searched_weights(chooses.each_member, back, families, train)[-1] for back in (0.0, 1.0)}
        assert rules[1.0] == 3.0
        assert rules[0.0] < 3.0
        assert chooses.best_member(families, train) is good

    def test_a_run_is_taken_up_and_a_bad_candidate_is_told(self, chooses, tmp_path, capsys, monkeypatch):
        run = ["ridge", "--tiny", "--folds", "0", "--cache", str(tmp_path), "--only-candidates", "--candidates", "ridge(l2=5.0)"]
        assert chooses.main(run) == 0
        first = capsys.readouterr()
        assert first.out.count("| ridge(l2=5.0) | ") == 2
        assert first.err.count(" s\n") == 2 * 2 * 2  # candidates x ways x sets
        monkeypatch.setattr(er.Ridge, "fit", None)
        assert chooses.main(run) == 0
        again = capsys.readouterr()
        assert again.out == first.out
        assert not again.err.strip()
        monkeypatch.undo()
        assert chooses.main([*run, "ridge(l2=-1.0)"]) == 1
        assert "ridge(l2=-1.0), cross-fitted: " in capsys.readouterr().err

    def test_every_rule_of_the_blend_is_compared_and_a_member_that_fails_is_told(self, chooses, tmp_path, capsys, monkeypatch):
        run = ["blend", "--tiny", "--folds", "0", "--cache", str(tmp_path)]
        monkeypatch.setattr(
            chooses, "MEMBERS", {"trees": ["ridge(l2=1.0)", "ridge(l2=5.0)"], "linear": ["ridge"], "network": ["ridge(l2=10.0)"]}
        )
        assert chooses.main(run) == 0
        out = capsys.readouterr().out
        assert all(f"| {name}{note} | " in out for name in chooses.RULES for note in chooses.OUT_OF_FOLD)
        monkeypatch.setitem(chooses.MEMBERS, "linear", ["ridge(l2=-1.0)"])
        assert chooses.main(run) == 1
        assert "blend, tiny, linear, fold 0: Ridge" in capsys.readouterr().err


class TestTesting:
    def test_folds_go_round_and_no_part_is_in_two(self, study, quality, tmp_path):
        for number in range(1, 6):
            data = study.artificial(3, 4, 2, 0.5, 0.2, seed=number)
            written(
                tmp_path / f"part{number}.txt", er.RankingData.from_arrays(np.full((data.n_documents, 2), number), data.y, group=data.sizes)
            )
        folds = quality.five_folds(tmp_path)
        parts = [[sorted(set(part.X[:, 0].tolist())) for part in (fold.train, fold.valid, fold.test)] for fold in folds]
        assert parts[0] == [[1, 2, 3], [4], [5]]
        assert parts[3] == [[1, 4, 5], [2], [3]]
        assert [own[2] for own in parts] == [[5], [1], [2], [3], [4]]

    def test_a_run_prints_every_table(self, quality, tmp_path, capsys):
        names = ["LambdaMART", "Ridge", "DirectRank", "LambdaRank", "LightGBM", "LightGBM, cross-fitted", "scikit-learn's Ridge"]
        quality.main(["--tiny", "--cache", str(tmp_path), "--only", *names])
        out = capsys.readouterr().out
        assert all(out.count(f"| {name} | ") >= 2 for name in names)
        assert "| LambdaMART | LightGBM, cross-fitted | " in out
        assert "| DirectRank at least level with LambdaRank, all queries | " in out
        assert len(list(tmp_path.iterdir())) == len(names) * 2 * 2  # sets and folds

    def results(self, quality, **means):
        rng = np.random.default_rng(0)
        noise = {title: rng.normal(0, 0.01, 100) for title in quality.LEAST}
        clocks = {"cpu": np.ones(5), "letor": np.zeros(3)}
        return {
            name: {
                title: quality.Result(mean + noise[title] * rng.normal(1, 0.3, 100), wall=np.full(5, 12.0), **clocks)
                for title in quality.LEAST
            }
            for name, mean in means.items()
        }

    def test_targets_are_met_or_not(self, quality):
        peers = dict.fromkeys(quality.PEERS, 0.4) | dict.fromkeys(quality.CROSSED, 0.55)
        values = {"Blend": 0.5, quality.LINEAR: 0.39, "LambdaMART": 0.41, quality.TWO: 0.5, quality.QUICK: 0.49}
        met = {target: verdict for target, _, verdict in quality.targets(self.results(quality, **peers, **values))}
        assert met["Blend on MQ2008 at least 0.509"] == "no"
        assert met["Blend on OHSUMED at least 0.456"] == "yes"
        assert met["Blend above every peer's default on ClueWeb09"] == "yes"
        assert met["Blend of linear members above every peer's default on MQ2008"] == "no"
        assert met["Blend above XGBoost, all queries, p < 0.01"] == "yes"
        assert [verdict for target, verdict in met.items() if "cross-fitted" in target] == ["no"]
        assert met["LambdaMART at least level with LightGBM, OHSUMED"] == "yes"
        assert met["Blend, two threads: a fold of MQ2008 below 60 s"] == "yes"
        assert met["Blend, seconds=10, two threads: kept within 10%"] == "no"
        assert met["Blend, seconds=10, two threads: within 0.003 of the full one"] == "no"
        assert not any("Ridge" in target or "DirectRank" in target for target in met)

    def test_level_by_chance_is_told_apart_from_behind(self, quality):
        behind = self.results(quality, LambdaMART=0.4, LightGBM=0.42)
        assert {verdict for _, _, verdict in quality.targets(behind)} == {"no"}
        close = self.results(quality, LambdaMART=0.4, LightGBM=0.4)
        below = [title for title in quality.LEAST if quality.difference(close, "LambdaMART", "LightGBM", title).mean() < 0]
        assert 0 < len(below) < len(quality.LEAST)
        verdicts = {target: verdict for target, _, verdict in quality.targets(close)}
        assert verdicts.pop("LambdaMART above LightGBM, all queries, p < 0.05") == "no"
        assert {target.rpartition(" ")[2]: verdict for target, verdict in verdicts.items()} == {
            title: "within chance" if title in below else "yes" for title in quality.LEAST
        }
