// The planes b_i + v_i . theta of one part of a sum of maxima, their dual variables alpha, and how weight moves among them.
//
// With h_i = b_i + v_i . theta, moving weight from a plane j to the highest plane i raises the dual, and changes h through the
// products of normals alone, so those are kept. j is the one whose move gains most (Fan, Chen & Lin 2005):
//
//     step = min(alpha_j, strength (h_i - h_j) / |v_i - v_j|^2),    j maximizes (h_i - h_j)^2 / |v_i - v_j|^2     (1)
//
// until the part's share of the distance between primal and dual, max_i h_i - sum_i alpha_i h_i, is small.              (2)
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "support/doubles.hpp"
#include "support/interrupt.hpp"

namespace exactrank {

// a . b, of a length that is a multiple of 8.
static XR_CLONES double product(const double* a, const double* b, std::size_t n) {
    Doubles even{}, odd{};
    std::size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        even += load_eight(a + j) * load_eight(b + j);
        odd += load_eight(a + j + 8) * load_eight(b + j + 8);
    }
    if (j < n) even += load_eight(a + j) * load_eight(b + j);
    return sum_of_eight(even + odd);
}

// to += share * of
static XR_CLONES void add_share(double share, const double* of, std::size_t n, double* to) {
    for (std::size_t j = 0; j < n; ++j) to[j] += share * of[j];
}

// The products v_i . v_j of a part's normals; row i begins at i * room.
struct Products {
    std::vector<double> cells;
    std::size_t room = 0;

    const double* row(std::size_t i) const { return cells.data() + i * room; }
    double* row(std::size_t i) { return cells.data() + i * room; }
    void make_room(std::size_t size) {
        if (size <= room) return;
        Products wider;
        wider.room = std::max(size, room + room / 2);
        wider.cells.resize(wider.room * wider.room);
        for (std::size_t i = 0; i < room; ++i) std::copy(row(i), row(i) + room, wider.row(i));
        *this = std::move(wider);
    }
};

// Moves weight within one part by (1) until its gap (2) is `enough` or that many moves are made; keeps h.
static XR_CLONES void move_weight(const Products& products, std::size_t size, double strength, double enough, std::size_t moves, double* alpha, double* h,
                                  QuietBreath& breath) {
    for (; moves > 0 && !breath.ends_after(2 * size); --moves) {
        std::size_t i = 0;
        double mean = 0;
        for (std::size_t k = 0; k < size; ++k) {
            mean += alpha[k] * h[k];
            if (h[k] > h[i]) i = k;
        }
        if (h[i] - mean <= enough) return;
        const double* from_i = products.row(i);
        std::size_t j = i;
        double most = 0, width = 1;
        for (std::size_t k = 0; k < size; ++k) {
            const double rise = h[i] - h[k];
            if (!(alpha[k] > 0 && rise > 0)) continue;
            // Normals that differ by rounding alone may seem to have a negative distance.
            const double distance = std::max(from_i[i] + products.row(k)[k] - 2 * from_i[k], std::numeric_limits<double>::min());
            if (rise * rise > most * distance) most = rise * rise / distance, width = distance, j = k;
        }
        if (j == i) return;
        const double step = std::min(alpha[j], strength * (h[i] - h[j]) / width);
        alpha[i] += step;
        alpha[j] -= step;
        const double *from_j = products.row(j), share = step / strength;
        for (std::size_t k = 0; k < size; ++k) h[k] -= share * (from_i[k] - from_j[k]);
    }
}

// The planes of one part.
struct Part {
    std::vector<std::shared_ptr<const double[]>> normal;  // shared by copies
    std::vector<double> offset, alpha;
    std::vector<std::int32_t> idle;  // at how many calls of `drop` in turn alpha has been 0
    Products products;
    std::size_t working = 0;  // so many planes come first that had weight when they were last ordered

    std::size_t size() const { return offset.size(); }

    void add(double b, std::shared_ptr<const double[]> v, std::size_t width) {
        const std::size_t n = size();
        products.make_room(n + 1);
        normal.push_back(std::move(v));
        offset.push_back(b), alpha.push_back(n == 0 ? 1.0 : 0.0), idle.push_back(0);
        for (std::size_t i = 0; i <= n; ++i) products.row(i)[n] = products.row(n)[i] = product(normal[i].get(), normal[n].get(), width);
    }
    void remove(std::size_t i) {
        exchange(i, size() - 1);
        normal.pop_back(), offset.pop_back(), alpha.pop_back(), idle.pop_back();
        working = 0;
    }
    // The planes that have weight first.
    void order() {
        working = 0;
        for (std::size_t i = 0; i < size(); ++i)
            if (alpha[i] > 0) exchange(i, working++);
    }

private:
    void exchange(std::size_t i, std::size_t j) {
        if (i == j) return;
        std::swap(normal[i], normal[j]), std::swap(offset[i], offset[j]), std::swap(alpha[i], alpha[j]), std::swap(idle[i], idle[j]);
        std::swap_ranges(products.row(i), products.row(i) + size(), products.row(j));
        for (std::size_t k = 0; k < size(); ++k) std::swap(products.row(k)[i], products.row(k)[j]);
    }
};

}  // namespace exactrank
