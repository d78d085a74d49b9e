// Linear algebra in double precision with one order of summation for every processor: no fused multiply-add, no library underneath.
//
// Sums over the entries of two vectors are taken in eight lanes, as in linear.hpp; all others term by term, and vectors hold eight results
// at a time. So the instruction set decides how many operations are done at once, and never in which order a sum is added up.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "models/linear.hpp"
#include "support/doubles.hpp"
#include "support/interrupt.hpp"
#include "support/matrix.hpp"

namespace exactrank {

// ---- products of matrices ----

constexpr std::size_t panel = 8;    // columns, or rows, that a product takes at a time
constexpr std::size_t depth = 256;  // terms of its sums that are packed at a time

using FourDoubles = double __attribute__((vector_size(32)));
using TwoDoubles = double __attribute__((vector_size(16)));

// out[r][c] += sum over k of left[k][r] right[k][c], for eight r and eight c, in vectors of some columns.
template <class Columns>
XR_INLINE void add_tile_by(const double* left, const double* right, std::size_t terms, double* out) {
    constexpr std::size_t width = sizeof(Columns) / sizeof(double);
    for (std::size_t first = 0; first < panel; first += width) {
        Columns sums[panel], v;
        for (std::size_t r = 0; r < panel; ++r) std::memcpy(&sums[r], out + r * panel + first, sizeof v);
        for (std::size_t k = 0; k < terms; ++k) {
            std::memcpy(&v, right + k * panel + first, sizeof v);
            for (std::size_t r = 0; r < panel; ++r) sums[r] += left[k * panel + r] * v;
        }
        for (std::size_t r = 0; r < panel; ++r) std::memcpy(out + r * panel + first, &sums[r], sizeof v);
    }
}
// Vectors as wide as those of the processor: GCC keeps wider ones in memory, which takes eight times as long.
#ifdef XR_VERSIONS
__attribute__((target("arch=x86-64-v4"))) inline void add_tile(const double* left, const double* right, std::size_t terms, double* out) {
    add_tile_by<Doubles>(left, right, terms, out);
}
__attribute__((target("arch=x86-64-v3"))) inline void add_tile(const double* left, const double* right, std::size_t terms, double* out) {
    add_tile_by<FourDoubles>(left, right, terms, out);
}
__attribute__((target("default")))
#endif
inline void add_tile(const double* left, const double* right, std::size_t terms, double* out) {
    add_tile_by<TwoDoubles>(left, right, terms, out);
}

// Some terms of a factor, in panels of eight: cells[(p * depth + k) * 8 + i] is entry p * 8 + i of term k, and 0 beyond the last.
class Packed {
public:
    explicit Packed(std::size_t width) : panels_((width + panel - 1) / panel), width_(width), cells_(panels_ * depth * panel) {}

    std::size_t panels() const { return panels_; }
    const double* at(std::size_t p) const { return cells_.data() + p * depth * panel; }
    // Terms are rows of x.
    void rows(const MatrixView<const double>& x, std::size_t first, std::size_t last) {
        for (std::size_t p = 0; p < panels_; ++p)
            for (std::size_t k = first; k < last; ++k) std::copy_n(x.row(k) + p * panel, filled(p), cell(p, k - first));
    }
    // Terms are columns of x.
    void columns(const MatrixView<const double>& x, std::size_t first, std::size_t last) {
        for (std::size_t i = 0; i < width_; ++i)
            for (std::size_t k = first; k < last; ++k) cell(i / panel, k - first)[i % panel] = x.row(i)[k];
    }

private:
    std::size_t filled(std::size_t p) const { return std::min(panel, width_ - p * panel); }
    double* cell(std::size_t p, std::size_t k) { return cells_.data() + (p * depth + k) * panel; }

    std::size_t panels_, width_;
    std::vector<double> cells_;
};

// The products of two packed factors, added up tile by tile; all of them, or those on and above the diagonal.
class Tiles {
public:
    Tiles(std::size_t rows, std::size_t columns) : columns_(columns), cells_(rows * columns * panel * panel) {}

