// The four families of measures: the value of a query from its grades in ranked order.
//
//   positional          sum_r u_r d_r / N                            N: 1, min(k, n), sum u, or the largest sum       (1)
//   cascade             sum_r c_r u_r prod_{t<r} (1 - u_t)                                                           (2)
//   average precision   sum_r u_r C_r / r / N                        u in {0, 1}, C_r = sum_{t<=r} u_t               (3)
//   pair counts         sum over pairs in the right order, bpref or pairwise-correct                                 (4)
//
// With `tied` given, the value is the mean over all orders of the tied documents (McSherry & Najork 2008): each family
// has it in closed form, stated at its kernel.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "gain.hpp"
#include "ranking.hpp"

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

// How many of the documents counted so far lie below a level, in O(log n) (Fenwick 1994).
class LevelCounts {
public:
    void reset(std::size_t levels) { tree_.assign(levels + 1, 0); }
    void add(std::size_t level, std::int64_t count) {
        for (std::size_t i = level + 1; i < tree_.size(); i += i & -i) tree_[i] += count;
    }
    std::int64_t below(std::size_t level) const {
        std::int64_t sum = 0;
        for (std::size_t i = level; i > 0; i -= i & -i) sum += tree_[i];
        return sum;
    }

private:
    std::vector<std::int64_t> tree_;
};

// Room that one thread's queries use in turn.
struct Scratch {
    network::Buffer keys;
    std::vector<std::int32_t> order, ranks;
    std::vector<std::uint8_t> tied;
    std::vector<double> ranked, values;
    std::vector<Level> levels;
    LevelCounts unranked;
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

// ---- (1) positional -----------------------------------------------------------------------------------------------

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
    double share_of_ideal(const Ranked& query, Scratch& scratch, std::int32_t top) const {
        const double* discount = measure_.discount.data();
        levels_from_top(query.grade, query.count, measure_.cutoff, scratch.levels);
        const GainFunction gain = scaled_to(this->gain_, scratch.levels[0].value);
        const std::size_t ideal_top = std::min(measure_.cutoff, query.count);
        double ideal = 0;
        std::size_t r = 0;
        for (const Level& level : scratch.levels) {
            const double useful = gain(level.value);
            for (const std::size_t end = std::min(ideal_top, r + level.count); r < end; ++r) ideal += useful * discount[r];
        }
        return discounted_sum(query, gain, discount, top) / ideal;
    }
    // The mean over cutoffs 1 to n of the share of the ideal: a sum with discounts w_r = d_r / n sum_{k>=r} 1 / ideal_k.
    double mean_share_of_ideal(const Ranked& query, Scratch& scratch, std::int32_t top) const {
        const std::size_t cutoffs = std::min(measure_.cutoff, query.count);
        levels_from_top(query.grade, query.count, cutoffs, scratch.levels);
        const GainFunction gain = scaled_to(this->gain_, scratch.levels[0].value);
        std::vector<double>& weight = scratch.values;
        weight.resize(cutoffs);
        double ideal = 0, rest = 0;
        std::size_t r = 0;
        for (const Level& level : scratch.levels) {
            const double useful = gain(level.value);
            for (const std::size_t end = std::min(cutoffs, r + level.count); r < end; ++r) weight[r] = ideal += useful * measure_.discount[r];
        }
        for (; r-- > 0;) weight[r] = measure_.discount[r] * (rest += weight[r] > 0 ? 1 / weight[r] : 0.0) / static_cast<double>(cutoffs);
        return discounted_sum(query, gain, weight.data(), top);
    }
    Positional measure_;
};

// ---- (2) cascade --------------------------------------------------------------------------------------------------

struct Cascade {
    std::vector<double> discount;
    std::int32_t cutoff;
};

// With S_r the chance of reading past rank r, (2) is sum_r c_r (S_{r-1} - S_r). In a group of g tied documents the mean
// of S after m of them is the mean product of m of the g factors 1 - u, built up one document at a time:
//   S(n, m) = (n - m)/n S(n-1, m) + m/n (1 - u_n) S(n-1, m-1).                                                     (2')
template <class GainFunction>
class CascadeKernel final : public GainKernel<GainFunction> {
public:
    CascadeKernel(Cascade measure, const GainFunction& gain, double empty) : GainKernel<GainFunction>(gain, empty), measure_(std::move(measure)) {}

private:
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
            const std::vector<double>& survival = mean_survival(query, first, last, scratch.values);
            for (std::int32_t r = first; r < std::min(last, top); ++r)
                sum += measure_.discount[r] * reach * (survival[r - first] - survival[r - first + 1]);
            reach *= survival[last - first];
        }
        return sum;
    }
    // (2')
    const std::vector<double>& mean_survival(const Ranked& query, std::int32_t first, std::int32_t last, std::vector<double>& survival) const {
        survival.assign(static_cast<std::size_t>(last - first) + 1, 0.0);
        survival[0] = 1;
        for (std::int32_t n = 1; n <= last - first; ++n) {
            const double pass = 1 - this->gain_(query.at[first + n - 1]);
            for (std::int32_t m = n; m > 0; --m) survival[m] = ((n - m) * survival[m] + m * pass * survival[m - 1]) / n;
        }
        return survival;
    }
    Cascade measure_;
};

