// The best step along a ray for positional measures: the inner loop of DirectRank (Tan et al. 2013).
//
// As in sweep.hpp documents are lines, and the sweep goes right and left from 0; but only the best interval is wanted, so
// values at the crossings themselves are not. All crossings of the lines that matter are found at once and sorted by a
// network; then, in that order, the overtaken line loses a rank and the overtaker gains one. Where several lines meet the
// order of their exchanges does not matter: what each moves adds up to the same. Queries are merged through a histogram
// over alpha, and only the bins that can hold the optimum are sorted.
#pragma once

#include "best_interval.hpp"
#include "crossings.hpp"
#include "kernel.hpp"

namespace exactrank {

// All queries of a fit: what does not change from step to step is worked out once.
class LineSearch {
public:
    LineSearch(const Kernel& kernel, const double* grades, const double* tie_key, bool mark_ties, const std::int64_t* indptr, std::size_t queries,
               const double* weight)
        : indptr_(indptr, indptr + queries + 1), mark_ties_(mark_ties), cutoff_(kernel.cutoff()), starts_(query_blocks(indptr, queries)), constant_(queries) {
        const auto documents = static_cast<std::size_t>(indptr[queries]);
        if (tie_key) tie_key_.assign(tie_key, tie_key + documents);
        score_.resize(documents), worth_.resize(documents), document_.resize(documents);
        least_.resize(queries), retrieved_.resize(queries), has_ties_.resize(queries), alike_.resize(queries), left_out_.resize(queries);
        weigh(kernel, grades, weight);
        events_.resize(starts_.size()), histograms_.resize(starts_.size() - 1);
    }
    std::size_t documents() const { return score_.size(); }
    std::size_t queries() const { return value_.size(); }

    // Takes the scores at 0 of the searches to come, and returns the value there.
    double rank(const double* scores, int threads) {
        parallel_for(starts_.size() - 1, threads, [&](std::size_t b) {
            network::Buffer keys;
            std::vector<std::uint8_t> tied;
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) rank_one(scores, q, keys, tied);
        });
        return std::accumulate(value_.begin(), value_.end(), 0.0);
    }
    template <class Slope>
    Best best(const Slope* slopes, double low, double high, int threads) {
        const std::size_t blocks = starts_.size() - 1;
        std::vector<double> right(blocks), left(blocks);
        parallel_for(blocks, threads, [&](std::size_t b) {
            SideScratch side;
            events_[b].clear();
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
                right[b] += high > 0 ? search(slopes, q, +1, high, side, events_[b]) : value_[q];
                left[b] += low < 0 ? search(slopes, q, -1, -low, side, events_[b]) : value_[q];
            }
            histograms_[b].clear();
            histograms_[b].add(events_[b]);
        });
        double right_of_zero = 0, left_of_zero = 0;
        for (std::size_t b = 0; b < blocks; ++b) right_of_zero += right[b], left_of_zero += left[b];
        const bool ties = std::any_of(has_ties_.begin(), has_ties_.end(), [](std::uint8_t t) { return t != 0; });
        events_[blocks].assign(ties, {0.0, right_of_zero - left_of_zero});
        total_.clear();
        for (std::size_t b = 0; b < blocks; ++b) total_.add(histograms_[b]);
        total_.add(events_[blocks]);
        return BestInterval(events_, total_, left_of_zero, threads).find(low, high);
    }
    // The same by Algorithm 2 as published: all jumping points of all queries, sorted and added up. Fills how many each has.
    template <class Slope>
    Best best_as_published(const Slope* slopes, int threads, std::int64_t* counts) {
        const std::size_t blocks = starts_.size() - 1;
        std::vector<double> leftmost(blocks);
        parallel_for(blocks, threads, [&](std::size_t b) {
            Lines lines;
            std::vector<std::int32_t> order;
            events_[b].clear();
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
                const std::int64_t begin = indptr_[q], before = static_cast<std::int64_t>(events_[b].size());
                const std::int32_t n = retrieved_[q];
                lines.score.assign(score_.begin() + begin, score_.begin() + begin + n);
                lines.worth.assign(worth_.begin() + begin, worth_.begin() + begin + n);
                lines.slope.resize(n);
                for (std::int32_t p = 0; p < n; ++p) lines.slope[p] = static_cast<double>(slopes[begin + document_[begin + p]]);
                leftmost[b] += constant_[q] + jumping_points(lines, n, cutoff_, discount_.data(), drop_.data(), order, events_[b]);
                counts[q] = static_cast<std::int64_t>(events_[b].size()) - before;
            }
        });
        std::vector<Event> all;
        for (std::size_t b = 0; b < blocks; ++b) all.insert(all.end(), events_[b].begin(), events_[b].end());
        sort_long(all.begin(), all.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
        double value = std::accumulate(leftmost.begin(), leftmost.end(), 0.0);
        Best best{-HUGE_VAL, all.empty() ? HUGE_VAL : all[0].at, value};
        for (std::size_t i = 0; i < all.size(); ++i) {
            value += all[i].change;
            const double high = i + 1 < all.size() ? all[i + 1].at : HUGE_VAL;
            if (value > best.value + same_value && high > all[i].at) best = {all[i].at, high, value};
        }
        return best;
    }

