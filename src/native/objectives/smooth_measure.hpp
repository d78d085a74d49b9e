// A positional measure in which each rank is held by all documents in part (Chapelle & Wu 2010):
//
//   value = sum_{j <= k} d_j E_j,    E_j = sum_i g_i h_ij,    h_ij = w_ij / sum_l w_lj                                    (1)
//   w_ij = e^{-(s_i - c_j)^2 / sigma},    c_j the score of the document at rank j                                         (2)
//
// with g what a document is worth and d the discounts. The slope, with the order held fixed, is a pull on each document
// and the reverse of all pulls on the document at rank j:
//
//   pull_ij = -2 d_j h_ij (g_i - E_j) (s_i - c_j) / sigma                                                                 (3)
//
// The largest weight of a rank is 1, so no exponential needs a shift. Documents of equal score share the pulls on their ranks.
#pragma once

#include "measures/ranking.hpp"
#include "objectives/objective.hpp"
#include "support/elementary.hpp"

namespace exactrank {

// One rank, and the documents as listed. Beyond the last document there is room for a whole vector: scores there are infinite, so
// that their weights are nothing to speak of, and worths 0.
struct SmoothRank {
    const double *score, *worth;
    std::int32_t n;
    double center, per_unit;  // c_j; 1 / sqrt(sigma)
    double discount;
};

// (s_i - c_j) / sqrt(sigma), at most so far from 0 that its weight is still a number.
XR_INLINE Doubles gap_from(const SmoothRank& rank, std::int32_t i) {
    constexpr double farthest = 26.6;  // its square is just below 708
    const Doubles gap = (load_eight(rank.score + i) - rank.center) * rank.per_unit;
    return gap > farthest ? Doubles{} + farthest : gap < -farthest ? Doubles{} - farthest : gap;
}

struct SmoothSums {
    double weight, worth;
};

// Fills the weights of (2), and gives their sum and the sum of weight * worth.
static XR_CLONES SmoothSums smooth_weights(const SmoothRank& rank, double* weights) {
    Doubles total{}, useful{};
    for (std::int32_t i = 0; i < rank.n; i += 8) {
        const Doubles gap = gap_from(rank, i), weight = portable::bounded_exp(-(gap * gap));
        total += weight;
        useful += weight * load_eight(rank.worth + i);
        std::memcpy(weights + i, &weight, sizeof weight);
    }
    SmoothSums sums{};
    for (int lane = 0; lane < 8; ++lane) sums.weight += total[lane], sums.worth += useful[lane];
    return sums;
}

// Adds the pulls of (3) to the slope, and gives their sum.
static XR_CLONES double add_pulls(const SmoothRank& rank, const double* weights, const SmoothSums& sums, double* slope) {
    const double mean = sums.worth / sums.weight, scale = -2 * rank.discount * rank.per_unit / sums.weight;
    Doubles all{};
    for (std::int32_t i = 0; i < rank.n; i += 8) {
        const Doubles pull = scale * load_eight(weights + i) * (load_eight(rank.worth + i) - mean) * gap_from(rank, i);
        const Doubles sum = load_eight(slope + i) + pull;
        std::memcpy(slope + i, &sum, sizeof sum);
        all += pull;
    }
    double sum = 0;
    for (int lane = 0; lane < 8; ++lane) sum += all[lane];
    return sum;
}

class SmoothMeasure final : public Objective {
public:
    SmoothMeasure(const std::vector<double>& discount, std::int32_t cutoff, const double* worths, double sigma)
        : discount_(discount), worths_(worths), per_unit_(1 / std::sqrt(sigma)) {
        discount_.resize(std::min<std::size_t>(cutoff, discount.size()));
    }

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        const double* worth = worths_ + scored.begin;
        scratch.order.resize(n), scratch.tied.resize(n);
        const std::int64_t ranked = rank_query(scratch.keys, {scored.score, nullptr, n}, scratch.order.data(), scratch.tied.data());
        if (ranked < n) return answer_nan(n, wanted);
        Room room(scratch.values, scored, worth);
        const bool counts = n > 1 && std::any_of(worth, worth + n, [](double g) { return g != 0; });
        const std::int32_t top = counts ? std::min<std::int32_t>(n, discount_.size()) : 0;
        double value = 0;
        Breath breath;
        for (std::int32_t j = 0; j < top; ++j) {
            breath.after(static_cast<std::size_t>(n));
            value += add_rank(scored, scratch.order[j], j, room, wanted);
        }
        if (wanted.value) *wanted.value = value;
        if (wanted.slope) share_pulls(scratch, n, room, wanted.slope);
        if (wanted.curvature) std::fill_n(wanted.curvature, n, 0.0);
    }

private:
    // By document, padded for whole vectors; `back` by position.
    struct Room {
        Room(std::vector<double>& cells, const Scored& scored, const double* listed) {
            const std::size_t n = scored.count, size = n + 8;
            cells.assign(5 * size, 0.0);
            score = cells.data(), worth = score + size, weight = worth + size, slope = weight + size, back = slope + size;
            std::copy_n(scored.score, n, score), std::copy_n(listed, n, worth);
            std::fill_n(score + n, 8, HUGE_VAL);
        }
        double *score, *worth, *weight, *slope, *back;
    };
    double add_rank(const Scored& scored, std::int32_t holder, std::int32_t j, Room& room, const Answer& wanted) const {
        if (discount_[j] == 0) return 0.0;
        const SmoothRank rank{room.score, room.worth, scored.count, scored.score[holder], per_unit_, discount_[j]};
        const SmoothSums sums = smooth_weights(rank, room.weight);
        if (wanted.slope) room.back[j] = -add_pulls(rank, room.weight, sums, room.slope);
        return discount_[j] * sums.worth / sums.weight;
    }
    static void share_pulls(const Scratch& scratch, std::int32_t n, const Room& room, double* slope) {
        std::copy_n(room.slope, n, slope);
        for (std::int32_t first = 0, last; first < n; first = last) {
            double all = room.back[first];
            for (last = first + 1; last < n && scratch.tied[last]; ++last) all += room.back[last];
            for (std::int32_t r = first; r < last; ++r) slope[scratch.order[r]] += all / (last - first);
        }
    }
    std::vector<double> discount_;  // by position, to the cutoff
    const double* worths_;          // one a document
    double per_unit_;               // 1 / sqrt(sigma)
};

}  // namespace exactrank
