// Scores of several linear models at once, so that the features are read once: what optimizers by values ask.
//
// Each product is added up as `dot` does it, in eight lanes, so it has the same bits as if it were alone. Features are filled
// up with zeros to whole vectors, which adds 0 to sums that are never -0: no bit changes.
#pragma once

#include "doubles.hpp"
#include "linear.hpp"

namespace exactrank {

using Floats = float __attribute__((vector_size(32)));

// Weight vectors, filled up; eight weights of each model in turn, where whole vectors lie within cache lines.
class Models {
public:
    Models(const double* w, std::size_t models, std::size_t width) : models_(models), width_(width), cells_((width + 7) / 8 * models * 8 + 7) {
        eights_ = cells_.data() + (64 - reinterpret_cast<std::uintptr_t>(cells_.data()) % 64) % 64 / sizeof(double);
        for (std::size_t m = 0; m < models; ++m)
            for (std::size_t j = 0; j < width; ++j) eights_[(j / 8 * models + m) * 8 + j % 8] = w[m * width + j];
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

// out[m * rows + i]: the score of row i by the weights w[m * width ...].
inline void products(const float* x, std::size_t rows, std::size_t width, const double* w, std::size_t count, int threads, double* out) {
    const Models models(w, count, width);
    for_each_block(rows, std::max<std::size_t>(1, (1 << 18) / std::max<std::size_t>(1, width)), threads, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) row_products(x + i * width, models, out + i, rows);
    });
}

}  // namespace exactrank
