// How a tree grows: which nodes are split, in which order.
//
// Growth is best-first: of all leaves the one whose best split gains most is split next. A `Growth` decides, and never sees a document. It asks
// for `Expansion`s: to split the documents of a node, and for the histogram of the smaller child; the larger one's is the difference to the
// parent's, which is exact. Whoever holds documents answers, and sums of the answers of several holders are answers too. So one tree grows in
// memory, from files, on a cluster or on a GPU.
//
// Where a round of questions is dear, `ahead` asks for all nodes at once that would be split if nothing better came up. The tree is the same:
// splits are committed in the order of their gains, from what is known, and what was expanded in vain is forgotten.
//
// A symmetric tree has one split per level: the one whose gains, summed over the leaves that it can split, are largest.
//
// With several `candidates`, whoever holds documents may choose among the best splits of the leaf that is split next, each at another feature.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trees/node_rows.hpp"
#include "trees/split.hpp"

namespace exactrank {

struct GrowthRules {
    SplitRules split;
    std::int32_t leaves = 31, depth = 0;  // a depth of 0 is no limit
    std::int32_t features_per_node = 0;   // 0: all
    std::size_t candidates = 1;           // splits of a leaf among which one is chosen; 1: the best is taken
    bool is_symmetric = false;
    std::vector<std::int8_t> monotone;              // of each feature
    std::vector<std::vector<std::uint8_t>> groups;  // of features that may meet on a path; none: all may
};

// A tree as arrays: node 0 is the root, a child below 0 is ~leaf.
struct GrownTree {
    std::vector<std::int32_t> feature, left, right;
    std::vector<std::uint32_t> bin;
    std::vector<std::uint8_t> missing_left;
    std::vector<double> gain;
    std::vector<std::vector<std::uint64_t>> categories;
    std::vector<std::int64_t> documents;     // of each leaf
    std::vector<Restriction> restrictions;   // of each leaf's output
    std::vector<std::int32_t> node_of_leaf;  // in the numbering of the nodes that were asked for
    std::vector<std::int32_t> leaf_of_node;  // of each node that was asked for, in their numbering; of a split one that of any leaf below
};

// Histograms that were used and can be used again, by one tree after the other.
class HistogramPool {
public:
    explicit HistogramPool(std::size_t cells) : cells_(cells) {}
    HistogramPool(const HistogramPool&) = delete;
    HistogramPool& operator=(const HistogramPool&) = delete;
    std::size_t cells() const { return cells_; }
    std::unique_ptr<Histogram> take() {
        if (free_.empty()) {
            auto histogram = std::make_unique<Histogram>(cells_);
            std::fill_n(histogram->words(), 2 * cells_, 0);
            return histogram;
        }
        auto histogram = std::move(free_.back());
        free_.pop_back();
        return histogram;
    }
    void give_back(std::unique_ptr<Histogram> histogram) { free_.push_back(std::move(histogram)); }

private:
    std::size_t cells_;
    std::vector<std::unique_ptr<Histogram>> free_;
};

struct Expansion {
    std::int32_t node = -1, left = -1, right = -1;  // node -1: nothing is split, the root alone is asked for
    Split split;
    std::vector<std::int32_t> wanted;  // whose histograms are asked for
};

class Growth {
public:
    Growth(std::shared_ptr<const BinLayout> layout, FeatureChoice choice, GrowthRules rules, Units units, Widths widths, std::uint64_t key,
           std::shared_ptr<HistogramPool> pool)
        : layout_(std::move(layout)), pool_(std::move(pool)), choice_(std::move(choice)), rules_(std::move(rules)), units_(units), widths_(widths) {
        Node root;
        root.facts.key = key, root.leaf = 0;
        root.groups.assign(rules_.groups.size(), 1);
        nodes_.push_back(std::move(root));
        keeps_histograms_ = rules_.is_symmetric || rules_.candidates > 1 || layout_->cells * 16 * static_cast<std::size_t>(rules_.leaves) <= most_bytes;
    }

    ~Growth() {
        for (Node& node : nodes_) release(node);
    }
    Growth(const Growth&) = delete;
    Growth& operator=(const Growth&) = delete;

