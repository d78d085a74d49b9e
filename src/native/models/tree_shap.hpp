// What each feature adds to the score of a row by regression trees: path-dependent SHAP values (Lundberg et al. 2018).
//
// A leaf with value v is reached by splits at d different features. For feature j let o_j be 1 where the row takes all of the path's splits
// at j, and 0 otherwise, and z_j the share of documents that do, the product of shares at these splits. The leaf counts in a set S of known
// features by v * prod_{j in S} o_j * prod_{j not in S} z_j, whose Shapley value for j is
//
//   phi_j = v (o_j - z_j) * sum_{S without j} |S|! (d - 1 - |S|)! / d! * prod_{i in S} o_i * prod_{i not in S, i != j} z_i
//         = v (o_j - z_j) * integral_0^1 prod_{i != j} (t o_i + (1 - t) z_i) dt                                            (1)
//
// since |S|! (d - 1 - |S|)! / d! is the integral of t^|S| (1 - t)^(d - 1 - |S|). The polynomial in t has degree d - 1, so that
// Gauss-Legendre quadrature with (d + 1) / 2 nodes is exact. All its terms have one sign: nothing cancels, however deep the tree is. What
// all rows have in common is the sum of v * prod_j z_j over all leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "models/trees.hpp"
#include "support/matrix.hpp"
#include "support/threads.hpp"

namespace exactrank {

// Nodes and weights of the quadrature on (0, 1) that is exact for polynomials of a degree below 2 * count.
struct Quadrature {
    std::vector<double> node, weight;

    explicit Quadrature(std::size_t count = 0) : node(count), weight(count) {
        const double n = static_cast<double>(count);
        Breath breath;
        for (std::size_t i = 0; 2 * i < count; ++i) {  // the others are symmetric
            double x = cosine(std::numbers::pi * (static_cast<double>(i) + 0.75) / (n + 0.5)), slope = 1;
            for (int round = 0; round < 6; ++round) {  // Newton's method on the Legendre polynomial, from close by
                double before = 1, value = x;
                for (std::size_t k = 2; k <= count; ++k) {
                    const double degree = static_cast<double>(k), next = ((2 * degree - 1) * x * value - (degree - 1) * before) / degree;
                    before = value, value = next;
                }
                slope = n * (x * value - before) / (x * x - 1);
                x -= value / slope;
            }
            node[i] = (1 - x) / 2, node[count - 1 - i] = (1 + x) / 2;
            weight[i] = weight[count - 1 - i] = 1 / ((1 - x * x) * slope * slope);
            breath.after(32 * count);
        }
    }

private:
    // Of an angle between 0 and pi / 2, to about 1e-9.
    static double cosine(double angle) {
        double term = 1, sum = 1;
        for (int k = 1; k < 8; ++k) sum += term *= -angle * angle / ((2 * k - 1) * (2 * k));
        return sum;
    }
};

// Does a row with the value x go left? As in trees.hpp, what is no further from zero than `least` counts as zero.
inline bool goes_left(const TreeTable& table, std::size_t split, float x) {
    constexpr float least = 1e-35f;
    const std::uint8_t decision = table.decision[split];
    if (decision & categorical) {
        const auto set = static_cast<std::size_t>(table.threshold[split]);
        return has_category(table.sets + table.set_start[set], table.set_start[set + 1] - table.set_start[set], x);
    }
    const bool zero = x >= -least && x <= least, nan = x != x;
    if ((nan && decision & (missing_is_zero | missing_is_nan)) || (zero && decision & missing_is_zero)) return decision & default_left;
    return (zero || nan ? 0.0 : static_cast<double>(x)) <= table.threshold[split];
}

class TreeShap {
public:
    TreeShap(const TreeTable& table, const double* cover, std::size_t width) : table_(table), width_(width), share_(table.start[table.trees]) {
        const std::size_t splits = share_.size();
        parent_.resize(2 * splits + table.trees);
        std::vector<double> below(splits);
        std::size_t most = 0;
        for (std::size_t t = 0; t < table.trees; ++t) {
            breathe();
            const std::size_t begin = table.start[t], count = table.start[t + 1] - begin;
            std::vector<std::size_t> depth(count, 1);
            for (std::size_t node = 0; node < count; ++node) {
                for (const std::int32_t child : {table.left[begin + node], table.right[begin + node]}) {
                    parent_[place(t, child)] = static_cast<std::int32_t>(node);
                    if (child >= 0) depth[child] = depth[node] + 1;
                }
                most = std::max(most, depth[node]);
            }
            for (std::size_t node = count; node-- > 0;) {
                auto covered = [&](std::int32_t child) { return child < 0 ? cover[begin + t + ~child] : below[begin + child]; };
                const double left = covered(table.left[begin + node]);
                below[begin + node] = left + covered(table.right[begin + node]);
                share_[begin + node] = below[begin + node] > 0 ? left / below[begin + node] : 0.5;
            }
        }
        for (std::size_t count = 0; count <= std::min((std::min(most, width) + 1) / 2, most_nodes); ++count) rules_.emplace_back(count);
    }

