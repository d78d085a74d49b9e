// Which features lose something when they are kept as floats: values of a query that differ, and become equal; whole numbers that are
// rounded. Other numbers are rounded too, but by less than anyone wrote down.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "data/number.hpp"
#include "support/dispatch.hpp"
#include "support/matrix.hpp"
#include "support/threads.hpp"

namespace exactrank {

// Whether x, below 2^51, is a whole number but no float: added to it, `ones` leaves no bits for a fraction.
XR_INLINE bool is_rounded_whole(double x) {
    constexpr double ones = 0x1.8p52;
    return (static_cast<double>(static_cast<float>(x)) != x) & (x + ones - ones == x) & (std::abs(x) < 0x1p51);
}

struct Rounded {
    std::int64_t all = 0, whole = 0;
};

// How many of the values are no floats, and how many of these are whole numbers; NaN is none that could be lost.
static XR_CLONES Rounded count_rounded(const double* values, std::size_t n) {
    std::int64_t all = 0, whole = 0;
    for (std::size_t i = 0; i < n; ++i) {
        all += (static_cast<double>(static_cast<float>(values[i])) != values[i]) & (values[i] == values[i]);
        whole += is_rounded_whole(values[i]);
    }
    return {all, whole};
}

// Whether x has the fewest digits of all decimals that become its float: text that was written from floats reads so. With an exponent, since
// without one a whole number would be written in full.
inline bool is_decimal_of_float(double x) {
    char digits[32];
    *std::to_chars(digits, digits + sizeof digits - 1, static_cast<float>(x), std::chars_format::scientific).ptr = '\0';
    double read;
    return read_number(digits, read) && read == x;
}

// The values of one feature in one query, found by the floats that they become.
class RoundedValues {
public:
    // How many values become the float that another one, met before, has become, or are rounded whole numbers. Of decimals only those
    // count that are not what a float is written as.
    std::int64_t lost(const double* values, std::size_t n, bool decimals) {
        Rounded rounded = count_rounded(values, n);
        if (decimals && rounded.whole > 0)
            rounded.whole = std::count_if(values, values + n, [](double x) { return is_rounded_whole(x) && !is_decimal_of_float(x); });
        return rounded.whole + (rounded.all > 0 && maybe_equal(values, n) ? made_equal(values, n) : 0);
    }

private:
    struct Slot {
        std::uint32_t stamp = 0;  // that of the call which filled it
        float rounded = 0;
        double value = 0;
    };
    static constexpr std::size_t marks = 1 << 14;

    std::int64_t made_equal(const double* values, std::size_t n) {
        if (slots_.size() < 2 * n) slots_.assign(std::bit_ceil(2 * n), {});
        if (++stamp_ == 0) slots_.assign(slots_.size(), {}), stamp_ = 1;
        std::int64_t count = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const float rounded = as_float(values[i]);
            if (rounded != rounded) continue;
            std::size_t at = hash(rounded) & (slots_.size() - 1);
            while (slots_[at].stamp == stamp_ && slots_[at].rounded != rounded) at = (at + 1) & (slots_.size() - 1);
            if (slots_[at].stamp != stamp_)
                slots_[at] = {stamp_, rounded, values[i]};
            else
                count += slots_[at].value != values[i];
        }
        return count;
    }

    static float as_float(double value) { return static_cast<float>(value) + 0.0f; }  // no negative zero
    static std::uint32_t hash(float x) { return static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(x) * 0x9e3779b97f4a7c15u) >> 32); }

    // Whether two of the floats, zeros apart, have the same mark: else there is nothing to look for. Without branches to mispredict.
    bool maybe_equal(const double* values, std::size_t n) {
        if (n > marks / 32) return true;
        if (++mark_ == 0) marked_.fill(0), mark_ = 1;
        int met = 0;
        for (std::size_t i = 0; i < n; ++i) {
            std::uint8_t& mark = marked_[hash(as_float(values[i])) % marks];
            met |= (mark == mark_) & (values[i] != 0);
            mark = mark_;
        }
        return met;
    }

    std::vector<Slot> slots_;
    std::uint32_t stamp_ = 0;
    std::array<std::uint8_t, marks> marked_{};
    std::uint8_t mark_ = 0;
};

// Of each column how many values are lost, in all queries.
inline std::vector<std::int64_t> lost_by_rounding(const MatrixView<const double>& x, std::span<const std::int64_t> indptr, bool decimals, int threads) {
    constexpr std::size_t at_once = 8;  // columns, which share cache lines
    struct Scratch {
        RoundedValues values;
        std::vector<double> columns;
    };
    const std::size_t width = x.width;
    std::vector<std::int64_t> total(width, 0);
    std::mutex lock;
    for_each_query<Scratch>(indptr, threads, [&](Scratch& scratch, std::size_t q) {
        const auto first = static_cast<std::size_t>(indptr[q]), n = static_cast<std::size_t>(indptr[q + 1]) - first;
        scratch.columns.resize(at_once * n);
        for (std::size_t low = 0; low < width; low += at_once) {
            const std::size_t high = std::min(width, low + at_once);
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = low; j < high; ++j) scratch.columns[(j - low) * n + i] = x.row(first + i)[j];
            for (std::size_t j = low; j < high; ++j) {
                const std::int64_t count = scratch.values.lost(scratch.columns.data() + (j - low) * n, n, decimals);
                if (count == 0) continue;
                const std::lock_guard<std::mutex> hold(lock);
                total[j] += count;
            }
        }
    });
    return total;
}

}  // namespace exactrank
