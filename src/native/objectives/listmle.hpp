// The log likelihood of the top of each query's ideal ranking under the model of Plackett and Luce (Xia et al. 2008):
//
//   value = sum_{j < top} s_j - log S_j,    S_j = sum_{l >= j} e^{s_l},    documents in ideal order                       (1)
//   slope_i = [i < top] - e^{s_i} sum_{j <= i, j < top} 1 / S_j                                                           (2)
//   curvature_i = e^{s_i} sum 1 / S_j  -  e^{2 s_i} sum 1 / S_j^2,    over the same j                                     (3)
//
// Everything is kept relative to the largest score from j on, m_j: S_j = e^{m_j} total_j with 1 <= total_j <= n, and the sums of
// (2) are e^{-m_i} reach_i. From one position to the next these change by the factor e^{-|s_j - m_{j+1}|} alone, so there is one
// exponential a document, and none that overflows.
#pragma once

#include "objectives/objective.hpp"
#include "support/elementary.hpp"

namespace exactrank {

class ListMLE final : public Objective {
public:
    ListMLE(std::vector<std::int32_t> ideal, std::vector<std::int32_t> top) : ideal_(std::move(ideal)), top_(std::move(top)) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count, *ideal = ideal_.data() + scored.begin;
        if (!range_of(scored.score, n).finite) return answer_nan(n, wanted);
        const std::size_t room = n + 8;
        scratch.values.resize(3 * room);
        double *rise = scratch.values.data(), *power = rise + room, *total = power + room;
        double most = -HUGE_VAL;
        for (std::int32_t j = n; j-- > 0;) {
            const double s = scored.score[ideal[j]];
            rise[j] = s - most;
            power[j] = s > most ? most - s : s - most;
            most = std::max(most, s);
        }
        exponentials(power, n, 0.0, power);
        const std::int32_t top = top_[scored.query];
        const double value = add_up(n, top, rise, power, total);
        if (wanted.value) *wanted.value = value;
        if (wanted.slope) slopes({ideal, n, top, rise, power, total}, wanted);
    }

private:
    // By position in the ideal ranking.
    struct Positions {
        const std::int32_t* ideal;
        std::int32_t n, top;
        const double *rise, *power, *total;  // s_j - m_{j+1}; e to minus its size; total_j
    };
    // Fills the totals, and gives (1): logarithms are taken of products.
    static double add_up(std::int32_t n, std::int32_t top, const double* rise, const double* power, double* total) {
        double sum = 0, value = 0, product = 1;
        for (std::int32_t j = n; j-- > 0;) {
            total[j] = sum = rise[j] > 0 ? sum * power[j] + 1 : sum + power[j];
            if (j >= top) continue;
            value += std::min(rise[j], 0.0);
            product *= sum;
            if (product > 1e280) value -= portable::log(product), product = 1;
        }
        return value - portable::log(product);
    }
    // (2) and (3)
    static void slopes(const Positions& at, const Answer& wanted) {
        double reach = 0, squares = 0;
        for (std::int32_t j = 0; j < at.n; ++j) {
            if (j < at.top) reach += 1 / at.total[j], squares += 1 / (at.total[j] * at.total[j]);
            const double own = at.rise[j] > 0 ? 1.0 : at.power[j], chance = own * reach;
            wanted.slope[at.ideal[j]] = static_cast<double>(j < at.top) - chance;
            if (wanted.curvature) wanted.curvature[at.ideal[j]] = chance - own * own * squares;
            if (at.rise[j] > 0) reach *= at.power[j], squares *= at.power[j] * at.power[j];
        }
    }
    std::vector<std::int32_t> ideal_;  // each query's documents, best first
    std::vector<std::int32_t> top_;    // how many of them count, by query
};

}  // namespace exactrank
