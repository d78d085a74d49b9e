// Scorers with parameters, forwards and backwards, on standardized features z = (x - mean) / scale:
//
//   linear:   s = sum_j w_j z_j                                                                                          (1)
//   network:  s = sum_u v_u a_u,    a_u = tanh(b_u + sum_j w_ju z_j)                                                     (2)
//
// The parameters are flat: w by feature, in (2) all units of a feature together, then b, then v. A constant added to all scores
// changes no ranking, so neither has one, and (1) leaves out the means. Units are computed eight at a time, so each document's
// score does not depend on what is scored beside it.
#pragma once

#include <span>

#include "models/linear.hpp"
#include "support/elementary.hpp"
#include "support/matrix.hpp"

namespace exactrank {

// Which scorer: none hidden is linear.
struct Net {
    std::vector<double> mean, inverse_scale;  // by feature
    std::size_t hidden = 0;

    std::size_t width() const { return mean.size(); }
    std::size_t padded() const { return (hidden + 7) / 8 * 8; }
    std::size_t size() const { return hidden ? (width() + 2) * hidden : width(); }
};

// Parameters, or a slope by them, with units padded to whole vectors.
struct Layers {
    explicit Layers(const Net& net) : w(net.width() * std::max<std::size_t>(net.padded(), 1)), b(net.padded()), v(net.padded()) {}

    void load(const Net& net, const double* theta) {
        each(*this, net, [&](double& own, std::size_t at) { own = theta[at]; });
    }
    std::vector<double> flat(const Net& net) const {
        std::vector<double> theta(net.size());
        each(*this, net, [&](const double& own, std::size_t at) { theta[at] = own; });
        return theta;
    }
    void clear() {
        for (auto* part : {&w, &b, &v}) std::fill(part->begin(), part->end(), 0.0);
    }
    std::vector<double> w, b, v;

private:
    template <class Self, class Visit>
    static void each(Self& self, const Net& net, Visit&& visit) {
        const std::size_t units = std::max<std::size_t>(net.hidden, 1), stride = std::max<std::size_t>(net.padded(), 1);
        for (std::size_t j = 0; j < net.width(); ++j)
            for (std::size_t u = 0; u < units; ++u) visit(self.w[j * stride + u], j * units + u);
        for (std::size_t u = 0; u < net.hidden; ++u) {
            visit(self.b[u], net.width() * units + u);
            visit(self.v[u], (net.width() + 1) * units + u);
        }
    }
};

static XR_CLONES void standardize(const float* x, const double* mean, const double* inverse, std::size_t rows, std::size_t width, double* z) {
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < width; ++j) z[i * width + j] = (static_cast<double>(x[i * width + j]) - mean[j]) * inverse[j];
}

// The eight units from `unit` on of R documents.
template <int R>
XR_INLINE void activate(const Layers& layers, const double* z, std::size_t width, std::size_t padded, std::size_t unit, double* active) {
    Doubles sums[R];
    for (int r = 0; r < R; ++r) sums[r] = load_eight(layers.b.data() + unit);
    for (std::size_t j = 0; j < width; ++j) {
        const Doubles w = load_eight(layers.w.data() + j * padded + unit);
        for (int r = 0; r < R; ++r) sums[r] += z[r * width + j] * w;
    }
    for (int r = 0; r < R; ++r) {
        const Doubles a = portable::tanh(sums[r]);
        std::memcpy(active + r * padded + unit, &a, sizeof a);
    }
}

static XR_CLONES void forward(const Layers& layers, const double* z, std::size_t rows, std::size_t width, std::size_t padded, double* active, double* score) {
    for (std::size_t unit = 0; unit < padded; unit += 8) {
        std::size_t i = 0;
        for (; i + 4 <= rows; i += 4) activate<4>(layers, z + i * width, width, padded, unit, active + i * padded);
        for (; i < rows; ++i) activate<1>(layers, z + i * width, width, padded, unit, active + i * padded);
    }
    for (std::size_t i = 0; i < rows; ++i) {
        Doubles sum{};
        for (std::size_t unit = 0; unit < padded; unit += 8) sum += load_eight(layers.v.data() + unit) * load_eight(active + i * padded + unit);
        score[i] = sum_of_eight(sum);
    }
}

// Adds the slope by the eight units from `unit` on, of R documents with their slopes by score.
template <int R>
XR_INLINE void pull(const Layers& layers, const double* z, const double* active, const double* slope, std::size_t width, std::size_t padded, std::size_t unit,
                    Layers& sum) {
    Doubles g[R], bias = load_eight(sum.b.data() + unit), output = load_eight(sum.v.data() + unit);
    const Doubles v = load_eight(layers.v.data() + unit);
    for (int r = 0; r < R; ++r) {
        const Doubles a = load_eight(active + r * padded + unit);
        g[r] = slope[r] * v * (1.0 - a * a);
        bias += g[r];
        output += slope[r] * a;
    }
    std::memcpy(sum.b.data() + unit, &bias, sizeof bias);
    std::memcpy(sum.v.data() + unit, &output, sizeof output);
    for (std::size_t j = 0; j < width; ++j) {
        double* const at = sum.w.data() + j * padded + unit;
        Doubles w = load_eight(at);
        for (int r = 0; r < R; ++r) w += z[r * width + j] * g[r];
        std::memcpy(at, &w, sizeof w);
    }
}

