// Average precision: sum_r u_r C_r / r / N, with u_r = [y_r >= rel], C_r = sum_{t<=r} u_t and N the number of relevant documents.
#pragma once

#include <cstring>
#include <limits>

#include "measures/kernel.hpp"

namespace exactrank {

struct AveragePrecision {
    double rel;  // the least relevant grade
    std::int32_t cutoff;
    bool limit_to_cutoff;  // N = min(relevant, cutoff) rather than relevant
};

struct PrecisionSum {
    double sum;
    std::int32_t found;  // relevant documents down to the cutoff, and to the end of the ties there
};

// The ranks of the relevant documents come first, for which there is room, and for eight more; without a branch on which those are; then eight precisions at a
// time.
static XR_CLONES PrecisionSum precision_sum(const double* at, std::int32_t top, double rel, std::int32_t* ranks) {
    using Ranks = std::int32_t __attribute__((vector_size(32)));
    std::int32_t found = 0;
    for (std::int32_t r = 0; r < top; ++r) {
        ranks[found] = r + 1;
        found += at[r] >= rel;
    }
    std::fill(ranks + found, ranks + found + 8, std::numeric_limits<std::int32_t>::max());
    Doubles sums{}, number{1, 2, 3, 4, 5, 6, 7, 8};
    const Doubles limit = Doubles{} + found;
    for (std::int32_t i = 0; i < found; i += 8, number += 8.0) {
        Ranks eight;
        std::memcpy(&eight, ranks + i, sizeof eight);
        sums += number <= limit ? number / __builtin_convertvector(eight, Doubles) : Doubles{};
    }
    return {sum_of_eight(sums), found};
}

// A group of g tied documents of which m are relevant puts one at each of its positions with chance m/g, and then
// (i - 1)(m - 1)/(g - 1) of the others stand above it within the group.
inline PrecisionSum tied_precision_sum(const Ranked& query, std::int32_t top, double rel) {
    double sum = 0;
    std::int32_t above = 0;
    for (std::int32_t first = 0, last; first < top; first = last) {
        last = query.tie_end(first);
        const std::int32_t group = last - first;
        const auto relevant = static_cast<std::int32_t>(std::count_if(query.at + first, query.at + last, [&](double y) { return y >= rel; }));
        const double chance = static_cast<double>(relevant) / group, step = group > 1 ? (relevant - 1.0) / (group - 1) : 0.0;
        for (std::int32_t r = first; r < std::min(last, top); ++r) sum += chance * (above + 1 + (r - first) * step) / (r + 1);
        above += relevant;
    }
    return {sum, above};
}

class AveragePrecisionKernel final : public GainKernel<Threshold> {
public:
    AveragePrecisionKernel(const AveragePrecision& measure, double empty) : GainKernel(Threshold{measure.rel}, measure.cutoff, empty), measure_(measure) {}
    std::unique_ptr<Walk> walk() const override { return std::make_unique<PrecisionWalk>(*this); }
    std::unique_ptr<Swaps> swaps() const override { return std::make_unique<PrecisionSwaps>(*this); }

private:
    double value_of(const Ranked& query, Scratch& scratch) const override {
        const std::int32_t top = std::min(measure_.cutoff, query.retrieved);
        scratch.ranks.resize(static_cast<std::size_t>(top) + 8);
        const auto [sum, found] = query.tied ? tied_precision_sum(query, top, measure_.rel) : precision_sum(query.at, top, measure_.rel, scratch.ranks.data());
        return sum / (top < query.count ? total(query) : limited(found));
    }
    std::int32_t limited(std::int32_t relevant) const { return measure_.limit_to_cutoff ? std::min(relevant, measure_.cutoff) : relevant; }
    std::int32_t total(const Ranked& query) const {
        return limited(static_cast<std::int32_t>(std::count_if(query.grade, query.grade + query.count, [&](double y) { return y >= measure_.rel; })));
    }
    // (C_{p-1} + 1) (1/p - 1/(p+1)) (u_j - u_i) / N
    class PrecisionWalk final : public Walk {
    public:
        explicit PrecisionWalk(const AveragePrecisionKernel& kernel) : kernel_(kernel) {}
        void start(const Ranked& query, Scratch&) override {
            top_ = std::min(kernel_.measure_.cutoff, query.retrieved);
            total_ = kernel_.total(query);
            found_.assign(1, 0);
            for (std::int32_t p = 0; p < top_; ++p) found_.push_back(found_[p] + relevant(query.at[p]));
        }
        double exchange(const double* at, std::int32_t p) override {
            if (p >= top_) return 0.0;
            const std::int32_t upper = relevant(at[p]), lower = relevant(at[p + 1]);
            found_[p + 1] = found_[p] + lower;
            const double drop = p + 1 < top_ ? 1.0 / (static_cast<double>(p + 1) * (p + 2)) : 1.0 / (p + 1);
            return (found_[p] + 1) * drop * (lower - upper) / total_;
        }

    private:
        std::int32_t relevant(double y) const { return y >= kernel_.measure_.rel; }
        const AveragePrecisionKernel& kernel_;
        std::int32_t top_ = 0;
        double total_ = 1;
        std::vector<std::int32_t> found_;
    };
    // (u_j - u_i) (a_i - b_j),  a_i = (w_i (C_{i-1} + 1) - S_i) / N,  b_j = (w_j C_j - S_{j-1}) / N,  S_r = sum_{t<=r} w_t u_t, w_r = 1/r
    class PrecisionSwaps final : public SeparableSwaps {
    public:
        explicit PrecisionSwaps(const AveragePrecisionKernel& kernel) : kernel_(kernel) {}
        void arrange(const Ranked& query, const std::int32_t*, Scratch&) override {
            for (std::vector<double>* room : {&useful_, &upper_, &lower_}) room->resize(query.retrieved + 8);
            separable_ = {useful_.data(), upper_.data(), lower_.data()};
            const double total = kernel_.total(query);
            double found = 0, sum = 0;
            for (std::int32_t p = 0; p < query.retrieved; ++p) {
                const double u = useful_[p] = kernel_.gain_(query.at[p]), weight = p < kernel_.cutoff() ? 1.0 / (p + 1) : 0.0;
                upper_[p] = (weight * (found + 1) - (sum + weight * u)) / total;
                lower_[p] = (weight * (found + u) - sum) / total;
                found += u;
                sum += weight * u;
            }
        }

    private:
        const AveragePrecisionKernel& kernel_;
        std::vector<double> useful_, upper_, lower_;
    };
    AveragePrecision measure_;
};

}  // namespace exactrank