    const FeatureChoice& choice() const { return choice_; }
    const Widths& widths() const { return widths_; }
    const BinLayout& layout() const { return *layout_; }

    // Has nothing been answered yet?
    bool is_new() const { return !nodes_[0].is_known; }

    // What to do next, or what has not been answered yet; nothing when the tree is complete.
    const std::vector<Expansion>& ask(bool ahead) {
        if (choice_.features.empty() || !pending_.empty()) return pending_;
        if (!nodes_[0].is_known)
            pending_.push_back({-1, -1, -1, {}, {0}});
        else
            pending_ = rules_.is_symmetric ? level() : frontier(ahead);
        return pending_;
    }
    const std::vector<Expansion>& pending() const { return pending_; }

    // The leaf that is split next, if there is one and its split can be chosen; -1 otherwise.
    std::int32_t next_leaf() {
        const bool is_choice = rules_.candidates > 1 && !rules_.is_symmetric && pending_.empty();
        return is_choice && advance() ? heap_.front() : -1;
    }
    // Its best splits at different features, those of largest scores first; of equal scores the one at the lower feature.
    std::vector<Split> candidates(std::int32_t leaf) const {
        const Node& node = nodes_[leaf];
        const std::uint64_t most_drawn = drawn_below(node);
        SplitSearch searcher(*layout_, rules_.split, units_, widths_);
        std::vector<Split> splits;
        for (const std::uint32_t f : choice_.features) {
            if (!is_allowed(node, f, most_drawn)) continue;
            Split split = searcher.best(f, monotone(f), {node.histogram->view(), &node.facts});
            if (split.gain > rules_.split.min_gain) splits.push_back(std::move(split));
        }
        std::stable_sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) { return a.score > b.score; });
        splits.resize(std::min(splits.size(), rules_.candidates));
        return splits;
    }
    void choose(std::int32_t leaf, Split split) { nodes_[leaf].split = std::move(split); }
    // The outputs of the children, left and right, if a leaf is split in this way.
    std::pair<double, double> outputs(std::int32_t leaf, const Split& split) const {
        const NodeFacts& facts = nodes_[leaf].facts;
        const Restriction within = facts.of_children();
        return {output_of(split.left, within, rules_.split, units_, widths_).value,
                output_of(facts.sums - split.left, within, rules_.split, units_, widths_).value};
    }

    // Room for the histogram of a node that is asked for.
    HistogramView room(std::int32_t node) {
        nodes_[node].histogram = pool_->take();
        return nodes_[node].histogram->view();
    }

    // Takes the histograms that were asked for, which are in their rooms now, and finds the best splits.
    void take(Team& team) {
        for (const Expansion& expansion : pending_) {
            if (expansion.node < 0) {
                know_root();
                search(team, 0);
                continue;
            }
            finish_siblings(team, expansion);
            for (const std::int32_t child : {expansion.left, expansion.right})
                if (nodes_[child].histogram) search(team, child);
        }
        pending_.clear();
        if (rules_.is_symmetric) level_split_ = best_of_level(team);
    }

    // The tree so far, or all of it.
    GrownTree tree() const {
        GrownTree tree;
        tree.leaf_of_node.assign(nodes_.size(), 0);
        for (const std::int32_t node : committed_) {
            const Split& split = nodes_[node].split;
            tree.feature.push_back(split.feature), tree.bin.push_back(split.bin), tree.missing_left.push_back(split.missing_left);
            tree.gain.push_back(split.gain), tree.categories.push_back(split.categories);
            auto number = [&](std::int32_t child) { return nodes_[child].place >= 0 ? nodes_[child].place : ~nodes_[child].leaf; };
            tree.left.push_back(number(nodes_[node].left)), tree.right.push_back(number(nodes_[node].right));
        }
        const std::size_t leaves = committed_.size() + 1;
        tree.documents.resize(leaves), tree.restrictions.resize(leaves), tree.node_of_leaf.resize(leaves);
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            std::int32_t at = static_cast<std::int32_t>(node);
            while (nodes_[at].leaf < 0) at = nodes_[at].parent;  // one that was expanded in vain belongs to the leaf above it
            tree.leaf_of_node[node] = nodes_[at].leaf;
            if (at != static_cast<std::int32_t>(node) || nodes_[node].place >= 0) continue;
            tree.documents[nodes_[node].leaf] = nodes_[node].facts.sums.count(widths_);
            tree.restrictions[nodes_[node].leaf] = nodes_[node].facts.within;
            tree.node_of_leaf[nodes_[node].leaf] = static_cast<std::int32_t>(node);
        }
        return tree;
    }

