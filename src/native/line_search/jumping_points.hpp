// Algorithm 2 of Tan, Xia, Guo & Wang (2013) as published: the jumping points of a query, from minus infinity on.
//
// The top documents are kept sorted; the next jumping point is the first crossing of two neighbors there, or of the last
// of them with any document below. It counts the points where the top changes, and is what line_search.hpp is measured
// against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "support/interrupt.hpp"

namespace exactrank {

struct Event {
    double at, change;
};

struct Lines {
    std::vector<double> score, slope, worth;
};

// Appends an event a jumping point, also where the value stays, and returns the value far to the left. `discount` and `drop`
// are by position: what a rank is worth, and what it is worth more than the next.
inline double jumping_points(const Lines& lines, std::int32_t count, std::int32_t cutoff, const double* discount, const double* drop,
                             std::vector<std::int32_t>& order, std::vector<Event>& events) {
    const std::int32_t top = std::min(cutoff, count);
    order.resize(count);
    std::iota(order.begin(), order.end(), 0);
    auto leads_at_the_left = [&](std::int32_t a, std::int32_t b) {
        return lines.slope[a] != lines.slope[b] ? lines.slope[a] < lines.slope[b] : lines.score[a] > lines.score[b];
    };
    double leftmost = 0;
    Breath breath;
    for (std::int32_t p = 0; p < top; ++p) {  // the smallest slopes, by selection
        breath.after(static_cast<std::size_t>(count));
        std::int32_t first = p;
        for (std::int32_t i = p + 1; i < count; ++i)
            if (leads_at_the_left(order[i], order[first])) first = i;
        std::swap(order[p], order[first]);
        leftmost += lines.worth[order[p]] * discount[p];
    }
    for (;;) {
        breath.after(2 * static_cast<std::size_t>(count));
        double next = HUGE_VAL;
        std::int32_t upper = -1, lower = -1;
        auto consider = [&](std::int32_t p, std::int32_t q) {
            const std::int32_t a = order[p], b = order[q];
            if (lines.slope[b] <= lines.slope[a]) return;
            const double at = (lines.score[a] - lines.score[b]) / (lines.slope[b] - lines.slope[a]);
            if (at < next) next = at, upper = p, lower = q;
        };
        for (std::int32_t p = 0; p + 1 < top; ++p) consider(p, p + 1);
        for (std::int32_t i = top; i < count; ++i) consider(top - 1, i);
        if (upper < 0) return leftmost;
        events.push_back({next, (lines.worth[order[lower]] - lines.worth[order[upper]]) * drop[upper]});
        std::swap(order[upper], order[lower]);
    }
}

}  // namespace exactrank
