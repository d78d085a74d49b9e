// What every threshold is worth that keeps the documents of all queries down to a score: a step function of the threshold, by one sweep.
//
// Documents are sorted once, by all queries together. A document that is kept changes the value of its query alone, so the weighted sum over
// queries follows from the changes: O(n) for any goal after O(n) passes of a radix sort (Knuth 1973, 5.2.5).
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace exactrank {

// Documents that are kept: how many, and how many of them are useful, of one query.
struct KeptCounts {
    std::int64_t kept = 0, useful = 0;
};

// A sum with the rounding errors of its terms (Neumaier 1974), so that ten million changes leave no trace.
class CompensatedSum {
public:
    void add(double term) {
        const double larger = sum_ + term;
        error_ += std::abs(sum_) >= std::abs(term) ? (sum_ - larger) + term : (term - larger) + sum_;
        sum_ = larger;
    }
    double value() const { return sum_ + error_; }

private:
    double sum_ = 0, error_ = 0;
};

class ThresholdSweep {
public:
    // `indptr` has the boundaries of the queries; scores are numbers.
    ThresholdSweep(std::span<const double> scores, std::span<const std::uint8_t> useful, std::span<const std::int64_t> indptr) : queries_(indptr.size() - 1) {
        std::vector<Document> documents(scores.size());
        for (std::size_t q = 0; q < queries_; ++q)
            for (std::int64_t i = indptr[q]; i < indptr[q + 1]; ++i) documents[i] = {descending_key(scores[i]), static_cast<std::uint32_t>(q), useful[i] != 0};
        sort(documents);
        documents_.reserve(documents.size());
        for (std::size_t i = 0; i < documents.size(); ++i) {
            const bool ends = i + 1 == documents.size() || documents[i + 1].key != documents[i].key;
            documents_.push_back({documents[i].query, documents[i].useful, ends});
            if (ends) thresholds_.push_back(score_of(documents[i].key));
        }
    }
    std::size_t queries() const { return queries_; }
    // The different scores, the largest first.
    const std::vector<double>& thresholds() const { return thresholds_; }

    // The weighted sums of `value(counts, total of the query)`: if nothing is kept, then down to each threshold.
    template <class Value>
    std::vector<double> sums(Value value, std::span<const double> total, std::span<const double> weight) const {
        std::vector<KeptCounts> counts(queries_);
        std::vector<double> now(queries_), sums;
        sums.reserve(thresholds_.size() + 1);
        CompensatedSum sum;
        for (std::size_t q = 0; q < queries_; ++q) sum.add(weight[q] * (now[q] = value(counts[q], total[q])));
        sums.push_back(sum.value());
        for (const Kept& document : documents_) {
            const std::uint32_t q = document.query;
            ++counts[q].kept, counts[q].useful += document.useful;
            const double next = value(counts[q], total[q]);
            sum.add(weight[q] * (next - now[q]));
            now[q] = next;
            if (document.ends) sums.push_back(sum.value());
        }
        return sums;
    }

private:
    struct Document {
        std::uint64_t key;
        std::uint32_t query;
        bool useful;
    };
    // A document in the order of the sweep; `ends` says that it is the last of its score.
    struct Kept {
        std::uint32_t query;
        bool useful, ends;
    };

    // Numbers that rise where scores fall; -0 and 0 have the same.
    static std::uint64_t descending_key(double score) {
        const auto number = std::bit_cast<std::uint64_t>(score + 0.0);
        return number >> 63 ? number : ~number ^ sign;
    }
    static double score_of(std::uint64_t key) { return std::bit_cast<double>(key >> 63 ? key : ~key ^ sign); }

    // By rising key; least significant digits first, so that documents of one score stay in their order.
    static void sort(std::vector<Document>& documents) {
        constexpr std::uint64_t mask = (1 << bits) - 1;
        std::vector<Document> others(documents.size());
        std::vector<std::array<std::size_t, mask + 1>> starts(digits);
        for (const Document& document : documents)
            for (int d = 0; d < digits; ++d) ++starts[d][document.key >> (bits * d) & mask];
        for (int d = 0; d < digits; ++d) {
            std::size_t before = 0;
            bool is_constant = false;
            for (std::size_t& start : starts[d]) {
                is_constant |= start == documents.size();
                const std::size_t count = start;
                start = before, before += count;
            }
            if (is_constant) continue;
            for (const Document& document : documents) others[starts[d][document.key >> (bits * d) & mask]++] = document;
            documents.swap(others);
        }
    }

    static constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    static constexpr int digits = 6, bits = 11;  // more digits of fewer bits are slower, and so are fewer of more

    std::size_t queries_;
    std::vector<Kept> documents_;
    std::vector<double> thresholds_;  // the largest first
};

}  // namespace exactrank
