// Linear scores and their pullback: each row's products are added in one fixed order, so equal rows have equal scores to the bit.
#pragma once

#include <span>

#include "support/doubles.hpp"
#include "support/matrix.hpp"
#include "support/threads.hpp"

namespace exactrank {

static XR_CLONES double dot(const float* x, const double* w, std::size_t n) {
    constexpr std::size_t lanes = 8;
    double sums[lanes] = {};
    std::size_t j = 0;
    for (; j + lanes <= n; j += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(x[j + lane]) * w[j + lane];
    for (; j < n; ++j) sums[j % lanes] += static_cast<double>(x[j]) * w[j];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The same of two vectors of doubles.
static XR_CLONES double dot(const double* x, const double* y, std::size_t n) {
    Doubles sum{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) sum += load_eight(x + i) * load_eight(y + i);
    for (; i < n; ++i) sum[i % 8] += x[i] * y[i];
    return sum_of_eight(sum);
}

static XR_CLONES void add_scaled(double* sum, const float* x, double factor, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) sum[j] += factor * static_cast<double>(x[j]);
}

static XR_CLONES void add_scaled(double* sum, const double* x, double factor, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) sum[j] += factor * x[j];
}

inline void linear_scores(const MatrixView<const float>& x, std::span<const double> w, int threads, std::span<double> out) {
    for_each_block(x.rows, std::max<std::size_t>(1, (1 << 18) / std::max<std::size_t>(1, x.width)), threads, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) out[i] = dot(x.row(i), w.data(), x.width);
    });
}

// The gradient of a function of linear scores: the rows' sum, each times its slope. Blocks are added in order.
inline std::vector<double> pulled_back(const MatrixView<const float>& x, std::span<const double> slope, int threads) {
    const std::size_t rows = x.rows, width = x.width;
    constexpr std::size_t rows_per_block = 4096;
    std::vector<std::vector<double>> parts((rows + rows_per_block - 1) / rows_per_block);
    for_each_block(rows, rows_per_block, threads, [&](std::size_t first, std::size_t last) {
        std::vector<double>& sum = parts[first / rows_per_block];
        sum.assign(width, 0.0);
        for (std::size_t i = first; i < last; ++i) add_scaled(sum.data(), x.row(i), slope[i], width);
    });
    std::vector<double> total(width);
    for (const auto& part : parts)
        for (std::size_t j = 0; j < width; ++j) total[j] += part[j];
    return total;
}

}  // namespace exactrank
