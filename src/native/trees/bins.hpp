// Features in bins: where the values of a feature are cut, and a matrix as the numbers of bins.
//
// The cuts of a feature come from a sample of the documents. A document is in the sample by a hash of its features, so that the sample does
// not depend on the order of documents, on threads, or on how they are divided into files:
//
//   document i is in the sample  <=>  hash(x_i) < share * 2^64                                                              (1)
//
// Up to the maximum number of bins every distinct value of the sample has its own bin; beyond that bins hold about as many documents each, and
// a value of more documents than that has its own. Bin b of a feature with cuts t_0 < t_1 < ... holds the values with t_{b-1} < x <= t_b. If
// documents lack the feature, NaN has the bin after the last. Categories are bins themselves, the most frequent ones; all others, and NaN,
// share the bin after the last.
//
// A matrix in bins lies in tiles of 16 features, row after row, one byte per value, so that the histograms of a tile fit into the first-level
// cache (histogram.hpp). Features with more than 256 bins lie in columns of two bytes per value. A feature with a single bin lies nowhere.
#pragma once

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/dispatch.hpp"
#include "support/matrix.hpp"
#include "support/threads.hpp"
#include "support/xxh3.hpp"

namespace exactrank {

// Memory in large pages, since rows are visited far apart; not zeroed.
template <class T>
class Pages {
public:
    Pages() = default;
    explicit Pages(std::size_t size) : size_(size) {
        if (size > std::numeric_limits<std::size_t>::max() / sizeof(T) - 2 * large) throw std::bad_alloc();
        const std::size_t bytes = size * sizeof(T);
#ifdef __linux__
        if (bytes >= large) {
            cells_ = {static_cast<T*>(mapped(bytes)), Free{bytes}};
            return;
        }
#endif
        cells_ = {static_cast<T*>(std::aligned_alloc(64, std::max<std::size_t>((bytes + 63) / 64 * 64, 64))), Free{}};
        if (!cells_) throw std::bad_alloc();
    }
    T* data() const { return cells_.get(); }
    std::size_t size() const { return size_; }

private:
    static constexpr std::size_t large = std::size_t{1} << 21;

#ifdef __linux__
    // Begins with a large page; what a mapping needs before and after for that is given back.
    static void* mapped(std::size_t bytes) {
        const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), whole = (bytes + page - 1) / page * page;
        void* const from = mmap(nullptr, whole + large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (from == MAP_FAILED) throw std::bad_alloc();
        auto* const first = static_cast<std::byte*>(from);
        const std::size_t before = (large - reinterpret_cast<std::uintptr_t>(first) % large) % large;
        if (before > 0) munmap(first, before);
        if (large > before) munmap(first + before + whole, large - before);
        madvise(first + before, whole, MADV_HUGEPAGE);
        return first + before;
    }
#endif

