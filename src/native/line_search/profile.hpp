// The mean of any measure over all queries along a ray. Changes are whole numbers of a small unit, so that their sums are the same in any order,
// and parts of the queries can be added up.
#pragma once

#include <optional>

#include "line_search/outline.hpp"
#include "line_search/sweep.hpp"
#include "support/threads.hpp"

namespace exactrank {

// A jump of the mean.
struct FixedJump {
    double at;
    std::int64_t to, from;
};

// Sorts the lists one by one, merges neighbors until one is left, and adds up the jumps at one place.
inline std::vector<FixedJump> merged(std::vector<std::vector<FixedJump>>& lists, int threads) {
    auto earlier = [](const FixedJump& a, const FixedJump& b) { return a.at < b.at; };
    parallel_for(lists.size(), threads, [&](std::size_t i) { std::sort(lists[i].begin(), lists[i].end(), breathing(earlier)); });
    for (std::size_t apart = 1; apart < lists.size(); apart *= 2)
        parallel_for((lists.size() + 2 * apart - 1) / (2 * apart), threads, [&](std::size_t i) {
            const std::size_t a = 2 * apart * i, b = a + apart;
            if (b >= lists.size()) return;
            std::vector<FixedJump> both(lists[a].size() + lists[b].size());
            std::merge(lists[a].begin(), lists[a].end(), lists[b].begin(), lists[b].end(), both.begin(), breathing(earlier));
            lists[a].swap(both);
            lists[b] = {};
        });
    std::vector<FixedJump> all = lists.empty() ? std::vector<FixedJump>{} : std::move(lists[0]);
    std::size_t kept = 0;
    for (const FixedJump& jump : all) {
        if (kept > 0 && all[kept - 1].at == jump.at)
            all[kept - 1].to += jump.to, all[kept - 1].from += jump.from;
        else
            all[kept++] = jump;
    }
    all.resize(kept);
    return all;
}

// Searches along lines for measures of any kind; line_search.hpp is faster for positional ones.
class StepSearch {
public:
    // Of a part of all queries, `total` is the weight of all that count and `peak` what none exceeds.
    StepSearch(const BoundMeasure& measure, std::optional<double> total, std::optional<double> peak)
        : measure_(measure), starts_(query_blocks(measure.indptr)), counted_(measure.queries()), score_(measure.documents()) {
        double sum = 0, size = 0;
        Scratch scratch;
        Breath breath;
        for (std::size_t q = 0; q < measure.queries(); ++q) {
            breath.after(16 * static_cast<std::size_t>(measure.count(q)));
            counted_[q] = !std::isnan(extreme(q, scratch));
            sum += counted_[q] ? measure.weight[q] : 0.0, size += counted_[q] ? std::abs(measure.weight[q]) : 0.0;
        }
        total_weight_ = total.value_or(sum);
        peak_ = peak.value_or(peak_of_sum(peak_, sum, size));
        fixed_ = FixedPoint(peak_);
    }
    std::size_t documents() const { return score_.size(); }

    // Which queries count, and what no query exceeds: with the weight of all that count, what the parts of a whole need of each other.
    const std::vector<std::uint8_t>& counted() const { return counted_; }
    double peak() const { return peak_; }

    // Takes the scores at 0 of the searches to come, and returns the value there.
    std::int64_t rank(std::span<const double> scores, int threads) {
        std::copy(scores.begin(), scores.end(), score_.begin());
        return over_blocks(threads, [&](std::size_t b) {
            std::int64_t sum = 0;
            Scratch scratch;
            Breath breath;
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
                if (!counts(q)) continue;
                sum += fixed(q, value_at_zero(q, scratch));
                breath.after(64 * static_cast<std::size_t>(measure_.count(q)));
            }
            return sum;
        });
    }
    // What is found along a line.
    struct Found {
        Sums sums;
        std::vector<std::vector<FixedEvent>> events;  // by block
        std::int64_t left = 0, right = 0;
        bool ties = false;
    };
    Found search_along(std::span<const double> slopes, double low, double high, int threads) {
        Found found;
        const std::size_t blocks = starts_.size() - 1;
        std::vector<std::int64_t> left(blocks), right(blocks);
        std::vector<std::uint8_t> ties(blocks);
        found.events.resize(blocks);
        const std::int64_t here = over_blocks(threads, [&](std::size_t b) {
            return swept({score_, slopes, low, high}, b, [&](std::size_t q, const Jump& jump) {
                if (jump.at == 0)
                    left[b] -= fixed(q, jump.to), right[b] += fixed(q, jump.from), ties[b] = 1;
                else if (low < jump.at && jump.at < high)  // at an end no interval begins
                    found.events[b].push_back({jump.at, fixed(q, jump.to + jump.from)});
            });
        });
        total_.clear();
        for (const auto& events : found.events)
            for (const FixedEvent& event : events) total_.add(EventHistogram::bin_of(event.at), EventHistogram::Bin::of(event.change));
        found.sums = sums_of(total_);
        found.left = std::accumulate(left.begin(), left.end(), here), found.right = std::accumulate(right.begin(), right.end(), here);
        found.ties = std::count(ties.begin(), ties.end(), 1) > 0;
        return found;
    }

