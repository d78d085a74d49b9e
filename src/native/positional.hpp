// Positional measures (DCG, nDCG, precision, recall, RBP):
//
//   sum_r u_r d_r / N,    N: 1, min(k, n), the sum of u, or the largest sum that any order has,
//
// or the mean of the last over all cutoffs.
#pragma once

#include "kernel.hpp"

namespace exactrank {

enum class Normaliser { one, length, total, ideal, mean_ideal };

struct Positional {
    std::vector<double> discount;  // by position; at least min(cutoff, longest list) of them
    std::int32_t cutoff;
    Normaliser normaliser;
    bool short_is_zero;  // a list shorter than the cutoff is worth 0 (LETOR's scripts)
};

// Tied documents share the mean usefulness of their group.
template <class GainFunction>
double discounted_sum(const Ranked& query, const GainFunction& gain, const double* discount, std::int32_t top) {
    double sum = 0;
    if (!query.tied) {
        for (std::int32_t r = 0; r < top; ++r) sum += gain(query.at[r]) * discount[r];
        return sum;
    }
    for (std::int32_t first = 0, last; first < top; first = last) {
        last = query.tie_end(first);
        double useful = 0, weight = 0;
        for (std::int32_t r = first; r < last; ++r) useful += gain(query.at[r]);
        for (std::int32_t r = first; r < std::min(last, top); ++r) weight += discount[r];
        sum += useful / (last - first) * weight;
    }
    return sum;
}

template <class GainFunction>
class PositionalKernel final : public GainKernel<GainFunction> {
public:
    PositionalKernel(Positional measure, const GainFunction& gain, double empty) : GainKernel<GainFunction>(gain, empty), measure_(std::move(measure)) {}

private:
    double value_of(const Ranked& query, Scratch& scratch) const override {
        if (measure_.short_is_zero && query.count < measure_.cutoff) return 0.0;
        const std::int32_t top = std::min(measure_.cutoff, query.retrieved);
        const double* discount = measure_.discount.data();
        double total = 1;
        switch (measure_.normaliser) {
            case Normaliser::one: break;
            case Normaliser::length: total = std::min(measure_.cutoff, query.count); break;
            case Normaliser::total:
                total = 0;
                for (std::int32_t i = 0; i < query.count; ++i) total += this->gain_(query.grade[i]);
                break;
            case Normaliser::ideal: return share_of_ideal(query, scratch, top);
            case Normaliser::mean_ideal: return mean_share_of_ideal(query, scratch, top);
        }
        return discounted_sum(query, this->gain_, discount, top) / total;
    }
    // Fills scratch.values with the largest sums at cutoffs 1 to k, and gives the gain in whose units they are.
    GainFunction ideal_sums(const Ranked& query, Scratch& scratch) const {
        std::vector<double>& ideal = scratch.values;
        ideal.resize(std::min(measure_.cutoff, query.count));
        levels_from_top(query.grade, query.count, ideal.size(), scratch.levels);
        const GainFunction gain = scaled_to(this->gain_, scratch.levels[0].value);
        double sum = 0;
        std::size_t r = 0;
        for (const Level& level : scratch.levels) {
            const double useful = gain(level.value);
            for (const std::size_t end = std::min(ideal.size(), r + level.count); r < end; ++r) ideal[r] = sum += useful * measure_.discount[r];
        }
        return gain;
    }
    double share_of_ideal(const Ranked& query, Scratch& scratch, std::int32_t top) const {
        const GainFunction gain = ideal_sums(query, scratch);
        return discounted_sum(query, gain, measure_.discount.data(), top) / scratch.values.back();
    }
    // The mean over cutoffs 1 to k of the share of the ideal is a sum with discounts d_r / k sum_{c>=r} 1 / ideal_c.
    double mean_share_of_ideal(const Ranked& query, Scratch& scratch, std::int32_t top) const {
        const GainFunction gain = ideal_sums(query, scratch);
        std::vector<double>& weight = scratch.values;
        double rest = 0;
        for (std::size_t r = weight.size(); r-- > 0;) {
            rest += weight[r] > 0 ? 1 / weight[r] : 0.0;
            weight[r] = measure_.discount[r] * rest / static_cast<double>(weight.size());
        }
        return discounted_sum(query, gain, weight.data(), top);
    }
    Positional measure_;
};

}  // namespace exactrank
