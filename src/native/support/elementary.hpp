// Elementary functions of one number or of eight at a time, by plain IEEE operations: the same bits on every machine, for one and for eight.
//
//   e^x = 2^k e^r,    k = round(x / ln 2),  |r| <= ln 2 / 2,    e^r = 1 + r + tail(r), its Taylor series                   (1)
//   log(2^k (1 + f)) = k log 2 + 2 artanh s,    s = f / (2 + f),  1/2 <= (1 + f)^2 < 2,    artanh by its Taylor series     (2)
//
// Rounding errors of the argument are carried along as a second number, so each function is within 1 ulp; tanh is within 3. The C library's
// functions are as accurate, but differ from one processor to the next.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "support/doubles.hpp"

namespace exactrank::portable {

template <class V>
struct Integers {
    using type = Longs;
};
template <>
struct Integers<double> {
    using type = std::int64_t;
};

template <class V>
XR_INLINE typename Integers<V>::type bits_of(V x) {
    typename Integers<V>::type bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
template <class V>
XR_INLINE V from_bits(typename Integers<V>::type bits) {
    V x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
template <class V>
XR_INLINE V fill(double x) {
    return V{} + x;
}

constexpr double rounder = 0x1.8p52;  // adding and subtracting it rounds to a whole number, which the low bits of the sum hold
constexpr std::int64_t rounder_bits = 0x4338000000000000;
constexpr double log_2 = 0x1.62e42fefa39efp-1, log_2_high = 0x1.62e42fefa3800p-1, log_2_low = 0x1.ef35793c76730p-45;
constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

// 2^k of a whole number from -1022 to 1023.
template <class V>
XR_INLINE V power_of_two(typename Integers<V>::type k) {
    return from_bits<V>((k + 1023) << 52);
}

// e^r - 1 - r for |r| <= ln 2 / 2.
template <class V>
XR_INLINE V exp_tail(V r) {
    constexpr double inverse_factorials[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                             1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2};
    V sum = fill<V>(1.0 / 6227020800.0);
    for (const double c : inverse_factorials) sum = sum * r + c;
    return sum * (r * r);
}

// An exponent of e as a whole number of times ln 2, and what is left, in two numbers: high - low.
template <class V>
struct Reduced {
    typename Integers<V>::type k;
    V high, low;

    XR_INLINE V minus_one() const { return high + (exp_tail(high - low) - low); }  // e^(high - low) - 1
};

// Of numbers between -1000 and 1000.
template <class V>
XR_INLINE Reduced<V> reduced(V x) {
    const V shifted = x * 0x1.71547652b82fep0 + rounder, k = shifted - rounder;
    return {bits_of(shifted) - rounder_bits, x - k * log_2_high, k * log_2_low};
}

// y 2^k, also where 2^k is no normal number.
template <class V>
XR_INLINE V scaled(V y, typename Integers<V>::type k) {
    const typename Integers<V>::type half = k >> 1;
    return y * power_of_two<V>(half) * power_of_two<V>(k - half);
}

template <class V>
XR_INLINE V clamped(V x, double least, double most) {
    return x < least ? fill<V>(least) : x > most ? fill<V>(most) : x;
}

template <class V>
XR_INLINE V exp(V x) {
    const Reduced<V> part = reduced(clamped(x, -746.0, 710.0));
    return scaled(1.0 + part.minus_one(), part.k);
}

// The same for -708 <= x <= 709; e^-708 for anything less, e^709 for anything more.
template <class V>
XR_INLINE V bounded_exp(V x) {
    const Reduced<V> part = reduced(clamped(x, -708.0, 709.0));
    return (1.0 + part.minus_one()) * power_of_two<V>(part.k);
}

// 2^x, exactly where x is whole: (1) with r = (x - k) ln 2, whose product is split so that its larger part is exact.
template <class V>
XR_INLINE V exp2(V x) {
    constexpr double high = 0x1.62e4300000000p-1, low = log_2_low + (log_2_high - high);
    const V bounded = clamped(x, -1080.0, 1030.0), shifted = bounded + rounder, part = bounded - (shifted - rounder);
    const V upper = from_bits<V>(bits_of(part) & ~std::int64_t{0x7ffffff}), lower = part - upper;
    const Reduced<V> rest{bits_of(shifted) - rounder_bits, upper * high, -(upper * low + lower * log_2)};
    return scaled(1.0 + rest.minus_one(), rest.k);
}

// x as 2^k (1 + f), where x is positive and normal.
template <class V>
struct Mantissa {
    V k, f;
};
template <class V>
XR_INLINE Mantissa<V> mantissa(V x) {
    constexpr std::int64_t root_half = 0x3fe6a09e667f3bcd;
    const typename Integers<V>::type bits = bits_of(x), k = (bits - root_half) >> 52;
    return {from_bits<V>(k + rounder_bits) - rounder, from_bits<V>(bits - (k << 52)) - 1.0};
}

// log(1 + f) - f + f^2 / 2 of (2).
template <class V>
XR_INLINE V log_tail(V f, V half_square) {
    const V s = f / (2.0 + f), square = s * s;
    V sum = fill<V>(2.0 / 21);
    for (int odd = 19; odd > 1; odd -= 2) sum = sum * square + 2.0 / odd;
    return s * (half_square + sum * square);
}

// k log 2 + log(1 + f) + rest, where rest is small.
template <class V>
XR_INLINE V log_of(const Mantissa<V>& x, V rest) {
    const V half_square = 0.5 * x.f * x.f;
    return x.k * log_2_high - ((half_square - (log_tail(x.f, half_square) + (x.k * log_2_low + rest))) - x.f);
}

// Of positive normal numbers.
template <class V>
XR_INLINE V normal_log(V x) {
    return log_of(mantissa(x), V{});
}

// 1 in the place of what has no logarithm, so that its bits need not be looked at.
template <class V>
XR_INLINE V positive_or_one(V x) {
    return x > 0.0 ? x : fill<V>(1.0);
}

// The same of any number above 0, and that of 1 in the place of others; subnormal ones are scaled up first.
template <class V>
XR_INLINE Mantissa<V> any_mantissa(V x) {
    const V positive = positive_or_one(x);
    const auto small = positive < 0x1p-1022;
    const Mantissa<V> part = mantissa(small ? positive * 0x1p54 : positive);
    return {part.k - (small ? fill<V>(54.0) : V{}), part.f};
}

// A logarithm of x, `value` where x is above 0 and finite.
template <class V>
XR_INLINE V log_or_limit(V x, V value) {
    return x > 0.0 ? (x < inf ? value : x) : x == 0.0 ? fill<V>(-inf) : fill<V>(nan);
}

template <class V>
XR_INLINE V log(V x) {
    return log_or_limit(x, log_of(any_mantissa(x), V{}));
}

// log(1 + x): of 1 + x rounded, with what rounding took off; where k is 0 that is not needed, since f is x itself.
template <class V>
XR_INLINE V log1p(V x) {
    const V sum = 1.0 + x, lost = x > 1.0 ? 1.0 - (sum - x) : x - (sum - 1.0);
    const Mantissa<V> part = mantissa(positive_or_one(sum));
    const auto direct = part.k == 0.0;
    const V value = log_of(Mantissa<V>{part.k, direct ? x : part.f}, direct ? V{} : lost / sum);
    return x < inf ? log_or_limit(sum, value) : x;
}

// Exact for powers of 2: the logarithm of the mantissa, in two numbers, times 1 / log 2, in two numbers.
template <class V>
XR_INLINE V log2(V x) {
    constexpr double high = 0x1.7154765200000p0, low = 0x1.705fc2eefa200p-33;
    const Mantissa<V> part = any_mantissa(x);
    const V half_square = 0.5 * part.f * part.f, upper = from_bits<V>(bits_of(part.f - half_square) & ~std::int64_t{0xffffffff});
    const V lower = ((part.f - upper) - half_square) + log_tail(part.f, half_square), product = upper * high, sum = part.k + product;
    return log_or_limit(x, sum + (((part.k - sum) + product) + ((lower + upper) * low + lower * high)));
}

// By t = e^(-2 |x|) - 1: no digits are lost near 0.
template <class V>
XR_INLINE V tanh(V x) {
    const V size = x < 0.0 ? -x : x;
    const Reduced<V> part = reduced(size > 20.0 ? fill<V>(-40.0) : -2.0 * size);
    const V scale = power_of_two<V>(part.k), t = scale * part.minus_one() + (scale - 1.0), value = (0.0 - t) / (2.0 + t);
    return x < 0.0 ? -value : value;
}

// base^exponent of a positive base: by products where the exponent is whole, and otherwise by e^(exponent log(base)).
inline double pow(double base, double exponent) {
    const double size = exponent < 0 ? -exponent : exponent;
    if (!(size < 0x1p31) || size != static_cast<double>(static_cast<std::int64_t>(size))) return exp(exponent * log(base));
    double power = 1, square = base;
    for (auto rest = static_cast<std::int64_t>(size); rest > 0; rest >>= 1, square *= square)
        if (rest & 1) power *= square;
    return exponent < 0 ? 1 / power : power;
}

// A polynomial over another, each from its constant term on.
template <class V>
XR_INLINE V rational(V r, const std::array<double, 8>& above, const std::array<double, 8>& below) {
    V a = fill<V>(above[7]), b = fill<V>(below[7]);
    for (int i = 6; i >= 0; --i) a = a * r + above[i], b = b * r + below[i];
    return a / b;
}

// The number below which a standard normal draw lies with probability p, between 0 and 1 (Wichura 1988, algorithm AS 241): for p within
// `central` of 1/2, and in the tails.
constexpr double central = 0.425;
template <class V>
XR_INLINE V central_quantile(V p) {
    const V q = p - 0.5;
    return q * rational(central * central - q * q,
                        {3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4, 4.5921953931549871457e4,
                         6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
                        {1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
                         2.8729085735721942674e4, 5.2264952788528545610e3});
}
inline double tail_quantile(double p) {
    const double r = std::sqrt(-log(p < 0.5 ? p : 1 - p));
    const double value = r <= 5 ? rational(r - 1.6,
                                           {1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
                                            1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
                                           {1, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
                                            1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9})
                                : rational(r - 5,
                                           {6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 2.96560571828504891230e-1,
                                            2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
                                           {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
                                            1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15});
    return p < 0.5 ? -value : value;
}

}  // namespace exactrank::portable

namespace exactrank {

// out_i = e^(x_i - shift); `out` has room for a multiple of eight, and what lies beyond n becomes 1.
static XR_CLONES void exponentials(const double* x, std::size_t n, double shift, double* out) {
    for (std::size_t i = 0; i < n; i += 8) {
        Doubles v = Doubles{} + shift;
        std::memcpy(&v, x + i, std::min<std::size_t>(8, n - i) * sizeof(double));
        v = portable::bounded_exp(v - shift);
        std::memcpy(out + i, &v, sizeof v);
    }
}

}  // namespace exactrank
