// Forces of many pairs at once, in vectors of eight:
//
//   force = |weight| link(s_better - s_worse),    up for the better document, down for the other                          (1)
//
// Documents are taken in ranked order, so that a pair i above j is in the right order just when its exchange would lower the value: its
// sign says so. The logistic link 1 / (1 + e^d) needs one exponential a document: with E = e^s it is E_worse / (E_better + E_worse).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "measures/kernel.hpp"
#include "support/elementary.hpp"

namespace exactrank {

enum class Link { logistic, step, spring };

// One upper document i and those below it; arrays by position, with room for eight more.
struct ForceRow {
    std::int32_t i, last;
    double score, power;            // s_i, and E_i
    const double *scores, *powers;  // s, E
    const double* delta;            // from i + 1 on
    double margin, near;

    XR_INLINE Doubles change(std::int32_t j) const { return load_eight(delta + j); }
};

// The same, with changes that are separable.
struct SeparableRow : ForceRow {
    Separable swaps;
    double upper, upper_a;

    XR_INLINE Doubles change(std::int32_t j) const { return (load_eight(swaps.u + j) - upper) * (upper_a - load_eight(swaps.b + j)); }
};

// Where the forces of a lineup go, by position; null: not wanted.
struct Forces {
    double *slope, *curvature;
    double* size;  // the sum of the sizes, each pair's once
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

XR_INLINE Doubles sizes(Doubles v) { return v < 0.0 ? -v : v; }

// Adds the forces of a row.
template <auto link, bool with_curvature, bool with_size, class Row>
XR_INLINE void add_row(const Row& row, const Forces& to) {
    Doubles force{}, bend{}, size{};
    for (std::int32_t j = row.i + 1; j < row.last; j += 8) {
        const Doubles score = load_eight(row.scores + j), delta = nearer(first_lanes(row.change(j), row.last - j), row.score - score, row.near);
        const Pull pull = link({Doubles{} + row.score, Doubles{} + row.power, score, load_eight(row.powers + j), delta}, row.margin);
        force += pull.force;
        store_eight(to.slope + j, load_eight(to.slope + j) - pull.force);
        if constexpr (with_curvature) {
            bend += pull.curvature;
            store_eight(to.curvature + j, load_eight(to.curvature + j) + pull.curvature);
        }
        if constexpr (with_size) size += sizes(pull.force);
    }
    to.slope[row.i] += sum_of_eight(force);
    if constexpr (with_curvature) to.curvature[row.i] += sum_of_eight(bend);
    if constexpr (with_size) *to.size += sum_of_eight(size);
}

// Rows from `first` on and before `end` of a lineup of n whose changes are separable.
struct ForceRows {
    std::int32_t first, end, n, neighbors;
    const double *scores, *powers;
    Separable swaps;
    double margin, near;

    std::int32_t last(std::int32_t i) const { return neighbors < n - i ? i + 1 + neighbors : n; }
};

template <auto link, bool with_curvature, bool with_size>
XR_INLINE void add_pairs(const ForceRow& row, const Forces& to) {
    add_row<link, with_curvature, with_size>(row, to);
}
template <auto link, bool with_curvature, bool with_size>
XR_INLINE void add_pairs(const ForceRows& rows, const Forces& to) {
    for (std::int32_t i = rows.first; i < rows.end; ++i) {
        const ForceRow row{i, rows.last(i), rows.scores[i], rows.powers[i], rows.scores, rows.powers, nullptr, rows.margin, rows.near};
        add_row<link, with_curvature, with_size>(SeparableRow{row, rows.swaps, rows.swaps.u[i], rows.swaps.a[i]}, to);
    }
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
template <auto link, bool with_curvature, bool with_size>
XR_INLINE void add_pairs(const ForceBand& band, const Forces& to) {
    double *const slope = to.slope, *const curvature = to.curvature;
    Doubles size{};
    for (std::int32_t i = 0; i < band.count; i += 8) {
        const double *lower_scores = band.scores + band.distance, *lower_powers = band.powers + band.distance;
        const Doubles upper = load_eight(band.scores + i), lower = load_eight(lower_scores + i);
        const Doubles delta = nearer(first_lanes(load_eight(band.delta + i), band.count - i), upper - lower, band.near);
        const Pull pull = link({upper, load_eight(band.powers + i), lower, load_eight(lower_powers + i), delta}, band.margin);
        store_eight(band.pull + i, pull.force);
        if constexpr (with_curvature) store_eight(band.bend + i, pull.curvature);
        if constexpr (with_size) size += sizes(pull.force);
    }
    if constexpr (with_size) *to.size += sum_of_eight(size);
    for (std::int32_t i = 0; i < band.count; ++i) slope[i] += band.pull[i];
    for (std::int32_t i = 0; i < band.count; ++i) slope[i + band.distance] -= band.pull[i];
    for (std::int32_t i = 0; with_curvature && i < band.count; ++i) curvature[i] += band.bend[i];
    for (std::int32_t i = 0; with_curvature && i < band.count; ++i) curvature[i + band.distance] += band.bend[i];
}

template <auto link, class Pairs>
XR_INLINE void add_linked(const Pairs& pairs, const Forces& to) {
    if (to.size)
        to.curvature ? add_pairs<link, true, true>(pairs, to) : add_pairs<link, false, true>(pairs, to);
    else
        to.curvature ? add_pairs<link, true, false>(pairs, to) : add_pairs<link, false, false>(pairs, to);
}
template <class Pairs>
XR_INLINE void add_by_link(Link link, const Pairs& pairs, const Forces& to) {
    if (link == Link::logistic) add_linked<logistic>(pairs, to);
    if (link == Link::step) add_linked<step>(pairs, to);
    if (link == Link::spring) add_linked<spring>(pairs, to);
}
static XR_CLONES void add_forces(Link link, const ForceRow& row, const Forces& to) { add_by_link(link, row, to); }
static XR_CLONES void add_rows_forces(Link link, const ForceRows& rows, const Forces& to) { add_by_link(link, rows, to); }
static XR_CLONES void add_band_forces(Link link, const ForceBand& band, const Forces& to) { add_by_link(link, band, to); }

// sum_j |delta_j| log(1 + e^-lead) = sum_j |delta_j| (max(0, -lead) + log(1 + e^-|lead|)) for weights 0 and 1: the factors
// 1 + e^-|lead| <= 2 are multiplied, and a logarithm is taken of the product of up to 960 of them.
static XR_CLONES double logistic_cost(const ForceRow& row) {
    Doubles wrong{}, product = Doubles{} + 1.0;
    double logs = 0;
    int factors = 0;
    auto settle = [&] {
        logs += portable::log(((product[0] * product[1]) * (product[2] * product[3])) * ((product[4] * product[5]) * (product[6] * product[7])));
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

}  // namespace exactrank