    // All jumps of the function along a line, in order, and its value at 0.
    std::pair<std::vector<FixedJump>, std::int64_t> jumps(std::span<const double> slopes, double low, double high, int threads) const {
        std::vector<std::vector<FixedJump>> lists(starts_.size() - 1);
        const std::int64_t here = over_blocks(threads, [&](std::size_t b) {
            return swept({score_, slopes, low, high}, b,
                         [&](std::size_t q, const Jump& jump) { lists[b].push_back({jump.at, fixed(q, jump.to), fixed(q, jump.from)}); });
        });
        return {merged(lists, threads), here};
    }

private:
    bool counts(std::size_t q) const { return counted_[q] && measure_.weight[q] != 0; }
    // What a value, or a change of it, is worth to the mean.
    std::int64_t fixed(std::size_t q, double value) const { return fixed_(value * measure_.weight[q] / total_weight_); }

    double value_at_zero(std::size_t q, Scratch& scratch) const {
        const std::int32_t count = measure_.count(q);
        const double* grade = measure_.grades.data() + measure_.begin(q);
        scratch.order.resize(count), scratch.ranked.resize(count), scratch.tied.resize(count);
        std::uint8_t* tied = measure_.mark_ties ? scratch.tied.data() : nullptr;
        const std::int32_t retrieved = ranked_count(rank_query(scratch.keys, measure_.scored(q, score_), scratch.order.data(), tied));
        for (std::int32_t r = 0; r < retrieved; ++r) scratch.ranked[r] = grade[scratch.order[r]];
        return measure_.kernel->value({grade, scratch.ranked.data(), tied, count, retrieved}, scratch);
    }
    // The value of a query, best grades first; the peak rises to its size, and to that of the worst first.
    double extreme(std::size_t q, Scratch& scratch) {
        const double* grade = measure_.grades.data() + measure_.begin(q);
        std::vector<double>& at = scratch.ranked;
        at.assign(grade, grade + measure_.count(q));
        const Ranked query{grade, at.data(), nullptr, measure_.count(q), measure_.count(q)};
        sort_long(at.begin(), at.end(), std::greater<>());
        const double best = measure_.kernel->value(query, scratch);
        if (std::isnan(best)) return best;
        std::reverse(at.begin(), at.end());
        peak_ = std::max({peak_, std::abs(best), std::abs(measure_.kernel->value(query, scratch))});
        return best;
    }
    template <class Work>
    std::int64_t over_blocks(int threads, Work&& work) const {
        std::vector<std::int64_t> sums(starts_.size() - 1);
        parallel_for(sums.size(), threads, [&](std::size_t b) { sums[b] = work(b); });
        return std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
    }
    // Calls visit(q, jump) for each jump of the queries of a block, and returns their value at 0.
    template <class Visit>
    std::int64_t swept(const Ray& ray, std::size_t b, Visit&& visit) const {
        Sweep sweep(ray, measure_);
        std::vector<Jump> jumps;
        std::int64_t here = 0;
        for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
            if (!counts(q)) continue;
            jumps.clear();
            here += fixed(q, sweep.query(q, jumps));
            for (const Jump& jump : jumps) visit(q, jump);
        }
        return here;
    }
    const BoundMeasure measure_;
    std::vector<std::size_t> starts_;
    std::vector<std::uint8_t> counted_;  // is the query not skipped?
    std::vector<double> score_;          // at 0
    double total_weight_ = 0, peak_ = 1;
    FixedPoint fixed_;
    EventHistogram total_;
};

// What such a search knows along a line.
class StepOutline : public Outline {
public:
    StepOutline(StepSearch& search, std::span<const double> slopes, double low, double high, int threads) : Outline(low, high) {
        StepSearch::Found found = search.search_along(slopes, low, high, threads);
        sums_ = std::move(found.sums), left_ = found.left, right_ = found.right, ties_ = found.ties;
        events_ = std::move(found.events);
    }
    // Of all events, since some change nothing, and are in no sum.
    std::pair<double, double> beside(std::uint32_t edge, int) override {
        std::pair<double, double> ends(low_, high_);
        for (const auto& events : events_) ends = around(events, edge, ends.first, ends.second);
        return ends;
    }

protected:
    std::vector<FixedEvent> events_in(const BinSet& bins, int) override {
        std::vector<FixedEvent> all;
        for (const auto& events : events_)
            std::copy_if(events.begin(), events.end(), std::back_inserter(all),
                         [&](const FixedEvent& event) { return bins.has(EventHistogram::bin_of(event.at)); });
        return all;
    }

private:
    std::vector<std::vector<FixedEvent>> events_;  // by block
};

// The jumps of each query by itself, one query after the other, and each query's value at 0.
struct QueryJumps {
    std::vector<Jump> jumps;
    std::vector<std::int64_t> counts;
    std::vector<double> here;
};

inline QueryJumps query_jumps(const Ray& ray, const BoundMeasure& measure, int threads) {
    const std::vector<std::size_t> starts = query_blocks(measure.indptr);
    std::vector<std::vector<Jump>> parts(starts.size() - 1);
    QueryJumps found{{}, std::vector<std::int64_t>(measure.queries()), std::vector<double>(measure.queries())};
    parallel_for(parts.size(), threads, [&](std::size_t b) {
        Sweep sweep(ray, measure);
        for (std::size_t q = starts[b]; q < starts[b + 1]; ++q) {
            const std::size_t first = parts[b].size();
            found.here[q] = sweep.query(q, parts[b]);
            found.counts[q] = static_cast<std::int64_t>(parts[b].size() - first);
        }
    });
    for (const auto& part : parts) found.jumps.insert(found.jumps.end(), part.begin(), part.end());
    return found;
}

}  // namespace exactrank
