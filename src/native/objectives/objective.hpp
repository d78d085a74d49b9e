// What gradient methods ask: the value of a query's scores, which is to be made large, and its slope.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "measures/kernel.hpp"
#include "support/threads.hpp"

namespace exactrank {

// One query's scores; its documents are those from `begin` on.
struct Scored {
    std::size_t query;
    std::int64_t begin;
    std::int32_t count;
    const double* score;
};

// Where the answers for one query go; null: not wanted.
struct Answer {
    double* value;
    double* slope;      // the derivative by each score
    double* curvature;  // how fast that falls as the score alone rises; wanted only with the slope
};

// Which queries an objective may be asked about. The bindings see to it; kernels rely on it.
struct Domain {
    std::optional<std::size_t> documents = std::nullopt;             // in all
    std::size_t longest = std::numeric_limits<std::int32_t>::max();  // query
    std::vector<std::int64_t> indptr = {};                           // of the queries that it was made for; empty: any
};

class Objective {
public:
    virtual ~Objective() = default;
    Domain domain;
    // Fills what is wanted.
    virtual void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const = 0;
    // Whether `answer` may be called from several threads at once.
    virtual bool is_parallel() const { return true; }
};

// Scores that are not numbers have neither value nor slope.
inline void answer_nan(std::int32_t n, const Answer& wanted) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    if (wanted.value) *wanted.value = nan;
    if (wanted.slope) std::fill_n(wanted.slope, n, nan);
    if (wanted.curvature) std::fill_n(wanted.curvature, n, nan);
}

struct Queries {
    std::span<const std::int64_t> indptr;
    std::span<const double> weight;  // one per query

    std::size_t count() const { return indptr.size() - 1; }
    Scored scored(std::size_t q, const double* score) const { return {q, indptr[q], static_cast<std::int32_t>(indptr[q + 1] - indptr[q]), score}; }
};

// The answers for all queries, each times the weight of its query: values by query, slopes and curvatures by document.
inline void answers(const Objective& objective, const Queries& queries, const double* score, int threads, const Answer& wanted) {
    for_each_query<Scratch>(queries.indptr, objective.is_parallel() ? threads : 1, [&](Scratch& scratch, std::size_t q) {
        const std::int64_t begin = queries.indptr[q];
        auto from = [&](double* all, std::int64_t offset) { return all ? all + offset : nullptr; };
        const Answer own{from(wanted.value, static_cast<std::int64_t>(q)), from(wanted.slope, begin), from(wanted.curvature, begin)};
        const double weight = queries.weight[q];
        if (weight == 0) {  // as of queries that a tree does not see
            if (own.value) *own.value = 0;
            for (double* answer : {own.slope, own.curvature})
                if (answer) std::fill_n(answer, queries.indptr[q + 1] - begin, 0.0);
            return;
        }
        objective.answer(queries.scored(q, score + begin), scratch, own);
        if (own.value) *own.value *= weight;
        for (std::int64_t i = begin; i < queries.indptr[q + 1]; ++i) {
            if (wanted.slope) wanted.slope[i] *= weight;
            if (wanted.curvature) wanted.curvature[i] *= weight;
        }
    });
}

}  // namespace exactrank
