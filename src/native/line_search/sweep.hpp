// The exact value of one query along a ray of scores s_i + alpha t_i, for any measure (Tan et al. 2013, section 2.2).
//
// Documents are lines. From alpha = 0 the sweep goes right, then left with the slopes negated; it starts from the order at
// 0+ and exchanges neighbors where their lines cross. A document that `cutoff` earlier ones stay above for good never
// matters. At a crossing the lines that meet are ranked by their very scores there, as evaluation would, and after it by
// slope; so whatever meets in one point, in whatever number, comes out in order.
#pragma once

#include <cfloat>
#include <functional>

#include "line_search/decimals.hpp"
#include "measures/bound_measure.hpp"
#include "support/interrupt.hpp"

namespace exactrank {

// The rays of all queries' documents, and the part of them that is asked for.
struct Ray {
    std::span<const double> score, slope;
    double low, high;  // low <= 0 <= high
};

// Where the value changes: from left of `at` to there, and from there to right of it.
struct Jump {
    double at, to, from;
};

class Sweep {
public:
    Sweep(const Ray& ray, const BoundMeasure& measure) : ray_(ray), measure_(measure), kernel_(*measure.kernel), walk_(kernel_.walk()) {}

    // Appends the jumps of a query and returns its value at 0.
    double query(std::size_t q, std::vector<Jump>& jumps) {
        begin_ = measure_.begin(q);
        count_ = measure_.count(q);
        order_.resize(count_);
        tied_.resize(count_);
        retrieved_ = ranked_count(rank_query(scratch_.keys, measure_.scored(q, ray_.score), order_.data(), measure_.mark_ties ? tied_.data() : nullptr));
        at_.resize(count_);
        for (std::int32_t p = 0; p < retrieved_; ++p) at_[p] = grade(order_[p]);
        const double here = value();
        if (kernel_.is_empty(ranked())) return here;
        const double right = ray_.high > 0 ? side(+1, ray_.high, jumps) : here, left = ray_.low < 0 ? side(-1, -ray_.low, jumps) : here;
        if (left != here || right != here) jumps.push_back({0.0, here - left, right - here});
        return here;
    }

private:
    struct Line {
        double score, slope;    // the slope is that of the side
        std::int32_t document;  // within the query
    };
    struct Crossing {
        double at;
        std::int32_t upper, lower;  // numbers of lines, as they stand before
    };
    struct Block {
        std::int32_t first, last;  // positions, both inclusive
    };

    double grade(std::int32_t document) const { return measure_.grades[begin_ + document]; }
    double key(std::int32_t document) const { return measure_.tie_key.empty() ? 0.0 : measure_.tie_key[begin_ + document]; }
    Ranked ranked() const { return {measure_.grades.data() + begin_, at_.data(), measure_.mark_ties ? tied_.data() : nullptr, count_, retrieved_}; }
    double value() { return kernel_.value(ranked(), scratch_); }

    bool before_in_ties(const Line& a, const Line& b) const {
        const int by_key = compare_keys(key(a.document), key(b.document));
        return by_key != 0 ? by_key < 0 : a.document < b.document;
    }
    bool steeper(const Line& a, const Line& b) const { return a.slope != b.slope ? a.slope > b.slope : before_in_ties(a, b); }
    static bool same(const Line& a, const Line& b) { return a.score == b.score && a.slope == b.slope; }

    // Sweeps one side up to `limit`; returns the value right beside 0.
    double side(int sign, double limit, std::vector<Jump>& jumps) {
        lay_out(sign, limit);
        double current = value();
        const double beside = current;
        if (!measure_.mark_ties) walk_->start(ranked(), scratch_);
        exchanges_ = 0;
        find_crossings(limit);
        for (std::size_t first = 0, last; first < crossings_.size(); first = last) {
            for (last = first + 1; last < crossings_.size() && crossings_[last].at == crossings_[first].at;) ++last;
            const double alpha = sign * crossings_[first].at;
            breath_.after(16 * (last - first) + (measure_.mark_ties ? static_cast<std::size_t>(retrieved_) : 0));
            find_blocks(first, last);
            if (blocks_.empty()) continue;
            const double there = current + rearrange(current, alpha, false);
            double after = there + rearrange(there, alpha, true);
            if (exchanges_ > std::max(64, retrieved_)) {  // a fresh sum now and then keeps rounding errors from adding up
                after = value();
                exchanges_ = 0;
            }
            if (there != current || after != there)
                jumps.push_back(sign > 0 ? Jump{alpha, there - current, after - there} : Jump{alpha, there - after, current - there});
            current = after;
        }
        return beside;
    }

