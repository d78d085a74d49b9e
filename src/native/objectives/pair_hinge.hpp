// The hinge loss over all pairs of unlike grade (Herbrich, Graepel & Obermayer 2000; Joachims 2002):
//
//   loss = share sum_{i, j: y_i > y_j} max(0, z_ij)^p,    z_ij = 1 - (s_i - s_j),    p = 1 or 2                            (1)
//   slope_k = share p [sum_j max(0, z_kj)^{p-1} - sum_i max(0, z_ik)^{p-1}],    that of the negated loss                   (2)
//   curvature_k = 2 share (how many pairs of k have z > 0) where p = 2, else 0                                             (3)
//
// Documents are in the order of their grades, best first. Of few documents every pair is taken, eight at a time. More of them are
// sorted by score and parted by grade, the better from the worse, each part again until it is small or of one grade; all pairs
// between two parts take one pass over each. Along the better one, from the highest score down, every z only grows, by the drop d of
// the score, and the next of the worse documents come within reach, z > 0:
//
//   squares <- squares + d (2 sum + count d),    sum <- sum + count d,    then for each that comes  + z^2, + z, + 1        (4)
//
// and likewise up the worse one. That is O(n log n), as with a tree over the levels of grades (Joachims 2006; Lee & Lin 2014); but
// (4) adds nothing negative, so nothing cancels, wherever the scores lie. Pairs that are given beside the grades are taken one by one,
// each times its weight.
#pragma once

#include <memory>

#include "measures/preferences.hpp"
#include "measures/ranking.hpp"
#include "objectives/objective.hpp"

