// Forces between pairs of documents (Burges, Ragno & Le 2006): for each pair whose exchange matters,
//
//   force = |weight| link(s_better - s_worse),    up for the better document, down for the other                          (1)
//
// The weight is 1 (RankNet) or the change of a measure when the two exchange their ranks (LambdaRank). Documents are taken in
// ranked order, so that a pair i above j is in the right order just when its exchange would lower the value: its sign says so.
// The logistic link 1 / (1 + e^d) needs one exponential a document: with E = e^s it is E_worse / (E_better + E_worse).
#pragma once

#include <cmath>
#include <span>

#include "objective.hpp"
#include "ranking.hpp"
#include "vector_math.hpp"

namespace exactrank {

enum class Link { logistic, step, spring };

static XR_CLONES void signs_of_differences(const double* at, std::int32_t i, std::int32_t last, double* __restrict delta) {
    const double own = at[i];
    for (std::int32_t j = i + 1; j < last; ++j) delta[j] = static_cast<double>(at[j] > own) - static_cast<double>(at[j] < own);
}

// Unit weights: the sign of the difference of grades.
class UnitSwaps final : public Swaps {
public:
    void start(const Ranked& query, Scratch&) override { at_ = query.at; }
    void row(std::int32_t i, std::int32_t last, double* delta) override { signs_of_differences(at_, i, last, delta); }

private:
    const double* at_ = nullptr;
};

// One upper document i and those below it; arrays by position, with room for eight more.
struct ForceRow {
    std::int32_t i, last;
    double score, power;            // s_i, and E_i
    const double *scores, *powers;  // s, E
    const double* delta;            // from i + 1 on
    double margin, near;
};

// Eight pairs.
struct Pairs {
    Doubles upper_score, upper_power, score, power;  // of the document above, and of that below
    Doubles delta;
};

struct Pull {
    Doubles force, curvature;  // on the upper; the reverse on the lower
};

XR_INLINE Pull logistic(const Pairs& pairs, double) {
    const Doubles worse = pairs.delta < 0.0 ? pairs.power : pairs.upper_power, share = worse / (pairs.upper_power + pairs.power);
    return {-pairs.delta * share, (pairs.delta < 0.0 ? -pairs.delta : pairs.delta) * share * (1.0 - share)};
}

// The force is constant, and beyond the margin nothing; so there is no curvature.
XR_INLINE Pull step(const Pairs& pairs, double margin) {
    const Doubles gap = pairs.upper_score - pairs.score, lead = pairs.delta < 0.0 ? gap : -gap;
    return {lead < margin ? -pairs.delta : Doubles{}, Doubles{}};
}

// The force grows with the distance to the margin.
XR_INLINE Pull spring(const Pairs& pairs, double margin) {
    const Doubles gap = pairs.upper_score - pairs.score, lead = pairs.delta < 0.0 ? gap : -gap, size = pairs.delta < 0.0 ? -pairs.delta : pairs.delta;
    return {lead < margin ? -pairs.delta * (margin - lead) : Doubles{}, lead < margin ? size : Doubles{}};
}

XR_INLINE void store_eight(double* p, Doubles v) { std::memcpy(p, &v, sizeof v); }

// v, but nothing in the lanes from `count` on.
XR_INLINE Doubles first_lanes(Doubles v, std::int32_t count) {
    return count < 8 ? (Doubles{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<double>(count) ? v : Doubles{}) : v;
}

// Weights by how near the two are, where `near` is above 0: divided by near + |s_i - s_j|.
XR_INLINE Doubles nearer(Doubles delta, Doubles gap, double near) { return near > 0 ? delta / (near + (gap < 0.0 ? -gap : gap)) : delta; }

// Adds the forces of a row.
template <auto link, bool with_curvature>
XR_INLINE void add_row(const ForceRow& row, double* slope, double* curvature) {
    Doubles force{}, bend{};
    for (std::int32_t j = row.i + 1; j < row.last; j += 8) {
        const Doubles score = load_eight(row.scores + j), delta = nearer(first_lanes(load_eight(row.delta + j), row.last - j), row.score - score, row.near);
        const Pull pull = link({Doubles{} + row.score, Doubles{} + row.power, score, load_eight(row.powers + j), delta}, row.margin);
        force += pull.force;
        store_eight(slope + j, load_eight(slope + j) - pull.force);
        if constexpr (with_curvature) {
            bend += pull.curvature;
            store_eight(curvature + j, load_eight(curvature + j) + pull.curvature);
        }
    }
    slope[row.i] += sum_of_eight(force);
    if constexpr (with_curvature) curvature[row.i] += sum_of_eight(bend);
}

// Pairs a fixed distance apart, the upper at positions from 0 to `count`; arrays by position, with room for eight more.
struct ForceBand {
    std::int32_t distance, count;
    const double *scores, *powers;
    const double* delta;  // by the upper's position
    double margin, near;
    double *pull, *bend;  // room, by the upper's position
};

// Adds the forces of a band: first all pulls, since a load that overlaps a store just made waits for it.
template <auto link, bool with_curvature>
XR_INLINE void add_band(const ForceBand& band, double* slope, double* curvature) {
    for (std::int32_t i = 0; i < band.count; i += 8) {
        const double *lower_scores = band.scores + band.distance, *lower_powers = band.powers + band.distance;
        const Doubles upper = load_eight(band.scores + i), lower = load_eight(lower_scores + i);
        const Doubles delta = nearer(first_lanes(load_eight(band.delta + i), band.count - i), upper - lower, band.near);
        const Pull pull = link({upper, load_eight(band.powers + i), lower, load_eight(lower_powers + i), delta}, band.margin);
        store_eight(band.pull + i, pull.force);
        if constexpr (with_curvature) store_eight(band.bend + i, pull.curvature);
    }
    for (std::int32_t i = 0; i < band.count; ++i) slope[i] += band.pull[i];
    for (std::int32_t i = 0; i < band.count; ++i) slope[i + band.distance] -= band.pull[i];
    for (std::int32_t i = 0; with_curvature && i < band.count; ++i) curvature[i] += band.bend[i];
    for (std::int32_t i = 0; with_curvature && i < band.count; ++i) curvature[i + band.distance] += band.bend[i];
}

template <auto link>
XR_INLINE void add_linked(const ForceRow& row, double* slope, double* curvature) {
    curvature ? add_row<link, true>(row, slope, curvature) : add_row<link, false>(row, slope, nullptr);
}
template <auto link>
XR_INLINE void add_linked(const ForceBand& band, double* slope, double* curvature) {
    curvature ? add_band<link, true>(band, slope, curvature) : add_band<link, false>(band, slope, nullptr);
}
template <class Force>
XR_INLINE void add_by_link(Link link, const Force& force, double* slope, double* curvature) {
    if (link == Link::logistic) add_linked<logistic>(force, slope, curvature);
    if (link == Link::step) add_linked<step>(force, slope, curvature);
    if (link == Link::spring) add_linked<spring>(force, slope, curvature);
}
static XR_CLONES void add_forces(Link link, const ForceRow& row, double* slope, double* curvature) { add_by_link(link, row, slope, curvature); }
static XR_CLONES void add_band_forces(Link link, const ForceBand& band, double* slope, double* curvature) { add_by_link(link, band, slope, curvature); }

// sum_j |delta_j| log(1 + e^-lead) = sum_j |delta_j| (max(0, -lead) + log(1 + e^-|lead|)) for weights 0 and 1: the factors
// 1 + e^-|lead| <= 2 are multiplied, and a logarithm is taken of the product of up to 960 of them.
static XR_CLONES double logistic_cost(const ForceRow& row) {
    Doubles wrong{}, product = Doubles{} + 1.0;
    double logs = 0;
    int factors = 0;
    auto settle = [&] {
        logs += std::log(((product[0] * product[1]) * (product[2] * product[3])) * ((product[4] * product[5]) * (product[6] * product[7])));
        product = Doubles{} + 1.0;
        factors = 0;
    };
    for (std::int32_t j = row.i + 1; j < row.last; j += 8) {
        const Doubles delta = first_lanes(load_eight(row.delta + j), row.last - j);
        const Doubles power = load_eight(row.powers + j), gap = row.score - load_eight(row.scores + j), behind = delta * gap;  // -lead
        const Doubles ratio = (gap < 0.0 ? row.power : power) / (gap < 0.0 ? power : row.power);                               // e^-|lead|
        wrong += behind > 0.0 ? behind : Doubles{};
        product *= 1.0 + (delta != 0.0 ? ratio : Doubles{});
        if (++factors == 120) settle();
    }
    settle();
    return logs + sum_of_eight(wrong);
}

// sum_j max(0, margin - lead)^p / p for weights 0 and 1.
inline double margin_cost(const ForceRow& row, bool squared) {
    double cost = 0;
    for (std::int32_t j = row.i + 1; j < row.last; ++j) {
        if (row.delta[j] == 0) continue;
        const double gap = row.score - row.scores[j], short_by = std::max(0.0, row.margin - (row.delta[j] < 0 ? gap : -gap));
        cost += squared ? short_by * short_by / 2 : short_by;
    }
    return cost;
}

struct LambdaRule {
    const Kernel* kernel;             // null: unit weights
    std::span<const double> grades;   // as the kernel reads them
    std::span<const double> tie_key;  // of equal scores, the one with the least ranks first
    Link link;
    double margin;
    std::int32_t neighbours;  // documents further apart in the ranking than this do not meet
    std::int32_t truncation;  // one of a pair must be among the first so many
    double near;              // weights are divided by this plus the distance of the two scores; 0: they are not
    Domain domain;            // of objectives that follow it

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
    std::unique_ptr<Swaps> swaps() const { return kernel ? kernel->swaps() : std::make_unique<UnitSwaps>(); }
};

// One query's documents in some order, whatever their scores, and the forces among them; by position, padded for whole vectors.
class Lineup {
public:
    Lineup(const LambdaRule& rule, std::int32_t n, const Answer& wanted)
        : rule_(rule), wanted_(wanted), n_(n), bands_(rule.neighbours <= most_bands ? std::min(rule.neighbours, n - 1) : 0), room_((n + 8) * (7 + bands_)) {
        double* next = room_.data();
        for (double** array : {&scores_, &powers_, &delta_, &slope_, &curvature_, &pull_, &bend_, &band_deltas_}) *array = next, next += n + 8;
    }

    // Adds to `wanted` what the documents in this order do to each other; gives the cost of the links, where that is wanted.
    double add(const double* score, const std::int32_t* order, Swaps& swaps) {
        for (std::int32_t r = 0; r < n_; ++r) scores_[r] = score[order[r]];
        std::fill_n(slope_, n_, 0.0);
        std::fill_n(curvature_, n_, 0.0);
        const double cost = add_rows(swaps);
        for (std::int32_t r = 0; wanted_.slope && r < n_; ++r) wanted_.slope[order[r]] += slope_[r];
        for (std::int32_t r = 0; wanted_.curvature && r < n_; ++r) wanted_.curvature[order[r]] += curvature_[r];
        return cost;
    }

private:
    // Where only close neighbours meet, all pairs of a distance are taken together: rows would be too short for vectors.
    static constexpr std::int32_t most_bands = 8;

    double add_rows(Swaps& swaps) {
        const std::int32_t rows = std::min({n_ - 1, rule_.truncation, rule_.kernel ? rule_.kernel->cutoff() : n_});
        const Range range = range_of(scores_, n_);
        const double spread = range.most - range.least, middle = range.least + spread / 2;
        const bool own_origins = rule_.link == Link::logistic && !(spread < 1400);  // e^s would leave the range of doubles: one a row
        const bool by_bands = bands_ > 0 && !own_origins;
        if (rule_.link == Link::logistic && !own_origins) exponentials(scores_, n_, middle, powers_);
        double cost = 0;
        for (std::int32_t i = 0; i < rows; ++i) {
            const std::int32_t last = rule_.neighbours < n_ - i ? i + 1 + rule_.neighbours : n_;
            breath_.after(static_cast<std::size_t>(last - i));
            swaps.row(i, last, delta_);
            if (own_origins) exponentials(scores_, n_, scores_[i], powers_);
            const ForceRow row{i, last, scores_[i], powers_[i], scores_, powers_, delta_, rule_.margin, rule_.near};
            if (by_bands)
                for (std::int32_t j = i + 1; j < last; ++j) band_deltas_[(j - i - 1) * (n_ + 8) + i] = delta_[j];
            else if (wanted_.slope)
                add_forces(rule_.link, row, slope_, wanted_.curvature ? curvature_ : nullptr);
            if (wanted_.value && !rule_.kernel) cost += rule_.link == Link::logistic ? logistic_cost(row) : margin_cost(row, rule_.link == Link::spring);
        }
        for (std::int32_t distance = 1; by_bands && wanted_.slope && distance <= bands_; ++distance) {
            const double* delta = band_deltas_ + (distance - 1) * (n_ + 8);
            const ForceBand band{distance, std::min(rows, n_ - distance), scores_, powers_, delta, rule_.margin, rule_.near, pull_, bend_};
            add_band_forces(rule_.link, band, slope_, wanted_.curvature ? curvature_ : nullptr);
        }
        return cost;
    }
    const LambdaRule& rule_;
    const Answer& wanted_;
    std::int32_t n_, bands_;
    std::vector<double> room_;
    double *scores_, *powers_, *delta_, *slope_, *curvature_, *pull_, *bend_, *band_deltas_;
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
        if (rule_.is_settled(query, scratch, wanted)) return;
        const std::unique_ptr<Swaps> swaps = rule_.swaps();
        swaps->start(query, scratch);
        const double cost = Lineup(rule_, n, wanted).add(scored.score, scratch.order.data(), *swaps);
        if (wanted.value && !rule_.kernel) *wanted.value = -cost;
    }

private:
    LambdaRule rule_;
};

}  // namespace exactrank