static XR_CLONES void backward(const Layers& layers, const double* z, const double* active, const double* slope, std::size_t rows, std::size_t width,
                               std::size_t padded, Layers& sum) {
    for (std::size_t unit = 0; unit < padded; unit += 8) {
        std::size_t i = 0;
        for (; i + 4 <= rows; i += 4) pull<4>(layers, z + i * width, active + i * padded, slope + i, width, padded, unit, sum);
        for (; i < rows; ++i) pull<1>(layers, z + i * width, active + i * padded, slope + i, width, padded, unit, sum);
    }
}

// Documents on their way through a net and back: room that is used again.
class Pass {
public:
    explicit Pass(const Net& net) : net_(net), raw_(net.hidden ? 0 : net.width()) {}

    // Takes up parameters, which must stay as they are while documents pass.
    void take_up(const Layers& layers) {
        layers_ = &layers;
        for (std::size_t j = 0; j < raw_.size(); ++j) raw_[j] = layers.w[j] * net_.inverse_scale[j];
    }
    // Scores of `rows` documents, whose features and activations are kept for `back`.
    void score(const float* x, std::size_t rows, double* score) {
        const std::size_t width = net_.width(), padded = net_.padded();
        x_ = x, rows_ = rows;
        if (!net_.hidden) {
            for (std::size_t i = 0; i < rows; ++i) score[i] = dot(x + i * width, raw_.data(), width);
            return;
        }
        z_.resize(rows * width);
        active_.resize(rows * padded);
        standardize(x, net_.mean.data(), net_.inverse_scale.data(), rows, width, z_.data());
        in_strips(rows, [&](std::size_t i, std::size_t count) {
            forward(*layers_, z_.data() + i * width, count, width, padded, active_.data() + i * padded, score + i);
        });
    }
    // Adds to `sum` the slope of a function whose slopes by the scores are given; `in_parameters` makes it one by the parameters.
    void back(const double* slope, Layers& sum) const {
        const std::size_t width = net_.width();
        const std::size_t padded = net_.padded();
        if (net_.hidden)
            return in_strips(rows_, [&](std::size_t i, std::size_t count) {
                backward(*layers_, z_.data() + i * width, active_.data() + i * padded, slope + i, count, width, padded, sum);
            });
        for (std::size_t i = 0; i < rows_; ++i)
            if (slope[i] != 0) add_scaled(sum.w.data(), x_ + i * width, slope[i], width);
    }
    void in_parameters(Layers& sum) const {
        for (std::size_t j = 0; j < raw_.size(); ++j) sum.w[j] *= net_.inverse_scale[j];
    }
    const std::vector<double>& activations() const { return active_; }

private:
    // Calls body(first, count) for all rows, in blocks that let long queries breathe; each unit's sums are taken in the same order.
    template <class Body>
    void in_strips(std::size_t rows, Body&& body) const {
        constexpr std::size_t strip = 4096;  // a multiple of the rows that go together
        for (std::size_t first = 0; first < rows; first += strip) {
            if (first > 0) breathe();
            body(first, std::min(strip, rows - first));
        }
    }
    const Net& net_;
    const Layers* layers_ = nullptr;
    const float* x_ = nullptr;
    std::size_t rows_ = 0;
    std::vector<double> raw_, z_, active_;  // raw: weights of unscaled features, where the net is linear
};

constexpr std::size_t rows_per_pass = 256;

// Scores of all documents; `active`, unless null, gets the activations of (2), a row a document.
inline void net_scores(const Net& net, std::span<const double> theta, const MatrixView<const float>& x, int threads, std::span<double> score,
                       std::span<double> active) {
    Layers layers(net);
    layers.load(net, theta.data());
    for_each_block(x.rows, rows_per_pass * 16, threads, [&](std::size_t first, std::size_t last) {
        Pass pass(net);
        pass.take_up(layers);
        for (std::size_t i = first; i < last; i += rows_per_pass) {
            const std::size_t count = std::min(rows_per_pass, last - i);
            pass.score(x.row(i), count, score.data() + i);
            for (std::size_t r = 0; !active.empty() && r < count; ++r)
                std::copy_n(pass.activations().data() + r * net.padded(), net.hidden, active.data() + (i + r) * net.hidden);
        }
    });
}

}  // namespace exactrank