private:
    static constexpr std::size_t most_bytes = std::size_t{1} << 30;

    struct Node {
        NodeFacts facts;
        std::int32_t parent = -1, left = -1, right = -1, depth = 0;
        std::int32_t place = -1;  // among the splits of the tree, once it is one
        std::int32_t leaf = -1;   // its number while or where it is a leaf of the tree
        std::unique_ptr<Histogram> histogram;
        bool is_known = false, is_expanded = false;
        Split split;
        std::vector<std::uint8_t> groups;  // those that all features on the path belong to
    };

    bool may_split(const Node& node) const {
        return (rules_.depth == 0 || node.depth < rules_.depth) && node.facts.sums.count(widths_) >= 2 * rules_.split.min_documents;
    }

    void know_root() {
        Node& root = nodes_[0];
        const BinLayout::Feature& feature = layout_->features[choice_.features.front()];
        const HistogramView view = root.histogram->view();
        for (std::uint32_t b = 0; b < feature.bins; ++b) root.facts.sums = root.facts.sums + view.at(feature.cell + b);
        root.is_known = true;
        settle(root.facts);
    }

    // The output of a node as a leaf, which its own children's splits are compared with.
    void settle(NodeFacts& facts) const {
        const Output output = output_of(facts.sums, facts.within, rules_.split, units_, widths_);
        facts.output = output.value, facts.contribution = output.contribution;
    }

    // The larger child's histogram is what is left of the parent's.
    void finish_siblings(Team& team, const Expansion& expansion) {
        Node& parent = nodes_[expansion.node];
        if (expansion.wanted.size() == 1 && parent.histogram) {
            const std::int32_t small = expansion.wanted[0], large = small == expansion.left ? expansion.right : expansion.left;
            std::uint64_t* from = parent.histogram->words();
            const std::uint64_t* what = nodes_[small].histogram->words();
            const std::size_t words = 2 * layout_->cells, piece = 1 << 14;
            team.for_each((words + piece - 1) / piece,
                          [&](std::size_t p) { subtract(from + p * piece, what + p * piece, std::min(piece, words - p * piece)); });
            nodes_[large].histogram = std::move(parent.histogram);
        }
        release(parent);
    }

    // May the feature meet those on the path to a node?
    bool meets_groups(const Node& node, std::uint32_t f) const {
        for (std::size_t g = 0; g < rules_.groups.size(); ++g)
            if (node.groups[g] && rules_.groups[g][f]) return true;
        return rules_.groups.empty();
    }

    bool is_allowed(const Node& node, std::uint32_t f, std::uint64_t most_drawn) const {
        return meets_groups(node, f) && draw(node.facts.key ^ 0x6665617475726573, f) <= most_drawn;
    }

    // What the features that are drawn for a node are drawn below.
    std::uint64_t drawn_below(const Node& node) const {
        const auto wanted = static_cast<std::size_t>(rules_.features_per_node);
        if (wanted == 0 || wanted >= choice_.features.size()) return ~std::uint64_t{0};
        std::vector<std::uint64_t> draws;
        for (const std::uint32_t f : choice_.features) draws.push_back(draw(node.facts.key ^ 0x6665617475726573, f));
        std::nth_element(draws.begin(), draws.begin() + (wanted - 1), draws.end());
        return draws[wanted - 1];
    }

    int monotone(std::uint32_t f) const { return rules_.monotone.empty() ? 0 : rules_.monotone[f]; }

    // The best split of a node whose histogram is there. A symmetric tree asks for those of a level instead.
    void search(Team& team, std::int32_t number) {
        Node& node = nodes_[number];
        if (rules_.is_symmetric) return;
        if (!may_split(node)) return release(node);
        const HistogramView view = node.histogram->view();
        const std::uint64_t most_drawn = drawn_below(node);
        node.split = best_of_features(team, [&](SplitSearch& searcher, std::uint32_t f) {
            return is_allowed(node, f, most_drawn) ? searcher.best(f, monotone(f), {view, &node.facts}) : Split{};
        });
        if (node.split.feature < 0 || !keeps_histograms_) release(node);
    }

    // The best of the splits that `search` finds, feature by feature.
    template <class Search>
    Split best_of_features(Team& team, const Search& search) const {
        const std::size_t count = choice_.features.size(), tasks = count < 16 ? 1 : std::min<std::size_t>(count / 8, 4 * team.threads()),
                          length = (count + tasks - 1) / tasks;
        std::vector<Split> best(tasks);
        team.for_each(tasks, [&](std::size_t t) {
            SplitSearch searcher(*layout_, rules_.split, units_, widths_);
            for (std::size_t k = t * length; k < std::min(count, (t + 1) * length); ++k) {
                Split split = search(searcher, choice_.features[k]);
                if (split.gain > rules_.split.min_gain && split.score > best[t].score) best[t] = std::move(split);
            }
        });
        for (Split& split : best)
            if (split.score > best[0].score) best[0] = std::move(split);
        return std::move(best[0]);
    }

    void release(Node& node) {
        if (node.histogram) pool_->give_back(std::move(node.histogram));
    }

    // Commits splits in the order of their gains, as far as children are known; false if the tree is complete then.
    bool advance() {
        auto later = [&](std::int32_t a, std::int32_t b) {
            const Node &x = nodes_[a], &y = nodes_[b];
            return x.split.gain < y.split.gain || (x.split.gain == y.split.gain && x.leaf > y.leaf);
        };
        if (heap_.empty() && committed_.empty() && nodes_[0].split.feature >= 0) heap_.push_back(0);
        while (static_cast<std::int32_t>(committed_.size()) + 1 < rules_.leaves && !heap_.empty()) {
            if (!nodes_[heap_.front()].is_expanded) return true;
            std::pop_heap(heap_.begin(), heap_.end(), later);
            const std::int32_t node = heap_.back();
            heap_.pop_back();
            commit(node);
            for (const std::int32_t child : {nodes_[node].left, nodes_[node].right})
                if (nodes_[child].split.feature >= 0) heap_.push_back(child), std::push_heap(heap_.begin(), heap_.end(), later);
        }
        return false;
    }

    std::vector<Expansion> frontier(bool ahead) { return advance() ? expansions(ahead) : std::vector<Expansion>(); }

    void commit(std::int32_t number) {
        Node& node = nodes_[number];
        node.place = static_cast<std::int32_t>(committed_.size());
        committed_.push_back(number);
        nodes_[node.left].leaf = node.leaf, nodes_[node.right].leaf = static_cast<std::int32_t>(committed_.size());
    }

    // The nodes that would be split if nothing better came up; without `ahead` the first of them.
    std::vector<Expansion> expansions(bool ahead) {
        std::size_t left = static_cast<std::size_t>(rules_.leaves) - committed_.size() - 1;
        const bool is_last = left == 1;
        std::vector<std::int32_t> chosen;
        if (ahead) {
            // As in `frontier`, with the numbers that leaves would have: of equal gains the same comes first.
            struct Open {
                double gain;
                std::int32_t leaf, node;
                bool operator<(const Open& other) const { return gain < other.gain || (gain == other.gain && leaf > other.leaf); }
            };
            std::vector<Open> open;
            for (const std::int32_t node : heap_) open.push_back({nodes_[node].split.gain, nodes_[node].leaf, node});
            std::make_heap(open.begin(), open.end());
            for (auto last_leaf = static_cast<std::int32_t>(committed_.size()); left > 0 && !open.empty(); --left) {
                std::pop_heap(open.begin(), open.end());
                const Open next = open.back();
                open.pop_back();
                ++last_leaf;
                if (!nodes_[next.node].is_expanded) {
                    chosen.push_back(next.node);
                    continue;
                }
                for (const bool is_right : {false, true}) {
                    const std::int32_t child = is_right ? nodes_[next.node].right : nodes_[next.node].left;
                    if (nodes_[child].split.feature < 0) continue;
                    open.push_back({nodes_[child].split.gain, is_right ? last_leaf : next.leaf, child});
                    std::push_heap(open.begin(), open.end());
                }
            }
            std::sort(chosen.begin(), chosen.end());
        } else {
            chosen.push_back(heap_.front());
        }
        std::vector<Expansion> asked;
        for (const std::int32_t node : chosen) asked.push_back(expand(node, is_last));
        return asked;
    }

    // Makes the children of a node; `is_last`: they will not be split.
    Expansion expand(std::int32_t number, bool is_last) {
        const auto left = static_cast<std::int32_t>(nodes_.size()), right = left + 1;
        nodes_.resize(nodes_.size() + 2);
        Node& node = nodes_[number];
        Expansion expansion{number, left, right, node.split, {}};
        const ForceSums sums[2] = {node.split.left, node.facts.sums - node.split.left};
        Restriction within[2] = {node.facts.of_children(), node.facts.of_children()};
        if (const int direction = monotone(static_cast<std::uint32_t>(node.split.feature)); direction != 0) {
            double middle = 0;
            for (int side = 0; side < 2; ++side) middle += output_of(sums[side], within[side], rules_.split, units_, widths_).value / 2;
            within[direction > 0 ? 0 : 1].high = middle, within[direction > 0 ? 1 : 0].low = middle;
        }
        for (int side = 0; side < 2; ++side) {
            Node& child = nodes_[left + side];
            child.parent = number, child.depth = node.depth + 1, child.is_known = true;
            child.facts = {sums[side], within[side], 0, 0, draw(node.facts.key, 0x6368696c64 + side)};
            settle(child.facts);
            child.groups = node.groups;
            for (std::size_t g = 0; g < child.groups.size(); ++g) child.groups[g] &= rules_.groups[g][node.split.feature];
        }
        node.left = left, node.right = right, node.is_expanded = true;
        const bool leads_on[2] = {!is_last && may_split(nodes_[left]), !is_last && may_split(nodes_[right])};
        const int small = sums[0].count(widths_) <= sums[1].count(widths_) ? 0 : 1;
        if (node.histogram && (leads_on[0] || leads_on[1]))
            expansion.wanted = {left + small};
        else
            for (int side = 0; side < 2; ++side)
                if (leads_on[side]) expansion.wanted.push_back(left + side);
        return expansion;
    }

    // The split of the next level, at all leaves that it can split.
    std::vector<Expansion> level() {
        const Split split = std::exchange(level_split_, {});
        if (split.feature < 0) return {};
        std::vector<std::int32_t> chosen, next;
        for (const std::int32_t node : level_)
            if (chosen.size() < splits_left() && is_open(node) && meets_groups(nodes_[node], static_cast<std::uint32_t>(split.feature)) &&
                splits_at(node, split))
                chosen.push_back(node);
        const bool is_last = chosen.size() == splits_left();
        std::vector<Expansion> asked;
        for (const std::int32_t node : chosen) asked.push_back(expand(node, is_last));
        for (const std::int32_t node : level_) {
            if (!nodes_[node].is_expanded) {
                next.push_back(node);
                continue;
            }
            commit(node);
            next.push_back(nodes_[node].left), next.push_back(nodes_[node].right);
        }
        level_ = std::move(next);
        return asked;
    }

    std::size_t splits_left() const { return static_cast<std::size_t>(rules_.leaves) - committed_.size() - 1; }

    // May a leaf of the level be split?
    bool is_open(std::int32_t node) const { return may_split(nodes_[node]) && nodes_[node].histogram; }

    // Gives `node` the split of its level with its own sums, unless a child would be too small.
    bool splits_at(std::int32_t number, const Split& split) {
        Node& node = nodes_[number];
        const SplitSearch searcher(*layout_, rules_.split, units_, widths_);
        const ForceSums left = searcher.left_sums(split, node.histogram->view());
        if (!searcher.is_sound(left, node.facts)) return false;
        node.split = split, node.split.left = left;
        const Restriction within = node.facts.of_children();
        const Output sides[2] = {output_of(left, within, rules_.split, units_, widths_),
                                 output_of(node.facts.sums - left, within, rules_.split, units_, widths_)};
        node.split.gain = sides[0].contribution + sides[1].contribution - node.facts.contribution;
        const int direction = monotone(static_cast<std::uint32_t>(split.feature));
        return direction == 0 || direction * (sides[1].value - sides[0].value) >= 0;
    }

    Split best_of_level(Team& team) const {
        if (splits_left() == 0) return {};
        const std::uint64_t key = draw(nodes_[0].facts.key, committed_.size());
        return best_of_features(team, [&](SplitSearch& searcher, std::uint32_t f) {
            std::vector<SplitSearch::Leaf> leaves;
            for (const std::int32_t node : level_)  // leaves that an earlier level did not split have shorter paths
                if (is_open(node) && meets_groups(nodes_[node], f)) leaves.push_back({nodes_[node].histogram->view(), &nodes_[node].facts});
            return leaves.empty() ? Split{} : searcher.best_of_level(f, monotone(f), leaves, key);
        });
    }

    std::shared_ptr<const BinLayout> layout_;
    std::shared_ptr<HistogramPool> pool_;
    FeatureChoice choice_;
    GrowthRules rules_;
    Units units_;
    Widths widths_;
    bool keeps_histograms_ = true;
    std::vector<Node> nodes_;
    std::vector<std::int32_t> heap_, committed_, level_{0};
    Split level_split_;
    std::vector<Expansion> pending_;
};

