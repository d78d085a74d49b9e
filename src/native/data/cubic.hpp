// A polynomial of degree three in every variable and product of variables, at many points:
//
//   f(x) = sum_i x_i (a_i + sum_{j<=i} x_j (b_ij + sum_{k<=j} c_ijk x_k)).
//
// The coefficients stand in the order in which the sums meet them. Eight points are taken at a time, each summed in
// the same order whatever the instruction set.
#pragma once

#include <span>

#include "support/dispatch.hpp"
#include "support/matrix.hpp"
#include "support/threads.hpp"

namespace exactrank {

inline std::size_t cubic_terms(std::size_t d) { return d + d * (d + 1) / 2 + d * (d + 1) * (d + 2) / 6; }

using EightPoints = double __attribute__((vector_size(64)));

static XR_CLONES void cubic_block(const EightPoints* x, std::size_t d, const double* coefficient, EightPoints& out) {
    EightPoints cubic{};
    for (std::size_t i = 0; i < d; ++i) {
        EightPoints square = EightPoints{} + *coefficient++;
        for (std::size_t j = 0; j <= i; ++j) {
            EightPoints line = EightPoints{} + *coefficient++;
            for (std::size_t k = 0; k <= j; ++k) line += x[k] * *coefficient++;
            square += x[j] * line;
        }
        cubic += x[i] * square;
    }
    out = cubic;
}

inline void cubic(const MatrixView<const float>& points, std::span<const double> coefficients, int threads, std::span<double> out) {
    const std::size_t d = points.width;
    for_each_block(points.rows, 512, threads, [&](std::size_t first, std::size_t last) {
        std::vector<EightPoints> x(d);
        for (std::size_t eight = first; eight < last; eight += 8) {
            const std::size_t here = std::min<std::size_t>(8, last - eight);
            for (std::size_t j = 0; j < d; ++j)
                for (std::size_t p = 0; p < here; ++p) x[j][p] = points.cells[(eight + p) * d + j];
            EightPoints value;
            cubic_block(x.data(), d, coefficients.data(), value);
            for (std::size_t p = 0; p < here; ++p) out[eight + p] = value[p];
        }
    });
}

}  // namespace exactrank
