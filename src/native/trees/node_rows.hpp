// The documents of some data in the nodes of a tree that grows: each node has a run of rows, with their forces beside them.
//
// A split takes the rows of a node from one of two buffers to the same place in the other, those on the left from the front and those on the
// right from the back. So rows of a node always rise or always fall, and memory is visited in one direction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trees/histogram.hpp"
#include "trees/split.hpp"

namespace exactrank {

class NodeRows {
public:
    explicit NodeRows(std::shared_ptr<const BinnedRows> binned) : binned_(std::move(binned)) {
        const std::size_t rows = binned_->rows();
        for (Buffer& buffer : buffers_) buffer = {Pages<std::int32_t>(rows + padding_rows), Pages<Force>(rows)};
        sides_ = Pages<std::uint8_t>(rows);
    }

    // Begins a tree: all documents whose `chosen` is not 0 are in node 0, or all where that is null.
    void begin(Team& team, const std::uint8_t* chosen, const double* slope, const double* bend, double per_slope, double per_bend) {
        const std::size_t rows = binned_->rows(), pieces = (rows + rows_per_piece - 1) / rows_per_piece;
        runs_.clear();
        std::vector<std::size_t> before(pieces + 1);
        for (std::size_t p = 0; p < pieces; ++p) {
            const std::size_t first = p * rows_per_piece, last = std::min(rows, first + rows_per_piece);
            before[p + 1] = before[p] + (chosen ? last - first - static_cast<std::size_t>(std::count(chosen + first, chosen + last, 0)) : last - first);
        }
        team.for_each(pieces, [&](std::size_t p) {
            std::int32_t* own_rows = buffers_[0].rows.data() + before[p];
            Force* forces = buffers_[0].forces.data() + before[p];
            for (std::size_t i = p * rows_per_piece, last = std::min(rows, i + rows_per_piece); i < last; ++i) {
                if (chosen && !chosen[i]) continue;
                *own_rows++ = static_cast<std::int32_t>(i);
                *forces++ = packed_force(slope[i], bend[i], per_slope, per_bend);
            }
        });
        for (Buffer& buffer : buffers_) std::fill_n(buffer.rows.data() + before[pieces], padding_rows, 0);
        runs_.assign(1, {0, before[pieces], 0, true});
    }

    const BinnedRows& binned() const { return *binned_; }

    RowsView of(std::int32_t node) const {
        const Run& run = runs_[node];
        return {buffers_[run.buffer].rows.data() + run.first, buffers_[run.buffer].forces.data() + run.first, run.last - run.first};
    }

    // Moves the rows of `node` to two new ones.
    void split(Team& team, std::int32_t node, const Split& split, std::int32_t left, std::int32_t right) {
        const Run run = runs_[node];
        const std::size_t count = run.last - run.first,
                          pieces = count < rows_per_piece * 2 ? 1 : std::min<std::size_t>(4 * team.threads(), count / rows_per_piece);
        const std::size_t length = (count + pieces - 1) / pieces;
        std::vector<std::size_t> lefts(pieces + 1);
        const std::uint8_t* goes_left = sides_of_bins(split);
        team.for_each(pieces, [&](std::size_t p) {
            const std::size_t first = run.first + p * length, last = std::min(run.last, first + length);
            lefts[p + 1] = first < last ? mark(run.buffer, split, goes_left, first, last) : 0;
        });
        for (std::size_t p = 0; p < pieces; ++p) lefts[p + 1] += lefts[p];
        team.for_each(pieces, [&](std::size_t p) {
            const std::size_t first = run.first + p * length, last = std::min(run.last, first + length);
            if (first < last) move(run.buffer, first, last, run.first + lefts[p], run.last - (p * length - lefts[p]));
        });
        const std::size_t middle = run.first + lefts[pieces];
        const std::uint8_t other = 1 - run.buffer;
        if (runs_.size() <= static_cast<std::size_t>(std::max(left, right))) runs_.resize(std::max(left, right) + 1);
        runs_[node].is_leaf = false;
        runs_[left] = {run.first, middle, other, true};
        runs_[right] = {middle, run.last, other, true};
    }

