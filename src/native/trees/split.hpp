// The best split of a node, from its histogram.
//
// With G and H the sums of slopes and curvatures of some documents, n their number, and T(G) = sign(G) max(|G| - l1, 0), the output of a leaf is
//
//   o = T(G) / (H + l2),   at most `max_step` in size,   drawn towards the parent's output o' by smoothing s:  (n o + s o') / (n + s),
//   and within the bounds that monotone features set                                                                        (1)
//
// and what it contributes to the objective is  2 T(G) o - (H + l2) o^2,  which is T(G)^2 / (H + l2) where nothing restricts o. The gain of a
// split is what its children contribute less what their parent does                                                         (2)
//
// All sums are whole numbers times a unit, so that a gain has the same bits wherever the documents lie. Of equal gains the lower feature wins,
// then the lower bin, then missing values to the right.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "support/dispatch.hpp"
#include "trees/histogram.hpp"

namespace exactrank {

struct SplitRules {
    std::int64_t min_documents = 1;
    double min_curvature = 0, l1 = 0, l2 = 0, min_gain = 0, max_step = 0, smoothing = 0;
    double noise = 0;            // standard deviation of the factor by which a feature's gain is judged, around 1
    bool extra = false;          // one random threshold per feature
    std::int64_t min_group = 1;  // documents between two cuts of sorted categories, if there are more than a few
};

// Whole numbers as forces again.
struct Units {
    double slope = 1, bend = 1;
};

// What restricts the output of a leaf beside the rules: the parent's output, and bounds.
struct Restriction {
    double toward = 0, low = -HUGE_VAL, high = HUGE_VAL;
};

// What a split search knows of a node beside its histogram.
struct NodeFacts {
    ForceSums sums;
    Restriction within;
    double output = 0, contribution = 0;
    std::uint64_t key = 0;  // of its place in the tree, for draws