// ---- (3) average precision ----------------------------------------------------------------------------------------

struct AveragePrecision {
    double rel;  // the least relevant grade
    std::int32_t cutoff;
    bool limit_to_cutoff;  // N = min(relevant, cutoff) rather than relevant
};

struct PrecisionSum {
    double sum;
    std::int32_t found;  // relevant documents down to the cutoff
};

// The ranks of the relevant documents come first, without a branch on which those are; then eight precisions at a time.
static XR_CLONES PrecisionSum precision_sum(const double* at, std::int32_t top, double rel, std::vector<std::int32_t>& room) {
    using Ranks = std::int32_t __attribute__((vector_size(32)));
    room.resize(static_cast<std::size_t>(top) + 8);
    std::int32_t* const ranks = room.data();
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
    return {((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])), found};
}

// A group of g tied documents of which m are relevant puts one at each of its positions with chance m/g, and then
// (i - 1)(m - 1)/(g - 1) of the others stand above it within the group.
inline double tied_precision_sum(const Ranked& query, std::int32_t top, double rel) {
    double sum = 0, above = 0;
    for (std::int32_t first = 0, last; first < top; first = last) {
        last = query.tie_end(first);
        const std::int32_t group = last - first;
        const auto relevant = static_cast<double>(std::count_if(query.at + first, query.at + last, [&](double y) { return y >= rel; }));
        const double step = group > 1 ? (relevant - 1) / (group - 1) : 0.0;
        for (std::int32_t r = first; r < std::min(last, top); ++r)
            sum += relevant / group * (above + 1 + (r - first) * step) / (r + 1);
        above += relevant;
    }
    return sum;
}

class AveragePrecisionKernel final : public GainKernel<Threshold> {
public:
    AveragePrecisionKernel(const AveragePrecision& measure, double empty) : GainKernel(Threshold{measure.rel}, empty), measure_(measure) {}

private:
    double value_of(const Ranked& query, Scratch& scratch) const override {
        const std::int32_t top = std::min(measure_.cutoff, query.retrieved);
        auto [sum, relevant] = precision_sum(query.at, top, measure_.rel, scratch.ranks);
        if (query.tied) sum = tied_precision_sum(query, top, measure_.rel);
        if (top < query.count)
            relevant = static_cast<std::int32_t>(std::count_if(query.grade, query.grade + query.count, [&](double y) { return y >= measure_.rel; }));
        return sum / (measure_.limit_to_cutoff ? std::min(relevant, measure_.cutoff) : relevant);
    }
    AveragePrecision measure_;
};

// ---- (4) pair counts ----------------------------------------------------------------------------------------------

// bpref = 1/R sum over retrieved relevant of 1 - min(judged non-relevant above, R) / min(R, N); grades < 0 are unjudged.
// Among tied documents, each number of the group's non-relevant ones is equally likely to stand above a relevant one.
class BprefKernel final : public GainKernel<Threshold> {
public:
    BprefKernel(double rel, double empty) : GainKernel(Threshold{rel}, empty) {}

private:
    bool relevant(double y) const { return y >= gain_.least; }
    bool nonrelevant(double y) const { return y >= 0 && y < gain_.least; }

    double value_of(const Ranked& query, Scratch&) const override {
        double total = 0, others = 0;
        for (std::int32_t i = 0; i < query.count; ++i) total += relevant(query.grade[i]), others += nonrelevant(query.grade[i]);
        const double bound = std::min(total, others);
        auto credit = [&](double above) { return above > 0 ? 1 - std::min(above, total) / bound : 1.0; };
        double sum = 0, above = 0;
        for (std::int32_t first = 0, last; first < query.retrieved; first = last) {
            last = query.tie_end(first);
            double hits = 0, misses = 0, mean_credit = 0;
            for (std::int32_t r = first; r < last; ++r) hits += relevant(query.at[r]), misses += nonrelevant(query.at[r]);
            if (hits > 0)
                for (double m = 0; m <= misses; ++m) mean_credit += credit(above + m) / (misses + 1);
            sum += hits * mean_credit;
            above += misses;
        }
        return sum / total;
    }
};

