// Growing regression trees: bins, documents in nodes, and growth.
#include "bindings/arrays.hpp"
#include "trees/growth.hpp"

namespace exactrank {

namespace {

using Layout = std::shared_ptr<const BinLayout>;
using Chosen = std::optional<In<std::uint8_t>>;

constexpr std::uint64_t most_documents = std::uint64_t{1} << 31;

const std::uint8_t* pointer(const Chosen& chosen, std::size_t rows) {
    if (!chosen) return nullptr;
    require_length("chosen", chosen->size(), rows);
    return chosen->data();
}

void require_kinds(const In<std::uint8_t>& kinds, std::size_t features) {
    require_length("kinds", kinds.size(), features);
    for (std::size_t f = 0; f < features; ++f) require(kinds(f) <= BinLayout::category, "kinds are 0, 1 or 2");
}

Layout layout_of_sample(InMatrix<float> sample, std::size_t bins, In<std::uint8_t> kinds, int threads) {
    require_kinds(kinds, sample.shape(1));
    require(bins >= 2 && bins < 65536, "bins must be from 2 to 65,535");
    nb::gil_scoped_release release;
    return make_layout(viewed(sample), bins, spanned(kinds), threads);
}

bool is_category(double cut) { return cut >= 0 && cut < 0x1p31 && cut == std::floor(cut) && cut == static_cast<float>(cut); }

Layout layout_of_cuts(In<std::int64_t> start, In<double> cuts, In<std::uint8_t> kinds) {
    require_kinds(kinds, start.size() - 1);
    require_starts("start", start, cuts.size(), true);
    for (std::size_t f = 0; f < kinds.size(); ++f) {
        require(start(f + 1) - start(f) < 65535, "a feature has too many bins");
        for (std::int64_t c = start(f); c < start(f + 1); ++c) {
            require(std::isfinite(cuts(c)) && (c == start(f) || cuts(c) > cuts(c - 1)), "cuts must be finite and rise");
            require(kinds(f) != BinLayout::category || is_category(cuts(c)), "categories must be whole numbers from 0");
        }
    }
    return std::make_shared<const BinLayout>(std::vector<std::size_t>(start.data(), start.data() + start.size()), copied(cuts), spanned(kinds));
}

Out<std::int64_t> starts_of(const BinLayout& layout) { return array(std::vector<std::int64_t>(layout.start.begin(), layout.start.end())); }

Out<double> cuts_of(const BinLayout& layout) { return array(std::vector<double>(layout.cuts)); }

Out<std::uint8_t> kinds_of(const BinLayout& layout) {
    std::vector<std::uint8_t> kinds;
    for (const auto& feature : layout.features) kinds.push_back(feature.kind);
    return array(std::move(kinds));
}

// Where each feature lies: its number of bins, its tile (-1: none), its slot there or its column, and the first cell of its histogram.
OutMatrix<std::int64_t> places_of(const BinLayout& layout) {
    auto places = empty<std::int64_t>(layout.features.size(), 4);
    std::int64_t* next = places.data();
    for (const auto& feature : layout.features)
        for (const auto number : {static_cast<std::int64_t>(feature.bins), static_cast<std::int64_t>(feature.tile), static_cast<std::int64_t>(feature.slot),
                                  static_cast<std::int64_t>(feature.cell)})
            *next++ = number;
    return places;
}

template <class T>
using View = nb::ndarray<nb::numpy, const T, nb::ndim<1>>;

// All tiles, and all columns of two bytes, as they lie in memory.
View<std::uint8_t> tiles_of(nb::object self) {
    const auto& binned = nb::cast<const BinnedRows&>(self);
    return View<std::uint8_t>(binned.tile(0), {binned.layout().tiles * binned.rows() * BinLayout::per_tile}, self);
}

View<std::uint16_t> columns_of(nb::object self) {
    const auto& binned = nb::cast<const BinnedRows&>(self);
    return View<std::uint16_t>(binned.column(0), {binned.layout().columns * binned.rows()}, self);
}

void make_binned(BinnedRows* self, Layout layout, InMatrix<float> x, int threads) {
    require(x.shape(1) == layout->features.size(), "bins and rows differ in features");
    require(x.shape(0) < most_documents, "there are too many rows");
    nb::gil_scoped_release release;
    new (self) BinnedRows(std::move(layout), viewed(x), threads);
}

// A list of questions as plain values, which can be sent.
using Asked =
    std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::uint32_t, bool, std::vector<std::uint64_t>, std::vector<std::int32_t>>>;

Asked as_values(const std::vector<Expansion>& expansions) {
    Asked asked;
    for (const Expansion& e : expansions)
        asked.emplace_back(e.node, e.left, e.right, e.split.feature, e.split.bin, e.split.missing_left, e.split.categories, e.wanted);
    return asked;
}

std::vector<Expansion> from_values(const Asked& asked, const NodeRows& rows) {
    const BinLayout& layout = rows.binned().layout();
    std::vector<Expansion> expansions;
    std::vector<bool> is_leaf;
    for (std::size_t node = 0; node < rows.nodes(); ++node) is_leaf.push_back(rows.is_leaf(node));
    for (const auto& [node, left, right, feature, bin, missing_left, categories, wanted] : asked) {
        Expansion e;
        e.node = node, e.left = left, e.right = right, e.wanted = wanted;
        if (node >= 0) {
            require_below("node", node, is_leaf.size()), require_below("feature", feature, layout.features.size());
            require(is_leaf[node], "a node is split twice");
            require(layout.features[feature].is_used(), "a feature with one bin is split");
            require(left == static_cast<std::int32_t>(is_leaf.size()) && right == left + 1, "children are not numbered on");
            is_leaf[node] = false, is_leaf.insert(is_leaf.end(), {true, true});
        }
        for (const std::int32_t child : wanted) {
            require_below("wanted", child, is_leaf.size());
            require(is_leaf[child], "the histogram of a node that is split is wanted");
        }
        e.split.feature = feature, e.split.bin = bin, e.split.missing_left = missing_left, e.split.categories = categories;
        expansions.push_back(std::move(e));
    }
    return expansions;
}

void make_node_rows(NodeRows* self, std::shared_ptr<const BinnedRows> binned) {
    nb::gil_scoped_release release;
    new (self) NodeRows(std::move(binned));
}

void begin(NodeRows& self, const Chosen& chosen, In<double> slope, In<double> bend, double per_slope, double per_bend, int threads) {
    const std::size_t rows = self.binned().rows();
    require_length("slope", slope.size(), rows), require_length("bend", bend.size(), rows);
    const std::uint8_t* which = pointer(chosen, rows);
    nb::gil_scoped_release release;
    Team::run(threads, [&](Team& team) { self.begin(team, which, slope.data(), bend.data(), per_slope, per_bend); });
}

// Counts of all rows must fit.
void require_room(const NodeRows& rows, const Widths& widths) {
    require(rows.nodes() == 0 || rows.count() >> widths.count == 0, "there are more documents than expected");
}

void grow_here(NodeRows& self, Growth& growth, int threads) {
    require(&self.binned().layout() == &growth.layout(), "rows and growth differ in their bins");
    require(self.nodes() == 1 && growth.is_new(), "a tree must begin anew");
    require_room(self, growth.widths());
    nb::gil_scoped_release release;
    grow(growth, self, threads);
}

// Forces of documents as whole numbers of units, whose inverse is given, in sums that cannot overflow.
struct ForceRounding {
    ForceRounding(std::size_t documents, double per_slope_, double per_bend_)
        : most(0x1p62 / static_cast<double>(documents + 1)), per_slope(per_slope_), per_bend(per_bend_) {}

