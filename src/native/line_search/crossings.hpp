// The crossings of one query's lines on one side of 0, and what the exchanges there do to a positional measure.
#pragma once

#include <bit>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "line_search/jumping_points.hpp"
#include "measures/ranking.hpp"
#include "support/doubles.hpp"
#include "support/sort.hpp"

namespace exactrank {

// How much a search holds at once; more is taken in parts.
struct SearchRoom {
    static constexpr std::int32_t most_lines = 0x7fff;  // two numbers of lines share an int
    std::int32_t lines = 1024;                          // all crossings of that many
    std::size_t exchanges = std::size_t{1} << 19;       // of many lines, in one window
    std::size_t events = std::size_t{1} << 20;          // of one side of a query
    std::size_t blocks = 16;                            // of queries, all of whose events are kept
};

// One side of one query: the lines that matter in the order right beside 0, and their crossings.
struct SideScratch {
    std::vector<double> score, slope;
    std::vector<double> worth;  // more than the least of the query
    std::vector<double> end, highest, row, at;
    std::vector<double> dull_score, dull_slope;  // of the lines worth nothing
    std::vector<std::int32_t> dull, pair, rank, sequence;
    std::vector<Event> events;
    network::Buffer keys;

    void reserve(std::size_t n) {
        if (score.size() >= n + 8) return;
        for (auto* numbers : {&score, &slope, &worth, &end, &row, &dull_score, &dull_slope}) numbers->resize(n + 8);
        dull.resize(n + 8), rank.resize(n + 8);
    }
    void reserve_pairs(std::size_t pairs) {
        if (at.size() >= pairs) return;
        at.resize(pairs), pair.resize(pairs), sequence.resize(pairs), events.resize(pairs);
    }
};

// Orders lines of equal scores, the steepest first; those of equal slopes, too, stay as they are.
inline void steepest_first(SideScratch& side, std::int32_t first, std::int32_t last) {
    constexpr std::int32_t few = 64;
    if (last - first <= few) {
        for (std::int32_t p = first + 1; p < last; ++p)
            for (std::int32_t i = p; i > first && side.slope[i] > side.slope[i - 1]; --i) {
                std::swap(side.slope[i], side.slope[i - 1]);
                std::swap(side.worth[i], side.worth[i - 1]);
            }
        return;
    }
    std::vector<std::pair<double, double>> lines;
    for (std::int32_t p = first; p < last; ++p) lines.emplace_back(side.slope[p], side.worth[p]);
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::int32_t p = first; p < last; ++p) std::tie(side.slope[p], side.worth[p]) = lines[p - first];
}

// Of equal scores the steeper comes first; lines that coincide share what they are worth where ties `count_as_mean`.
inline void order_ties(SideScratch& side, std::int32_t n, bool count_as_mean) {
    for (std::int32_t first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && side.score[last] == side.score[first];) ++last;
        steepest_first(side, first, last);
        for (std::int32_t a = first, b; count_as_mean && a < last; a = b) {
            for (b = a + 1; b < last && side.slope[b] == side.slope[a];) ++b;
            std::fill(side.worth.begin() + a, side.worth.begin() + b, std::accumulate(side.worth.begin() + a, side.worth.begin() + b, 0.0) / (b - a));
        }
    }
}

// Keeps of n lines, in order, those that are not below `cutoff` earlier ones at the end of the ray too; returns how many. `highest`
// has room for `room` numbers, a multiple of eight and at least the cutoff; those beyond it are infinite.
static XR_CLONES std::int32_t keep_highest(SideScratch& side, std::int32_t n, std::int32_t cutoff, double* highest, std::int32_t room) {
    double *score = side.score.data(), *slope = side.slope.data(), *worth = side.worth.data(), *end = side.end.data();
    std::copy(end, end + cutoff, highest);
    auto lowest = [&] {
        Doubles least = load_eight(highest);
        for (std::int32_t i = 8; i < room; i += 8) {
            const Doubles v = load_eight(highest + i);
            least = v < least ? v : least;
        }
        double found = least[0];
        for (int lane = 1; lane < 8; ++lane) found = least[lane] < found ? least[lane] : found;
        return found;
    };
    double bar = lowest();
    std::int32_t kept = cutoff;
    for (std::int32_t i = cutoff; i < n; ++i) {
        if (end[i] <= bar) continue;
        std::int32_t out = 0;
        while (highest[out] != bar) ++out;
        highest[out] = end[i];
        bar = lowest();
        score[kept] = score[i], slope[kept] = slope[i], worth[kept] = worth[i];
        ++kept;
    }
    return kept;
}

