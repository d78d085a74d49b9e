// Exponential, logarithm and hyperbolic tangent of eight numbers at a time, by plain IEEE operations: the same bits on every machine.
//
//   e^x = 2^k e^r,    k = round(x / ln 2),  |r| <= ln 2 / 2,    e^r by its Taylor series                                   (1)
//   log(2^k m) = k log 2 + 2 artanh f,    f = (m - 1) / (m + 1),  1/2 <= m^2 < 2,    artanh by its Taylor series           (2)
#pragma once

#include <cstdint>

#include "doubles.hpp"

namespace exactrank {

using Longs = std::int64_t __attribute__((vector_size(64)));

// (1), to about 1 ulp; e^-708 for anything less, e^709 for anything more.
XR_INLINE Doubles exp_eight(Doubles x) {
    constexpr double rounder = 0x1.8p52;  // adding and subtracting it rounds to a whole number
    x = x < -708.0 ? Doubles{} - 708.0 : x > 709.0 ? Doubles{} + 709.0 : x;
    const Doubles shifted = x * 0x1.71547652b82fep0 + rounder, k = shifted - rounder;
    const Doubles r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
    Doubles sum = Doubles{} + 1.0 / 6227020800.0;
    constexpr double inverse_factorials[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                             1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0,         1.0};
    for (const double c : inverse_factorials) sum = sum * r + c;
    Longs bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const Longs power = (bits + 1023) << 52;  // the low bits of `shifted` are k
    Doubles scale;
    std::memcpy(&scale, &power, sizeof scale);
    return sum * scale;
}

// (2), to a few ulp, of positive normal numbers.
XR_INLINE Doubles log_eight(Doubles x) {
    constexpr std::int64_t root_half = 0x3fe6a09e667f3bcd, rounder_bits = 0x4338000000000000;  // of sqrt(1/2), and of 1.5 * 2^52
    Longs bits;
    std::memcpy(&bits, &x, sizeof bits);
    const Longs k = (bits - root_half) >> 52, mantissa = bits - (k << 52), shifted = k + rounder_bits;
    Doubles m, whole;
    std::memcpy(&m, &mantissa, sizeof m);
    std::memcpy(&whole, &shifted, sizeof whole);
    const Doubles f = (m - 1.0) / (m + 1.0), square = f * f;
    Doubles sum = Doubles{} + 1.0 / 21;
    for (int odd = 19; odd > 0; odd -= 2) sum = sum * square + 1.0 / odd;
    return (whole - 0x1.8p52) * 0x1.62e42fefa39efp-1 + 2.0 * f * sum;
}

XR_INLINE Doubles tanh_eight(Doubles x) {
    const Doubles t = exp_eight(2.0 * (x > 20.0 ? Doubles{} + 20.0 : x < -20.0 ? Doubles{} - 20.0 : x));
    return (t - 1.0) / (t + 1.0);
}

// out_i = e^(x_i - shift); `out` has room for a multiple of eight, and what lies beyond n becomes 1.
static XR_CLONES void exponentials(const double* x, std::size_t n, double shift, double* out) {
    for (std::size_t i = 0; i < n; i += 8) {
        Doubles v = Doubles{} + shift;
        std::memcpy(&v, x + i, std::min<std::size_t>(8, n - i) * sizeof(double));
        v = exp_eight(v - shift);
        std::memcpy(out + i, &v, sizeof v);
    }
}

}  // namespace exactrank
