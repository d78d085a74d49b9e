// Steps of single features, and the boosting that chooses them.
#include "bindings/queries.hpp"
#include "objectives/rank_boost.hpp"

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

nb::list column_thresholds(InMatrix<float> x, std::size_t limit, int threads) {
    require(x.shape(0) > 0, "there are no documents");
    require(limit < std::numeric_limits<std::int32_t>::max(), "limit is too large");
    Thresholds found;
    {
        nb::gil_scoped_release release;
        found = thresholds_of(viewed(x), limit, threads);
    }
    nb::list each;
    for (std::vector<double>& own : found) each.append(array(std::move(own)));
    return each;
}

void make_rank_boost(RankBoost* self, InMatrix<float> x, const std::vector<In<double>>& thresholds, In<double> grades, In<std::int64_t> indptr,
                     In<double> share, int threads, GivenPairs preferences) {
    const std::size_t rows = x.shape(0);
    require(rows > 0, "there are no documents");
    require_length("thresholds", thresholds.size(), x.shape(1));
    require_length("grades", grades.size(), rows);
    require_finite("grades", grades);
    const Boundaries boundaries(indptr, rows);
    require_same_queries(preferences, boundaries);
    const Queries queries = boundaries.weighted(share);
    Thresholds own;
    for (const In<double>& each : thresholds) {
        own.emplace_back(each.data(), each.data() + each.size());
        for (std::size_t t = 1; t < each.size(); ++t) require(each(t - 1) < each(t), "thresholds must rise");
    }
    nb::gil_scoped_release release;
    new (self) RankBoost(ThresholdBins(viewed(x), std::move(own), threads), spanned(grades), queries, preferences);
}

nb::tuple boosting_sums(const RankBoost& self, In<double> scores, int exponent, int threads) {
    require_length("scores", scores.size(), self.rows());
    require(exponent >= -1014 && exponent <= 1024, "the exponent must be that of a loss");
    auto losses = empty<double>(self.queries());
    auto sums = empty<std::int64_t>(self.bins());
    {
        nb::gil_scoped_release release;
        self.sums(spanned(scores), exponent, threads, spanned(losses), {reinterpret_cast<std::uint64_t*>(sums.data()), sums.size()});
    }
    return nb::make_tuple(losses, sums);
}

}  // namespace

void bind_boosting(nb::module_& m) {
    m.def("step_scores", &scores_by_steps, "x"_a, "start"_a, "thresholds"_a, "levels"_a, "threads"_a);
    m.def("column_thresholds", &column_thresholds, "x"_a, "limit"_a, "threads"_a);
    nb::class_<RankBoost>(m, "RankBoost")
        .def("__init__", &make_rank_boost, "x"_a, "thresholds"_a, "grades"_a, "indptr"_a, "share"_a, "threads"_a, "preferences"_a = nb::none())
        .def("sums", &boosting_sums, "scores"_a, "exponent"_a, "threads"_a);
}

}  // namespace exactrank