inline std::int32_t keep_those_that_matter(SideScratch& side, std::int32_t n, std::int32_t cutoff) {
    if (n <= cutoff) return n;
    side.highest.assign((cutoff + 7) / 8 * 8, HUGE_VAL);
    return keep_highest(side, n, cutoff, side.highest.data(), static_cast<std::int32_t>(side.highest.size()));
}

// How far the crossings of lines are listed.
struct Listed {
    std::int32_t lines = 0, crossings = 0, dulls = 0;
};

// Lists the crossings before `limit` of the lines up to `last` with those below, and with those worth nothing above. Two lines worth
// nothing may cross unseen: the rank of neither counts.
static XR_CLONES void list_crossings(SideScratch& side, std::int32_t last_line, std::int32_t m, double limit, Listed& listed) {
    const double *score = side.score.data(), *slope = side.slope.data(), *worth = side.worth.data();
    const double last = limit * (1 - 0x1p-40);  // nothing is to be had from an interval that rounding alone leaves before the end
    double *row = side.row.data(), *at = side.at.data(), *dull_score = side.dull_score.data(), *dull_slope = side.dull_slope.data();
    std::int32_t *dull = side.dull.data(), *pair = side.pair.data(), n = listed.crossings, dulls = listed.dulls;
    for (std::int32_t i = listed.lines; i < last_line; ++i) {
        const double s = score[i], t = slope[i];
        if (worth[i] == 0) {
            dull[dulls] = i;
            dull_score[dulls] = s, dull_slope[dulls] = t;
            ++dulls;
            continue;
        }
        for (std::int32_t j = i + 1; j < m; ++j) row[j] = (s - score[j]) / (slope[j] - t);
        for (std::int32_t j = i + 1; j < m; ++j) {
            at[n] = row[j];
            pair[n] = i << 16 | j;
            n += (slope[j] > t) & (row[j] < last);
        }
        for (std::int32_t j = 0; j < dulls; ++j) row[j] = (dull_score[j] - s) / (t - dull_slope[j]);
        for (std::int32_t j = 0; j < dulls; ++j) {
            at[n] = row[j];
            pair[n] = dull[j] << 16 | i;
            n += (t > dull_slope[j]) & (row[j] < last);
        }
    }
    listed = {last_line, n, dulls};
}

// Fills side.sequence with the order of n crossings, up to network_limit of them; `keys` is the room of side.keys for them.
static XR_CLONES void order_few(SideScratch& side, std::int32_t n, std::int32_t* keys) {
    const double* at = side.at.data();
    std::int32_t* sequence = side.sequence.data();
    // A key is the leading bits of the crossing as a float, which as integers have its order, above its number.
    const int number_bits = std::bit_width(static_cast<std::uint32_t>(n));
    const std::int32_t numbers = (1 << number_bits) - 1;
    for (std::int32_t c = 0; c < n; ++c) keys[c] = (std::bit_cast<std::int32_t>(static_cast<float>(at[c])) & ~numbers) | c;
    side.keys.sort_descending();
    for (std::int32_t c = 0; c < n; ++c) sequence[c] = keys[n - 1 - c] & numbers;
    // Those that share their leading bits are few, and side by side.
    for (std::int32_t c = 1; c < n; ++c)
        for (std::int32_t d = c; d > 0 && at[sequence[d]] < at[sequence[d - 1]]; --d) std::swap(sequence[d], sequence[d - 1]);
}

