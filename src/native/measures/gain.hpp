// The usefulness u of a document from its grade y; a grade below zero is worth nothing.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "support/elementary.hpp"

namespace exactrank {

// 2^y, by the exponent's bits where y is whole.
XR_INLINE double power_of_two(double y) {
    const auto whole = static_cast<std::int64_t>(y > -1000 && y < 1000 ? y : 0.5);
    if (static_cast<double>(whole) == y) [[likely]]
        return std::bit_cast<double>((whole + 1023) << 52);
    return portable::exp2(y);
}

struct Identity {
    XR_INLINE double operator()(double y) const { return y; }
};
struct Linear {
    XR_INLINE double operator()(double y) const { return y > 0 ? y : 0.0; }
};
struct Threshold {  // [y >= least]
    double least;
    XR_INLINE double operator()(double y) const { return static_cast<double>(y >= least); }
};
struct Exponential {  // (2^y - 1) 2^shift
    explicit Exponential(double shift = 0) : shift(shift), offset(power_of_two(shift)) {}
    double shift, offset;
    XR_INLINE double operator()(double y) const { return power_of_two((y > 0 ? y : 0.0) + shift) - offset; }
};
struct Stopping {  // (2^y - 1) / 2^most, the chance that the reader stops here (Chapelle et al. 2009)
    explicit Stopping(double most) : scale(power_of_two(-most)) {}
    double scale;
    XR_INLINE double operator()(double y) const { return (power_of_two(y > 0 ? y : 0.0) - 1.0) * scale; }
};

// A ratio of gains does not change when all are scaled: so no grade is too large for 2^y.
template <class GainFunction>
GainFunction scaled_to(GainFunction gain, double) {
    return gain;
}
inline Exponential scaled_to(Exponential gain, double largest) { return largest > 1000 ? Exponential{-largest} : gain; }

// Which function, with its parameter: what Python passes.
struct Gain {
    std::string kind;
    double parameter = 0;
};

// What make(function) gives, compiled for that very function.
template <class Make>
auto with_gain(const Gain& gain, Make&& make) -> decltype(make(Identity{})) {
    if (gain.kind == "identity") return make(Identity{});
    if (gain.kind == "linear") return make(Linear{});
    if (gain.kind == "threshold") return make(Threshold{gain.parameter});
    if (gain.kind == "exponential") return make(Exponential{});
    if (gain.kind == "stopping") return make(Stopping{gain.parameter});
    throw std::invalid_argument("unknown kind of gain: " + gain.kind);
}

}  // namespace exactrank
