// The share of pairs in the right order where some are given beside those of grades: with P pairs of unlike usefulness and given weights w,
//
//   value = (P value_by_grades + sum of w [better above worse]) / (P + sum of w),    tied pairs count half                 (1)
//
// What this kernel reads for grades are the numbers of documents, over all queries: a pair is of documents, not of grades.
#pragma once

#include <memory>
#include <stdexcept>

#include "measures/pair_counts.hpp"
#include "measures/preferences.hpp"

namespace exactrank {

class PreferenceKernel final : public Kernel {
public:
    PreferenceKernel(std::shared_ptr<const Preferences> preferences, std::vector<double>&& usefulness, double empty)
        : Kernel(no_cutoff, empty), by_grades_(Identity{}, 0.0), preferences_(std::move(preferences)), usefulness_(std::move(usefulness)) {
        std::vector<Level> levels;
        const auto& indptr = preferences_->indptr();
        Breath breath;
        for (std::size_t q = 0; q + 1 < indptr.size(); ++q) {
            const auto count = static_cast<std::int32_t>(indptr[q + 1] - indptr[q]);
            levels_from_top(&usefulness_[indptr[q]], count, count, levels);
            pairs_.push_back(pairs_of(levels));
            breath.after(64 * static_cast<std::size_t>(count));
        }
    }
    bool is_empty(const Ranked& query) const override { return !(total(number(query)) > 0); }
    std::unique_ptr<Walk> walk() const override { return std::make_unique<PreferenceWalk>(*this); }
    std::unique_ptr<Swaps> swaps() const override { return std::make_unique<PreferenceSwaps>(*this); }

private:
    // Which query it is, by the numbers of its documents; grades of another kind are refused.
    std::size_t number(const Ranked& query) const {
        const auto& indptr = preferences_->indptr();
        const double begin = query.grade[0];
        bool numbered = begin >= 0 && begin < static_cast<double>(usefulness_.size());
        const std::size_t q = numbered ? preferences_->query_from(static_cast<std::int64_t>(begin)) : 0;
        numbered = numbered && static_cast<double>(indptr[q]) == begin && indptr[q + 1] - indptr[q] == query.count;
        for (std::int32_t i = 0; numbered && i < query.count; ++i) numbered = query.grade[i] == begin + i;
        if (!numbered) throw std::invalid_argument("the grades of this kernel must be the numbers of the documents that the pairs are of");
        return q;
    }
    double total(std::size_t q) const { return pairs_[q] + preferences_->total(q); }
    double useful(double document) const { return usefulness_[static_cast<std::size_t>(document)]; }
    // The ranking as the kernel of grades reads it.
    Ranked graded(const Ranked& query, std::vector<double>& at) const {
        at.resize(query.retrieved);
        std::transform(query.at, query.at + query.retrieved, at.begin(), [&](double document) { return useful(document); });
        return {&usefulness_[static_cast<std::size_t>(query.grade[0])], at.data(), query.tied, query.count, query.retrieved};
    }
    double value_of(const Ranked& query, Scratch& scratch) const override {
        const std::size_t q = number(query);
        const std::int64_t begin = preferences_->indptr()[q];
        std::vector<double> at;
        const Ranked by_grade = graded(query, at);
        double right = pairs_[q] > 0 ? pairs_[q] * by_grades_.value(by_grade, scratch) : 0.0;
        std::vector<std::int32_t> group(query.count, query.retrieved);  // the first position of those that a document ties with
        for (std::int32_t first = 0, last; first < query.retrieved; first = last) {
            last = query.tie_end(first);
            for (std::int32_t r = first; r < last; ++r) group[static_cast<std::int64_t>(query.at[r]) - begin] = first;
        }
        for (const Preference& pair : preferences_->of(q)) {
            const std::int32_t better = group[pair.better], worse = group[pair.worse];
            if (better < query.retrieved) right += better < worse ? pair.weight : better == worse ? pair.weight / 2 : 0.0;
        }
        return right / total(q);
    }
    class PreferenceWalk final : public Walk {
    public:
        explicit PreferenceWalk(const PreferenceKernel& kernel) : kernel_(kernel) {}
        void start(const Ranked& query, Scratch&) override {
            const std::size_t q = kernel_.number(query);
            begin_ = query.grade[0], total_ = kernel_.total(q);
            rivals_.take(kernel_.preferences_->of(q), query.count);
        }
        double exchange(const double* at, std::int32_t p) override {
            const double upper = kernel_.useful(at[p]), lower = kernel_.useful(at[p + 1]);
            const double net = rivals_.net(static_cast<std::int32_t>(at[p + 1] - begin_), static_cast<std::int32_t>(at[p] - begin_));
            return ((lower > upper) - (lower < upper) + net) / total_;
        }

    private:
        const PreferenceKernel& kernel_;
        double begin_ = 0, total_ = 1;
        Rivals rivals_;
    };
    // The document from j comes to stand above those between, the one from i below them.
    class PreferenceSwaps final : public Swaps {
    public:
        explicit PreferenceSwaps(const PreferenceKernel& kernel) : kernel_(kernel), by_grades_(kernel.by_grades_.swaps()) {}
        void arrange(const Ranked& query, const std::int32_t* order, Scratch& scratch) override {
            const std::size_t q = kernel_.number(query);
            total_ = kernel_.total(q), pairs_ = kernel_.pairs_[q];
            if (pairs_ > 0) by_grades_->arrange(kernel_.graded(query, at_), order, scratch);
            rivals_.take(kernel_.preferences_->of(q), query.count);
            document_.resize(query.retrieved);
            place_.assign(query.count, query.retrieved);
            for (std::int32_t r = 0; r < query.retrieved; ++r) place_[document_[r] = static_cast<std::int32_t>(query.at[r] - query.grade[0])] = r;
        }
        void row(std::int32_t i, std::int32_t last, double* delta) override {
            if (pairs_ > 0)
                by_grades_->row(i, last, delta);
            else
                std::fill(delta + i + 1, delta + last, 0.0);
            double over_upper = 0;  // what those between gain by standing above the upper document
            for (std::int32_t j = i + 1; j < last; ++j) {
                double over_between = 0;
                for (const Rival& rival : rivals_[document_[j]])
                    if (place_[rival.document] > i && place_[rival.document] < j) over_between += rival.net;
                const double over = rivals_.net(document_[j], document_[i]);
                delta[j] = (pairs_ * delta[j] + over_between + over_upper + over) / total_;
                over_upper += over;
            }
        }

    private:
        const PreferenceKernel& kernel_;
        std::unique_ptr<Swaps> by_grades_;
        Rivals rivals_;
        std::vector<double> at_;
        std::vector<std::int32_t> document_, place_;  // by position, and the reverse
        double total_ = 1, pairs_ = 0;
    };
    PairwiseCorrectKernel<Identity> by_grades_;
    std::shared_ptr<const Preferences> preferences_;
    std::vector<double> usefulness_;  // of every document
    std::vector<double> pairs_;       // of unlike usefulness, by query
};

}  // namespace exactrank
