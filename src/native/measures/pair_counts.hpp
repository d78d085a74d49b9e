// Measures that count pairs of documents in the right order: bpref and pairwise-correct.
#pragma once

#include "measures/kernel.hpp"

namespace exactrank {

// bpref = 1/R sum over retrieved relevant of 1 - min(judged non-relevant above, R) / min(R, N); grades < 0 are unjudged.
// Among tied documents, each number of the group's non-relevant ones is equally likely to stand above a relevant one.
class BprefKernel final : public GainKernel<Threshold> {
public:
    BprefKernel(double rel, double empty) : GainKernel(Threshold{rel}, no_cutoff, empty) {}
    std::unique_ptr<Walk> walk() const override { return std::make_unique<BprefWalk>(*this); }
    std::unique_ptr<Swaps> swaps() const override { return std::make_unique<BprefSwaps>(*this); }

private:
    bool relevant(double y) const { return y >= gain_.least; }
    bool nonrelevant(double y) const { return y >= 0 && y < gain_.least; }

    // What a relevant document is worth by how many non-relevant ones stand above it.
    struct Credit {
        double total = 0, bound = 0;
        double operator()(double above) const { return above > 0 ? 1 - std::min(above, total) / bound : 1.0; }
    };
    Credit credit_of(const Ranked& query) const {
        double total = 0, others = 0;
        for (std::int32_t i = 0; i < query.count; ++i) total += relevant(query.grade[i]), others += nonrelevant(query.grade[i]);
        return {total, std::min(total, others)};
    }
    double value_of(const Ranked& query, Scratch&) const override {
        const Credit credit = credit_of(query);
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
        return sum / credit.total;
    }
    // An exchange moves one non-relevant document past one relevant document, or changes nothing.
    class BprefWalk final : public Walk {
    public:
        explicit BprefWalk(const BprefKernel& kernel) : kernel_(kernel) {}
        void start(const Ranked& query, Scratch&) override {
            credit_ = kernel_.credit_of(query);
            above_.assign(1, 0.0);
            for (std::int32_t p = 0; p < query.retrieved; ++p) above_.push_back(above_[p] + kernel_.nonrelevant(query.at[p]));
        }
        double exchange(const double* at, std::int32_t p) override {
            const double upper = at[p], lower = at[p + 1];
            above_[p + 1] = above_[p] + kernel_.nonrelevant(lower);
            const int rises = kernel_.relevant(lower) && kernel_.nonrelevant(upper), falls = kernel_.relevant(upper) && kernel_.nonrelevant(lower);
            return rises == falls ? 0.0 : (rises - falls) * (credit_(above_[p]) - credit_(above_[p] + 1)) / credit_.total;
        }

    private:
        const BprefKernel& kernel_;
        Credit credit_;
        std::vector<double> above_;
    };
    // The two documents change what stands above them, and above the relevant ones between them by one more or one less.
    class BprefSwaps final : public Swaps {
    public:
        explicit BprefSwaps(const BprefKernel& kernel) : kernel_(kernel) {}
        void arrange(const Ranked& query, const std::int32_t*, Scratch&) override {
            credit_ = kernel_.credit_of(query);
            at_ = query.at;
            above_.assign(1, 0.0);
            more_.assign(1, 0.0);
            less_.assign(1, 0.0);
            for (std::int32_t p = 0; p < query.retrieved; ++p) {
                const double above = above_[p], hit = kernel_.relevant(at_[p]) && credit_.bound > 0;
                more_.push_back(more_[p] + (hit > 0 ? credit_(above + 1) - credit_(above) : 0.0));
                less_.push_back(less_[p] + (hit > 0 ? credit_(above - 1) - credit_(above) : 0.0));
                above_.push_back(above + kernel_.nonrelevant(at_[p]));
            }
        }
        void row(std::int32_t i, std::int32_t last, double* delta) override {
            const bool upper = kernel_.relevant(at_[i]);
            const int upper_other = kernel_.nonrelevant(at_[i]);
            for (std::int32_t j = i + 1; j < last; ++j) {
                const bool lower = kernel_.relevant(at_[j]);
                const int change = kernel_.nonrelevant(at_[j]) - upper_other;
                delta[j] = 0;
                if ((upper && lower) || credit_.bound == 0) continue;
                if (change != 0) delta[j] = change > 0 ? more_[j] - more_[i + 1] : less_[j] - less_[i + 1];
                if (upper) delta[j] += credit_(above_[j] + change) - credit_(above_[i]);
                if (lower) delta[j] += credit_(above_[i]) - credit_(above_[j]);
                delta[j] /= credit_.total;
            }
        }

