// Which candidates take the positions of a list, at the least cost, where many candidates differ by their scores alone:
//
//   least sum_r cost(r, i_r),    cost(r, i) = d_r w_i - a_r s_i,    a_r >= 0, no candidate twice                           (1)
//
// Positions are added one by one, each by a shortest augmenting path over reduced costs (Jonker & Volgenant 1987)
//
//   cost(r, i) - u_r - v_i >= 0,    equal to 0 where i takes r,    v_i = f for candidates without a position, else <= f    (2)
//
// Among candidates of one level, which is one worth w, a higher score costs less at every position. So a path ends, if in the level
// at all, at the best one left: the columns of the search are the candidates with a position and one frontier candidate a level, and
// the next of the level satisfies (2) when it comes up, since it costs no less than the one before did.
//
// After each path f is raised as far as (2) allows. Where a and d fall from position to position, the next one then mostly has its
// least reduced cost at a frontier, and the path is one step; without it, most paths would go through most positions before.
#pragma once

#include "support/doubles.hpp"
#include "support/interrupt.hpp"

namespace exactrank {

struct Candidates {
    const double* worth;        // w, by level
    const std::int64_t* first;  // level l has candidates first[l] to first[l + 1], best first
    std::int64_t levels;
    const double* score;  // s, by candidate
};

// By position, with room for eight more.
struct Positions {
    const double *a, *d;
    double scale;        // of d
    std::int32_t count;  // at most as many as there are candidates
};

// What the search works on: column l < levels is the frontier of level l, and those with a position follow.
struct Columns {
    static constexpr double never = -HUGE_VAL;  // as a dual: not to be reached, or not there

    static std::int64_t padded(std::int64_t count) { return (count + 7) / 8 * 8; }
    static std::int64_t numbers_for(std::int64_t levels, std::int32_t positions) {
        return 4 * padded(levels + positions) + padded(levels) + padded(positions) + 2 * positions;
    }
    static std::int64_t indices_for(std::int64_t levels, std::int32_t positions) { return 3 * padded(levels + positions) + 2 * positions; }

    Columns(const Candidates& candidates, std::int32_t positions, double* numbers, std::int64_t* indices)
        : levels(candidates.levels), size(padded(levels + positions)) {
        score = numbers, worth = score + size, dual = worth + size, distance = dual + size;
        slack = distance + size, price = slack + padded(levels), passed_at = price + padded(positions), passed_dual = passed_at + positions;
        via = indices, candidate = via + size, position = candidate + size, column = position + size, passed = column + positions;
        std::fill_n(score, 2 * size, 0.0), std::fill_n(dual, size, never), std::fill_n(slack, padded(levels), HUGE_VAL);
        std::fill_n(price, padded(positions), never);
        for (std::int64_t l = 0; l < levels; ++l) hold(l, candidates.first[l], candidates.worth[l], candidates.score[candidates.first[l]]);
    }
    XR_INLINE void hold(std::int64_t j, std::int64_t i, double w, double s) { candidate[j] = i, worth[j] = w, score[j] = s, dual[j] = free_dual; }
    // Who takes position r.
    std::int64_t taker(std::int32_t r) const { return candidate[column[r]]; }

