// The best interval of a sum of many step functions: a histogram of their changes says where it can be.
#pragma once

#include <bit>
#include <cmath>
#include <iterator>

#include "jumping_points.hpp"
#include "threads.hpp"

namespace exactrank {

// The largest value on the ray and the interval that has it.
struct Best {
    double low, high, value;
};

// Values that differ by less are the same but for rounding.
constexpr double same_value = 1e-12;

// An interval of which this is the width, relative to its place, may be there by rounding alone.
constexpr double narrow = 0x1p-40;

inline bool is_wide(double low, double high) { return std::isinf(high - low) || high - low > narrow * std::max(std::abs(low), std::abs(high)); }

// Sums of events by where they are, in 64 bins an octave on either side of 0: enough to see where the optimum can be.
class Histogram {
public:
    struct Bin {
        double change = 0, up = 0;  // of all events in it, and of those that rise
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
    void add(const std::vector<Event>& events) {
        for (const Event& event : events) {
            const std::uint32_t i = bin_of(event.at);
            use(i, i);
            bins_[i].change += event.change;
            bins_[i].up += event.change > 0 ? event.change : 0.0;
        }
    }
    void add(const Histogram& other) {
        for (const Used& used : other.used_) {
            if (used.first > used.last) continue;
            use(used.first, used.last);
            for (std::uint32_t i = used.first; i <= used.last; ++i) bins_[i].change += other.bins_[i].change, bins_[i].up += other.bins_[i].up;
        }
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

// Finds the best interval of a step function that is given as lists of events, in any order, and its value left of 0.
class BestInterval {
public:
    BestInterval(const std::vector<std::vector<Event>>& events, const Histogram& histogram, double left_of_zero, int threads)
        : events_(events), threads_(threads) {
        double value = left_of_zero;
        histogram.each([&](std::uint32_t number, const Histogram::Bin& bin) { value -= number < Histogram::half ? bin.change : 0.0; });
        histogram.each([&](std::uint32_t number, const Histogram::Bin& bin) {
            if (number > Histogram::half) add_zero(value);
            bins_.push_back({number, value, value + bin.up});
            value += bin.change;
        });
        add_zero(value);
        bins_.push_back({2 * Histogram::half, value, value});  // right of all
    }
    // Between low <= 0 and high >= 0; the interval beside 0 unless another is better.
    Best find(double low, double high) const {
        auto edge_at = [&](std::uint32_t number) {
            return std::partition_point(bins_.begin(), bins_.end(), [&](const Bin& bin) { return bin.number < number; }) - bins_.begin();
        };
        const std::ptrdiff_t left = edge_at(Histogram::half), right = edge_at(Histogram::half + 1);
        const std::ptrdiff_t first = low < 0 ? 0 : right, last = high > 0 ? static_cast<std::ptrdiff_t>(bins_.size()) - 1 : left;
        std::ptrdiff_t edge = high <= 0 || (low < 0 && bins_[left].before > bins_[right].before) ? left : right;
        for (std::ptrdiff_t i = first; i <= last; ++i)
            if (bins_[i].before > bins_[edge].before + same_value) edge = i;
        Best best{low, high, bins_[edge].before};
        return inside_a_bin(best) ? best : around(edge, best);
    }

private:
    struct Bin {
        std::uint32_t number;
        double before, most;  // the value left of it, and a bound on the values in it
    };

    // The bin of 0 is there even if nothing changes in it: on either side there is an edge.
    void add_zero(double value) {
        if (bins_.empty() || bins_.back().number < Histogram::half) bins_.push_back({Histogram::half, value, value});
    }
    // Is there a better interval than `best` strictly within a bin? Then it becomes that.
    bool inside_a_bin(Best& best) const {
        std::vector<Bin> promising;
        std::copy_if(bins_.begin(), bins_.end(), std::back_inserter(promising), [&](const Bin& bin) { return bin.most > best.value + same_value; });
        if (promising.empty()) return false;
        std::vector<std::uint8_t> wanted(promising.back().number - promising.front().number + 1);
        for (const Bin& bin : promising) wanted[bin.number - promising.front().number] = 1;
        std::vector<Event> close = sorted([&](const Event& event) {
            const std::uint32_t offset = Histogram::bin_of(event.at) - promising.front().number;
            return offset < wanted.size() && wanted[offset];
        });
        bool found = false;
        std::size_t i = 0;
        for (const Bin& bin : promising) {
            double value = bin.before;
            for (; i < close.size() && Histogram::bin_of(close[i].at) == bin.number; ++i) {
                value += close[i].change;
                if (value <= best.value + same_value || i + 1 == close.size() || !is_wide(close[i].at, close[i + 1].at)) continue;
                if (Histogram::bin_of(close[i + 1].at) != bin.number) continue;  // the bin's last: an edge, seen before
                best = {close[i].at, close[i + 1].at, value};
                found = true;
            }
        }
        return found;
    }
    template <class Wanted>
    std::vector<Event> sorted(Wanted&& wanted) const {
        std::vector<std::vector<Event>> parts(events_.size());
        parallel_for(events_.size(), threads_,
                     [&](std::size_t b) { std::copy_if(events_[b].begin(), events_[b].end(), std::back_inserter(parts[b]), wanted); });
        std::vector<Event> all;
        for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
        sort_long(all.begin(), all.end(), [](const Event& a, const Event& b) { return a.at != b.at ? a.at < b.at : a.change < b.change; });
        return all;
    }
    // The interval that holds the edge left of a bin.
    Best around(std::ptrdiff_t edge, Best best) const {
        std::vector<Best> parts(events_.size(), best);
        parallel_for(events_.size(), threads_, [&](std::size_t b) {
            for (const Event& event : events_[b]) {
                const bool below = Histogram::bin_of(event.at) < bins_[edge].number;
                parts[b].low = std::max(parts[b].low, below ? event.at : best.low);
                parts[b].high = std::min(parts[b].high, below ? best.high : event.at);
            }
        });
        for (const Best& part : parts) best.low = std::max(best.low, part.low), best.high = std::min(best.high, part.high);
        return best;
    }
    const std::vector<std::vector<Event>>& events_;
    int threads_;
    std::vector<Bin> bins_;
};

}  // namespace exactrank
