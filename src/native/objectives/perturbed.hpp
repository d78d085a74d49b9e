// A measure when single weights of a linear model change: what finite differences ask (Yue & Burges 2007, section 4).
//
//   difference_j = sum_q w_q (M(s + c_j x_j) - M(s - c_j x_j)),   x_j the values of feature j                                (1)
//
// A query's scores and features stay in the cache while all its candidates are ranked. A feature that is the same for all
// documents of a query moves their scores alike, and so does nothing there.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "measures/bound_measure.hpp"
#include "support/interrupt.hpp"
#include "support/sum_blocks.hpp"
#include "support/threads.hpp"

namespace exactrank {

struct Perturbation {
    const BoundMeasure& measure;     // M, and w
    std::span<const double> scores;  // s
    std::span<const float> x;        // one row per document
    std::span<const double> change;  // c, one per feature
    bool single_precision;           // scores are compared as floats
};

// One query's candidates, one after the other.
class PerturbedQuery {
public:
    explicit PerturbedQuery(const Perturbation& given)
        : given_(given), discount_(given.measure.mark_ties ? nullptr : given.measure.kernel->common_discount()) {}

    // Adds the query's part of (1) to sums.
    void add(std::size_t q, double* sums) {
        const std::int64_t begin = given_.measure.begin(q);
        const QueryScores scored = given_.measure.scored(q, given_.scores);
        count_ = scored.count, score_ = scored.score, tie_key_ = scored.tie_key;
        grade_ = given_.measure.grades.data() + begin;
        const Ranked query{grade_, grade_, nullptr, count_, count_};
        if (given_.measure.kernel->is_empty(query)) return;
        moved_.resize(count_), column_.resize(count_), scratch_.order.resize(count_), scratch_.ranked.resize(count_), scratch_.tied.resize(count_);
        if (discount_) {
            worth_.resize(count_);
            given_.measure.kernel->worths(query, scratch_, worth_.data());
        }
        const std::size_t features = given_.change.size();
        const float* const rows = given_.x.data() + static_cast<std::size_t>(begin) * features;
        for (std::size_t j = 0; j < features; ++j) {
            breath_.after(32 * static_cast<std::size_t>(count_));
            if (take_up(rows + j, given_.change[j])) sums[j] += given_.measure.weight[q] * (value(+1.0) - value(-1.0));
        }
    }

private:
    // Reads a column, which begins at x, times its change; false: all alike.
    bool take_up(const float* x, double change) {
        bool differs = false;
        const std::size_t features = given_.change.size();
        for (std::int32_t i = 0; i < count_; ++i) {
            const float own = x[static_cast<std::size_t>(i) * features];
            differs |= own != x[0];
            column_[i] = change * static_cast<double>(own);
        }
        return differs;
    }
    // M(s + sign c_j x_j); NaN where that is no ranking.
    double value(double sign) {
        for (std::int32_t i = 0; i < count_; ++i) moved_[i] = score_[i] + sign * column_[i];
        if (given_.single_precision)
            for (double& score : moved_) score = static_cast<double>(static_cast<float>(score));
        std::uint8_t* const tied = given_.measure.mark_ties ? scratch_.tied.data() : nullptr;
        const std::int32_t* order = scratch_.order.data();
        if (rank_query(scratch_.keys, {moved_.data(), tie_key_, count_}, scratch_.order.data(), tied) < count_) return std::numeric_limits<double>::quiet_NaN();
        if (discount_) {
            double sum = 0;
            for (std::int32_t r = 0; r < std::min(count_, given_.measure.kernel->cutoff()); ++r) sum += worth_[order[r]] * (*discount_)[r];
            return sum;
        }
        for (std::int32_t r = 0; r < count_; ++r) scratch_.ranked[r] = grade_[order[r]];
        return given_.measure.kernel->value({grade_, scratch_.ranked.data(), tied, count_, count_}, scratch_);
    }

    const Perturbation& given_;
    const std::vector<double>* discount_;  // where a value is a sum of worths times these
    std::int32_t count_ = 0;
    const double *score_ = nullptr, *tie_key_ = nullptr, *grade_ = nullptr;
    std::vector<double> moved_, column_, worth_;
    Scratch scratch_;
    Breath breath_;
};

// (1) for every feature, of each block of queries by itself: whoever asks adds the blocks up in order, also those of several partitions.
inline std::vector<double> differences(const Perturbation& given, int threads) {
    const std::span<const std::int64_t> indptr = given.measure.indptr;
    const auto documents = [&](std::size_t q) { return static_cast<std::size_t>(indptr[q + 1] - indptr[q]); };
    const std::vector<std::size_t> starts = sum_blocks(indptr.size() - 1, documents);
    const std::size_t features = given.change.size();
    std::vector<double> parts((starts.size() - 1) * features);
    parallel_for(starts.size() - 1, threads, [&](std::size_t b) {
        PerturbedQuery candidates(given);
        for (std::size_t q = starts[b]; q < starts[b + 1]; ++q) candidates.add(q, parts.data() + b * features);
    });
    return parts;
}

}  // namespace exactrank
