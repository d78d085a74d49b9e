// Rounding to thirteen significant decimals: crossings that would coincide but for rounding become one, and those at round
// numbers, where people look, are exactly there.
#pragma once

#include <array>
#include <cmath>

#include "support/elementary.hpp"

namespace exactrank {

// A finite x > 0 as the double nearest to its first thirteen decimals; the very large and the very small stay as they are.
inline double thirteen_decimals(double x) {
    constexpr int exact_powers = 22;  // 10^22 is the last that a double holds
    static constexpr std::array<double, exact_powers + 1> power = [] {
        std::array<double, exact_powers + 1> p{1.0};
        for (int i = 1; i <= exact_powers; ++i) p[i] = p[i - 1] * 10;
        return p;
    }();
    constexpr double log10_of_2 = 0x1.34413509f79ffp-2;
    int exponent = static_cast<int>(std::floor(portable::log2(x) * log10_of_2));
    if (exponent >= -1 && exponent < exact_powers && x >= power[exponent + 1]) ++exponent;  // the product may round down from a whole number
    const int shift = 12 - exponent;
    if (shift > exact_powers || shift < -exact_powers) return x;
    return shift >= 0 ? std::nearbyint(x * power[shift]) / power[shift] : std::nearbyint(x / power[-shift]) * power[-shift];
}

}  // namespace exactrank
