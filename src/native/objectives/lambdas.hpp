// Forces between pairs of documents (Burges, Ragno & Le 2006): for each pair whose exchange matters,
//
//   force = |weight| link(s_better - s_worse),    up for the better document, down for the other                          (1)
//
// The weight is 1 (RankNet) or the change of a measure when the two exchange their ranks (LambdaRank).
//
// Normalised, the forces and curvatures of a query are multiplied by
//
//   log2(1 + S) / S,    S the sum of the forces' sizes, each pair's at both its documents (LightGBM's lambdarank_norm)     (2)
//
// Pairs that are given beside the grades push too, whatever their ranks. Their weight is the one given or, where a measure weighs the
// others, its share of the query's: what the pair is worth to the share of pairs in the right order.
#pragma once

#include <cmath>
#include <span>

#include "measures/preferences.hpp"
#include "measures/ranking.hpp"
#include "objectives/forces.hpp"
#include "objectives/objective.hpp"
#include "support/elementary.hpp"

namespace exactrank {

static XR_CLONES void signs_of_differences(const double* at, std::int32_t i, std::int32_t last, double* __restrict delta) {
    const double own = at[i];
    for (std::int32_t j = i + 1; j < last; ++j) delta[j] = static_cast<double>(at[j] > own) - static_cast<double>(at[j] < own);
}

// Unit weights: the sign of the difference of grades.
class UnitSwaps final : public Swaps {
public:
    void arrange(const Ranked& query, const std::int32_t*, Scratch&) override { at_ = query.at; }
    void row(std::int32_t i, std::int32_t last, double* delta) override { signs_of_differences(at_, i, last, delta); }

private:
    const double* at_ = nullptr;
};

struct LambdaRule {
    const Kernel* kernel;             // null: unit weights
    std::span<const double> grades;   // as the kernel reads them
    std::span<const double> tie_key;  // of equal scores, the one with the least ranks first
    Link link;
    double margin;
    std::int32_t neighbors;                          // documents further apart in the ranking than this do not meet
    std::int32_t truncation;                         // one document of a pair must be among this number of first ranks
    double near;                                     // weights are divided by this plus the distance of the two scores; 0: they are not
    bool normalize;                                  // (2)
    Domain domain;                                   // of objectives that follow it
    std::shared_ptr<const Preferences> preferences;  // null: none

