// Step functions of single features: which thresholds a value passes, where to put them, and scores that are sums of steps.
//
//   s(x) = sum_j level_j(k_j),    k_j = how many thresholds of feature j lie below x_j                                     (1)
#pragma once

#include <array>
#include <bit>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "support/dispatch.hpp"
#include "support/matrix.hpp"
#include "support/threads.hpp"

namespace exactrank {

// How many of `count` rising thresholds lie below x, by halves and without branches to mispredict.
XR_INLINE std::size_t passed(const double* threshold, std::size_t count, double x) {
    std::size_t below = 0;
    for (std::size_t n = count; n > 0;) {
        const std::size_t half = (n + 1) / 2;
        below += threshold[below + half - 1] < x ? half : 0;
        n -= half;
    }
    return below;
}

// Puts numbers into rising order by their digits of eleven bits, the last one first.
inline void sort_by_digits(std::vector<float>& values, std::vector<float>& room) {
    constexpr int bits = 11, digits = 3;
    auto digit = [](float x, int d) {
        const auto raw = std::bit_cast<std::uint32_t>(x);
        const std::uint32_t key = raw >> 31 ? ~raw : raw | 0x80000000u;  // in the order of the numbers
        return (key >> (bits * d)) & ((1u << bits) - 1);
    };
    std::array<std::array<std::size_t, 1 << bits>, digits> place{};  // where the next number with a digit goes
    for (const float x : values)
        for (int d = 0; d < digits; ++d) ++place[d][digit(x, d)];
    room.resize(values.size());
    for (int d = 0; d < digits; ++d) {
        std::size_t before = 0;
        for (std::size_t& at : place[d]) before += std::exchange(at, before);
        for (const float x : values) room[place[d][digit(x, d)]++] = x;
        values.swap(room);
    }
}

// Thresholds halfway between neighbors among the values of a feature, which are given in rising order; at most `limit` of them (0:
// between any two), so that about as many documents lie between one and the next. A value that fills more than its part counts as
// one part: the others share what is left.
inline std::vector<double> thresholds_between(const std::vector<float>& values, std::size_t limit) {
    const std::size_t n = values.size(), parts = limit + 1;
    std::vector<std::size_t> ends;  // of runs of equal values
    for (std::size_t i = 1; i <= n; ++i)
        if (i == n || values[i] != values[i - 1]) ends.push_back(i);
    auto share = [&](std::size_t run) { return std::min(n, parts * (ends[run] - (run > 0 ? ends[run - 1] : 0))); };
    std::size_t total = 0, seen = 0, due = 1;
    for (std::size_t run = 0; run < ends.size(); ++run) total += share(run);
    std::vector<double> found;
    for (std::size_t run = 0; run + 1 < ends.size(); ++run) {
        seen += share(run);
        if (limit > 0 && ends.size() > parts && parts * seen < due * total) continue;
        found.push_back((static_cast<double>(values[ends[run] - 1]) + static_cast<double>(values[ends[run]])) / 2);
        due = parts * seen / total + 1;
    }
    return found;
}

using Thresholds = std::vector<std::vector<double>>;  // of every feature

// The thresholds between the values of every column.
inline Thresholds thresholds_of(const MatrixView<const float>& x, std::size_t limit, int threads) {
    constexpr std::size_t at_once = 8;  // columns, which share cache lines
    Thresholds found(x.width);
    for_each_block(x.width, at_once, threads, [&](std::size_t first, std::size_t last) {
        std::vector<std::vector<float>> values(last - first, std::vector<float>(x.rows));
        for (std::size_t i = 0; i < x.rows; ++i)
            for (std::size_t j = first; j < last; ++j) values[j - first][i] = x.row(i)[j];
        std::vector<float> room;
        for (std::size_t j = first; j < last; ++j) {
            breathe();
            sort_by_digits(values[j - first], room);
            found[j] = thresholds_between(values[j - first], limit);
        }
    });
    return found;
}

// Of every document how many thresholds of each feature it passes: its bin.
class ThresholdBins {
public:
    ThresholdBins(const MatrixView<const float>& x, Thresholds&& thresholds, int threads) : rows_(x.rows), thresholds_(std::move(thresholds)) {
        std::size_t most = 0;
        for (const auto& each : thresholds_) most = std::max(most, each.size());
        if (most > std::numeric_limits<std::uint16_t>::max())
            fill<std::uint32_t>(x, threads);
        else
            most > std::numeric_limits<std::uint8_t>::max() ? fill<std::uint16_t>(x, threads) : fill<std::uint8_t>(x, threads);
    }

    std::size_t rows() const { return rows_; }
    std::size_t width() const { return thresholds_.size(); }
    std::size_t thresholds(std::size_t feature) const { return thresholds_[feature].size(); }
    // Calls body(bins), where bins points to those of all documents in one feature.
    template <class Body>
    auto with_column(std::size_t feature, Body&& body) const {
        return std::visit([&](const auto& columns) { return body(columns.data() + feature * rows_); }, columns_);
    }

private:
    template <class Bin>
    void fill(const MatrixView<const float>& x, int threads) {
        std::vector<Bin>& columns = columns_.emplace<std::vector<Bin>>(rows_ * width());
        for_each_block(rows_, 1024, threads, [&](std::size_t first, std::size_t last) {
            for (std::size_t j = 0; j < width(); ++j)
                for (std::size_t i = first; i < last; ++i)
                    columns[j * rows_ + i] = static_cast<Bin>(passed(thresholds_[j].data(), thresholds_[j].size(), static_cast<double>(x.row(i)[j])));
        });
    }

    std::size_t rows_;
    Thresholds thresholds_;
    std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>, std::vector<std::uint32_t>> columns_;  // feature by feature
};

// (1): feature j has the thresholds from start[j] to start[j + 1] and, one more, the levels from start[j] + j on.
struct Steps {
    std::span<const std::int64_t> start;
    std::span<const double> threshold, level;
};

// (1) of a row; NaN where a value is missing.
inline double step_score(const float* x, const Steps& steps) {
    double sum = 0;
    for (std::size_t j = 0; j + 1 < steps.start.size(); ++j) {
        if (x[j] != x[j]) return std::numeric_limits<double>::quiet_NaN();
        const std::int64_t start = steps.start[j], count = steps.start[j + 1] - start;
        if (count > 0) sum += steps.level[start + static_cast<std::int64_t>(j + passed(steps.threshold.data() + start, count, static_cast<double>(x[j])))];
    }
    return sum;
}

inline void step_scores(const MatrixView<const float>& x, const Steps& steps, int threads, std::span<double> out) {
    for_each_block(x.rows, 4096, threads, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) out[i] = step_score(x.row(i), steps);
    });
}

}  // namespace exactrank
