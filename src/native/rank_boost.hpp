// What RankBoost asks of pairs and thresholds (Freund, Iyer, Schapire & Singer 2003). With H the scores, over the pairs of unlike
// grade of each query:
//
//   loss(H) = sum_q w_q sum_{i, j: y_i < y_j} e^{H_i - H_j},    so scaled that loss(0) = 1                                  (1)
//   force_k = w_q [e^{-H_k} sum_{i: y_i < y_k} e^{H_i}  -  e^{H_k} sum_{j: y_j > y_k} e^{-H_j}]                            (2)
//   edge(h) = sum_k force_k h(x_k) / loss(H),    h(x) = [x_f > t]                                                          (3)
//
// A pair weighs what it adds to (1), so (2) is the weight of the pairs in which k is the better one less that of the others, and (3)
// the mean of h(better) - h(worse). All sums over pairs go through sums over the grades of a query: no pair is ever looked at, and
// a round takes O(documents x features) for all thresholds. Pairs that are given beside the grades are looked at one by one, each times
// its weight.
#pragma once

#include <memory>
#include <span>

#include "objective.hpp"
#include "preferences.hpp"
#include "thresholds.hpp"
#include "vector_math.hpp"

namespace exactrank {

// The threshold with the largest edge to either side; none has any: threshold -1.
struct BestEdge {
    double edge = 0;
    std::size_t feature = 0;
    std::int64_t threshold = -1;
};

// Sums over one query's documents, by level of grade.
struct LevelSums {
    std::vector<double> rise, fall;  // of e^{H - c} and of e^{c - H}, by document
    std::vector<double> below, above;
};

// One query's part of (1) and, in `force`, of (2), without w. Scores are taken from the middle c of their range, which changes no
// difference and keeps the exponentials in theirs.
inline double pair_forces(const double* score, const std::int32_t* level, std::size_t n, std::size_t levels, LevelSums& sums, double* force) {
    const Range range = range_of(score, n);
    sums.rise.resize(n + 8), sums.fall.resize(n);
    sums.below.assign(levels + 1, 0.0), sums.above.assign(levels + 1, 0.0);
    double *rise = sums.rise.data(), *fall = sums.fall.data(), *below = sums.below.data(), *above = sums.above.data();
    exponentials(score, n, range.least + (range.most - range.least) / 2, rise);
    for (std::size_t i = 0; i < n; ++i) fall[i] = 1.0 / rise[i];
    for (std::size_t i = 0; i < n; ++i) below[level[i] + 1] += rise[i], above[level[i]] += fall[i];
    double loss = 0;
    for (std::size_t l = 1; l < levels; ++l) below[l] += below[l - 1], loss += above[l] * below[l];
    for (std::size_t l = levels; l-- > 0;) above[l] += above[l + 1];
    for (std::size_t i = 0; i < n; ++i) force[i] = fall[i] * below[level[i]] - rise[i] * above[level[i] + 1];
    return loss;
}

// What given pairs add to the loss and, in `force`, to (2); after `pair_forces`, whose exponentials it reads.
inline double given_forces(std::span<const Preference> pairs, const LevelSums& sums, double* force) {
    double loss = 0;
    Breath breath;
    for (const Preference& pair : pairs) {
        const double own = pair.weight * sums.fall[pair.better] * sums.rise[pair.worse];
        loss += own, force[pair.better] += own, force[pair.worse] -= own;
        breath.after(4);
    }
    return loss;
}

// The best threshold by (3) times the loss among those of a feature, from the forces and bins of n documents.
template <class Bin>
BestEdge best_threshold(const Bin* bin, const double* force, std::size_t n, std::size_t thresholds, std::vector<double>& room) {
    constexpr std::size_t turns = sizeof(Bin) == 1 ? 4 : 1;  // neighbours often share a bin, and would wait for each other
    room.assign(turns * (thresholds + 1), 0.0);
    double* sums = room.data();
    std::size_t i = 0;
    for (; i + turns <= n; i += turns)
        for (std::size_t turn = 0; turn < turns; ++turn) sums[turns * bin[i + turn] + turn] += force[i + turn];
    for (; i < n; ++i) sums[turns * bin[i]] += force[i];
    BestEdge best;
    double beyond = 0;
    for (std::size_t t = thresholds; t-- > 0;) {
        for (std::size_t turn = 0; turn < turns; ++turn) beyond += sums[turns * (t + 1) + turn];
        if (std::abs(beyond) > std::abs(best.edge)) best.edge = beyond, best.threshold = static_cast<std::int64_t>(t);
    }
    return best;
}

class RankBoost {
public:
    RankBoost(Bins&& bins, std::span<const double> grades, const Queries& queries, std::shared_ptr<const Preferences> preferences)
        : bins_(std::move(bins)),
          preferences_(std::move(preferences)),
          indptr_(queries.indptr.begin(), queries.indptr.end()),
          share_(queries.weight.begin(), queries.weight.end()),
          levels_(queries.count()),
          level_(bins_.rows()) {
        double all = 0;
        Breath breath;
        for (std::size_t q = 0; q < share_.size(); ++q) {
            const auto begin = static_cast<std::size_t>(indptr_[q]), count = static_cast<std::size_t>(indptr_[q + 1]) - begin;
            all += share_[q] * (place(q, grades.subspan(begin, count)) + (preferences_ ? preferences_->total(q) : 0.0));
            breath.after(64 * count);
        }
        for (double& share : share_) share /= all;
    }

