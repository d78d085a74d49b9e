// The ranking of every query's documents by score: largest first, ties by `tie_key` (smallest first) where given,
// then by input order.
//
// A key holds the score, rounded down to a grid between the query's least and largest, above the document's number; so
// one sort of integers carries the documents along, and only those that share a grid point are compared again by their
// whole scores. A score of -inf means the document was not retrieved: it has no rank.
#pragma once

#include <cmath>
#include <numeric>

#include "support/doubles.hpp"
#include "support/interrupt.hpp"
#include "support/sort.hpp"

namespace exactrank {

struct QueryScores {
    const double* score;
    const double* tie_key;  // may be null
    std::int32_t count;
};

// Lists up to this length are sorted by the network, longer ones by std::sort.
constexpr std::int32_t network_limit = 4096;

// Below 0 where key a comes before key b, above it where it comes after: the smallest first, NaN last.
inline int compare_keys(double a, double b) { return a < b ? -1 : a > b ? 1 : (a != a) - (b != b); }

// Does a document come before another?
struct Before {
    const QueryScores& query;

    bool operator()(std::int32_t a, std::int32_t b) const {
        const double* s = query.score;
        if (s[a] != s[b]) return s[a] > s[b];
        const int by_key = query.tie_key ? compare_keys(query.tie_key[a], query.tie_key[b]) : 0;
        return by_key != 0 ? by_key < 0 : a < b;
    }
};

// Marks ties, unless `tied` is null; gives how many documents have a rank.
XR_INLINE std::int64_t count_ranked(const QueryScores& query, const Range& range, const std::int32_t* order, std::uint8_t* tied) {
    const double* s = query.score;
    const std::int32_t n = query.count;
    if (tied)
        for (std::int32_t r = 0; r < n; ++r) tied[r] = r > 0 && s[order[r]] == s[order[r - 1]];
    return range.finite ? n : std::count_if(s, s + n, [](double x) { return x > -HUGE_VAL; });
}

// -1 - i, where i is the first score that is NaN or +inf.
inline std::int64_t first_unsound(const QueryScores& query) {
    return -1 - (std::find_if(query.score, query.score + query.count, [](double x) { return !(x < HUGE_VAL); }) - query.score);
}

// rank_query of up to network_limit documents; `keys` is the buffer's room for them.
static XR_CLONES std::int64_t rank_few(network::Buffer& buffer, std::int32_t* keys, const QueryScores& query, std::int32_t* order, std::uint8_t* tied) {
    const double* s = query.score;
    const std::int32_t n = query.count;
    const Range range = range_of(s, n);
    if (!range.sound) return first_unsound(query);
    const int number_bits = std::bit_width(static_cast<std::uint32_t>(n));
    const std::int32_t numbers = (1 << number_bits) - 1;
    const double spread = range.most - range.least;
    const double scale = spread > 0 ? ((1 << (31 - number_bits)) - 1) / spread : 0.0;
    for (std::int32_t i = 0; i < n; ++i) {
        const auto grid = static_cast<std::int32_t>(s[i] > -HUGE_VAL ? (s[i] - range.least) * scale : -1.0);
        keys[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(grid) << number_bits) | (numbers - i);
    }
    buffer.sort_descending();
    for (std::int32_t r = 0; r < n; ++r) order[r] = numbers - (keys[r] & numbers);
    std::int32_t close = 0;
    for (std::int32_t r = 1; r < n; ++r) close += (keys[r] >> number_bits) == (keys[r - 1] >> number_bits);
    buffer.distinct_scores = close == 0;
    const Before before{query};
    for (std::int32_t first = 0, last; close > 0; first = last) {
        for (last = first + 1; last < n && keys[last] >> number_bits == keys[first] >> number_bits; ++last) {}
        close -= last - first - 1;
        if (!std::is_sorted(order + first, order + last, before)) std::sort(order + first, order + last, before);
    }
    return count_ranked(query, range, order, tied);
}

// Fills order (and tied, unless null); returns how many documents have a rank, or -1 - i if score i is NaN or +inf.
inline std::int64_t rank_query(network::Buffer& buffer, const QueryScores& query, std::int32_t* order, std::uint8_t* tied) {
    if (query.count <= network_limit) return rank_few(buffer, buffer.keys(query.count), query, order, tied);
    buffer.distinct_scores = false;
    const Range range = range_of(query.score, query.count);
    if (!range.sound) return first_unsound(query);
    std::iota(order, order + query.count, 0);
    sort_long(order, order + query.count, Before{query});
    return count_ranked(query, range, order, tied);
}

// Puts tied documents of a ranking into the order that `query` asks for, whatever broke their ties before. Ties that begin at `cutoff` or
// below, which is at most `ranked`, stay. Says whether any document moved.
inline bool break_ties(const QueryScores& query, std::int32_t* order, std::int32_t ranked, std::int32_t cutoff) {
    const double* s = query.score;
    const Before before{query};
    bool moved = false;
    for (std::int32_t first = 0, last; first < cutoff; first = last) {
        for (last = first + 1; last < ranked && s[order[last]] == s[order[first]]; ++last) {}
        if (last == first + 1 || std::is_sorted(order + first, order + last, before)) continue;
        sort_long(order + first, order + last, before);
        moved = true;
    }
    return moved;
}

// How many documents have a rank, from what rank_query returned for scores that must be sound.
inline std::int32_t ranked_count(std::int64_t returned) {
    if (returned < 0) throw std::invalid_argument("scores must hold neither NaN nor +inf");
    return static_cast<std::int32_t>(returned);
}

}  // namespace exactrank
