// Measures along rays of scores: profiles, line searches, bounds.
#include "bindings/queries.hpp"
#include "line_search/likelihood.hpp"
#include "line_search/line_search.hpp"
#include "line_search/optimistic.hpp"
#include "line_search/profile.hpp"

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

// A search, and the scores that it ranked last.
struct HeldSearch : LineSearch {
    using LineSearch::LineSearch;
    std::optional<In<double>> scores;

    std::int64_t rank_held(In<double> given, int threads) {
        require_length("scores", given.size(), documents());
        scores = given;
        nb::gil_scoped_release release;
        return rank(spanned(*scores), threads);
    }
};

template <class Slope>
nb::tuple best_step(HeldSearch& self, In<Slope> slopes, double low, double high, int threads) {
    require_length("slopes", slopes.size(), self.documents());
    require_finite("slopes", slopes);
    Best best;
    {
        nb::gil_scoped_release release;
        best = self.best(Along<Slope>{spanned(slopes), low, high}, threads);
    }
    return nb::make_tuple(best.low, best.high, best.value);
}

// An outline with the slopes that it is along.
template <class Slope>
struct HeldOutline : LineOutline<Slope> {
    HeldOutline(HeldSearch& search, In<Slope> slopes, double low, double high, int threads)
        : LineOutline<Slope>(search, {spanned(slopes), low, high}, threads), held(std::move(slopes)) {}
    In<Slope> held;
};

template <class Slope>
std::unique_ptr<Outline> outline_of(HeldSearch& self, In<Slope> slopes, double low, double high, int threads) {
    require_length("slopes", slopes.size(), self.documents());
    require_finite("slopes", slopes);
    nb::gil_scoped_release release;
    return std::make_unique<HeldOutline<Slope>>(self, slopes, low, high, threads);
}

nb::tuple likelihood_slopes(In<double> scores, In<double> slopes, In<std::int64_t> indptr, In<std::int32_t> ideal, In<std::int32_t> top, In<double> weight,
                            double alpha, int threads) {
    const Boundaries boundaries(indptr, scores.size());
    const Queries queries = boundaries.weighted(weight);
    require_length("slopes", slopes.size(), scores.size());
    require_orders("ideal", ideal, boundaries);
    require_length("top", top.size(), queries.count());
    std::vector<double> slope, curvature;
    {
        nb::gil_scoped_release release;
        for (const Curve& curve :
             likelihood_curves({spanned(scores), spanned(slopes), queries.indptr, spanned(ideal), spanned(top), queries.weight}, alpha, threads))
            slope.push_back(curve.slope), curvature.push_back(curve.curvature);
    }
    return nb::make_tuple(array(std::move(slope)), array(std::move(curvature)));
}

}  // namespace

void bind_lines(nb::module_& m) {
    nb::class_<BoundMeasure>(m, "BoundMeasure")
        .def("__init__", &make_bound_measure, "kernel"_a, "grades"_a.noconvert(), "indptr"_a.noconvert(), "tie_key"_a.none().noconvert(), "mark_ties"_a,
             "weight"_a.noconvert(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 7>());
    m.def("query_jumps", &jumps_of_queries, "measure"_a, "scores"_a, "slopes"_a, "low"_a, "high"_a, "threads"_a);
    m.def("optimistic", &optimistic_bounds, "scores"_a, "indptr"_a, "useful"_a, "discount"_a, "threads"_a);
    m.def("likelihood_slopes", &likelihood_slopes, "scores"_a, "slopes"_a, "indptr"_a, "ideal"_a, "top"_a, "weight"_a, "alpha"_a, "threads"_a);
    nb::class_<HeldSearch>(m, "LineSearch")
        .def(
            "__init__",
            [](HeldSearch* self, const BoundMeasure& measure, std::int32_t lines, std::size_t exchanges, std::size_t events, std::size_t blocks,
               std::optional<double> total, std::optional<double> peak) {
                require(measure.kernel->common_discount() != nullptr, "the measure is not positional");
                require(lines > 0 && lines <= SearchRoom::most_lines, "lines must be above 0 and at most " + std::to_string(SearchRoom::most_lines));
                new (self) HeldSearch(measure, {lines, exchanges, events, blocks}, total, peak);
            },
            "measure"_a, "lines"_a = SearchRoom{}.lines, "exchanges"_a = SearchRoom{}.exchanges, "events"_a = SearchRoom{}.events,
            "blocks"_a = SearchRoom{}.blocks, "total"_a = nb::none(), "peak"_a = nb::none(), nb::keep_alive<1, 2>())
        .def_static(
            "serves", [](const BoundMeasure& measure) { return measure.kernel->common_discount() != nullptr; }, "measure"_a)
        .def(
            "rank",
            [](HeldSearch& self, In<double> scores, int threads) {
                const std::int64_t value = self.rank_held(scores, threads);
                return self.has_value() ? self.fixed().back(value) : self.no_value();
            },
            "scores"_a, "threads"_a)
        .def("rank_part", &HeldSearch::rank_held, "scores"_a, "threads"_a)
        .def("counted", [](const HeldSearch& self) { return array(std::vector<std::uint8_t>(self.counted())); })
        .def("peak", [](const HeldSearch& self) { return self.peak(); })
        .def("outline", &outline_of<float>, "slopes"_a, "low"_a, "high"_a, "threads"_a, nb::keep_alive<0, 1>())
        .def("outline", &outline_of<double>, "slopes"_a, "low"_a, "high"_a, "threads"_a, nb::keep_alive<0, 1>())
        .def(
            "best_as_published",
            [](HeldSearch& self, In<double> slopes, int threads) {
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
