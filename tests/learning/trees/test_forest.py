"""Trees that grow in whole numbers: the slow twin's tree to the bit, for every order, cut and number of threads."""

import math
import pickle
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from exactrank import _core
from exactrank.learning.trees.bins import CATEGORY, NUMBER, NUMBER_OR_MISSING, Layout
from exactrank.learning.trees.growth import Units, WeightedTree, tree_table
from exactrank.models.tree_ensemble import TreeEnsemble
from tests.reference.forest import Binned, ChosenTree, Rules, Tree, whole_forces

SEEDS = st.integers(0, 2**32 - 1)
BLOCK = 8191  #: documents whose forces add up within one word
GIANT = 1 << 30  #: so many leaves that histograms are not stored


@dataclass
class Case:
    """Documents with forces in whole numbers, and how a tree grows on them."""

    X: np.ndarray
    layout: Layout
    slope: np.ndarray
    bend: np.ndarray
    rules: Rules = field(default_factory=Rules)
    units: tuple[float, float] = (1.0, 1.0)
    key: int = 0
    allowed: np.ndarray | None = None
    chosen: np.ndarray | None = None

    @property
    def documents(self):
        return len(self.X)

    @property
    def may_use(self):
        return np.ones(self.X.shape[1], np.uint8) if self.allowed is None else self.allowed

    def some(self, rows):
        """The same with other documents."""
        chosen = None if self.chosen is None else self.chosen[rows]
        return replace(self, X=np.ascontiguousarray(self.X[rows]), slope=self.slope[rows], bend=self.bend[rows], chosen=chosen)

    def growth(self, documents=None, pool=None):
        rules = asdict(self.rules) | {"monotone": np.array(self.rules.monotone, np.int8), "groups": [list(g) for g in self.rules.groups]}
        pool = _core.HistogramPool(self.layout.native) if pool is None else pool
        return _core.Growth(self.layout.native, pool, self.may_use, documents or self.documents, *self.units, self.key, **rules)

    def begun(self, threads=1):
        rows = _core.NodeRows(_core.BinnedRows(self.layout.native, self.X, threads))
        rows.begin(self.chosen, self.slope, self.bend, 1 / self.units[0], 1 / self.units[1], threads)
        return rows

    def grown(self, threads=1):
        """The tree, and the leaf of each document."""
        rows, growth = self.begun(threads), self.growth()
        rows.grow(growth, threads)
        return growth.tree(), self.numbered(rows, growth.tree(), threads)

    def grown_by_choice(self, value):
        """The same, of splits among which the one after which the documents' outputs have the largest ``value`` is chosen."""
        rows, growth, outputs = self.begun(), self.growth(), {}
        while True:
            documents, candidates = rows.candidate_outputs(growth)
            if len(candidates):
                outcomes = [outputs | dict(zip(documents.tolist(), row, strict=True)) for row in candidates.tolist()]
                best = max(range(len(outcomes)), key=lambda number: value(outcomes[number]))
                growth.choose(best)
                outputs = outcomes[best]
            if not (asked := growth.asks(False)):
                return growth.tree(), self.numbered(rows, growth.tree())
            growth.take(rows.answer(asked, self.may_use, self.documents, 1), 1)

    def numbered(self, rows, tree, threads=1):
        numbers = np.full(self.documents, 77, np.uint32)
        rows.number(tree, self.chosen, numbers, threads)
        return numbers

    def grown_in_parts(self, parts, ahead):
        """The same by questions to documents that lie in several places."""
        cases = [self.some(rows) for rows in parts]
        places, growth, rounds = [case.begun() for case in cases], self.growth(), 0
        while asked := growth.asks(ahead):
            words = [rows.answer(asked, self.may_use, self.documents, 1) for rows in places]
            growth.take(np.sum(words, axis=0, dtype=np.uint64), 1)
            rounds += 1
        tree, numbers = growth.tree(), np.empty(self.documents, np.uint32)
        for case, rows, indices in zip(cases, places, parts, strict=True):
            numbers[indices] = case.numbered(rows, tree)
        return tree, numbers, rounds

    @property
    def binned(self):
        starts = self.layout.start.tolist()
        return Binned.of([self.layout.cuts[a:b].tolist() for a, b in pairwise(starts)], self.layout.kinds.tolist(), self.X)

    def twin(self):
        forces = whole_forces(self.slope, self.bend, *self.units)
        return Tree(self.binned, *forces, self.units, self.rules, self.key, self.allowed, self.chosen)


def structure(tree):
    """What the twin's `structure` says."""
    rows = []
    for split in range(len(tree.feature)):
        words = tree.categories[tree.category_start[split] : tree.category_start[split + 1]]
        bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
        row = tree.feature[split], tree.bin[split], tree.missing_left[split], tree.left[split], tree.right[split]
        feature, cut, missing_left, left, right = map(int, row)
        rows.append((feature, cut, bool(missing_left), bits, left, right))
    return rows


def same_tree(ours, theirs):
    """Are two trees the same to the bit?"""
    return structure(ours) == structure(theirs) and all(
        np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in ("gain", "documents", "restrictions")
    )


def layout_of(cuts, kinds):
    start = np.cumsum([0, *map(len, cuts)])
    return Layout(start, np.concatenate([np.asarray(levels, float) for levels in cuts] or [[]]), np.array(kinds, np.uint8))


KINDS = st.sampled_from([NUMBER, NUMBER_OR_MISSING, CATEGORY])
LEVELS = st.integers(1, 7)


