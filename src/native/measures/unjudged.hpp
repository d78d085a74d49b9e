// The smallest and the largest value of a measure over all grades that documents which nobody has judged may have. The mathematics is in
// exactrank/measures/unjudged.py, whose equations are cited here.
//
// Kernels read usefulness in place of grades, at least 0, and below 0 where nobody has judged the document.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "measures/kernel.hpp"

namespace exactrank {

// What an unjudged document may be worth, and whether the largest or the smallest value is asked for.
struct Unjudged {
    double low, high;
    bool upper;

    static bool is(double useful) { return useful < 0; }
    double better(double a, double b) const { return upper ? std::max(a, b) : std::min(a, b); }
    double none() const { return upper ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity(); }
};

// The extremes of sum_i c_i u_i / N of one query, (4) to (7); N is the ideal sum with discounts, or the sum of all u.
class RatioExtremes {
public:
    // Takes up the usefulness of a query's documents. `discount` is null for the sum of all.
    void start(const double* useful, std::int32_t count, const double* discount, std::int32_t cutoff, double low, double high) {
        judged_.clear();
        unjudged_ = 0;
        for (std::int32_t i = 0; i < count; ++i) Unjudged::is(useful[i]) ? static_cast<void>(++unjudged_) : judged_.push_back(useful[i]);
        std::sort(judged_.begin(), judged_.end());
        low_ = low, high_ = high;
        ideal_.assign(1, 0.0);
        for (std::int32_t j = 0; j < count; ++j) ideal_.push_back(ideal_.back() + (!discount ? 1.0 : j < cutoff ? discount[j] : 0.0));
        levels_.clear();
        for (const double u : judged_)
            if (levels_.empty() ? u > low : u > levels_.back().value) levels_.push_back({u, 0, 0, 0.0});
        if (levels_.empty() ? high > low : high > levels_.back().value) levels_.push_back({high, 0, 0, 0.0});
        double below = low;
        for (Level& level : levels_) {
            level.gap = level.value - below;
            below = level.value;
            level.judged = static_cast<std::int32_t>(judged_.end() - std::lower_bound(judged_.begin(), judged_.end(), level.value));
        }
        base_ideal_ = low * ideal_.back();
    }
    // True if all may be worth nothing, so that the measure's rule for empty queries decides.
    bool may_be_empty() const { return base_ideal_ == 0 && (judged_.empty() || judged_.back() <= 0); }

    // Starts a sum of coefficients times usefulness.
    void clear() {
        for (Level& level : levels_) level.sum = 0;
        coefficients_.clear();
        total_ = 0;
    }
    void add(double useful, double coefficient) {
        total_ += coefficient;
        if (Unjudged::is(useful)) {
            if (coefficient != 0) coefficients_.push_back(coefficient);
            return;
        }
        for (Level& level : levels_) {
            if (useful < level.value) break;
            level.sum += coefficient;
        }
    }
    // The largest or the smallest ratio; not finite where no document can be useful.
    double extreme(bool upper) {
        if (!upper)
            for (double& c : coefficients_) c = -c;
        std::sort(coefficients_.begin(), coefficients_.end(), std::greater<>());
        const double sign = upper ? 1.0 : -1.0;
        double value = largest(sign);
        if (!upper)
            for (double& c : coefficients_) c = -c;
        return sign * value;
    }

private:
    struct Level {
        double value;
        std::int32_t judged;  // documents of at least this usefulness
        double gap;           // to the level below
        double sum;           // of the coefficients of these documents
    };
    double ideal(std::int32_t documents) const { return ideal_[documents]; }

    double largest(double sign) {
        sums_.assign(1, 0.0);
        for (const double c : coefficients_) sums_.push_back(sums_.back() + c);
        const auto other = static_cast<std::int32_t>(coefficients_.size()), zeros = unjudged_ - other;
        const auto gainful =
            static_cast<std::int32_t>(std::find_if(coefficients_.begin(), coefficients_.end(), [](double c) { return c < 0; }) - coefficients_.begin());
        double fixed = low_ * total_ * sign;
        for (const Level& level : levels_) fixed += sign * level.gap * level.sum;
        // All unjudged documents at one of two levels, (5): those of the largest coefficients at the upper one. Documents of coefficient 0 are
        // there all or none.
        double best = -std::numeric_limits<double>::infinity();
        auto attempt = [&](std::int32_t upper, double sum) {
            double whole = base_ideal_;
            for (const Level& level : levels_) whole += level.gap * ideal(level.judged + upper);
            if (whole > 0) best = std::max(best, (fixed + (high_ - low_) * sum) / whole);
        };
        for (std::int32_t m = 0; m <= gainful; ++m) attempt(m, sums_[m]);
        for (std::int32_t m = zeros > 0 ? gainful : gainful + 1; m <= other; ++m) attempt(m + zeros, sums_[m]);
        if (!(best >= 0)) return best;
        // More levels, (6): for a ratio t the best number of documents at each level, and its ratio next (Dinkelbach 1967).
        for (int round = 0; round < 1000; ++round) {
            double sum = fixed, whole = base_ideal_;
            for (const Level& level : levels_) {
                std::int32_t at = 0;
                double top = -best * ideal(level.judged);
                for (std::int32_t m = 1; m <= gainful; ++m)
                    if (const double value = sums_[m] - best * ideal(level.judged + m); value > top) top = value, at = m;
                sum += level.gap * sums_[at], whole += level.gap * ideal(level.judged + at);
            }
            if (!(whole > 0) || !(sum / whole > best)) break;
            best = sum / whole;
        }
        return best;
    }