    void add(const Packed& left, const Packed& right, std::size_t terms, bool upper) {
        for (std::size_t q = 0; q < right.panels(); ++q)
            for (std::size_t p = 0; p < (upper ? q + 1 : left.panels()); ++p) add_tile(left.at(p), right.at(q), terms, tile(p, q));
    }
    // Copies row i, from the panel `first` on.
    void row(std::size_t i, std::size_t first, std::size_t width, double* out) const {
        for (std::size_t q = first; q * panel < width; ++q)
            std::copy_n(tile(i / panel, q) + i % panel * panel, std::min(panel, width - q * panel), out + q * panel);
    }

private:
    const double* tile(std::size_t p, std::size_t q) const { return cells_.data() + (p * columns_ + q) * panel * panel; }
    double* tile(std::size_t p, std::size_t q) { return cells_.data() + (p * columns_ + q) * panel * panel; }

    std::size_t columns_;
    std::vector<double> cells_;
};

// out = x'x: sums over the rows of x, in their order.
inline void gram(const MatrixView<const double>& x, const MatrixView<double>& out) {
    Packed packed(x.width);
    Tiles tiles(packed.panels(), packed.panels());
    Breath breath;
    for (std::size_t first = 0; first < x.rows; first += depth) {
        const std::size_t last = std::min(x.rows, first + depth);
        breath.after((last - first) * x.width * x.width / 8);
        packed.rows(x, first, last);
        tiles.add(packed, packed, last - first, true);
    }
    for (std::size_t i = 0; i < x.width; ++i) {
        tiles.row(i, i / panel, x.width, out.row(i));
        for (std::size_t j = 0; j < i; ++j) out.row(i)[j] = out.row(j)[i];
    }
}

// out = a b: sums over the columns of a, in their order.
inline void product(const MatrixView<const double>& a, const MatrixView<const double>& b, const MatrixView<double>& out) {
    Breath breath;
    if (a.rows < 4) {  // not worth packing
        for (std::size_t i = 0; i < a.rows; ++i) {
            breath.after(a.width * b.width / 8);
            std::fill_n(out.row(i), out.width, 0.0);
            for (std::size_t k = 0; k < a.width; ++k) add_scaled(out.row(i), b.row(k), a.row(i)[k], b.width);
        }
        return;
    }
    Packed left(a.rows), right(b.width);
    Tiles tiles(left.panels(), right.panels());
    for (std::size_t first = 0; first < a.width; first += depth) {
        const std::size_t last = std::min(a.width, first + depth);
        breath.after((last - first) * a.rows * b.width / 8);
        left.columns(a, first, last);
        right.rows(b, first, last);
        tiles.add(left, right, last - first, false);
    }
    for (std::size_t i = 0; i < a.rows; ++i) tiles.row(i, 0, b.width, out.row(i));
}

// out_i = x_i . v
inline void matrix_vector(const MatrixView<const double>& x, std::span<const double> v, std::span<double> out) {
    for (std::size_t i = 0; i < x.rows; ++i) out[i] = dot(x.row(i), v.data(), x.width);
}

// ---- Cholesky ----

// a = L L' in place, with L below the diagonal and 0 above it; only the lower half of a is read. A row that depends on those before it, to
// rounding, gets an infinite diagonal: solutions have 0 there. So a semidefinite matrix has solutions, too.
inline void cholesky(const MatrixView<double>& a) {
    const std::size_t n = a.rows;
    const double least = static_cast<double>(n) * std::numeric_limits<double>::epsilon();
    Breath breath;
    for (std::size_t i = 0; i < n; ++i) {
        breath.after(i * i / 8 + 1);
        double* row = a.row(i);
        for (std::size_t j = 0; j < i; ++j) row[j] = (row[j] - dot(row, a.row(j), j)) / a.row(j)[j];
        const double pivot = row[i] - dot(row, row, i);
        row[i] = pivot > least * row[i] ? std::sqrt(pivot) : std::isnan(pivot) ? pivot : HUGE_VAL;
        std::fill(row + i + 1, row + n, 0.0);
    }
}

// x <- L^-1 x, for each column of x.
inline void solve_lower(const MatrixView<const double>& l, const MatrixView<double>& x) {
    Breath breath;
    for (std::size_t i = 0; i < l.rows; ++i) {
        breath.after(i * x.width / 8 + 1);
        for (std::size_t k = 0; k < i; ++k) add_scaled(x.row(i), x.row(k), -l.row(i)[k], x.width);
        for (std::size_t c = 0; c < x.width; ++c) x.row(i)[c] /= l.row(i)[i];
    }
}

// x <- L'^-1 x, for each column of x.
inline void solve_upper(const MatrixView<const double>& l, const MatrixView<double>& x) {
    Breath breath;
    for (std::size_t i = l.rows; i-- > 0;) {
        breath.after(i * x.width / 8 + 1);
        for (std::size_t c = 0; c < x.width; ++c) x.row(i)[c] /= l.row(i)[i];
        for (std::size_t k = 0; k < i; ++k) add_scaled(x.row(k), x.row(i), -l.row(i)[k], x.width);
    }
}

// ---- eigenvalues ----

// x <- c x - s y,  y <- s x + c y
static XR_CLONES void rotate(double* x, double* y, double c, double s, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        const double a = x[i], b = y[i];
        x[i] = c * a - s * b;
        y[i] = s * a + c * b;
    }
}

