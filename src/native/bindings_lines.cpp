// Measures along rays of scores: profiles, line searches, bounds.
#include "bindings_queries.hpp"
#include "likelihood.hpp"
#include "line_search.hpp"
#include "optimistic.hpp"
#include "profile.hpp"

namespace exactrank {

namespace {

void make_bound_measure(BoundMeasure* self, const Kernel& kernel, In<double> grades, In<std::int64_t> indptr, std::optional<In<double>> tie_key, bool mark_ties,
                        In<double> weight) {
    const Boundaries queries(indptr, grades.size());
    require_measurable(kernel, queries);
    require_length("weight", weight.size(), queries.queries());
    new (self) BoundMeasure{&kernel, spanned(grades), queries.all(), checked_tie_key(tie_key, grades.size()), mark_ties, spanned(weight)};
}

Ray checked_ray(const BoundMeasure& measure, const In<double>& scores, const In<double>& slopes, double low, double high) {
    require_length("scores", scores.size(), measure.documents());
    require_length("slopes", slopes.size(), measure.documents());
    require_finite("slopes", slopes);
    return {spanned(scores), spanned(slopes), low, high};
}

nb::tuple profile(const BoundMeasure& measure, In<double> scores, In<double> slopes, double low, double high, int threads) {
    const Ray ray = checked_ray(measure, scores, slopes, low, high);
    Profile found;
    {
        nb::gil_scoped_release release;
        found = profile_of(ray, measure, threads);
    }
    return nb::make_tuple(array(std::move(found.breakpoints)), array(std::move(found.values)), array(std::move(found.at)));
}

nb::tuple jumps_of_queries(const BoundMeasure& measure, In<double> scores, In<double> slopes, double low, double high, int threads) {
    const Ray ray = checked_ray(measure, scores, slopes, low, high);
    QueryJumps found;
    {
        nb::gil_scoped_release release;
        found = query_jumps(ray, measure, threads);
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
    const Corners corners{viewed(scores).cells, scores.shape(0), queries.all(), spanned(useful), spanned(discount)};
    nb::gil_scoped_release release;
    optimistic(corners, threads, spanned(bound));
    return bound;
}

template <class Slope>
nb::tuple best_step(LineSearch& self, In<Slope> slopes, double low, double high, int threads) {
    require_length("slopes", slopes.size(), self.documents());
    require_finite("slopes", slopes);
    Best best;
    {
        nb::gil_scoped_release release;
        best = self.best(spanned(slopes), low, high, threads);
    }
    return nb::make_tuple(best.low, best.high, best.value);
}

nb::tuple likelihood_slope(In<double> scores, In<double> slopes, In<std::int64_t> indptr, In<std::int32_t> ideal, In<std::int32_t> top, In<double> weight,
                           double alpha, int threads) {
    const Boundaries boundaries(indptr, scores.size());
    const Queries queries = boundaries.weighted(weight);
    require_length("slopes", slopes.size(), scores.size());
    require_orders("ideal", ideal, boundaries);
    require_length("top", top.size(), queries.count());
    Curve curve;
    {
        nb::gil_scoped_release release;
        curve = likelihood_curve({spanned(scores), spanned(slopes), queries.indptr, spanned(ideal), spanned(top), queries.weight}, alpha, threads);
    }
    return nb::make_tuple(curve.slope, curve.curvature);
}

}  // namespace

void bind_lines(nb::module_& m) {
    nb::class_<BoundMeasure>(m, "BoundMeasure")
        .def("__init__", &make_bound_measure, "kernel"_a, "grades"_a.noconvert(), "indptr"_a.noconvert(), "tie_key"_a.none().noconvert(), "mark_ties"_a,
             "weight"_a.noconvert(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 7>());
    m.def("profile", &profile, "measure"_a, "scores"_a, "slopes"_a, "low"_a, "high"_a, "threads"_a);
    m.def("query_jumps", &jumps_of_queries, "measure"_a, "scores"_a, "slopes"_a, "low"_a, "high"_a, "threads"_a);
    m.def("optimistic", &optimistic_bounds, "scores"_a, "indptr"_a, "useful"_a, "discount"_a, "threads"_a);
    m.def("likelihood_slope", &likelihood_slope, "scores"_a, "slopes"_a, "indptr"_a, "ideal"_a, "top"_a, "weight"_a, "alpha"_a, "threads"_a);
    nb::class_<LineSearch>(m, "LineSearch")
        .def(
            "__init__",
            [](LineSearch* self, const BoundMeasure& measure, std::int32_t lines, std::size_t exchanges, std::size_t events) {
                require(measure.kernel->common_discount() != nullptr, "the measure is not positional");
                require(lines > 0 && lines <= SearchRoom::most_lines, "lines must be above 0 and at most " + std::to_string(SearchRoom::most_lines));
                new (self) LineSearch(measure, {lines, exchanges, events});
            },
            "measure"_a, "lines"_a = SearchRoom{}.lines, "exchanges"_a = SearchRoom{}.exchanges, "events"_a = SearchRoom{}.events)
        .def_static(
            "serves", [](const BoundMeasure& measure) { return measure.kernel->common_discount() != nullptr; }, "measure"_a)
        .def(
            "rank",
            [](LineSearch& self, In<double> scores, int threads) {
                require_length("scores", scores.size(), self.documents());
                nb::gil_scoped_release release;
                return self.rank(spanned(scores), threads);
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
                    best = self.best_as_published(spanned(slopes), threads, spanned(counts));
                }
                return nb::make_tuple(best.low, best.high, best.value, counts);
            },
            "slopes"_a, "threads"_a)
        .def("best", &best_step<float>, "slopes"_a, "low"_a, "high"_a, "threads"_a)
        .def("best", &best_step<double>, "slopes"_a, "low"_a, "high"_a, "threads"_a);
}

}  // namespace exactrank
