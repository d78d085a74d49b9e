// The best step along a ray for positional measures: the inner loop of DirectRank (Tan et al. 2013).
//
// As in sweep.hpp documents are lines, and the sweep goes right and left from 0; but only the best interval is wanted, so
// values at the crossings themselves are not. All crossings of the lines that matter are found at once and sorted by a
// network; then, in that order, the overtaken line loses a rank and the overtaker gains one. Where several lines meet the
// order of their exchanges does not matter: what each moves adds up to the same. Where few documents are worth something each
// of them is followed alone, through its own crossings. Where many lines matter they are taken by windows.hpp, some crossings at
// a time. Queries are merged through a histogram over alpha, and only the events in the bins that can hold the optimum are kept and sorted
// (kept_events.hpp): a sample of the queries says which are likely to; where it was wrong, the search is made again. The events of
// a query that has very many are not kept: streamed_best.hpp merges them as they come. A query of negative weight is searched as one of
// positive weight, so that its documents of no worth are worth nothing here too, and what it finds counts with the opposite sign.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>

#include "line_search/best_interval.hpp"
#include "line_search/crossings.hpp"
#include "line_search/outline.hpp"
#include "line_search/streamed_best.hpp"
#include "measures/bound_measure.hpp"
#include "measures/kernel.hpp"

namespace exactrank {

// How fast scores change, and how far to look on either side of 0.
template <class Slope>
struct Along {
    std::span<const Slope> slopes;
    double low, high;
};

// All queries of a fit: what does not change from step to step is worked out once. The measure must outlive it, and so must scores.
class LineSearch {
public:
    // Of a part of all queries, `total` is the weight of all that count and `peak` what none exceeds.
    LineSearch(const BoundMeasure& measure, const SearchRoom& room, std::optional<double> total = {}, std::optional<double> peak = {})
        : indptr_(measure.indptr),
          mark_ties_(measure.mark_ties),
          cutoff_(measure.kernel->cutoff()),
          room_(room),
          starts_(query_blocks(indptr_)),
          tie_key_(measure.tie_key) {
        const std::size_t documents = measure.documents(), queries = measure.queries();
        document_.resize(documents), worth_.resize(documents);
        constant_.resize(queries), least_.resize(queries), retrieved_.resize(queries);
        has_ties_.resize(queries), alike_.resize(queries), left_out_.resize(queries);
        counted_.resize(queries), is_negative_.resize(queries);
        weigh(measure, total, peak);
    }
    std::size_t documents() const { return worth_.size(); }
    std::size_t queries() const { return value_.size(); }

    // Which queries count, and what no query exceeds: with the weight of all that count, what the parts of a whole need of each other.
    const std::vector<std::uint8_t>& counted() const { return counted_; }
    double peak() const { return peak_; }
    const FixedPoint& fixed() const { return fixed_; }

    // Takes the scores at 0 of the searches to come, and returns the value there.
    std::int64_t rank(std::span<const double> scores, int threads) {
        score_ = scores;
        ++rankings_;
        parallel_for(starts_.size() - 1, threads, [&](std::size_t b) {
            RankScratch scratch;
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) rank_one(q, scratch);
        });
        std::int64_t sum = 0;
        for (std::size_t q = 0; q < value_.size(); ++q) sum += fixed_(sense(q) * value_[q]);
        return sum;
    }
    std::size_t rankings() const { return rankings_; }

    // Is there a value? Else it is what it comes to: not a number, or infinite.
    bool has_value() const { return std::isfinite(peak_) && total_weight_ > 0; }
    double no_value() const { return std::accumulate(value_.begin(), value_.end(), 0.0); }