// Where few lines are worth something, each is followed alone: its own crossings are fewer to sort, and its rank is all that counts.
static XR_CLONES std::int32_t list_own_crossings(SideScratch& side, std::int32_t own, std::int32_t m, double limit) {
    const double *score = side.score.data(), *slope = side.slope.data(), s = score[own], t = slope[own];
    const double last = limit * (1 - 0x1p-40);  // as for all crossings
    double *row = side.row.data(), *at = side.at.data();
    std::int32_t *moves = side.pair.data(), n = 0;
    for (std::int32_t j = 0; j < m; ++j) row[j] = (s - score[j]) / (slope[j] - t);
    for (std::int32_t j = 0; j < own; ++j) {
        at[n] = row[j], moves[n] = -1;
        n += (t > slope[j]) & (row[j] < last);
    }
    for (std::int32_t j = own + 1; j < m; ++j) {
        at[n] = row[j], moves[n] = 1;
        n += (slope[j] > t) & (row[j] < last);
    }
    return n;
}

// Fills side.sequence with the order of n crossings.
inline void order_crossings(SideScratch& side, std::int32_t n) {
    if (n <= network_limit) return order_few(side, n, side.keys.keys(n));
    const double* at = side.at.data();
    std::iota(side.sequence.begin(), side.sequence.begin() + n, 0);
    sort_long(side.sequence.begin(), side.sequence.begin() + n, [&](std::int32_t a, std::int32_t b) { return at[a] < at[b]; });
}

// Lists the crossings before `limit` of m lines, at most SearchRoom::most_lines, and in side.sequence their order; returns how many.
inline std::int32_t sorted_crossings(SideScratch& side, std::int32_t m, double limit) {
    side.reserve_pairs(static_cast<std::size_t>(m) * (m + 1) / 2 + 8);
    constexpr std::int32_t lines_at_once = 64;
    Breath breath;
    Listed listed;
    while (listed.lines < m) {
        list_crossings(side, std::min(m, listed.lines + lines_at_once), m, limit, listed);
        breath.after(lines_at_once * 4 * static_cast<std::size_t>(m));
    }
    order_crossings(side, listed.crossings);
    return listed.crossings;
}

// Follows the exchanges and appends the events that change the value; returns one past the last.
inline Event* exchanged(SideScratch& side, std::int32_t m, std::int32_t n, const double* drop, double sign, Event* out) {
    const double *worth = side.worth.data(), *at = side.at.data();
    std::int32_t* rank = side.rank.data();
    std::iota(rank, rank + m, 0);
    for (std::int32_t c = 0; c < n; ++c) {
        if (c % (1 << 16) == (1 << 16) - 1) breathe();
        const std::int32_t number = side.sequence[c], i = side.pair[number] >> 16, j = side.pair[number] & 0xffff;
        const std::int32_t falls = rank[i]++, rises = --rank[j];
        *out = {sign * at[number], sign * (worth[j] * drop[rises] - worth[i] * drop[falls])};
        out += out->change != 0;
    }
    return out;
}

// The same where lines are followed one by one: an exchange of two that are worth something is two events.
inline void append_one_by_one(SideScratch& side, std::int32_t m, double limit, const double* discount, double sign, std::vector<Event>& events) {
    side.reserve_pairs(static_cast<std::size_t>(m) + 8);
    Breath breath;
    for (std::int32_t own = 0; own < m; ++own) {
        if (side.worth[own] == 0) continue;
        const std::int32_t n = list_own_crossings(side, own, m, limit);
        breath.after(16 * static_cast<std::size_t>(m));
        order_crossings(side, n);
        std::int32_t rank = own;
        for (std::int32_t c = 0; c < n; ++c) {
            const std::int32_t number = side.sequence[c], next = rank + side.pair[number];
            const double change = side.worth[own] * (discount[next] - discount[rank]);
            if (change != 0) events.push_back({sign * side.at[number], sign * change});
            rank = next;
        }
    }
}

}  // namespace exactrank
