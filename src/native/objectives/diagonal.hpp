// An objective with the diagonal term of Burges, Ragno & Le (2006, section 4), for documents with the scores s:
//
//   value - strength / 2 sum_i s_i^2,    slope_i - strength s_i,    curvature_i + strength                                 (1)
#pragma once

#include "objectives/objective.hpp"

namespace exactrank {

class Diagonal final : public Objective {
public:
    Diagonal(const Objective& objective, double strength) : objective_(objective), strength_(strength) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        objective_.answer(scored, scratch, wanted);
        double squares = 0;
        for (std::int32_t i = 0; i < scored.count; ++i) {
            squares += scored.score[i] * scored.score[i];
            if (wanted.slope) wanted.slope[i] -= strength_ * scored.score[i];
            if (wanted.curvature) wanted.curvature[i] += strength_;
        }
        if (wanted.value) *wanted.value -= strength_ / 2 * squares;
    }
    bool is_parallel() const override { return objective_.is_parallel(); }

private:
    const Objective& objective_;
    double strength_;
};

}  // namespace exactrank
