// Which events of a sum of many step functions are kept: those in the bins that are likely to hold the optimum. All of them would weigh
// more than the data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "best_interval.hpp"

namespace exactrank {

// A set of the bins of a histogram.
class BinSet {
public:
    explicit BinSet(bool all = false) : in_(2 * std::size_t{Histogram::half}, all) {}
    explicit BinSet(std::span<const std::uint32_t> bins) : BinSet() {
        for (const std::uint32_t number : bins) in_[number] = true;
    }
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
inline BinSet likely_bins(const Histogram& sample, std::int64_t left, std::int64_t right, const std::vector<std::vector<Event>>& events, double share) {
    constexpr std::size_t bins = 2 * std::size_t{Histogram::half};
    std::vector<std::size_t> counts(bins), held;
    std::size_t total = 0;
    for (const auto& some : events)
        for (const Event& event : some) ++counts[Histogram::bin_of(event.at)], ++total;
    std::vector<std::int64_t> bounds(bins);
    std::int64_t value = left;
    sample.each([&](std::uint32_t number, const Histogram::Bin& bin) { value -= number < Histogram::half ? bin.change : 0; });
    for (std::uint32_t number = 0; number < bins; ++number) {
        const std::int64_t jump = number == Histogram::half ? right - left : 0;
        bounds[number] = Histogram::bound(value + std::max<std::int64_t>(jump, 0), sample[number]);
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
inline BinSet bins_beside(const Histogram& histogram, std::uint32_t edge) {
    std::optional<std::uint32_t> below, above;
    histogram.each([&](std::uint32_t number, const Histogram::Bin&) {
        if (number < edge) below = number;
        if (number >= edge && !above) above = number;
    });
    BinSet beside;
    for (const auto& number : {below, above})
        if (number) beside.add(*number);
    return beside;
}

// The events of all lists that lie in some bins, in order, and what happens at 0 itself where that bin is among them.
inline std::vector<FixedEvent> events_in(const std::vector<std::vector<Event>>& events, const BinSet& bins, const FixedPoint& fixed,
                                         std::optional<std::int64_t> at_zero, int threads) {
    std::vector<std::size_t> first(events.size() + 1);
    auto is_wanted = [&](const Event& event) { return bins.has(Histogram::bin_of(event.at)); };
    parallel_for(events.size(), threads, [&](std::size_t b) { first[b + 1] = std::count_if(events[b].begin(), events[b].end(), is_wanted); });
    std::partial_sum(first.begin(), first.end(), first.begin());
    const bool zero = at_zero && bins.has(Histogram::half);
    std::vector<FixedEvent> all(first.back() + zero);
    parallel_for(events.size(), threads, [&](std::size_t b) {
        auto out = all.begin() + static_cast<std::ptrdiff_t>(first[b]);
        for (const Event& event : events[b])
            if (is_wanted(event)) *out++ = {event.at, fixed(event.change)};
    });
    if (zero) all.back() = {0.0, *at_zero};
    sort_long(all.begin(), all.end(), [](const FixedEvent& a, const FixedEvent& b) { return a.at != b.at ? a.at < b.at : a.change < b.change; });
    return all;
}

// The last event of all lists before the bin `edge`, or `low`, and the first that is not before it, or `high`.
inline std::pair<double, double> events_around(const std::vector<std::vector<Event>>& events, std::uint32_t edge, double low, double high, int threads) {
    std::vector<std::pair<double, double>> parts(events.size(), {low, high});
    parallel_for(events.size(), threads, [&](std::size_t b) {
        for (const Event& event : events[b]) {
            const bool below = Histogram::bin_of(event.at) < edge;
            parts[b].first = std::max(parts[b].first, below ? event.at : low);
            parts[b].second = std::min(parts[b].second, below ? high : event.at);
        }
    });
    for (const auto& part : parts) low = std::max(low, part.first), high = std::min(high, part.second);
    return {low, high};
}

}  // namespace exactrank
