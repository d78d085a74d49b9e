// The exchanges of many lines on one side of 0, some at a time: exact, in memory that grows with the lines and not with their pairs.
//
// The ray is cut into windows. In a window only the lines matter that `cutoff` others do not stay above, and two lines exchange just
// when their orders at its ends differ. A window with too many exchanges is cut at the median of some of them, until there
// are few, or until it is narrower than any interval that counts: then what happens in it is one event. The order at the end of a window
// is the order in which the next one begins, so that nothing is lost or counted twice, however many lines meet in a point, and whatever
// rounding does to the crossings.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "line_search/best_interval.hpp"
#include "line_search/jumping_points.hpp"
#include "support/interrupt.hpp"

namespace exactrank {

// What a rank is worth: `drop` is how much more than the next. From the cutoff on it is nothing.
struct Places {
    std::span<const double> discount, drop;
    std::int32_t cutoff;
};

class Windows {
public:
    // Lines are numbered in their order right beside 0. `worth` is more than the least of the query.
    Windows(std::span<const double> score, std::span<const double> slope, std::span<const double> worth, const Places& places, std::size_t exchanges,
            double limit)
        : score_(score.begin(), score.end()),
          slope_(slope.begin(), slope.end()),
          worth_(worth.begin(), worth.end()),
          places_(places),
          most_exchanges_(exchanges),
          end_rank_(score.size()),
          begin_rank_(score.size()),
          rank_(score.size()) {
        std::vector<std::int32_t> lines(score.size());
        std::iota(lines.begin(), lines.end(), 0);
        pending_.push_back({limit * (1 - narrow), std::move(lines)});
    }

    // Puts the next events that change the value into `events`, in the order of the ray; false where there are none left.
    bool next(std::vector<Event>& events) {
        for (events.clear(); events.empty() && !pending_.empty();) take(events);
        return !events.empty();
    }

private:
    struct Window {
        double end;                       // it begins at begin_, or where the one before it ends
        std::vector<std::int32_t> lines;  // all that can matter in it
    };
    // A line's score somewhere on the ray, in twice the digits of a double.
    struct Standing {
        double high, low, slope;
        std::int32_t line;

        // Is it above the other right before that point? Of lines that meet there the less steep was.
        bool operator<(const Standing& other) const {
            if (high != other.high) return high > other.high;
            if (low != other.low) return low > other.low;
            return slope != other.slope ? slope < other.slope : line < other.line;
        }
    };
    struct Crossing {
        double at;
        std::int32_t upper, lower;
    };

    Standing standing(std::int32_t line, double at) const {
        const double s = score_[line], t = slope_[line], move = at * t, sum = s + move, part = sum - s;
        if (!std::isfinite(sum)) return {sum, 0.0, t, line};
        const double rest = ((s - (sum - part)) + (move - part)) + std::fma(at, t, -move), high = sum + rest;
        return {high, rest - (high - sum), t, line};
    }
    void order_at(double at, std::vector<std::int32_t>& lines) {
        breath_.after(32 * lines.size());
        standings_.clear();
        for (const std::int32_t line : lines) standings_.push_back(standing(line, at));
        sort_long(standings_.begin(), standings_.end(), std::less<>());
        for (std::size_t p = 0; p < lines.size(); ++p) lines[p] = standings_[p].line;
    }
    void order_at_the_end(double end, std::vector<std::int32_t>& lines) {
        if (std::isfinite(end)) return order_at(end, lines);
        auto above = [&](std::int32_t a, std::int32_t b) { return slope_[a] != slope_[b] ? slope_[a] > slope_[b] : a < b; };
        sort_long(lines.begin(), lines.end(), above);
    }