    Restriction of_children() const { return {output, within.low, within.high}; }
};

struct Split {
    double gain = -HUGE_VAL;   // (2)
    double score = -HUGE_VAL;  // the gain with noise, by which splits are compared
    std::int32_t feature = -1;
    std::uint32_t bin = 0;  // the last on the left
    bool missing_left = false;
    std::vector<std::uint64_t> categories;  // by bits: those on the left
    ForceSums left;
};

// Random bits of a key and a number (splitmix64).
inline std::uint64_t draw(std::uint64_t key, std::uint64_t number) {
    std::uint64_t z = key + 0x9e3779b97f4a7c15u * (number + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// About normal, with mean 0 and deviation 1: the sum of four uniform numbers.
inline double draw_normal(std::uint64_t key, std::uint64_t number) {
    const std::uint64_t bits = draw(key, number);
    const auto sum = static_cast<double>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return (sum / 65535 - 2) * 1.7320508075688772;
}

struct Output {
    double value, contribution;
};

// (1), and what it contributes, of n documents with these sums.
inline Output output_of(double g, double curvature, double n, const Restriction& within, const SplitRules& rules) {
    const double h = curvature + rules.l2, pull = std::max(std::fabs(g) - rules.l1, 0.0), t = g < 0 ? -pull : pull;
    double o = h > 0 ? t / h : 0.0;
    if (rules.max_step > 0) o = std::clamp(o, -rules.max_step, rules.max_step);
    if (rules.smoothing > 0) o = (n * o + rules.smoothing * within.toward) / (n + rules.smoothing);
    o = std::clamp(o, within.low, within.high);
    return {o, 2 * t * o - h * o * o};
}

inline Output output_of(const ForceSums& sums, const Restriction& within, const SplitRules& rules, const Units& units, const Widths& widths) {
    return output_of(static_cast<double>(sums.slope) * units.slope, static_cast<double>(sums.bend(widths)) * units.bend,
                     static_cast<double>(sums.count(widths)), within, rules);
}

// The numbers that the loop over bins needs, in one place; all in units of slopes and curvatures.
struct GainTerms {
    std::int64_t slope;
    std::uint64_t rest;
    int count_bits;
    std::int64_t min_documents;
    double min_curvature, l1, l2;
    double unit;  // of gains
};

// A whole number below 2^51 in size as a double, by operations that every instruction set has on vectors.
XR_INLINE double as_double(std::int64_t x) { return std::bit_cast<double>(x + 0x4338000000000000) - 0x1.8p52; }

// What both children contribute if the sums of the left one are those of each bin, where nothing but l1 and l2 restricts outputs; minus
// infinity where a child would be too small. Both quotients have one division. Returns the largest.
static XR_CLONES double plain_gains(const std::int64_t* slope, const std::uint64_t* rest, std::size_t bins, const GainTerms& terms, double* gains) {
    const GainTerms t = terms;
    const std::uint64_t mask = (std::uint64_t{1} << t.count_bits) - 1;
    const double least = static_cast<double>(t.min_documents);
    std::int64_t largest = std::bit_cast<std::int64_t>(-HUGE_VAL);  // doubles that are not negative are ordered as their bits
    for (std::size_t b = 0; b < bins; ++b) {
        const std::uint64_t left = rest[b], right = t.rest - left;
        const double gl = as_double(slope[b]), gr = as_double(t.slope - slope[b]);
        const double bl = as_double(static_cast<std::int64_t>(left >> t.count_bits)), br = as_double(static_cast<std::int64_t>(right >> t.count_bits));
        const double nl = as_double(static_cast<std::int64_t>(left & mask)), nr = as_double(static_cast<std::int64_t>(right & mask));
        const double hl = bl + t.l2, hr = br + t.l2;
        const double al = (gl < 0 ? -gl : gl) - t.l1, ar = (gr < 0 ? -gr : gr) - t.l1;
        const double tl = al > 0 ? al : 0.0, tr = ar > 0 ? ar : 0.0;
        const double gain = (tl * tl * hr + tr * tr * hl) / (hl * hr) * t.unit;
        const bool sound = (nl >= least) & (nr >= least) & (bl >= t.min_curvature) & (br >= t.min_curvature) & (hl > 0) & (hr > 0);
        gains[b] = sound ? gain : -HUGE_VAL;
        const std::int64_t bits = std::bit_cast<std::int64_t>(gains[b]);
        largest = bits > largest ? bits : largest;
    }
    return std::bit_cast<double>(largest);
}

// Searches the histograms of nodes, one feature at a time; has room of its own, so that each thread needs one.
class SplitSearch {
public:
    SplitSearch(const BinLayout& layout, const SplitRules& rules, const Units& units, const Widths& widths)
        : layout_(layout), rules_(rules), units_(units), widths_(widths) {}

    // A leaf of a level.
    struct Leaf {
        HistogramView histogram;
        const NodeFacts* facts;
    };

    // The best split of a node at a feature that may only rise (1) or fall (-1) with it; its gain is minus infinity where there is none.
    Split best(std::uint32_t f, int monotone, const Leaf& leaf) {
        const BinLayout::Feature& feature = layout_.features[f];
        Split split;
        if (feature.kind == BinLayout::category)
            search_categories(feature, leaf, split);
        else
            search_numbers(feature, monotone, leaf.histogram, *leaf.facts, split);
        if (split.gain == none) return split;
        split.gain -= leaf.facts->contribution;
        return scored(std::move(split), f, leaf.facts->key ^ 0x6e6f697365);
    }

    // The same for all leaves of a level that it can split, in whose gains it counts 0 for others; `key` is of the level, for draws.
    Split best_of_level(std::uint32_t f, int monotone, std::span<const Leaf> level, std::uint64_t key) {
        const BinLayout::Feature& feature = layout_.features[f];
        Split split;
        if (feature.kind == BinLayout::category)
            search_categories_of_level(feature, level, key ^ 0x6578747261, split);
        else
            search_numbers_of_level(feature, monotone, level, key ^ 0x6578747261, split);
        return split.gain == none ? split : scored(std::move(split), f, key);
    }

    // The sums of the left child if a node is split there; sound where neither child is too small.
    ForceSums left_sums(const Split& split, const HistogramView& histogram) const {
        const BinLayout::Feature& feature = layout_.features[split.feature];
        ForceSums sums;
        for (std::uint32_t b = 0; b < feature.bins; ++b)
            if (goes_left(feature, split, b)) sums = sums + histogram.at(feature.cell + b);
        return sums;
    }

    bool is_sound(const ForceSums& left, const NodeFacts& node) const {
        const ForceSums right = node.sums - left;
        for (const ForceSums& side : {left, right}) {
            const double bend = static_cast<double>(side.bend(widths_)) * units_.bend;
            if (side.count(widths_) < rules_.min_documents || bend < rules_.min_curvature || !(bend + rules_.l2 > 0)) return false;
        }
        return true;
    }

    static bool goes_left(const BinLayout::Feature& feature, const Split& split, std::uint32_t bin) {
        if (feature.kind == BinLayout::category) return bin / 64 < split.categories.size() && (split.categories[bin / 64] >> bin % 64 & 1);
        if (feature.kind == BinLayout::number_or_missing && bin == feature.bins - 1) return split.missing_left;
        return bin <= split.bin;
    }

    static constexpr double none = -HUGE_VAL;  // the gain of a split that is not possible

    // How many bins a number may be cut behind: the last one too where the rest is missing.
    static std::size_t cut_count(const BinLayout::Feature& feature) { return feature.known() - (feature.kind == BinLayout::number); }

private:
    // Sums of a feature from its first bin on, into slope_ and rest_; returns those of missing values.
    ForceSums accumulate(const BinLayout::Feature& feature, const HistogramView& histogram) {
        const std::size_t known = feature.known();
        reserve(known);
        ForceSums sums;
        for (std::size_t b = 0; b < known; ++b) {
            sums = sums + histogram.at(feature.cell + b);
            slope_[b] = sums.slope, rest_[b] = sums.rest;
        }
        return feature.kind == BinLayout::number_or_missing ? histogram.at(feature.cell + known) : ForceSums{};
    }

    void shift(std::size_t cuts, const ForceSums& by) {
        for (std::size_t b = 0; b < cuts; ++b) slope_[b] += by.slope, rest_[b] += by.rest;
    }

    bool is_plain(int monotone, const NodeFacts& node) const {
        return monotone == 0 && rules_.max_step == 0 && rules_.smoothing == 0 && node.within.low == -HUGE_VAL && node.within.high == HUGE_VAL;
    }

    // What children contribute for each cut, by the sums in slope_ and rest_.
    void fill_gains(std::size_t cuts, int monotone, const NodeFacts& node) { fill_gains_from(0, cuts, monotone, node, rules_.l2); }

    // Returns the largest.
    double fill_gains_from(std::size_t first, std::size_t cuts, int monotone, const NodeFacts& node, double l2) {
        if (is_plain(monotone, node)) return fill_plain_gains(first, cuts, node, l2);
        SplitRules rules = rules_;
        rules.l2 = l2;
        const Restriction within = node.of_children();
        double largest = none;
        for (std::size_t b = first; b < cuts; ++b) {
            const ForceSums left{slope_[b], rest_[b]}, right = node.sums - left;
            const Output a = output_of(left, within, rules, units_, widths_), z = output_of(right, within, rules, units_, widths_);
            const bool holds = monotone == 0 || (monotone > 0 ? a.value <= z.value : a.value >= z.value);
            gains_[b] = holds && is_sound(left, node) ? a.contribution + z.contribution : none;
            largest = std::max(largest, gains_[b]);
        }
        return largest;
    }

    double fill_plain_gains(std::size_t first, std::size_t cuts, const NodeFacts& node, double l2) {
        const double min_bend = rules_.min_curvature / units_.bend;
        const GainTerms terms{node.sums.slope,
                              node.sums.rest,
                              widths_.count,
                              rules_.min_documents,
                              rules_.l2 > 0 ? min_bend : std::max(min_bend, 1.0),  // 0 divides nothing, whatever is added for categories
                              rules_.l1 / units_.slope,
                              l2 / units_.bend,
                              units_.slope / units_.bend * units_.slope};
        return plain_gains(slope_.data() + first, rest_.data() + first, cuts - first, terms, gains_.data() + first);
    }

    // The first of the largest, if it is larger than what `split` has.
    void take_best(std::size_t first, std::size_t cuts, double largest, bool missing_left, Split& split) const {
        if (!(largest > split.gain)) return;
        std::size_t b = first;
        while (b + 1 < cuts && gains_[b] != largest) ++b;
        split.gain = largest, split.bin = static_cast<std::uint32_t>(b), split.missing_left = missing_left;
        split.left = {slope_[b], rest_[b]};
    }

    void search_numbers(const BinLayout::Feature& feature, int monotone, const HistogramView& histogram, const NodeFacts& node, Split& split) {
        const ForceSums missing = accumulate(feature, histogram);
        std::size_t first = 0, cuts = cut_count(feature);
        if (rules_.extra && cuts > 0) {
            first = draw(node.key, number_of(feature)) % cuts;
            cuts = first + 1;
        }
        take_best(first, cuts, fill_gains_from(first, cuts, monotone, node, rules_.l2), false, split);
        if (missing.rest == 0) {  // a missing value that comes later goes where most documents went
            split.missing_left = 2 * split.left.count(widths_) >= node.sums.count(widths_);
            return;
        }
        shift(cuts, missing);
        take_best(first, cuts, fill_gains_from(first, cuts, monotone, node, rules_.l2), true, split);
    }

    void search_numbers_of_level(const BinLayout::Feature& feature, int monotone, std::span<const Leaf> level, std::uint64_t key, Split& split) {
        const std::size_t cuts = cut_count(feature);
        if (cuts == 0) return;
        std::vector<double> gains[2] = {std::vector<double>(cuts), std::vector<double>(cuts)};  // with missing values on the right, and on the left
        bool has_missing = false;
        for (const Leaf& leaf : level) {
            const ForceSums missing = accumulate(feature, leaf.histogram);
            fill_gains(cuts, monotone, *leaf.facts);
            add_gains(cuts, *leaf.facts, gains[0].data());
            if (missing.rest != 0) {
                shift(cuts, missing);
                fill_gains(cuts, monotone, *leaf.facts);
                has_missing = true;
            }
            add_gains(cuts, *leaf.facts, gains[1].data());
        }
        std::size_t first = 0, last = cuts;
        if (rules_.extra) first = draw(key, number_of(feature)) % cuts, last = first + 1;
        for (std::size_t b = first; b < last; ++b)
            for (const bool is_left : {false, has_missing})
                if (gains[is_left][b] > split.gain) split.gain = gains[is_left][b], split.bin = static_cast<std::uint32_t>(b), split.missing_left = is_left;
    }

    // Adds the gains of a node, 0 where it cannot be split, to those of a level.
    void add_gains(std::size_t cuts, const NodeFacts& node, double* level) const {
        for (std::size_t b = 0; b < cuts; ++b) level[b] += gains_[b] != none ? gains_[b] - node.contribution : 0.0;
    }

    // Categories with documents in the order of a ratio, and where they may be cut: after how many of them.
    struct CategoryCuts {
        std::vector<std::uint32_t> order;
        std::vector<std::size_t> ends;
    };

    // Ten typical documents' curvature.
    double typical_bend(const ForceSums& sums) const {
        const auto documents = static_cast<double>(sums.count(widths_));
        return documents > 0 ? 10 * static_cast<double>(sums.bend(widths_)) / documents : 0.0;
    }

    // Categories by the ratio of slope and curvature over all leaves, smoothed by ten documents, lowest first and highest first; those before a
    // cut go left. Categories of the same ratio stay together, so that their numbers do not matter. A few categories are not smoothed when
    // gains are computed, and may be split however few documents lie between two cuts: so few choices cannot fit much noise.
    std::array<CategoryCuts, 2> cuts_of_categories(const BinLayout::Feature& feature, std::span<const Leaf> leaves, std::uint64_t key) const {
        std::vector<ForceSums> sums(feature.known());
        ForceSums all;
        for (const auto& [histogram, facts] : leaves) {
            all = all + facts->sums;
            for (std::uint32_t b = 0; b < feature.known(); ++b) sums[b] = sums[b] + histogram.at(feature.cell + b);
        }
        std::array<CategoryCuts, 2> cuts;
        std::vector<std::uint32_t>& order = cuts[0].order;
        std::vector<double> ratio(sums.size());
        const double typical = typical_bend(all);
        for (std::uint32_t b = 0; b < sums.size(); ++b) {
            if (sums[b].count(widths_) == 0) continue;
            const double bend = static_cast<double>(sums[b].bend(widths_)) + typical;
            ratio[b] = bend > 0 ? static_cast<double>(sums[b].slope) / bend : 0.0;
            order.push_back(b);
        }
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return ratio[a] < ratio[b]; });
        cuts[1].order.assign(order.rbegin(), order.rend());
        const std::int64_t min_group = order.size() > few_categories ? rules_.min_group : 1;
        for (auto& [sorted, ends] : cuts) {
            std::int64_t since = 0;
            for (std::size_t k = 0; k < sorted.size(); ++k) {
                since += sums[sorted[k]].count(widths_);
                if (k + 1 < sorted.size() && (ratio[sorted[k]] == ratio[sorted[k + 1]] || since < min_group)) continue;
                ends.push_back(k + 1), since = 0;
            }
            if (rules_.extra && !ends.empty()) ends = {ends[draw(key, number_of(feature)) % ends.size()]};
        }
        return cuts;
    }

    // What the children of a leaf contribute for each cut.
    void fill_category_gains(const BinLayout::Feature& feature, const CategoryCuts& cuts, const Leaf& leaf) {
        reserve(cuts.ends.size());
        ForceSums sums;
        std::size_t k = 0;
        for (std::size_t c = 0; c < cuts.ends.size(); ++c) {
            for (; k < cuts.ends[c]; ++k) sums = sums + leaf.histogram.at(feature.cell + cuts.order[k]);
            slope_[c] = sums.slope, rest_[c] = sums.rest;
        }
        const double added = cuts.order.size() > few_categories ? typical_bend(leaf.facts->sums) * units_.bend : 0.0;
        fill_gains_from(0, cuts.ends.size(), 0, *leaf.facts, rules_.l2 + added);
    }

    void search_categories(const BinLayout::Feature& feature, const Leaf& leaf, Split& split) {
        for (const CategoryCuts& cuts : cuts_of_categories(feature, {&leaf, 1}, leaf.facts->key)) {
            fill_category_gains(feature, cuts, leaf);
            for (std::size_t c = 0; c < cuts.ends.size(); ++c)
                if (gains_[c] > split.gain) take_categories(feature, cuts, c, gains_[c], split), split.left = {slope_[c], rest_[c]};
        }
    }

    void search_categories_of_level(const BinLayout::Feature& feature, std::span<const Leaf> level, std::uint64_t key, Split& split) {
        for (const CategoryCuts& cuts : cuts_of_categories(feature, level, key)) {
            std::vector<double> gains(cuts.ends.size());
            for (const Leaf& leaf : level) {
                fill_category_gains(feature, cuts, leaf);
                add_gains(gains.size(), *leaf.facts, gains.data());
            }
            for (std::size_t c = 0; c < gains.size(); ++c)
                if (gains[c] > split.gain) take_categories(feature, cuts, c, gains[c], split);
        }
    }

    static void take_categories(const BinLayout::Feature& feature, const CategoryCuts& cuts, std::size_t c, double gain, Split& split) {
        split.gain = gain;
        split.categories.assign((feature.known() + 63) / 64, 0);
        for (std::size_t k = 0; k < cuts.ends[c]; ++k) split.categories[cuts.order[k] / 64] |= std::uint64_t{1} << cuts.order[k] % 64;
    }

    std::size_t number_of(const BinLayout::Feature& feature) const { return static_cast<std::size_t>(&feature - layout_.features.data()); }

    Split scored(Split split, std::uint32_t f, std::uint64_t key) const {
        split.feature = static_cast<std::int32_t>(f);
        split.score = rules_.noise > 0 ? split.gain * std::max(0.0, 1 + rules_.noise * draw_normal(key, f)) : split.gain;
        return split;
    }

    void reserve(std::size_t cuts) {
        if (slope_.size() < cuts) slope_.resize(cuts), rest_.resize(cuts), gains_.resize(cuts);
    }

    static constexpr std::size_t few_categories = 4;

    const BinLayout& layout_;
    SplitRules rules_;
    Units units_;
    Widths widths_;
    std::vector<std::int64_t> slope_;
    std::vector<std::uint64_t> rest_;
    std::vector<double> gains_;
};

}  // namespace exactrank
