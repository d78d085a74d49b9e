// The best interval of a sum of many step functions: a histogram of their changes says where it can be.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "line_search/jumping_points.hpp"
#include "support/threads.hpp"

namespace exactrank {

// The largest value on the ray and the interval that has it.
struct Best {
    double low, high, value;
};

// Values that differ by less are the same but for rounding.
constexpr double same_value = 1e-12;

// Values as whole numbers of a unit, a power of two, with room for eight times the most: their sums are the same in any order.
class FixedPoint {
public:
    explicit FixedPoint(double most = 1) : exponent_(most > 0 && std::isfinite(most) ? std::clamp(60 - std::ilogb(most), -960, 960) : 60) {}

    // What is not finite counts as 0: such sums are not asked for, but must not overflow either.
    std::int64_t operator()(double value) const { return std::isfinite(value) ? std::llrint(value * unit_) : 0; }
    double back(std::int64_t fixed) const { return std::ldexp(static_cast<double>(fixed), -exponent_); }

private:
    int exponent_;
    double unit_ = std::ldexp(1.0, exponent_);
};

// What a mean never exceeds in size if no query does `peak`: weights below 0 may add up to more than their `total`. `size` is the sum of
// their sizes.
inline double peak_of_sum(double peak, double total, double size) { return total > 0 && size > total ? peak * (size / total) : peak; }

struct FixedEvent {
    double at;
    std::int64_t change;
};

// The same of a sum in fixed point.
struct FixedBest {
    double low, high;
    std::int64_t value;
};

// An interval of which this is the width, relative to its place, may be there by rounding alone.
constexpr double narrow = 0x1p-40;

inline bool is_wide(double low, double high) { return std::isinf(high - low) || high - low > narrow * std::max(std::abs(low), std::abs(high)); }

// Sums of events by where they are, in 64 bins an octave on either side of 0: enough to see where the optimum can be.
class EventHistogram {
public:
    struct Bin {
        std::int64_t change = 0, up = 0;  // of all events in it, and of those that rise
        static Bin of(std::int64_t change) { return {change, std::max<std::int64_t>(change, 0)}; }
        bool empty() const { return change == 0 && up == 0; }
        // Sums of changes may leave the range on the way: what they come to is in it.
        void add(const Bin& other) {
            change = static_cast<std::int64_t>(static_cast<std::uint64_t>(change) + static_cast<std::uint64_t>(other.change));
            up = up > std::numeric_limits<std::int64_t>::max() - other.up ? std::numeric_limits<std::int64_t>::max() : up + other.up;
        }
    };
    static constexpr int shift = 17;
    static constexpr std::uint32_t half = std::uint32_t{1} << (31 - shift);  // the bin of 0