// The share of pairs of unlike usefulness whose more useful document is ranked above the other; tied pairs count half.
// A query without such a pair is empty.
template <class GainFunction>
class PairwiseCorrectKernel final : public Kernel {
public:
    PairwiseCorrectKernel(const GainFunction& gain, double empty) : Kernel(empty), gain_(gain) {}

private:
    bool is_empty(const Ranked& query) const override {
        return std::all_of(query.grade, query.grade + query.count, [&](double y) { return gain_(y) == gain_(query.grade[0]); });
    }
    double value_of(const Ranked& query, Scratch& scratch) const override {
        scratch.values.resize(query.count);
        std::transform(query.grade, query.grade + query.count, scratch.values.begin(), gain_);
        const auto& levels = scratch.levels;
        levels_from_top(scratch.values.data(), query.count, query.count, scratch.levels);
        auto level_of = [&](double y) {  // 0 for the least useful
            const double u = gain_(y);
            return static_cast<std::size_t>(levels.end() - 1 - std::partition_point(levels.begin(), levels.end(), [&](const Level& l) { return l.value > u; }));
        };
        LevelCounts& unranked = scratch.unranked;
        unranked.reset(levels.size());
        std::int64_t pairs = 0, halves = 0;
        for (std::int32_t i = 0; i < query.count; ++i) unranked.add(level_of(query.grade[i]), 1);
        for (std::int32_t i = 0; i < query.count; ++i) pairs += unranked.below(level_of(query.grade[i]));
        // Below a group stand the documents after it; within it, each pair counts half: the mean of both counts.
        for (std::int32_t first = 0, last; first < query.retrieved; first = last) {
            last = query.tie_end(first);
            for (std::int32_t r = first; r < last; ++r) halves += unranked.below(level_of(query.at[r]));
            for (std::int32_t r = first; r < last; ++r) unranked.add(level_of(query.at[r]), -1);
            for (std::int32_t r = first; r < last; ++r) halves += unranked.below(level_of(query.at[r]));
        }
        return 0.5 * static_cast<double>(halves) / static_cast<double>(pairs);
    }
    GainFunction gain_;
};

// ---- all measures of all queries ----------------------------------------------------------------------------------

struct MeasureOf {
    const Kernel* kernel;
    const double* grades;  // of all documents
};

struct Scores {
    const double* score;
    const double* tie_key;  // null: ties in input order
    bool mark_ties;         // ties count as the mean over their orders
    const std::int64_t* indptr;
    std::size_t queries;
};

// Ranks each query once and takes all measures while it is at hand: values[m * queries + q] and retrieved[q]. Returns the
// index of the first score that is NaN or +inf, or -1 when all are sound.
inline std::int64_t evaluate(const Scores& scores, const std::vector<MeasureOf>& measures, int threads, double* values, std::int32_t* retrieved) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::atomic<std::int64_t> first_bad{none};
    for_each_query<Scratch>(scores.indptr, scores.queries, threads, [&](Scratch& scratch, std::size_t q) {
        const std::int64_t begin = scores.indptr[q];
        const auto count = static_cast<std::int32_t>(scores.indptr[q + 1] - begin);
        scratch.order.resize(count);
        scratch.ranked.resize(count);
        scratch.tied.resize(count);
        std::uint8_t* const tied = scores.mark_ties ? scratch.tied.data() : nullptr;
        const QueryScores query{scores.score + begin, scores.tie_key ? scores.tie_key + begin : nullptr, count};
        const std::int64_t ranked = rank_query(scratch.keys, query, scratch.order.data(), tied);
        if (ranked < 0) {
            const std::int64_t bad = begin - 1 - ranked;
            for (auto seen = first_bad.load(); bad < seen && !first_bad.compare_exchange_weak(seen, bad);) {}
            return;
        }
        retrieved[q] = static_cast<std::int32_t>(ranked);
        const double* gathered = nullptr;
        for (std::size_t m = 0; m < measures.size(); ++m) {
            const double* grade = measures[m].grades + begin;
            if (grade != gathered)
                for (std::int32_t r = 0; r < retrieved[q]; ++r) scratch.ranked[r] = grade[scratch.order[r]];
            gathered = grade;
            values[m * scores.queries + q] = measures[m].kernel->value({grade, scratch.ranked.data(), tied, count, retrieved[q]}, scratch);
        }
    });
    return first_bad == none ? -1 : first_bad.load();
}

}  // namespace exactrank
