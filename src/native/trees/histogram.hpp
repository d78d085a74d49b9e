// Histograms of forces in whole numbers: sums that are the same for every order, cut and number of threads.
//
// A tree follows a slope g_i and a curvature h_i >= 0 of each document. Both are rounded to multiples of a power of two,
//
//   slope_i = round(g_i / unit_g),  |slope_i| <= 2^13;    bend_i = round(h_i / unit_h) <= 2^11, and at least 1 where h_i > 0      (1)
//
// and packed into one 64-bit word together with a count of 1:  force_i = slope_i * 2^37 + bend_i * 2^13 + 1. Words of up to 8,191 documents
// add up without an overflow from one field into the next, so that a cell of a histogram costs one addition. After each such block of
// documents the sums go into wide cells: one word for slopes, and one for curvatures and counts together (`Widths`).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/dispatch.hpp"
#include "support/threads.hpp"
#include "trees/bins.hpp"

namespace exactrank {

using Force = std::uint64_t;

constexpr int slope_bits = 13, most_bend_bits = 11, block_bits = 13;
constexpr std::size_t rows_per_block = (std::size_t{1} << block_bits) - 1;
constexpr int bend_shift = block_bits, slope_shift = 2 * block_bits + most_bend_bits;

// How curvature and count share a word of a wide cell: the count takes the low bits, as many as all documents together need.
struct Widths {
    explicit Widths(std::uint64_t documents) : count(std::bit_width(documents)), bend(std::min(most_bend_bits, 64 - 2 * count)) {}
    int count;  // bits of a count
    int bend;   // bits of one document's curvature
};

// Sums over documents.
struct ForceSums {
    std::int64_t slope = 0;
    std::uint64_t rest = 0;  // curvature and count

    ForceSums operator+(const ForceSums& other) const { return {slope + other.slope, rest + other.rest}; }
    ForceSums operator-(const ForceSums& other) const { return {slope - other.slope, rest - other.rest}; }
    std::int64_t count(const Widths& widths) const { return static_cast<std::int64_t>(rest & ((std::uint64_t{1} << widths.count) - 1)); }
    std::int64_t bend(const Widths& widths) const { return static_cast<std::int64_t>(rest >> widths.count); }
};

inline ForceSums widened(Force packed, const Widths& widths) {
    const std::uint64_t bend = packed >> bend_shift & ((std::uint64_t{1} << (most_bend_bits + block_bits)) - 1);
    return {static_cast<std::int64_t>(packed) >> slope_shift, (bend << widths.count) + (packed & rows_per_block)};
}

// (1); both units are powers of two, given by their inverse.
inline Force packed_force(double slope, double bend, double per_slope, double per_bend) {
    constexpr double shift = 0x1.8p52;  // where doubles are one apart
    constexpr double most_slope = 1 << slope_bits, most_bend = 1 << most_bend_bits;
    if (!(std::fabs(slope * per_slope) <= most_slope && bend >= 0 && bend * per_bend <= most_bend)) [[unlikely]]
        throw std::invalid_argument("a force is too large for its unit");
    const auto whole = static_cast<std::int64_t>((slope * per_slope + shift) - shift);
    auto curved = static_cast<std::int64_t>((bend * per_bend + shift) - shift);
    if (bend > 0 && curved == 0) curved = 1;
    return (static_cast<Force>(whole) << slope_shift) + (static_cast<Force>(curved) << bend_shift) + 1;
}

// Sums of slopes, and behind them those of the rest, one cell per bin of each feature as the layout has them.
struct HistogramView {
    std::int64_t* slope;
    std::uint64_t* rest;

