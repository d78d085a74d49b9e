// Measures of many linear models at once: what optimizers by values ask.
#include "bindings.hpp"
#include "perturbed.hpp"
#include "products.hpp"

namespace exactrank {

namespace {

nb::ndarray<nb::numpy, double, nb::ndim<2>> score_products(InMatrix<float> x, InMatrix<double> weights, int threads) {
    require(weights.shape(1) == x.shape(1), "weights and features differ in number");
    const std::size_t rows = x.shape(0), models = weights.shape(0);
    auto* scores = new double[rows * models];
    const nb::capsule owner(scores, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    {
        nb::gil_scoped_release release;
        products(x.data(), rows, x.shape(1), weights.data(), models, threads, scores);
    }
    return {scores, {models, rows}, owner};
}

Out<double> value_differences(In<double> scores, InMatrix<float> x, In<double> change, In<std::int64_t> indptr, std::optional<In<double>> tie_key,
                              bool mark_ties, bool single_precision, const Kernel& kernel, In<double> grades, In<double> weight, int threads) {
    const std::size_t n = scores.size(), queries = weight.size();
    require(indptr.size() == queries + 1 && indptr(0) == 0 && indptr(queries) == static_cast<std::int64_t>(n), "indptr does not cover the scores");
    require(x.shape(0) == n && grades.size() == n && (!tie_key || tie_key->size() == n), "one number a document is needed");
    require(change.size() == x.shape(1), "one change a feature is needed");
    const Perturbation given{{scores.data(), tie_key ? tie_key->data() : nullptr, mark_ties, indptr.data(), queries},
                             {&kernel, grades.data()},
                             weight.data(),
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
