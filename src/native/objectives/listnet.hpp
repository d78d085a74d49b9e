// Cross entropy of the softmax of the scores against a distribution over a query's documents (Cao et al. 2007):
//
//   value = sum_i t_i log p_i,    p_i = e^{s_i} / sum_l e^{s_l}                                                            (1)
//   slope_i = t_i - T p_i,        curvature_i = T p_i (1 - p_i),    T = sum_i t_i                                         (2)
//
// T is 1, or 0 for a query that is left out.
#pragma once

#include "objectives/objective.hpp"
#include "support/elementary.hpp"

namespace exactrank {

class ListNet final : public Objective {
public:
    explicit ListNet(const double* targets) : targets_(targets) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        const Range range = range_of(scored.score, n);
        if (!range.finite) return answer_nan(n, wanted);
        const double* target = targets_ + scored.begin;
        scratch.values.resize(n + 8);
        double* power = scratch.values.data();
        exponentials(scored.score, n, range.most, power);
        double total = 0, mass = 0, aligned = 0;
        for (std::int32_t i = 0; i < n; ++i) {
            total += power[i];
            mass += target[i];
            aligned += target[i] * (scored.score[i] - range.most);
        }
        if (wanted.value) *wanted.value = aligned - mass * portable::log(total);
        const double per_power = 1 / total;
        if (wanted.slope)
            for (std::int32_t i = 0; i < n; ++i) wanted.slope[i] = target[i] - mass * (power[i] * per_power);
        if (wanted.curvature)
            for (std::int32_t i = 0; i < n; ++i) wanted.curvature[i] = mass * (power[i] * per_power) * (1 - power[i] * per_power);
    }

private:
    const double* targets_;  // one a document, not below 0
};

}  // namespace exactrank
