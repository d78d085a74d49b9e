// Which events of a sum of many step functions are kept: those in the bins that are likely to hold the optimum. All of them would weigh
// more than the data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "line_search/best_interval.hpp"

namespace exactrank {

// A set of the bins of a histogram.
class BinSet {
public:
    explicit BinSet(bool all = false) : in_(2 * std::size_t{EventHistogram::half}, all) {}
    bool has(std::uint32_t number) const { return in_[number]; }
    bool includes(const BinSet& other) const {
        return std::equal(in_.begin(), in_.end(), other.in_.begin(), [](std::uint8_t own, std::uint8_t theirs) { return own >= theirs; });
    }
    void add(const BinSet& other) {
        std::transform(in_.begin(), in_.end(), other.in_.begin(), in_.begin(), [](std::uint8_t a, std::uint8_t b) { return a | b; });
    }
    void add(std::uint32_t number) { in_[number] = true; }

private:
    std::vector<std::uint8_t> in_;
};

// The bins of the largest bounds on the values in them, as a sample of the queries has it: as many as hold a `share` of its events.
inline BinSet likely_bins(const EventHistogram& sample, std::int64_t left, std::int64_t right, const std::vector<std::vector<Event>>& events, double share) {
    constexpr std::size_t bins = 2 * std::size_t{EventHistogram::half};
    std::vector<std::size_t> counts(bins), held;
    std::size_t total = 0;
    for (const auto& some : events)
        for (const Event& event : some) ++counts[EventHistogram::bin_of(event.at)], ++total;
    std::vector<std::int64_t> bounds(bins);
    std::int64_t value = left;
    sample.each([&](std::uint32_t number, const EventHistogram::Bin& bin) { value -= number < EventHistogram::half ? bin.change : 0; });
    for (std::uint32_t number = 0; number < bins; ++number) {
        const std::int64_t jump = number == EventHistogram::half ? right - left : 0;
        bounds[number] = EventHistogram::bound(value + std::max<std::int64_t>(jump, 0), sample[number]);
        value += sample[number].change + jump;
        if (counts[number] > 0) held.push_back(number);
    }
    std::sort(held.begin(), held.end(), [&](std::size_t a, std::size_t b) { return bounds[a] > bounds[b]; });
    BinSet likely;
    std::size_t last = 0;
    for (std::size_t taken = 0; last + 1 < held.size() && (taken += counts[held[last]]) < share * static_cast<double>(total);) ++last;
    for (std::uint32_t number = 0; number < bins; ++number)
        if (held.empty() || bounds[number] >= bounds[held[last]]) likely.add(number);
    return likely;
}

// The bins beside an edge, of those that hold something: the last before it, and the first that is not.
inline BinSet bins_beside(const Sums& sums, std::uint32_t edge) {
    const auto above = std::partition_point(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first < edge; });
    BinSet beside;
    if (above != sums.begin()) beside.add(std::prev(above)->first);
    if (above != sums.end()) beside.add(above->first);
    return beside;
}

// The events of all lists that lie in some bins.
inline std::vector<FixedEvent> events_in(const std::vector<std::vector<Event>>& events, const BinSet& bins, const FixedPoint& fixed, int threads) {
    std::vector<std::size_t> first(events.size() + 1);
    auto is_wanted = [&](const Event& event) { return bins.has(EventHistogram::bin_of(event.at)); };
    parallel_for(events.size(), threads, [&](std::size_t b) { first[b + 1] = std::count_if(events[b].begin(), events[b].end(), is_wanted); });
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<FixedEvent> all(first.back());
    parallel_for(events.size(), threads, [&](std::size_t b) {
        auto out = all.begin() + static_cast<std::ptrdiff_t>(first[b]);
        for (const Event& event : events[b])
            if (is_wanted(event)) *out++ = {event.at, fixed(event.change)};
    });
    return all;
}

}  // namespace exactrank