    ForceSums at(std::size_t cell) const { return {slope[cell], rest[cell]}; }
};

class Histogram {
public:
    explicit Histogram(std::size_t cells) : cells_(2 * cells), size_(cells) {}
    HistogramView view() { return {reinterpret_cast<std::int64_t*>(cells_.data()), cells_.data() + size_}; }
    std::uint64_t* words() { return cells_.data(); }
    std::size_t cells() const { return size_; }

private:
    Pages<std::uint64_t> cells_;
    std::size_t size_;
};

// Gathers cannot help here, and GCC would use them: no versions for wider vectors.
#ifdef XR_VERSIONS
#define XR_NARROW_CLONES __attribute__((unused, target_clones("arch=x86-64-v2", "default")))
#else
#define XR_NARROW_CLONES __attribute__((unused))
#endif

// Prefetching into the second-level cache, well ahead, hides the way to memory; into the first level it does so only in part.
constexpr std::size_t prefetched_rows = 64, padding_rows = 64;  // rows have that number of valid entries more than they say

// Adds the forces of rows to the sums of `n` features of a tile, whose slots are the first of `slots`.
template <int n>
XR_INLINE void add_tile(const std::uint8_t* tile, const std::int32_t* rows, const Force* forces, std::size_t count, const std::uint8_t* slots, Force* sums) {
    for (std::size_t i = 0; i < count; ++i) {
        __builtin_prefetch(tile + static_cast<std::size_t>(rows[i + prefetched_rows]) * BinLayout::per_tile, 0, 2);
        const std::uint8_t* row = tile + static_cast<std::size_t>(rows[i]) * BinLayout::per_tile;
        const Force force = forces[i];
        std::uint64_t bins[2];
#if defined(__GNUC__) && !defined(__clang__)
        using Bytes = std::uint8_t __attribute__((vector_size(16)));
        Bytes values, order;
        std::memcpy(&values, row, 16), std::memcpy(&order, slots, 16);
        if (n < 16) values = __builtin_shuffle(values, order);
        std::memcpy(bins, &values, 16);
#else
        std::uint8_t values[16] = {};
        for (int k = 0; k < n; ++k) values[k] = row[slots[k]];
        std::memcpy(bins, values, 16);
#endif
#pragma GCC unroll 16
        for (int k = 0; k < n; ++k) sums[k * 256 + (bins[k / 8] >> 8 * (k % 8) & 255)] += force;
    }
}

static XR_NARROW_CLONES void add_tile_of(int n, const std::uint8_t* tile, const std::int32_t* rows, const Force* forces, std::size_t count,
                                         const std::uint8_t* slots, Force* sums) {
    switch (n) {
#define XR_CASE(k) \
    case k: return add_tile<k>(tile, rows, forces, count, slots, sums);
        XR_CASE(1)
        XR_CASE(2)
        XR_CASE(3)
        XR_CASE(4) XR_CASE(5) XR_CASE(6) XR_CASE(7) XR_CASE(8) XR_CASE(9) XR_CASE(10) XR_CASE(11) XR_CASE(12) XR_CASE(13) XR_CASE(14) XR_CASE(15) XR_CASE(16)
#undef XR_CASE
    }
}

// Adds packed sums to wide ones, or puts them there if they are the first, and clears them.
static XR_CLONES void spill(Force* packed, std::size_t bins, int count_bits, bool is_first, std::int64_t* slope, std::uint64_t* rest) {
    constexpr std::uint64_t bend_mask = (std::uint64_t{1} << (most_bend_bits + block_bits)) - 1;
    const std::uint64_t kept = is_first ? 0 : ~std::uint64_t{0};
    for (std::size_t b = 0; b < bins; ++b) {
        const Force sum = packed[b];
        slope[b] = static_cast<std::int64_t>(static_cast<std::uint64_t>(slope[b]) & kept) + (static_cast<std::int64_t>(sum) >> slope_shift);
        rest[b] = (rest[b] & kept) + ((sum >> bend_shift & bend_mask) << count_bits) + (sum & rows_per_block);
        packed[b] = 0;
    }
}

static XR_CLONES void subtract(std::uint64_t* from, const std::uint64_t* what, std::size_t words) {
    for (std::size_t w = 0; w < words; ++w) from[w] -= what[w];
}

// The features of one tile that a tree may use.
struct TileChoice {
    std::size_t tile;
    int count = 0;
    std::uint8_t slots[16] = {};
    std::uint32_t features[16] = {};
};

// The features that a tree may use, by where they lie.
struct FeatureChoice {
    FeatureChoice(const BinLayout& layout, std::span<const std::uint8_t> allowed) {
        std::vector<TileChoice> tiles_of(layout.tiles);
        for (std::size_t f = 0; f < layout.features.size(); ++f) {
            const BinLayout::Feature& feature = layout.features[f];
            if (!feature.is_used() || !allowed[f]) continue;
            features.push_back(static_cast<std::uint32_t>(f));
            if (feature.tile < 0) {
                columns.push_back(static_cast<std::uint32_t>(f));
                continue;
            }
            TileChoice& tile = tiles_of[feature.tile];
            tile.slots[tile.count] = static_cast<std::uint8_t>(feature.slot), tile.features[tile.count++] = static_cast<std::uint32_t>(f);
        }
        for (std::size_t t = 0; t < layout.tiles; ++t)
            if (tiles_of[t].tile = t; tiles_of[t].count > 0) tiles.push_back(tiles_of[t]);
    }