// The eigenvalues of a symmetric matrix and, as rows, its eigenvectors: Householder's reflections make it tridiagonal, and QL steps with
// Wilkinson's shift make that diagonal (Golub & Van Loan 2013, section 8.3).
class Eigen {
public:
    // Only the lower half of a is read, and destroyed; `vectors` gets the eigenvectors.
    Eigen(const MatrixView<double>& a, const MatrixView<double>& vectors) : vectors_(vectors), values_(a.rows), off_(a.rows) {
        tridiagonalise(a);
        for (std::size_t i = 0; i < values_.size(); ++i) split(i);
        sort();
    }
    std::vector<double>& values() { return values_; }

private:
    // Reflects by H_k = 1 - beta_k v_k v_k', where v_k lies below the diagonal of column k, until a is tridiagonal.
    void tridiagonalise(const MatrixView<double>& a) {
        const std::size_t n = a.rows;
        std::vector<std::vector<double>> reflections;
        std::vector<double> betas, w(n);
        Breath breath;
        for (std::size_t k = 0; k < n; ++k) {
            values_[k] = a.row(k)[k];
            if (k + 1 == n) break;
            const std::size_t size = n - k - 1;
            breath.after(size * size / 4 + 1);
            std::vector<double> v(size);
            for (std::size_t i = 0; i < size; ++i) v[i] = a.row(k + 1 + i)[k];
            const double beta = reflection(v, off_[k]);
            if (beta != 0) reflect(a, k + 1, v, beta, w);
            reflections.push_back(std::move(v));
            betas.push_back(beta);
        }
        // The rows of H_(n-2) ... H_0: each reflection from the right, the last one first.
        for (std::size_t i = 0; i < n; ++i) std::fill_n(vectors_.row(i), n, 0.0), vectors_.row(i)[i] = 1;
        for (std::size_t k = reflections.size(); k-- > 0;) {
            const std::vector<double>& v = reflections[k];
            breath.after(v.size() * v.size() / 4 + 1);
            for (std::size_t i = k + 1; i < n && betas[k] != 0; ++i) {
                double* row = vectors_.row(i) + k + 1;
                add_scaled(row, v.data(), -betas[k] * dot(row, v.data(), v.size()), v.size());
            }
        }
    }
    // Makes v the vector that reflects it onto its first axis, where its coordinate becomes `image`; returns 2 / |v|^2, or 0 where nothing is
    // to be done.
    static double reflection(std::vector<double>& v, double& image) {
        double largest = 0;
        for (std::size_t i = 1; i < v.size(); ++i) largest = std::max(largest, std::abs(v[i]));
        image = v[0];
        if (largest == 0) return 0;
        largest = std::max(largest, std::abs(v[0]));
        for (double& x : v) x /= largest;  // so that squares neither overflow nor vanish
        const double size = std::sqrt(dot(v.data(), v.data(), v.size())), sign = v[0] > 0 ? -1.0 : 1.0;
        image = sign * size * largest;
        v[0] -= sign * size;
        return 2 / dot(v.data(), v.data(), v.size());
    }
    // a <- H a H from row and column `first` on, in its lower half.
    static void reflect(const MatrixView<double>& a, std::size_t first, const std::vector<double>& v, double beta, std::vector<double>& w) {
        const std::size_t n = v.size();
        std::fill_n(w.begin(), n, 0.0);
        for (std::size_t i = 0; i < n; ++i) {  // w = a v, of which each row of the lower half gives its own part and a share of those before
            const double* row = a.row(first + i) + first;
            w[i] += dot(row, v.data(), i + 1);
            add_scaled(w.data(), row, v[i], i);
        }
        const double half = beta * beta / 2 * dot(w.data(), v.data(), n);
        for (std::size_t i = 0; i < n; ++i) w[i] = beta * w[i] - half * v[i];
        for (std::size_t i = 0; i < n; ++i) {
            double* row = a.row(first + i) + first;
            add_scaled(row, w.data(), -v[i], i + 1);
            add_scaled(row, v.data(), -w[i], i + 1);
        }
    }
    // QL steps until nothing is left beside the value i.
    void split(std::size_t i) {
        Breath breath;
        for (int step = 0;; ++step) {
            breath.after((values_.size() - i) * values_.size() / 4 + 1);
            std::size_t end = i;
            while (end + 1 < values_.size() && !negligible(end)) ++end;
            if (end == i) return;
            if (step == most_steps) throw std::invalid_argument("the eigenvalues of a matrix do not converge: it must hold finite numbers");
            ql_step(i, end);
        }
    }
    bool negligible(std::size_t i) const {
        const double size = std::abs(values_[i]) + std::abs(values_[i + 1]);
        return std::abs(off_[i]) <= std::numeric_limits<double>::epsilon() * size || std::abs(off_[i]) < std::numeric_limits<double>::min();
    }
    // One implicit QL step on the rows from first to last.
    void ql_step(std::size_t first, std::size_t last) {
        const double slant = (values_[first + 1] - values_[first]) / (2 * off_[first]);
        double g = values_[last] - values_[first] + off_[first] / (slant + std::copysign(length(slant, 1), slant));
        double s = 1, c = 1, moved = 0;
        for (std::size_t i = last; i-- > first;) {
            double f = s * off_[i];
            const double b = c * off_[i], r = length(f, g);
            off_[i + 1] = r;
            if (r == 0) {
                values_[i + 1] -= moved;
                off_[last] = 0;
                return;
            }
            s = f / r, c = g / r;
            g = values_[i + 1] - moved;
            const double t = (values_[i] - g) * s + 2 * c * b;
            moved = s * t;
            values_[i + 1] = g + moved;
            g = c * t - b;
            rotate(vectors_.row(i), vectors_.row(i + 1), c, s, vectors_.width);
        }
        values_[first] -= moved;
        off_[first] = g;
        off_[last] = 0;
    }
    static double length(double x, double y) {
        const double most = std::max(std::abs(x), std::abs(y)), least = std::min(std::abs(x), std::abs(y));
        return most == 0 ? 0 : most * std::sqrt(1 + least / most * (least / most));
    }
    void sort() {
        for (std::size_t i = 0; i + 1 < values_.size(); ++i) {  // by selection: each row moves once
            const std::size_t least = std::min_element(values_.begin() + i, values_.end()) - values_.begin();
            if (least == i) continue;
            std::swap(values_[i], values_[least]);
            std::swap_ranges(vectors_.row(i), vectors_.row(i) + vectors_.width, vectors_.row(least));
        }
    }
    static constexpr int most_steps = 60;

    MatrixView<double> vectors_;
    std::vector<double> values_, off_;  // the diagonal, and what is beside it
};

}  // namespace exactrank
