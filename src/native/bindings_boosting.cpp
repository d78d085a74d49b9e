// Steps of single features, and the boosting that chooses them.
#include "bindings.hpp"
#include "rank_boost.hpp"

namespace exactrank {

namespace {

Out<double> scores_by_steps(InMatrix<float> x, In<std::int64_t> start, In<double> thresholds, In<double> levels, int threads) {
    const std::size_t width = x.shape(1);
    require(start.size() == width + 1 && start(0) == 0 && start(width) == static_cast<std::int64_t>(thresholds.size()), "start does not cover the thresholds");
    require(levels.size() == thresholds.size() + width, "a feature has one level more than thresholds");
    for (std::size_t j = 0; j < width; ++j) require(start(j) <= start(j + 1), "start must rise");
    auto scores = empty<double>(x.shape(0));
    nb::gil_scoped_release release;
    step_scores(x.data(), x.shape(0), {start.data(), thresholds.data(), levels.data(), width}, threads, scores.data());
    return scores;
}

void make_rank_boost(RankBoost* self, InMatrix<float> x, In<double> grades, In<std::int64_t> indptr, In<double> weight, std::size_t limit, int threads) {
    const std::size_t rows = x.shape(0), queries = weight.size();
    require(rows > 0 && grades.size() == rows, "one grade a document is needed");
    require(indptr.size() == queries + 1 && indptr(0) == 0 && indptr(queries) == static_cast<std::int64_t>(rows), "indptr does not cover the documents");
    nb::gil_scoped_release release;
    new (self) RankBoost(Bins(x.data(), rows, x.shape(1), limit, threads), grades.data(), indptr.data(), queries, weight.data());
}

nb::tuple best_edge(const RankBoost& self, In<double> scores, int threads) {
    require(scores.size() == self.bins().rows(), "one score a document is needed");
    std::pair<double, BestEdge> found;
    {
        nb::gil_scoped_release release;
        found = self.best(scores.data(), threads);
    }
    const auto& [loss, best] = found;
    return nb::make_tuple(loss, best.edge, best.feature, best.threshold);
}

Out<double> moved_scores(const RankBoost& self, In<double> scores, std::size_t feature, std::size_t threshold, double alpha) {
    require(scores.size() == self.bins().rows(), "one score a document is needed");
    require(feature < self.bins().width() && threshold < self.bins().thresholds(feature).size(), "there is no such threshold");
    auto moved = empty<double>(scores.size());
    nb::gil_scoped_release release;
    self.move(scores.data(), feature, threshold, alpha, moved.data());
    return moved;
}

}  // namespace

void bind_boosting(nb::module_& m) {
    m.def("step_scores", &scores_by_steps, "x"_a, "start"_a, "thresholds"_a, "levels"_a, "threads"_a);
    nb::class_<RankBoost>(m, "RankBoost")
        .def("__init__", &make_rank_boost, "x"_a, "grades"_a, "indptr"_a, "weight"_a, "limit"_a, "threads"_a)
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
