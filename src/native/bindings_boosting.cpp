// Steps of single features, and the boosting that chooses them.
#include "bindings_queries.hpp"
#include "rank_boost.hpp"

namespace exactrank {

namespace {

Out<double> scores_by_steps(InMatrix<float> x, In<std::int64_t> start, In<double> thresholds, In<double> levels, int threads) {
    const std::size_t width = x.shape(1);
    require_length("start", start.size(), width + 1);
    require_starts("start", start, thresholds.size(), true);
    require_length("levels", levels.size(), thresholds.size() + width);
    auto scores = empty<double>(x.shape(0));
    nb::gil_scoped_release release;
    step_scores(viewed(x), {spanned(start), spanned(thresholds), spanned(levels)}, threads, spanned(scores));
    return scores;
}

void make_rank_boost(RankBoost* self, InMatrix<float> x, In<double> grades, In<std::int64_t> indptr, In<double> weight, std::size_t limit, int threads,
                     GivenPairs preferences) {
    const std::size_t rows = x.shape(0);
    require(rows > 0, "there are no documents");
    require_length("grades", grades.size(), rows);
    require_finite("grades", grades);
    require(limit < std::numeric_limits<std::int32_t>::max(), "limit is too large");
    const Boundaries boundaries(indptr, rows);
    require_same_queries(preferences, boundaries);
    const Queries queries = boundaries.weighted(weight);
    nb::gil_scoped_release release;
    new (self) RankBoost(Bins(viewed(x), limit, threads), spanned(grades), queries, preferences);
}

nb::tuple best_edge(const RankBoost& self, In<double> scores, int threads) {
    require_length("scores", scores.size(), self.bins().rows());
    std::pair<double, BestEdge> found;
    {
        nb::gil_scoped_release release;
        found = self.best(spanned(scores), threads);
    }
    const auto& [loss, best] = found;
    return nb::make_tuple(loss, best.edge, best.feature, best.threshold);
}

Out<double> moved_scores(const RankBoost& self, In<double> scores, std::size_t feature, std::size_t threshold, double alpha) {
    require_length("scores", scores.size(), self.bins().rows());
    require(feature < self.bins().width() && threshold < self.bins().thresholds(feature).size(), "there is no such threshold");
    auto moved = empty<double>(scores.size());
    nb::gil_scoped_release release;
    self.move(spanned(scores), feature, threshold, alpha, spanned(moved));
    return moved;
}

}  // namespace

void bind_boosting(nb::module_& m) {
    m.def("step_scores", &scores_by_steps, "x"_a, "start"_a, "thresholds"_a, "levels"_a, "threads"_a);
    nb::class_<RankBoost>(m, "RankBoost")
        .def("__init__", &make_rank_boost, "x"_a, "grades"_a, "indptr"_a, "weight"_a, "limit"_a, "threads"_a, "preferences"_a = nb::none())
        .def(
            "thresholds",
            [](const RankBoost& self, std::size_t feature) {
                require(feature < self.bins().width(), "there is no such feature");
                return array(std::vector<double>(self.bins().thresholds(feature)));
            },
            "feature"_a)
        .def("best", &best_edge, "scores"_a, "threads"_a)
        .def("moved", &moved_scores, "scores"_a, "feature"_a, "threshold"_a, "alpha"_a);
}

}  // namespace exactrank
