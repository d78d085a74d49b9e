// Scores of several linear models at once, so that the features are read once: what optimizers by values ask.
//
// Each product is added up as `dot` does it, in eight lanes, so it has the same bits as if it were alone. Features are filled
// up with zeros to whole vectors, which adds 0 to sums that are never -0: no bit changes.
#pragma once

#include <span>

#include "models/linear.hpp"
#include "support/doubles.hpp"
#include "support/matrix.hpp"

namespace exactrank {

using Floats = float __attribute__((vector_size(32)));

// Weight vectors, filled up; eight weights of each model in turn, where whole vectors lie within cache lines.
class Models {
public:
    explicit Models(const MatrixView<const double>& w) : models_(w.rows), width_(w.width), cells_((width_ + 7) / 8 * models_ * 8 + 7) {
        eights_ = cells_.data() + (64 - reinterpret_cast<std::uintptr_t>(cells_.data()) % 64) % 64 / sizeof(double);
        for (std::size_t m = 0; m < models_; ++m)
            for (std::size_t j = 0; j < width_; ++j) eights_[(j / 8 * models_ + m) * 8 + j % 8] = w.row(m)[j];
    }
    Models(const Models&) = delete;
    std::size_t count() const { return models_; }
    std::size_t width() const { return width_; }
    // The weights that model m gives the eight features from j on.
    const double* eight(std::size_t j, std::size_t m) const { return eights_ + j * models_ + m * 8; }

private:
    std::size_t models_, width_;
    std::vector<double> cells_;
    double* eights_;
};

template <int M>
XR_INLINE void add_eight(const float* x, const double* w, Doubles (&sums)[M]) {
    Floats eight;
    std::memcpy(&eight, x, sizeof eight);
    const Doubles v = __builtin_convertvector(eight, Doubles);
    for (int m = 0; m < M; ++m) sums[m] += v * load_eight(w + m * 8);
}

// The products of a row with M models from `first` on; out[m * stride] gets them.
template <int M>
XR_INLINE void dots(const float* x, const Models& models, std::size_t first, double* out, std::size_t stride) {
    constexpr std::size_t ahead = 1024;
    const std::size_t width = models.width();
    Doubles sums[M] = {};
    std::size_t j = 0;
    for (; j + 8 <= width; j += 8) {
        __builtin_prefetch(x + j + ahead);  // with this many sums the processor no longer sees that far by itself
        add_eight<M>(x + j, models.eight(j, first), sums);
    }
    if (j < width) {
        float rest[8] = {};
        std::copy(x + j, x + width, rest);
        add_eight<M>(rest, models.eight(j, first), sums);
    }
    for (int m = 0; m < M; ++m) out[m * stride] = sum_of_eight(sums[m]);
}

static XR_CLONES void row_products(const float* x, const Models& models, double* out, std::size_t stride) {
    std::size_t m = 0;
    for (; m + 4 <= models.count(); m += 4) dots<4>(x, models, m, out + m * stride, stride);
    for (; m + 2 <= models.count(); m += 2) dots<2>(x, models, m, out + m * stride, stride);
    for (; m < models.count(); ++m) dots<1>(x, models, m, out + m * stride, stride);
}

// out[m * rows + i]: the score of row i by row m of the weights.
inline void products(const MatrixView<const float>& x, const MatrixView<const double>& weights, int threads, std::span<double> out) {
    const Models models(weights);
    for_each_block(x.rows, std::max<std::size_t>(1, (1 << 18) / std::max<std::size_t>(1, x.width)), threads, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) row_products(x.row(i), models, out.data() + i, x.rows);
    });
}

}  // namespace exactrank
