// Scores of regression trees, all splits of a tree at once and many rows at a time (QuickScorer: Lucchese et al. 2015, 2016).
//
// Number a tree's leaves from left to right. A split that sends a row to the right rules out the leaves on the split's left:
//
//   alive = AND over the splits with x > threshold of ~(leaves on the split's left)                                        (1)
//   the row's leaf = the first one alive                                                                                    (2)
//   score = sum of the leaves' values, in the order of the trees                                                            (3)
//
// No branch depends on a row, so rows share vectors. A word holds 32 leaves; a larger tree takes several, and (2) is of the first word
// with a leaf alive. Rows hold floats: for a float x, x > t just when x > (t rounded down to a float). First a matrix becomes columns of
// inputs, in which missing values and categories are numbers that the comparison in (1) sends to their side.
#pragma once

#include <cmath>
#include <compare>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "support/dispatch.hpp"
#include "support/matrix.hpp"
#include "support/threads.hpp"

namespace exactrank {

// How LightGBM writes trees. Tree t has the nodes from start[t] to start[t + 1], the first its root, and one leaf more. A child is a
// node of the tree, behind its parent, or ~leaf. A categorical node's threshold is the number of its set, whose bits are the words
// from set_start[threshold] to set_start[threshold + 1].
struct TreeTable {
    const std::int64_t* start;
    std::size_t trees;
    const std::int32_t *feature, *left, *right;
    const double* threshold;
    const std::uint8_t* decision;
    const double* leaf_value;
    const std::int64_t* set_start;
    std::size_t set_count;
    const std::uint32_t* sets;
};

enum Decision : std::uint8_t { categorical = 1, default_left = 2, missing_is_zero = 4, missing_is_nan = 8 };

// The largest float that is at most t.
inline float rounded_down(double t) {
    const auto nearest = static_cast<float>(t);
    return static_cast<double>(nearest) > t ? std::nextafterf(nearest, -HUGE_VALF) : nearest;
}

// A column of numbers from a feature: what NaN and zero become, and at `most` the others; or, with a set of categories, 0 for those in
// it and 1 for all others.
struct Input {
    std::int32_t feature;
    float nan = 0, zero = 0, most = 0;
    std::int64_t set = 0, set_end = 0;