    struct Free {
        std::size_t mapped = 0;  // bytes, where the memory is a mapping
        void operator()(T* cells) const {
#ifdef __linux__
            if (mapped > 0) {
                munmap(cells, mapped);
                return;
            }
#endif
            std::free(cells);
        }
    };
    std::unique_ptr<T, Free> cells_;
    std::size_t size_ = 0;
};

// The rows of `x` by (1), where `limit` is share * 2^64.
inline std::vector<std::int64_t> sampled_rows(const MatrixView<const float>& x, std::uint64_t limit, int threads) {
    constexpr std::size_t rows_per_block = 4096;
    std::vector<std::vector<std::int64_t>> blocks((x.rows + rows_per_block - 1) / rows_per_block);
    for_each_block(x.rows, rows_per_block, threads, [&](std::size_t first, std::size_t last) {
        auto& rows = blocks[first / rows_per_block];
        for (std::size_t i = first; i < last; ++i) {
            float few[4] = {};  // the hash is of nine bytes or more
            const float* row = x.width < 4 ? std::copy_n(x.row(i), x.width, few) - x.width : x.row(i);
            if (xxh3::hash(reinterpret_cast<const unsigned char*>(row), std::max<std::size_t>(x.width, 4) * sizeof(float)) <= limit)
                rows.push_back(static_cast<std::int64_t>(i));
        }
    });
    std::vector<std::int64_t> all;
    for (const auto& rows : blocks) all.insert(all.end(), rows.begin(), rows.end());
    return all;
}

// A number as models read it: what is this close to 0 counts as 0 (trees.hpp).
inline float as_scored(float x) { return (x >= -1e-35f) & (x <= 1e-35f) ? 0.0f : x; }

// An unsigned number in the order of floats; both zeros are the same.
inline std::uint32_t ordered(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

inline float from_ordered(std::uint32_t key) { return std::bit_cast<float>(key >> 31 ? key ^ 0x80000000u : ~key); }

// Sorts keys by three passes over 11 bits each; one that would move nothing is left out.
inline void sort_keys(std::vector<std::uint32_t>& keys, std::vector<std::uint32_t>& scratch) {
    constexpr int digits = 3, bits = 11;
    constexpr std::uint32_t mask = (1u << bits) - 1;
    std::array<std::array<std::uint32_t, mask + 1>, digits> counts{};
    for (const std::uint32_t key : keys)
        for (int d = 0; d < digits; ++d) ++counts[d][key >> bits * d & mask];
    scratch.resize(keys.size());
    for (int d = 0; d < digits; ++d) {
        if (keys.empty() || counts[d][keys[0] >> bits * d & mask] == keys.size()) continue;
        std::uint32_t start = 0;
        for (std::uint32_t& count : counts[d]) start += std::exchange(count, start);
        for (const std::uint32_t key : keys) scratch[counts[d][key >> bits * d & mask]++] = key;
        keys.swap(scratch);
    }
}

struct ValueCount {
    float value;
    std::uint32_t count;
};

inline void find_distinct(const std::vector<std::uint32_t>& sorted, std::vector<ValueCount>& values) {
    values.clear();
    for (std::size_t first = 0, last = 0; first < sorted.size(); first = last) {
        while (last < sorted.size() && sorted[last] == sorted[first]) ++last;
        values.push_back({from_ordered(sorted[first]), static_cast<std::uint32_t>(last - first)});
    }
}

// The cuts between at most `most` bins of these values, which rise.
inline std::vector<double> cuts_between(const std::vector<ValueCount>& values, std::size_t most) {
    std::vector<double> cuts;
    std::size_t left = 0;  // documents that have no bin yet
    for (const ValueCount& v : values) left += v.count;
    std::size_t bins = most, held = 0, share = (left + bins - 1) / bins;
    for (std::size_t i = 0; i + 1 < values.size() && bins > 1; ++i) {
        held += values[i].count;
        const bool is_full = held >= share || (values[i + 1].count >= share && 2 * held >= share);
        if (values.size() > most && !is_full) continue;
        cuts.push_back((static_cast<double>(values[i].value) + static_cast<double>(values[i + 1].value)) / 2);
        left -= held, held = 0, --bins;
        share = (left + bins - 1) / bins;
    }
    return cuts;
}

// The most frequent categories, in the order of their numbers; of equally frequent ones those with lower numbers.
inline std::vector<double> frequent_categories(std::vector<ValueCount> values, std::size_t most) {
    std::erase_if(values, [](const ValueCount& v) { return !(v.value >= 0 && v.value < 0x1p31f); });
    std::stable_sort(values.begin(), values.end(), [](const ValueCount& a, const ValueCount& b) { return a.count > b.count; });
    if (values.size() > most) values.resize(most);
    std::vector<double> categories;
    for (const ValueCount& v : values) categories.push_back(std::floor(static_cast<double>(v.value)));
    std::sort(categories.begin(), categories.end());
    categories.erase(std::unique(categories.begin(), categories.end()), categories.end());
    return categories;
}

// What all documents have in common: the cuts or categories of each feature, and where it lies. Never changed, so shared.
struct BinLayout {
    static constexpr std::size_t per_tile = 16;

    enum Kind : std::uint8_t { number = 0, number_or_missing = 1, category = 2 };
    struct Feature {
        Kind kind;
        std::uint32_t bins;      // that of missing values or other categories included
        std::int32_t tile = -1;  // -1: not in a tile
        std::int32_t slot = 0;   // in the tile, or which column of two bytes
        std::size_t cell = 0;    // where its histogram begins
        bool is_used() const { return bins > 1; }
        // How many bins hold numbers, or known categories.
        std::uint32_t known() const { return bins - (kind != number); }
    };

    BinLayout(std::vector<std::size_t> cut_start, std::vector<double> cut, std::span<const std::uint8_t> kinds)
        : start(std::move(cut_start)), cuts(std::move(cut)), features(kinds.size()) {
        std::size_t slots = 0;
        for (std::size_t f = 0; f < features.size(); ++f) {
            const auto kind = static_cast<Kind>(kinds[f]);
            const std::size_t count = start[f + 1] - start[f];
            Feature& feature = features[f] = {kind, static_cast<std::uint32_t>(kind == category ? count + 1 : count + 1 + (kind == number_or_missing))};
            if (!feature.is_used()) continue;
            feature.cell = cells;
            cells += feature.bins;
            if (feature.bins > 256) {
                feature.slot = static_cast<std::int32_t>(columns++);
            } else {
                feature.tile = static_cast<std::int32_t>(slots / per_tile), feature.slot = static_cast<std::int32_t>(slots % per_tile);
                ++slots;
            }
        }
        tiles = (slots + per_tile - 1) / per_tile;
    }

    std::span<const double> cuts_of(std::size_t f) const { return {cuts.data() + start[f], start[f + 1] - start[f]}; }

    std::vector<std::size_t> start;
    std::vector<double> cuts;
    std::vector<Feature> features;
    std::size_t tiles = 0, columns = 0, cells = 0;
};

// Cuts or categories of every feature from a sample; `kinds` as in BinLayout. Features of the same kind of bins, one after the other.
inline std::shared_ptr<const BinLayout> make_layout(const MatrixView<const float>& sample, std::size_t bins, std::span<const std::uint8_t> kinds, int threads) {
    std::vector<std::vector<double>> cuts(sample.width);
    constexpr std::size_t together = 16;  // features that share a cache line of a row
    for_each_block(sample.width, together, threads, [&](std::size_t first, std::size_t last) {
        std::vector<std::vector<std::uint32_t>> keys(last - first, std::vector<std::uint32_t>(sample.rows));
        std::array<std::size_t, together> counts{};
        constexpr std::size_t block = 256;  // rows that stay in the cache while one feature after the other is read
        for (std::size_t begin = 0; begin < sample.rows; begin += block)
            for (std::size_t f = first; f < last; ++f) {
                std::uint32_t* key = keys[f - first].data() + counts[f - first];
                for (std::size_t i = begin; i < std::min(sample.rows, begin + block); ++i) {
                    const float x = sample.row(i)[f];
                    *key = ordered(as_scored(x));
                    key += x == x;  // NaN is overwritten
                }
                counts[f - first] = static_cast<std::size_t>(key - keys[f - first].data());
            }
        std::vector<std::uint32_t> scratch;
        std::vector<ValueCount> values;
        for (std::size_t f = first; f < last; ++f) {
            breathe();
            keys[f - first].resize(counts[f - first]);
            sort_keys(keys[f - first], scratch);
            find_distinct(keys[f - first], values);
            cuts[f] = kinds[f] == BinLayout::category ? frequent_categories(values, bins) : cuts_between(values, bins);
        }
    });
    std::vector<std::size_t> start{0};
    std::vector<double> flat;
    for (const auto& own : cuts) flat.insert(flat.end(), own.begin(), own.end()), start.push_back(flat.size());
    return std::make_shared<const BinLayout>(std::move(start), std::move(flat), kinds);
}

// A grid over floats between some bounds, which rise: as many cells per octave on both sides of 0, and one for what is closer to 0 than any
// bound. A cell is found without a branch, and rises with the number.
class FloatGrid {
public:
    FloatGrid() = default;
    explicit FloatGrid(std::span<const float> bounds) {
        if (bounds.empty()) return;
        base_ = std::numeric_limits<std::int32_t>::max();
        for (const float bound : bounds)
            if (bound != 0) base_ = std::min(base_, std::bit_cast<std::int32_t>(std::fabs(bound)) - 1);
        low_ = place(bounds.front()), high_ = place(bounds.back());
        shift_ = std::max(0, static_cast<int>(std::bit_width(distance(high_))) - cell_bits);
    }

    XR_INLINE std::uint32_t cell(float x) const {
        const std::int32_t at = place(x), above = at > low_ ? at : low_, within = above < high_ ? above : high_;
        return distance(within) >> shift_;
    }
    std::size_t cells() const { return (distance(high_) >> shift_) + 1; }

private:
    static constexpr int cell_bits = 11;

    // The bits of the magnitude above those of the least bound, with its sign.
    XR_INLINE std::int32_t place(float x) const {
        const auto bits = std::bit_cast<std::int32_t>(x), sign = bits >> 31, magnitude = bits & 0x7fffffff;
        return (((magnitude > base_ ? magnitude : base_) - base_) ^ sign) - sign;
    }
    XR_INLINE std::uint32_t distance(std::int32_t at) const { return static_cast<std::uint32_t>(at) - static_cast<std::uint32_t>(low_); }

    std::int32_t base_ = 0, low_ = 0, high_ = 0;
    int shift_ = 0;
};

// Values as models read them, and their cells.
static XR_CLONES void find_cells(const FloatGrid& grid, std::size_t count, float* values, std::uint32_t* cells) {
    const FloatGrid own = grid;
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = as_scored(values[i]);
        cells[i] = own.cell(values[i]);
    }
}

// Finds the bins of values of one feature: a grid says where to begin, and a binary search of as many steps as the fullest cell of the grid
// needs goes on from there, which mostly is one. So no branch depends on a value.
class BinFinder {
public:
    static constexpr std::size_t together = 256;  // values at once, at most: rows that stay in the second-level cache