    // The lines that matter, in the order right beside 0, and behind them the rest.
    void lay_out(int sign, double limit) {
        lines_.clear();
        for (std::int32_t p = 0; p < retrieved_; ++p) lines_.push_back({ray_.score[begin_ + order_[p]], sign * ray_.slope[begin_ + order_[p]], order_[p]});
        for (std::size_t first = 0, last; first < lines_.size(); first = last) {
            for (last = first + 1; last < lines_.size() && lines_[last].score == lines_[first].score;) ++last;
            std::sort(lines_.begin() + first, lines_.begin() + last, [&](const Line& a, const Line& b) { return steeper(a, b); });
        }
        if (kernel_.cutoff() < retrieved_) drop_those_below(limit);
        position_.resize(lines_.size());
        standing_.resize(lines_.size());
        for (std::size_t p = 0; p < lines_.size(); ++p) {
            position_[p] = standing_[p] = static_cast<std::int32_t>(p);
            at_[p] = grade(lines_[p].document);
            tied_[p] = p > 0 && same(lines_[p], lines_[p - 1]);
        }
        std::fill(tied_.begin() + lines_.size(), tied_.end(), std::uint8_t{0});
        for (std::size_t p = 0; p < dropped_.size(); ++p) at_[lines_.size() + p] = grade(dropped_[p]);
        dropped_.clear();
    }

    // A line stays below one above it at 0+ that is also above at the end of the ray. Lines that coincide stay beside each other.
    void drop_those_below(double limit) {
        const auto cutoff = static_cast<std::size_t>(kernel_.cutoff());
        auto end = [&](const Line& line) { return std::isinf(limit) ? line.slope : line.score + limit * line.slope; };
        highest_.clear();
        std::size_t kept = 0, alike = 0;
        for (std::size_t p = 0; p < lines_.size(); ++p) {
            const Line line = lines_[p];
            alike = kept > 0 && same(line, lines_[kept - 1]) ? alike + 1 : 0;
            const bool full = highest_.size() == cutoff;
            const bool below = full && (highest_.front() > end(line) || (std::isinf(limit) && alike == 0 && highest_.front() == end(line)));
            if (below || (alike >= cutoff && !measure_.mark_ties)) {
                dropped_.push_back(line.document);
                continue;
            }
            lines_[kept++] = line;
            if (full) {
                if (highest_.front() >= end(line)) continue;
                std::pop_heap(highest_.begin(), highest_.end(), std::greater<>());
                highest_.pop_back();
            }
            highest_.push_back(end(line));
            std::push_heap(highest_.begin(), highest_.end(), std::greater<>());
        }
        lines_.resize(kept);
    }

    void find_crossings(double limit) {
        crossings_.clear();
        const auto n = static_cast<std::int32_t>(lines_.size());
        for (std::int32_t i = 0; i < n; ++i) {
            breath_.after(8 * static_cast<std::size_t>(n - i));
            for (std::int32_t j = i + 1; j < n; ++j) {
                if (!(lines_[j].slope > lines_[i].slope)) continue;
                const double at = std::max((lines_[i].score - lines_[j].score) / (lines_[j].slope - lines_[i].slope), DBL_MIN);
                if (std::isfinite(at) && at <= limit * (1 + 1e-12)) crossings_.push_back({std::min(thirteen_decimals(at), limit), i, j});
            }
        }
        sort_long(crossings_.begin(), crossings_.end(), [](const Crossing& a, const Crossing& b) { return a.at < b.at; });
    }