    auto operator<=>(const Input&) const = default;
};

inline bool has_category(const std::uint32_t* set, std::int64_t words, float x) {
    if (!(x > -1.0f && x < 0x1p31f)) return false;  // NaN, too
    const auto category = static_cast<std::int64_t>(x);
    return category / 32 < words && (set[category / 32] >> (category % 32) & 1);
}

// Puts in what stands for NaN and for zero, by which LightGBM means all that is no further from it than `least`.
static XR_CLONES void replace_missing(float* column, std::size_t rows, float nan, float zero, float most) {
    constexpr float least = 1e-35f;
    for (std::size_t i = 0; i < rows; ++i) {
        const float x = column[i], bounded = x < most ? x : most, number = x == x ? bounded : nan;
        column[i] = (x >= -least) & (x <= least) ? zero : number;
    }
}

struct MaskedSplit {
    std::uint32_t input;
    float threshold;
    std::int32_t kept;  // the leaves of a word that stay alive on the right, by bits
};

// 32 leaves of a tree.
struct Word {
    std::uint32_t last_split;  // the first is where the word before ended
    std::int32_t leaf;         // the first one
    bool ends_tree;
};

// How many rows share a vector on this machine: GCC would take wider ones apart.
inline std::size_t native_lanes() {
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(EXACTRANK_NO_CLONES)  // as XR_CLONES
    if (__builtin_cpu_supports("x86-64-v4")) return 16;
    if (__builtin_cpu_supports("x86-64-v3")) return 8;
#endif
    return 4;
}

constexpr std::size_t most_groups = 4;  // vectors of rows that go through the trees together

struct Sixteen {
    using Floats = float __attribute__((vector_size(64)));
    using Bits = std::int32_t __attribute__((vector_size(64)));
    using Unsigned = std::uint32_t __attribute__((vector_size(64)));
};

struct Eight {
    using Floats = float __attribute__((vector_size(32)));
    using Bits = std::int32_t __attribute__((vector_size(32)));
    using Unsigned = std::uint32_t __attribute__((vector_size(32)));
};

struct Four {
    using Floats = float __attribute__((vector_size(16)));
    using Bits = std::int32_t __attribute__((vector_size(16)));
    using Unsigned = std::uint32_t __attribute__((vector_size(16)));
};

template <class Floats>
XR_INLINE Floats load(const float* p) {
    Floats v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// (2) of a word whose leaves begin at `first`, or `later` where none is alive. The lowest bit's number is its exponent as a float, -127
// where there is none; the sign selects, since GCC takes a comparison apart here.
template <class Vector, class Bits = typename Vector::Bits>
XR_INLINE Bits first_alive(Bits alive, std::int32_t first, Bits later) {
    const Bits lowest = alive & (Bits)(-(typename Vector::Unsigned)alive);
    const Bits bit = (((Bits) __builtin_convertvector(lowest, typename Vector::Floats) >> 23) & 0xff) - 127, none = bit >> 31;
    return (none & later) | (~none & (bit + first));
}

struct Ensemble {
    std::vector<Word> words;
    std::vector<MaskedSplit> splits;
    std::vector<double> leaf_value;  // of all trees, each from left to right
};

// Adds (3) to the sums of `groups` vectors of rows.
template <class Vector, std::size_t groups>
XR_INLINE void add_trees(const Ensemble& trees, const float* columns, double* sums) {
    using Floats = typename Vector::Floats;
    using Bits = typename Vector::Bits;
    constexpr std::size_t lanes = sizeof(Floats) / sizeof(float);
    Bits leaf[groups] = {};
    const MaskedSplit* split = trees.splits.data();
    for (const Word& word : trees.words) {
        Bits alive[groups];
        for (std::size_t g = 0; g < groups; ++g) alive[g] = ~Bits{};
        for (const MaskedSplit* const last = trees.splits.data() + word.last_split; split != last; ++split) {
            const float* column = columns + split->input * (groups * lanes);
            for (std::size_t g = 0; g < groups; ++g)  // (1)
                alive[g] = load<Floats>(column + g * lanes) > split->threshold ? alive[g] & split->kept : alive[g];
        }
        for (std::size_t g = 0; g < groups; ++g) leaf[g] = first_alive<Vector>(alive[g], word.leaf, leaf[g]);
        if (!word.ends_tree) continue;
        for (std::size_t g = 0; g < groups; ++g)
            for (std::size_t lane = 0; lane < lanes; ++lane) sums[g * lanes + lane] += trees.leaf_value[leaf[g][lane]];
    }
}

template <class Vector>
XR_INLINE void add_trees_by(std::size_t groups, const Ensemble& trees, const float* columns, double* sums) {
    if (groups == 1) add_trees<Vector, 1>(trees, columns, sums);
    if (groups == 2) add_trees<Vector, 2>(trees, columns, sums);
    if (groups == 3) add_trees<Vector, 3>(trees, columns, sums);
    if (groups == 4) add_trees<Vector, 4>(trees, columns, sums);
}

static XR_CLONES void add_trees_by_16(std::size_t groups, const Ensemble& trees, const float* columns, double* sums) {
    add_trees_by<Sixteen>(groups, trees, columns, sums);
}

static XR_CLONES void add_trees_by_8(std::size_t groups, const Ensemble& trees, const float* columns, double* sums) {
    add_trees_by<Eight>(groups, trees, columns, sums);
}

static XR_CLONES void add_trees_by_4(std::size_t groups, const Ensemble& trees, const float* columns, double* sums) {
    add_trees_by<Four>(groups, trees, columns, sums);
}

struct alignas(64) CacheLine {
    float x[16];
};

class Trees {
public:
    Trees(const TreeTable& table, std::size_t width) : width_(width), sets_(table.sets, table.sets + table.set_start[table.set_count]) {
        const std::size_t nodes = table.start[table.trees];
        std::map<Input, std::uint32_t> number;
        for (std::size_t node = 0; node < nodes; ++node) number[input_at(table, node)];
        for (auto& [input, at] : number) at = inputs_.size(), inputs_.push_back(input);
        trees_.leaf_value.resize(nodes + table.trees);
        for (std::size_t t = 0; t < table.trees; ++t) add(table, t, number);
    }

    std::size_t width() const { return width_; }

    // The result does not depend on the lanes: 4, 8 or 16.
    void score(const MatrixView<const float>& x, int threads, std::size_t lanes, std::span<double> out) const {
        const std::size_t strip = lanes * most_groups;
        const std::size_t strips = 1 + (1 << 21) / (strip * (trees_.splits.size() + 1));  // worth a thread
        for_each_block(x.rows, strips * strip, threads, [&](std::size_t first, std::size_t last) {
            std::vector<CacheLine> columns(1 + inputs_.size() * strip / 16);
            for (std::size_t i = first; i < last; i += strip) score_strip(x.row(i), std::min(strip, last - i), lanes, columns[0].x, out.data() + i);
        });
    }

private:
    static Input input_at(const TreeTable& table, std::size_t node) {
        const std::uint8_t decision = table.decision[node];
        if (decision & categorical) {
            const auto set = static_cast<std::size_t>(table.threshold[node]);
            return {table.feature[node], 0, 0, 0, table.set_start[set], table.set_start[set + 1]};
        }
        const float side = decision & default_left ? -HUGE_VALF : HUGE_VALF, largest = std::numeric_limits<float>::max();
        const float most = table.threshold[node] == HUGE_VAL ? largest : HUGE_VALF;  // no number passes that threshold, but missing ones may
        return {table.feature[node], decision & (missing_is_zero | missing_is_nan) ? side : 0.0f, decision & missing_is_zero ? side : 0.0f, most};
    }

    // Splits and leaves of tree t.
    void add(const TreeTable& table, std::size_t t, const std::map<Input, std::uint32_t>& number) {
        breathe();
        const std::size_t begin = table.start[t], nodes = table.start[t + 1] - begin, first_leaf = begin + t;
        std::vector<std::uint32_t> leaves(nodes), before(nodes);  // of a node: in all, and to the left of it
        auto leaves_of = [&](std::int32_t child) { return child < 0 ? 1 : leaves[child]; };
        for (std::size_t node = nodes; node-- > 0;) leaves[node] = leaves_of(table.left[begin + node]) + leaves_of(table.right[begin + node]);
        auto place = [&](std::int32_t child, std::uint32_t position) {
            if (child < 0)
                trees_.leaf_value[first_leaf + position] = table.leaf_value[first_leaf + ~child];
            else
                before[child] = position;
        };
        for (std::size_t node = 0; node < nodes; ++node) {
            place(table.left[begin + node], before[node]);
            place(table.right[begin + node], before[node] + leaves_of(table.left[begin + node]));
        }
        if (nodes == 0) place(~0, 0);
        for (std::int64_t low = nodes / 32 * 32; low >= 0; low -= 32) {  // the first word that is alive is to be the last one met
            for (std::size_t node = 0; node < nodes; ++node) {
                const std::uint32_t ruled_out = bits(before[node] - low, before[node] + leaves_of(table.left[begin + node]) - low);
                if (ruled_out == 0) continue;
                const std::uint32_t input = number.at(input_at(table, begin + node));
                trees_.splits.push_back({input, threshold_at(table, begin + node), static_cast<std::int32_t>(~ruled_out)});
            }
            trees_.words.push_back({static_cast<std::uint32_t>(trees_.splits.size()), static_cast<std::int32_t>(first_leaf + low), low == 0});
        }
    }

    static float threshold_at(const TreeTable& table, std::size_t node) {
        return table.decision[node] & categorical ? 0.5f : std::min(rounded_down(table.threshold[node]), std::numeric_limits<float>::max());
    }

    // The bits of a word from `first` on and below `last`.
    static std::uint32_t bits(std::int64_t first, std::int64_t last) {
        auto below = [](std::int64_t bit) { return (std::uint64_t{1} << std::clamp<std::int64_t>(bit, 0, 32)) - 1; };
        return static_cast<std::uint32_t>(below(last) & ~below(first));
    }

    void score_strip(const float* x, std::size_t rows, std::size_t lanes, float* columns, double* out) const {
        const std::size_t groups = (rows + lanes - 1) / lanes;
        for (std::size_t j = 0; j < inputs_.size(); ++j) fill(inputs_[j], x, rows, columns + j * groups * lanes);
        double sums[16 * most_groups] = {};
        const auto add = lanes == 16 ? add_trees_by_16 : lanes == 8 ? add_trees_by_8 : add_trees_by_4;
        add(groups, trees_, columns, sums);
        std::copy_n(sums, rows, out);
    }

    void fill(const Input& input, const float* x, std::size_t rows, float* column) const {
        for (std::size_t i = 0; i < rows; ++i) column[i] = x[i * width_ + input.feature];
        if (input.set == input.set_end) return replace_missing(column, rows, input.nan, input.zero, input.most);
        for (std::size_t i = 0; i < rows; ++i) column[i] = has_category(sets_.data() + input.set, input.set_end - input.set, column[i]) ? 0.0f : 1.0f;
    }

    std::size_t width_;
    std::vector<Input> inputs_;
    Ensemble trees_;
    std::vector<std::uint32_t> sets_;
};

}  // namespace exactrank
