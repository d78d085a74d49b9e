// Cascade measures (ERR, RR, success): a reader goes down the list and stops at rank r with chance u_r.
//
//   sum_r c_r u_r prod_{t<r} (1 - u_t)                                                                              (1)
#pragma once

#include "measures/kernel.hpp"
#include "support/interrupt.hpp"

namespace exactrank {

struct Cascade {
    std::vector<double> discount;
    std::int32_t cutoff;
};

// With S_r the chance of reading past rank r, (1) is sum_r c_r (S_{r-1} - S_r). In a group of g tied documents the mean
// of S after m of them is the mean product of m of the g factors 1 - u, built up one document at a time:
//   S(n, m) = (n - m)/n S(n-1, m) + m/n (1 - u_n) S(n-1, m-1).                                                     (2)
template <class GainFunction>
class CascadeKernel final : public GainKernel<GainFunction> {
public:
    CascadeKernel(Cascade measure, const GainFunction& gain, double empty)
        : GainKernel<GainFunction>(gain, measure.cutoff, empty), measure_(std::move(measure)) {}
    std::unique_ptr<Walk> walk() const override { return std::make_unique<CascadeWalk>(measure_, this->gain_); }
    std::unique_ptr<Swaps> swaps() const override { return std::make_unique<CascadeSwaps>(measure_, this->gain_); }
    std::size_t longest() const override { return longest_for(measure_.discount, measure_.cutoff); }

private:
    // P_{p-1} (c_p - c_{p+1}) (u_j - u_i), with P the chance of reading so far
    class CascadeWalk final : public Walk {
    public:
        CascadeWalk(const Cascade& measure, const GainFunction& gain) : measure_(measure), gain_(gain) {}
        void start(const Ranked& query, Scratch&) override {
            top_ = std::min(measure_.cutoff, query.retrieved);
            reach_.assign(1, 1.0);
            for (std::int32_t p = 0; p < top_; ++p) reach_.push_back(reach_[p] * (1 - gain_(query.at[p])));
        }
        double exchange(const double* at, std::int32_t p) override {
            if (p >= top_) return 0.0;
            const double upper = gain_(at[p]), lower = gain_(at[p + 1]), next = p + 1 < top_ ? measure_.discount[p + 1] : 0.0;
            reach_[p + 1] = reach_[p] * (1 - lower);
            return reach_[p] * (measure_.discount[p] - next) * (lower - upper);
        }

    private:
        const Cascade& measure_;
        GainFunction gain_;
        std::int32_t top_ = 0;
        std::vector<double> reach_;
    };

    // (u_j - u_i) P_{i-1} (c_i - B_ij - c_j Q_ij), with B what is gained between i and j, and Q the chance of passing those between
    class CascadeSwaps final : public Swaps {
    public:
        CascadeSwaps(const Cascade& measure, const GainFunction& gain) : measure_(measure), gain_(gain) {}
        void arrange(const Ranked& query, const std::int32_t*, Scratch&) override {
            top_ = std::min(measure_.cutoff, query.retrieved);
            useful_.resize(query.retrieved);
            std::transform(query.at, query.at + query.retrieved, useful_.begin(), gain_);
            reach_.assign(1, 1.0);
            for (std::int32_t p = 0; p < top_; ++p) reach_.push_back(reach_[p] * (1 - useful_[p]));
        }
        void row(std::int32_t i, std::int32_t last, double* delta) override {
            double gained = 0, pass = 1;
            for (std::int32_t j = i + 1; j < last; ++j) {
                const double discount = j < top_ ? measure_.discount[j] : 0.0;
                delta[j] = (useful_[j] - useful_[i]) * reach_[i] * (measure_.discount[i] - gained - discount * pass);
                gained += discount * useful_[j] * pass;
                pass *= 1 - useful_[j];
            }
        }

    private:
        const Cascade& measure_;
        GainFunction gain_;
        std::int32_t top_ = 0;
        std::vector<double> useful_, reach_;
    };

    double value_of(const Ranked& query, Scratch& scratch) const override {
        const std::int32_t top = std::min(measure_.cutoff, query.retrieved);
        double sum = 0, reach = 1;
        for (std::int32_t first = 0, last; first < top && reach > 0; first = last) {
            last = query.tie_end(first);
            if (last - first == 1) {
                const double u = this->gain_(query.at[first]);
                sum += measure_.discount[first] * u * reach;
                reach *= 1 - u;
                continue;
            }
            const std::int32_t end = std::min(last, top);
            const std::vector<double>& survival = mean_survival(query, first, last, end - first, scratch.values);
            for (std::int32_t r = first; r < end; ++r) sum += measure_.discount[r] * reach * (survival[r - first] - survival[r - first + 1]);
            reach *= survival[end - first];
        }
        return sum;
    }
    // (2), for m up to `deepest`
    const std::vector<double>& mean_survival(const Ranked& query, std::int32_t first, std::int32_t last, std::int32_t deepest,
                                             std::vector<double>& survival) const {
        survival.assign(static_cast<std::size_t>(deepest) + 1, 0.0);
        survival[0] = 1;
        Breath breath;
        for (std::int32_t n = 1; n <= last - first; ++n) {
            breath.after(static_cast<std::size_t>(std::min(n, deepest)));
            const double pass = 1 - this->gain_(query.at[first + n - 1]);
            for (std::int32_t m = std::min(n, deepest); m > 0; --m) survival[m] = ((n - m) * survival[m] + m * pass * survival[m - 1]) / n;
        }
        return survival;
    }
    Cascade measure_;
};

}  // namespace exactrank
