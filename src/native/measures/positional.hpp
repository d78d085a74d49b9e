// Positional measures (DCG, nDCG, precision, recall, RBP):
//
//   sum_r u_r d_r / N,    N: 1, min(k, n), min(k, retrieved), the sum of u, or the largest sum that any order has,
//
// or the mean of the last over all cutoffs.
#pragma once

#include "measures/kernel.hpp"

namespace exactrank {

enum class Normaliser { one, length, retrieved, total, ideal, mean_ideal };

struct Positional {
    std::vector<double> discount;  // by position; at least min(cutoff, longest list) of them
    std::int32_t cutoff;
    Normaliser normalizer;
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
    PositionalKernel(Positional measure, const GainFunction& gain, double empty)
        : GainKernel<GainFunction>(gain, measure.cutoff, empty), measure_(std::move(measure)) {}

    // What the value is made of: the sum over positions of gain * discount, over total.
    struct Terms {
        GainFunction gain;
        const double* discount;
        double total;
    };
    Terms terms(const Ranked& query, Scratch& scratch) const {
        const double* discount = measure_.discount.data();
        double total = 1;
        switch (measure_.normalizer) {
            case Normaliser::one: break;
            case Normaliser::length: total = std::min(measure_.cutoff, query.count); break;
            case Normaliser::retrieved: total = std::max(1, std::min(measure_.cutoff, query.retrieved)); break;
            case Normaliser::total:
                total = 0;
                for (std::int32_t i = 0; i < query.count; ++i) total += this->gain_(query.grade[i]);
                break;
            case Normaliser::ideal: {
                const GainFunction gain = ideal_sums(query, scratch);
                return {gain, discount, scratch.values.back()};
            }
            case Normaliser::mean_ideal: return mean_terms(query, scratch);
        }
        return {this->gain_, discount, total};
    }
    bool counts_nothing(const Ranked& query) const { return measure_.short_is_zero && query.count < measure_.cutoff; }
    std::unique_ptr<Walk> walk() const override;
    std::unique_ptr<Swaps> swaps() const override;
    const std::vector<double>* common_discount() const override {
        const bool by_query = measure_.normalizer == Normaliser::mean_ideal || measure_.normalizer == Normaliser::retrieved;
        return by_query ? nullptr : &measure_.discount;
    }
    std::size_t longest() const override { return longest_for(measure_.discount, measure_.cutoff); }
    void worths(const Ranked& query, Scratch& scratch, double* worth) const override {
        std::fill(worth, worth + query.count, 0.0);
        if (this->is_empty(query) || counts_nothing(query)) return;
        const Terms terms = this->terms(query, scratch);
        for (std::int32_t i = 0; i < query.count; ++i) worth[i] = terms.gain(query.grade[i]) / terms.total;
    }

private:
    double value_of(const Ranked& query, Scratch& scratch) const override {
        if (counts_nothing(query)) return 0.0;
        const Terms terms = this->terms(query, scratch);
        return discounted_sum(query, terms.gain, terms.discount, std::min(measure_.cutoff, query.retrieved)) / terms.total;
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
    // The mean over cutoffs 1 to k of the share of the ideal is a sum with discounts d_r / k sum_{c>=r} 1 / ideal_c.
    Terms mean_terms(const Ranked& query, Scratch& scratch) const {
        const GainFunction gain = ideal_sums(query, scratch);
        std::vector<double>& weight = scratch.values;
        double rest = 0;
        for (std::size_t r = weight.size(); r-- > 0;) {
            rest += weight[r] > 0 ? 1 / weight[r] : 0.0;
            weight[r] = measure_.discount[r] * rest / static_cast<double>(weight.size());
        }
        return {gain, weight.data(), 1.0};
    }
    Positional measure_;
};

// (u_j - u_i) (d_p - d_{p+1}) / N
template <class GainFunction>
class PositionalWalk final : public Walk {
public:
    PositionalWalk(const PositionalKernel<GainFunction>& kernel, const GainFunction& gain) : kernel_(kernel), gain_(gain) {}
    void start(const Ranked& query, Scratch& scratch) override {
        drops_.clear();
        if (kernel_.counts_nothing(query)) return;
        const auto terms = kernel_.terms(query, scratch);
        const std::int32_t top = std::min(kernel_.cutoff(), query.retrieved);
        for (std::int32_t p = 0; p < top; ++p) drops_.push_back((terms.discount[p] - (p + 1 < top ? terms.discount[p + 1] : 0.0)) / terms.total);
        gain_ = terms.gain;
    }
    double exchange(const double* at, std::int32_t p) override {
        return static_cast<std::size_t>(p) < drops_.size() ? (gain_(at[p + 1]) - gain_(at[p])) * drops_[p] : 0.0;
    }

private:
    const PositionalKernel<GainFunction>& kernel_;
    GainFunction gain_;
    std::vector<double> drops_;
};

template <class GainFunction>
std::unique_ptr<Walk> PositionalKernel<GainFunction>::walk() const {
    return std::make_unique<PositionalWalk<GainFunction>>(*this, this->gain_);
}

// (u_j - u_i) (d_i - d_j) / N
template <class GainFunction>
class PositionalSwaps final : public SeparableSwaps {
public:
    explicit PositionalSwaps(const PositionalKernel<GainFunction>& kernel) : kernel_(kernel) {}
    void start(const Ranked& query, Scratch& scratch) override {
        useful_.assign(query.retrieved + 8, 0.0);
        share_.assign(query.retrieved + 8, 0.0);
        separable_ = {useful_.data(), share_.data(), share_.data()};
        if (kernel_.counts_nothing(query)) return;
        const auto terms = kernel_.terms(query, scratch);
        useful_of_.resize(query.count);
        for (std::int32_t i = 0; i < query.count; ++i) useful_of_[i] = terms.gain(query.grade[i]);
        for (std::int32_t p = 0; p < std::min(kernel_.cutoff(), query.retrieved); ++p) share_[p] = terms.discount[p] / terms.total;
    }
    void arrange(const Ranked& query, const std::int32_t* order, Scratch&) override {
        for (std::int32_t p = 0; !useful_of_.empty() && p < query.retrieved; ++p) useful_[p] = useful_of_[order[p]];
    }

private:
    const PositionalKernel<GainFunction>& kernel_;
    std::vector<double> useful_, share_, useful_of_;  // the last by document
};

template <class GainFunction>
std::unique_ptr<Swaps> PositionalKernel<GainFunction>::swaps() const {
    return std::make_unique<PositionalSwaps<GainFunction>>(*this);
}

}  // namespace exactrank
