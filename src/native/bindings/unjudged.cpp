// Bounds over the grades of documents that nobody has judged.
#include "measures/unjudged.hpp"
#include "bindings/queries.hpp"
#include "line_search/profile.hpp"
#include "measures/ranking.hpp"
#include "support/threads.hpp"

namespace exactrank {

namespace {

using OwnedKernel = std::unique_ptr<Kernel>;

Unjudged checked(double low, double high, bool upper) {
    require(low >= 0 && high >= low, "unjudged documents must be worth at least 0, and at least low");
    return {low, high, upper};
}

void require_falling(const In<double>& discount) {
    for (std::size_t j = 0; j < discount.size(); ++j)
        require(discount(j) >= 0 && (j == 0 || discount(j) <= discount(j - 1)), "discounts must be at least 0 and must not rise");
}

OwnedKernel make_ratio_bound(double low, double high, bool upper, In<double> discount, std::int32_t cutoff, bool is_ideal, bool short_is_zero, double empty) {
    require(cutoff > 0, "cutoff must be above 0");
    require_falling(discount);
    return std::make_unique<RatioBoundKernel>(checked(low, high, upper), copied(discount), cutoff, is_ideal, short_is_zero, empty);
}

OwnedKernel make_precision_bound(double low, double high, bool upper, std::int32_t cutoff, bool limit_to_cutoff, double empty) {
    require(cutoff > 0, "cutoff must be above 0");
    return std::make_unique<PrecisionBoundKernel>(checked(low, high, upper), cutoff, limit_to_cutoff, empty);
}

// The discount of each document's rank; 0 beyond the cutoff, and where it was not retrieved.
Out<double> discounts_of_documents(In<double> scores, In<std::int64_t> indptr, std::optional<In<double>> tie_key, In<double> discount, std::int32_t cutoff,
                                   int threads) {
    const Boundaries queries(indptr, scores.size());
    const auto key = checked_tie_key(tie_key, scores.size());
    require(queries.longest() <= discount.size() || static_cast<std::size_t>(cutoff) <= discount.size(), "there are fewer discounts than ranks");
    std::vector<double> result(scores.size());
    {
        nb::gil_scoped_release release;
        for_each_query<Scratch>(queries.all(), threads, [&](Scratch& scratch, std::size_t q) {
            const std::int64_t begin = queries[q];
            scratch.order.resize(queries.length(q));
            const QueryScores query{scores.data() + begin, key.empty() ? nullptr : key.data() + begin, queries.length(q)};
            const std::int64_t retrieved = rank_query(scratch.keys, query, scratch.order.data(), nullptr);
            for (std::int64_t r = 0; r < std::min<std::int64_t>(retrieved, cutoff); ++r) result[begin + scratch.order[r]] = discount(r);
        });
    }
    return array(std::move(result));
}

// The extremes of sum_i c_i u_i / N for each query: smallest values, largest values.
nb::tuple ratio_extremes(In<double> coefficients, In<double> useful, In<std::int64_t> indptr, double low, double high, std::optional<In<double>> discount,
                         std::int32_t cutoff, int threads) {
    const Boundaries queries(indptr, useful.size());
    require_length("coefficients", coefficients.size(), useful.size());
    checked(low, high, true);
    if (discount) {
        require_falling(*discount);
        require(queries.longest() <= discount->size() || static_cast<std::size_t>(cutoff) <= discount->size(), "there are fewer discounts than ranks");
    }
    auto smallest = empty<double>(queries.queries()), largest = empty<double>(queries.queries());
    {
        nb::gil_scoped_release release;
        for_each_query<RatioExtremes>(queries.all(), threads, [&](RatioExtremes& extremes, std::size_t q) {
            const std::int64_t begin = queries[q];
            extremes.start(useful.data() + begin, queries.length(q), discount ? discount->data() : nullptr, cutoff, low, high);
            extremes.clear();
            for (std::int32_t i = 0; i < queries.length(q); ++i) extremes.add(useful(begin + i), coefficients(begin + i));
            const double least = extremes.extreme(false), most = extremes.extreme(true);
            const bool both = extremes.may_be_empty();  // then two rankings have the same value
            smallest.data()[q] = both ? std::min(least, 0.0) : least, largest.data()[q] = both ? std::max(most, 0.0) : most;
        });
    }
    return nb::make_tuple(smallest, largest);
}

// 1 for each document that is among the first `cutoff` of its query somewhere along scores + alpha slopes, low <= alpha <= high.
Out<std::uint8_t> members_along(In<double> scores, In<double> slopes, In<std::int64_t> indptr, double low, double high, std::int32_t cutoff, int threads) {
    const Boundaries queries(indptr, scores.size());
    require_length("slopes", slopes.size(), scores.size());
    require(cutoff > 0 && low <= 0 && high >= 0, "cutoff must be above 0, and 0 between low and high");
    std::vector<std::uint8_t> marks(scores.size());
    {
        nb::gil_scoped_release release;
        std::vector<double> number(scores.size());
        std::iota(number.begin(), number.end(), 0.0);
        const std::vector<double> weight(queries.queries(), 1.0);
        const MembershipKernel kernel(cutoff, marks);
        query_jumps({spanned(scores), spanned(slopes), low, high}, {&kernel, number, queries.all(), {}, false, weight}, threads);
    }
    return array(std::move(marks));
}

}  // namespace

void bind_unjudged(nb::module_& m) {
    m.def("ratio_bound", &make_ratio_bound, "low"_a, "high"_a, "upper"_a, "discount"_a, "cutoff"_a, "is_ideal"_a, "short_is_zero"_a, "empty"_a);
    m.def("precision_bound", &make_precision_bound, "low"_a, "high"_a, "upper"_a, "cutoff"_a, "limit_to_cutoff"_a, "empty"_a);
    m.def("discounts_of_documents", &discounts_of_documents, "scores"_a, "indptr"_a, "tie_key"_a.none(), "discount"_a, "cutoff"_a, "threads"_a);
    m.def("members_along", &members_along, "scores"_a, "slopes"_a, "indptr"_a, "low"_a, "high"_a, "cutoff"_a, "threads"_a);
    m.def("ratio_extremes", &ratio_extremes, "coefficients"_a, "useful"_a, "indptr"_a, "low"_a, "high"_a, "discount"_a.none(), "cutoff"_a, "threads"_a);
}

}  // namespace exactrank
