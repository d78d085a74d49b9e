// Smallest and largest of many doubles, eight at a time: what the compiler may not do by itself without -ffast-math.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/dispatch.hpp"

namespace exactrank {

using Doubles = double __attribute__((vector_size(64)));
using Longs = std::int64_t __attribute__((vector_size(64)));

XR_INLINE Doubles load_eight(const double* p) {
    Doubles v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

XR_INLINE double sum_of_eight(Doubles v) { return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])); }

struct Range {
    double least = HUGE_VAL, most = -HUGE_VAL;  // over the finite values
    bool sound = true;                          // no NaN and no +inf
    bool finite = true;                         // nor -inf
};

XR_INLINE Range range_of(const double* x, std::size_t n) {
    constexpr double inf = HUGE_VAL;
    Doubles least = Doubles{} + inf, most = Doubles{} - inf;
    decltype(least < most) bad{}, infinite{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const Doubles v = load_eight(x + i);
        bad |= ~(v < inf);
        infinite |= v == -inf;
        most = v > most ? v : most;
        const Doubles finite = v > -inf ? v : Doubles{} + inf;
        least = finite < least ? finite : least;
    }
    Range range;
    for (std::size_t lane = 0; lane < 8; ++lane) {
        range.sound &= !bad[lane];
        range.finite &= !bad[lane] && !infinite[lane];
        range.least = least[lane] < range.least ? least[lane] : range.least;
        range.most = most[lane] > range.most ? most[lane] : range.most;
    }
    for (; i < n; ++i) {
        range.sound &= x[i] < inf;
        range.finite &= std::isfinite(x[i]);
        if (x[i] > range.most) range.most = x[i];
        if (x[i] > -inf && x[i] < range.least) range.least = x[i];
    }
    return range;
}

struct Level {
    double value;
    std::size_t count;  // how many of x equal it
};

// How many of x equal `value`, and the largest below it (-inf where there is none).
XR_INLINE Level next_level(const double* x, std::size_t n, double value, double& below) {
    Doubles most = Doubles{} - HUGE_VAL;
    decltype(most < most) equal{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const Doubles v = load_eight(x + i);
        equal -= v == value;
        const Doubles candidate = v < value ? v : most;
        most = candidate > most ? candidate : most;
    }
    Level level{value, 0};
    below = -HUGE_VAL;
    for (std::size_t lane = 0; lane < 8; ++lane) {
        level.count += static_cast<std::size_t>(equal[lane]);
        below = most[lane] > below ? most[lane] : below;
    }
    for (; i < n; ++i) {
        level.count += x[i] == value;
        if (x[i] < value && x[i] > below) below = x[i];
    }
    return level;
}

constexpr std::size_t few_levels = 16;

// The first distinct values of x, largest first, until they account for `k` of x or are few_levels; returns how many.
static XR_CLONES std::size_t first_levels(const double* x, std::size_t n, std::size_t k, Level* out) {
    double value = range_of(x, n).most;
    std::size_t found = 0;
    for (std::size_t held = 0; held < std::min(k, n) && found < few_levels; held += out[found++].count) out[found] = next_level(x, n, value, value);
    return found;
}

// The distinct values of x, largest first, until they account for `k` of x: one by one while they are few, as grades are,
// else by sorting. NaN, if there is any, comes last.
inline void levels_from_top(const double* x, std::size_t n, std::size_t k, std::vector<Level>& out) {
    out.resize(few_levels);
    out.resize(first_levels(x, n, k, out.data()));
    if (out.size() < few_levels) return;
    out.assign(n, Level{0, 1});
    for (std::size_t i = 0; i < n; ++i) out[i].value = x[i];
    std::sort(out.begin(), out.end(), [](const Level& a, const Level& b) { return a.value > b.value || (a.value == a.value && b.value != b.value); });
    std::size_t last = 0;
    for (std::size_t i = 1; i < n; ++i) {
        if (out[i].value == out[last].value)
            ++out[last].count;
        else
            out[++last] = out[i];
    }
    out.resize(last + 1);
}

}  // namespace exactrank