@st.composite
def documents(draw, kinds=KINDS, most_rows=40, most_features=4, levels=LEVELS):
    """Documents in few bins, some of which hold none, with forces that often tie."""
    rng = np.random.default_rng(draw(SEEDS))
    rows, feature_kinds = draw(st.integers(1, most_rows)), draw(st.lists(kinds, min_size=1, max_size=most_features))
    X, cuts = np.empty((rows, len(feature_kinds)), np.float32), []
    for f, kind in enumerate(feature_kinds):
        count = draw(levels)
        X[:, f] = rng.integers(0, count, rows)
        if kind != NUMBER:
            X[rng.random(rows) < draw(st.sampled_from([0.0, 0.2, 1.0])), f] = np.nan
        cuts.append(np.arange(count) if kind == CATEGORY else np.arange(count - 1) + 0.5)
    slope = rng.integers(-(most := draw(st.sampled_from([1, 5, 8192]))), most + 1, rows).astype(float)
    bend = rng.integers(draw(st.integers(0, 1)), draw(st.sampled_from([1, 4, 2048])) + 1, rows).astype(float)
    units = draw(st.sampled_from([1.0, 0.25, 2.0**-20])), draw(st.sampled_from([1.0, 2.0**-7]))
    chosen = (rng.random(rows) < 0.7).astype(np.uint8) if draw(st.booleans()) else None
    allowed = (rng.random(len(feature_kinds)) < 0.8).astype(np.uint8) if draw(st.booleans()) else None
    layout = layout_of(cuts, feature_kinds)
    return Case(X, layout, slope * units[0], bend * units[1], Rules(), units, draw(SEEDS), allowed, chosen)


def sometimes(usual, *others):
    """``usual`` in most cases, so that rules meet in twos and threes and trees do grow."""
    return st.sampled_from([usual] * 4 + list(others))


@st.composite
def rules(draw, features, unit=1.0, kinds=(), symmetric=None):
    monotone = ()
    if draw(sometimes(False, True)):
        monotone = tuple(0 if kind == CATEGORY else draw(st.integers(-1, 1)) for kind in kinds)
    groups = draw(sometimes((), tuple(tuple(draw(st.sets(st.integers(0, features - 1), min_size=1))) for _ in range(2))))
    return Rules(
        leaves=draw(st.sampled_from([2, 3, 5, 8, 31, GIANT])),
        depth=draw(sometimes(0, 1, 2, 3)),
        min_documents=draw(sometimes(1, 2, 5)),
        min_curvature=unit * draw(sometimes(0.0, 2.5, 20.0)),
        l1=draw(sometimes(0.0, 0.7, 3.0)),
        l2=unit * draw(sometimes(0.0, 1.0, 3.3)),
        min_gain=draw(sometimes(0.0, 1.3, 20.0)),
        max_step=draw(sometimes(0.0, 0.3, 1.7)),
        smoothing=draw(sometimes(0.0, 1.0, 12.5)),
        noise=draw(sometimes(0.0, 0.5, 3.0)),
        extra=draw(sometimes(False, True)),
        features_per_node=draw(sometimes(0, 1, 2)),
        symmetric=draw(sometimes(False, True)) if symmetric is None else symmetric,
        min_group=draw(sometimes(1, 3)),
        monotone=monotone,
        groups=groups,
    )


@st.composite
def cases(draw, symmetric=None, **more):
    case = draw(documents(**more))
    return replace(case, rules=draw(rules(case.X.shape[1], case.units[1], case.layout.kinds.tolist(), symmetric)))


# ---- the twin


@given(cases())
@settings(max_examples=250)
def test_a_tree_is_the_twins(case):
    (ours, leaf), theirs = case.grown(), case.twin()
    assert structure(ours) == theirs.structure()
    np.testing.assert_allclose(ours.gain, theirs.gains(), rtol=1e-9, atol=1e-300)
    if theirs.features:  # otherwise it has asked nothing
        assert ours.documents.tolist() == [len(node.documents) for node in theirs.leaves()]
    assert ours.restrictions.tolist() == [[node.toward, node.low, node.high] for node in theirs.leaves()]
    assert leaf.tolist() == [theirs.leaf_of(row) for row in theirs.binned.rows]


@given(cases(symmetric=False), st.integers(2, 5), SEEDS)
@settings(max_examples=150)
def test_a_tree_whose_splits_are_chosen_is_the_twins(case, candidates, seed):
    case = replace(case, rules=replace(case.rules, candidates=candidates))
    weights = np.random.default_rng(seed).integers(-3, 4, case.documents).tolist()

    def value(outputs):
        return sum(weights[i] * math.copysign(1, outputs[i]) for i in sorted(outputs))

    (ours, leaf), twin = case.grown_by_choice(value), case.twin()
    theirs = ChosenTree(value, case.binned, twin.slopes, twin.bends, case.units, case.rules, case.key, case.allowed, case.chosen)
    assert structure(ours) == theirs.structure()
    np.testing.assert_allclose(ours.gain, theirs.gains(), rtol=1e-9, atol=1e-300)
    assert leaf.tolist() == [theirs.leaf_of(row) for row in theirs.binned.rows]


@given(cases())
@settings(max_examples=50)
def test_the_first_candidate_is_the_split_without_a_choice(case):
    chosen = replace(case, rules=replace(case.rules, candidates=3))
    assert same_tree(chosen.grown_by_choice(lambda outputs: 0)[0], case.grown()[0])


def test_a_choice_is_checked_at_the_border():
    case = Case(np.arange(4.0, dtype=np.float32)[:, None], layout_of([[1.5]], [NUMBER]), np.arange(4.0), np.ones(4), Rules(candidates=2))
    rows, growth = case.begun(), case.growth()
    with pytest.raises(ValueError, match="there is nothing to choose"):
        growth.choose(0)
    growth.take(rows.answer(growth.asks(False), case.may_use, 4, 1), 1)
    with pytest.raises(ValueError, match="number"):
        growth.choose(1)
    growth.choose(0)
    rows.answer(growth.asks(False), case.may_use, 4, 1)
    assert len(rows.candidate_outputs(growth)[1]) == 0  # the split is being made
    with pytest.raises(ValueError, match="differ in their bins"):
        Case(case.X, layout_of([[0.5]], [NUMBER]), case.slope, case.bend).begun().candidate_outputs(growth)