    // Ranks a query's documents by `score`; false where some have no rank.
    bool rank(const Scored& scored, const double* score, Scratch& scratch) const {
        scratch.order.resize(scored.count);
        return rank_query(scratch.keys, {score, tie_key.data() + scored.begin, scored.count}, scratch.order.data(), nullptr) == scored.count;
    }
    // The grades as they were ranked last.
    Ranked ranked(const Scored& scored, Scratch& scratch) const {
        const std::int32_t n = scored.count;
        const double* grade = grades.data() + scored.begin;
        scratch.ranked.resize(n);
        for (std::int32_t r = 0; r < n; ++r) scratch.ranked[r] = grade[scratch.order[r]];
        return {grade, scratch.ranked.data(), nullptr, n, n};
    }
    // Answers with the measure's value and no forces; true where that is all.
    bool is_settled(const Ranked& query, Scratch& scratch, const Answer& wanted) const {
        if (wanted.slope) std::fill_n(wanted.slope, query.count, 0.0);
        if (wanted.curvature) std::fill_n(wanted.curvature, query.count, 0.0);
        if (!kernel) return false;
        const double value = wanted.value ? kernel->value(query, scratch) : 0.0;
        if (wanted.value) *wanted.value = std::isnan(value) ? 0.0 : value;
        return !wanted.slope || kernel->is_empty(query);
    }
    // Adds the forces of the pairs that are given, and to `size` their sizes; gives what they cost.
    double add_given(const Scored& scored, const Answer& wanted, double& size) const {
        if (!preferences) return 0;
        const double share = kernel ? 1 / preferences->total(scored.query) : 1.0;
        double cost = 0;
        Breath breath;
        for (const Preference& pair : preferences->of(scored.query)) {
            const double lead = scored.score[pair.better] - scored.score[pair.worse], weight = share * pair.weight / (near > 0 ? near + std::abs(lead) : 1.0);
            const OnePull pull = pull_of(lead);
            breath.after(8);
            cost += weight * pull.cost;
            size += weight * pull.force;
            if (wanted.slope) wanted.slope[pair.better] += weight * pull.force, wanted.slope[pair.worse] -= weight * pull.force;
            if (wanted.curvature) wanted.curvature[pair.better] += weight * pull.curvature, wanted.curvature[pair.worse] += weight * pull.curvature;
        }
        return cost;
    }
    // (2), of forces whose sizes, each pair's once, add up to `size`.
    void normalized(double size, std::int32_t n, const Answer& wanted) const {
        if (!normalize || !wanted.slope || !(size > 0)) return;
        const double factor = portable::log2(1 + 2 * size) / (2 * size);
        for (std::int32_t i = 0; i < n; ++i) wanted.slope[i] *= factor;
        for (std::int32_t i = 0; wanted.curvature && i < n; ++i) wanted.curvature[i] *= factor;
    }
    std::unique_ptr<Swaps> swaps() const { return kernel ? kernel->swaps() : std::make_unique<UnitSwaps>(); }

private:
    struct OnePull {
        double cost, force, curvature;
    };
    // The link of a pair whose better document leads by so much.
    OnePull pull_of(double lead) const {
        if (link == Link::logistic) {
            const double power = portable::exp(-std::abs(lead)), share = (lead < 0 ? 1.0 : power) / (1 + power);
            return {std::max(0.0, -lead) + portable::log1p(power), share, share * (1 - share)};
        }
        const double short_by = std::max(0.0, margin - lead), reached = lead < margin ? 1.0 : 0.0;
        return link == Link::step ? OnePull{short_by, reached, 0.0} : OnePull{short_by * short_by / 2, short_by, reached};
    }
};

// One query's documents in some order, whatever their scores, and the forces among them; by position, padded for whole vectors.
class Lineup {
public:
    Lineup(const LambdaRule& rule, const double* score, std::int32_t n, const Answer& wanted)
        : rule_(rule),
          wanted_(wanted),
          score_(score),
          n_(n),
          bands_(rule.neighbors <= most_bands ? std::min(rule.neighbors, n - 1) : 0),
          range_(range_of(score, n)),
          own_origins_(rule.link == Link::logistic && !(range_.most - range_.least < 1400)),
          room_((n + 8) * (8 + bands_)) {
        double* next = room_.data();
        for (double** array : {&power_, &scores_, &powers_, &delta_, &slope_, &curvature_, &pull_, &bend_, &band_deltas_}) *array = next, next += n + 8;
        std::fill_n(powers_ + n, 8, 1.0);  // a share of nothing would be no number
        forces_ = {slope_, wanted.curvature ? curvature_ : nullptr, rule.normalize ? &size : nullptr};
        if (rule.link == Link::logistic && !own_origins_) exponentials(score, n, range_.least + (range_.most - range_.least) / 2, power_);
    }

    // Adds to `wanted` what the documents in this order do to each other; gives the cost of the links, where that is wanted.
    double add(const std::int32_t* order, Swaps& swaps) {
        for (std::int32_t r = 0; r < n_; ++r) scores_[r] = score_[order[r]], powers_[r] = power_[order[r]];
        std::fill_n(slope_, n_, 0.0);
        std::fill_n(curvature_, n_, 0.0);
        const std::int32_t rows = std::min({n_ - 1, rule_.truncation, rule_.kernel ? rule_.kernel->cutoff() : n_});
        const bool by_bands = bands_ > 0 && !own_origins_;
        const Separable* const separable = by_bands || own_origins_ || !rule_.kernel || !wanted_.slope ? nullptr : swaps.separable();
        const double cost = separable ? add_separable(*separable, rows) : add_rows(swaps, rows, by_bands);
        if (by_bands && wanted_.slope) add_bands(rows);
        for (std::int32_t r = 0; wanted_.slope && r < n_; ++r) wanted_.slope[order[r]] += slope_[r];
        for (std::int32_t r = 0; wanted_.curvature && r < n_; ++r) wanted_.curvature[order[r]] += curvature_[r];
        return cost;
    }

