// All measures of all queries: each query is ranked once, and every kernel reads the ranking while it is at hand.
#pragma once

#include <atomic>
#include <limits>
#include <span>

#include "kernel.hpp"
#include "ranking.hpp"
#include "threads.hpp"

namespace exactrank {

struct MeasureOf {
    const Kernel* kernel;
    std::span<const double> grades;  // of all documents
};

struct Scores {
    std::span<const double> score;
    std::span<const double> tie_key;  // empty: ties in input order
    bool mark_ties;                   // ties count as the mean over their orders
    std::span<const std::int64_t> indptr;

    std::size_t queries() const { return indptr.size() - 1; }
};

// Fills values[m * queries + q], and retrieved[q] with how many documents have a rank. Returns the
// index of the first score that is NaN or +inf, or -1 when all are sound.
inline std::int64_t evaluate(const Scores& scores, std::span<const MeasureOf> measures, int threads, std::span<double> values,
                             std::span<std::int32_t> retrieved) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::atomic<std::int64_t> first_bad{none};
    for_each_query<Scratch>(scores.indptr, threads, [&](Scratch& scratch, std::size_t q) {
        const std::int64_t begin = scores.indptr[q];
        const auto count = static_cast<std::int32_t>(scores.indptr[q + 1] - begin);
        scratch.order.resize(count);
        scratch.ranked.resize(count);
        scratch.tied.resize(count);
        std::uint8_t* const tied = scores.mark_ties ? scratch.tied.data() : nullptr;
        const QueryScores query{scores.score.data() + begin, scores.tie_key.empty() ? nullptr : scores.tie_key.data() + begin, count};
        const std::int64_t ranked = rank_query(scratch.keys, query, scratch.order.data(), tied);
        if (ranked < 0) {
            const std::int64_t bad = begin - 1 - ranked;
            for (auto seen = first_bad.load(); bad < seen && !first_bad.compare_exchange_weak(seen, bad);) {}
            return;
        }
        retrieved[q] = static_cast<std::int32_t>(ranked);
        const double* gathered = nullptr;
        for (std::size_t m = 0; m < measures.size(); ++m) {
            const double* grade = measures[m].grades.data() + begin;
            if (grade != gathered)
                for (std::int32_t r = 0; r < retrieved[q]; ++r) scratch.ranked[r] = grade[scratch.order[r]];
            gathered = grade;
            values[m * scores.queries() + q] = measures[m].kernel->value({grade, scratch.ranked.data(), tied, count, retrieved[q]}, scratch);
        }
    });
    return first_bad == none ? -1 : first_bad.load();
}

}  // namespace exactrank
