// The most violated ranking for average precision (Yue, Finley, Radlinski & Joachims 2007).
//
// The relevant documents stay in order of score, and so do the others. With o_j relevant documents above the j-th other,
//
//   delta + c . s = const + sum_j sum_{i > o_j} g_ij,    g_ij = i / ((i + j - 1) (i + j)) / R  -  2 (s_i - s_j) / (R N)        (1)
//
// so each o_j is chosen by itself. As g_ij falls in j, the best o_j do not fall: that of the middle j bounds those on either side.
#pragma once

#include "structured/pair_separation.hpp"

namespace exactrank {

// Scores of either kind, best first, and where the others go among the relevant ones.
struct MergePlaces {
    const double *relevant, *other;
    std::int64_t* above;     // o_j
    double gain, per_score;  // weight / R; 2 / (R N)
};

// Fills above[first] to above[last], which lie between `low` and `high`.
inline void find_places(const MergePlaces& places, std::int64_t first, std::int64_t last, std::int64_t low, std::int64_t high) {
    while (first < last) {
        const std::int64_t middle = first + (last - first) / 2, j = middle + 1;
        double sum = 0, most = 0;
        std::int64_t best = high;
        for (std::int64_t i = high; i > low; --i) {
            const double share = static_cast<double>(i) / static_cast<double>((i + j - 1) * (i + j));
            sum += places.gain * share - places.per_score * (places.relevant[i - 1] - places.other[middle]);  // (1)
            if (sum > most) most = sum, best = i - 1;
        }
        places.above[middle] = best;
        find_places(places, first, middle, low, best);
        first = middle + 1, low = best;
    }
}

class PrecisionSeparation final : public PairSeparation {
public:
    using PairSeparation::PairSeparation;

    bool tells_apart(const RankedScores& ranked) const override { return count_[ranked.query] > 0 && count_[ranked.query] < ranked.count; }

    void most_violated(const RankedScores& ranked, double weight, Scratch& scratch, std::int32_t* ranking) const override {
        const std::int32_t n = ranked.count, found = count_[ranked.query], others = n - found;
        scratch.values.resize(n), scratch.counts.resize(n + others);
        double* score[2] = {scratch.values.data() + found, scratch.values.data()};
        std::int64_t *document[2] = {scratch.counts.data() + found, scratch.counts.data()}, *above = document[1] + n;
        std::int32_t seen[2] = {0, 0};  // others, relevant
        for (std::int32_t r = 0; r < n; ++r) {
            const std::uint8_t kind = relevant_[ranked.begin + ranked.order[r]];
            document[kind][seen[kind]] = ranked.order[r], score[kind][seen[kind]++] = ranked.score[r];
        }
        const double per_score = 2.0 / (static_cast<double>(found) * others);
        find_places({score[1], score[0], above, weight / found, per_score}, 0, others, 0, found);
        for (std::int32_t i = 0, j = 0, r = 0; r < n; ++r)
            ranking[r] = static_cast<std::int32_t>(j < others && above[j] <= i ? document[0][j++] : document[1][i++]);
    }

private:
    // 1 - AP
    double loss(const RankedScores& ranked, const std::int32_t* ranking) const override {
        const std::uint8_t* relevant = relevant_.data() + ranked.begin;
        double sum = 0;
        std::int32_t seen = 0;
        for (std::int32_t r = 0; r < ranked.count; ++r)
            if (relevant[ranking[r]]) sum += static_cast<double>(++seen) / (r + 1);
        return 1 - sum / count_[ranked.query];
    }
};

}  // namespace exactrank