private:
    // What each document is worth at rank 1 (with a discount of 1) to the mean over all queries.
    void weigh(const Kernel& kernel, const double* grades, const double* weight) {
        const std::vector<double>& discount = *kernel.common_discount();
        per_rank_.resize(static_cast<std::size_t>(indptr_.back()));
        Scratch scratch;
        double total = 0;
        std::size_t longest = 0;
        Breath breath;
        for (std::size_t q = 0; q + 1 < indptr_.size(); ++q) {
            const auto count = static_cast<std::int32_t>(indptr_[q + 1] - indptr_[q]);
            breath.after(16 * static_cast<std::size_t>(count));
            const Ranked query{grades + indptr_[q], nullptr, nullptr, count, count};
            const double empty = kernel.is_empty(query) ? kernel.value(query, scratch) : 0.0;
            total += std::isnan(empty) ? 0.0 : weight[q];
            constant_[q] = std::isnan(empty) ? 0.0 : empty * weight[q];
            double* worth = per_rank_.data() + indptr_[q];
            kernel.worths(query, scratch, worth);
            for (std::int32_t i = 0; i < count; ++i) worth[i] *= weight[q];
            left_out_[q] = alike_[q] = weight[q] == 0;
            longest = std::max<std::size_t>(longest, count);
        }
        for (double& worth : per_rank_) worth /= total;
        for (double& constant : constant_) constant /= total;
        value_ = constant_;
        discount_.assign(longest + 1, 0.0);
        std::copy(discount.begin(), discount.begin() + std::min({discount.size(), longest, static_cast<std::size_t>(cutoff_)}), discount_.begin());
        drop_.resize(longest);
        for (std::size_t r = 0; r < longest; ++r) drop_[r] = discount_[r] - discount_[r + 1];
    }
    void rank_one(const double* scores, std::size_t q, network::Buffer& keys, std::vector<std::uint8_t>& tied) {
        if (left_out_[q]) return;
        const std::int64_t begin = indptr_[q];
        const auto count = static_cast<std::int32_t>(indptr_[q + 1] - begin);
        std::int32_t* order = document_.data() + begin;
        tied.resize(count);
        const QueryScores query{scores + begin, tie_key_.empty() ? nullptr : tie_key_.data() + begin, count};
        retrieved_[q] = ranked_count(rank_query(keys, query, order, tied.data()));
        has_ties_[q] = std::any_of(tied.begin(), tied.begin() + retrieved_[q], [](std::uint8_t t) { return t != 0; });
        for (std::int32_t p = 0; p < retrieved_[q]; ++p) score_[begin + p] = query.score[order[p]], worth_[begin + p] = per_rank_[begin + order[p]];
        const double* worth = worth_.data() + begin;
        least_[q] = retrieved_[q] > 0 ? *std::min_element(worth, worth + retrieved_[q]) : 0.0;
        value_[q] = constant_[q];
        for (std::int32_t first = 0, last; first < retrieved_[q]; first = last) {
            for (last = first + 1; mark_ties_ && last < retrieved_[q] && tied[last];) ++last;
            const double share = std::accumulate(worth + first, worth + last, 0.0) / (last - first);
            for (std::int32_t p = first; p < last; ++p) value_[q] += share * discount_[p];
        }
        alike_[q] = std::all_of(worth, worth + retrieved_[q], [&](double w) { return w == worth[0]; });
    }
    // Appends the events of one side of a query and returns its value right beside 0.
    template <class Slope>
    double search(const Slope* slopes, std::size_t q, double sign, double limit, SideScratch& side, std::vector<Event>& events) {
        const std::int32_t n = retrieved_[q];
        const std::int64_t begin = indptr_[q];
        if (alike_[q]) return value_[q];
        side.reserve(n);
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (std::int32_t p = 0; p < n; ++p) {
            const double slope = side.slope[p] = sign * static_cast<double>(slopes[begin + document_[begin + p]]);
            least = slope < least ? slope : least;
            most = slope > most ? slope : most;
        }
        if (least == most) return value_[q];
        std::copy(score_.begin() + begin, score_.begin() + begin + n, side.score.begin());
        for (std::int32_t p = 0; p < n; ++p) side.worth[p] = worth_[begin + p] - least_[q];
        double value = value_[q];
        if (has_ties_[q]) {
            order_ties(side, n);
            value = constant_[q];
            for (std::int32_t p = 0; p < n; ++p) value += (side.worth[p] + least_[q]) * discount_[p];
        }
        for (std::int32_t p = 0; p < n; ++p) side.end[p] = std::isinf(limit) ? side.slope[p] : side.score[p] + limit * side.slope[p];
        const std::int32_t m = keep_those_that_matter(side, n, cutoff_), crossings = sorted_crossings(side, m, limit);
        events.insert(events.end(), side.events.data(), exchanged(side, m, crossings, drop_.data(), sign, side.events.data()));
        return value;
    }
    // Of equal scores the steeper comes first; lines that coincide share what they are worth where ties count as a mean.
    void order_ties(SideScratch& side, std::int32_t n) const {
        for (std::int32_t first = 0, last; first < n; first = last) {
            for (last = first + 1; last < n && side.score[last] == side.score[first];) ++last;
            for (std::int32_t p = first + 1; p < last; ++p)
                for (std::int32_t i = p; i > first && side.slope[i] > side.slope[i - 1]; --i) {
                    std::swap(side.slope[i], side.slope[i - 1]);
                    std::swap(side.worth[i], side.worth[i - 1]);
                }
            for (std::int32_t a = first, b; mark_ties_ && a < last; a = b) {
                for (b = a + 1; b < last && side.slope[b] == side.slope[a];) ++b;
                std::fill(side.worth.begin() + a, side.worth.begin() + b,
                          std::accumulate(side.worth.begin() + a, side.worth.begin() + b, 0.0) / (b - a));
            }
        }
    }
    std::vector<std::int64_t> indptr_;
    bool mark_ties_;
    std::int32_t cutoff_;
    std::vector<std::size_t> starts_;
    std::vector<double> constant_;           // of a query, whatever its order
    std::vector<double> tie_key_, per_rank_;  // by document
    std::vector<double> discount_, drop_;     // by position
    std::vector<double> score_, worth_;       // by position in the ranking at 0
    std::vector<std::int32_t> document_;
    std::vector<std::int32_t> retrieved_;
    std::vector<double> least_;                   // that a document of the query is worth
    std::vector<std::uint8_t> left_out_;          // has the query no weight?
    std::vector<std::uint8_t> has_ties_, alike_;  // is the value the same whatever the order?
    std::vector<double> value_;  // at 0, by query
    std::vector<std::vector<Event>> events_;  // by block, and at last what happens at 0 itself
    std::vector<Histogram> histograms_;
    Histogram total_;
};

}  // namespace exactrank
