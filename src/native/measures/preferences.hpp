// Pairs of a query's documents that somebody has put into an order, each with a weight: "this one before that one".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "support/interrupt.hpp"

namespace exactrank {

// Numbers of documents within their query.
struct Preference {
    std::int32_t better, worse;
    double weight;
};

// One that shares a pair with a document, and the weight with which that document should stand above it, less the weight of the reverse.
struct Rival {
    std::int32_t document;
    double net;
};

class Preferences {
public:
    // Of the documents of queries with these boundaries; `better` and `worse` number documents in all, and do not fall from query to query.
    Preferences(std::span<const std::int64_t> indptr, std::span<const std::int64_t> better, std::span<const std::int64_t> worse, std::span<const double> weight)
        : indptr_(indptr.begin(), indptr.end()), total_(indptr.size() - 1) {
        pairs_.reserve(better.size());
        start_.push_back(0);
        std::size_t next = 0;
        for (std::size_t q = 0; q < total_.size(); ++q) {
            for (; next < better.size() && better[next] < indptr_[q + 1]; ++next) {
                pairs_.push_back({static_cast<std::int32_t>(better[next] - indptr_[q]), static_cast<std::int32_t>(worse[next] - indptr_[q]), weight[next]});
                total_[q] += weight[next];
            }
            start_.push_back(pairs_.size());
        }
    }

    const std::vector<std::int64_t>& indptr() const { return indptr_; }
    std::size_t longest() const {
        std::int64_t most = 0;
        for (std::size_t q = 0; q < total_.size(); ++q) most = std::max(most, indptr_[q + 1] - indptr_[q]);
        return static_cast<std::size_t>(most);
    }
    std::span<const Preference> of(std::size_t query) const { return {pairs_.data() + start_[query], pairs_.data() + start_[query + 1]}; }
    // The sum of a query's weights.
    double total(std::size_t query) const { return total_[query]; }
    // The query whose documents begin at this one.
    std::size_t query_from(std::int64_t begin) const {
        return static_cast<std::size_t>(std::lower_bound(indptr_.begin(), indptr_.end(), begin) - indptr_.begin());
    }

private:
    std::vector<std::int64_t> indptr_;
    std::vector<double> total_;
    std::vector<std::size_t> start_;  // by query
    std::vector<Preference> pairs_;
};

// The rivals of each of a query's n documents, in the order of their numbers.
class Rivals {
public:
    void take(std::span<const Preference> pairs, std::int32_t n) {
        of_.resize(std::max<std::size_t>(of_.size(), n));
        for (std::int32_t i = 0; i < n; ++i) of_[i].clear();
        for (const Preference& pair : pairs) add(pair.better, pair.worse, pair.weight), add(pair.worse, pair.better, -pair.weight);
        for (std::int32_t i = 0; i < n; ++i) {
            auto& own = of_[i];
            std::stable_sort(own.begin(), own.end(), [](const Rival& a, const Rival& b) { return a.document < b.document; });
            std::size_t kept = 0;
            for (std::size_t r = 0; r < own.size(); ++r)
                if (kept > 0 && own[kept - 1].document == own[r].document)
                    own[kept - 1].net += own[r].net;
                else
                    own[kept++] = own[r];
            own.resize(kept);
        }
    }
    const std::vector<Rival>& operator[](std::int32_t document) const { return of_[document]; }
    double net(std::int32_t document, std::int32_t other) const {
        const auto& own = of_[document];
        const auto found = std::lower_bound(own.begin(), own.end(), other, [](const Rival& a, std::int32_t number) { return a.document < number; });
        return found != own.end() && found->document == other ? found->net : 0.0;
    }

private:
    void add(std::int32_t document, std::int32_t other, double weight) { of_[document].push_back({other, weight}); }
    std::vector<std::vector<Rival>> of_;
};

}  // namespace exactrank
