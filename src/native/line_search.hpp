// The best step along a ray for positional measures: the inner loop of DirectRank (Tan et al. 2013).
//
// As in sweep.hpp documents are lines, and the sweep goes right and left from 0; but only the best interval is wanted, so
// values at the crossings themselves are not. All crossings of the lines that matter are found at once and sorted by a
// network; then, in that order, the overtaken line loses a rank and the overtaker gains one. Where several lines meet the
// order of their exchanges does not matter: what each moves adds up to the same. Where few documents are worth something each
// of them is followed alone, through its own crossings. Where many lines matter they are taken by windows.hpp, some crossings at
// a time. Queries are merged through a histogram over alpha, and only the bins that can hold the optimum are sorted. The events of
// a query that has very many are not kept: streamed_best.hpp merges them as they come.
#pragma once

#include <optional>
#include <span>
#include <tuple>

#include "best_interval.hpp"
#include "bound_measure.hpp"
#include "crossings.hpp"
#include "kernel.hpp"
#include "streamed_best.hpp"

namespace exactrank {

// All queries of a fit: what does not change from step to step is worked out once.
class LineSearch {
public:
    // Of a part of all queries, `total` is the weight of all that count and `peak` what none exceeds.
    LineSearch(const BoundMeasure& measure, const SearchRoom& room, std::optional<double> total = {}, std::optional<double> peak = {})
        : indptr_(measure.indptr.begin(), measure.indptr.end()),
          mark_ties_(measure.mark_ties),
          cutoff_(measure.kernel->cutoff()),
          room_(room),
          starts_(query_blocks(indptr_)),
          tie_key_(measure.tie_key.begin(), measure.tie_key.end()) {
        const std::size_t documents = measure.documents(), queries = measure.queries();
        score_.resize(documents), worth_.resize(documents), document_.resize(documents), per_rank_.resize(documents);
        constant_.resize(queries), least_.resize(queries), retrieved_.resize(queries);
        has_ties_.resize(queries), alike_.resize(queries), left_out_.resize(queries);
        counted_.resize(queries);
        weigh(measure, total, peak);
        events_.resize(starts_.size() - 1), histograms_.resize(starts_.size() - 1), unkept_.resize(starts_.size() - 1);
    }
    std::size_t documents() const { return score_.size(); }
    std::size_t queries() const { return value_.size(); }

    // Which queries count, and what no query exceeds: with the weight of all that count, what the parts of a whole need of each other.
    const std::vector<std::uint8_t>& counted() const { return counted_; }
    double peak() const { return peak_; }
    const FixedPoint& fixed() const { return fixed_; }

    // Takes the scores at 0 of the searches to come, and returns the value there.
    std::int64_t rank(std::span<const double> scores, int threads) {
        parallel_for(starts_.size() - 1, threads, [&](std::size_t b) {
            network::Buffer keys;
            std::vector<std::uint8_t> tied;
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) rank_one(scores, q, keys, tied);
        });
        std::int64_t sum = 0;
        for (const double value : value_) sum += fixed_(value);
        return sum;
    }
    // Is there a value? Else it is what it comes to: not a number, or infinite.
    bool has_value() const { return std::isfinite(peak_) && total_weight_ > 0; }
    double no_value() const { return std::accumulate(value_.begin(), value_.end(), 0.0); }

