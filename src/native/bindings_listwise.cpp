// Listwise and smooth losses.
#include "approx_ndcg.hpp"
#include "bindings_queries.hpp"
#include "listmle.hpp"
#include "listnet.hpp"
#include "rank_cosine.hpp"
#include "smooth_measure.hpp"
#include "squared_error.hpp"

namespace exactrank {

namespace {

// What each document is worth to a positional measure.
Out<double> worths(const Kernel& kernel, In<double> grades, In<std::int64_t> indptr) {
    const Boundaries queries(indptr, grades.size());
    require(kernel.common_discount() != nullptr, "the measure is not positional");
    require_measurable(kernel, queries);
    auto found = empty<double>(grades.size());
    Scratch scratch;
    Breath breath;
    for (std::size_t q = 0; q < queries.queries(); ++q) {
        const std::int32_t count = queries.length(q);
        kernel.worths({grades.data() + queries[q], nullptr, nullptr, count, count}, scratch, found.data() + queries[q]);
        breath.after(16 * static_cast<std::size_t>(count));
    }
    return found;
}

OwnedObjective make_smooth_measure(const Kernel& kernel, In<double> worths, double sigma) {
    require(kernel.common_discount() != nullptr, "the measure is not positional");
    return made<SmoothMeasure>({worths.size()}, *kernel.common_discount(), kernel.cutoff(), worths.data(), sigma);
}

OwnedObjective make_listmle(In<std::int32_t> ideal, In<std::int32_t> top, In<std::int64_t> indptr) {
    const Boundaries queries(indptr, ideal.size());
    require_orders("ideal", ideal, queries);
    require_length("top", top.size(), queries.queries());
    return made<ListMLE>(domain_of(queries), copied(ideal), copied(top));
}

}  // namespace

void bind_listwise(nb::module_& m) {
    using nb::keep_alive;
    m.def("listnet", [](In<double> targets) { return made<ListNet>({targets.size()}, targets.data()); }, "targets"_a.noconvert(), keep_alive<0, 1>());
    m.def("listmle", &make_listmle, "ideal"_a, "top"_a, "indptr"_a);
    m.def("rank_cosine", [](In<double> targets) { return made<RankCosine>({targets.size()}, targets.data()); }, "targets"_a.noconvert(), keep_alive<0, 1>());
    m.def(
        "squared_error",
        [](In<double> grades, std::optional<In<double>> parts, double centre) {
            if (parts) require(parts->size() == grades.size(), "parts must hold one number per grade");
            return made<SquaredError>({grades.size()}, grades.data(), centre, parts ? parts->data() : nullptr);
        },
        "grades"_a.noconvert(), "parts"_a.none().noconvert(), "centre"_a, keep_alive<0, 1>(), keep_alive<0, 2>());
    m.def("worths", &worths, "kernel"_a, "grades"_a, "indptr"_a);
    m.def("smooth_measure", &make_smooth_measure, "kernel"_a, "worths"_a.noconvert(), "sigma"_a, keep_alive<0, 2>());
    m.def(
        "approx_ndcg", [](In<double> worths, double alpha) { return made<ApproxNDCG>({worths.size()}, worths.data(), alpha); }, "worths"_a.noconvert(),
        "alpha"_a, keep_alive<0, 1>());
}

}  // namespace exactrank
