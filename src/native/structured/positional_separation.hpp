// The most violated ranking for a measure that is a sum of worth * discount over positions (Chapelle, Le & Smola 2007):
//
//   c_i(y) = A at the position of i,    delta(y) = sum_r d_r (worth at r of the best ranking - of y)                       (1)
//
// so that weight delta(y) + c(y) . s is largest for an assignment of documents to positions. Neither A nor d rises with the position.
#pragma once

#include "structured/assignment.hpp"
#include "structured/separation.hpp"

namespace exactrank {

class PositionalSeparation final : public Separation {
public:
    // A and d are by position, equally many; worths one a document.
    PositionalSeparation(std::vector<double> a, std::vector<double> d, const double* worths, const std::int64_t* indptr, std::size_t queries)
        : positions_(static_cast<std::int32_t>(a.size())), a_(std::move(a)), d_(std::move(d)), worths_(worths), level_of_(indptr[queries]), first_level_{0} {
        a_.resize(positions_ + 8), d_.resize(positions_ + 8);
        std::vector<Level> levels;
        Breath breath;
        for (std::size_t q = 0; q < queries; ++q) {
            const std::int64_t n = indptr[q + 1] - indptr[q];
            levels_from_top(worths + indptr[q], n, n, levels);
            add_query(levels, indptr[q], static_cast<std::int32_t>(n));
            breath.after(16 * static_cast<std::size_t>(n));
        }
    }

    bool tells_apart(const RankedScores& ranked) const override { return tells_apart_[ranked.query]; }
    double largest() const override { return a_[0]; }

    void most_violated(const RankedScores& ranked, double weight, Scratch& scratch, std::int32_t* ranking) const override {
        const std::int32_t n = ranked.count, count = positions(n);
        const std::int64_t begin = first_level_[ranked.query], levels = first_level_[ranked.query + 1] - begin;
        scratch.values.resize(n + Columns::numbers_for(levels, count));
        scratch.counts.resize(n + 2 * levels + 1 + Columns::indices_for(levels, count));
        double* score = scratch.values.data();
        std::int64_t *document = scratch.counts.data(), *first = document + n, *next = first + levels + 1;
        first[0] = 0;
        for (std::int64_t l = 0; l < levels; ++l) next[l] = first[l], first[l + 1] = first[l] + std::min<std::int64_t>(count, size_[begin + l]);
        const std::int32_t* level_of = level_of_.data() + ranked.begin;
        for (std::int32_t r = 0; r < n; ++r) {
            const std::int32_t i = ranked.order[r], l = level_of[i];
            if (next[l] < first[l + 1]) score[next[l]] = ranked.score[r], document[next[l]++] = i;
        }
        const Candidates candidates{worth_.data() + begin, first, levels, score};
        Columns columns(candidates, count, score + n, next + levels);
        QuietBreath breath;
        assign(candidates, {a_.data(), d_.data(), weight, count}, columns, breath);
        breath.settle();
        for (std::int32_t r = 0; r < count; ++r) ranking[r] = static_cast<std::int32_t>(document[columns.taker(r)]);
    }
    double coefficients(const RankedScores& ranked, const std::int32_t* ranking, double* c) const override {
        std::fill_n(c, ranked.count, 0.0);
        double value = 0;
        for (std::int32_t r = 0; r < positions(ranked.count); ++r) {
            c[ranking[r]] = a_[r];
            value += worths_[ranked.begin + ranking[r]] * d_[r];
        }
        return ideal_[ranked.query] - value;
    }

private:
    std::int32_t positions(std::int32_t documents) const { return std::min(documents, positions_); }
    void add_query(const std::vector<Level>& levels, std::int64_t begin, std::int32_t n) {
        double ideal = 0;
        std::int32_t r = 0;
        for (const Level& level : levels) {
            worth_.push_back(level.value), size_.push_back(static_cast<std::int32_t>(level.count));
            for (const std::int32_t end = std::min(positions(n), r + size_.back()); r < end; ++r) ideal += level.value * d_[r];
        }
        for (std::int64_t i = begin; i < begin + n; ++i) {
            const auto at = std::lower_bound(levels.begin(), levels.end(), worths_[i], [](const Level& level, double w) { return level.value > w; });
            level_of_[i] = static_cast<std::int32_t>(at - levels.begin());
        }
        const double last = n > positions_ ? 0.0 : d_[n - 1];
        first_level_.push_back(static_cast<std::int64_t>(worth_.size()));
        ideal_.push_back(ideal);
        tells_apart_.push_back(levels.size() > 1 && d_[0] != last);
    }
    std::int32_t positions_;
    std::vector<double> a_, d_;  // with eight zeros more
    const double* worths_;
    std::vector<std::int32_t> level_of_;     // by document: which worth of its query, from the largest
    std::vector<std::int64_t> first_level_;  // by query
    std::vector<double> worth_;              // by level
    std::vector<std::int32_t> size_;
    std::vector<double> ideal_;  // by query
    std::vector<std::uint8_t> tells_apart_;
};

}  // namespace exactrank
