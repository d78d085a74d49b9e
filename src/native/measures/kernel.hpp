// What the kernels of all measures share: a query in ranked order, and a value of it.
//
// With `tied` given, a value is the mean over all orders of the tied documents (McSherry & Najork 2008): each family of
// measures has it in closed form, stated at its kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "measures/gain.hpp"
#include "support/doubles.hpp"
#include "support/sort.hpp"

namespace exactrank {

// One query's documents, as listed and down the ranking.
struct Ranked {
    const double* grade;       // by document number
    const double* at;          // by position, over the documents that have a rank
    const std::uint8_t* tied;  // by position: does it tie with the one before? null: the order is total
    std::int32_t count, retrieved;

    // One past the last position that ties with `first`.
    std::int32_t tie_end(std::int32_t first) const {
        std::int32_t last = first + 1;
        if (tied)
            while (last < retrieved && tied[last]) ++last;
        return last;
    }
};

// Room that one thread's queries use in turn.
struct Scratch {
    network::Buffer keys;
    std::vector<std::int32_t> order, ranks;
    std::vector<std::uint8_t> tied;
    std::vector<double> ranked, values;
    std::vector<Level> levels;
    std::vector<std::int64_t> counts;
};

constexpr std::int32_t no_cutoff = std::numeric_limits<std::int32_t>::max();

// What the exchanges of neighbors do to the value of one query: constant time each.
class Walk {
public:
    virtual ~Walk() = default;
    // Takes up a query, which is not empty, in its first order; ties do not count.
    virtual void start(const Ranked& query, Scratch& scratch) = 0;
    // The change of the value when positions p and p + 1 exchange; `at` is as it was before.
    virtual double exchange(const double* at, std::int32_t p) = 0;
    // Positions first to last are in their order, after all exchanges among them.
    virtual void settle(const double*, std::int32_t, std::int32_t) {}
};

// delta_j = (u_j - u_i) (a_i - b_j), the swaps of positional measures and of average precision; by position, with room for eight more.
struct Separable {
    const double *u, *a, *b;
};

// What an exchange of any two positions would do to the value of one query.
class Swaps {
public:
    virtual ~Swaps() = default;
    // Takes up a query, which is not empty, for what does not depend on the order.
    virtual void start(const Ranked&, Scratch&) {}
    // Takes up its documents in this order, which is that of `query.at`; ties do not count.
    virtual void arrange(const Ranked& query, const std::int32_t* order, Scratch& scratch) = 0;
    // Fills delta[j], i < j < last, with the change of the value when positions i and j exchange; i lies above the cutoff.
    virtual void row(std::int32_t i, std::int32_t last, double* delta) = 0;
    // The same of all rows, where it is separable; null elsewhere.
    virtual const Separable* separable() const { return nullptr; }
};

static XR_CLONES void separable_row(const Separable& swaps, std::int32_t i, std::int32_t last, double* delta) {
    const double *u = swaps.u, *b = swaps.b, upper = u[i], upper_a = swaps.a[i];
    for (std::int32_t j = i + 1; j < last; ++j) delta[j] = (u[j] - upper) * (upper_a - b[j]);
}

class SeparableSwaps : public Swaps {
public:
    void row(std::int32_t i, std::int32_t last, double* delta) override { separable_row(separable_, i, last, delta); }
    const Separable* separable() const override { return &separable_; }

protected:
    Separable separable_{};
};

// How long a query may be where positions above the cutoff have these discounts.
inline std::size_t longest_for(const std::vector<double>& discount, std::int32_t cutoff) {
    return discount.size() < static_cast<std::size_t>(cutoff) ? discount.size() : std::numeric_limits<std::int32_t>::max();
}

// A measure as the loop over queries sees it.
class Kernel {
public:
    Kernel(std::int32_t cutoff, double empty) : cutoff_(cutoff), empty_(empty) {}
    virtual ~Kernel() = default;
    double value(const Ranked& query, Scratch& scratch) const { return is_empty(query) ? empty_ : value_of(query, scratch); }
    virtual bool is_empty(const Ranked& query) const = 0;
    virtual std::unique_ptr<Walk> walk() const = 0;
    virtual std::unique_ptr<Swaps> swaps() const = 0;
    // The discounts by position where the value is a sum of worth * discount, the same for all queries; null elsewhere.
    virtual const std::vector<double>* common_discount() const { return nullptr; }
    // Then what each of a query's documents is worth, in the order listed.
    virtual void worths(const Ranked&, Scratch&, double*) const {}
    // How many documents per query may have: beyond, positions that matter have no discount.
    virtual std::size_t longest() const { return std::numeric_limits<std::int32_t>::max(); }
    // Positions from here on do not matter.
    std::int32_t cutoff() const { return cutoff_; }

private:
    virtual double value_of(const Ranked& query, Scratch& scratch) const = 0;
    std::int32_t cutoff_;
    double empty_;
};

// A measure for which a query is empty when no document is useful.
template <class GainFunction>
class GainKernel : public Kernel {
public:
    GainKernel(const GainFunction& gain, std::int32_t cutoff, double empty) : Kernel(cutoff, empty), gain_(gain) {}
    bool is_empty(const Ranked& query) const override {
        return std::none_of(query.grade, query.grade + query.count, [&](double y) { return gain_(y) > 0; });
    }

protected:
    GainFunction gain_;
};

}  // namespace exactrank
