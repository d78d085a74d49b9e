// Measures along rays of scores: profiles, line searches, bounds.
#include "bindings.hpp"
#include "likelihood.hpp"
#include "line_search.hpp"
#include "optimistic.hpp"
#include "profile.hpp"

namespace exactrank {

namespace {

nb::tuple profile(In<double> scores, In<double> slopes, In<std::int64_t> indptr, std::optional<In<double>> tie_key, bool mark_ties, const Kernel& kernel,
                  In<double> grades, In<double> weight, double low, double high, int threads) {
    const std::size_t n = scores.size(), queries = indptr.size() - 1;
    require(indptr.size() >= 1 && indptr(0) == 0 && indptr(queries) == static_cast<std::int64_t>(n), "indptr does not cover the scores");
    require(slopes.size() == n && grades.size() == n && (!tie_key || tie_key->size() == n), "one number a document is needed");
    require(weight.size() == queries, "one weight a query is needed");
    const Ray ray{scores.data(), slopes.data(), tie_key ? tie_key->data() : nullptr, mark_ties, low, high};
    Profile found;
    {
        nb::gil_scoped_release release;
        found = profile_of(ray, indptr.data(), queries, kernel, grades.data(), weight.data(), threads);
    }
    return nb::make_tuple(array(std::move(found.breakpoints)), array(std::move(found.values)), array(std::move(found.at)));
}

nb::tuple jumps_of_queries(In<double> scores, In<double> slopes, In<std::int64_t> indptr, std::optional<In<double>> tie_key, bool mark_ties,
                           const Kernel& kernel, In<double> grades, double low, double high, int threads) {
    const std::size_t n = scores.size(), queries = indptr.size() - 1;
    require(indptr.size() >= 1 && indptr(0) == 0 && indptr(queries) == static_cast<std::int64_t>(n), "indptr does not cover the scores");
    require(slopes.size() == n && grades.size() == n && (!tie_key || tie_key->size() == n), "one number a document is needed");
    const Ray ray{scores.data(), slopes.data(), tie_key ? tie_key->data() : nullptr, mark_ties, low, high};
    QueryJumps found;
    {
        nb::gil_scoped_release release;
        found = query_jumps(ray, indptr.data(), queries, kernel, grades.data(), threads);
    }
    std::vector<double> at, to, from;
    for (const Jump& jump : found.jumps) at.push_back(jump.at), to.push_back(jump.to), from.push_back(jump.from);
    return nb::make_tuple(array(std::move(at)), array(std::move(to)), array(std::move(from)), array(std::move(found.counts)), array(std::move(found.here)));
}

Out<double> optimistic_bounds(InMatrix<double> scores, In<std::int64_t> indptr, In<double> useful, In<double> discount, int threads) {
    const std::size_t n = scores.shape(1), queries = indptr.size() - 1;
    require(indptr.size() >= 1 && indptr(0) == 0 && indptr(queries) == static_cast<std::int64_t>(n), "indptr does not cover the scores");
    require(useful.size() == n, "one usefulness a document is needed");
    auto bound = empty<double>(queries);
    const Corners corners{scores.data(), scores.shape(0), n, indptr.data(), queries, useful.data(), discount.data(), static_cast<std::int64_t>(discount.size())};
    nb::gil_scoped_release release;
    optimistic(corners, threads, bound.data());
    return bound;
}

template <class Slope>
nb::tuple best_step(LineSearch& self, In<Slope> slopes, double low, double high, int threads) {
    require(slopes.size() == self.documents(), "one slope a document is needed");
    Best best;
    {
        nb::gil_scoped_release release;
        best = self.best(slopes.data(), low, high, threads);
    }
    return nb::make_tuple(best.low, best.high, best.value);
}

nb::tuple likelihood_slope(In<double> scores, In<double> slopes, In<std::int64_t> indptr, In<std::int32_t> ideal, In<std::int32_t> top, In<double> weight,
                           double alpha, int threads) {
    const std::size_t n = scores.size(), queries = weight.size();
    require(indptr.size() == queries + 1 && top.size() == queries && indptr(queries) == static_cast<std::int64_t>(n), "indptr does not cover the scores");
    require(slopes.size() == n && ideal.size() == n, "one slope a document is needed");
    Curve curve;
    {
        nb::gil_scoped_release release;
        curve = likelihood_curve({scores.data(), slopes.data(), indptr.data(), queries, ideal.data(), top.data(), weight.data()}, alpha, threads);
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
                require(indptr.size() >= 1 && indptr(0) == 0 && indptr(indptr.size() - 1) == static_cast<std::int64_t>(grades.size()), "indptr does not cover the grades");
                require(weight.size() == indptr.size() - 1, "one weight a query is needed");
                require(!tie_key || tie_key->size() == grades.size(), "one tie key a document is needed");
                new (self) LineSearch(kernel, grades.data(), tie_key ? tie_key->data() : nullptr, mark_ties, indptr.data(), indptr.size() - 1, weight.data());
            },
            "kernel"_a, "grades"_a, "indptr"_a, "tie_key"_a.none(), "mark_ties"_a, "weight"_a)
        .def_static("serves", [](const Kernel& kernel) { return kernel.common_discount() != nullptr; }, "kernel"_a)
        .def(
            "rank",
            [](LineSearch& self, In<double> scores, int threads) {
                require(scores.size() == self.documents(), "one score a document is needed");
                nb::gil_scoped_release release;
                return self.rank(scores.data(), threads);
            },
            "scores"_a, "threads"_a)
        .def(
            "best_as_published",
            [](LineSearch& self, In<double> slopes, int threads) {
                require(slopes.size() == self.documents(), "one slope a document is needed");
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