    BinFinder(const BinLayout& layout, std::size_t f) : kind_(layout.features[f].kind), last_(layout.features[f].bins - 1) {
        for (const double cut : layout.cuts_of(f)) bounds_.push_back(kind_ == BinLayout::category ? static_cast<float>(cut) : rounded_down(cut));
        known_ = bounds_.size();
        grid_ = FloatGrid(bounds_);
        std::vector<std::uint16_t> held(grid_.cells());
        for (const float bound : bounds_) ++held[grid_.cell(bound)];
        steps_ = static_cast<int>(std::bit_width(*std::max_element(held.begin(), held.end())));
        first_.resize(held.size());
        std::exclusive_scan(held.begin(), held.end(), first_.begin(), std::uint16_t{0});
        bounds_.resize(bounds_.size() + (std::size_t{1} << steps_), HUGE_VALF);
    }

    // The bins of `count` values, the first of which is `x`, and each `stride` after the one before; likewise `out`.
    template <class Bin>
    void find(const float* x, std::size_t stride, std::size_t count, Bin* out, std::size_t out_stride) const {
        if (kind_ == BinLayout::category) {
            for (std::size_t i = 0; i < count; ++i) out[i * out_stride] = static_cast<Bin>(category(x[i * stride]));
            return;
        }
        alignas(64) float values[together];
        alignas(64) std::uint32_t cells[together];
        for (std::size_t i = 0; i < count; ++i) values[i] = x[i * stride];
        find_cells(grid_, count, values, cells);
        auto search = [&](auto steps) {
            for (std::size_t i = 0; i < count; ++i) {
                const float value = values[i];
                const float* at = bounds_.data() + first_[cells[i]];
                for (int step = steps - 1; step >= 0; --step) at += (at[(1 << step) - 1] < value) << step;
                const auto bin = static_cast<std::uint32_t>(at - bounds_.data());
                out[i * out_stride] = static_cast<Bin>(value == value ? bin : last_);
            }
        };
        steps_ == 1 ? search(std::integral_constant<int, 1>()) : search(steps_);
    }

private:
    static float rounded_down(double t) {
        const auto nearest = static_cast<float>(t);
        return static_cast<double>(nearest) > t ? std::nextafterf(nearest, -HUGE_VALF) : nearest;
    }
    std::uint32_t category(float x) const {
        if (!(x > -1.0f && x < 0x1p31f)) return last_;  // NaN, too
        const float whole = std::trunc(x);
        const auto end = bounds_.begin() + known_, at = std::lower_bound(bounds_.begin(), end, whole);
        return at != end && *at == whole ? static_cast<std::uint32_t>(at - bounds_.begin()) : last_;
    }

