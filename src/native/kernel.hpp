// What the kernels of all measures share: a query in ranked order, and a value of it.
//
// With `tied` given, a value is the mean over all orders of the tied documents (McSherry & Najork 2008): each family of
// measures has it in closed form, stated at its kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "doubles.hpp"
#include "gain.hpp"
#include "sort.hpp"

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

// A measure as the loop over queries sees it.
class Kernel {
public:
    explicit Kernel(double empty) : empty_(empty) {}
    virtual ~Kernel() = default;
    double value(const Ranked& query, Scratch& scratch) const { return is_empty(query) ? empty_ : value_of(query, scratch); }

private:
    virtual bool is_empty(const Ranked& query) const = 0;
    virtual double value_of(const Ranked& query, Scratch& scratch) const = 0;
    double empty_;
};

// A measure for which a query is empty when no document is useful.
template <class GainFunction>
class GainKernel : public Kernel {
public:
    GainKernel(const GainFunction& gain, double empty) : Kernel(empty), gain_(gain) {}

protected:
    GainFunction gain_;

private:
    bool is_empty(const Ranked& query) const override {
        return std::none_of(query.grade, query.grade + query.count, [&](double y) { return gain_(y) > 0; });
    }
};

}  // namespace exactrank