    void add(double slope, double bend, std::int64_t& slopes, std::int64_t& bends) const {
        const double pull = slope * per_slope, curve = bend * per_bend;
        if (!(std::fabs(pull) <= most && std::fabs(curve) <= most)) [[unlikely]]
            throw std::invalid_argument("a force is too large for its unit");
        slopes += static_cast<std::int64_t>(std::nearbyint(pull));
        bends += static_cast<std::int64_t>(std::nearbyint(curve));
    }

    double most, per_slope, per_bend;
};

FeatureChoice choice_of(const BinLayout& layout, const In<std::uint8_t>& allowed) {
    require_length("allowed", allowed.size(), layout.features.size());
    return FeatureChoice(layout, spanned(allowed));
}

// Splits rows as asked; the histograms that are wanted, each as two planes of cells.
Out<std::uint64_t> answer(NodeRows& self, const Asked& asked, In<std::uint8_t> allowed, std::uint64_t documents, int threads) {
    const BinLayout& layout = self.binned().layout();
    const FeatureChoice choice = choice_of(layout, allowed);
    require(documents < most_documents, "there are too many documents");
    require_room(self, Widths(documents));
    const std::vector<Expansion> expansions = from_values(asked, self);
    std::size_t wanted = 0;
    for (const Expansion& e : expansions) wanted += e.wanted.size();
    auto words = empty<std::uint64_t>(wanted * 2 * layout.cells);
    nb::gil_scoped_release release;
    std::fill_n(words.data(), words.size(), 0);
    Team::run(threads, [&](Team& team) {
        HistogramBuilder builder(self.binned(), choice, Widths(documents));
        std::uint64_t* at = words.data();
        for (const Expansion& e : expansions) {
            if (e.node >= 0) self.split(team, e.node, e.split, e.left, e.right);
            for (const std::int32_t node : e.wanted) {
                builder.build(team, self.of(node), {reinterpret_cast<std::int64_t*>(at), at + layout.cells});
                at += 2 * layout.cells;
            }
        }
    });
    return words;
}

// Sums of rounded forces over the rows of some nodes that were not split, a pair for each.
OutMatrix<std::int64_t> node_sums(const NodeRows& self, const std::vector<std::int32_t>& nodes, In<double> slope, In<double> bend, double per_slope,
                                  double per_bend, int threads) {
    const std::size_t rows = self.binned().rows();
    require_length("slope", slope.size(), rows), require_length("bend", bend.size(), rows);
    for (const std::int32_t node : nodes) {
        require_below("nodes", node, self.nodes());
        require(self.is_leaf(node), "the sums of a node that is split are wanted");
    }
    const ForceRounding rounding(rows, per_slope, per_bend);
    auto sums = empty<std::int64_t>(nodes.size(), 2);
    nb::gil_scoped_release release;
    Team::run(threads, [&](Team& team) {
        for (std::size_t k = 0; k < nodes.size(); ++k) {
            const RowsView own = self.of(nodes[k]);
            constexpr std::size_t length = 1 << 14;
            std::vector<std::int64_t> pieces(2 * ((own.count + length - 1) / length));
            team.for_each(pieces.size() / 2, [&](std::size_t p) {
                std::int64_t total[2] = {};
                for (std::size_t i = p * length; i < std::min(own.count, (p + 1) * length); ++i)
                    rounding.add(slope.data()[own.rows[i]], bend.data()[own.rows[i]], total[0], total[1]);
                pieces[2 * p] = total[0], pieces[2 * p + 1] = total[1];
            });
            std::int64_t* total = sums.data() + 2 * k;
            total[0] = total[1] = 0;
            for (std::size_t w = 0; w < pieces.size(); ++w) total[w % 2] += pieces[w];
        }
    });
    return sums;
}

void make_growth(Growth* self, Layout layout, std::shared_ptr<HistogramPool> pool, In<std::uint8_t> allowed, std::uint64_t documents, double unit_slope,
                 double unit_bend, std::uint64_t key, std::int32_t leaves, std::int32_t depth, std::int64_t min_documents, double min_curvature, double l1,
                 double l2, double min_gain, double max_step, double smoothing, double noise, bool extra, std::int32_t features_per_node, bool symmetric,
                 std::int64_t min_group, In<std::int8_t> monotone, const std::vector<std::vector<std::int32_t>>& groups, std::size_t candidates) {
    require(pool->cells() == layout->cells, "the pool is of other bins");
    require(monotone.size() == 0 || monotone.size() == layout->features.size(), "monotone has one number per feature, or none");
    require(documents < most_documents, "there are too many documents");
    require(leaves >= 2 && depth >= 0 && min_documents >= 1 && min_documents < 0x7fffffff && min_group >= 0 && features_per_node >= 0 && candidates >= 1,
            "a setting is out of range");
    for (const double setting : {min_curvature, l1, l2, min_gain, max_step, smoothing, noise}) require(setting >= 0, "a setting is out of range");
    for (const double unit : {unit_slope, unit_bend}) require(unit > 0 && std::isfinite(unit), "units must be above 0 and finite");
    GrowthRules rules;
    rules.split = {min_documents, min_curvature, l1, l2, min_gain, max_step, smoothing, noise, extra, min_group};
    rules.leaves = leaves, rules.depth = depth, rules.features_per_node = features_per_node, rules.is_symmetric = symmetric;
    rules.candidates = candidates;
    rules.monotone = copied(monotone);
    for (const auto& group : groups) {
        auto& members = rules.groups.emplace_back(layout->features.size(), 0);
        for (const std::int32_t f : group) require_below("groups", f, members.size()), members[f] = 1;
    }
    FeatureChoice choice = choice_of(*layout, allowed);
    new (self) Growth(std::move(layout), std::move(choice), std::move(rules), {unit_slope, unit_bend}, Widths(documents), key, std::move(pool));
}

// The rows of the leaf that is split next, and their outputs by each of its candidates, a row each; none if nothing is to be chosen.
nb::tuple candidate_outputs(NodeRows& self, Growth& growth) {
    require(&self.binned().layout() == &growth.layout(), "rows and growth differ in their bins");
    const std::int32_t leaf = growth.next_leaf();
    if (leaf < 0) return nb::make_tuple(array(std::vector<std::int32_t>()), empty<double>(0, 0));
    require_below("leaf", leaf, self.nodes());
    require(self.is_leaf(leaf), "the rows of the leaf have been split");
    const RowsView rows = self.of(leaf);
    const std::vector<Split> candidates = growth.candidates(leaf);
    auto outputs = empty<double>(candidates.size(), rows.count);
    double* at = outputs.data();
    for (const Split& split : candidates) {
        const auto [left, right] = growth.outputs(leaf, split);
        for (const std::uint8_t is_left : self.sides(leaf, split)) *at++ = is_left ? left : right;
    }
    return nb::make_tuple(array(std::vector<std::int32_t>(rows.rows, rows.rows + rows.count)), outputs);
}

void choose_split(Growth& self, std::size_t number) {
    const std::int32_t leaf = self.next_leaf();
    require(leaf >= 0, "there is nothing to choose");
    std::vector<Split> candidates = self.candidates(leaf);
    require_below("number", static_cast<std::int64_t>(number), candidates.size());
    self.choose(leaf, std::move(candidates[number]));
}

// Words are histograms, each a plane of slopes and one of the rest: no sum can be larger than that of all documents.
void require_sums(const In<std::uint64_t>& words, std::size_t cells, const Widths& widths) {
    const std::uint64_t most_slope = std::uint64_t{1} << (slope_bits + widths.count), most_bend = std::uint64_t{1} << (most_bend_bits + widths.count);
    bool fits = true;
    for (std::size_t w = 0; w < words.size(); ++w) {
        const std::uint64_t word = words.data()[w];
        fits &= w / cells % 2 == 0 ? word + most_slope <= 2 * most_slope : word >> widths.count <= most_bend;
    }
    require(fits, "a sum is larger than that of all documents");
}

void take_words(Growth& self, In<std::uint64_t> words, int threads) {
    const std::vector<Expansion>& asked = self.pending();
    std::size_t wanted = 0;
    for (const Expansion& e : asked) wanted += e.wanted.size();
    require_length("words", words.size(), wanted * 2 * self.layout().cells);
    nb::gil_scoped_release release;
    require_sums(words, self.layout().cells, self.widths());
    const std::uint64_t* at = words.data();
    for (const Expansion& e : asked)
        for (const std::int32_t node : e.wanted) {
            const HistogramView room = self.room(node);
            std::copy_n(at, 2 * self.layout().cells, reinterpret_cast<std::uint64_t*>(room.slope));
            at += 2 * self.layout().cells;
        }
    Team::run(threads, [&](Team& team) { self.take(team); });
}

template <class T>
Out<T> copy_of(const std::vector<T>& values) {
    return array(std::vector<T>(values));
}

// A tree as what can be sent.
using TreeParts = std::tuple<std::vector<std::int32_t>, std::vector<std::uint32_t>, std::vector<std::uint8_t>, std::vector<std::int32_t>,
                             std::vector<std::int32_t>, std::vector<std::vector<std::uint64_t>>, std::vector<std::int64_t>, std::vector<std::int32_t>>;

TreeParts parts_of(const GrownTree& tree) {
    return {tree.feature, tree.bin, tree.missing_left, tree.left, tree.right, tree.categories, tree.documents, tree.leaf_of_node};
}

void make_tree(GrownTree& self, const TreeParts& parts) {
    GrownTree tree;
    std::tie(tree.feature, tree.bin, tree.missing_left, tree.left, tree.right, tree.categories, tree.documents, tree.leaf_of_node) = parts;
    const std::size_t nodes = tree.feature.size();
    require(tree.bin.size() == nodes && tree.missing_left.size() == nodes && tree.left.size() == nodes && tree.right.size() == nodes &&
                tree.categories.size() == nodes && tree.documents.size() == nodes + 1,
            "the nodes' arrays differ in length");
    for (std::size_t node = 0; node < nodes; ++node)
        for (const std::int32_t child : {tree.left[node], tree.right[node]})
            require(child < 0 ? static_cast<std::size_t>(~child) <= nodes : static_cast<std::size_t>(child) > node && static_cast<std::size_t>(child) < nodes,
                    "a child is out of range");
    for (const std::int32_t leaf : tree.leaf_of_node) require_below("leaf_of_node", leaf, nodes + 1);
    new (&self) GrownTree(std::move(tree));
}

void require_features(const GrownTree& tree, const BinLayout& layout) {
    for (const std::int32_t feature : tree.feature) {
        require_below("feature", feature, layout.features.size());
        require(layout.features[feature].is_used(), "a feature with one bin is split");
    }
}

Out<std::int64_t> category_starts(const GrownTree& tree) {
    std::vector<std::int64_t> starts{0};
    for (const auto& own : tree.categories) starts.push_back(starts.back() + static_cast<std::int64_t>(own.size()));
    return array(std::move(starts));
}

Out<std::uint64_t> category_words(const GrownTree& tree) {
    std::vector<std::uint64_t> words;
    for (const auto& own : tree.categories) words.insert(words.end(), own.begin(), own.end());
    return array(std::move(words));
}

OutMatrix<double> restrictions(const GrownTree& tree) {
    auto rows = empty<double>(tree.restrictions.size(), 3);
    for (std::size_t leaf = 0; leaf < tree.restrictions.size(); ++leaf) {
        const Restriction& own = tree.restrictions[leaf];
        rows.data()[3 * leaf] = own.toward, rows.data()[3 * leaf + 1] = own.low, rows.data()[3 * leaf + 2] = own.high;
    }
    return rows;
}

template <class Number>
using Numbers = nb::ndarray<Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Number>
void require_fit(const GrownTree& tree) {
    require(tree.documents.size() - 1 <= std::numeric_limits<Number>::max(), "the tree has more leaves than the numbers can tell apart");
}

template <class Number>
void number_rows(const NodeRows& self, const GrownTree& tree, const Chosen& chosen, Numbers<Number> numbers, int threads) {
    const std::size_t rows = self.binned().rows();
    require_length("numbers", numbers.size(), rows);
    require(tree.leaf_of_node.size() >= self.nodes(), "the tree did not grow on these rows");
    require_features(tree, self.binned().layout()), require_fit<Number>(tree);
    const std::uint8_t* which = pointer(chosen, rows);
    nb::gil_scoped_release release;
    self.number_leaves(std::span<const std::int32_t>(tree.leaf_of_node), numbers.data());
    if (which) walk(self.binned(), tree, which, numbers.data(), threads);
}

template <class Number>
void walk_rows(const BinnedRows& self, const GrownTree& tree, Numbers<Number> numbers, int threads) {
    require_length("numbers", numbers.size(), self.rows());
    require_features(tree, self.layout()), require_fit<Number>(tree);
    nb::gil_scoped_release release;
    walk(self, tree, nullptr, numbers.data(), threads);
}

template <class Number>
Out<std::int64_t> leaf_sums(In<Number> leaf, const Chosen& chosen, In<double> slope, In<double> bend, double per_slope, double per_bend, std::size_t leaves) {
    require_length("slope", slope.size(), leaf.size()), require_length("bend", bend.size(), leaf.size());
    const std::uint8_t* which = pointer(chosen, leaf.size());
    require(leaves <= most_documents, "there are too many leaves");
    const ForceRounding rounding(leaf.size(), per_slope, per_bend);
    std::vector<std::int64_t> sums(2 * leaves);
    {
        nb::gil_scoped_release release;
        Breath breath;
        for (std::size_t i = 0; i < leaf.size(); ++i) {
            if (which && !which[i]) continue;
            require_below("leaf", leaf.data()[i], leaves);
            rounding.add(slope.data()[i], bend.data()[i], sums[leaf.data()[i]], sums[leaves + leaf.data()[i]]);
            breath.after(2);
        }
    }
    return array(std::move(sums));
}

template <class Number>
void add_leaf_values(Numbers<double> scores, In<Number> leaf, In<double> values) {
    require_length("scores", scores.size(), leaf.size());
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < leaf.size(); ++i) {
        require_below("leaf", leaf.data()[i], values.size());
        scores.data()[i] += values.data()[leaf.data()[i]];
    }
}

Out<double> leaf_outputs(In<double> slope, In<double> curvature, In<std::int64_t> documents, InMatrix<double> within, double l1, double l2, double max_step,
                         double smoothing) {
    const std::size_t leaves = slope.size();
    require(curvature.size() == leaves && documents.size() == leaves && within.shape(0) == leaves && within.shape(1) == 3,
            "the leaves' arrays differ in length");
    SplitRules rules;
    rules.l1 = l1, rules.l2 = l2, rules.max_step = max_step, rules.smoothing = smoothing;
    auto outputs = empty<double>(leaves);
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
        const double* own = within.data() + 3 * leaf;
        outputs.data()[leaf] = output_of(slope(leaf), curvature(leaf), static_cast<double>(documents(leaf)), {own[0], own[1], own[2]}, rules).value;
    }
    return outputs;
}

