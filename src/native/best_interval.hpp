// The best interval of a sum of many step functions: a histogram of their changes says where it can be.
#pragma once

#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "jumping_points.hpp"
#include "threads.hpp"

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

    std::int64_t operator()(double value) const { return std::llrint(value * unit_); }
    double back(std::int64_t fixed) const { return std::ldexp(static_cast<double>(fixed), -exponent_); }

private:
    int exponent_;
    double unit_ = std::ldexp(1.0, exponent_);
};

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
class Histogram {
public:
    struct Bin {
        std::int64_t change = 0, up = 0;  // of all events in it, and of those that rise
        bool empty() const { return change == 0 && up == 0; }
    };
    static constexpr int shift = 17;
    static constexpr std::uint32_t half = std::uint32_t{1} << (31 - shift);  // the bin of 0

    // Bins are in the order of alpha.
    static std::uint32_t bin_of(double at) {
        const std::uint32_t distance = std::bit_cast<std::uint32_t>(static_cast<float>(std::abs(at))) >> shift;
        return at < 0 ? half - 1 - distance : half + distance;
    }
    Histogram() : bins_(2 * std::size_t{half}) {}
    void clear() {
        for (Used& used : used_) {
            if (used.first <= used.last) std::fill(bins_.begin() + used.first, bins_.begin() + used.last + 1, Bin{});
            used = {};
        }
    }
    void add(std::uint32_t number, const Bin& bin) {
        use(number, number);
        Bin& own = bins_[number];
        own.change = wrapped(own.change, bin.change);
        own.up = own.up > std::numeric_limits<std::int64_t>::max() - bin.up ? std::numeric_limits<std::int64_t>::max() : own.up + bin.up;
    }
    void add(const Histogram& other) {
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
    // Sums may leave the range on the way: what they come to is in it.
    static std::int64_t wrapped(std::int64_t a, std::int64_t b) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
    std::vector<Bin> bins_;
    Used used_[2];  // left and right of 0
};

// Where the events are, of which the histogram is known.
struct EventSource {
    std::function<std::vector<FixedEvent>(const std::vector<std::uint32_t>& bins)> in_bins;  // in order of place
    // The last event before the bin `edge`, or `low`, and the first that is not, or `high`.
    std::function<std::pair<double, double>(std::uint32_t edge, double low, double high)> around;
    // Told the edge around which events may be asked for after those in bins.
    std::function<void(std::uint32_t edge)> expect = [](std::uint32_t) {};
};

// Finds the best interval of a step function by the histogram of its events, in fixed point, and its value left of 0.
class BestInterval {
public:
    BestInterval(EventSource events, const Histogram& histogram, std::int64_t left_of_zero, const FixedPoint& fixed)
        : events_(std::move(events)), same_(fixed(same_value)) {
        std::int64_t value = left_of_zero;
        histogram.each([&](std::uint32_t number, const Histogram::Bin& bin) { value -= number < Histogram::half ? bin.change : 0; });
        histogram.each([&](std::uint32_t number, const Histogram::Bin& bin) {
            if (number > Histogram::half) add_zero(value);
            bins_.push_back({number, value, Histogram::bound(value, bin)});
            value += bin.change;
        });
        add_zero(value);
        bins_.push_back({2 * Histogram::half, value, value});  // right of all
    }
    // Between low <= 0 and high >= 0; the interval beside 0 unless another is better.
    FixedBest find(double low, double high) const {
        auto edge_at = [&](std::uint32_t number) {
            return std::partition_point(bins_.begin(), bins_.end(), [&](const Bin& bin) { return bin.number < number; }) - bins_.begin();
        };
        const std::ptrdiff_t left = edge_at(Histogram::half), right = edge_at(Histogram::half + 1);
        const std::ptrdiff_t first = low < 0 ? 0 : right, last = high > 0 ? static_cast<std::ptrdiff_t>(bins_.size()) - 1 : left;
        std::ptrdiff_t edge = high <= 0 || (low < 0 && bins_[left].before > bins_[right].before) ? left : right;
        for (std::ptrdiff_t i = first; i <= last; ++i)
            if (bins_[i].before > bins_[edge].before + same_) edge = i;
        FixedBest best{low, high, bins_[edge].before};
        events_.expect(bins_[edge].number);
        if (!inside_a_bin(best)) std::tie(best.low, best.high) = events_.around(bins_[edge].number, low, high);
        return best;
    }

private:
    struct Bin {
        std::uint32_t number;
        std::int64_t before, most;  // the value left of it, and a bound on the values in it
    };

    // The bin of 0 is there even if nothing changes in it: on either side there is an edge.
    void add_zero(std::int64_t value) {
        if (bins_.empty() || bins_.back().number < Histogram::half) bins_.push_back({Histogram::half, value, value});
    }
    // Is there a better interval than `best` strictly within a bin? Then it becomes that.
    bool inside_a_bin(FixedBest& best) const {
        std::vector<Bin> promising;
        std::copy_if(bins_.begin(), bins_.end(), std::back_inserter(promising), [&](const Bin& bin) { return bin.most > best.value + same_; });
        if (promising.empty()) return false;
        std::vector<std::uint32_t> numbers(promising.size());
        std::transform(promising.begin(), promising.end(), numbers.begin(), [](const Bin& bin) { return bin.number; });
        const std::vector<FixedEvent> close = events_.in_bins(numbers);
        bool found = false;
        std::size_t i = 0;
        for (const Bin& bin : promising) {
            std::int64_t value = bin.before;
            for (; i < close.size() && Histogram::bin_of(close[i].at) == bin.number; ++i) {
                value += close[i].change;
                if (value <= best.value + same_ || i + 1 == close.size() || !is_wide(close[i].at, close[i + 1].at)) continue;
                if (Histogram::bin_of(close[i + 1].at) != bin.number) continue;  // the bin's last: an edge, seen before
                best = {close[i].at, close[i + 1].at, value};
                found = true;
            }
        }
        return found;
    }
    EventSource events_;
    std::int64_t same_;
    std::vector<Bin> bins_;
};

}  // namespace exactrank