    std::vector<std::uint32_t> features, columns;
    std::vector<TileChoice> tiles;
};

// Rows of a node with their forces; `padding_rows` more rows may be read.
struct RowsView {
    const std::int32_t* rows;
    const Force* forces;
    std::size_t count;
};

// The histogram of some rows, which replaces what `out` held for the features chosen. Large nodes are cut into pieces of rows that have sums
// of their own first.
class HistogramBuilder {
public:
    HistogramBuilder(const BinnedRows& binned, const FeatureChoice& choice, const Widths& widths) : binned_(binned), choice_(choice), widths_(widths) {}

    void build(Team& team, const RowsView& node, HistogramView out) {
        const std::size_t columns = choice_.tiles.size() + choice_.columns.size();
        const std::size_t most = team.threads() == 1 ? 1 : node.count / rows_per_piece + 1,
                          wanted = (4 * team.threads() + columns - 1) / std::max<std::size_t>(columns, 1);
        const std::size_t pieces = std::min(most, std::max<std::size_t>(wanted, 1)), length = (node.count + pieces - 1) / std::max<std::size_t>(pieces, 1);
        while (partial_.size() + 1 < pieces) partial_.emplace_back(binned_.layout().cells);
        auto piece = [&](std::size_t task) {
            const std::size_t p = task / columns, c = task % columns, first = std::min(node.count, p * length), last = std::min(node.count, first + length);
            const RowsView some{node.rows + first, node.forces + first, last - first};
            const HistogramView target = p == 0 ? out : partial_[p - 1].view();
            c < choice_.tiles.size() ? add_tile_sums(choice_.tiles[c], some, target) : add_column_sums(choice_.columns[c - choice_.tiles.size()], some, target);
        };
        const bool is_small = node.count * choice_.features.size() < cells_worth_a_thread;
        auto all = [&](std::size_t tasks, auto&& task) {
            if (is_small)
                for (std::size_t i = 0; i < tasks; ++i) task(i);
            else
                team.for_each(tasks, task);
        };
        all(pieces * columns, piece);
        if (pieces == 1) return;
        all(choice_.features.size(), [&](std::size_t k) {
            const BinLayout::Feature& feature = binned_.layout().features[choice_.features[k]];
            for (std::size_t p = 1; p < pieces; ++p)
                for (std::size_t cell = feature.cell; cell < feature.cell + feature.bins; ++cell)
                    out.slope[cell] += partial_[p - 1].view().slope[cell], out.rest[cell] += partial_[p - 1].view().rest[cell];
        });
    }

private:
    static constexpr std::size_t rows_per_piece = 16384, cells_worth_a_thread = 1 << 15;

    void clear(std::uint32_t f, HistogramView out) const {
        const BinLayout::Feature& feature = binned_.layout().features[f];
        std::fill_n(out.slope + feature.cell, feature.bins, 0);
        std::fill_n(out.rest + feature.cell, feature.bins, 0);
    }
    void add_tile_sums(const TileChoice& tile, const RowsView& node, HistogramView out) const {
        alignas(64) Force sums[BinLayout::per_tile * 256];
        std::memset(sums, 0, sizeof(Force) * 256 * tile.count);
        if (node.count == 0)
            for (int k = 0; k < tile.count; ++k) clear(tile.features[k], out);
        for (std::size_t first = 0; first < node.count; first += rows_per_block) {
            breathe();
            const std::size_t count = std::min(rows_per_block, node.count - first);
            add_tile_of(tile.count, binned_.tile(tile.tile), node.rows + first, node.forces + first, count, tile.slots, sums);
            for (int k = 0; k < tile.count; ++k) {
                const BinLayout::Feature& feature = binned_.layout().features[tile.features[k]];
                spill(sums + k * 256, feature.bins, widths_.count, first == 0, out.slope + feature.cell, out.rest + feature.cell);
            }
        }
    }
    void add_column_sums(std::uint32_t f, const RowsView& node, HistogramView out) const {
        const BinLayout::Feature& feature = binned_.layout().features[f];
        clear(f, out);
        const std::uint16_t* column = binned_.column(feature.slot);
        Breath breath;
        for (std::size_t i = 0; i < node.count; ++i) {
            __builtin_prefetch(column + node.rows[i + prefetched_rows]);
            const std::size_t cell = feature.cell + column[node.rows[i]];
            const ForceSums force = widened(node.forces[i], widths_);
            out.slope[cell] += force.slope, out.rest[cell] += force.rest;
            breath.after(1);
        }
    }

    const BinnedRows& binned_;
    const FeatureChoice& choice_;
    Widths widths_;
    std::vector<Histogram> partial_;
};

}  // namespace exactrank