    // Bins are in the order of alpha. With a smaller shift, `narrow`, they are narrower: the high bits of their numbers are those of a bin.
    static std::uint32_t bin_of(double at, int narrow = shift) {
        const std::uint32_t distance = std::bit_cast<std::uint32_t>(static_cast<float>(std::abs(at))) >> narrow, zero = std::uint32_t{1} << (31 - narrow);
        return at < 0 ? zero - 1 - distance : zero + distance;
    }
    // A place in such a bin.
    static double place_in(std::uint32_t number, int narrow) {
        const std::uint32_t zero = std::uint32_t{1} << (31 - narrow);
        if (number >= zero) return std::bit_cast<float>((number - zero) << narrow);
        const float distance = std::bit_cast<float>((zero - 1 - number) << narrow);
        return distance > 0 ? -distance : -std::numeric_limits<double>::denorm_min();
    }
    EventHistogram() : bins_(2 * std::size_t{half}) {}
    void clear() {
        for (Used& used : used_) {
            if (used.first <= used.last) std::fill(bins_.begin() + used.first, bins_.begin() + used.last + 1, Bin{});
            used = {};
        }
    }
    void add(std::uint32_t number, const Bin& bin) {
        use(number, number);
        bins_[number].add(bin);
    }
    void add(const EventHistogram& other) {
        for (const Used& used : other.used_) {
            if (used.first > used.last) continue;
            for (std::uint32_t i = used.first; i <= used.last; ++i)
                if (!other.bins_[i].empty()) add(i, other.bins_[i]);
        }
    }
    const Bin& operator[](std::uint32_t number) const { return bins_[number]; }
    // What no value in a bin exceeds that begins at `value`.
    static std::int64_t bound(std::int64_t value, const Bin& bin) {
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
        return value > 0 && bin.up > most - value ? most : value + bin.up;
    }
    // Calls visit(number, bin) for those that hold something, in order.
    template <class Visit>
    void each(Visit&& visit) const {
        for (const Used& used : used_)
            for (std::uint32_t i = used.first; i <= used.last && used.first <= used.last; ++i)
                if (!bins_[i].empty()) visit(i, bins_[i]);
    }

private:
    struct Used {
        std::uint32_t first = 2 * half, last = 0;
    };
    void use(std::uint32_t first, std::uint32_t last) {
        Used& used = used_[first >= half];
        used.first = std::min(used.first, first);
        used.last = std::max(used.last, last);
    }
    std::vector<Bin> bins_;
    Used used_[2];  // left and right of 0
};

// Sums of events by bins that hold some, in order.
using Sums = std::vector<std::pair<std::uint32_t, EventHistogram::Bin>>;

inline Sums sums_of(const EventHistogram& histogram) {
    Sums sums;
    histogram.each([&](std::uint32_t number, const EventHistogram::Bin& bin) { sums.emplace_back(number, bin); });
    return sums;
}

// Adds up those of one bin.
inline Sums added_up(Sums all) {
    sort_long(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (kept > 0 && all[kept - 1].first == all[i].first)
            all[kept - 1].second.add(all[i].second);
        else
            all[kept++] = all[i];
    }
    all.resize(kept);
    return all;
}

// Finds the best interval of a step function by the histogram of its events, in fixed point, and its value left of 0: an edge between bins, or
// an interval within one of some `bins`, whose events are then asked for. Where these are very many, `narrow` takes their sums in narrower bins
// first. The answer is the same.
class BestInterval {
public:
    // Between low <= 0 and high >= 0. `at_zero`: by how much the value changes at 0 itself, where it may.
    BestInterval(Sums sums, std::int64_t left_of_zero, std::optional<std::int64_t> at_zero, const FixedPoint& fixed, double low, double high)
        : at_zero_(at_zero), low_(low), high_(high), same_(fixed(same_value)) {
        if (at_zero) add_sum(sums, EventHistogram::half, *at_zero);
        std::int64_t value = left_of_zero;
        for (const auto& [number, bin] : sums) value -= number < EventHistogram::half ? bin.change : 0;
        std::vector<Bin> all;
        for (const auto& [number, bin] : sums) {
            if (number > EventHistogram::half) add_zero(all, value);
            all.push_back({number, value, EventHistogram::bound(value, bin)});
            value += bin.change;
        }
        add_zero(all, value);
        all.push_back({2 * EventHistogram::half, value, value});  // right of all
        const Bin& edge = best_edge(all);
        edge_ = edge.number, edge_value_ = edge.before;
        for (const Bin& bin : all)
            if (promises(bin.most)) asked_.push_back(bin), wide_.push_back(bin);
    }
    // The best edge: the bin that begins there.
    std::uint32_t edge() const { return edge_; }
    // The bins whose events may be better than the edge, which are 2^-(EventHistogram::shift - shift) as wide as those of the histogram.
    int shift() const { return shift_; }
    std::vector<std::uint32_t> bins() const {
        std::vector<std::uint32_t> numbers;
        for (const Bin& bin : asked_) numbers.push_back(bin.number);
        return numbers;
    }
    // Takes the sums of the events in these bins by narrower ones, in order: one entry for each that holds an event. Most of them hold
    // nothing better than the edge, and from then on are known by their sums alone: no interval that is better begins or ends in one.
    void narrow(int shift, Sums sums) {
        const int finer = shift_ - shift;
        const bool with_zero = at_zero_ && asks_for(zero());
        shift_ = shift;
        if (with_zero) add_sum(sums, zero(), *at_zero_);
        std::vector<Bin> asked;
        auto sum = sums.begin();
        for (const Bin& parent : asked_) {
            std::int64_t value = parent.before;
            for (; sum != sums.end() && sum->first >> finer == parent.number; ++sum) {
                const auto& [number, bin] = *sum;
                if (const std::int64_t most = EventHistogram::bound(value, bin); promises(most))
                    asked.push_back({number, value, most});
                else
                    summed_.push_back({EventHistogram::place_in(number, shift), bin.change});
                value += bin.change;
            }
        }
        asked_ = std::move(asked);
    }
    // The best interval, where that lies within a bin: `events` are all of those in the bins.
    std::optional<FixedBest> inside(std::vector<FixedEvent> events) const {
        events.insert(events.end(), summed_.begin(), summed_.end());
        if (at_zero_ && asks_for(zero())) events.push_back({0.0, *at_zero_});
        sort_long(events.begin(), events.end(), [](const FixedEvent& a, const FixedEvent& b) { return a.at != b.at ? a.at < b.at : a.change < b.change; });
        std::optional<FixedBest> best;
        std::size_t i = 0;
        for (const Bin& bin : wide_) {
            std::int64_t value = bin.before;
            for (; i < events.size() && EventHistogram::bin_of(events[i].at) == bin.number; ++i) {
                value += events[i].change;
                if (value <= (best ? best->value : edge_value_) + same_ || i + 1 == events.size() || !is_wide(events[i].at, events[i + 1].at)) continue;
                if (EventHistogram::bin_of(events[i + 1].at) != bin.number) continue;  // the bin's last: an edge, seen before
                best = {events[i].at, events[i + 1].at, value};
            }
        }
        return best;
    }
    // The interval at the edge, where none within a bin is better: `below` is the last event before it, and `above` the first that is not.
    FixedBest at_edge(double below, double above) const {
        double low = std::max(low_, below), high = std::min(high_, above);
        if (at_zero_) (edge_ > EventHistogram::half ? low : high) = edge_ > EventHistogram::half ? std::max(low, 0.0) : std::min(high, 0.0);
        return {low, high, edge_value_};
    }

private:
    struct Bin {
        std::uint32_t number;
        std::int64_t before, most;  // the value left of it, and a bound on the values in it
    };

