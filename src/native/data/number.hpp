// Decimal text to double, correctly rounded: exactly what Python's float() gives for the same characters.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

#include "support/dispatch.hpp"

namespace exactrank {

constexpr double exact_powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

XR_INLINE unsigned digit(char c) { return static_cast<unsigned>(c) - '0'; }

// Reads a number at p, where some character that cannot belong to a number follows. Returns the end of it, or null when
// there is none; infinities, NaN and values too large for a double are not numbers here. JSON asks for digits on both sides of a point,
// and has neither a plus nor zeros in front.
template <bool json = false>
XR_INLINE const char* read_number(const char* p, double& value) {
    const char* const start = p;
    const bool negative = *p == '-';
    p += negative || *p == '+';
    const char* const digits = p;
    std::uint64_t mantissa = 0;
    while (digit(*p) < 10) mantissa = 10 * mantissa + digit(*p++);
    const char* const point = p;
    if (*p == '.')
        for (++p; digit(*p) < 10; ++p) mantissa = 10 * mantissa + digit(*p);
    const std::int64_t fraction = p > point ? p - point - 1 : 0;
    const std::int64_t digit_count = p - digits - (p > point);
    if (digit_count == 0) return nullptr;
    if (json && (*start == '+' || point == digits || p == point + 1 || (*digits == '0' && point > digits + 1))) return nullptr;
    // Both the integer and the power of ten are exact, so one division rounds once (Clinger 1990).
    if ((*p | 0x20) != 'e' && digit_count <= 19 && fraction <= 22 && mantissa <= (std::uint64_t{1} << 53)) {
        const double magnitude = static_cast<double>(mantissa) / exact_powers_of_ten[fraction];
        value = negative ? -magnitude : magnitude;
        return p;
    }
    if ((*p | 0x20) == 'e') {
        const char* exponent = p + 1 + (p[1] == '-' || p[1] == '+');
        if (digit(*exponent) >= 10) return nullptr;
        for (p = exponent; digit(*p) < 10;) ++p;
    }
#ifdef __cpp_lib_to_chars  // Apple's library has it for floating point from macOS 26
    const auto result = std::from_chars(start + (*start == '+'), p, value);
    if (result.ec != std::errc::result_out_of_range) return result.ec == std::errc() && result.ptr == p ? p : nullptr;
#endif
    value = std::strtod(std::string(start, p).c_str(), nullptr);  // of what is out of range, the tiny rounds to zero or below the normals
    return std::isinf(value) ? nullptr : p;
}

}  // namespace exactrank