@given(cases(symmetric=True, kinds=st.sampled_from([NUMBER_OR_MISSING, CATEGORY, CATEGORY])))
@settings(max_examples=150)
def test_a_symmetric_tree_is_the_twins(case):
    case = replace(case, rules=replace(case.rules, min_gain=min(case.rules.min_gain, 1.3), leaves=max(case.rules.leaves, 5)))
    ours, theirs = case.grown()[0], case.twin()
    assert structure(ours) == theirs.structure()
    np.testing.assert_allclose(ours.gain, theirs.gains(), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("symmetric", [False, True])
def test_no_leaf_is_without_curvature_whatever_is_added_for_categories(symmetric):
    """The last category pulls most, but has no curvature, without which a leaf has no output."""
    X = np.arange(24, dtype=np.float32)[:, None] % 6
    category = X[:, 0].astype(float)
    slope, bend = np.where(category == 5, 90.0, category - 2), np.where(category == 5, 0.0, 1.0)
    case = Case(X, layout_of([np.arange(6)], [CATEGORY]), slope, bend, Rules(leaves=2, symmetric=symmetric))
    tree, _ = case.grown()
    assert structure(tree) == case.twin().structure()
    assert structure(tree)[0][3] not in ([5], [0, 1, 2, 3, 4])


@given(documents(), st.sampled_from([0, 1, 7]))
@settings(max_examples=60)
def test_the_first_split_is_the_best_of_all(case, l2):
    """By brute force over all sets of bins that a split may send left, in exact fractions."""
    case = replace(case, rules=Rules(leaves=2, l2=l2 * case.units[1]))
    tree, twin = case.grown()[0], case.twin()
    unit = Fraction(case.units[0]) ** 2 / Fraction(case.units[1])

    def contribution(rows, added=0):
        slope, bend, _ = twin.sums(rows)
        return Fraction(slope**2) / (bend + l2 + added) * unit if bend + l2 else None

    gains = []
    for f in twin.features:
        for _, left_bins, categories, all_l2 in twin.candidates(twin.root, f):
            sides = [[i for i in twin.root.documents if (twin.binned.rows[i][f] in left_bins) == side] for side in (True, False)]
            added = Fraction(all_l2) / Fraction(case.units[1]) - l2 if categories else 0
            if all(sides) and all(contribution(side) is not None for side in sides):
                gains.append(contribution(sides[0], added) + contribution(sides[1], added) - contribution(twin.root.documents))
    best = max(gains, default=0)
    ours = tree.gain[0] if len(tree.gain) else 0.0
    scale = float(unit) * sum(abs(s) for s in twin.slopes) ** 2 or 1.0
    assert ours == pytest.approx(float(max(best, 0)), rel=1e-9, abs=1e-12 * scale)


@given(cases(), SEEDS)
@settings(max_examples=80)
def test_other_documents_are_sent_where_the_twin_sends_them(case, seed):
    """Also with bins that no training document had."""
    tree, twin = case.grown()[0], case.twin()
    others = replace(case, X=case.X[np.random.default_rng(seed).integers(0, case.documents, 30)] + np.float32(0.25), chosen=None)
    others.X[::7] = np.nan
    if (case.layout.kinds == NUMBER).any():
        others.X[:, case.layout.kinds == NUMBER] = np.nan_to_num(others.X[:, case.layout.kinds == NUMBER])
    numbers = np.empty(30, np.uint8)
    _core.BinnedRows(case.layout.native, others.X, 2).walk(tree, numbers, 2)
    assert numbers.tolist() == [twin.leaf_of(row) for row in others.binned.rows]


# ---- the same tree, however it grows


@given(cases(most_rows=200), st.integers(2, 3))
@settings(max_examples=60)
def test_threads_change_nothing(case, threads):
    (ours, our_leaf), (theirs, their_leaf) = case.grown(threads), case.grown(1)
    assert same_tree(ours, theirs)
    assert our_leaf.tolist() == their_leaf.tolist()


@pytest.mark.parametrize("symmetric", [False, True])
def test_threads_change_nothing_where_a_node_is_cut_into_pieces(symmetric):
    """With enough documents that several threads share a node, and enough features that they share its search."""
    case = large(60_000, 20)
    case = replace(case, rules=Rules(leaves=12, symmetric=symmetric))
    theirs, their_leaf = case.grown(1)
    for threads in (2, 3):
        ours, our_leaf = case.grown(threads)
        assert same_tree(ours, theirs)
        assert np.array_equal(our_leaf, their_leaf)
    ours, our_leaf, _ = case.grown_in_parts(np.array_split(np.random.default_rng(0).permutation(60_000), 3), ahead=True)
    assert same_tree(ours, theirs)
    assert np.array_equal(our_leaf, their_leaf)


def large(rows, features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 50, (rows, features)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    layout = layout_of([np.arange(49) + 0.5] * features, [NUMBER_OR_MISSING] * features)
    return Case(X, layout, rng.integers(-8192, 8193, rows).astype(float), rng.integers(0, 2049, rows).astype(float))


@given(cases(), SEEDS, st.integers(1, 4), st.booleans())
@settings(max_examples=150)
def test_a_cut_of_the_documents_into_parts_changes_nothing(case, seed, count, ahead):
    theirs, their_leaf = case.grown()
    parts = np.array_split(np.random.default_rng(seed).permutation(case.documents), count)
    ours, our_leaf, _ = case.grown_in_parts(parts, ahead)
    assert same_tree(ours, theirs)
    assert our_leaf.tolist() == their_leaf.tolist()


@given(cases(), SEEDS)
@settings(max_examples=60)
def test_the_order_of_documents_changes_nothing(case, seed):
    order = np.random.default_rng(seed).permutation(case.documents)
    (ours, our_leaf), (theirs, their_leaf) = case.some(order).grown(), case.grown()
    assert same_tree(ours, theirs)
    assert our_leaf.tolist() == their_leaf[order].tolist()


@given(st.integers(1, 5), st.integers(2, 17), st.booleans())
@settings(max_examples=60)
def test_equal_leaves_are_split_in_the_order_of_their_numbers(levels, leaves, ahead):
    """All leaves of a level have the same gain to the bit, so that nothing but their numbers says which is next."""
    corners = np.array(np.meshgrid(*[[0, 1]] * levels)).reshape(levels, -1).T.astype(np.float32)
    slope = 2 * corners @ 4.0 ** np.arange(levels)[::-1]
    case = Case(corners, layout_of([[0.5]] * levels, [NUMBER] * levels), slope - slope.mean(), np.ones(2**levels), Rules(leaves=leaves))
    ours, _, rounds = case.grown_in_parts([np.arange(case.documents)], ahead)
    assert structure(ours) == case.twin().structure()
    assert len(ours.documents) == min(leaves, 2**levels)
    assert same_tree(ours, case.grown()[0])
    assert not ahead or rounds <= 2 * levels + 1


@given(cases(), st.sampled_from([1, 2]))
@settings(max_examples=40)
def test_sums_of_nodes_are_those_of_their_leaves(case, threads):
    """Also those of a node that was split in vain, before it was split; and those of both children are their parent's."""
    rows, growth, sums = case.begun(threads), case.growth(), {}
    forces = case.slope, case.bend, 1 / case.units[0], 1 / case.units[1]
    while asked := growth.asks(True):
        growth.take(rows.answer(asked, case.may_use, case.documents, threads), threads)
        for parent, left, right, *_ in asked:
            new = [0] if parent < 0 else [left, right]
            sums |= dict(zip(new, rows.sums(new, *forces, threads).tolist(), strict=True))
            assert parent < 0 or np.array_equal(np.add(sums[left], sums[right]), sums[parent])
    tree = growth.tree()
    leaves = np.array([sums[node] for node in tree.node_of_leaf.tolist()]) if sums else np.zeros((1, 2))
    numbers = case.numbered(rows, tree)
    expected = _core.leaf_sums(numbers, case.chosen, *forces, len(tree.documents))
    assert not sums or np.array_equal(leaves.T.ravel(), expected)


def test_sums_of_a_node_that_was_split_are_refused():
    rows = SMALL.begun()
    rows.answer([(0, 1, 2, 0, 0, False, [], [])], SMALL.may_use, 4, 1)
    with pytest.raises(ValueError, match="the sums of a node that is split are wanted"):
        rows.sums([0], SMALL.slope, SMALL.bend, 1.0, 1.0, 1)


def test_few_rounds_grow_a_large_tree():
    case = large(3000, 5)
    case = replace(case, rules=Rules(leaves=31, min_documents=5))
    ours, _, rounds = case.grown_in_parts([np.arange(case.documents)], ahead=True)
    theirs, _, their_rounds = case.grown_in_parts([np.arange(case.documents)], ahead=False)
    assert same_tree(ours, theirs)
    assert len(ours.documents) == their_rounds == 31
    assert rounds < 20


@given(cases(), st.integers(2, 8))
@settings(max_examples=80)
def test_a_tree_of_more_leaves_extends_a_smaller_one(case, leaves):
    small, large = (replace(case, rules=replace(case.rules, leaves=count)).grown()[0] for count in (leaves, leaves + 5))
    splits = len(small.feature)
    assert splits == min(leaves - 1, len(large.feature))
    assert [row[:4] for row in structure(small)] == [row[:4] for row in structure(large)[:splits]]
    assert np.array_equal(small.gain, large.gain[:splits])


@given(cases())
@settings(max_examples=40)
def test_a_pool_of_used_histograms_changes_nothing(case):
    pool, trees = _core.HistogramPool(case.layout.native), []
    for _ in range(2):
        rows, growth = case.begun(), case.growth(pool=pool)
        rows.grow(growth, 1)
        trees.append(growth.tree())
        del growth
    assert same_tree(*trees)


@given(cases(kinds=st.sampled_from([NUMBER, NUMBER_OR_MISSING])))
@settings(max_examples=60)
def test_a_document_with_twice_the_force_is_two_documents(case):
    """Where the rules do not count documents: a tree knows sums alone."""
    copies = np.random.default_rng(case.key).integers(1, 3, case.documents)
    rules = replace(case.rules, min_documents=1, smoothing=0.0, noise=0.0, extra=False)
    slope, bend = (np.trunc(force / unit / 2) * unit for force, unit in zip((case.slope, case.bend), case.units, strict=True))
    case = replace(case, rules=rules, slope=slope, bend=bend)
    theirs, their_leaf = replace(case, slope=slope * copies, bend=bend * copies).grown()
    ours, our_leaf = case.some(np.repeat(np.arange(case.documents), copies)).grown()
    assert [row[:2] + row[4:] for row in structure(ours)] == [row[:2] + row[4:] for row in structure(theirs)]
    assert np.array_equal(ours.gain, theirs.gain)
    chosen = np.ones(case.documents, bool) if case.chosen is None else case.chosen > 0
    assert our_leaf[np.repeat(chosen, copies)].tolist() == np.repeat(their_leaf[chosen], copies[chosen]).tolist()


@given(cases(kinds=st.just(CATEGORY)), SEEDS)
@settings(max_examples=80)
def test_the_numbers_of_categories_do_not_matter(case, seed):
    """Other names, the same leaves."""
    case = replace(case, rules=replace(case.rules, extra=False))
    rng, renamed = np.random.default_rng(seed), case.X.copy()
    for f, (a, b) in enumerate(pairwise(case.layout.start)):
        known = ~np.isnan(case.X[:, f])
        renamed[known, f] = rng.permutation(b - a)[case.X[known, f].astype(int)]
    (ours, our_leaf), (theirs, their_leaf) = replace(case, X=renamed).grown(), case.grown()
    assert np.array_equal(ours.gain, theirs.gain)
    assert our_leaf.tolist() == their_leaf.tolist()


# ---- constraints


@given(cases(), SEEDS)
@settings(max_examples=120)
def test_outputs_only_rise_or_fall_with_a_monotone_feature(case, seed):
    """Also beside categories, which have no direction."""
    directions = np.where(case.layout.kinds == CATEGORY, 0, np.random.default_rng(seed).integers(-1, 2, case.X.shape[1]))
    case = replace(case, rules=replace(case.rules, monotone=tuple(directions.tolist())))
    tree, _ = case.grown()
    outputs = outputs_of(case, tree)
    probes = np.repeat(case.X[:8], 8, axis=0)
    for f, direction in enumerate(case.rules.monotone):
        rising = probes.copy()
        rising[:, f] = np.tile(np.arange(8), len(case.X[:8]))
        numbers = np.empty(len(rising), np.uint32)
        _core.BinnedRows(case.layout.native, rising, 1).walk(tree, numbers, 1)
        changes = np.diff(outputs[numbers].reshape(-1, 8), axis=1)
        assert (direction * changes >= 0).all()


def outputs_of(case, tree):
    numbers = np.empty(case.documents, np.uint32)
    _core.BinnedRows(case.layout.native, case.X, 1).walk(tree, numbers, 1)
    sums = _core.leaf_sums(numbers, case.chosen, case.slope, case.bend, 1 / case.units[0], 1 / case.units[1], len(tree.documents))
    slope, bend = sums.reshape(2, -1) * np.array(case.units)[:, None]
    rules = case.rules
    return _core.leaf_outputs(slope, bend, tree.documents, tree.restrictions, rules.l1, rules.l2, rules.max_step, rules.smoothing)


@given(cases())
@settings(max_examples=60)
def test_outputs_of_leaves_are_the_twins(case):
    tree, twin = case.grown()[0], case.twin()
    assume(twin.features)  # otherwise it has asked nothing, and does not know its documents
    ours, theirs = outputs_of(case, tree), [node.output for node in twin.leaves()]
    assert ours.tolist() == theirs


# ---- predictions


@given(cases(), SEEDS)
@settings(max_examples=100)
def test_a_model_scores_floats_as_training_did(case, seed):
    """To the bit: the table of the tree, on features as numbers, finds the leaf that bins found."""
    tree, leaf = case.grown()
    values = np.random.default_rng(seed).standard_normal(len(tree.documents))
    table = tree_table([WeightedTree(tree, values, 1.0)], case.layout)
    scores = TreeEnsemble(table, tuple(f"f{f}" for f in range(case.X.shape[1]))).score(case.X)
    assert scores.tolist() == values[leaf].tolist()
    assert table.native.scores(case.X, 2).tolist() == values[leaf].tolist()


HARD = [0.0, -0.0, 1e-36, -1e-36, 1e-35, 2e-35, -2e-35, 1e-45, 1.0, np.nextafter(np.float32(1), np.float32(2)), 3e38, -3e38, np.nan]


@given(st.lists(st.sampled_from(HARD) | st.floats(width=32, allow_infinity=False), min_size=2, max_size=40), st.integers(2, 12), SEEDS)
@settings(max_examples=150)
def test_numbers_that_are_close_or_tiny_score_as_in_training(values, bins, seed):
    rng = np.random.default_rng(seed)
    X = np.array(values, np.float32)[:, None]
    kinds = np.array([NUMBER_OR_MISSING if np.isnan(X).any() else NUMBER], np.uint8)
    native = _core.BinLayout.of_sample(X, bins, kinds, 1)
    case = Case(X, Layout(native.start, native.cuts, kinds), rng.integers(-99, 99, len(X)).astype(float), np.ones(len(X)))
    tree, leaf = case.grown()
    outputs = rng.standard_normal(len(tree.documents))
    assert tree_table([WeightedTree(tree, outputs, 1.0)], case.layout).native.scores(X, 1).tolist() == outputs[leaf].tolist()
    assert leaf.tolist() == [case.twin().leaf_of(row) for row in case.binned.rows]


@given(cases(most_rows=60), st.integers(1, 3))
@settings(max_examples=60)
def test_walking_finds_the_leaves_of_training(case, threads):
    tree, leaf = case.grown()
    binned = _core.BinnedRows(case.layout.native, case.X, threads)
    for kind in (np.uint8, np.uint16, np.uint32):
        numbers = np.empty(case.documents, kind)
        for same in (tree, pickle.loads(pickle.dumps(tree))):
            binned.walk(same, numbers, threads)
            assert numbers.tolist() == leaf.tolist()


# ---- bins


@given(SEEDS, st.integers(1, 300), st.integers(2, 40), st.integers(2, 3))
@settings(max_examples=60)
def test_bins_of_a_sample_do_not_depend_on_order_or_threads(seed, rows, bins, threads):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((rows, 20)) * 10 ** rng.integers(0, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    kinds = rng.integers(1, 3, 20).astype(np.uint8)
    theirs = _core.BinLayout.of_sample(X, bins, kinds, 1)
    ours = _core.BinLayout.of_sample(np.ascontiguousarray(X[rng.permutation(rows)]), bins, kinds, threads)
    assert np.array_equal(ours.start, theirs.start)
    assert np.array_equal(ours.cuts, theirs.cuts)
    assert (np.diff(ours.start) <= bins - (kinds != CATEGORY)).all()


@given(SEEDS, st.integers(1, 300), st.integers(2, 30), st.integers(1, 60))
@settings(max_examples=80)
def test_bins_hold_about_as_many_documents_each(seed, rows, bins, distinct):
    """With few distinct values each has its bin; otherwise a value of more than two shares of the documents is by itself."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.zipf(1.5, rows).clip(0, distinct)).astype(np.float32)
    layout = _core.BinLayout.of_sample(values[:, None], bins, np.zeros(1, np.uint8), 1)
    levels, counts = np.unique(values, return_counts=True)
    numbers = np.searchsorted(layout.cuts, levels)
    if len(levels) <= bins:
        assert numbers.tolist() == list(range(len(levels)))
        return
    assert len(layout.cuts) < bins
    for number in np.unique(numbers):
        together = counts[numbers == number]
        assert len(together) == 1 or together.sum() - together[-1] <= -(-rows // bins)  # the last value fills it


@pytest.mark.parametrize("width", [1, 2, 3, 5, 70])
@given(SEEDS, st.sampled_from([1 << 61, 1 << 63, 3 << 62]), st.integers(1, 3))
@settings(max_examples=8)
def test_a_document_is_in_a_sample_by_its_features(width, seed, limit, threads):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (rng.integers(1, 9000), width)).astype(np.float32)
    order = rng.permutation(len(X))
    theirs, ours = _core.sampled_rows(X, limit, 1), _core.sampled_rows(np.ascontiguousarray(X[order]), limit, threads)
    assert sorted(order[ours].tolist()) == theirs.tolist()
    assert _core.sampled_rows(X, 2**64 - 1, threads).tolist() == list(range(len(X)))


@given(SEEDS, st.integers(1, 100), st.integers(2, 300))
@settings(max_examples=60)
def test_values_that_the_sample_lacks_have_a_bin_too(seed, rows, bins):
    """The bins of any floats are the twin's, whatever the cuts were made of."""
    rng = np.random.default_rng(seed)
    sample = (rng.standard_normal((rows, 2)) * 10.0 ** rng.integers(-38, 38, (rows, 2))).astype(np.float32)
    sample[:, 1] = np.abs(sample[:, 1]) % 50 // 1
    kinds = np.array([NUMBER_OR_MISSING, CATEGORY], np.uint8)
    native = _core.BinLayout.of_sample(sample, bins, kinds, 1)
    X = np.frombuffer(rng.bytes(8 * 200), np.float32).reshape(-1, 2).copy()
    X[np.isinf(X)] = 0
    X[100:, 1] = rng.uniform(-3, 60, 100)
    X[:rows, 0] = sample[:100, 0]
    case = Case(X, Layout(native.start, native.cuts, kinds), np.zeros(len(X)), np.ones(len(X)))
    assert bins_of(case) == case.binned.rows


def bins_of(case):
    """The bin of each value, told apart by a histogram in which each document alone has a force."""
    sizes = case.binned.sizes
    rows, table = case.begun(), []
    for i in range(case.documents):
        alone = np.zeros(case.documents, np.uint8)
        alone[i] = 1
        rows.begin(alone, case.slope, case.bend, 1.0, 1.0, 1)
        words = rows.answer(ROOT, case.may_use, case.documents, 1)
        counts, at = words[len(words) // 2 :], 0
        bins = []
        for size in sizes:
            bins.append(int(np.flatnonzero(counts[at : at + size])[0]) if size > 1 else 0)
            at += size if size > 1 else 0
        table.append(bins)
    return table


ROOT = [(-1, -1, -1, -1, 0, False, [], [0])]  #: the question for the histogram of the root


@pytest.mark.parametrize("bins", [255, 256, 257, 4000, 65_534])
def test_a_feature_may_have_any_number_of_bins(bins):
    """Up to 256 in bytes, beyond that in words of two."""
    rng = np.random.default_rng(bins)
    X = rng.permutation(bins).astype(np.float32)[:, None]
    kinds = np.zeros(1, np.uint8)
    native = _core.BinLayout.of_sample(X, bins, kinds, 2)
    assert len(native.cuts) == bins - 1
    X = np.concatenate([X, X[:50]])
    slope, bend = rng.integers(-8192, 8193, len(X)).astype(float), rng.integers(1, 2049, len(X)).astype(float)
    case = Case(X, Layout(native.start, native.cuts, kinds), slope, bend, Rules(leaves=4))
    assert sums_of(case) == exact_sums(case, X[:, 0].astype(int), bins)
    tree, leaf = case.grown(2)
    values = np.arange(4.0)
    assert np.array_equal(tree_table([WeightedTree(tree, values, 1.0)], case.layout).native.scores(X, 1), values[leaf])


def test_missing_values_have_the_bin_after_the_last_of_many():
    X = np.append(np.arange(65_534, dtype=np.float32), np.nan)[:, None]
    kinds = np.ones(1, np.uint8)
    native = _core.BinLayout.of_sample(X, 65_534, kinds, 1)
    slope = np.append(np.zeros(65_534), 9.0)
    tree, leaf = Case(X, Layout(native.start, native.cuts, kinds), slope, np.ones(65_535), Rules(leaves=2)).grown()
    assert (tree.bin.tolist(), tree.missing_left.tolist()) == ([65_533], [0])
    assert np.flatnonzero(leaf).tolist() == [65_534]


# ---- sums in words


def sums_of(case, threads=1):
    """Sums of slopes, curvatures and counts in each bin of the root."""
    words = case.begun(threads).answer(ROOT, case.may_use, case.documents, threads)
    slope, rest = words.reshape(2, -1)
    width = case.documents.bit_length()
    return slope.view(np.int64).tolist(), (rest >> np.uint64(width)).tolist(), (rest & np.uint64((1 << width) - 1)).tolist()


def exact_sums(case, bins, size):
    """The same by adding Python's whole numbers."""
    sums = [[0] * size for _ in range(3)]
    for b, slope, bend in zip(bins.tolist(), *whole_forces(case.slope, case.bend, *case.units), strict=True):
        for place, number in enumerate((slope, bend, 1)):
            sums[place][b] += number
    return tuple(sums)


@pytest.mark.parametrize("slope", [-8192, 8191.5, 8192])
@pytest.mark.parametrize("documents", [BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize("bins", [4, 300])
def test_sums_of_the_largest_forces_do_not_overflow(slope, documents, bins):
    """Blocks whose words are as full as they can be, all documents in one bin, and then one of the other sign."""
    X = np.full((documents, 1), 2, np.float32)
    X[-2:] = 1
    layout = layout_of([np.arange(bins - 1) + 0.5], [NUMBER])
    case = Case(X, layout, np.full(documents, float(slope)), np.full(documents, 2048.0))
    case.slope[-1] *= -1
    for threads in (1, 2):
        assert sums_of(case, threads) == exact_sums(case, X[:, 0].astype(int), bins)


@given(SEEDS, st.integers(1, 40))
@settings(max_examples=30)
def test_forces_are_rounded_to_even_and_no_curvature_is_lost(seed, rows):
    rng = np.random.default_rng(seed)
    slope, bend = rng.integers(-20, 21, rows) / 4, rng.integers(0, 21, rows) / 8
    case = Case(rng.integers(0, 2, (rows, 1)).astype(np.float32), layout_of([[0.5]], [NUMBER]), slope, bend, units=(0.5, 1.0))
    assert sums_of(case) == exact_sums(case, case.X[:, 0].astype(int), 2)


@given(SEEDS, st.sampled_from([(1e-300, 1e-300), (1.0, 2.0), (3e200, 1e-9)]), st.sampled_from([1, 1000, 1 << 26, (1 << 31) - 1]))
@settings(max_examples=40)
def test_units_hold_the_largest_force(seed, largest, documents):
    """In the bits that a word has for it, whatever the number of documents; and sums over leaves stay below 2^62."""
    units = Units.of(*largest, documents)
    width = documents.bit_length()
    bits = 13, min(11, 64 - 2 * width)
    for force, unit, bit in zip(largest, (units.slope, units.curvature), bits, strict=True):
        assert round(force / unit) <= 2**bit
        assert force / unit >= 2 ** (bit - 1) or unit <= 2.0**-900
    for force, unit in zip(largest, (units.fine_slope, units.fine_curvature), strict=True):
        assert round(force / unit) * documents <= 2**62


# ---- LightGBM


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("more", [{}, {"lambda_l2": 3.0}, {"lambda_l1": 40.0}, {"max_depth": 3}, {"missing": True}])
def test_lightgbm_grows_the_same_tree_on_the_same_bins(seed, more):
    """Whole numbers as features have the same bins there, and whole numbers as forces are exact in its floats.

    Only the first splits are compared: it estimates how many documents a small node has from their curvatures.
    """
    rng, more = np.random.default_rng(seed), dict(more)
    missing = more.pop("missing", False)
    X = rng.integers(0, 40, (2000, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.1 * missing] = np.nan
    slope, bend = (
        rng.integers(-99, 100, 2000).astype(float) + 40 * (X[:, 1] > 11) - 30 * (X[:, 2] < 30),
        rng.integers(1, 9, 2000).astype(float),
    )
    parameters = {"num_leaves": 12, "min_data_in_leaf": 20, "min_sum_hessian_in_leaf": 0.0, "min_data_in_bin": 1, "max_bin": 255}
    parameters |= {"objective": lambda scores, data: (-slope, bend), "feature_pre_filter": False, "verbose": -1, "num_threads": 1}
    train = lgb.Dataset(X, np.zeros(2000), params=parameters, free_raw_data=False)
    booster = lgb.train(
        parameters | more | {"boost_from_average": False}, train, 1, keep_training_booster=True
    )  # which has gains as floats
    theirs = booster.dump_model()["tree_info"][0]["tree_structure"]
    rules = Rules(leaves=12, min_documents=20, depth=more.get("max_depth", 0), l1=more.get("lambda_l1", 0.0), l2=more.get("lambda_l2", 0.0))
    kind = NUMBER_OR_MISSING if missing else NUMBER
    case = Case(X, layout_of([np.arange(39) + 0.5] * 5, [kind] * 5), slope, bend, rules)
    tree, _ = case.grown()

    def splits(node):
        if "split_feature" not in node:
            return {}
        entry = node["split_feature"], node["threshold"], node["split_gain"]
        return {node["split_index"]: entry} | splits(node["left_child"]) | splits(node["right_child"])

    by_place = splits(theirs)
    for place in range(4):
        feature, threshold, gain = by_place[place]
        assert (tree.feature[place], tree.bin[place]) == (feature, int(np.floor(threshold)))
        assert tree.gain[place] == pytest.approx(gain, rel=1e-6)


# ---- wrong calls, of which tests/native/native_borders.py has more

SMALL = Case(
    np.array([[0, 0], [1, 2], [2, 1], [0, 1]], np.float32),
    layout_of([[0.5, 1.5], [0.5, 1.5]], [NUMBER, NUMBER]),
    np.array([1.0, -2.0, 3.0, 5.0]),
    np.ones(4),
    Rules(leaves=4),
)


@pytest.mark.parametrize(
    "question",
    [
        (-1, -1, -1, -1, 0, False, [], [1]),
        (-1, -1, -1, -1, 0, False, [], [-1]),
        (1, 1, 2, 0, 0, False, [], [1]),
        (0, 1, 2, 2, 0, False, [], [1]),
        (0, 1, 2, -1, 0, False, [], [1]),
        (0, 2, 3, 0, 0, False, [], [2]),
        (0, 1, 1, 0, 0, False, [], [1]),
        (0, 1, 2, 0, 0, False, [], [3]),
        (0, 1, 2, 0, 0, False, [], [0]),
    ],
)
def test_rows_refuse_a_question_that_they_cannot_answer(question):
    with pytest.raises(ValueError, match=r"holds|numbered on|is split"):
        SMALL.begun().answer([question], SMALL.may_use, 4, 1)


def test_rows_refuse_to_split_a_node_twice():
    split = 0, 1, 2, 0, 0, False, [], [1]
    rows = SMALL.begun()
    with pytest.raises(ValueError, match="a node is split twice"):
        rows.answer([split, (0, 3, 4, 0, 0, False, [], [])], SMALL.may_use, 4, 1)
    rows.answer([split], SMALL.may_use, 4, 1)
    with pytest.raises(ValueError, match="a node is split twice"):
        rows.answer([(0, 3, 4, 0, 0, False, [], [])], SMALL.may_use, 4, 1)


def test_a_tree_begins_before_it_grows():
    fresh = _core.NodeRows(_core.BinnedRows(SMALL.layout.native, SMALL.X, 1))
    begun, growth = SMALL.begun(), SMALL.growth()
    for rows in (fresh, begun):
        if rows is begun:
            begun.grow(SMALL.growth(), 1)
        with pytest.raises(ValueError, match="must begin anew"):
            rows.grow(growth, 1)
    growth.take(SMALL.begun().answer(growth.asks(False), SMALL.may_use, 4, 1), 1)
    with pytest.raises(ValueError, match="must begin anew"):
        SMALL.begun().grow(growth, 1)
    with pytest.raises(ValueError, match="differ in their bins"):
        SMALL.begun().grow(replace(SMALL, layout=layout_of([[0.5], [0.5]], [NUMBER, NUMBER])).growth(), 1)
    with pytest.raises(ValueError, match="more documents than expected"):
        SMALL.begun().grow(SMALL.growth(documents=3), 1)


def test_questions_stay_the_same_until_they_are_answered_once():
    growth = SMALL.growth()
    assert growth.asks(True) == growth.asks(False) == ROOT
    words = SMALL.begun().answer(ROOT, SMALL.may_use, 4, 1)
    growth.take(words, 1)
    with pytest.raises(ValueError, match="words has a length"):
        growth.take(words, 1)
    assert growth.asks(True) == growth.asks(True) != ROOT


@pytest.mark.parametrize("word", [1 << 63, 1 << 40, (1 << 64) - (1 << 40)])
@pytest.mark.parametrize("place", [0, -1])
def test_sums_that_no_documents_have_are_refused(word, place):
    growth = SMALL.growth()
    words = SMALL.begun().answer(growth.asks(True), SMALL.may_use, 4, 1)
    words[place] = word
    with pytest.raises(ValueError, match="larger than that of all documents"):
        growth.take(words, 1)


@pytest.mark.parametrize(("slope", "bend"), [(np.nan, 1), (8193, 1), (-np.inf, 1), (1, 2049), (1, -1), (1, np.nan)])
def test_forces_that_no_word_holds_are_refused(slope, bend):
    case = replace(SMALL, slope=np.array([1, 1, slope, 1.0]), bend=np.array([1, 1, bend, 1.0]))
    with pytest.raises(ValueError, match="too large for its unit"):
        case.begun()
    case.chosen = np.array([1, 1, 0, 1], np.uint8)
    case.begun()


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, [0, 0]), (1, []), (2, [0]), (3, [1, 7, 0]), (4, [-9, -2, -2]), (3, [0, -1, -1]), (5, []), (6, [4]), (7, [9])],
)
def test_a_forged_tree_is_refused(place, value):
    tree = SMALL.grown()[0]
    state = list(tree.__getstate__())
    assert len(state[0]) == 3
    state[place] = value
    with pytest.raises((ValueError, TypeError)):
        type(tree).__new__(type(tree)).__setstate__(tuple(state))


def test_numbers_that_cannot_tell_leaves_apart_are_refused():
    X = np.arange(300, dtype=np.float32)[:, None]
    case = Case(X, layout_of([np.arange(299) + 0.5], [NUMBER]), X[:, 0].astype(float), np.ones(300), Rules(leaves=300))
    tree, leaf = case.grown()
    assert len(np.unique(leaf)) == len(tree.documents) == 300
    binned = _core.BinnedRows(case.layout.native, X, 1)
    with pytest.raises(ValueError, match="more leaves"):
        binned.walk(tree, np.empty(300, np.uint8), 1)
    with pytest.raises(ValueError, match="more leaves"):
        case.begun().number(tree, None, np.empty(300, np.uint8), 1)


@pytest.mark.parametrize("cuts", [[np.nan], [0.5, 0.5], [np.inf], [0.5, np.nan]])
def test_cuts_are_finite_and_rise(cuts):
    with pytest.raises(ValueError, match="finite and rise"):
        _ = layout_of([cuts], [NUMBER]).native


@pytest.mark.parametrize("level", [-1.0, 0.5, 2.0**31, 2.0**24 + 1])
def test_categories_are_whole_numbers(level):
    with pytest.raises(ValueError, match="whole numbers from 0"):
        _ = layout_of([[level]], [CATEGORY]).native
