// The log likelihood, under the Plackett-Luce model, of the top of each query's ideal ranking (Tan et al. 2013, section 2.3):
//
//   sum over j < top of  s_j - log sum_{l >= j} exp s_l,    documents in ideal order, s = score + alpha slope             (1)
//
// It is concave in alpha; what is wanted is its slope and curvature there.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "support/elementary.hpp"
#include "support/sum_blocks.hpp"
#include "support/threads.hpp"

namespace exactrank {

struct IdealRankings {
    std::span<const double> score, slope;
    std::span<const std::int64_t> indptr;
    std::span<const std::int32_t> ideal;  // each query's documents, best first
    std::span<const std::int32_t> top;    // how many of them count
    std::span<const double> weight;
};

struct Curve {
    double slope = 0, curvature = 0;
};

// By blocks of queries, whose sums do not depend on the cut of the data into parts.
inline std::vector<Curve> likelihood_curves(const IdealRankings& data, double alpha, int threads) {
    auto documents = [&](std::size_t q) { return static_cast<std::size_t>(data.indptr[q + 1] - data.indptr[q]); };
    const std::vector<std::size_t> starts = sum_blocks(data.indptr.size() - 1, documents);
    std::vector<Curve> parts(starts.size() - 1);
    parallel_for(parts.size(), threads, [&](std::size_t b) {
        for (std::size_t q = starts[b]; q < starts[b + 1]; ++q) {
            if (data.top[q] == 0 || data.weight[q] == 0) continue;
            const std::int64_t begin = data.indptr[q], count = data.indptr[q + 1] - begin;
            auto score = [&](std::int64_t i) { return data.score[i] + alpha * data.slope[i]; };
            double most = -HUGE_VAL;
            for (std::int64_t i = begin; i < begin + count; ++i) most = std::max(most, score(i));
            double mass = 0, first = 0, second = 0;  // of exp s, and of it times the slope and its square
            for (std::int64_t j = count; j-- > 0;) {
                const std::int64_t i = begin + data.ideal[begin + j];
                const double chance = portable::exp(score(i) - most), slope = data.slope[i];
                mass += chance, first += chance * slope, second += chance * slope * slope;
                if (j >= data.top[q] || mass == 0) continue;
                const double mean = first / mass;
                parts[b].slope += data.weight[q] * (slope - mean);
                parts[b].curvature -= data.weight[q] * (second / mass - mean * mean);
            }
        }
    });
    return parts;
}

}  // namespace exactrank