    BinLayout::Kind kind_;
    std::uint32_t last_;
    std::size_t known_ = 0;
    std::vector<float> bounds_;
    FloatGrid grid_;
    std::vector<std::uint16_t> first_;
    int steps_ = 0;
};

// A matrix in bins. Tiles lie one after the other, each with 16 bytes per row.
class BinnedRows {
public:
    BinnedRows(std::shared_ptr<const BinLayout> layout, const MatrixView<const float>& x, int threads)
        : layout_(std::move(layout)), rows_(x.rows), bytes_(layout_->tiles * x.rows * BinLayout::per_tile), words_(layout_->columns * x.rows) {
        std::vector<BinFinder> finders;
        for (std::size_t f = 0; f < layout_->features.size(); ++f) finders.emplace_back(*layout_, f);
        for_each_block(rows_, BinFinder::together, threads, [&](std::size_t first, std::size_t last) {
            for (std::size_t f = 0; f < finders.size(); ++f) {
                const BinLayout::Feature& feature = layout_->features[f];
                if (!feature.is_used()) continue;
                const float* values = x.row(first) + f;
                if (feature.tile < 0) {
                    finders[f].find(values, x.width, last - first, words_.data() + feature.slot * rows_ + first, 1);
                } else {
                    std::uint8_t* out = bytes_.data() + (feature.tile * rows_ + first) * BinLayout::per_tile + feature.slot;
                    finders[f].find(values, x.width, last - first, out, BinLayout::per_tile);
                }
            }
            clear_empty_slots(first, last);
        });
    }

