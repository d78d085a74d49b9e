// Listwise and smooth losses.
#include "approx_ndcg.hpp"
#include "bindings.hpp"
#include "listmle.hpp"
#include "listnet.hpp"
#include "rank_cosine.hpp"
#include "smooth_measure.hpp"
#include "squared_error.hpp"

namespace exactrank {

namespace {

using OwnedObjective = std::unique_ptr<Objective>;

// What each document is worth to a positional measure.
Out<double> worths(const Kernel& kernel, In<double> grades, In<std::int64_t> indptr) {
    const std::size_t queries = indptr.size() - 1;
    const auto documents = static_cast<std::int64_t>(grades.size());
    require(kernel.common_discount() != nullptr, "the measure is not positional");
    require(indptr.size() >= 1 && indptr(0) == 0 && indptr(queries) == documents, "indptr does not cover the grades");
    auto found = empty<double>(grades.size());
    Scratch scratch;
    for (std::size_t q = 0; q < queries; ++q) {
        const auto count = static_cast<std::int32_t>(indptr(q + 1) - indptr(q));
        kernel.worths({grades.data() + indptr(q), nullptr, nullptr, count, count}, scratch, found.data() + indptr(q));
    }
    return found;
}

OwnedObjective make_smooth_measure(const Kernel& kernel, In<double> worths, double sigma) {
    require(kernel.common_discount() != nullptr, "the measure is not positional");
    return std::make_unique<SmoothMeasure>(*kernel.common_discount(), kernel.cutoff(), worths.data(), sigma);
}

}  // namespace

void bind_listwise(nb::module_& m) {
    using nb::keep_alive;
    m.def(
        "listnet", [](In<double> targets) { return OwnedObjective(new ListNet(targets.data())); }, "targets"_a, keep_alive<0, 1>());
    m.def(
        "listmle", [](In<std::int32_t> ideal, In<std::int32_t> top) { return OwnedObjective(new ListMLE(ideal.data(), top.data())); },
        "ideal"_a, "top"_a, keep_alive<0, 1>(), keep_alive<0, 2>());
    m.def(
        "rank_cosine", [](In<double> targets) { return OwnedObjective(new RankCosine(targets.data())); }, "targets"_a, keep_alive<0, 1>());
    m.def(
        "squared_error", [](In<double> targets, bool within) { return OwnedObjective(new SquaredError(targets.data(), within)); }, "targets"_a, "within"_a,
        keep_alive<0, 1>());
    m.def("worths", &worths, "kernel"_a, "grades"_a, "indptr"_a);
    m.def("smooth_measure", &make_smooth_measure, "kernel"_a, "worths"_a, "sigma"_a, keep_alive<0, 2>());
    m.def(
        "approx_ndcg", [](In<double> worths, double alpha) { return OwnedObjective(new ApproxNDCG(worths.data(), alpha)); },
        "worths"_a, "alpha"_a, keep_alive<0, 1>());
}

}  // namespace exactrank