    const Bins& bins() const { return bins_; }

    // (1), and the largest (3).
    std::pair<double, BestEdge> best(std::span<const double> score, int threads) const {
        std::vector<double> force(bins_.rows()), losses(share_.size());
        for_each_query<LevelSums>(indptr_, threads, [&](LevelSums& sums, std::size_t q) {
            const std::int64_t begin = indptr_[q], end = indptr_[q + 1];
            losses[q] = pair_forces(score.data() + begin, &level_[begin], end - begin, levels_[q], sums, &force[begin]);
            if (preferences_) losses[q] += given_forces(preferences_->of(q), sums, &force[begin]);
            losses[q] *= share_[q];
            for (std::int64_t i = begin; i < end; ++i) force[i] *= share_[q];
        });
        double loss = 0;
        for (const double each : losses) loss += each;
        BestEdge best = best_of_all(force, threads);
        best.edge /= loss;
        return {loss, best};
    }

    // The scores after `alpha` was added to those of the documents beyond a threshold.
    void move(std::span<const double> score, std::size_t feature, std::size_t threshold, double alpha, std::span<double> out) const {
        bins_.with_column(feature, [&](const auto* bin) {
            for (std::size_t i = 0; i < bins_.rows(); ++i) out[i] = score[i] + (bin[i] > threshold ? alpha : 0.0);
        });
    }

private:
    // Numbers the grades of a query from the least up, and gives the number of its pairs.
    double place(std::size_t q, std::span<const double> grade) {
        const std::size_t begin = indptr_[q], n = grade.size();
        std::vector<double> rising(grade.begin(), grade.end());
        std::sort(rising.begin(), rising.end());
        double pairs = 0;
        for (std::size_t i = 0; i < n; ++i) pairs += std::lower_bound(rising.begin(), rising.end(), grade[i]) - rising.begin();
        rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
        for (std::size_t i = 0; i < n; ++i)
            level_[begin + i] = static_cast<std::int32_t>(std::lower_bound(rising.begin(), rising.end(), grade[i]) - rising.begin());
        levels_[q] = rising.size();
        return pairs;
    }
    BestEdge best_of_all(const std::vector<double>& force, int threads) const {
        const std::size_t n = bins_.rows(), width = bins_.width();
        std::vector<BestEdge> found(width);
        for_each_block(width, std::max<std::size_t>(1, (1 << 17) / n), threads, [&](std::size_t first, std::size_t last) {
            std::vector<double> room;
            for (std::size_t j = first; j < last; ++j)
                found[j] = bins_.with_column(j, [&](const auto* bin) { return best_threshold(bin, force.data(), n, bins_.thresholds(j).size(), room); });
        });
        BestEdge best;
        for (std::size_t j = 0; j < width; ++j)
            if (std::abs(found[j].edge) > std::abs(best.edge)) best = {found[j].edge, j, found[j].threshold};
        return best;
    }

    Bins bins_;
    std::shared_ptr<const Preferences> preferences_;  // null: none
    std::vector<std::int64_t> indptr_;
    std::vector<double> share_;        // w of (1)
    std::vector<std::size_t> levels_;  // how many grades a query has
    std::vector<std::int32_t> level_;  // of each document
};

}  // namespace exactrank
