// A measure on certain queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "measures/kernel.hpp"
#include "measures/ranking.hpp"

namespace exactrank {

struct BoundMeasure {
    const Kernel* kernel;
    std::span<const double> grades;        // as the kernel reads them, one per document
    std::span<const std::int64_t> indptr;  // where each query's documents begin, and at last where they end
    std::span<const double> tie_key;       // one per document; empty: ties in input order
    bool mark_ties;                        // ties count as the mean over their orders
    std::span<const double> weight;        // one per query

    std::size_t queries() const { return weight.size(); }
    std::size_t documents() const { return grades.size(); }
    std::int64_t begin(std::size_t q) const { return indptr[q]; }
    std::int32_t count(std::size_t q) const { return static_cast<std::int32_t>(indptr[q + 1] - indptr[q]); }
    // A query's documents with these scores, of all documents.
    QueryScores scored(std::size_t q, std::span<const double> scores) const {
        return {scores.data() + begin(q), tie_key.empty() ? nullptr : tie_key.data() + begin(q), count(q)};
    }
};

}  // namespace exactrank
