// The most violated ranking for measures of where the first relevant document stands: RR and Success.
//
// At best for c . s, with r - 1 others above it, the first relevant document f is the one of the highest score, the r - 1 are those
// others of the highest scores, and below f come the rest by score. From one r to the next, the j-th other, whose score is s_j, goes
// above f and above those relevant documents that had been above it:
//
//   change of c . s = -2 / (R N) [(s_f - s_j) + sum of (s_i - s_j) over relevant i != f of higher score]                       (1)
#pragma once

#include "structured/pair_separation.hpp"

namespace exactrank {

class FirstRelevantSeparation final : public PairSeparation {
public:
    // What the measure is worth with the first relevant document at each position; 0 beyond.
    FirstRelevantSeparation(std::vector<double> worth, std::vector<std::uint8_t> relevant, const std::int64_t* indptr, std::size_t queries)
        : PairSeparation(std::move(relevant), indptr, queries), worth_(std::move(worth)) {}

    bool tells_apart(const RankedScores& ranked) const override {
        const std::int32_t found = count_[ranked.query];
        return found > 0 && worth_at(ranked.count - found) != worth_[0];
    }

    void most_violated(const RankedScores& ranked, double weight, Scratch&, std::int32_t* ranking) const override {
        const std::int32_t first = position_of_first(ranked, ranked.order), ahead = others_ahead(ranked, weight, first);
        ranking[ahead] = ranked.order[first];
        for (std::int32_t r = 0, above = 0, below = ahead + 1; r < ranked.count; ++r) {
            if (r == first) continue;
            const std::int32_t i = ranked.order[r];
            ranking[above < ahead && !relevant_[ranked.begin + i] ? above++ : below++] = i;
        }
    }

private:
    double worth_at(std::int32_t position) const { return position < static_cast<std::int32_t>(worth_.size()) ? worth_[position] : 0.0; }
    std::int32_t position_of_first(const RankedScores& ranked, const std::int32_t* ranking) const {
        std::int32_t r = 0;
        while (!relevant_[ranked.begin + ranking[r]]) ++r;
        return r;
    }
    double loss(const RankedScores& ranked, const std::int32_t* ranking) const override { return worth_[0] - worth_at(position_of_first(ranked, ranking)); }
    // How many others the most violated ranking has above all relevant documents; `first` is the position of f by score.
    std::int32_t others_ahead(const RankedScores& ranked, double weight, std::int32_t first) const {
        const double found = count_[ranked.query], per_score = 2 / (found * (ranked.count - found));
        double higher = 1, sum = ranked.score[first];  // f, and the relevant documents of higher score, with theirs
        double change = 0, most = 0;
        std::int32_t others = 0, best = 0;
        for (std::int32_t r = 0; r < ranked.count; ++r) {
            if (r == first) continue;
            if (relevant_[ranked.begin + ranked.order[r]]) {
                ++higher, sum += ranked.score[r];
                continue;
            }
            change -= per_score * (sum - higher * ranked.score[r]);  // (1)
            const double value = weight * (worth_[0] - worth_at(++others)) + change;
            if (value > most) most = value, best = others;
        }
        return best;
    }
    std::vector<double> worth_;
};

}  // namespace exactrank
