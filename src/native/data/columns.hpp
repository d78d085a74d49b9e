// What each column of a matrix holds, its columns one after the other, and its rows in another order: one that is given, or by their content.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "support/matrix.hpp"
#include "support/threads.hpp"
#include "support/xxh3.hpp"

namespace exactrank {

struct ColumnSummary {
    std::vector<float> least, most;  // over the numbers; least > most where there are none
    std::vector<std::int64_t> nans;
    std::int64_t first_infinite = -1;  // row * width + column
};

inline ColumnSummary summarize_columns(const MatrixView<const float>& x, int threads) {
    const std::size_t rows = x.rows, width = x.width;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::size_t weight = std::max<std::size_t>(1, (std::size_t{1} << 20) / std::max<std::size_t>(width, 1));
    std::vector<ColumnSummary> parts((rows + weight - 1) / weight);
    auto fresh = [&] {
        return ColumnSummary{std::vector<float>(width, infinity), std::vector<float>(width, -infinity), std::vector<std::int64_t>(width, 0), -1};
    };
    for_each_block(rows, weight, threads, [&](std::size_t first, std::size_t last) {
        ColumnSummary part = fresh();
        for (std::size_t i = first; i < last; ++i)
            for (std::size_t j = 0; j < width; ++j) {
                const float value = x.cells[i * width + j];
                part.least[j] = value < part.least[j] ? value : part.least[j];
                part.most[j] = value > part.most[j] ? value : part.most[j];
                part.nans[j] += value != value;
            }
        for (std::size_t j = 0; j < width; ++j)
            if (part.most[j] == infinity || part.least[j] == -infinity)
                for (std::size_t at = first * width + j; at < last * width; at += width)
                    if (std::isinf(x.cells[at]) && (part.first_infinite < 0 || static_cast<std::int64_t>(at) < part.first_infinite))
                        part.first_infinite = static_cast<std::int64_t>(at);
        parts[first / weight] = std::move(part);
    });
    ColumnSummary all = fresh();
    for (const ColumnSummary& part : parts) {
        for (std::size_t j = 0; j < width; ++j) {
            all.least[j] = std::min(all.least[j], part.least[j]);
            all.most[j] = std::max(all.most[j], part.most[j]);
            all.nans[j] += part.nans[j];
        }
        if (all.first_infinite < 0) all.first_infinite = part.first_infinite;
    }
    return all;
}

// Row i becomes what row order[i] was, following each cycle of the permutation with one row of room.
inline void permute_rows(const MatrixView<float>& x, std::span<const std::int64_t> order) {
    const std::size_t width = x.width;
    std::vector<bool> placed(x.rows, false);
    std::vector<float> held(width);
    Breath breath;
    for (std::size_t start = 0; start < x.rows; ++start) {
        if (placed[start]) continue;
        std::copy_n(x.row(start), width, held.begin());
        std::size_t to = start;
        for (std::size_t from; placed[to] = true, (from = order[to]) != start; to = from) {
            std::copy_n(x.row(from), width, x.row(to));
            breath.after(width + 16);
        }
        std::copy_n(held.begin(), width, x.row(to));
    }
}

// Writes the columns of a row-major matrix one after the other, a block that fits in cache at a time.
inline void transpose(const MatrixView<const float>& x, int threads, std::span<float> out) {
    const std::size_t rows = x.rows, width = x.width;
    constexpr std::size_t block = 64;
    for_each_block(rows, 16 * block, threads, [&](std::size_t first, std::size_t last) {
        for (std::size_t i0 = first; i0 < last; i0 += block)
            for (std::size_t j0 = 0; j0 < width; j0 += block)
                for (std::size_t j = j0; j < std::min(width, j0 + block); ++j)
                    for (std::size_t i = i0; i < std::min(last, i0 + block); ++i) out[j * rows + i] = x.cells[i * width + j];
    });
}

// What documents are told apart by: their features, in units that are powers of two, and other numbers of theirs.
struct Content {
    MatrixView<const float> x;
    std::span<const std::int32_t> units;           // of each feature, where the exponent of a float has its bits
    std::span<const float> stands;                 // for missing values; may be empty
    std::vector<std::span<const double>> numbers;  // at least one list, one number per document

    std::size_t bytes() const { return 4 * x.width + 8 * numbers.size(); }
    void write(std::size_t i, unsigned char* out) const {
        for (std::size_t j = 0; j < x.width; ++j, out += 4) {
            const float value = stands.empty() || !std::isnan(x.row(i)[j]) ? x.row(i)[j] : stands[j];
            const auto bits = std::bit_cast<std::uint32_t>(value), unit = static_cast<std::uint32_t>(units[j]);
            const std::uint32_t kept = std::isfinite(value) && value != 0 ? bits - unit : bits;
            std::memcpy(out, &kept, 4);
        }
        for (const auto& each : numbers) std::memcpy(out, &each[i], 8), out += 8;
    }
};

// The rows of each query, those of the smallest hash first, and of equal hashes in the order given.
inline void content_order(const Content& content, std::span<const std::int64_t> indptr, int threads, std::span<std::int64_t> order) {
    struct Scratch {
        std::vector<unsigned char> row;
        std::vector<std::pair<std::uint64_t, std::int64_t>> keys;
    };
    for_each_query<Scratch>(indptr, threads, [&](Scratch& scratch, std::size_t q) {
        scratch.row.resize(content.bytes());
        scratch.keys.clear();
        Breath breath;
        for (std::int64_t i = indptr[q]; i < indptr[q + 1]; ++i) {
            content.write(i, scratch.row.data());
            scratch.keys.emplace_back(xxh3::hash(scratch.row.data(), scratch.row.size()), i);
            breath.after(scratch.row.size());
        }
        std::sort(scratch.keys.begin(), scratch.keys.end());
        std::transform(scratch.keys.begin(), scratch.keys.end(), order.begin() + indptr[q], [](const auto& key) { return key.second; });
    });
}

}  // namespace exactrank
