// An objective as a function of a net's parameters: its value and slope, and a pass of updates query by query.
#pragma once

#include <span>

#include "models/net.hpp"
#include "objectives/objective.hpp"
#include "support/elementary.hpp"
#include "support/sum_blocks.hpp"

namespace exactrank {

struct Task {
    const Net& net;
    const Objective& objective;
    MatrixView<const float> x;
    Queries queries;

    const float* rows(std::size_t q) const { return x.row(static_cast<std::size_t>(queries.indptr[q])); }
    std::size_t documents(std::size_t q) const { return static_cast<std::size_t>(queries.indptr[q + 1] - queries.indptr[q]); }
};

// Queries on their way: scores, slopes by them, slopes by the parameters.
class QueryPass {
public:
    explicit QueryPass(const Task& task) : task_(task), pass_(task.net), sum_(task.net) {}

    // Begins a sum over queries.
    void begin(const Layers& layers) {
        pass_.take_up(layers);
        sum_.clear();
    }
    // Adds the query's slope, times its weight, to the sum, and returns its value, times its weight, where that is wanted.
    double add(std::size_t q, bool with_value) {
        const std::size_t n = task_.documents(q);
        scores_.resize(n);
        slopes_.resize(n);
        pass_.score(task_.rows(q), n, scores_.data());
        double value = 0;
        task_.objective.answer(task_.queries.scored(q, scores_.data()), scratch_, {with_value ? &value : nullptr, slopes_.data(), nullptr});
        for (double& slope : slopes_) slope *= task_.queries.weight[q];
        pass_.back(slopes_.data(), sum_);
        return value * task_.queries.weight[q];
    }
    const Layers& end() {
        pass_.in_parameters(sum_);
        return sum_;
    }

private:
    const Task& task_;
    Pass pass_;
    Layers sum_;
    Scratch scratch_;
    std::vector<double> scores_, slopes_;
};

struct Steepness {
    double value = 0;
    std::vector<double> slope;  // by the parameters
};

// Some queries, and the wide block of each.
struct Chosen {
    std::span<const std::int64_t> query, wide;
};

// The sums over each block of `chosen` queries.
inline std::vector<Steepness> steepness_by_block(const Task& task, std::span<const double> theta, const Chosen& chosen, int threads) {
    std::size_t all = 0;
    const auto documents = [&](std::size_t i) { return task.documents(static_cast<std::size_t>(chosen.query[i])); };
    const std::vector<std::size_t> starts = sum_blocks(chosen.query.size(), documents, [&](std::size_t i) { return chosen.wide[i]; });
    for (std::size_t i = 0; i < chosen.query.size(); ++i) all += documents(i);
    const int busy = static_cast<int>(std::min<std::size_t>(threads, 1 + all / documents_per_block));  // few documents are not worth a thread
    Layers layers(task.net);
    layers.load(task.net, theta.data());
    std::vector<Steepness> parts(starts.size() - 1);
    const std::size_t at_once = std::max<std::size_t>(1, parts.size() / (1 + all / documents_per_block));  // blocks, which share a pass
    for_each_block(parts.size(), at_once, task.objective.is_parallel() ? busy : 1, [&](std::size_t first, std::size_t last) {
        QueryPass pass(task);
        for (std::size_t b = first; b < last; ++b) {
            pass.begin(layers);
            for (std::size_t i = starts[b]; i < starts[b + 1]; ++i) parts[b].value += pass.add(static_cast<std::size_t>(chosen.query[i]), true);
            parts[b].slope = pass.end().flat(task.net);
        }
    });
    return parts;
}

// The sums over `chosen` queries: those of the blocks, added in order.
inline Steepness steepness(const Task& task, std::span<const double> theta, const Chosen& chosen, int threads) {
    Steepness total{0, std::vector<double>(task.net.size())};
    for (const Steepness& part : steepness_by_block(task, theta, chosen, threads)) {
        total.value += part.value;
        for (std::size_t k = 0; k < total.slope.size(); ++k) total.slope[k] += part.slope[k];
    }
    return total;
}

// The value and the slope by the parameters of each of `chosen` queries: a row a query.
inline void steepness_by_query(const Task& task, std::span<const double> theta, std::span<const std::int64_t> chosen, int threads, std::span<double> values,
                               std::span<double> slopes) {
    constexpr std::size_t queries_per_block = 64;
    Layers layers(task.net);
    layers.load(task.net, theta.data());
    for_each_block(chosen.size(), queries_per_block, task.objective.is_parallel() ? threads : 1, [&](std::size_t first, std::size_t last) {
        QueryPass pass(task);
        for (std::size_t i = first; i < last; ++i) {
            pass.begin(layers);
            values[i] = pass.add(static_cast<std::size_t>(chosen[i]), true);
            const std::vector<double> slope = pass.end().flat(task.net);
            std::copy(slope.begin(), slope.end(), slopes.data() + i * slope.size());
        }
    });
}

static XR_CLONES void step_along(const double* slope, std::size_t n, double rate, double keep, double* own) {
    for (std::size_t k = 0; k < n; ++k) own[k] = keep * own[k] + rate * slope[k];
}

inline void step_along(const Layers& slope, double rate, double keep, Layers& layers) {
    step_along(slope.w.data(), slope.w.size(), rate, keep, layers.w.data());
    step_along(slope.b.data(), slope.b.size(), rate, keep, layers.b.data());
    step_along(slope.v.data(), slope.v.size(), rate, keep, layers.v.data());
}

struct Updates {
    std::span<const std::int64_t> order;  // of the queries
    double rate, decay;
};

// theta <- (1 - rate decay) theta + rate slope_q for one query q after the other.
inline std::vector<double> pass_over(const Task& task, std::span<const double> theta, const Updates& updates) {
    Layers layers(task.net);
    layers.load(task.net, theta.data());
    QueryPass pass(task);
    Breath breath;
    for (std::size_t i = 0; i < updates.order.size(); ++i) {
        breath.after(64 * task.documents(static_cast<std::size_t>(updates.order[i])));
        pass.begin(layers);
        pass.add(static_cast<std::size_t>(updates.order[i]), false);
        step_along(pass.end(), updates.rate, 1 - updates.rate * updates.decay, layers);
    }
    return layers.flat(task.net);
}

// The same for RankNet as it was first trained (V1): each pair of unlike grade goes forwards and backwards by itself, and the
// sum over a query's pairs makes its update.
inline std::vector<double> pass_over_pairs(const Task& task, std::span<const double> grades, std::span<const double> theta, const Updates& updates) {
    Layers layers(task.net), slope(task.net);
    layers.load(task.net, theta.data());
    Pass upper(task.net), lower(task.net);
    Breath breath;
    for (std::size_t i = 0; i < updates.order.size(); ++i) {
        const auto q = static_cast<std::size_t>(updates.order[i]);
        const std::size_t n = task.documents(q), width = task.net.width();
        const double* grade = grades.data() + task.queries.indptr[q];
        slope.clear();
        upper.take_up(layers);
        lower.take_up(layers);
        for (std::size_t a = 0; a < n; ++a) {
            breath.after(4 * n * task.net.size());
            for (std::size_t b = 0; b < n; ++b) {
                if (!(grade[a] > grade[b])) continue;
                double better, worse;
                upper.score(task.rows(q) + a * width, 1, &better);
                lower.score(task.rows(q) + b * width, 1, &worse);
                const double force = task.queries.weight[q] / (1 + portable::exp(better - worse)), back = -force;
                upper.back(&force, slope);
                lower.back(&back, slope);
            }
        }
        upper.in_parameters(slope);
        step_along(slope, updates.rate, 1 - updates.rate * updates.decay, layers);
    }
    return layers.flat(task.net);
}

}  // namespace exactrank
