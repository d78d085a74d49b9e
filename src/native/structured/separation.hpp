// The most violated ranking of a query, and the structured loss made of it (Tsochantaridis et al. 2005; Chapelle, Le & Smola 2007).
//
// A ranking y has a loss delta(y) >= 0, what it lacks to the best value of a measure, and coefficients c(y), one a document, such
// that c(y) . s is largest for the ranking by score. With coefficients t of a target ranking,
//
//   loss = max_y delta(y) + (c(y) - t) . s               margins rescaled                                                  (1)
//   loss = max_y delta(y) (1 + (c(y) - t) . s)           slacks rescaled                                                   (2)
//
// Targets are given, or else c of the ranking by score, which makes (1) as small as it can be but no longer convex: the ramp loss.
//
// (2) is a quadratic assignment. Looked for is the largest product among rankings that make some sum tau delta + c . s largest: as
// tau grows so does delta, while c . s falls. The formula
//
//   tau = (1 + (c(y) - t) . s) / delta(y)                                                                                  (3)
//
// gives the next tau, within a bracket that shrinks. If the same y comes back it is the largest of all, for in units of its factors
// no other has a sum of factors above 2, hence none a product above 1. Otherwise the best that was seen counts, which is never more
// than (2); the ranking by score is among them, so that the loss is no less than its delta.
#pragma once

#include "measures/ranking.hpp"
#include "objectives/objective.hpp"

namespace exactrank {

// One query, ranked by score.
struct RankedScores {
    std::size_t query;
    std::int64_t begin;  // of its documents
    std::int32_t count;
    const std::int32_t* order;  // documents by position
    const double* score;        // by position, less the largest
};

class Separation {
public:
    virtual ~Separation() = default;
    Domain domain;
    // Whether some ranking of the query is better than another; if not, nothing else is asked.
    virtual bool tells_apart(const RankedScores& ranked) const = 0;
    // No coefficient is larger.
    virtual double largest() const = 0;
    // Fills `ranking`, documents by position, with a y for which weight delta(y) + c(y) . s is largest.
    virtual void most_violated(const RankedScores& ranked, double weight, Scratch& scratch, std::int32_t* ranking) const = 0;
    // Fills c(y) by document, and gives delta(y).
    virtual double coefficients(const RankedScores& ranked, const std::int32_t* ranking, double* c) const = 0;
};

// The ranking that decides a loss.
struct Violation {
    double delta, rise;  // delta(y); (c(y) - t) . s
};

class StructuredLoss final : public Objective {
public:
    static constexpr double widest = 1e100;  // sums of such coefficients, worths and scores, and of products of two, do not overflow

    // Targets are one a document; null: c of the ranking by score.
    StructuredLoss(const Separation& separation, const double* targets, bool rescales_slack)
        : separation_(separation), targets_(targets), rescales_slack_(rescales_slack) {}

    // Fills c(y) - t; scores that are not finite, or too far apart to be added up, give NaN.
    Violation violation(const Scored& scored, Scratch& scratch, double* difference) const {
        const std::int32_t n = scored.count;
        scratch.ranks.resize(n), scratch.ranked.resize(blocks * n);
        double *score = scratch.ranked.data(), *target = score + n;
        if (!ranks(scored, scratch, score)) {
            constexpr double nan = std::numeric_limits<double>::quiet_NaN();
            std::fill_n(difference, n, nan);
            return {nan, nan};
        }
        std::fill_n(difference, n, 0.0);
        const RankedScores ranked{scored.query, scored.begin, n, scratch.order.data(), score};
        if (!separation_.tells_apart(ranked)) return {0.0, 0.0};
        if (!targets_) separation_.coefficients(ranked, ranked.order, target);
        const Search search{ranked, targets_ ? targets_ + scored.begin : target, scratch};
        return rescales_slack_ ? largest_product(search, difference) : most_violated(search, 1.0, difference);
    }
    // (1) or (2)
    double loss(const Violation& found) const { return rescales_slack_ ? found.delta * (1 + found.rise) : found.delta + found.rise; }

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        scratch.ranked.resize(blocks * n);
        double* difference = wanted.slope ? wanted.slope : scratch.ranked.data() + (blocks - 1) * n;
        const Violation found = violation(scored, scratch, difference);
        if (wanted.value) *wanted.value = 0.0 - loss(found);  // not -0
        const double scale = rescales_slack_ ? found.delta : 1.0;
        if (wanted.slope)
            for (std::int32_t i = 0; i < n; ++i) wanted.slope[i] = 0.0 - scale * difference[i];
        if (wanted.curvature) std::fill_n(wanted.curvature, n, std::isnan(found.delta) ? found.delta : 0.0);
    }

private:
    struct Search {
        const RankedScores& ranked;
        const double* target;  // t
        Scratch& scratch;
    };
    static constexpr std::int32_t blocks = 4;  // numbers a document: its score, a target, and the differences of two rankings
    static constexpr int rounds = 8;

    // Ranks by score; false for scores that cannot be.
    bool ranks(const Scored& scored, Scratch& scratch, double* score) const {
        const std::int32_t n = scored.count;
        scratch.order.resize(n);
        if (rank_query(scratch.keys, {scored.score, nullptr, n}, scratch.order.data(), nullptr) != n) return false;
        const double top = scored.score[scratch.order[0]];
        for (std::int32_t r = 0; r < n; ++r) score[r] = scored.score[scratch.order[r]] - top;
        return -score[n - 1] * separation_.largest() < widest;
    }
    // What `ranking` amounts to.
    Violation violation_of(const Search& search, const std::int32_t* ranking, double* difference) const {
        const RankedScores& ranked = search.ranked;
        Violation found{separation_.coefficients(ranked, ranking, difference), 0.0};
        for (std::int32_t r = 0; r < ranked.count; ++r) {
            const std::int32_t i = ranked.order[r];
            difference[i] -= search.target[i];
            found.rise += difference[i] * ranked.score[r];
        }
        return found;
    }
    Violation most_violated(const Search& search, double weight, double* difference) const {
        std::int32_t* ranking = search.scratch.ranks.data();
        separation_.most_violated(search.ranked, weight, search.scratch, ranking);
        return violation_of(search, ranking, difference);
    }
    Violation largest_product(const Search& search, double* difference) const {
        const std::int32_t n = search.ranked.count;
        double* other = search.scratch.ranked.data() + 2 * n;
        Violation best = violation_of(search, search.ranked.order, difference);
        auto next_to = [](const Violation& found) { return found.delta > 0 ? (1 + found.rise) / found.delta : HUGE_VAL; };  // (3)
        double low = 0, high = HUGE_VAL, tau = best.delta > 0 ? next_to(best) : 1.0;
        for (int round = 0; round < rounds; ++round) {
            if (!(tau < widest)) break;
            const Violation found = most_violated(search, tau, other);
            if (loss(found) > loss(best)) best = found, std::copy_n(other, n, difference);
            const double next = next_to(found);
            if (next == tau) break;
            (next > tau ? low : high) = tau;
            const double inside = low == 0 ? high / 4 : high < HUGE_VAL ? (low + high) / 2 : 4 * low;
            tau = low < next && next < high ? next : inside;
        }
        return best;
    }
    const Separation& separation_;
    const double* targets_;
    bool rescales_slack_;
};

}  // namespace exactrank
