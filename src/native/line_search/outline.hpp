// What some queries know of their share of a step function along a line: the histogram of its events and the values beside 0, from which
// best_interval.hpp sees where the optimum of the whole can be, and the events there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "line_search/kept_events.hpp"

namespace exactrank {

// Some bins of one width, in order.
struct Bins {
    int shift;
    std::span<const std::uint32_t> numbers;

    bool has(double at) const { return std::binary_search(numbers.begin(), numbers.end(), EventHistogram::bin_of(at, shift)); }
    // The bins of a histogram that they lie in.
    BinSet wide() const {
        BinSet set;
        for (const std::uint32_t number : numbers) set.add(number >> (EventHistogram::shift - shift));
        return set;
    }
};

inline Sums sums_of(const std::vector<FixedEvent>& events, int shift) {
    Sums all;
    for (const FixedEvent& event : events) all.emplace_back(EventHistogram::bin_of(event.at, shift), EventHistogram::Bin::of(event.change));
    return added_up(std::move(all));
}

// The last of some events before a bin of the histogram, or `low`, and the first that is not before it, or `high`.
inline std::pair<double, double> around(const std::vector<FixedEvent>& events, std::uint32_t edge, double low, double high) {
    for (const FixedEvent& event : events) {
        const bool below = EventHistogram::bin_of(event.at) < edge;
        (below ? low : high) = below ? std::max(low, event.at) : std::min(high, event.at);
    }
    return {low, high};
}

class Outline {
public:
    Outline(double low, double high) : low_(low), high_(high) {}
    virtual ~Outline() = default;

    const Sums& sums() const { return sums_; }
    std::int64_t left() const { return left_; }
    std::int64_t right() const { return right_; }
    bool ties() const { return ties_; }  // may these two differ?

    // The events in some bins.
    std::vector<FixedEvent> events(const Bins& bins, int threads) {
        std::vector<FixedEvent> found = events_in(bins.wide(), threads);
        if (bins.shift < EventHistogram::shift) std::erase_if(found, [&](const FixedEvent& event) { return !bins.has(event.at); });
        return found;
    }
    // The events beside a bin of the histogram, or the ends of the line.
    virtual std::pair<double, double> beside(std::uint32_t edge, int threads) {
        return around(events_in(bins_beside(sums_, edge), threads), edge, low_, high_);
    }

protected:
    virtual std::vector<FixedEvent> events_in(const BinSet& bins, int threads) = 0;
    Sums sums_;
    std::int64_t left_ = 0, right_ = 0;
    bool ties_ = false;

    double low_, high_;
};

}  // namespace exactrank
