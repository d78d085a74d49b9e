// Forces between pairs of documents (Burges, Ragno & Le 2006): for each pair whose exchange matters,
//
//   force = |weight| link(s_better - s_worse),    up for the better document, down for the other                          (1)
//
// The weight is 1 (RankNet) or the change of a measure when the two exchange their ranks (LambdaRank). Documents are taken in
// ranked order, so that a pair i above j is in the right order just when its exchange would lower the value: its sign says so.
// The logistic link 1 / (1 + e^d) needs one exponential a document: with E = e^s it is E_worse / (E_better + E_worse).
#pragma once

#include <cmath>

#include "objective.hpp"
#include "ranking.hpp"
#include "vector_math.hpp"

namespace exactrank {

enum class Link { logistic, step, spring };

// Unit weights: the sign of the difference of grades.
class UnitSwaps final : public Swaps {
public:
    void start(const Ranked& query, Scratch&) override { at_ = query.at; }
    void row(std::int32_t i, std::int32_t last, double* delta) override {
        for (std::int32_t j = i + 1; j < last; ++j) delta[j] = static_cast<double>(at_[j] > at_[i]) - static_cast<double>(at_[j] < at_[i]);
    }

private:
    const double* at_ = nullptr;
};

// One upper document i and those below it; arrays by position, with room for eight more.
struct ForceRow {
    std::int32_t i, last;
    double score, power;                  // s_i, and E_i
    const double *scores, *powers;        // s, E
    const double* delta;                  // from i + 1 on
    double margin;
};

struct Pull {
    Doubles force, curvature;  // on i; the reverse on j
};

XR_INLINE Pull logistic(const ForceRow& row, Doubles delta, Doubles, Doubles power) {
    const Doubles sum = row.power + power, worse = delta < 0.0 ? power : Doubles{} + row.power, share = worse / sum;
    return {-delta * share, (delta < 0.0 ? -delta : delta) * share * (1.0 - share)};
}

// The force is constant, and beyond the margin nothing; so there is no curvature.
XR_INLINE Pull step(const ForceRow& row, Doubles delta, Doubles score, Doubles) {
    const Doubles gap = row.score - score, lead = delta < 0.0 ? gap : -gap;
    return {lead < row.margin ? -delta : Doubles{}, Doubles{}};
}

// The force grows with the distance to the margin.
XR_INLINE Pull spring(const ForceRow& row, Doubles delta, Doubles score, Doubles) {
    const Doubles gap = row.score - score, lead = delta < 0.0 ? gap : -gap, size = delta < 0.0 ? -delta : delta;
    return {lead < row.margin ? -delta * (row.margin - lead) : Doubles{}, lead < row.margin ? size : Doubles{}};
}

// Adds the forces of a row; lanes beyond `last` have weight nothing.
template <auto link, bool with_curvature>
XR_INLINE void add_row(const ForceRow& row, double* slope, double* curvature) {
    Doubles force{}, bend{};
    for (std::int32_t j = row.i + 1; j < row.last; j += 8) {
        Doubles delta{};
        std::memcpy(&delta, row.delta + j, sizeof delta);
        if (row.last - j < 8) delta = Doubles{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<double>(row.last - j) ? delta : Doubles{};
        const Pull pull = link(row, delta, load_eight(row.scores + j), load_eight(row.powers + j));
        force += pull.force;
        const Doubles on_j = load_eight(slope + j) - pull.force;
        std::memcpy(slope + j, &on_j, sizeof on_j);
        if constexpr (with_curvature) {
            bend += pull.curvature;
            const Doubles there = load_eight(curvature + j) + pull.curvature;
            std::memcpy(curvature + j, &there, sizeof there);
        }
    }
    slope[row.i] += sum_of_eight(force);
    if constexpr (with_curvature) curvature[row.i] += sum_of_eight(bend);
}

static XR_CLONES void add_forces(Link link, const ForceRow& row, double* slope, double* curvature) {
    if (link == Link::logistic)
        curvature ? add_row<logistic, true>(row, slope, curvature) : add_row<logistic, false>(row, slope, nullptr);
    else if (link == Link::step)
        curvature ? add_row<step, true>(row, slope, curvature) : add_row<step, false>(row, slope, nullptr);
    else
        curvature ? add_row<spring, true>(row, slope, curvature) : add_row<spring, false>(row, slope, nullptr);
}

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
        Doubles delta = load_eight(row.delta + j);
        if (row.last - j < 8) delta = Doubles{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<double>(row.last - j) ? delta : Doubles{};
        const Doubles ratio = load_eight(row.powers + j) / row.power;  // e^-|lead|, since i stands above
        wrong += delta > 0.0 ? row.score - load_eight(row.scores + j) : Doubles{};
        product *= delta != 0.0 ? 1.0 + ratio : Doubles{} + 1.0;
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
    const Kernel* kernel;  // null: unit weights
    const double* grades;  // as the kernel reads them
    const double* tie_key; // of equal scores, the one with the least ranks first
    Link link;
    double margin;
    std::int32_t neighbours;  // documents further apart in the ranking than this do not meet
    std::int32_t truncation;  // one of a pair must be among the first so many
};

// (1). The value is that of the measure, or, for unit weights, the negated sum of the links' costs.
class Lambdas final : public Objective {
public:
    explicit Lambdas(const LambdaRule& rule) : rule_(rule) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        const double* grade = rule_.grades + scored.begin;
        scratch.order.resize(n);
        if (rank_query(scratch.keys, {scored.score, rule_.tie_key + scored.begin, n}, scratch.order.data(), nullptr) < n) return answer_nan(n, wanted);
        scratch.ranked.resize(n);
        for (std::int32_t r = 0; r < n; ++r) scratch.ranked[r] = grade[scratch.order[r]];
        const Ranked query{grade, scratch.ranked.data(), nullptr, n, n};
        if (wanted.value && rule_.kernel) *wanted.value = measured(query, scratch);
        if (!wanted.slope && rule_.kernel) return;
        Room room(n, wanted.curvature != nullptr);
        for (std::int32_t r = 0; r < n; ++r) room.scores[r] = scored.score[scratch.order[r]];
        if (!rule_.kernel || !rule_.kernel->is_empty(query)) {
            const std::unique_ptr<Swaps> swaps = rule_.kernel ? rule_.kernel->swaps() : std::make_unique<UnitSwaps>();
            swaps->start(query, scratch);
            const double cost = add_rows(*swaps, n, room, wanted);
            if (wanted.value && !rule_.kernel) *wanted.value = -cost;
        }
        if (wanted.slope)
            for (std::int32_t r = 0; r < n; ++r) wanted.slope[scratch.order[r]] = room.slope[r];
        if (wanted.curvature)
            for (std::int32_t r = 0; r < n; ++r) wanted.curvature[scratch.order[r]] = room.curvature[r];
    }

private:
    // By position, padded for whole vectors.
    struct Room {
        explicit Room(std::int32_t n, bool with_curvature)
            : scores(n + 8), powers(n + 8, 1.0), delta(n + 8), slope(n + 8), curvature(with_curvature ? n + 8 : 0) {}
        std::vector<double> scores, powers, delta, slope, curvature;
    };
    double measured(const Ranked& query, Scratch& scratch) const {
        const double value = rule_.kernel->value(query, scratch);
        return std::isnan(value) ? 0.0 : value;
    }
    double add_rows(Swaps& swaps, std::int32_t n, Room& room, const Answer& wanted) const {
        const std::int32_t rows = std::min({n - 1, rule_.truncation, rule_.kernel ? rule_.kernel->cutoff() : n});
        const double spread = room.scores[0] - room.scores[n - 1], middle = room.scores[n - 1] + spread / 2;
        const bool wide = !(spread < 1400);  // e^s would leave the range of doubles: each row then has its own origin
        if (rule_.link == Link::logistic && !wide) exponentials(room.scores.data(), n, middle, room.powers.data());
        double cost = 0;
        for (std::int32_t i = 0; i < rows; ++i) {
            const std::int32_t last = rule_.neighbours < n - i ? i + 1 + rule_.neighbours : n;
            swaps.row(i, last, room.delta.data());
            if (rule_.link == Link::logistic && wide) exponentials(room.scores.data(), n, room.scores[i], room.powers.data());
            const ForceRow row{i, last, room.scores[i], room.powers[i], room.scores.data(), room.powers.data(), room.delta.data(), rule_.margin};
            if (wanted.slope) add_forces(rule_.link, row, room.slope.data(), wanted.curvature ? room.curvature.data() : nullptr);
            if (wanted.value && !rule_.kernel) cost += rule_.link == Link::logistic ? logistic_cost(row) : margin_cost(row, rule_.link == Link::spring);
        }
        return cost;
    }
    LambdaRule rule_;
};

}  // namespace exactrank
