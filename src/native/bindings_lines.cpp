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

template <class Slope>
nb::tuple outline_of(LineSearch& self, In<Slope> slopes, double low, double high, int threads) {
    require_length("slopes", slopes.size(), self.documents());
    require_finite("slopes", slopes);
    std::vector<std::uint32_t> numbers;
    std::vector<std::int64_t> change, up;
    std::optional<LineSearch::Outline> found;
    {
        nb::gil_scoped_release release;
        found.emplace(self.outline(spanned(slopes), low, high, threads));
        found->histogram.each(
            [&](std::uint32_t number, const Histogram::Bin& bin) { numbers.push_back(number), change.push_back(bin.change), up.push_back(bin.up); });
    }
    return nb::make_tuple(array(std::move(numbers)), array(std::move(change)), array(std::move(up)), found->left, found->right, found->ties);
}

// The best interval of a sum whose histogram is given; `in_bins(bins)` gives the places and changes of its events there, in order, and
// `around(edge, low, high)` the events beside an edge.
nb::tuple best_of_outline(In<std::uint32_t> numbers, In<std::int64_t> change, In<std::int64_t> up, std::int64_t left, double low, double high, double peak,
                          const nb::callable& in_bins, const nb::callable& around) {
    require_length("change", change.size(), numbers.size());
    require_length("up", up.size(), numbers.size());
    Histogram histogram;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        require(numbers(i) < 2 * Histogram::half, "numbers must be of bins");
        histogram.add(numbers(i), {change(i), up(i)});
    }
    const FixedPoint fixed(peak);
    const EventSource events{[&](const std::vector<std::uint32_t>& bins) {
                                 const nb::tuple found = nb::cast<nb::tuple>(in_bins(array(std::vector<std::uint32_t>(bins))));
                                 const auto at = nb::cast<In<double>>(found[0]);
                                 const auto changes = nb::cast<In<std::int64_t>>(found[1]);
                                 require_length("changes", changes.size(), at.size());
                                 std::vector<FixedEvent> close(at.size());
                                 for (std::size_t i = 0; i < close.size(); ++i) close[i] = {at(i), changes(i)};
                                 return close;
                             },
                             [&](std::uint32_t edge, double from, double to) { return nb::cast<std::pair<double, double>>(around(edge, from, to)); }};
    const FixedBest best = BestInterval(events, histogram, left, fixed).find(low, high);
    return nb::make_tuple(best.low, best.high, fixed.back(best.value));
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
    m.def("best_of_outline", &best_of_outline, "numbers"_a, "change"_a, "up"_a, "left"_a, "low"_a, "high"_a, "peak"_a, "in_bins"_a, "around"_a);
    m.def("from_fixed", [](std::int64_t value, double peak) { return FixedPoint(peak).back(value); }, "value"_a, "peak"_a);
    m.attr("BIN_OF_ZERO") = Histogram::half;
    nb::class_<LineSearch>(m, "LineSearch")
        .def(
            "__init__",
            [](LineSearch* self, const BoundMeasure& measure, std::int32_t lines, std::size_t exchanges, std::size_t events, std::optional<double> total,
               std::optional<double> peak) {
                require(measure.kernel->common_discount() != nullptr, "the measure is not positional");
                require(lines > 0 && lines <= SearchRoom::most_lines, "lines must be above 0 and at most " + std::to_string(SearchRoom::most_lines));
                new (self) LineSearch(measure, {lines, exchanges, events}, total, peak);
            },
            "measure"_a, "lines"_a = SearchRoom{}.lines, "exchanges"_a = SearchRoom{}.exchanges, "events"_a = SearchRoom{}.events, "total"_a = nb::none(),
            "peak"_a = nb::none())
        .def_static(
            "serves", [](const BoundMeasure& measure) { return measure.kernel->common_discount() != nullptr; }, "measure"_a)
        .def(
            "rank",
            [](LineSearch& self, In<double> scores, int threads) {
                require_length("scores", scores.size(), self.documents());
                nb::gil_scoped_release release;
                const std::int64_t value = self.rank(spanned(scores), threads);
                return self.has_value() ? self.fixed().back(value) : self.no_value();
            },
            "scores"_a, "threads"_a)
        .def(
            "rank_part",
            [](LineSearch& self, In<double> scores, int threads) {
                require_length("scores", scores.size(), self.documents());
                nb::gil_scoped_release release;
                return self.rank(spanned(scores), threads);
            },
            "scores"_a, "threads"_a)
        .def("counted", [](const LineSearch& self) { return array(std::vector<std::uint8_t>(self.counted())); })
        .def("peak", &LineSearch::peak)
        .def("outline", &outline_of<float>, "slopes"_a, "low"_a, "high"_a, "threads"_a)
        .def("outline", &outline_of<double>, "slopes"_a, "low"_a, "high"_a, "threads"_a)
        .def(
            "events",
            [](const LineSearch& self, In<std::uint32_t> bins, int threads) {
                require(std::is_sorted(bins.data(), bins.data() + bins.size()), "bins must rise");
                require(bins.size() == 0 || bins(bins.size() - 1) < 2 * Histogram::half, "bins must be numbers of bins");
                std::vector<double> at;
                std::vector<std::int64_t> change;
                for (const FixedEvent& event : self.events_in_bins(spanned(bins), {}, threads)) at.push_back(event.at), change.push_back(event.change);
                return nb::make_tuple(array(std::move(at)), array(std::move(change)));
            },
            "bins"_a, "threads"_a)
        .def("around", &LineSearch::around, "edge"_a, "low"_a, "high"_a, "threads"_a)
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