    // Deals with the next window, or cuts it in two.
    void take(std::vector<Event>& events) {
        const double end = pending_.back().end;
        std::vector<std::int32_t>& lines = pending_.back().lines;
        begin_ == 0 ? std::sort(lines.begin(), lines.end()) : order_at(begin_, lines);
        at_end_ = lines;
        order_at_the_end(end, at_end_);
        keep_those_that_matter(lines);
        if (!list_exchanges(lines, end)) {
            const double cut = median_crossing(lines, end);
            if (std::isfinite(cut) && end > DBL_MIN && is_wide(begin_, end)) return divide(cut);
            if (std::isfinite(cut)) add_difference(lines, cut, events);
        } else {
            follow_exchanges(lines, events);
        }
        begin_ = end;
        pending_.pop_back();
    }
    void divide(double cut) {
        const double end = pending_.back().end;
        if (!(cut > begin_)) cut = begin_ > 0 ? begin_ * (1 + narrow / 2) : DBL_MIN;
        if (!(cut < end)) cut = end * (1 - narrow / 2);
        pending_.push_back({cut, std::vector<std::int32_t>(pending_.back().lines)});
    }
    // Drops of the lines, in the order at the beginning, those that `cutoff` earlier ones are above at the end too; ranks the others.
    void keep_those_that_matter(std::vector<std::int32_t>& lines) {
        for (std::size_t p = 0; p < lines.size(); ++p) end_rank_[at_end_[p]] = static_cast<std::int32_t>(p);
        const auto cutoff = static_cast<std::size_t>(places_.cutoff);
        best_ends_.clear();
        std::erase_if(lines, [&](std::int32_t line) {
            const std::int32_t end = end_rank_[line];
            if (best_ends_.size() == cutoff) {
                if (end > best_ends_.front()) return true;
                std::pop_heap(best_ends_.begin(), best_ends_.end());
                best_ends_.pop_back();
            }
            best_ends_.push_back(end);
            std::push_heap(best_ends_.begin(), best_ends_.end());
            return false;
        });
        for (std::size_t p = 0; p < lines.size(); ++p) begin_rank_[lines[p]] = static_cast<std::int32_t>(p);
        std::erase_if(at_end_, [&](std::int32_t line) {
            const auto p = static_cast<std::size_t>(begin_rank_[line]);
            return p >= lines.size() || lines[p] != line;
        });
    }
    double crossing(std::int32_t upper, std::int32_t lower, double end) const {
        return std::clamp((score_[upper] - score_[lower]) / (slope_[lower] - slope_[upper]), begin_, end);
    }
    // Lists the pairs that exchange between the two ends, but for those worth nothing, by sorting them in; false if there are too many.
    bool list_exchanges(const std::vector<std::int32_t>& lines, double end) {
        crossings_.clear();
        sorted_.clear();
        for (const std::int32_t line : lines) {
            std::size_t p = sorted_.size();
            sorted_.push_back(line);
            for (; p > 0 && end_rank_[sorted_[p - 1]] > end_rank_[line]; --p) {
                const std::int32_t upper = sorted_[p] = sorted_[p - 1];
                if (worth_[upper] == 0 && worth_[line] == 0) continue;
                if (crossings_.size() == most_exchanges_) return false;
                crossings_.push_back({crossing(upper, line, end), upper, line});
            }
            breath_.after(2 * (sorted_.size() - p));
            sorted_[p] = line;
        }
        return true;
    }
    // Of the exchanges of some lines, evenly chosen, or else of neighbors; infinite where there is none at a finite place.
    double median_crossing(const std::vector<std::int32_t>& lines, double end) {
        constexpr std::size_t some = 32;
        times_.clear();
        auto consider = [&](std::size_t p, std::size_t q) {
            if (end_rank_[lines[p]] < end_rank_[lines[q]]) return;
            const double at = crossing(lines[p], lines[q], end);
            if (std::isfinite(at)) times_.push_back(at);
        };
        const std::size_t stride = lines.size() / some + 1;
        for (std::size_t p = stride / 2; p < lines.size(); p += stride) {
            breath_.after(2 * lines.size());
            for (std::size_t q = 0; q < p; ++q) consider(q, p);
            for (std::size_t q = p + 1; q < lines.size(); ++q) consider(p, q);
        }
        for (std::size_t p = 1; times_.empty() && p < lines.size(); ++p) consider(p - 1, p);
        if (times_.empty()) return HUGE_VAL;
        const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
        std::nth_element(times_.begin(), middle, times_.end());
        return *middle;
    }
    void follow_exchanges(const std::vector<std::int32_t>& lines, std::vector<Event>& events) {
        sort_long(crossings_.begin(), crossings_.end(), [](const Crossing& a, const Crossing& b) { return a.at < b.at; });
        for (std::size_t p = 0; p < lines.size(); ++p) rank_[lines[p]] = static_cast<std::int32_t>(p);
        for (const Crossing& crossing : crossings_) {
            const std::int32_t falls = rank_[crossing.upper]++, rises = --rank_[crossing.lower];
            const double change = worth_[crossing.lower] * places_.drop[rises] - worth_[crossing.upper] * places_.drop[falls];
            if (change != 0 && std::isfinite(crossing.at)) events.push_back({crossing.at, change});
        }
    }
    // One event for all that happens in the window.
    void add_difference(const std::vector<std::int32_t>& lines, double at, std::vector<Event>& events) {
        double change = 0;
        for (std::size_t p = 0; p < std::min<std::size_t>(lines.size(), places_.cutoff); ++p)
            change += (worth_[at_end_[p]] - worth_[lines[p]]) * places_.discount[p];
        if (change != 0) events.push_back({at, change});
    }

    std::vector<double> score_, slope_, worth_;
    Places places_;
    std::size_t most_exchanges_;
    double begin_ = 0;
    std::vector<Window> pending_;  // the next at last
    std::vector<std::int32_t> at_end_, end_rank_, begin_rank_, best_ends_, sorted_, rank_;
    std::vector<Standing> standings_;
    std::vector<Crossing> crossings_;
    std::vector<double> times_;
    Breath breath_;
};

}  // namespace exactrank
