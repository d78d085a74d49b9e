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
#include <span>
#include <vector>

#include "../matrix.hpp"
#include "../threads.hpp"
#include "../xxh3.hpp"

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

// Sorts keys by three passes over 11 bits each.
inline void sort_keys(std::vector<std::uint32_t>& keys, std::vector<std::uint32_t>& scratch) {
    constexpr int digits = 3, bits = 11;
    constexpr std::uint32_t mask = (1u << bits) - 1;
    std::array<std::array<std::uint32_t, mask + 1>, digits> counts{};
    for (const std::uint32_t key : keys)
        for (int d = 0; d < digits; ++d) ++counts[d][key >> bits * d & mask];
    scratch.resize(keys.size());
    for (int d = 0; d < digits; ++d) {
        std::uint32_t start = 0;
        for (std::uint32_t& count : counts[d]) start += std::exchange(count, start);
        for (const std::uint32_t key : keys) scratch[counts[d][key >> bits * d & mask]++] = key;
        keys.swap(scratch);
    }
}

struct ValueCount {
    float value;
    std::size_t count;
};

inline std::vector<ValueCount> distinct_values(const std::vector<std::uint32_t>& sorted) {
    std::vector<ValueCount> values;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (i == 0 || sorted[i] != sorted[i - 1]) values.push_back({from_ordered(sorted[i]), 0});
        ++values.back().count;
    }
    return values;
}

// The cuts between at most `most` bins of these values, which rise.
inline std::vector<double> cuts_between(const std::vector<ValueCount>& values, std::size_t most) {
    std::vector<double> cuts;
    std::size_t left = 0;  // documents that have no bin yet
    for (const ValueCount& v : values) left += v.count;
    std::size_t bins = most, held = 0;
    for (std::size_t i = 0; i + 1 < values.size() && bins > 1; ++i) {
        held += values[i].count;
        const std::size_t share = (left + bins - 1) / bins;
        const bool is_full = held >= share || (values[i + 1].count >= share && 2 * held >= share);
        if (values.size() > most && !is_full) continue;
        cuts.push_back((static_cast<double>(values[i].value) + static_cast<double>(values[i + 1].value)) / 2);
        left -= held, held = 0, --bins;
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
        for (std::size_t i = 0; i < sample.rows; ++i)
            for (std::size_t f = first; f < last; ++f) {
                const float x = sample.row(i)[f];
                keys[f - first][counts[f - first]] = ordered(as_scored(x));
                counts[f - first] += x == x;  // NaN is overwritten
            }
        std::vector<std::uint32_t> scratch;
        for (std::size_t f = first; f < last; ++f) {
            breathe();
            keys[f - first].resize(counts[f - first]);
            sort_keys(keys[f - first], scratch);
            auto values = distinct_values(keys[f - first]);
            cuts[f] = kinds[f] == BinLayout::category ? frequent_categories(std::move(values), bins) : cuts_between(values, bins);
        }
    });
    std::vector<std::size_t> start{0};
    std::vector<double> flat;
    for (const auto& own : cuts) flat.insert(flat.end(), own.begin(), own.end()), start.push_back(flat.size());
    return std::make_shared<const BinLayout>(std::move(start), std::move(flat), kinds);
}

// Finds the bin of a value of one feature: a grid over the order of floats says where to begin, and a binary search of as many steps as the
// fullest cell of the grid needs goes on from there. So no branch depends on a value.
class BinFinder {
public:
    BinFinder(const BinLayout& layout, std::size_t f) : kind_(layout.features[f].kind), last_(layout.features[f].bins - 1) {
        const auto cuts = layout.cuts_of(f);
        for (const double cut : cuts) bounds_.push_back(kind_ == BinLayout::category ? ordered(static_cast<float>(cut)) : ordered(rounded_down(cut)));
        known_ = static_cast<std::uint32_t>(bounds_.size());
        low_ = bounds_.empty() ? 0 : bounds_.front();
        const std::uint32_t range = bounds_.empty() ? 0 : bounds_.back() - low_;
        shift_ = std::max(0, 32 - std::countl_zero(range) - grid_bits);
        first_.resize((range >> shift_) + 2);
        std::uint32_t fullest = 0;
        for (std::size_t cell = 0; cell < first_.size(); ++cell) {
            const std::uint64_t edge = low_ + (std::uint64_t{cell} << shift_);  // the least number of the cell
            const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), edge, [](std::uint32_t bound, std::uint64_t e) { return bound < e; });
            first_[cell] = static_cast<std::uint16_t>(at - bounds_.begin());
            if (cell > 0) fullest = std::max<std::uint32_t>(fullest, first_[cell] - first_[cell - 1]);
        }
        steps_ = std::bit_width(fullest);
        bounds_.resize(bounds_.size() + (std::size_t{1} << steps_), 0xffffffffu);
    }

    std::uint32_t operator()(float x) const {
        if (kind_ == BinLayout::category) return category(x);
        const std::uint32_t key = std::max(ordered(as_scored(x)), low_);
        std::uint32_t bin = first_[std::min<std::size_t>((key - low_) >> shift_, first_.size() - 1)];
        for (int step = steps_ - 1; step >= 0; --step) {
            const std::uint32_t next = bin + (1u << step);
            bin = bounds_[next - 1] < key ? next : bin;
        }
        return x == x ? bin : last_;
    }

private:
    static constexpr int grid_bits = 11;

    static float rounded_down(double t) {
        const auto nearest = static_cast<float>(t);
        return static_cast<double>(nearest) > t ? std::nextafterf(nearest, -HUGE_VALF) : nearest;
    }
    std::uint32_t category(float x) const {
        if (!(x > -1.0f && x < 0x1p31f)) return last_;  // NaN, too
        const std::uint32_t key = ordered(std::trunc(x));
        const auto end = bounds_.begin() + known_, at = std::lower_bound(bounds_.begin(), end, key);
        return at != end && *at == key ? static_cast<std::uint32_t>(at - bounds_.begin()) : last_;
    }

    BinLayout::Kind kind_;
    std::uint32_t last_, known_ = 0, low_ = 0;
    std::vector<std::uint32_t> bounds_;
    std::vector<std::uint16_t> first_;
    int shift_ = 0, steps_ = 0;
};

// A matrix in bins. Tiles lie one after the other, each with 16 bytes per row.
class BinnedRows {
public:
    BinnedRows(std::shared_ptr<const BinLayout> layout, const MatrixView<const float>& x, int threads)
        : layout_(std::move(layout)), rows_(x.rows), bytes_(layout_->tiles * x.rows * BinLayout::per_tile), words_(layout_->columns * x.rows) {
        std::vector<BinFinder> finders;
        for (std::size_t f = 0; f < layout_->features.size(); ++f) finders.emplace_back(*layout_, f);
        constexpr std::size_t together = 256;  // rows that stay in the second-level cache
        for_each_block(rows_, together, threads, [&](std::size_t first, std::size_t last) {
            for (std::size_t f = 0; f < finders.size(); ++f) {
                const BinLayout::Feature& feature = layout_->features[f];
                if (!feature.is_used()) continue;
                if (feature.tile < 0) {
                    std::uint16_t* out = words_.data() + feature.slot * rows_;
                    for (std::size_t i = first; i < last; ++i) out[i] = static_cast<std::uint16_t>(finders[f](x.row(i)[f]));
                } else {
                    std::uint8_t* out = bytes_.data() + feature.tile * rows_ * BinLayout::per_tile + feature.slot;
                    for (std::size_t i = first; i < last; ++i) out[i * BinLayout::per_tile] = static_cast<std::uint8_t>(finders[f](x.row(i)[f]));
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