    std::int32_t unjudged_ = 0;
    double low_ = 0, high_ = 0, base_ideal_ = 0, total_ = 0;
    std::vector<double> judged_, ideal_, coefficients_, sums_;
    std::vector<Level> levels_;
};

// A kernel of bounds: its value is recomputed after each exchange that matters.
class UnjudgedKernel : public Kernel {
public:
    UnjudgedKernel(Unjudged unjudged, std::int32_t cutoff, double empty) : Kernel(cutoff, empty), unjudged_(unjudged), empty_(empty) {}
    bool is_empty(const Ranked& query) const override {
        return std::none_of(query.grade, query.grade + query.count, [&](double u) { return (Unjudged::is(u) ? unjudged_.high : u) > 0; });
    }
    std::unique_ptr<Swaps> swaps() const override { throw std::invalid_argument("bounds over unknown grades have no swaps of any two documents"); }

    // The value of one query in many orders.
    class Orders {
    public:
        virtual ~Orders() = default;
        virtual void start(const Ranked& query) = 0;
        virtual double value(const double* at, std::int32_t top) = 0;
    };
    virtual std::unique_ptr<Orders> orders() const = 0;
    std::unique_ptr<Walk> walk() const override { return std::make_unique<RecomputedWalk>(*this); }

protected:
    const Unjudged unjudged_;
    const double empty_;

private:
    double value_of(const Ranked& query, Scratch&) const override {
        const std::unique_ptr<Orders> orders = this->orders();
        orders->start(query);
        return orders->value(query.at, std::min(cutoff(), query.retrieved));
    }
    class RecomputedWalk final : public Walk {
    public:
        explicit RecomputedWalk(const UnjudgedKernel& kernel) : kernel_(kernel), orders_(kernel.orders()) {}
        void start(const Ranked& query, Scratch&) override {
            top_ = std::min(kernel_.cutoff(), query.retrieved);
            orders_->start(query);
            current_ = orders_->value(query.at, top_);
        }
        double exchange(const double* at, std::int32_t p) override {
            if (p >= top_ || at[p] == at[p + 1]) return 0.0;
            order_.assign(at, at + top_);
            order_[p] = at[p + 1];
            if (p + 1 < top_) order_[p + 1] = at[p];
            const double before = current_;
            current_ = orders_->value(order_.data(), top_);
            return current_ - before;
        }

    private:
        const UnjudgedKernel& kernel_;
        std::unique_ptr<Orders> orders_;
        std::vector<double> order_;
        std::int32_t top_ = 0;
        double current_ = 0;
    };
};

// Bounds of nDCG and of recall.
class RatioBoundKernel final : public UnjudgedKernel {
public:
    RatioBoundKernel(Unjudged unjudged, std::vector<double> discount, std::int32_t cutoff, bool is_ideal, bool short_is_zero, double empty)
        : UnjudgedKernel(unjudged, cutoff, empty), discount_(std::move(discount)), is_ideal_(is_ideal), short_is_zero_(short_is_zero) {}
    std::size_t longest() const override { return longest_for(discount_, cutoff()); }
    std::unique_ptr<Orders> orders() const override { return std::make_unique<RatioOrders>(*this); }

private:
    class RatioOrders final : public Orders {
    public:
        explicit RatioOrders(const RatioBoundKernel& kernel) : kernel_(kernel) {}
        void start(const Ranked& query) override {
            const Unjudged& unjudged = kernel_.unjudged_;
            extremes_.start(query.grade, query.count, kernel_.is_ideal_ ? kernel_.discount_.data() : nullptr, kernel_.cutoff(), unjudged.low, unjudged.high);
            counts_nothing_ = kernel_.short_is_zero_ && query.count < kernel_.cutoff();
        }
        double value(const double* at, std::int32_t top) override {
            const Unjudged& unjudged = kernel_.unjudged_;
            double value = 0;
            if (!counts_nothing_) {
                extremes_.clear();
                for (std::int32_t r = 0; r < top; ++r) extremes_.add(at[r], kernel_.discount_[r]);
                value = extremes_.extreme(unjudged.upper);
            }
            return extremes_.may_be_empty() ? unjudged.better(value, kernel_.empty_) : value;
        }

