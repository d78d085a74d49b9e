// Measures of many linear models at once: what optimizers by values ask.
#include "bindings_queries.hpp"
#include "perturbed.hpp"
#include "products.hpp"

namespace exactrank {

namespace {

nb::ndarray<nb::numpy, double, nb::ndim<2>> score_products(InMatrix<float> x, InMatrix<double> weights, int threads) {
    require(weights.shape(1) == x.shape(1), "weights and features differ in number");
    auto scores = empty<double>(weights.shape(0), x.shape(0));
    nb::gil_scoped_release release;
    products(x.data(), x.shape(0), x.shape(1), weights.data(), weights.shape(0), threads, scores.data());
    return scores;
}

Out<double> value_differences(In<double> scores, InMatrix<float> x, In<double> change, In<std::int64_t> indptr, std::optional<In<double>> tie_key,
                              bool mark_ties, bool single_precision, const Kernel& kernel, In<double> grades, In<double> weight, int threads) {
    const std::size_t n = scores.size();
    const Boundaries boundaries(indptr, n);
    const Queries queries = boundaries.weighted(weight);
    require_measurable(kernel, boundaries);
    require_length("x", x.shape(0), n);
    require_length("grades", grades.size(), n);
    require_length("change", change.size(), x.shape(1));
    const Perturbation given{{scores.data(), checked_tie_key(tie_key, n), mark_ties, queries.indptr, queries.count},
                             {&kernel, grades.data()},
                             queries.weight,
                             x.data(),
                             change.data(),
                             change.size(),
                             single_precision};
    std::vector<double> found;
    {
        nb::gil_scoped_release release;
        found = differences(given, threads);
    }
    return array(std::move(found));
}

}  // namespace

void bind_values(nb::module_& m) {
    m.def("products", &score_products, "x"_a, "weights"_a, "threads"_a);
    m.def("differences", &value_differences, "scores"_a, "x"_a, "change"_a, "indptr"_a, "tie_key"_a.none(), "mark_ties"_a, "single_precision"_a, "kernel"_a,
          "grades"_a, "weight"_a, "threads"_a);
}

}  // namespace exactrank
