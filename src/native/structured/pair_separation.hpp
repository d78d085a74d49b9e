// Coefficients from pairs of a relevant document i and another j (Yue, Finley, Radlinski & Joachims 2007), R and N of them:
//
//   c(y) . s = 1 / (R N) sum_ij +-(s_i - s_j),    + where y has i above j                                                  (1)
//
// that is, (N - 2 others above it) / (R N) for a relevant document, and (R - 2 relevant above it) / (R N) for another.
#pragma once

#include "structured/separation.hpp"

namespace exactrank {

class PairSeparation : public Separation {
public:
    // `relevant` holds 0 or 1 per document.
    PairSeparation(std::vector<std::uint8_t> relevant, const std::int64_t* indptr, std::size_t queries) : relevant_(std::move(relevant)) {
        for (std::size_t q = 0; q < queries; ++q)
            count_.push_back(static_cast<std::int32_t>(std::count(relevant_.data() + indptr[q], relevant_.data() + indptr[q + 1], 1)));
    }
    double largest() const override { return 1.0; }
    double coefficients(const RankedScores& ranked, const std::int32_t* ranking, double* c) const override {
        const std::uint8_t* relevant = relevant_.data() + ranked.begin;
        const double found = count_[ranked.query], others = ranked.count - found, scale = 1 / std::max(1.0, found * others);
        double above[2] = {0, 0};  // others, relevant
        for (std::int32_t r = 0; r < ranked.count; ++r) {
            const std::int32_t i = ranking[r];
            c[i] = ((relevant[i] ? others : found) - 2 * above[!relevant[i]]) * scale;
            ++above[relevant[i]];
        }
        return loss(ranked, ranking);
    }

protected:
    virtual double loss(const RankedScores& ranked, const std::int32_t* ranking) const = 0;

    std::vector<std::uint8_t> relevant_;  // by document
    std::vector<std::int32_t> count_;     // of relevant documents, by query
};

}  // namespace exactrank