    private:
        const BprefKernel& kernel_;
        Credit credit_;
        const double* at_ = nullptr;
        std::vector<double> above_, more_, less_;  // sums over the positions before
    };
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

// How many pairs of unlike usefulness there are.
inline double pairs_of(const std::vector<Level>& levels) {
    double pairs = 0, seen = 0;
    for (const Level& level : levels) {
        pairs += seen * static_cast<double>(level.count);
        seen += static_cast<double>(level.count);
    }
    return pairs;
}

// The share of pairs of unlike usefulness whose more useful document is ranked above the other; tied pairs count half.
// A query without such a pair is empty.
template <class GainFunction>
class PairwiseCorrectKernel final : public Kernel {
public:
    PairwiseCorrectKernel(const GainFunction& gain, double empty) : Kernel(no_cutoff, empty), gain_(gain) {}
    bool is_empty(const Ranked& query) const override {
        return std::all_of(query.grade, query.grade + query.count, [&](double y) { return gain_(y) == gain_(query.grade[0]); });
    }
    std::unique_ptr<Walk> walk() const override { return std::make_unique<PairWalk>(gain_); }
    std::unique_ptr<Swaps> swaps() const override { return std::make_unique<PairSwaps>(gain_); }

private:
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
    class PairWalk final : public Walk {
    public:
        explicit PairWalk(const GainFunction& gain) : gain_(gain) {}
        void start(const Ranked& query, Scratch& scratch) override {
            scratch.values.resize(query.count);
            std::transform(query.grade, query.grade + query.count, scratch.values.begin(), gain_);
            levels_from_top(scratch.values.data(), query.count, query.count, scratch.levels);
            pairs_ = pairs_of(scratch.levels);
        }
        double exchange(const double* at, std::int32_t p) override {
            const double upper = gain_(at[p]), lower = gain_(at[p + 1]);
            return ((lower > upper) - (lower < upper)) / pairs_;
        }

    private:
        GainFunction gain_;
        double pairs_ = 1;
    };
    // The document from j stands above those between, the one from i below them.
    class PairSwaps final : public Swaps {
    public:
        explicit PairSwaps(const GainFunction& gain) : gain_(gain) {}
        void arrange(const Ranked& query, const std::int32_t*, Scratch& scratch) override {
            scratch.values.resize(query.count);
            std::transform(query.grade, query.grade + query.count, scratch.values.begin(), gain_);
            levels_from_top(scratch.values.data(), query.count, query.count, scratch.levels);
            const auto& levels = scratch.levels;
            levels_ = levels.size();
            level_.resize(query.retrieved);
            for (std::int32_t p = 0; p < query.retrieved; ++p)
                level_[p] = static_cast<std::size_t>(
                    levels.end() - 1 - std::partition_point(levels.begin(), levels.end(), [&](const Level& l) { return l.value > gain_(query.at[p]); }));
            pairs_ = pairs_of(levels);
        }
        void row(std::int32_t i, std::int32_t last, double* delta) override {
            LevelCounts between(room_, levels_);
            std::int64_t upper_wins = 0;  // less losses, over those between
            for (std::int32_t j = i + 1; j < last; ++j) {
                const std::int64_t below = between.below(level_[j]), above = (j - i - 1) - between.below(level_[j] + 1), step = sign(level_[j], level_[i]);
                delta[j] = static_cast<double>(below - above - upper_wins + step) / pairs_;
                upper_wins -= step;
                between.add(level_[j], 1);
            }
        }

    private:
        static std::int64_t sign(std::size_t a, std::size_t b) { return (a > b) - (a < b); }
        GainFunction gain_;
        std::size_t levels_ = 0;
        std::vector<std::size_t> level_;  // by position, 0 for the least useful
        std::vector<std::int64_t> room_;
        double pairs_ = 1;
    };
    GainFunction gain_;
};

}  // namespace exactrank