    // Runs of positions whose lines meet; a pair that has crossed already, by rounding, is left alone.
    void find_blocks(std::size_t first, std::size_t last) {
        blocks_.clear();
        for (std::size_t c = first; c < last; ++c) {
            const Block block{position_[crossings_[c].upper], position_[crossings_[c].lower]};
            if (block.first < block.last) blocks_.push_back(block);
        }
        if (blocks_.size() < 2) return;
        std::sort(blocks_.begin(), blocks_.end(), [](const Block& a, const Block& b) { return a.first < b.first; });
        std::size_t kept = 0;
        for (std::size_t b = 1; b < blocks_.size(); ++b) {
            if (blocks_[b].first <= blocks_[kept].last)
                blocks_[kept].last = std::max(blocks_[kept].last, blocks_[b].last);
            else
                blocks_[++kept] = blocks_[b];
        }
        blocks_.resize(kept + 1);
    }

    // Orders the blocks as they are at alpha, or after it; returns the change of the value.
    double rearrange(double current, double alpha, bool after) {
        double change = 0;
        for (const Block& block : blocks_) {
            if (after)
                change += sort_block(block, [&](std::int32_t a, std::int32_t b) { return steeper(lines_[a], lines_[b]); });
            else
                change += sort_block(block, [&](std::int32_t a, std::int32_t b) { return above_at(alpha, a, b); });
            if (measure_.mark_ties) mark_ties(block, alpha, after);
        }
        return measure_.mark_ties ? value() - current : change;
    }
    double score_at(double alpha, std::int32_t line) const {
        const std::int64_t i = begin_ + lines_[line].document;
        return ray_.score[i] + alpha * ray_.slope[i];
    }
    bool above_at(double alpha, std::int32_t a, std::int32_t b) const {
        const double sa = score_at(alpha, a), sb = score_at(alpha, b);
        return sa != sb ? sa > sb : before_in_ties(lines_[a], lines_[b]);
    }
    void mark_ties(const Block& block, double alpha, bool after) {
        for (std::int32_t p = block.first + 1; p <= block.last; ++p) {
            const std::int32_t a = standing_[p - 1], b = standing_[p];
            tied_[p] = after ? same(lines_[a], lines_[b]) : score_at(alpha, a) == score_at(alpha, b);
        }
    }
    template <class Above>
    double sort_block(const Block& block, Above above) {
        double change = 0;
        for (std::int32_t p = block.first + 1; p <= block.last; ++p)
            for (std::int32_t q = p; q > block.first && above(standing_[q], standing_[q - 1]); --q) change += exchange(q - 1);
        walk_->settle(at_.data(), block.first, block.last);
        return change;
    }
    // Exchanges the lines at positions p and p + 1.
    double exchange(std::int32_t p) {
        const double change = measure_.mark_ties ? 0.0 : walk_->exchange(at_.data(), p);
        std::swap(standing_[p], standing_[p + 1]);
        std::swap(at_[p], at_[p + 1]);
        position_[standing_[p]] = p;
        position_[standing_[p + 1]] = p + 1;
        ++exchanges_;
        return change;
    }

    const Ray ray_;
    const BoundMeasure& measure_;
    const Kernel& kernel_;
    std::unique_ptr<Walk> walk_;
    Scratch scratch_;
    std::int64_t begin_ = 0;
    std::int32_t count_ = 0, retrieved_ = 0, exchanges_ = 0;
    std::vector<std::int32_t> order_, dropped_;
    std::vector<std::uint8_t> tied_;                 // by position
    std::vector<double> at_;                         // grades by position
    std::vector<Line> lines_;                        // numbered in the order beside 0
    std::vector<std::int32_t> standing_, position_;  // line by position, and back
    std::vector<double> highest_;
    std::vector<Crossing> crossings_;
    std::vector<Block> blocks_;
    Breath breath_;
};

}  // namespace exactrank