    // One side of a query whose events are too many to be kept.
    struct Unkept {
        std::size_t query;
        double sign;
    };
    // What was found along a line: the sums of all events by bins, those in some bins, and the values beside 0.
    struct Found {
        Sums sums;
        std::vector<std::vector<Event>> events;   // by block
        std::vector<std::vector<Unkept>> unkept;  // by block
        BinSet kept;                              // whose events are at hand
        std::int64_t left = 0, right = 0;
    };
    bool has_ties() const {
        return std::any_of(has_ties_.begin(), has_ties_.end(), [](std::uint8_t t) { return t != 0; });
    }
    template <class Slope>
    void search_along(const Along<Slope>& along, Found& found, int threads) {
        std::vector<std::size_t> sample, others;
        for (std::size_t b = 0; b + 1 < starts_.size(); ++b) (starts_.size() - 1 <= room_.blocks || b % one_in == 0 ? sample : others).push_back(b);
        total_.clear();
        found.events.assign(starts_.size() - 1, {}), found.unkept.resize(starts_.size() - 1);
        found.kept = BinSet(true);
        Beside beside = search_blocks(along, sample, found, true, threads);
        const bool all = std::any_of(sample.begin(), sample.end(), [&](std::size_t b) { return !found.unkept[b].empty(); });
        if (!others.empty()) {
            if (!all) {
                found.kept = likely_bins(total_, beside.left, beside.right, found.events, share_kept);
                for (const std::size_t b : sample) keep_likely(found.events[b], found.kept);
            }
            const Beside more = search_blocks(along, others, found, true, threads);
            beside = {beside.left + more.left, beside.right + more.right};
        }
        found.sums = sums_of(total_), found.left = beside.left, found.right = beside.right;
    }
    // The events in some bins of what was found along the same line, from the same scores.
    template <class Slope>
    std::vector<FixedEvent> events_in_bins(const Along<Slope>& along, Found& found, const BinSet& bins, int threads) {
        keep(along, found, bins, threads);
        return events_in(found.events, bins, fixed_, threads);
    }
    template <class Slope>
    Best best(const Along<Slope>& along, int threads) {
        search_along(along, found_, threads);
        FixedBest best;
        if (std::any_of(found_.unkept.begin(), found_.unkept.end(), [](const auto& sides) { return !sides.empty(); })) {
            keep(along, found_, BinSet(true), threads);
            Outwards leftwards{sources(along.slopes, -1, -along.low), -1, -along.low, found_.left, fixed_};
            Outwards rightwards{sources(along.slopes, +1, along.high), +1, along.high, found_.right, fixed_};
            best = streamed_best(leftwards, rightwards, has_ties());
        } else {
            const auto at_zero = has_ties() ? std::optional(found_.right - found_.left) : std::nullopt;
            const BestInterval search(found_.sums, found_.left, at_zero, fixed_, along.low, along.high);
            auto events = [&](const BinSet& bins) { return events_in_bins(along, found_, bins, threads); };
            const std::vector<std::uint32_t> bins = search.bins();
            const auto inside = bins.empty() ? std::nullopt : search.inside(events(Bins{search.shift(), bins}.wide()));
            const std::uint32_t edge = search.edge();
            best = inside ? *inside
                          : std::apply([&](double below, double above) { return search.at_edge(below, above); },
                                       around(events(bins_beside(found_.sums, edge)), edge, along.low, along.high));
        }
        return {best.low, best.high, has_value() ? fixed_.back(best.value) : no_value()};
    }
    // The same by Algorithm 2 as published: all jumping points of all queries, sorted and added up. Fills how many each has.
    template <class Slope>
    Best best_as_published(std::span<const Slope> slopes, int threads, std::span<std::int64_t> counts) {
        const std::size_t blocks = starts_.size() - 1;
        std::vector<double> leftmost(blocks);
        std::vector<std::vector<Event>> events(blocks);
        parallel_for(blocks, threads, [&](std::size_t b) {
            Lines lines;
            std::vector<std::int32_t> order;
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
                const std::int64_t begin = indptr_[q], before = static_cast<std::int64_t>(events[b].size());
                const std::int32_t n = retrieved_[q];
                lines.score.resize(n), lines.worth.resize(n), lines.slope.resize(n);
                for (std::int32_t p = 0; p < n; ++p) {
                    const std::int64_t i = begin + document_[begin + p];
                    lines.score[p] = score_[i], lines.worth[p] = worth_[i], lines.slope[p] = static_cast<double>(slopes[i]);
                }
                leftmost[b] += sense(q) * (constant_[q] + jumping_points(lines, n, cutoff_, discount_.data(), drop_.data(), order, events[b]));
                for (auto event = events[b].begin() + before; event != events[b].end(); ++event) event->change *= sense(q);
                counts[q] = static_cast<std::int64_t>(events[b].size()) - before;
            }
        });
        std::vector<Event> all;
        for (std::size_t b = 0; b < blocks; ++b) all.insert(all.end(), events[b].begin(), events[b].end());
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
    // By what the value of a query is multiplied, beside the size of its weight.
    double sense(std::size_t q) const { return is_negative_[q] ? -1.0 : 1.0; }
    // What each document is worth at rank 1 (with a discount of 1) to the mean over all queries.
    void weigh(const BoundMeasure& measure, std::optional<double> of_all, std::optional<double> peak) {
        const Kernel& kernel = *measure.kernel;
        const std::span<const double> weight = measure.weight;
        const std::vector<double>& discount = *kernel.common_discount();
        Scratch scratch;
        double total = 0, size = 0;
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
            total += counted_[q] ? weight[q] : 0.0, size += counted_[q] ? std::abs(weight[q]) : 0.0;
            is_negative_[q] = weight[q] < 0;
            constant_[q] = std::isnan(empty) ? 0.0 : empty * std::abs(weight[q]);
            double* worth = worth_.data() + indptr_[q];
            kernel.worths(query, scratch, worth);
            double most = std::isnan(empty) ? 0.0 : std::abs(empty);
            for (std::int32_t i = 0; i < count; ++i)
                most += std::abs(worth[i]) * (largest.empty() ? 0.0 : largest[std::min<std::size_t>(count, largest.size()) - 1]);
            peak_ = std::max(peak_, std::isnan(most) ? HUGE_VAL : most);
            for (std::int32_t i = 0; i < count; ++i) worth[i] *= std::abs(weight[q]);
            left_out_[q] = alike_[q] = weight[q] == 0;
            longest = std::max<std::size_t>(longest, count);
        }
        total_weight_ = of_all.value_or(total);
        peak_ = peak.value_or(peak_of_sum(peak_, total, size));
        fixed_ = FixedPoint(peak_);
        for (double& worth : worth_) worth /= total_weight_;
        for (double& constant : constant_) constant /= total_weight_;
        value_ = constant_;
        discount_.assign(longest + 1, 0.0);
        std::copy(discount.begin(), discount.begin() + std::min({discount.size(), longest, static_cast<std::size_t>(cutoff_)}), discount_.begin());
        drop_.resize(longest);
        for (std::size_t r = 0; r < longest; ++r) drop_[r] = discount_[r] - discount_[r + 1];
    }
    struct RankScratch {
        network::Buffer keys;
        std::vector<std::uint8_t> tied;
        std::vector<double> worth;  // by position
    };
    void rank_one(std::size_t q, RankScratch& scratch) {
        if (left_out_[q]) return;
        const std::int64_t begin = indptr_[q];
        const auto count = static_cast<std::int32_t>(indptr_[q + 1] - begin);
        std::int32_t* order = document_.data() + begin;
        std::vector<std::uint8_t>& tied = scratch.tied;
        tied.resize(count), scratch.worth.resize(count);
        const QueryScores query{score_.data() + begin, tie_key_.empty() ? nullptr : tie_key_.data() + begin, count};
        const std::int32_t n = retrieved_[q] = ranked_count(rank_query(scratch.keys, query, order, tied.data()));
        has_ties_[q] = std::any_of(tied.begin(), tied.begin() + n, [](std::uint8_t t) { return t != 0; });
        double* worth = scratch.worth.data();
        for (std::int32_t p = 0; p < n; ++p) worth[p] = worth_[begin + order[p]];
        least_[q] = n > 0 ? *std::min_element(worth, worth + n) : 0.0;
        value_[q] = constant_[q];
        for (std::int32_t first = 0, last; first < n; first = last) {
            for (last = first + 1; mark_ties_ && last < n && tied[last];) ++last;
            const double share = std::accumulate(worth + first, worth + last, 0.0) / (last - first);
            for (std::int32_t p = first; p < last; ++p) value_[q] += share * discount_[p];
        }
        alike_[q] = std::all_of(worth, worth + n, [&](double w) { return w == worth[0]; });
    }
    // Values right beside 0, added up.
    struct Beside {
        std::int64_t left = 0, right = 0;
    };
    // Searches along the queries of some blocks: keeps their events in the bins that are kept, and adds all of them to the histogram, if `anew`.
    template <class Slope>
    Beside search_blocks(const Along<Slope>& along, std::span<const std::size_t> blocks, Found& found, bool anew, int threads) {
        std::vector<Beside> beside(starts_.size() - 1);
        const std::size_t lanes = std::min<std::size_t>(std::max(threads, 1), blocks.size());
        histograms_.resize(std::max(lanes, histograms_.size()));  // one for each thread: sums of whole numbers are the same in any order
        std::atomic<std::size_t> next{0};
        parallel_for(lanes, threads, [&](std::size_t lane) {
            LaneScratch scratch{histograms_[lane]};
            for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < blocks.size();) {
                breathe();
                beside[blocks[i]] = search_block(along, blocks[i], found, scratch);
            }
        });
        Beside sum;
        for (const Beside& each : beside) sum.left += each.left, sum.right += each.right;
        for (std::size_t lane = 0; anew && lane < lanes; ++lane) total_.add(histograms_[lane]);
        return sum;
    }
    struct LaneScratch {
        explicit LaneScratch(EventHistogram& own) : histogram(own) { histogram.clear(); }
        EventHistogram& histogram;
        SideScratch side;
        std::vector<Event> events, kept;  // of a query, and of a block
    };
    template <class Slope>
    Beside search_block(const Along<Slope>& along, std::size_t b, Found& found, LaneScratch& scratch) {
        Beside sum;
        found.unkept[b].clear();
        scratch.kept.clear();
        for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
            scratch.events.clear();
            sum.right += fixed_(sense(q) * (along.high > 0 ? search(along.slopes, q, +1, along.high, scratch, found.unkept[b]) : value_[q]));
            sum.left += fixed_(sense(q) * (along.low < 0 ? search(along.slopes, q, -1, -along.low, scratch, found.unkept[b]) : value_[q]));
            for (Event& event : scratch.events) {
                event.change *= sense(q);
                const std::int64_t change = fixed_(event.change);
                if (change == 0) continue;  // less than the unit of all sums
                const std::uint32_t bin = EventHistogram::bin_of(event.at);
                scratch.histogram.add(bin, EventHistogram::Bin::of(change));
                if (found.kept.has(bin)) scratch.kept.push_back(event);
            }
        }
        found.events[b] = std::vector<Event>(scratch.kept.begin(), scratch.kept.end());
        return sum;
    }
    static void keep_likely(std::vector<Event>& events, const BinSet& likely) {
        std::erase_if(events, [&](const Event& event) { return !likely.has(EventHistogram::bin_of(event.at)); });
        events.shrink_to_fit();
    }
    // Sees to it that the events in some bins are kept.
    template <class Slope>
    void keep(const Along<Slope>& along, Found& found, const BinSet& bins, int threads) {
        if (found.kept.includes(bins)) return;
        found.kept.add(bins);
        std::vector<std::size_t> blocks(starts_.size() - 1);
        std::iota(blocks.begin(), blocks.end(), 0);
        search_blocks(along, blocks, found, false, threads);
    }
    // Lines that matter on one side of a query, and its value right beside 0.
    struct LaidOut {
        std::int32_t lines;
        double beside;
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
        for (std::int32_t p = 0; p < n; ++p) {
            const std::int64_t i = begin + document_[begin + p];
            side.score[p] = score_[i], side.worth[p] = worth_[i] - least_[q];
        }
        double value = value_[q];
        if (has_ties_[q]) {
            order_ties(side, n, mark_ties_);
            value = constant_[q];
            for (std::int32_t p = 0; p < n; ++p) value += (side.worth[p] + least_[q]) * discount_[p];
        }
        for (std::int32_t p = 0; p < n; ++p) side.end[p] = std::isinf(limit) ? side.slope[p] : side.score[p] + limit * side.slope[p];
        return {keep_those_that_matter(side, n, cutoff_), value};
    }
    // Appends the events of one side of a query, or the side to those that are `unkept`, and returns its value right beside 0.
    template <class Slope>
    double search(std::span<const Slope> slopes, std::size_t q, double sign, double limit, LaneScratch& scratch, std::vector<Unkept>& unkept) {
        SideScratch& side = scratch.side;
        std::vector<Event>& events = scratch.events;
        const auto [m, beside] = lay_out(slopes, q, sign, limit, side);
        if (m > room_.lines) {
            if (!keep_all(windows(side, m, limit), sign, events)) unkept.push_back({q, sign});
        } else if (few_are_useful(side, m)) {
            append_one_by_one(side, m, limit, discount_.data(), sign, events);
        } else if (m > 0) {
            const std::int32_t crossings = sorted_crossings(side, m, limit);
            events.insert(events.end(), side.events.data(), exchanged(side, m, crossings, drop_.data(), sign, side.events.data()));
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
        for (std::size_t b = 0; b < found_.unkept.size(); ++b) {
            for (const Event& event : found_.events[b])
                if (std::signbit(event.at) == (sign < 0)) kept.push_back({sign * event.at, sign * event.change});
            for (const Unkept& unkept : found_.unkept[b]) {
                if (unkept.sign != sign) continue;
                const std::int32_t m = lay_out(slopes, unkept.query, sign, limit, side).lines;
                found.emplace_back(windows(side, m, limit), sense(unkept.query));
            }
        }
        sort_long(kept.begin(), kept.end(), [](const Event& a, const Event& b) { return a.at != b.at ? a.at < b.at : a.change < b.change; });
        found.emplace_back(std::move(kept));
        return found;
    }
    static constexpr std::size_t one_in = 16;       // of the blocks is a sample
    static constexpr double share_kept = 1.0 / 16;  // of its events
    std::span<const std::int64_t> indptr_;
    bool mark_ties_;
    std::int32_t cutoff_;
    SearchRoom room_;
    std::vector<std::size_t> starts_;
    std::span<const double> tie_key_, score_;  // by document
    std::vector<double> worth_;                // of a document at rank 1
    std::vector<double> constant_;             // of a query, whatever its order
    std::vector<double> discount_, drop_;      // by position
    std::vector<std::int32_t> document_;       // by position in the ranking at 0
    std::vector<std::int32_t> retrieved_;
    std::vector<double> least_;                   // that a document of the query is worth
    std::vector<std::uint8_t> left_out_;          // has the query no weight?
    std::vector<std::uint8_t> is_negative_;       // is its weight below 0?
    std::vector<std::uint8_t> has_ties_, alike_;  // is the value the same whatever the order?
    std::vector<double> value_;                   // at 0, by query
    std::vector<std::uint8_t> counted_;           // is the query not skipped?
    double total_weight_ = 0, peak_ = 0;
    FixedPoint fixed_;
    std::vector<EventHistogram> histograms_;  // by thread
    EventHistogram total_;
    Found found_;               // of the last search for the best interval
    std::size_t rankings_ = 0;  // how often scores were taken
};

// What a search knows along a line; it must outlive this, and so must slopes. Where it has taken other scores since, this is of no use.
template <class Slope>
class LineOutline : public Outline {
public:
    LineOutline(LineSearch& search, const Along<Slope>& along, int threads)
        : Outline(along.low, along.high), search_(search), along_(along), rankings_(search.rankings()) {
        search.search_along(along, found_, threads);
        sums_ = std::move(found_.sums), left_ = found_.left, right_ = found_.right, ties_ = search.has_ties();
    }

protected:
    std::vector<FixedEvent> events_in(const BinSet& bins, int threads) override {
        if (rankings_ != search_.rankings()) throw std::invalid_argument("the search has taken other scores since this outline was made");
        return search_.events_in_bins(along_, found_, bins, threads);
    }

private:
    LineSearch& search_;
    Along<Slope> along_;
    LineSearch::Found found_;
    std::size_t rankings_;
};

}  // namespace exactrank
