// Measures that count pairs of documents in the right order: bpref and pairwise-correct.
#pragma once

#include "kernel.hpp"

namespace exactrank {

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

// How many of the documents counted so far lie below a level, in O(log n) (Fenwick 1994).
class LevelCounts {
public:
    LevelCounts(std::vector<std::int64_t>& room, std::size_t levels) : tree_(room) { tree_.assign(levels + 1, 0); }
    void add(std::size_t level, std::int64_t count) {
        for (std::size_t i = level + 1; i < tree_.size(); i += i & -i) tree_[i] += count;
    }
    std::int64_t below(std::size_t level) const {
        std::int64_t sum = 0;
        for (std::size_t i = level; i > 0; i -= i & -i) sum += tree_[i];
        return sum;
    }

private:
    std::vector<std::int64_t>& tree_;
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
        LevelCounts unranked(scratch.counts, levels.size());
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

}  // namespace exactrank
