// The best interval of a sum of step functions that have too many events to be kept: they are merged as they come, from 0 outwards.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "line_search/best_interval.hpp"
#include "line_search/windows.hpp"

namespace exactrank {

// Events of one side of 0 in the order of their distance from it: of one query as they come, or all that were kept of others.
class Source {
public:
    Source(Windows&& windows, double sense) : coming_(std::move(windows)), sense_(sense) { refill(); }
    explicit Source(std::vector<Event>&& kept) : events_(std::move(kept)) {}

    bool ended() const { return next_ == events_.size(); }
    const Event& front() const { return events_[next_]; }
    void pop() {
        if (++next_ == events_.size()) refill();
    }

private:
    void refill() {
        if (!coming_) return;
        next_ = 0;
        if (!coming_->next(events_)) events_.clear();
        for (Event& event : events_) event.change *= sense_;
    }
    std::optional<Windows> coming_;
    double sense_ = 1;  // of a query of negative weight -1
    std::vector<Event> events_;
    std::size_t next_ = 0;
};

// One side of 0.
struct Outwards {
    std::vector<Source> sources;
    double sign, limit;
    std::int64_t beside;  // the value right beside 0
    const FixedPoint& fixed;

    // Takes an interval that is better than `best`; gives how far it is from 0 to the first change.
    double search(FixedBest& best) {
        double from = 0, nearest = limit;
        std::int64_t value = beside;
        Breath breath;
        for (Source* next = first(); next; next = first()) {
            breath.after(4 * sources.size());
            const Event event = next->front();
            if (from == 0) nearest = std::min(nearest, event.at);
            consider(from, event.at, value, best);
            from = std::max(from, event.at), value += fixed(event.change);
            next->pop();
        }
        consider(from, limit, value, best);
        return nearest;
    }

private:
    Source* first() {
        Source* found = nullptr;
        for (Source& source : sources)
            if (!source.ended() && (!found || source.front().at < found->front().at)) found = &source;
        return found;
    }
    void consider(double from, double to, std::int64_t value, FixedBest& best) const {
        if (from == 0 || value <= best.value + fixed(same_value) || !is_wide(from, to)) return;
        best = sign > 0 ? FixedBest{from, to, value} : FixedBest{-to, -from, value};
    }
};

// Of both sides; the interval beside 0 unless another is better. `apart`: the values left and right of 0 may differ.
inline FixedBest streamed_best(Outwards& left, Outwards& right, bool apart) {
    const bool on_the_left = right.limit <= 0 || (left.limit > 0 && left.beside > right.beside);
    FixedBest best{0, 0, on_the_left ? left.beside : right.beside};
    const double above = right.search(best), below = left.search(best);
    if (best.low != 0 || best.high != 0) return best;
    return {apart && !on_the_left ? 0.0 : -below, apart && on_the_left ? 0.0 : above, best.value};
}

}  // namespace exactrank
