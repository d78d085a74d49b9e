// All measures of all queries: each query is ranked once, and every kernel reads the ranking while it is at hand. Where measures break ties in
// different ways only tied documents change places, as far down as any of the measures looks.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <span>

#include "measures/kernel.hpp"
#include "measures/ranking.hpp"
#include "support/threads.hpp"

namespace exactrank {

struct MeasureOf {
    const Kernel* kernel;
    std::span<const double> grades;   // of all documents
    std::span<const double> tie_key;  // empty: ties in input order
    bool mark_ties;                   // ties count as the mean over their orders

    const double* key(std::int64_t begin) const { return tie_key.empty() ? nullptr : tie_key.data() + begin; }
};

struct Scores {
    std::span<const double> score;
    std::span<const std::int64_t> indptr;

    std::size_t queries() const { return indptr.size() - 1; }
};

// Fills value[m * stride] for every measure of one query, whose documents begin at `begin`, and returns how many of them have a rank; or
// -1 - i if score i is NaN or +inf.
inline std::int64_t query_values(const double* score, std::int64_t begin, std::int32_t count, std::span<const MeasureOf> measures, Scratch& scratch,
                                 double* value, std::size_t stride) {
    scratch.order.resize(count);
    scratch.ranked.resize(count);
    scratch.tied.resize(count);
    const bool mark_ties = std::any_of(measures.begin(), measures.end(), [](const MeasureOf& each) { return each.mark_ties; });
    QueryScores query{score, measures.empty() ? nullptr : measures[0].key(begin), count};
    const std::int64_t ranked = rank_query(scratch.keys, query, scratch.order.data(), mark_ties ? scratch.tied.data() : nullptr);
    const auto retrieved = static_cast<std::int32_t>(ranked);
    std::int32_t cutoff = 0;
    for (const MeasureOf& each : measures) cutoff = std::max(cutoff, std::min(each.kernel->cutoff(), retrieved));
    const double* gathered = nullptr;
    for (std::size_t m = 0; ranked >= 0 && m < measures.size(); ++m) {
        const MeasureOf& each = measures[m];
        const double* grade = each.grades.data() + begin;
        if (const double* key = each.key(begin); key != query.tie_key) {
            query.tie_key = key;
            if (!scratch.keys.distinct_scores && break_ties(query, scratch.order.data(), retrieved, cutoff)) gathered = nullptr;
        }
        if (grade == gathered && each.kernel == measures[m - 1].kernel && each.mark_ties == measures[m - 1].mark_ties) {
            value[m * stride] = value[(m - 1) * stride];
            continue;
        }
        if (grade != gathered)
            for (std::int32_t r = 0; r < retrieved; ++r) scratch.ranked[r] = grade[scratch.order[r]];
        gathered = grade;
        value[m * stride] = each.kernel->value({grade, scratch.ranked.data(), each.mark_ties ? scratch.tied.data() : nullptr, count, retrieved}, scratch);
    }
    return ranked;
}

// Fills values[m * queries + q], and retrieved[q] with how many documents have a rank. Returns the
// index of the first score that is NaN or +inf, or -1 when all are sound.
inline std::int64_t evaluate(const Scores& scores, std::span<const MeasureOf> measures, int threads, std::span<double> values,
                             std::span<std::int32_t> retrieved) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::atomic<std::int64_t> first_bad{none};
    for_each_query<Scratch>(scores.indptr, threads, [&](Scratch& scratch, std::size_t q) {
        const std::int64_t begin = scores.indptr[q];
        const auto count = static_cast<std::int32_t>(scores.indptr[q + 1] - begin);
        const std::int64_t ranked = query_values(scores.score.data() + begin, begin, count, measures, scratch, values.data() + q, scores.queries());
        if (ranked < 0) {
            const std::int64_t bad = begin - 1 - ranked;
            for (auto seen = first_bad.load(); bad < seen && !first_bad.compare_exchange_weak(seen, bad);) {}
        }
        retrieved[q] = static_cast<std::int32_t>(std::max<std::int64_t>(ranked, 0));
    });
    return first_bad == none ? -1 : first_bad.load();
}

}  // namespace exactrank
