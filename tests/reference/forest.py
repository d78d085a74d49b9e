"""A tree that grows on bins, one document and one candidate at a time.

Sums are exact whole numbers. Outputs and gains are Python floats, by the equations of `src/native/trees/split.hpp` as they stand there, so
that equal gains are equal here as well, and ties can be compared.
"""

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, isnan

NUMBER, NUMBER_OR_MISSING, CATEGORY = 0, 1, 2
WORD = (1 << 64) - 1


@dataclass
class Rules:
    leaves: int = 31
    depth: int = 0
    min_documents: int = 1
    min_curvature: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    min_gain: float = 0.0
    max_step: float = 0.0
    smoothing: float = 0.0
    noise: float = 0.0
    extra: bool = False
    features_per_node: int = 0
    symmetric: bool = False
    min_group: int = 1
    monotone: tuple = ()
    groups: tuple = ()
    candidates: int = 1


@dataclass
class Binned:
    """Documents in bins."""

    kinds: list
    sizes: list  #: how many bins each feature has, that of missing values or other categories included
    rows: list  #: the bins of each document

    @classmethod
    def of(cls, cuts, kinds, X):
        sizes = [len(levels) + 1 + (kind == NUMBER_OR_MISSING) for levels, kind in zip(cuts, kinds, strict=True)]
        rows = [[bin_of(float(x), levels, kind) for x, levels, kind in zip(row, cuts, kinds, strict=True)] for row in X]
        return cls(list(kinds), sizes, rows)


def bin_of(x, cuts, kind):
    """The bin of a value: categories by their number, numbers by the cuts below them, and what is missing or unknown at last."""
    if kind == CATEGORY:
        return cuts.index(int(x)) if not isnan(x) and x > -1 and int(x) in cuts else len(cuts)
    if isnan(x):
        return len(cuts) + 1 if kind == NUMBER_OR_MISSING else len(cuts)
    return bisect_left(cuts, 0.0 if abs(x) <= 1e-35 else x)


def whole_forces(slope, bend, unit_slope, unit_bend):
    """Forces as whole numbers of units; a document that has a curvature keeps at least one unit of it."""
    slopes = [round(Fraction(g) / Fraction(unit_slope)) for g in slope]
    bends = [max(round(Fraction(h) / Fraction(unit_bend)), int(h > 0)) for h in bend]
    return slopes, bends


def draw(key, number):
    """Random bits (splitmix64)."""
    z = (key + 0x9E3779B97F4A7C15 * (number + 1)) & WORD
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & WORD
    return z ^ z >> 31


def draw_normal(key, number):
    bits = draw(key, number)
    return (sum(bits >> shift & 0xFFFF for shift in (0, 16, 32, 48)) / 65535 - 2) * 1.7320508075688772


@dataclass
class Split:
    gain: float
    score: float
    feature: int
    bin: int
    missing_left: bool
    left_bins: frozenset  #: the bins that go left
    categories: frozenset = frozenset()


@dataclass
class Node:
    documents: list
    key: int
    depth: int = 0
    toward: float = 0.0
    low: float = -inf
    high: float = inf
    used: frozenset = frozenset()  #: features on the path to it
    output: float = 0.0
    contribution: float = 0.0
    split: Split | None = None
    leaf: int = 0
    place: int | None = None  #: among the splits, once it is split
    children: list = field(default_factory=list)