    // The bin of 0 is there even if nothing changes in it: on either side there is an edge.
    static void add_zero(std::vector<Bin>& all, std::int64_t value) {
        if (all.empty() || all.back().number < EventHistogram::half) all.push_back({EventHistogram::half, value, value});
    }
    // The edge beside 0 unless another is better.
    const Bin& best_edge(const std::vector<Bin>& all) const {
        auto edge_at = [&](std::uint32_t number) {
            return std::partition_point(all.begin(), all.end(), [&](const Bin& bin) { return bin.number < number; }) - all.begin();
        };
        const std::ptrdiff_t left = edge_at(EventHistogram::half), right = edge_at(EventHistogram::half + 1);
        const std::ptrdiff_t first = low_ < 0 ? 0 : right, last = high_ > 0 ? static_cast<std::ptrdiff_t>(all.size()) - 1 : left;
        std::ptrdiff_t edge = high_ <= 0 || (low_ < 0 && all[left].before > all[right].before) ? left : right;
        for (std::ptrdiff_t i = first; i <= last; ++i)
            if (all[i].before > all[edge].before + same_) edge = i;
        return all[edge];
    }
    std::uint32_t zero() const { return EventHistogram::half << (EventHistogram::shift - shift_); }  // the bin of 0, of those that are asked for
    bool promises(std::int64_t most) const { return most > edge_value_ + same_; }
    bool asks_for(std::uint32_t number) const {
        return std::any_of(asked_.begin(), asked_.end(), [&](const Bin& bin) { return bin.number == number; });
    }
    static void add_sum(Sums& sums, std::uint32_t number, std::int64_t change) {
        const auto place = std::partition_point(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first < number; });
        if (place != sums.end() && place->first == number)
            place->second.add(EventHistogram::Bin::of(change));
        else
            sums.insert(place, {number, EventHistogram::Bin::of(change)});
    }
    std::optional<std::int64_t> at_zero_;
    double low_, high_;
    std::int64_t same_;
    std::uint32_t edge_ = 0;
    std::int64_t edge_value_ = 0;
    int shift_ = EventHistogram::shift;
    std::vector<Bin> wide_;           // of the histogram that are promising
    std::vector<Bin> asked_;          // whose events are wanted
    std::vector<FixedEvent> summed_;  // one for each narrow bin that is known by its sum, somewhere in it
};

}  // namespace exactrank
