// The cosine between a query's scores, less their mean, and a target whose numbers sum to nothing (Qin et al. 2008):
//
//   value = (t . z - 1) / 2,    z = s' / |s'|,    s' = s - mean                                                           (1)
//   slope = (t - (t . z) z) / (2 |s'|)                                                                                    (2)
//
// Scores that are all equal have no direction: z is 0 there and |s'| counts as 1, so that the slope is t / 2. A query whose target
// is 0 is left out.
#pragma once

#include "objectives/objective.hpp"

namespace exactrank {

class RankCosine final : public Objective {
public:
    explicit RankCosine(const double* targets) : targets_(targets) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        const double* target = targets_ + scored.begin;
        const Range range = range_of(scored.score, n);
        if (!range.finite) return answer_nan(n, wanted);
        scratch.values.resize(n);
        double* z = scratch.values.data();
        const double length = direction(scored, range, z);
        double cosine = 0;
        bool counts = false;
        for (std::int32_t i = 0; i < n; ++i) cosine += target[i] * z[i], counts |= target[i] != 0;
        if (wanted.value) *wanted.value = counts ? (cosine - 1) / 2 : 0.0;
        const double scale = 0.5 / length;
        if (wanted.slope)
            for (std::int32_t i = 0; i < n; ++i) wanted.slope[i] = (target[i] - cosine * z[i]) * scale;
        if (wanted.curvature) std::fill_n(wanted.curvature, n, 0.0);
    }

private:
    // Fills z, and gives |s'|. Halves of the scores as shares of their spread have squares that neither overflow nor vanish.
    static double direction(const Scored& scored, const Range& range, double* z) {
        const std::int32_t n = scored.count;
        const double least = range.least / 2, spread = range.most / 2 - least;
        if (spread < 1e-300) {
            std::fill_n(z, n, 0.0);
            return 1.0;
        }
        double mean = 0, squares = 0;
        for (std::int32_t i = 0; i < n; ++i) mean += z[i] = (scored.score[i] / 2 - least) / spread;
        mean /= n;
        for (std::int32_t i = 0; i < n; ++i) z[i] -= mean, squares += z[i] * z[i];
        const double length = std::sqrt(squares), per_length = 1 / length;
        for (std::int32_t i = 0; i < n; ++i) z[i] *= per_length;
        return 2 * spread * length;
    }
    const double* targets_;  // one a document
};

}  // namespace exactrank