    private:
        const RatioBoundKernel& kernel_;
        RatioExtremes extremes_;
        bool counts_nothing_ = false;
    };
    std::vector<double> discount_;
    bool is_ideal_, short_is_zero_;
};

// Bounds of average precision, (8): the first m unjudged documents are relevant, or the last m.
class PrecisionBoundKernel final : public UnjudgedKernel {
public:
    PrecisionBoundKernel(Unjudged unjudged, std::int32_t cutoff, bool limit_to_cutoff, double empty)
        : UnjudgedKernel(unjudged, cutoff, empty), limit_to_cutoff_(limit_to_cutoff) {}
    std::unique_ptr<Orders> orders() const override { return std::make_unique<PrecisionOrders>(*this); }

private:
    std::int32_t limited(std::int32_t relevant) const { return limit_to_cutoff_ ? std::min(relevant, cutoff()) : relevant; }

    class PrecisionOrders final : public Orders {
    public:
        explicit PrecisionOrders(const PrecisionBoundKernel& kernel) : kernel_(kernel) {}
        void start(const Ranked& query) override {
            relevant_ = unjudged_ = 0;
            for (std::int32_t i = 0; i < query.count; ++i) Unjudged::is(query.grade[i]) ? ++unjudged_ : relevant_ += query.grade[i] > 0;
        }
        double value(const double* at, std::int32_t top) override {
            const Unjudged& unjudged = kernel_.unjudged_;
            places_.clear();
            above_.clear();
            double sum = 0, below = 0;
            std::int32_t found = 0;
            for (std::int32_t r = 0; r < top; ++r) {
                if (Unjudged::is(at[r])) places_.push_back(r), above_.push_back(found);
                if (at[r] > 0) sum += static_cast<double>(++found) / (r + 1), below += 1.0 / (r + 1);
            }
            const auto inside = static_cast<std::int32_t>(places_.size()), outside = unjudged_ - inside;
            double best = unjudged.none();
            auto attempt = [&](std::int32_t more) {
                if (unjudged.low > 0 && more < unjudged_) return;
                const std::int32_t total = relevant_ + more;
                best = unjudged.better(best, total > 0 ? sum / kernel_.limited(total) : kernel_.empty_);
            };
            attempt(0);
            if (unjudged.high <= 0) return best;
            if (unjudged.upper) {
                std::int32_t r = 0;
                for (std::int32_t m = 0; m < inside; ++m) {
                    for (; r < places_[m]; ++r) below -= at[r] > 0 ? 1.0 / (r + 1) : 0.0;
                    sum += (above_[m] + m + 1.0) / (places_[m] + 1) + below;
                    attempt(m + 1);
                }
                if (unjudged.low > 0) attempt(unjudged_);
                return best;
            }
            if (outside > 0) attempt(outside);
            below = 0;
            for (std::int32_t m = 0, r = top - 1; m < inside; ++m) {
                const std::int32_t place = places_[inside - 1 - m];
                for (; r > place; --r) below += at[r] > 0 ? 1.0 / (r + 1) : 0.0;
                sum += (above_[inside - 1 - m] + 1.0) / (place + 1) + below;
                below += 1.0 / (place + 1);
                attempt(outside + m + 1);
            }
            return best;
        }

    private:
        const PrecisionBoundKernel& kernel_;
        std::int32_t relevant_ = 0, unjudged_ = 0;
        std::vector<std::int32_t> places_, above_;  // of the unjudged documents; judged relevant ones above each
    };
    const bool limit_to_cutoff_;
};

// Marks the documents that are among the first `cutoff` anywhere along a ray; grades are the numbers of documents.
class MembershipKernel final : public Kernel {
public:
    MembershipKernel(std::int32_t cutoff, std::span<std::uint8_t> marks) : Kernel(cutoff, 0.0), marks_(marks) {}
    bool is_empty(const Ranked&) const override { return false; }
    std::unique_ptr<Walk> walk() const override { return std::make_unique<MarkingWalk>(*this); }
    std::unique_ptr<Swaps> swaps() const override { throw std::invalid_argument("membership has no swaps"); }

private:
    void mark(const double* at, std::int32_t first, std::int32_t last) const {
        for (std::int32_t p = first; p < last; ++p) marks_[static_cast<std::size_t>(at[p])] = 1;
    }
    double value_of(const Ranked& query, Scratch&) const override {
        mark(query.at, 0, std::min(cutoff(), query.retrieved));
        return 0.0;
    }
    class MarkingWalk final : public Walk {
    public:
        explicit MarkingWalk(const MembershipKernel& kernel) : kernel_(kernel) {}
        void start(const Ranked& query, Scratch&) override {
            top_ = std::min(kernel_.cutoff(), query.retrieved);
            kernel_.mark(query.at, 0, top_);
        }
        double exchange(const double*, std::int32_t) override { return 0.0; }
        void settle(const double* at, std::int32_t first, std::int32_t last) override {
            if (first < top_ && last >= top_) kernel_.mark(at, first, top_);
        }

    private:
        const MembershipKernel& kernel_;
        std::int32_t top_ = 0;
    };
    std::span<std::uint8_t> marks_;
};

}  // namespace exactrank