class Tree:
    """A tree grown on ``binned`` documents; only those of ``chosen`` count, and only ``allowed`` features are used."""

    def __init__(self, binned, slopes, bends, units, rules, key=0, allowed=None, chosen=None):
        self.binned, self.slopes, self.bends, self.units, self.rules = binned, slopes, bends, units, rules
        usable = [f for f, bins in enumerate(binned.sizes) if bins > 1]
        self.features = [f for f in usable if allowed is None or allowed[f]]
        documents = [i for i in range(len(binned.rows)) if chosen is None or chosen[i]]
        self.root = self._settled(Node(documents, key))
        self.committed = []
        if self.features:
            self._grow_levels() if rules.symmetric else self._grow_best_first()

    # ---- outputs and gains

    def sums(self, documents):
        """Of slopes, of curvatures, and of ones."""
        return sum(self.slopes[i] for i in documents), sum(self.bends[i] for i in documents), len(documents)

    def _pull(self, g):
        """T(G)."""
        pull = max(abs(g) - self.rules.l1, 0.0)
        return -pull if g < 0 else pull

    def _output(self, sums, toward, low, high, l2):
        """The output of a leaf, and what it contributes: (1) and (2)."""
        (g, h, n), rules = sums, self.rules
        t, h = self._pull(g * self.units[0]), h * self.units[1] + l2
        o = t / h if h > 0 else 0.0
        if rules.max_step > 0:
            o = min(max(o, -rules.max_step), rules.max_step)
        if rules.smoothing > 0:
            o = (n * o + rules.smoothing * toward) / (n + rules.smoothing)
        o = min(max(o, low), high)
        return o, 2 * t * o - h * o * o

    def _settled(self, node):
        node.output, node.contribution = self._output(self.sums(node.documents), node.toward, node.low, node.high, self.rules.l2)
        return node

    def _is_sound(self, sums):
        h, n = sums[1] * self.units[1], sums[2]
        return n >= self.rules.min_documents and h >= self.rules.min_curvature and h + self.rules.l2 > 0

    def _monotone(self, f):
        return self.rules.monotone[f] if self.rules.monotone else 0

    def contributions(self, node, f, left_bins, l2):
        """What two children contribute together; None where they cannot be."""
        left = [i for i in node.documents if self.binned.rows[i][f] in left_bins]
        right = [i for i in node.documents if self.binned.rows[i][f] not in left_bins]
        a, z = self.sums(left), self.sums(right)
        if not (self._is_sound(a) and self._is_sound(z)):
            return None
        rules, direction = self.rules, self._monotone(f)
        if direction == 0 == rules.max_step == rules.smoothing and (node.low, node.high) == (-inf, inf):  # one division for both
            (tl, hl), (tr, hr) = ((self._pull(s[0] * self.units[0]), s[1] * self.units[1] + l2) for s in (a, z))
            return (tl * tl * hr + tr * tr * hl) / (hl * hr)
        (o_left, c_left), (o_right, c_right) = (self._output(s, node.output, node.low, node.high, l2) for s in (a, z))
        return c_left + c_right if direction * (o_right - o_left) >= 0 else None

    # ---- candidates

    def candidates(self, node, f):
        """All splits at a feature, in the order in which the first of equal ones wins: bin, sides of bins, categories, and added l2."""
        kind, bins, rules = self.binned.kinds[f], self.binned.sizes[f], self.rules
        if kind == CATEGORY:
            yield from self._category_candidates(node, f)
            return
        cuts = range(bins - 1)
        if rules.extra and cuts:
            cuts = [draw(node.key, f) % len(cuts)]
        missing = bins - 1
        is_missing = kind == NUMBER_OR_MISSING and any(self.binned.rows[i][f] == missing for i in node.documents)
        for with_missing in (False, True) if is_missing else (False,):
            for b in cuts:
                yield b, frozenset(range(b + 1)) | (frozenset([missing]) if with_missing else frozenset()), frozenset(), rules.l2

    def _category_candidates(self, node, f):
        for left_bins in self._category_sets(node.documents, f, draw(node.key, f)):
            yield 0, left_bins, left_bins, self._category_l2(node, node.documents, f)

    def _members(self, documents, f):
        """Documents by known category, those with any."""
        bins = [[i for i in documents if self.binned.rows[i][f] == b] for b in range(self.binned.sizes[f] - 1)]
        return {b: members for b, members in enumerate(bins) if members}

    def _typical(self, documents):
        """The curvature of ten typical documents."""
        _, h, n = self.sums(documents)
        return 10 * h / n if n else 0.0

    def _category_l2(self, node, documents, f):
        """What is added to the curvatures of a node's children where ``documents`` have more than a few categories."""
        return self.rules.l2 + (self._typical(node.documents) * self.units[1] if len(self._members(documents, f)) > 4 else 0.0)

    def _category_sets(self, documents, f, drawn):
        """The sets of categories whose ratios are lowest, and those whose ratios are highest."""
        rules, members, typical = self.rules, self._members(documents, f), self._typical(documents)
        ratio = {b: self.sums(some)[0] / (self.sums(some)[1] + typical or inf) for b, some in members.items()}
        least = rules.min_group if len(members) > 4 else 1
        for rising in (True, False):
            order = sorted(members, key=lambda b: (ratio[b], b), reverse=not rising)
            ends, since = [], 0
            for k, b in enumerate(order):
                since += len(members[b])
                is_last = k + 1 == len(order)
                if is_last or (ratio[b] != ratio[order[k + 1]] and since >= least):
                    ends.append(k + 1)
                    since = 0
            if rules.extra and ends:
                ends = [ends[drawn % len(ends)]]
            yield from (frozenset(order[:end]) for end in ends)

    def _is_allowed(self, node, f):
        groups = self.rules.groups
        return not groups or any(f in group and node.used <= set(group) for group in groups)

    def _may_split(self, node):
        return (self.rules.depth == 0 or node.depth < self.rules.depth) and len(node.documents) >= 2 * self.rules.min_documents

    def _drawn_features(self, node):
        count = self.rules.features_per_node
        draws = {f: draw(node.key ^ 0x6665617475726573, f) for f in self.features}
        return self.features if not count else [f for f in self.features if draws[f] in sorted(draws.values())[:count]]

    def _best_split(self, node):
        best = None
        for f in self._drawn_features(node) if self._may_split(node) else ():
            split = self._best_at(node, f) if self._is_allowed(node, f) else None
            if split is not None and split.gain > self.rules.min_gain and (best is None or split.score > best.score):
                best = split
        return best

    def _best_at(self, node, f):
        best = None
        for b, left_bins, categories, l2 in self.candidates(node, f):
            together = self.contributions(node, f, left_bins, l2)
            if together is not None and (best is None or together > best[0]):
                best = together, b, left_bins, categories
        if best is None:
            return None
        gain, noise = best[0] - node.contribution, self.rules.noise
        score = gain * max(0.0, 1 + noise * draw_normal(node.key ^ 0x6E6F697365, f)) if noise else gain
        return Split(gain, score, f, best[1], self._sends_missing_left(node, f, best[2]), best[2], best[3])

    def _sends_missing_left(self, node, f, left_bins):
        """Missing values go where their bin goes; if there are none, to the larger side."""
        missing = self.binned.sizes[f] - 1
        if self.binned.kinds[f] == CATEGORY:
            return False
        if self.binned.kinds[f] == NUMBER_OR_MISSING and any(self.binned.rows[i][f] == missing for i in node.documents):
            return missing in left_bins
        return 2 * sum(self.binned.rows[i][f] in left_bins for i in node.documents) >= len(node.documents)

    # ---- growth

    def _commit(self, node):
        split, rules = node.split, self.rules
        inside = [self.binned.rows[i][split.feature] in split.left_bins for i in node.documents]
        sides = [[i for i, is_left in zip(node.documents, inside, strict=True) if is_left == wanted] for wanted in (True, False)]
        bounds = [[node.low, node.high], [node.low, node.high]]
        if direction := self._monotone(split.feature):
            outputs = [self._output(self.sums(side), node.output, node.low, node.high, rules.l2)[0] for side in sides]
            middle = outputs[0] / 2 + outputs[1] / 2
            bounds[0 if direction > 0 else 1][1] = bounds[1 if direction > 0 else 0][0] = middle
        for side in (0, 1):
            key = draw(node.key, 0x6368696C64 + side)
            node.children.append(
                self._settled(Node(sides[side], key, node.depth + 1, node.output, *bounds[side], node.used | {split.feature}))
            )
        node.place = len(self.committed)
        self.committed.append(node)
        node.children[0].leaf, node.children[1].leaf = node.leaf, len(self.committed)

    def _grow_best_first(self):
        self.root.split = self._best_split(self.root)
        open_leaves = [self.root]
        while len(self.committed) + 1 < self.rules.leaves:
            splittable = [node for node in open_leaves if node.split is not None]
            if not splittable:
                break
            node = min(splittable, key=lambda node: (-node.split.gain, node.leaf))
            self._commit(node)
            open_leaves.remove(node)
            for child in node.children:
                child.split = self._best_split(child)
                open_leaves.append(child)

    def _grow_levels(self):
        level = [self.root]
        while (room := self.rules.leaves - 1 - len(self.committed)) > 0:
            open_leaves = [node for node in level if self._may_split(node)]
            best = self._best_of_level(open_leaves)
            if best is None:
                break
            level_after, split_now = [], 0
            for node in level:
                fits = any(node is other for other in open_leaves) and split_now < room and self._is_allowed(node, best.feature)
                together = self.contributions(node, best.feature, best.left_bins, self.rules.l2) if fits else None
                if together is None:
                    level_after.append(node)
                    continue
                gain = sum(self._side_contributions(node, best.feature, best.left_bins)) - node.contribution
                node.split = replace(best, gain=gain)
                self._commit(node)
                split_now += 1
                level_after += node.children
            level = level_after

    def _side_contributions(self, node, f, left_bins):
        for wanted in (True, False):
            side = [i for i in node.documents if (self.binned.rows[i][f] in left_bins) == wanted]
            yield self._output(self.sums(side), node.output, node.low, node.high, self.rules.l2)[1]

    def _best_of_level(self, open_leaves):
        best, rules = None, self.rules
        key = draw(self.root.key, len(self.committed))
        for f in self.features:
            nodes = [node for node in open_leaves if self._is_allowed(node, f)]
            split = self._best_of_level_at(nodes, f, key)
            if split is None or not split.gain > rules.min_gain:
                continue
            split.score *= max(0.0, 1 + rules.noise * draw_normal(key, f)) if rules.noise else 1.0
            if best is None or split.score > best.score:
                best = split
        return best

    def _best_of_level_at(self, nodes, f, key):
        best, is_category = None, self.binned.kinds[f] == CATEGORY
        documents = [i for node in nodes for i in node.documents]
        candidates = self._category_candidates_of_level if is_category else self._cuts_of_level
        for b, left_bins, categories in candidates(documents, f, key ^ 0x6578747261) if nodes else ():
            gain = 0.0
            for node in nodes:
                l2 = self._category_l2(node, documents, f) if is_category else self.rules.l2
                together = self.contributions(node, f, left_bins, l2)
                gain += 0.0 if together is None else together - node.contribution
            if best is None or gain > best.gain:
                best = Split(gain, gain, f, b, self.binned.sizes[f] - 1 in left_bins, left_bins, categories)
        return best

    def _cuts_of_level(self, documents, f, key):
        missing, kind = self.binned.sizes[f] - 1, self.binned.kinds[f]
        has_missing = kind == NUMBER_OR_MISSING and any(self.binned.rows[i][f] == missing for i in documents)
        for b in [draw(key, f) % missing] if self.rules.extra else range(missing):
            for with_missing in (False, True) if has_missing else (False,):
                yield b, frozenset(range(b + 1)) | (frozenset([missing]) if with_missing else frozenset()), frozenset()

    def _category_candidates_of_level(self, documents, f, key):
        for left_bins in self._category_sets(documents, f, draw(key, f)):
            yield 0, left_bins, left_bins

    # ---- what has grown

    def leaves(self):
        """The leaves in the order of their numbers."""
        nodes, leaves = [self.root], []
        while nodes:
            node = nodes.pop()
            nodes += node.children
            if node.place is None:
                leaves.append(node)
        return sorted(leaves, key=lambda node: node.leaf)

    def structure(self):
        """Feature, bin, side of missing values, categories and children of each split; a child below 0 is ~leaf."""

        def number(child):
            return ~child.leaf if child.place is None else child.place

        return [
            (node.split.feature, node.split.bin, node.split.missing_left, sorted(node.split.categories), *map(number, node.children))
            for node in self.committed
        ]

    def gains(self):
        return [node.split.gain for node in self.committed]

    def leaf_of(self, row):
        """The leaf of a document in bins that need not be of the training documents."""
        node = self.root
        while node.place is not None:
            split, kind, bins = node.split, self.binned.kinds[node.split.feature], self.binned.sizes[node.split.feature]
            is_missing = kind == NUMBER_OR_MISSING and row[split.feature] == bins - 1
            goes_left = split.missing_left if is_missing else row[split.feature] in split.left_bins
            node = node.children[0 if goes_left else 1]
        return node.leaf


class ChosenTree(Tree):
    """A tree of which each leaf is split by that of its best candidates after which the documents' outputs have the largest ``value``."""

    def __init__(self, value, *more):
        self.value, self.outputs = value, {}
        super().__init__(*more)

    def _commit(self, node):
        splits = [self._best_at(node, f) for f in self._drawn_features(node) if self._is_allowed(node, f)]
        splits = [split for split in splits if split is not None and split.gain > self.rules.min_gain]
        splits.sort(key=lambda split: -split.score)
        outcomes = [self._outputs_after(node, split) for split in splits[: self.rules.candidates]]
        best = max(range(len(outcomes)), key=lambda number: self.value(outcomes[number]))
        node.split, self.outputs = splits[best], outcomes[best]
        super()._commit(node)

    def _outputs_after(self, node, split):
        outputs = dict(self.outputs)
        for is_left in (True, False):
            side = [i for i in node.documents if (self.binned.rows[i][split.feature] in split.left_bins) == is_left]
            outputs |= dict.fromkeys(side, self._output(self.sums(side), node.output, node.low, node.high, self.rules.l2)[0])
        return outputs
