// The slope of a measure by finite differences of single scores (Burges, Ragno & Le 2006, section 6.2; Yue & Burges 2007, section 5.4):
//
//   slope_i = (M(s + c e_i) - M(s - c e_i)) / (2 c),  less the mean over the query                                        (1)
//
// A shift of all scores changes no measure, so a true slope sums to nothing; taking off the mean makes (1) do so.
#pragma once

#include <span>

#include "measures/ranking.hpp"
#include "objectives/objective.hpp"

namespace exactrank {

class FiniteDifference final : public Objective {
public:
    FiniteDifference(const Kernel& kernel, std::span<const double> grades, std::span<const double> tie_key, double step)
        : kernel_(kernel), grades_(grades), tie_key_(tie_key), step_(step) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        const double* grade = grades_.data() + scored.begin;
        scratch.order.resize(n);
        if (rank_query(scratch.keys, {scored.score, tie_key_.data() + scored.begin, n}, scratch.order.data(), nullptr) < n) return answer_nan(n, wanted);
        std::vector<double> at(n), score(n);
        for (std::int32_t r = 0; r < n; ++r) at[r] = grade[scratch.order[r]], score[r] = scored.score[scratch.order[r]];
        auto value = [&](const double* ranked) { return kernel_.value({grade, ranked, nullptr, n, n}, scratch); };
        if (wanted.value) *wanted.value = std::isnan(value(at.data())) ? 0.0 : value(at.data());
        if (!wanted.slope) return;
        if (wanted.curvature) std::fill(wanted.curvature, wanted.curvature + n, 0.0);
        std::fill(wanted.slope, wanted.slope + n, 0.0);
        if (kernel_.is_empty({grade, at.data(), nullptr, n, n})) return;
        std::vector<double> moved(at);
        double mean = 0;
        Breath breath;
        for (std::int32_t r = 0; r < n; ++r) {
            breath.after(4 * static_cast<std::size_t>(n));
            // Where the document comes to stand: above all that it reaches, below all that reach it.
            const auto up = std::lower_bound(score.begin(), score.begin() + r, score[r] + step_, std::greater<>()) - score.begin();
            const auto down = std::upper_bound(score.begin() + r, score.end(), score[r] - step_, std::greater<>()) - score.begin();
            std::rotate(moved.begin() + up, moved.begin() + r, moved.begin() + r + 1);
            const double higher = value(moved.data());
            std::copy(at.begin() + up, at.begin() + r + 1, moved.begin() + up);
            std::rotate(moved.begin() + r, moved.begin() + r + 1, moved.begin() + down);
            const double lower = value(moved.data());
            std::copy(at.begin() + r, at.begin() + down, moved.begin() + r);
            const double slope = (higher - lower) / (2 * step_);
            wanted.slope[scratch.order[r]] = slope;
            mean += slope / n;
        }
        for (std::int32_t i = 0; i < n; ++i) wanted.slope[i] -= mean;
    }

private:
    const Kernel& kernel_;
    std::span<const double> grades_, tie_key_;
    double step_;
};

}  // namespace exactrank