    std::size_t rows() const { return rows_; }
    const BinLayout& layout() const { return *layout_; }
    const std::shared_ptr<const BinLayout>& shared_layout() const { return layout_; }
    const std::uint8_t* tile(std::size_t t) const { return bytes_.data() + t * rows_ * BinLayout::per_tile; }
    const std::uint16_t* column(std::size_t c) const { return words_.data() + c * rows_; }
    // The bin of one row.
    std::uint32_t bin(const BinLayout::Feature& feature, std::size_t row) const {
        return feature.tile < 0 ? column(feature.slot)[row] : tile(feature.tile)[row * BinLayout::per_tile + feature.slot];
    }

private:
    // Slots without a feature in the last tile hold 0.
    void clear_empty_slots(std::size_t first, std::size_t last) {
        std::int32_t used = 0;
        for (const auto& feature : layout_->features)
            if (feature.is_used() && feature.tile == static_cast<std::int32_t>(layout_->tiles) - 1) used = feature.slot + 1;
        if (layout_->tiles == 0) return;
        std::uint8_t* out = bytes_.data() + (layout_->tiles - 1) * rows_ * BinLayout::per_tile;
        for (std::size_t i = first; i < last; ++i) std::memset(out + i * BinLayout::per_tile + used, 0, BinLayout::per_tile - used);
    }

    std::shared_ptr<const BinLayout> layout_;
    std::size_t rows_;
    Pages<std::uint8_t> bytes_;
    Pages<std::uint16_t> words_;
};

}  // namespace exactrank
