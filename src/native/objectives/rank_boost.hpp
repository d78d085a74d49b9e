// What RankBoost asks of pairs and thresholds (Freund, Iyer, Schapire & Singer 2003). With H the scores, over the pairs of unlike
// grade of each query:
//
//   loss(H) = sum_q w_q sum_{i, j: y_i < y_j} e^{H_i - H_j},    so scaled that loss(0) = 1                                  (1)
//   force_k = w_q [e^{-H_k} sum_{i: y_i < y_k} e^{H_i}  -  e^{H_k} sum_{j: y_j > y_k} e^{-H_j}]                            (2)
//   edge(h) = sum_k force_k h(x_k) / loss(H),    h(x) = [x_f > t]                                                          (3)
//
// The sums of forces are taken in fixed point, so that they are the same in any order: of threads, or of machines that hold a part of the
// documents each. The sizes of all forces add up to at most twice the loss, which says in which unit.
//
// A pair weighs what it adds to (1), so (2) is the weight of the pairs in which k is the better one less that of the others, and (3)
// the mean of h(better) - h(worse). All sums over pairs go through sums over the grades of a query: no pair is ever looked at, and
// a round takes O(documents x features) for all thresholds. Pairs that are given beside the grades are looked at one by one, each times
// its weight.
#pragma once

#include <memory>
#include <span>

#include "measures/preferences.hpp"
#include "models/thresholds.hpp"
#include "objectives/objective.hpp"
#include "support/elementary.hpp"

namespace exactrank {

// Sums over one query's documents, by level of grade.
struct LevelSums {
    std::vector<double> rise, fall;  // of e^{H - c} and of e^{c - H}, by document
    std::vector<double> below, above;
    std::vector<double> force;  // by document
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

// Adds the forces of n documents, in fixed point, to the `sums` of their bins.
template <class Bin>
void add_by_bin(const Bin* bin, const std::uint64_t* force, std::size_t n, std::span<std::uint64_t> sums, std::vector<std::uint64_t>& room) {
    constexpr std::size_t turns = sizeof(Bin) == 1 ? 4 : 1;  // neighbors often share a bin, and would wait for each other
    room.assign(turns * sums.size(), 0);
    std::size_t i = 0;
    for (; i + turns <= n; i += turns)
        for (std::size_t turn = 0; turn < turns; ++turn) room[turns * bin[i + turn] + turn] += force[i + turn];
    for (; i < n; ++i) room[turns * bin[i]] += force[i];
    for (std::size_t b = 0; b < room.size(); ++b) sums[b / turns] += room[b];
}

class RankBoost {
public:
    // `queries` have as weights what a pair of theirs is of all.
    RankBoost(ThresholdBins&& bins, std::span<const double> grades, const Queries& queries, std::shared_ptr<const Preferences> preferences)
        : bins_(std::move(bins)),
          preferences_(std::move(preferences)),
          indptr_(queries.indptr.begin(), queries.indptr.end()),
          share_(queries.weight.begin(), queries.weight.end()),
          levels_(queries.count()),
          level_(bins_.rows()) {
        Breath breath;
        for (std::size_t q = 0; q < share_.size(); ++q) {
            const auto begin = static_cast<std::size_t>(indptr_[q]), count = static_cast<std::size_t>(indptr_[q + 1]) - begin;
            place(q, grades.subspan(begin, count));
            breath.after(64 * count);
        }
    }

    std::size_t rows() const { return bins_.rows(); }
    std::size_t queries() const { return share_.size(); }
    // How many bins all features have.
    std::size_t bins() const {
        std::size_t all = bins_.width();
        for (std::size_t j = 0; j < bins_.width(); ++j) all += bins_.thresholds(j);
        return all;
    }

    // Of each query its part of (1), and of each bin of each feature the sum of (2) in units of 2^(exponent - 60), where (1) is below
    // 2^exponent; of larger losses, and of those that are no numbers, the sums say nothing. Negative ones are their two's complement.
    void sums(std::span<const double> score, int exponent, int threads, std::span<double> losses, std::span<std::uint64_t> sums) const {
        std::vector<std::uint64_t> forces(rows());
        const double unit = std::ldexp(1.0, exponent - 60), most = std::ldexp(1.0, exponent + 1);
        for_each_query<LevelSums>(indptr_, threads, [&](LevelSums& room, std::size_t q) {
            const std::int64_t begin = indptr_[q], n = indptr_[q + 1] - begin;
            std::vector<double>& force = room.force;
            force.resize(n);
            losses[q] = pair_forces(score.data() + begin, &level_[begin], n, levels_[q], room, force.data());
            if (preferences_) losses[q] += given_forces(preferences_->of(q), room, force.data());
            losses[q] *= share_[q];
            for (std::int64_t i = 0; i < n; ++i) {
                const double own = force[i] * share_[q];
                forces[begin + i] = std::abs(own) <= most ? static_cast<std::uint64_t>(static_cast<std::int64_t>(std::nearbyint(own / unit))) : 0;
            }
        });
        std::vector<std::size_t> starts{0};
        for (std::size_t j = 0; j < bins_.width(); ++j) starts.push_back(starts.back() + bins_.thresholds(j) + 1);
        std::fill(sums.begin(), sums.end(), 0);
        for_each_block(bins_.width(), std::max<std::size_t>(1, (1 << 17) / rows()), threads, [&](std::size_t first, std::size_t last) {
            std::vector<std::uint64_t> room;
            for (std::size_t j = first; j < last; ++j)
                bins_.with_column(j,
                                  [&](const auto* bin) { add_by_bin(bin, forces.data(), rows(), sums.subspan(starts[j], starts[j + 1] - starts[j]), room); });
        });
    }

private:
    // Numbers the grades of a query from the least up.
    void place(std::size_t q, std::span<const double> grade) {
        const std::size_t begin = indptr_[q], n = grade.size();
        std::vector<double> rising(grade.begin(), grade.end());
        std::sort(rising.begin(), rising.end());
        rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
        for (std::size_t i = 0; i < n; ++i)
            level_[begin + i] = static_cast<std::int32_t>(std::lower_bound(rising.begin(), rising.end(), grade[i]) - rising.begin());
        levels_[q] = rising.size();
    }
    ThresholdBins bins_;
    std::shared_ptr<const Preferences> preferences_;  // null: none
    std::vector<std::int64_t> indptr_;
    std::vector<double> share_;        // w of (1), over the sum that makes loss(0) 1
    std::vector<std::size_t> levels_;  // how many grades a query has
    std::vector<std::int32_t> level_;  // of each document
};

}  // namespace exactrank