// The leaf of each row that is not `chosen`, or of each where that is null.
template <class Number>
void walk(const BinnedRows& binned, const GrownTree& tree, const std::uint8_t* chosen, Number* numbers, int threads) {
    const BinLayout& layout = binned.layout();
    struct Step {
        const std::uint8_t* bytes;
        const std::uint16_t* words;
        std::vector<std::uint8_t> goes_left;
        std::int32_t left, right;
    };
    std::vector<Step> steps(tree.feature.size());
    for (std::size_t node = 0; node < steps.size(); ++node) {
        const BinLayout::Feature& feature = layout.features[tree.feature[node]];
        const Split split{0, 0, tree.feature[node], tree.bin[node], tree.missing_left[node] != 0, tree.categories[node], {}};
        Step& step = steps[node] = {nullptr, nullptr, std::vector<std::uint8_t>(feature.bins), tree.left[node], tree.right[node]};
        for (std::uint32_t b = 0; b < feature.bins; ++b) step.goes_left[b] = SplitSearch::goes_left(feature, split, b);
        if (feature.tile < 0)
            step.words = binned.column(feature.slot);
        else
            step.bytes = binned.tile(feature.tile) + feature.slot;
    }
    for_each_block(binned.rows(), 16384, threads, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            if (chosen && chosen[i]) continue;
            std::int32_t node = steps.empty() ? ~0 : 0;
            while (node >= 0) {
                const Step& step = steps[node];
                const std::uint32_t bin = step.bytes ? step.bytes[i * BinLayout::per_tile] : step.words[i];
                node = step.goes_left[bin] ? step.left : step.right;
            }
            numbers[i] = static_cast<Number>(~node);
        }
    });
}

// Grows the whole tree on documents that lie in one place.
inline void grow(Growth& growth, NodeRows& rows, int threads) {
    Team::run(threads, [&](Team& team) {
        HistogramBuilder builder(rows.binned(), growth.choice(), growth.widths());
        while (!growth.ask(false).empty()) {
            for (const Expansion& expansion : growth.pending()) {
                if (expansion.node >= 0) rows.split(team, expansion.node, expansion.split, expansion.left, expansion.right);
                for (const std::int32_t node : expansion.wanted) builder.build(team, rows.of(node), growth.room(node));
            }
            growth.take(team);
        }
    });
}

}  // namespace exactrank