    double size = 0;  // of all forces so far, each pair's once; where they are normalized

private:
    // Where only close neighbors meet, all pairs of a distance are taken together: rows would be too short for vectors.
    static constexpr std::int32_t most_bands = 8;
    static constexpr std::int32_t pairs_at_once = 1 << 16;

    // Many rows a call, and no array of changes; there is no cost, since changes are a measure's.
    double add_separable(const Separable& swaps, std::int32_t rows) {
        const std::int32_t step = 1 + pairs_at_once / n_;
        for (std::int32_t first = 0; first < rows; first += step) {
            const ForceRows some{first, std::min(rows, first + step), n_, rule_.neighbors, scores_, powers_, swaps, rule_.margin, rule_.near};
            breath_.after(static_cast<std::size_t>(some.end - first) * n_);
            add_rows_forces(rule_.link, some, forces_);
        }
        return 0;
    }
    double add_rows(Swaps& swaps, std::int32_t rows, bool by_bands) {
        double cost = 0;
        for (std::int32_t i = 0; i < rows; ++i) {
            const std::int32_t last = rule_.neighbors < n_ - i ? i + 1 + rule_.neighbors : n_;
            breath_.after(static_cast<std::size_t>(last - i));
            swaps.row(i, last, delta_);
            if (own_origins_) exponentials(scores_, n_, scores_[i], powers_);  // e^s would leave the range of doubles: one origin a row
            const ForceRow row{i, last, scores_[i], powers_[i], scores_, powers_, delta_, rule_.margin, rule_.near};
            if (by_bands)
                for (std::int32_t j = i + 1; j < last; ++j) band_deltas_[(j - i - 1) * (n_ + 8) + i] = delta_[j];
            else if (wanted_.slope)
                add_forces(rule_.link, row, forces_);
            if (wanted_.value && !rule_.kernel) cost += rule_.link == Link::logistic ? logistic_cost(row) : margin_cost(row, rule_.link == Link::spring);
        }
        return cost;
    }
    void add_bands(std::int32_t rows) {
        for (std::int32_t distance = 1; distance <= bands_; ++distance) {
            const double* delta = band_deltas_ + (distance - 1) * (n_ + 8);
            const ForceBand band{distance, std::min(rows, n_ - distance), scores_, powers_, delta, rule_.margin, rule_.near, pull_, bend_};
            add_band_forces(rule_.link, band, forces_);
        }
    }
    const LambdaRule& rule_;
    const Answer& wanted_;
    const double* score_;
    std::int32_t n_, bands_;
    Range range_;
    bool own_origins_;
    std::vector<double> room_;
    double *power_, *scores_, *powers_, *delta_, *slope_, *curvature_, *pull_, *bend_, *band_deltas_;  // the first by document
    Forces forces_;
    Breath breath_;
};

// (1). The value is that of the measure, or, for unit weights, the negated sum of the links' costs.
class Lambdas final : public Objective {
public:
    explicit Lambdas(const LambdaRule& rule) : rule_(rule) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        if (!rule_.rank(scored, scored.score, scratch)) return answer_nan(n, wanted);
        const Ranked query = rule_.ranked(scored, scratch);
        double cost = 0, size = 0;
        if (!rule_.is_settled(query, scratch, wanted)) {
            const std::unique_ptr<Swaps> swaps = rule_.swaps();
            swaps->start(query, scratch);
            swaps->arrange(query, scratch.order.data(), scratch);
            Lineup lineup(rule_, scored.score, n, wanted);
            cost = lineup.add(scratch.order.data(), *swaps);
            size = lineup.size;
        }
        cost += rule_.add_given(scored, wanted, size);
        if (wanted.value && !rule_.kernel) *wanted.value = -cost;
        rule_.normalized(size, n, wanted);
    }

private:
    LambdaRule rule_;
};

}  // namespace exactrank
