// nDCG of soft ranks (Qin, Liu & Li 2010):
//
//   rank_i = 1 + sum_{j != i} q_ij,    q_ij = 1 / (1 + e^{alpha (s_i - s_j)})                                             (1)
//   value = sum_i g_i / log2(1 + rank_i),    g the gains over the ideal DCG                                               (2)
//   slope_m = alpha sum_i (b_i - b_m) q_im (1 - q_im),    b_i = d(g_i / log2(1 + rank_i)) / d rank_i                      (3)
//
// Documents of no gain have no term in (2), so only the ranks of the others are worked out; and with E = e^{alpha s} these need one
// exponential a document: q_ij = E_j / (E_i + E_j).
#pragma once

#include <numbers>

#include "models/linear.hpp"
#include "objectives/objective.hpp"
#include "support/elementary.hpp"

namespace exactrank {

struct SoftRank {
    double rank, steepness;  // (1), and the sum of q (1 - q)
};

// One document against all; `power` holds E, and zeros beyond n. Fills bend with q (1 - q).
static XR_CLONES SoftRank soft_rank(const double* power, std::int32_t n, double own, double* bend) {
    Doubles sum{}, steepness{};
    for (std::int32_t j = 0; j < n; j += 8) {
        const Doubles other = load_eight(power + j), inverse = 1.0 / (other + own), above = other * inverse, bent = above * (own * inverse);
        sum += above;
        steepness += bent;
        std::memcpy(bend + j, &bent, sizeof bent);
    }
    SoftRank found{0.5, 0.0};  // the document itself is in the sum, by 1/2
    for (int lane = 0; lane < 8; ++lane) found.rank += sum[lane], found.steepness += steepness[lane];
    return found;
}

class ApproxNDCG final : public Objective {
public:
    ApproxNDCG(const double* worths, double alpha) : worths_(worths), alpha_(alpha) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        const double* worth = worths_ + scored.begin;
        const Range range = range_of(scored.score, n);
        if (!range.finite) return answer_nan(n, wanted);
        if (wanted.slope) std::fill_n(wanted.slope, n, 0.0);
        if (wanted.curvature) std::fill_n(wanted.curvature, n, 0.0);
        const std::size_t room = n + 8;
        scratch.values.assign(3 * room, 0.0);
        double *scaled = scratch.values.data(), *power = scaled + room, *bend = power + room;
        const double middle = range.least / 2 + range.most / 2;
        for (std::int32_t i = 0; i < n; ++i) scaled[i] = alpha_ * (scored.score[i] - middle);
        // Where E would leave the range of doubles, each row has its own origin.
        const bool wide = !(alpha_ * (range.most - range.least) < 1400);
        if (!wide) powers(scaled, n, 0.0, power);
        double value = 0;
        Breath breath;
        for (std::int32_t i = 0; i < n && n > 1; ++i) {
            if (worth[i] == 0) continue;
            breath.after(static_cast<std::size_t>(n));
            if (wide) powers(scaled, n, scaled[i], power);
            const SoftRank found = soft_rank(power, n, power[i], bend);
            const double log = portable::log1p(found.rank), force = -worth[i] * std::numbers::ln2 / ((1 + found.rank) * log * log) * alpha_;
            value += worth[i] * std::numbers::ln2 / log;
            if (!wanted.slope) continue;
            add_scaled(wanted.slope, bend, force, n);
            wanted.slope[i] -= force * found.steepness;
        }
        if (wanted.value) *wanted.value = value;
    }

private:
    static void powers(const double* scaled, std::int32_t n, double origin, double* power) {
        exponentials(scaled, n, origin, power);
        std::fill_n(power + n, 8, 0.0);
    }
    const double* worths_;  // one a document
    double alpha_;
};

}  // namespace exactrank