    // Rows of `out` have a number per feature and one more, for what all rows have in common.
    void contributions(const MatrixView<const float>& x, int threads, std::span<double> out) const {
        for_each_block(x.rows, rows_at_once, threads, [&](std::size_t first, std::size_t last) {
            Walk walk(width_);
            for (std::size_t t = 0; t < table_.trees; ++t) add_tree(t, x, first, last, walk, out);
        });
    }

private:
    static constexpr std::size_t rows_at_once = 64, most_nodes = 64;  // of a quadrature that is kept

    struct Step {
        std::size_t split, element;
        bool left;
    };
    struct Element {
        std::int32_t feature;
        double zero;  // z_j
    };
    // What a thread works with.
    struct Walk {
        std::vector<std::uint8_t> left;                       // does a row go left at a split? splits x rows
        std::vector<Step> path;                               // from a leaf to the root
        std::vector<Element> elements;                        // the features of the path
        std::vector<std::int64_t> element_of;                 // of each feature, -1 for those that are not on the path
        std::vector<double> known, factor, before, integral;  // of each element
        Quadrature rule;                                      // one with many nodes
        Breath breath;

        explicit Walk(std::size_t width) : element_of(width, -1) {}
    };

    // The place of a child of tree t among all splits and then all leaves.
    std::size_t place(std::size_t t, std::int32_t child) const {
        const std::size_t begin = table_.start[t];
        return child >= 0 ? begin + child : share_.size() + begin + t + ~child;
    }

    void add_tree(std::size_t t, const MatrixView<const float>& x, std::size_t first, std::size_t last, Walk& walk, std::span<double> out) const {
        const std::size_t begin = table_.start[t], count = table_.start[t + 1] - begin, rows = last - first;
        walk.left.resize(count * rows);
        for (std::size_t node = 0; node < count; ++node)
            for (std::size_t i = 0; i < rows; ++i) walk.left[node * rows + i] = goes_left(table_, begin + node, x.row(first + i)[table_.feature[begin + node]]);
        for (std::size_t leaf = 0; leaf <= count; ++leaf) {
            find_path(t, ~static_cast<std::int32_t>(leaf), walk);
            const double value = table_.leaf_value[begin + t + leaf];
            double common = value;
            for (const Element& element : walk.elements) common *= element.zero;
            for (std::size_t i = 0; i < rows; ++i) {
                double* row = out.data() + (first + i) * (width_ + 1);
                row[width_] += common;
                add_leaf(walk, rows, i, value, row);
                walk.breath.after(1 + walk.path.size());
            }
        }
    }

    // The splits above a leaf, and the features that they are at.
    void find_path(std::size_t t, std::int32_t leaf, Walk& walk) const {
        for (const Element& element : walk.elements) walk.element_of[element.feature] = -1;
        walk.path.clear(), walk.elements.clear();
        const std::size_t begin = table_.start[t];
        if (table_.start[t + 1] == table_.start[t]) return;
        for (std::int32_t child = leaf; child != 0;) {
            const std::int32_t split = parent_[place(t, child)];
            const bool left = table_.left[begin + split] == child;
            const std::int32_t feature = table_.feature[begin + split];
            std::int64_t& element = walk.element_of[feature];
            if (element < 0) element = static_cast<std::int64_t>(walk.elements.size()), walk.elements.push_back({feature, 1});
            walk.elements[element].zero *= left ? share_[begin + split] : 1 - share_[begin + split];
            walk.path.push_back({static_cast<std::size_t>(split), static_cast<std::size_t>(element), left});
            child = split;
        }
    }

    // The quadrature for d features. Those with many nodes are made when they are needed, for a model of them all would take much memory.
    const Quadrature& rule_of(std::size_t d, Walk& walk) const {
        const std::size_t count = (d + 1) / 2;
        if (count < rules_.size()) return rules_[count];
        if (walk.rule.node.size() != count) walk.rule = Quadrature(count);
        return walk.rule;
    }

    // (1) of a leaf for row i of the block.
    void add_leaf(Walk& walk, std::size_t rows, std::size_t i, double value, double* row) const {
        const std::size_t d = walk.elements.size();
        walk.known.assign(d, 1), walk.integral.assign(d, 0), walk.factor.resize(d), walk.before.resize(d);
        for (const Step& step : walk.path)
            if ((walk.left[step.split * rows + i] != 0) != step.left) walk.known[step.element] = 0;
        const Quadrature& rule = rule_of(d, walk);
        for (std::size_t k = 0; k < rule.node.size(); ++k) {
            const double t = rule.node[k];
            double product = rule.weight[k];
            for (std::size_t j = 0; j < d; ++j) {
                walk.before[j] = product;
                product *= walk.factor[j] = t * walk.known[j] + (1 - t) * walk.elements[j].zero;
            }
            product = 1;
            for (std::size_t j = d; j-- > 0; product *= walk.factor[j]) walk.integral[j] += walk.before[j] * product;
            walk.breath.after(2 * d);
        }
        for (std::size_t j = 0; j < d; ++j) row[walk.elements[j].feature] += value * (walk.known[j] - walk.elements[j].zero) * walk.integral[j];
    }

    const TreeTable table_;
    std::size_t width_;
    std::vector<double> share_;         // of the documents at a split that go left
    std::vector<std::int32_t> parent_;  // of each split and leaf, within its tree
    std::vector<Quadrature> rules_;     // by the number of nodes
};

}  // namespace exactrank