    // Whether a split would send each row of a node to the left.
    std::span<const std::uint8_t> sides(std::int32_t node, const Split& split) {
        const Run& run = runs_[node];
        mark(run.buffer, split, sides_of_bins(split), run.first, run.last);
        return {sides_.data() + run.first, run.last - run.first};
    }

    // The number of the leaf of each row: `leaf` has one for every node that is not split, or was split in vain. Rows that were not chosen keep
    // what they have.
    template <class Number>
    void number_leaves(std::span<const std::int32_t> leaf, Number* numbers) const {
        for (std::size_t node = 0; node < runs_.size(); ++node) {
            const RowsView rows = of(static_cast<std::int32_t>(node));
            if (!runs_[node].is_leaf) continue;
            const auto number = static_cast<Number>(leaf[node]);
            for (std::size_t i = 0; i < rows.count; ++i) numbers[rows.rows[i]] = number;
        }
    }

    std::size_t nodes() const { return runs_.size(); }
    bool is_leaf(std::size_t node) const { return runs_[node].is_leaf; }
    // How many rows the tree has.
    std::size_t count() const { return runs_[0].last - runs_[0].first; }

private:
    static constexpr std::size_t rows_per_piece = 8192;

    struct Run {
        std::size_t first = 0, last = 0;
        std::uint8_t buffer = 0;
        bool is_leaf = false;
    };
    struct Buffer {
        Pages<std::int32_t> rows;
        Pages<Force> forces;
    };

    const std::uint8_t* sides_of_bins(const Split& split) {
        const BinLayout::Feature& feature = binned_->layout().features[split.feature];
        if (side_of_bin_.size() < feature.bins) side_of_bin_.resize(feature.bins);
        for (std::uint32_t b = 0; b < feature.bins; ++b) side_of_bin_[b] = SplitSearch::goes_left(feature, split, b);
        return side_of_bin_.data();
    }

    // Notes the side of each row; returns how many are on the left.
    std::size_t mark(std::uint8_t buffer, const Split& split, const std::uint8_t* goes_left, std::size_t first, std::size_t last) {
        const BinLayout::Feature& feature = binned_->layout().features[split.feature];
        const std::int32_t* rows = buffers_[buffer].rows.data();
        std::uint8_t* sides = sides_.data();
        std::size_t lefts = 0;
        if (feature.tile < 0) {
            const std::uint16_t* column = binned_->column(feature.slot);
            for (std::size_t i = first; i < last; ++i) lefts += sides[i] = goes_left[column[rows[i]]];
            return lefts;
        }
        const std::uint8_t* slot = binned_->tile(feature.tile) + feature.slot;
        for (std::size_t i = first; i < last; ++i) {
            __builtin_prefetch(slot + static_cast<std::size_t>(rows[i + prefetched_rows]) * BinLayout::per_tile, 0, 2);
            lefts += sides[i] = goes_left[slot[static_cast<std::size_t>(rows[i]) * BinLayout::per_tile]];
        }
        return lefts;
    }

    void move(std::uint8_t buffer, std::size_t first, std::size_t last, std::size_t front, std::size_t back) {
        const Buffer &from = buffers_[buffer], &to = buffers_[1 - buffer];
        const std::int32_t* rows = from.rows.data();
        const Force* forces = from.forces.data();
        std::int32_t* new_rows = to.rows.data();
        Force* new_forces = to.forces.data();
        for (std::size_t i = first; i < last; ++i) {
            const std::size_t is_left = sides_.data()[i], last_free = back - 1;
            const std::size_t at = last_free + (front - last_free) * is_left;  // no branch, which could not be predicted
            new_rows[at] = rows[i], new_forces[at] = forces[i];
            front += is_left, back -= 1 - is_left;
        }
    }

    std::shared_ptr<const BinnedRows> binned_;
    Buffer buffers_[2];
    Pages<std::uint8_t> sides_;
    std::vector<std::uint8_t> side_of_bin_;
    std::vector<Run> runs_;
};

}  // namespace exactrank