Out<std::int64_t> sample_of(InMatrix<float> x, std::uint64_t limit, int threads) {
    std::vector<std::int64_t> rows;
    {
        nb::gil_scoped_release release;
        rows = sampled_rows(viewed(x), limit, threads);
    }
    return array(std::move(rows));
}

}  // namespace

void bind_forest(nb::module_& m) {
    m.def("sampled_rows", &sample_of, "x"_a, "limit"_a, "threads"_a);
    nb::class_<BinLayout>(m, "BinLayout")
        .def_static(
            "of_sample",
            [](InMatrix<float> sample, std::size_t bins, In<std::uint8_t> kinds, int threads) {
                return std::const_pointer_cast<BinLayout>(layout_of_sample(sample, bins, kinds, threads));
            },
            "sample"_a, "bins"_a, "kinds"_a, "threads"_a)
        .def_static(
            "of_cuts",
            [](In<std::int64_t> start, In<double> cuts, In<std::uint8_t> kinds) {
                return std::const_pointer_cast<BinLayout>(layout_of_cuts(start, cuts, kinds));
            },
            "start"_a, "cuts"_a, "kinds"_a)
        .def_prop_ro("start", &starts_of, nb::rv_policy::move)
        .def_prop_ro("cuts", &cuts_of, nb::rv_policy::move)
        .def_prop_ro("kinds", &kinds_of, nb::rv_policy::move)
        .def_prop_ro("places", &places_of, nb::rv_policy::move)
        .def_prop_ro("cells", [](const BinLayout& self) { return self.cells; });
    nb::class_<BinnedRows>(m, "BinnedRows")
        .def(
            "__init__",
            [](BinnedRows* self, std::shared_ptr<BinLayout> layout, InMatrix<float> x, int threads) { make_binned(self, std::move(layout), x, threads); },
            "layout"_a, "x"_a, "threads"_a)
        .def("__len__", &BinnedRows::rows)
        .def_prop_ro("tiles", &tiles_of, nb::rv_policy::move)
        .def_prop_ro("columns", &columns_of, nb::rv_policy::move)
        .def("walk", &walk_rows<std::uint8_t>, "tree"_a, "numbers"_a.noconvert(), "threads"_a)
        .def("walk", &walk_rows<std::uint16_t>, "tree"_a, "numbers"_a.noconvert(), "threads"_a)
        .def("walk", &walk_rows<std::uint32_t>, "tree"_a, "numbers"_a.noconvert(), "threads"_a);
    nb::class_<HistogramPool>(m, "HistogramPool")
        .def("__init__", [](HistogramPool* self, const BinLayout& layout) { new (self) HistogramPool(layout.cells); }, "layout"_a);
    nb::class_<NodeRows>(m, "NodeRows")
        .def(
            "__init__", [](NodeRows* self, std::shared_ptr<BinnedRows> binned) { make_node_rows(self, std::move(binned)); }, "binned"_a)
        .def("begin", &begin, "chosen"_a.none(), "slope"_a, "bend"_a, "per_slope"_a, "per_bend"_a, "threads"_a)
        .def("grow", &grow_here, "growth"_a, "threads"_a)
        .def("candidate_outputs", &candidate_outputs, "growth"_a)
        .def("answer", &answer, "asked"_a, "allowed"_a, "documents"_a, "threads"_a)
        .def("sums", &node_sums, "nodes"_a, "slope"_a, "bend"_a, "per_slope"_a, "per_bend"_a, "threads"_a)
        .def("number", &number_rows<std::uint8_t>, "tree"_a, "chosen"_a.none(), "numbers"_a.noconvert(), "threads"_a)
        .def("number", &number_rows<std::uint16_t>, "tree"_a, "chosen"_a.none(), "numbers"_a.noconvert(), "threads"_a)
        .def("number", &number_rows<std::uint32_t>, "tree"_a, "chosen"_a.none(), "numbers"_a.noconvert(), "threads"_a);
    nb::class_<GrownTree>(m, "GrownTree")
        .def("__getstate__", &parts_of)
        .def("__setstate__", &make_tree)
        .def_prop_ro(
            "feature", [](const GrownTree& self) { return copy_of(self.feature); }, nb::rv_policy::move)
        .def_prop_ro(
            "bin", [](const GrownTree& self) { return copy_of(self.bin); }, nb::rv_policy::move)
        .def_prop_ro(
            "missing_left", [](const GrownTree& self) { return copy_of(self.missing_left); }, nb::rv_policy::move)
        .def_prop_ro(
            "left", [](const GrownTree& self) { return copy_of(self.left); }, nb::rv_policy::move)
        .def_prop_ro(
            "right", [](const GrownTree& self) { return copy_of(self.right); }, nb::rv_policy::move)
        .def_prop_ro(
            "gain", [](const GrownTree& self) { return copy_of(self.gain); }, nb::rv_policy::move)
        .def_prop_ro(
            "documents", [](const GrownTree& self) { return copy_of(self.documents); }, nb::rv_policy::move)
        .def_prop_ro(
            "leaf_of_node", [](const GrownTree& self) { return copy_of(self.leaf_of_node); }, nb::rv_policy::move)
        .def_prop_ro(
            "node_of_leaf", [](const GrownTree& self) { return copy_of(self.node_of_leaf); }, nb::rv_policy::move)
        .def_prop_ro("category_start", &category_starts, nb::rv_policy::move)
        .def_prop_ro("categories", &category_words, nb::rv_policy::move)
        .def_prop_ro("restrictions", &restrictions, nb::rv_policy::move);
    nb::class_<Growth>(m, "Growth")
        .def(
            "__init__",
            [](Growth* self, std::shared_ptr<BinLayout> layout, std::shared_ptr<HistogramPool> pool, In<std::uint8_t> allowed, std::uint64_t documents,
               double unit_slope, double unit_bend, std::uint64_t key, std::int32_t leaves, std::int32_t depth, std::int64_t min_documents,
               double min_curvature, double l1, double l2, double min_gain, double max_step, double smoothing, double noise, bool extra,
               std::int32_t features_per_node, bool symmetric, std::int64_t min_group, In<std::int8_t> monotone,
               const std::vector<std::vector<std::int32_t>>& groups, std::size_t candidates) {
                make_growth(self, std::move(layout), std::move(pool), allowed, documents, unit_slope, unit_bend, key, leaves, depth, min_documents,
                            min_curvature, l1, l2, min_gain, max_step, smoothing, noise, extra, features_per_node, symmetric, min_group, monotone, groups,
                            candidates);
            },
            "layout"_a, "pool"_a, "allowed"_a, "documents"_a, "unit_slope"_a, "unit_bend"_a, "key"_a, "leaves"_a, "depth"_a, "min_documents"_a,
            "min_curvature"_a, "l1"_a, "l2"_a, "min_gain"_a, "max_step"_a, "smoothing"_a, "noise"_a, "extra"_a, "features_per_node"_a, "symmetric"_a,
            "min_group"_a, "monotone"_a, "groups"_a, "candidates"_a = 1)
        .def(
            "asks", [](Growth& self, bool ahead) { return as_values(self.ask(ahead)); }, "ahead"_a)
        .def("take", &take_words, "words"_a, "threads"_a)
        .def("choose", &choose_split, "number"_a)
        .def("tree", &Growth::tree);
    m.def("leaf_sums", &leaf_sums<std::uint8_t>, "leaf"_a.noconvert(), "chosen"_a.none(), "slope"_a, "bend"_a, "per_slope"_a, "per_bend"_a, "leaves"_a);
    m.def("leaf_sums", &leaf_sums<std::uint16_t>, "leaf"_a.noconvert(), "chosen"_a.none(), "slope"_a, "bend"_a, "per_slope"_a, "per_bend"_a, "leaves"_a);
    m.def("leaf_sums", &leaf_sums<std::uint32_t>, "leaf"_a.noconvert(), "chosen"_a.none(), "slope"_a, "bend"_a, "per_slope"_a, "per_bend"_a, "leaves"_a);
    m.def("add_leaf_values", &add_leaf_values<std::uint8_t>, "scores"_a.noconvert(), "leaf"_a.noconvert(), "values"_a);
    m.def("add_leaf_values", &add_leaf_values<std::uint16_t>, "scores"_a.noconvert(), "leaf"_a.noconvert(), "values"_a);
    m.def("add_leaf_values", &add_leaf_values<std::uint32_t>, "scores"_a.noconvert(), "leaf"_a.noconvert(), "values"_a);
    m.def("leaf_outputs", &leaf_outputs, "slope"_a, "curvature"_a, "documents"_a, "within"_a, "l1"_a, "l2"_a, "max_step"_a, "smoothing"_a);
}

}  // namespace exactrank