namespace exactrank {

// A query's documents by place, with room for eight more: `above[p]` of them are of a better grade than the one at place p.
struct ByGrade {
    const double* score;
    const std::int32_t* above;
    std::int32_t count;
};

// Sums over pairs, by place, with room for eight more.
struct PairSums {
    double loss;
    double *slope, *curvature;  // (2) and (3) without share and p; the second may be null
};

// Adds the pairs that the document at place j has with better ones from `first` on, and gives their loss.
template <bool squared, bool with_curvature>
XR_INLINE Doubles add_better(const ByGrade& query, std::int32_t first, std::int32_t j, PairSums& sums) {
    Doubles loss{}, all{}, count{};
    const std::int32_t above = query.above[j];
    for (std::int32_t i = first; i < above; i += 8) {
        Doubles z = 1.0 - (load_eight(query.score + i) - query.score[j]);
        if (above - i < 8) z = Doubles{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<double>(above - i) ? z : Doubles{};
        const Doubles active = z > 0.0 ? Doubles{} + 1.0 : Doubles{}, reach = z > 0.0 ? z : Doubles{}, pull = squared ? reach : active;
        loss += squared ? reach * reach : reach;
        all += pull;
        const Doubles pulled = load_eight(sums.slope + i) + pull;
        std::memcpy(sums.slope + i, &pulled, sizeof pulled);
        if constexpr (with_curvature) {
            count += active;
            const Doubles counted = load_eight(sums.curvature + i) + active;
            std::memcpy(sums.curvature + i, &counted, sizeof counted);
        }
    }
    sums.slope[j] -= sum_of_eight(all);
    if constexpr (with_curvature) sums.curvature[j] += sum_of_eight(count);
    return loss;
}

template <bool squared, bool with_curvature>
XR_INLINE void add_each(const ByGrade& query, std::int32_t first, std::int32_t last, PairSums& sums) {
    Doubles loss{};
    for (std::int32_t j = first; j < last; ++j) loss += add_better<squared, with_curvature>(query, first, j, sums);
    sums.loss += sum_of_eight(loss);
}

// Adds every pair among the documents with places from `first` to `last`, where grades begin and end.
static XR_CLONES void add_pairs(const ByGrade& query, std::int32_t first, std::int32_t last, bool squared, PairSums& sums) {
    if (!squared)
        add_each<false, false>(query, first, last, sums);
    else
        sums.curvature ? add_each<true, true>(query, first, last, sums) : add_each<true, false>(query, first, last, sums);
}

// Pairs that share a document and have z > 0.
struct Reached {
    double count = 0, sum = 0, squares = 0;

    void widen(double d) {  // (4)
        squares += d * (2 * sum + count * d);
        sum += count * d;
    }
    void enter(double z) { ++count, sum += z, squares += z * z; }
};

struct Placed {
    double score;
    std::int32_t place;
};

// Documents one after the other, from the highest score down or from the lowest up.
struct Run {
    const Placed* documents;
    std::int32_t count, step;

    const Placed& operator[](std::int32_t i) const { return documents[i * step]; }
};

// All pairs of a query by passes over parts of it.
class PairPasses {
public:
    static constexpr std::int32_t few = 512;  // documents: every pair by itself is as quick, or quicker

    PairPasses(const ByGrade& query, bool squared, PairSums& sums) : query_(query), squared_(squared), sums_(sums), room_(query.count) {}

    // Adds the pairs among the documents with places from `first` to `last`, given from the highest score down; they are reordered.
    void add(Placed* documents, std::int32_t first, std::int32_t last) {
        if (query_.above[last - 1] == first) return;
        breath_.after(16 * static_cast<std::size_t>(last - first));
        if (last - first <= few) return add_pairs(query_, first, last, squared_, sums_);
        const std::int32_t middle = boundary(first, last), better = middle - first, worse = last - middle;
        part(documents, last - first, middle);
        sums_.loss += pass({documents, better, 1}, {documents + better, worse, 1}, 1.0);
        pass({documents + (last - first - 1), worse, -1}, {documents + (better - 1), better, -1}, -1.0);
        add(documents, first, middle);
        add(documents + better, middle, last);
    }

private:
    // Where a grade begins, as near as can be to the middle of places that hold several.
    std::int32_t boundary(std::int32_t first, std::int32_t last) const {
        const std::int32_t middle = first + (last - first) / 2, begin = query_.above[middle];
        const auto end = static_cast<std::int32_t>(std::upper_bound(query_.above + middle, query_.above + last, begin) - query_.above);
        return end == last || (begin > first && middle - begin < end - middle) ? begin : end;
    }
    // Puts the documents with places before `middle` first; both parts keep their order.
    void part(Placed* documents, std::int32_t n, std::int32_t middle) {
        std::int32_t better = 0, worse = 0;
        for (std::int32_t r = 0; r < n; ++r) {
            const Placed document = documents[r];
            const bool is_worse = document.place >= middle;
            documents[better] = room_[worse] = document;  // one of the two will be overwritten: no branch to mispredict
            better += !is_worse, worse += is_worse;
        }
        std::copy_n(room_.begin(), worse, documents + better);
    }
    // Adds the pairs of each of `own` with `others` to its slope, and gives their loss. Upwards, scores are negated: z grows then too.
    double pass(const Run& own, const Run& others, double sign) {
        Reached reached;
        double loss = 0, before = sign * own[0].score;
        std::int32_t next = 0;
        for (std::int32_t i = 0; i < own.count; ++i) {
            const double score = sign * own[i].score;
            reached.widen(before - score);
            before = score;
            for (double lead; next < others.count && (lead = score - sign * others[next].score) < 1; ++next) reached.enter(1 - lead);
            loss += squared_ ? reached.squares : reached.sum;
            sums_.slope[own[i].place] += sign * (squared_ ? reached.sum : reached.count);
            if (sums_.curvature) sums_.curvature[own[i].place] += reached.count;
        }
        return loss;
    }
    const ByGrade& query_;
    bool squared_;
    PairSums& sums_;
    std::vector<Placed> room_;
    Breath breath_;
};

class PairHinge final : public Objective {
public:
    // Each query's share is 1 / `pairs` or, where that is 0, 1 / its own pairs.
    PairHinge(const double* grades, const std::int64_t* indptr, std::size_t queries, bool squared, double pairs, std::shared_ptr<const Preferences> preferences)
        : squared_(squared), ideal_(indptr[queries]), above_(indptr[queries]), share_(queries), preferences_(std::move(preferences)) {
        network::Buffer keys;
        Breath breath;
        for (std::size_t q = 0; q < queries; ++q) {
            const std::int64_t begin = indptr[q];
            double own = place(keys, grades + begin, static_cast<std::int32_t>(indptr[q + 1] - begin), &ideal_[begin], &above_[begin]);
            if (preferences_) own += preferences_->total(q);
            if (pairs > 0) own = pairs;
            share_[q] = own > 0 ? 1 / own : 1.0;
            breath.after(64 * static_cast<std::size_t>(indptr[q + 1] - begin));
        }
    }

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count, *ideal = &ideal_[scored.begin];
        if (!range_of(scored.score, n).finite) return answer_nan(n, wanted);
        const std::size_t room = n + 8;
        scratch.values.assign(3 * room, 0.0);
        double *score = scratch.values.data(), *slope = score + room, *curvature = slope + room;
        for (std::int32_t p = 0; p < n; ++p) score[p] = scored.score[ideal[p]];
        PairSums sums{0, slope, wanted.curvature && squared_ ? curvature : nullptr};
        add_all({score, &above_[scored.begin], n}, scratch, sums);
        const double share = share_[scored.query], per_pull = squared_ ? 2 * share : share;
        if (preferences_) add_given(scored, scratch, sums);
        if (wanted.value) *wanted.value = -share * sums.loss;
        for (std::int32_t p = 0; p < n; ++p) {
            if (wanted.slope) wanted.slope[ideal[p]] = per_pull * slope[p];
            if (wanted.curvature) wanted.curvature[ideal[p]] = per_pull * curvature[p];
        }
    }

private:
    // Fills the order of n documents by grade and how many are above each, and gives the number of pairs.
    static double place(network::Buffer& keys, const double* grade, std::int32_t n, std::int32_t* ideal, std::int32_t* above) {
        rank_query(keys, {grade, nullptr, n}, ideal, nullptr);
        double pairs = 0;
        for (std::int32_t p = 0; p < n; ++p) pairs += above[p] = p > 0 && grade[ideal[p]] == grade[ideal[p - 1]] ? above[p - 1] : p;
        return pairs;
    }
    void add_all(const ByGrade& query, Scratch& scratch, PairSums& sums) const {
        const std::int32_t n = query.count;
        if (n <= PairPasses::few) return add_pairs(query, 0, n, squared_, sums);
        scratch.order.resize(n);
        rank_query(scratch.keys, {query.score, nullptr, n}, scratch.order.data(), nullptr);
        std::vector<Placed> documents;
        documents.reserve(n);
        for (const std::int32_t place : scratch.order) documents.push_back({query.score[place], place});
        PairPasses(query, squared_, sums).add(documents.data(), 0, n);
    }
    void add_given(const Scored& scored, Scratch& scratch, PairSums& sums) const {
        scratch.ranks.resize(scored.count);  // the place of each document
        for (std::int32_t p = 0; p < scored.count; ++p) scratch.ranks[ideal_[scored.begin + p]] = p;
        Breath breath;
        for (const Preference& pair : preferences_->of(scored.query)) {
            const double z = 1.0 - (scored.score[pair.better] - scored.score[pair.worse]);
            breath.after(8);
            if (!(z > 0)) continue;
            const std::int32_t better = scratch.ranks[pair.better], worse = scratch.ranks[pair.worse];
            const double pull = squared_ ? pair.weight * z : pair.weight;
            sums.loss += squared_ ? pair.weight * z * z : pair.weight * z;
            sums.slope[better] += pull, sums.slope[worse] -= pull;
            if (sums.curvature) sums.curvature[better] += pair.weight, sums.curvature[worse] += pair.weight;
        }
    }
    bool squared_;
    std::vector<std::int32_t> ideal_, above_;         // by query: its documents, best first, and how many are of a better grade than each
    std::vector<double> share_;                       // by query
    std::shared_ptr<const Preferences> preferences_;  // null: none
};

}  // namespace exactrank