    // What is known of the function along a line: its events' histogram, and its values beside 0.
    struct Outline {
        const Histogram& histogram;
        std::int64_t left, right;
        bool ties;  // may these two differ?
    };
    template <class Slope>
    Outline outline(std::span<const Slope> slopes, double low, double high, int threads) {
        const std::size_t blocks = starts_.size() - 1;
        std::vector<std::int64_t> right(blocks), left(blocks);
        parallel_for(blocks, threads, [&](std::size_t b) {
            SideScratch side;
            events_[b].clear(), unkept_[b].clear();
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
                right[b] += fixed_(high > 0 ? search(slopes, q, +1, high, side, b) : value_[q]);
                left[b] += fixed_(low < 0 ? search(slopes, q, -1, -low, side, b) : value_[q]);
            }
            histograms_[b].clear();
            histograms_[b].add(events_[b], fixed_);
        });
        total_.clear();
        for (std::size_t b = 0; b < blocks; ++b) total_.add(histograms_[b]);
        const bool ties = std::any_of(has_ties_.begin(), has_ties_.end(), [](std::uint8_t t) { return t != 0; });
        return {total_, std::accumulate(left.begin(), left.end(), std::int64_t{0}), std::accumulate(right.begin(), right.end(), std::int64_t{0}), ties};
    }
    // Of the last outline, whose events were all kept.
    std::vector<FixedEvent> events_in_bins(std::span<const std::uint32_t> bins, std::optional<std::int64_t> at_zero, int threads) const {
        return events_in(events_, bins, fixed_, at_zero, threads);
    }
    std::pair<double, double> around(std::uint32_t edge, double low, double high, int threads) const {
        return events_around(events_, edge, low, high, threads);
    }
    template <class Slope>
    Best best(std::span<const Slope> slopes, double low, double high, int threads) {
        const Outline found = outline(slopes, low, high, threads);
        FixedBest best;
        if (std::any_of(unkept_.begin(), unkept_.end(), [](const auto& sides) { return !sides.empty(); })) {
            Outwards leftwards{sources(slopes, -1, -low), -1, -low, found.left, fixed_}, rightwards{sources(slopes, +1, high), +1, high, found.right, fixed_};
            best = streamed_best(leftwards, rightwards, found.ties);
        } else {
            const auto at_zero = found.ties ? std::optional(found.right - found.left) : std::nullopt;
            if (at_zero) total_.add(Histogram::half, {*at_zero, std::max<std::int64_t>(*at_zero, 0)});
            const EventSource events{[&](const std::vector<std::uint32_t>& bins) { return events_in_bins(bins, at_zero, threads); },
                                     [&](std::uint32_t edge, double from, double to) {
                                         if (at_zero) (edge > Histogram::half ? from : to) = edge > Histogram::half ? std::max(from, 0.0) : std::min(to, 0.0);
                                         return around(edge, from, to, threads);
                                     }};
            best = BestInterval(events, total_, found.left, fixed_).find(low, high);
        }
        return {best.low, best.high, has_value() ? fixed_.back(best.value) : no_value()};
    }
    // The same by Algorithm 2 as published: all jumping points of all queries, sorted and added up. Fills how many each has.
    template <class Slope>
    Best best_as_published(std::span<const Slope> slopes, int threads, std::span<std::int64_t> counts) {
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
    void weigh(const BoundMeasure& measure, std::optional<double> of_all, std::optional<double> peak) {
        const Kernel& kernel = *measure.kernel;
        const std::span<const double> weight = measure.weight;
        const std::vector<double>& discount = *kernel.common_discount();
        Scratch scratch;
        double total = 0;
        std::size_t longest = 0;
        std::vector<double> largest;  // of the discounts down to a rank
        for (const double d : discount) largest.push_back(std::max(largest.empty() ? 0.0 : largest.back(), std::abs(d)));
        Breath breath;
        for (std::size_t q = 0; q + 1 < indptr_.size(); ++q) {
            const std::int32_t count = measure.count(q);
            breath.after(16 * static_cast<std::size_t>(count));
            const Ranked query{measure.grades.data() + indptr_[q], nullptr, nullptr, count, count};
            const double empty = kernel.is_empty(query) ? kernel.value(query, scratch) : 0.0;
            counted_[q] = !std::isnan(empty);
            total += counted_[q] ? weight[q] : 0.0;
            constant_[q] = std::isnan(empty) ? 0.0 : empty * weight[q];
            double* worth = per_rank_.data() + indptr_[q];
            kernel.worths(query, scratch, worth);
            double most = std::isnan(empty) ? 0.0 : std::abs(empty);
            for (std::int32_t i = 0; i < count; ++i)
                most += std::abs(worth[i]) * (largest.empty() ? 0.0 : largest[std::min<std::size_t>(count, largest.size()) - 1]);
            peak_ = std::max(peak_, std::isnan(most) ? HUGE_VAL : most);
            for (std::int32_t i = 0; i < count; ++i) worth[i] *= weight[q];
            left_out_[q] = alike_[q] = weight[q] == 0;
            longest = std::max<std::size_t>(longest, count);
        }
        total_weight_ = of_all.value_or(total);
        peak_ = peak.value_or(peak_);
        fixed_ = FixedPoint(peak_);
        for (double& worth : per_rank_) worth /= total_weight_;
        for (double& constant : constant_) constant /= total_weight_;
        value_ = constant_;
        discount_.assign(longest + 1, 0.0);
        std::copy(discount.begin(), discount.begin() + std::min({discount.size(), longest, static_cast<std::size_t>(cutoff_)}), discount_.begin());
        drop_.resize(longest);
        for (std::size_t r = 0; r < longest; ++r) drop_[r] = discount_[r] - discount_[r + 1];
    }
    void rank_one(std::span<const double> scores, std::size_t q, network::Buffer& keys, std::vector<std::uint8_t>& tied) {
        if (left_out_[q]) return;
        const std::int64_t begin = indptr_[q];
        const auto count = static_cast<std::int32_t>(indptr_[q + 1] - begin);
        std::int32_t* order = document_.data() + begin;
        tied.resize(count);
        const QueryScores query{scores.data() + begin, tie_key_.empty() ? nullptr : tie_key_.data() + begin, count};
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
    // Lines that matter on one side of a query, and its value right beside 0.
    struct LaidOut {
        std::int32_t lines;
        double beside;
    };
    // One side of a query whose events are too many to be kept.
    struct Unkept {
        std::size_t query;
        double sign;
    };

    template <class Slope>
    LaidOut lay_out(std::span<const Slope> slopes, std::size_t q, double sign, double limit, SideScratch& side) const {
        const std::int32_t n = retrieved_[q];
        const std::int64_t begin = indptr_[q];
        if (alike_[q]) return {0, value_[q]};
        side.reserve(n);
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (std::int32_t p = 0; p < n; ++p) {
            const double slope = side.slope[p] = sign * static_cast<double>(slopes[begin + document_[begin + p]]);
            least = slope < least ? slope : least;
            most = slope > most ? slope : most;
        }
        if (least == most) return {0, value_[q]};
        std::copy(score_.begin() + begin, score_.begin() + begin + n, side.score.begin());
        for (std::int32_t p = 0; p < n; ++p) side.worth[p] = worth_[begin + p] - least_[q];
        double value = value_[q];
        if (has_ties_[q]) {
            order_ties(side, n);
            value = constant_[q];
            for (std::int32_t p = 0; p < n; ++p) value += (side.worth[p] + least_[q]) * discount_[p];
        }
        for (std::int32_t p = 0; p < n; ++p) side.end[p] = std::isinf(limit) ? side.slope[p] : side.score[p] + limit * side.slope[p];
        return {keep_those_that_matter(side, n, cutoff_), value};
    }
    // Appends the events of one side of a query to those of block b, and returns its value right beside 0.
    template <class Slope>
    double search(std::span<const Slope> slopes, std::size_t q, double sign, double limit, SideScratch& side, std::size_t b) {
        const auto [m, beside] = lay_out(slopes, q, sign, limit, side);
        if (m > room_.lines) {
            if (!keep_all(windows(side, m, limit), sign, events_[b])) unkept_[b].push_back({q, sign});
        } else if (few_are_useful(side, m)) {
            append_one_by_one(side, m, limit, discount_.data(), sign, events_[b]);
        } else if (m > 0) {
            const std::int32_t crossings = sorted_crossings(side, m, limit);
            events_[b].insert(events_[b].end(), side.events.data(), exchanged(side, m, crossings, drop_.data(), sign, side.events.data()));
        }
        return beside;
    }
    // Is it quicker to follow each line that is worth something alone? Then two of them are compared twice.
    static bool few_are_useful(const SideScratch& side, std::int32_t m) {
        return 2 * std::count_if(side.worth.begin(), side.worth.begin() + m, [](double worth) { return worth != 0; }) < m;
    }
    Windows windows(const SideScratch& side, std::int32_t m, double limit) const {
        auto lines = [&](const std::vector<double>& numbers) { return std::span(numbers).first(m); };
        return Windows(lines(side.score), lines(side.slope), lines(side.worth), {discount_, drop_, cutoff_}, room_.exchanges, limit);
    }
    // Appends the events of a side, unless they are too many: then it appends none, and is false.
    bool keep_all(Windows windows, double sign, std::vector<Event>& events) const {
        const std::size_t before = events.size();
        for (std::vector<Event> some; windows.next(some);) {
            for (const Event& event : some) events.push_back({sign * event.at, sign * event.change});
            if (events.size() - before <= room_.events) continue;
            events.resize(before);
            events.shrink_to_fit();
            return false;
        }
        return true;
    }
    // Those of one side of 0: all that were kept, and of other queries as they come.
    template <class Slope>
    std::vector<Source> sources(std::span<const Slope> slopes, double sign, double limit) const {
        std::vector<Source> found;
        std::vector<Event> kept;
        SideScratch side;
        for (std::size_t b = 0; b < unkept_.size(); ++b) {
            for (const Event& event : events_[b])
                if (std::signbit(event.at) == (sign < 0)) kept.push_back({sign * event.at, sign * event.change});
            for (const Unkept& unkept : unkept_[b]) {
                if (unkept.sign != sign) continue;
                const std::int32_t m = lay_out(slopes, unkept.query, sign, limit, side).lines;
                found.emplace_back(windows(side, m, limit));
            }
        }
        sort_long(kept.begin(), kept.end(), [](const Event& a, const Event& b) { return a.at != b.at ? a.at < b.at : a.change < b.change; });
        found.emplace_back(std::move(kept));
        return found;
    }
    // Orders lines of equal scores; those of equal slopes, too, stay as they are.
    static void steepest_first(SideScratch& side, std::int32_t first, std::int32_t last) {
        constexpr std::int32_t few = 64;
        if (last - first <= few) {
            for (std::int32_t p = first + 1; p < last; ++p)
                for (std::int32_t i = p; i > first && side.slope[i] > side.slope[i - 1]; --i) {
                    std::swap(side.slope[i], side.slope[i - 1]);
                    std::swap(side.worth[i], side.worth[i - 1]);
                }
            return;
        }
        std::vector<std::pair<double, double>> lines;
        for (std::int32_t p = first; p < last; ++p) lines.emplace_back(side.slope[p], side.worth[p]);
        std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        for (std::int32_t p = first; p < last; ++p) std::tie(side.slope[p], side.worth[p]) = lines[p - first];
    }
    // Of equal scores the steeper comes first; lines that coincide share what they are worth where ties count as a mean.
    void order_ties(SideScratch& side, std::int32_t n) const {
        for (std::int32_t first = 0, last; first < n; first = last) {
            for (last = first + 1; last < n && side.score[last] == side.score[first];) ++last;
            steepest_first(side, first, last);
            for (std::int32_t a = first, b; mark_ties_ && a < last; a = b) {
                for (b = a + 1; b < last && side.slope[b] == side.slope[a];) ++b;
                std::fill(side.worth.begin() + a, side.worth.begin() + b, std::accumulate(side.worth.begin() + a, side.worth.begin() + b, 0.0) / (b - a));
            }
        }
    }
    std::vector<std::int64_t> indptr_;
    bool mark_ties_;
    std::int32_t cutoff_;
    SearchRoom room_;
    std::vector<std::size_t> starts_;
    std::vector<double> tie_key_, per_rank_;  // by document
    std::vector<double> constant_;            // of a query, whatever its order
    std::vector<double> discount_, drop_;     // by position
    std::vector<double> score_, worth_;       // by position in the ranking at 0
    std::vector<std::int32_t> document_;
    std::vector<std::int32_t> retrieved_;
    std::vector<double> least_;                   // that a document of the query is worth
    std::vector<std::uint8_t> left_out_;          // has the query no weight?
    std::vector<std::uint8_t> has_ties_, alike_;  // is the value the same whatever the order?
    std::vector<double> value_;                   // at 0, by query
    std::vector<std::uint8_t> counted_;           // is the query not skipped?
    double total_weight_ = 0, peak_ = 0;
    FixedPoint fixed_;
    std::vector<std::vector<Event>> events_;   // by block
    std::vector<std::vector<Unkept>> unkept_;  // by block
    std::vector<Histogram> histograms_;
    Histogram total_;
};

}  // namespace exactrank
