// Listwise and smooth losses.
#include <numeric>

#include "bindings/queries.hpp"
#include "objectives/approx_ndcg.hpp"
#include "objectives/listmle.hpp"
#include "objectives/listnet.hpp"
#include "objectives/rank_cosine.hpp"
#include "objectives/smooth_measure.hpp"
#include "objectives/squared_error.hpp"

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

// What an exchange of positions i < j changes is (u_j - u_i) (a_i - a_j): u by document, a by position, both 0 where nothing is useful.
std::pair<Out<double>, Out<double>> exchange_terms(const Kernel& kernel, In<double> grades, In<std::int64_t> indptr) {
    const Boundaries queries(indptr, grades.size());
    require(kernel.common_discount() != nullptr, "the measure is not positional");
    require_measurable(kernel, queries);
    auto useful = empty<double>(grades.size()), share = empty<double>(grades.size());
    std::fill_n(useful.data(), useful.size(), 0.0), std::fill_n(share.data(), share.size(), 0.0);
    Scratch scratch;
    Breath breath;
    std::vector<std::int32_t> as_listed;
    for (std::size_t q = 0; q < queries.queries(); ++q) {
        const std::int32_t count = queries.length(q);
        const Ranked query{grades.data() + queries[q], grades.data() + queries[q], nullptr, count, count};
        breath.after(16 * static_cast<std::size_t>(count));
        if (kernel.is_empty(query)) continue;
        const std::unique_ptr<Swaps> swaps = kernel.swaps();
        as_listed.resize(count);
        std::iota(as_listed.begin(), as_listed.end(), 0);
        swaps->start(query, scratch), swaps->arrange(query, as_listed.data(), scratch);
        std::copy_n(swaps->separable()->u, count, useful.data() + queries[q]);
        std::copy_n(swaps->separable()->a, count, share.data() + queries[q]);
    }
    return {useful, share};
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
        [](In<double> grades, std::optional<In<double>> parts, double center) {
            if (parts) require(parts->size() == grades.size(), "parts must hold one number per grade");
            return made<SquaredError>({grades.size()}, grades.data(), center, parts ? parts->data() : nullptr);
        },
        "grades"_a.noconvert(), "parts"_a.none().noconvert(), "center"_a, keep_alive<0, 1>(), keep_alive<0, 2>());
    m.def("worths", &worths, "kernel"_a, "grades"_a, "indptr"_a);
    m.def("exchange_terms", &exchange_terms, "kernel"_a, "grades"_a, "indptr"_a);
    m.def("smooth_measure", &make_smooth_measure, "kernel"_a, "worths"_a.noconvert(), "sigma"_a, keep_alive<0, 2>());
    m.def(
        "approx_ndcg", [](In<double> worths, double alpha) { return made<ApproxNDCG>({worths.size()}, worths.data(), alpha); }, "worths"_a.noconvert(),
        "alpha"_a, keep_alive<0, 1>());
}

}  // namespace exactrank
