// Squared error against grades y less a center c, with left_i = y_i - c - s_i, or that less its mean over the query:
//
//   value = -1/2 sum_i left_i^2,    slope_i = left_i,    curvature 1 (of the mean's part no account is taken)               (1)
//   mean = sum_i left_i / parts_i                                                                                           (2)
//
// where parts_i is the weight of the whole query over that of document i: the number of documents where all weigh the same.
#pragma once

#include "objectives/objective.hpp"

namespace exactrank {

class SquaredError final : public Objective {
public:
    SquaredError(const double* grades, double center, const double* parts) : grades_(grades), center_(center), parts_(parts) {}

    void answer(const Scored& scored, Scratch&, const Answer& wanted) const override {
        auto left_of = [&](std::int32_t i) { return grades_[scored.begin + i] - center_ - scored.score[i]; };
        double mean = 0;
        for (std::int32_t i = 0; parts_ && i < scored.count; ++i) mean += left_of(i) / parts_[scored.begin + i];
        double sum = 0;
        for (std::int32_t i = 0; i < scored.count; ++i) {
            const double left = left_of(i) - mean;
            sum += left * left;
            if (wanted.slope) wanted.slope[i] = left;
            if (wanted.curvature) wanted.curvature[i] = 1.0;
        }
        if (wanted.value) *wanted.value = -sum / 2;
    }

private:
    const double* grades_;  // one per document
    double center_;
    const double* parts_;  // one per document, or none for no mean
};

}  // namespace exactrank
