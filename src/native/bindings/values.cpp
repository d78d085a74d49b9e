// Measures of many linear models at once: what optimizers by values ask.
#include "bindings/queries.hpp"
#include "models/products.hpp"
#include "objectives/perturbed.hpp"

namespace exactrank {

namespace {

nb::ndarray<nb::numpy, double, nb::ndim<2>> score_products(InMatrix<float> x, InMatrix<double> weights, int threads) {
    require(weights.shape(1) == x.shape(1), "weights and features differ in number");
    auto scores = empty<double>(weights.shape(0), x.shape(0));
    nb::gil_scoped_release release;
    products(viewed(x), viewed(weights), threads, {scores.data(), scores.size()});
    return scores;
}

Out<double> value_differences(const BoundMeasure& measure, In<double> scores, InMatrix<float> x, In<double> change, bool single_precision, int threads) {
    require_length("scores", scores.size(), measure.documents());
    require_length("x", x.shape(0), measure.documents());
    require_length("change", change.size(), x.shape(1));
    const Perturbation given{measure, spanned(scores), viewed(x).cells, spanned(change), single_precision};
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
    m.def("differences", &value_differences, "measure"_a, "scores"_a, "x"_a, "change"_a, "single_precision"_a, "threads"_a);
}

}  // namespace exactrank
