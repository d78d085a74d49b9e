// Regression trees.
#include "models/trees.hpp"
#include "bindings/arrays.hpp"
#include "models/tree_shap.hpp"

namespace exactrank {

namespace {

// Every index that the kernel follows is checked here: a child is behind its parent, so that no walk goes round, and has no other.
void check(const TreeTable& table, std::size_t width) {
    for (std::size_t t = 0; t < table.trees; ++t) {
        const std::int64_t begin = table.start[t], nodes = table.start[t + 1] - begin;
        std::vector<bool> met(2 * nodes + 1);
        auto sound = [&](std::int64_t node, std::int64_t child) {
            if (child < 0 ? ~child > nodes : child <= node || child >= nodes) return false;
            const bool again = met[child + nodes + 1];
            met[child + nodes + 1] = true;
            return !again;
        };
        for (std::int64_t node = 0; node < nodes; ++node) {
            require(sound(node, table.left[begin + node]) && sound(node, table.right[begin + node]), "a child is out of range");
            const std::int32_t feature = table.feature[begin + node];
            require(feature >= 0 && static_cast<std::size_t>(feature) < width, "a feature is out of range");
            const double set = table.threshold[begin + node];
            require(!(table.decision[begin + node] & categorical) || (set >= 0 && set < static_cast<double>(table.set_count)), "a set is out of range");
        }
    }
}

TreeTable checked(std::size_t width, const In<std::int64_t>& start, const In<std::int32_t>& feature, const In<double>& threshold,
                  const In<std::uint8_t>& decision, const In<std::int32_t>& left, const In<std::int32_t>& right, const In<double>& leaf_value,
                  const In<std::int64_t>& set_start, const In<std::uint32_t>& sets) {
    require_starts("start", start, feature.size(), true);
    require_starts("set_start", set_start, sets.size(), false);
    const std::size_t trees = start.size() - 1, nodes = feature.size(), set_count = set_start.size() - 1;
    require(nodes + trees < std::size_t{1} << 31, "there are too many leaves");
    require(threshold.size() == nodes && decision.size() == nodes && left.size() == nodes && right.size() == nodes, "the nodes' arrays differ in length");
    require(leaf_value.size() == nodes + trees, "a tree has one leaf more than nodes");
    const TreeTable table{start.data(),     trees,     feature.data(), left.data(), right.data(), threshold.data(), decision.data(), leaf_value.data(),
                          set_start.data(), set_count, sets.data()};
    check(table, width);
    return table;
}

void make_trees(Trees* self, std::size_t width, In<std::int64_t> start, In<std::int32_t> feature, In<double> threshold, In<std::uint8_t> decision,
                In<std::int32_t> left, In<std::int32_t> right, In<double> leaf_value, In<std::int64_t> set_start, In<std::uint32_t> sets) {
    const TreeTable table = checked(width, start, feature, threshold, decision, left, right, leaf_value, set_start, sets);
    nb::gil_scoped_release release;
    new (self) Trees(table, width);
}

Out<double> tree_scores(const Trees& self, InMatrix<float> x, int threads, std::size_t lanes) {
    require(lanes == 4 || lanes == 8 || lanes == 16, "there are 4, 8 or 16 lanes");
    require(x.shape(1) == self.width(), "trees and rows differ in features");
    auto scores = empty<double>(x.shape(0));
    nb::gil_scoped_release release;
    self.score(viewed(x), threads, lanes, spanned(scores));
    return scores;
}

OutMatrix<double> tree_contributions(std::size_t width, In<std::int64_t> start, In<std::int32_t> feature, In<double> threshold, In<std::uint8_t> decision,
                                     In<std::int32_t> left, In<std::int32_t> right, In<double> leaf_value, In<std::int64_t> set_start, In<std::uint32_t> sets,
                                     In<double> cover, InMatrix<float> x, int threads) {
    const TreeTable table = checked(width, start, feature, threshold, decision, left, right, leaf_value, set_start, sets);
    require(cover.size() == leaf_value.size(), "there is a cover for each leaf");
    require(x.shape(1) == width, "trees and rows differ in features");
    auto found = empty<double>(x.shape(0), width + 1);
    nb::gil_scoped_release release;
    std::fill_n(found.data(), found.size(), 0.0);
    TreeShap(table, cover.data(), width).contributions(viewed(x), threads, {found.data(), found.size()});
    return found;
}

}  // namespace

void bind_trees(nb::module_& m) {
    nb::class_<Trees>(m, "Trees")
        .def("__init__", &make_trees, "width"_a, "start"_a, "feature"_a, "threshold"_a, "decision"_a, "left"_a, "right"_a, "leaf_value"_a, "set_start"_a,
             "sets"_a)
        .def("scores", &tree_scores, "x"_a, "threads"_a, "lanes"_a = native_lanes());
    m.def("tree_contributions", &tree_contributions, "width"_a, "start"_a, "feature"_a, "threshold"_a, "decision"_a, "left"_a, "right"_a, "leaf_value"_a,
          "set_start"_a, "sets"_a, "cover"_a, "x"_a, "threads"_a);
}

}  // namespace exactrank