    std::int64_t levels, size;                 // of all columns, a multiple of eight
    std::int64_t in_use = 0;                   // columns from here on are empty
    double free_dual = 0;                      // f
    double *score, *worth, *dual, *distance;   // by column
    std::int64_t *via, *candidate, *position;  // by column: the position before it on a path; who it is; which position it has
    double* slack;                             // by level: the least of cost(r, i) - u_r for its frontier
    double* price;                             // u, by position
    std::int64_t* column;                      // by position
    std::int64_t* passed;                      // the columns passed by a path
    double *passed_at, *passed_dual;           // the distance and the dual of each
};

struct Nearest {
    double distance;
    std::int64_t column;
};

// Goes on from position r, whose distance less its price is `so_far`, to every column: lowers their distances, and gives the nearest,
// the first of equals.
XR_INLINE Nearest relax(const Columns& columns, double a, double d, double so_far, std::int64_t r) {
    Doubles least = Doubles{} + HUGE_VAL;
    Longs at{}, number{0, 1, 2, 3, 4, 5, 6, 7};
    for (std::int64_t j = 0; j < columns.in_use; j += 8, number += 8) {
        const Doubles reduced = d * load_eight(columns.worth + j) - a * load_eight(columns.score + j) - load_eight(columns.dual + j);
        const Doubles there = so_far + reduced, before = load_eight(columns.distance + j), now = there < before ? there : before;
        Longs via;
        std::memcpy(&via, columns.via + j, sizeof via);
        via = there < before ? Longs{} + r : via;
        std::memcpy(columns.via + j, &via, sizeof via), std::memcpy(columns.distance + j, &now, sizeof now);
        at = now < least ? number : at;
        least = now < least ? now : least;
    }
    Nearest nearest{least[0], at[0]};
    for (int lane = 1; lane < 8; ++lane)
        if (least[lane] < nearest.distance || (least[lane] == nearest.distance && at[lane] < nearest.column)) nearest = {least[lane], at[lane]};
    return nearest;
}

// The price of position r rises, and the slacks fall to it.
XR_INLINE void raise_price(Columns& columns, const Positions& positions, std::int64_t r, double by) {
    const double a = positions.a[r], d = positions.scale * positions.d[r], price = columns.price[r] += by;
    for (std::int64_t l = 0; l < columns.levels; l += 8) {
        const Doubles here = d * load_eight(columns.worth + l) - a * load_eight(columns.score + l) - price, before = load_eight(columns.slack + l);
        const Doubles now = here < before ? here : before;
        std::memcpy(columns.slack + l, &now, sizeof now);
    }
}

// The frontier where the shortest path from position r ends; keeps (2). Below 0: the work is to end.
XR_INLINE std::int64_t shortest_path(Columns& columns, const Positions& positions, std::int32_t r, QuietBreath& breath) {
    columns.in_use = columns.levels + r;
    std::fill_n(columns.distance, Columns::padded(columns.in_use), HUGE_VAL);
    columns.price[r] = 0;
    Nearest nearest{0, -1};
    std::int32_t passed = 0;
    for (std::int64_t from = r;; from = columns.position[nearest.column]) {
        if (breath.ends_after(static_cast<std::size_t>(columns.in_use))) return -1;
        nearest = relax(columns, positions.a[from], positions.scale * positions.d[from], nearest.distance - columns.price[from], from);
        const std::int64_t j = nearest.column;
        if (j < columns.levels) break;
        columns.passed[passed] = j, columns.passed_at[passed] = nearest.distance, columns.passed_dual[passed++] = columns.dual[j];
        columns.dual[j] = Columns::never, columns.distance[j] = HUGE_VAL;
    }
    raise_price(columns, positions, r, nearest.distance);
    for (std::int32_t p = 0; p < passed; ++p) {
        const double nearer = nearest.distance - columns.passed_at[p];
        raise_price(columns, positions, columns.position[columns.passed[p]], nearer);
        columns.dual[columns.passed[p]] = columns.passed_dual[p] - nearer;
    }
    return nearest.column;
}

// The candidate at a frontier takes the last position of the path there, and so on back to position r; the next one comes up.
XR_INLINE void augment(Columns& columns, const Candidates& candidates, std::int32_t r, std::int64_t end) {
    const std::int64_t taken = columns.candidate[end], next = taken + 1;
    std::int64_t j = columns.levels + r;
    columns.hold(j, taken, columns.worth[end], columns.score[end]);
    columns.via[j] = columns.via[end];
    if (next < candidates.first[end + 1])
        columns.hold(end, next, columns.worth[end], candidates.score[next]);
    else
        columns.dual[end] = Columns::never;
    for (std::int64_t p = -1; p != r;) {
        p = columns.via[j];
        columns.position[j] = p;
        std::swap(columns.column[p], j);
    }
}

// Raises f as far as (2) allows, after a path to frontier `end` from position r.
XR_INLINE void raise_free_dual(Columns& columns, const Positions& positions, std::int32_t r, std::int64_t end) {
    Doubles least = Doubles{} + HUGE_VAL;
    const double w = positions.scale * columns.worth[end], s = columns.score[end];
    for (std::int32_t p = 0; p <= r; p += 8) {
        const Doubles here = load_eight(positions.d + p) * w - load_eight(positions.a + p) * s - load_eight(columns.price + p);
        least = here < least ? here : least;
    }
    columns.slack[end] = columns.free_dual = HUGE_VAL;
    for (int lane = 0; lane < 8; ++lane) columns.slack[end] = std::min(columns.slack[end], least[lane]);
    for (std::int64_t l = 0; l < columns.levels; ++l)
        if (columns.dual[l] > Columns::never) columns.free_dual = std::min(columns.free_dual, columns.slack[l]);
    for (std::int64_t l = 0; l < columns.levels; ++l)
        if (columns.dual[l] > Columns::never) columns.dual[l] = columns.free_dual;
}

// Gives every position its taker in (1).
static XR_CLONES void assign(const Candidates& candidates, const Positions& positions, Columns& columns, QuietBreath& breath) {
    for (std::int32_t r = 0; r < positions.count; ++r) {
        const std::int64_t end = shortest_path(columns, positions, r, breath);
        if (end < 0) return;
        augment(columns, candidates, r, end);
        raise_free_dual(columns, positions, r, end);
    }
}

}  // namespace exactrank
