// Measures along rays of scores: profiles, line searches, bounds.
#include "bindings_queries.hpp"
#include "likelihood.hpp"
#include "line_search.hpp"
#include "optimistic.hpp"
#include "profile.hpp"

namespace exactrank {

namespace {

Ray checked_ray(const In<double>& scores, const In<double>& slopes, const std::optional<In<double>>& tie_key, bool mark_ties, double low, double high) {
    require_length("slopes", slopes.size(), scores.size());
    require_finite("slopes", slopes);
    return {scores.data(), slopes.data(), checked_tie_key(tie_key, scores.size()), mark_ties, low, high};
}

Boundaries measurable(const Kernel& kernel, const In<std::int64_t>& indptr, const In<double>& scores, const In<double>& grades) {
    Boundaries queries(indptr, scores.size());
    require_length("grades", grades.size(), scores.size());
    require_measurable(kernel, queries);
    return queries;
}

nb::tuple profile(In<double> scores, In<double> slopes, In<std::int64_t> indptr, std::optional<In<double>> tie_key, bool mark_ties, const Kernel& kernel,
                  In<double> grades, In<double> weight, double low, double high, int threads) {
    const Queries queries = measurable(kernel, indptr, scores, grades).weighted(weight);
    const Ray ray = checked_ray(scores, slopes, tie_key, mark_ties, low, high);
    Profile found;
    {
        nb::gil_scoped_release release;
        found = profile_of(ray, queries.indptr, queries.count, kernel, grades.data(), queries.weight, threads);
    }
    return nb::make_tuple(array(std::move(found.breakpoints)), array(std::move(found.values)), array(std::move(found.at)));
}

nb::tuple jumps_of_queries(In<double> scores, In<double> slopes, In<std::int64_t> indptr, std::optional<In<double>> tie_key, bool mark_ties,
                           const Kernel& kernel, In<double> grades, double low, double high, int threads) {
    const Boundaries queries = measurable(kernel, indptr, scores, grades);
    const Ray ray = checked_ray(scores, slopes, tie_key, mark_ties, low, high);
    QueryJumps found;
    {
        nb::gil_scoped_release release;
        found = query_jumps(ray, queries.data(), queries.queries(), kernel, grades.data(), threads);
    }
    std::vector<double> at, to, from;
    for (const Jump& jump : found.jumps) at.push_back(jump.at), to.push_back(jump.to), from.push_back(jump.from);
    return nb::make_tuple(array(std::move(at)), array(std::move(to)), array(std::move(from)), array(std::move(found.counts)), array(std::move(found.here)));
}

Out<double> optimistic_bounds(InMatrix<double> scores, In<std::int64_t> indptr, In<double> useful, In<double> discount, int threads) {
    const std::size_t n = scores.shape(1);
    const Boundaries queries(indptr, n, true);  // a query of which nothing is ranked is worth 0
    require_length("useful", useful.size(), n);
    auto bound = empty<double>(queries.queries());
    const Corners corners{scores.data(), scores.shape(0), n, queries.data(), queries.queries(), useful.data(), discount.data(), static_cast<std::int64_t>(discount.size())};
    nb::gil_scoped_release release;
    optimistic(corners, threads, bound.data());
    return bound;
}

template <class Slope>
nb::tuple best_step(LineSearch& self, In<Slope> slopes, double low, double high, int threads) {
    require_length("slopes", slopes.size(), self.documents());
    require_finite("slopes", slopes);
    Best best;
    {
        nb::gil_scoped_release release;
        best = self.best(slopes.data(), low, high, threads);
    }
    return nb::make_tuple(best.low, best.high, best.value);
}

nb::tuple likelihood_slope(In<double> scores, In<double> slopes, In<std::int64_t> indptr, In<std::int32_t> ideal, In<std::int32_t> top, In<double> weight,
                           double alpha, int threads) {
    const Boundaries boundaries(indptr, scores.size());
    const Queries queries = boundaries.weighted(weight);
    require_length("slopes", slopes.size(), scores.size());
    require_orders("ideal", ideal, boundaries);
    require_length("top", top.size(), queries.count);
    Curve curve;
    {
        nb::gil_scoped_release release;
        curve = likelihood_curve({scores.data(), slopes.data(), queries.indptr, queries.count, ideal.data(), top.data(), queries.weight}, alpha, threads);
    }
    return nb::make_tuple(curve.slope, curve.curvature);
}

}  // namespace

void bind_lines(nb::module_& m) {
    m.def("profile", &profile, "scores"_a, "slopes"_a, "indptr"_a, "tie_key"_a.none(), "mark_ties"_a, "kernel"_a, "grades"_a, "weight"_a, "low"_a, "high"_a,
          "threads"_a);
    m.def("query_jumps", &jumps_of_queries, "scores"_a, "slopes"_a, "indptr"_a, "tie_key"_a.none(), "mark_ties"_a, "kernel"_a, "grades"_a, "low"_a, "high"_a,
          "threads"_a);
    m.def("optimistic", &optimistic_bounds, "scores"_a, "indptr"_a, "useful"_a, "discount"_a, "threads"_a);
    m.def("likelihood_slope", &likelihood_slope, "scores"_a, "slopes"_a, "indptr"_a, "ideal"_a, "top"_a, "weight"_a, "alpha"_a, "threads"_a);
    nb::class_<LineSearch>(m, "LineSearch")
        .def(
            "__init__",
            [](LineSearch* self, const Kernel& kernel, In<double> grades, In<std::int64_t> indptr, std::optional<In<double>> tie_key, bool mark_ties,
               In<double> weight) {
                require(kernel.common_discount() != nullptr, "the measure is not positional");
                const Queries queries = measurable(kernel, indptr, grades, grades).weighted(weight);
                const double* keys = checked_tie_key(tie_key, grades.size());
                new (self) LineSearch(kernel, grades.data(), keys, mark_ties, queries.indptr, queries.count, queries.weight);
            },
            "kernel"_a, "grades"_a, "indptr"_a, "tie_key"_a.none(), "mark_ties"_a, "weight"_a)
        .def_static("serves", [](const Kernel& kernel) { return kernel.common_discount() != nullptr; }, "kernel"_a)
        .def(
            "rank",
            [](LineSearch& self, In<double> scores, int threads) {
                require_length("scores", scores.size(), self.documents());
                nb::gil_scoped_release release;
                return self.rank(scores.data(), threads);
            },
            "scores"_a, "threads"_a)
        .def(
            "best_as_published",
            [](LineSearch& self, In<double> slopes, int threads) {
                require_length("slopes", slopes.size(), self.documents());
                require_finite("slopes", slopes);
                auto counts = empty<std::int64_t>(self.queries());
                Best best;
                {
                    nb::gil_scoped_release release;
                    best = self.best_as_published(slopes.data(), threads, counts.data());
                }
                return nb::make_tuple(best.low, best.high, best.value, counts);
            },
            "slopes"_a, "threads"_a)
        .def("best", &best_step<float>, "slopes"_a, "low"_a, "high"_a, "threads"_a)
        .def("best", &best_step<double>, "slopes"_a, "low"_a, "high"_a, "threads"_a);
}

}  // namespace exactrank
