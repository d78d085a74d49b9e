// Checks of what comes in by query, before kernels follow it, and objectives that know which queries they may be asked about.
#pragma once

#include <algorithm>

#include "bindings/arrays.hpp"
#include "measures/preferences.hpp"
#include "objectives/objective.hpp"

namespace exactrank {

// Where each query's documents begin, and at last where they end. Making one checks it. A query without documents is wrong, unless it
// `may_be_empty`.
class Boundaries {
public:
    Boundaries(const In<std::int64_t>& indptr, std::size_t documents, bool may_be_empty = false) : indptr_(indptr) {
        require_starts("indptr", indptr, documents, may_be_empty);
        for (std::size_t q = 0; q < queries(); ++q) longest_ = std::max(longest_, static_cast<std::size_t>(indptr(q + 1) - indptr(q)));
        require(longest_ < std::numeric_limits<std::int32_t>::max() - 64, "a query has more documents than fit");
    }
    const std::int64_t* data() const { return indptr_.data(); }
    std::span<const std::int64_t> all() const { return spanned(indptr_); }
    std::int64_t operator[](std::size_t q) const { return indptr_(q); }
    std::int32_t length(std::size_t q) const { return static_cast<std::int32_t>(indptr_(q + 1) - indptr_(q)); }
    std::size_t queries() const { return indptr_.size() - 1; }
    std::size_t documents() const { return static_cast<std::size_t>(indptr_(queries())); }
    std::size_t longest() const { return longest_; }
    Queries weighted(const In<double>& weight) const {
        require_length("weight", weight.size(), queries());
        return {all(), spanned(weight)};
    }

private:
    In<std::int64_t> indptr_;
    std::size_t longest_ = 0;
};

inline void require_domain(const Domain& domain, const Boundaries& asked) {
    if (domain.documents) require_length("what is asked about", asked.documents(), *domain.documents);
    require(asked.longest() <= domain.longest, "a query has more documents than the measure has discounts for");
    const auto& made_for = domain.indptr;
    require(made_for.empty() || std::equal(made_for.begin(), made_for.end(), asked.data(), asked.data() + asked.queries() + 1),
            "indptr is not the one that this was made for");
}

// A domain of these very queries.
inline Domain domain_of(const Boundaries& queries) {
    return {queries.documents(), queries.longest(), {queries.data(), queries.data() + queries.queries() + 1}};
}

// The domain of the documents with these grades, none of whose queries may be too long for the kernel, where there is one.
inline Domain domain_of(const Kernel* kernel, const In<double>& grades) { return {grades.size(), kernel ? kernel->longest() : Domain{}.longest, {}}; }

using GivenPairs = std::shared_ptr<const Preferences>;

// A domain of the very queries that the pairs are of, where there are any; else the other one.
inline Domain domain_with(const GivenPairs& preferences, Domain other) {
    if (!preferences) return other;
    require(other.documents && static_cast<std::int64_t>(*other.documents) == preferences->indptr().back(), "the pairs are of other documents");
    require(preferences->longest() <= other.longest, "a query has more documents than the measure has discounts for");
    return {other.documents, other.longest, preferences->indptr()};
}

inline void require_same_queries(const GivenPairs& preferences, const Boundaries& queries) {
    require(!preferences || std::ranges::equal(preferences->indptr(), queries.all()), "the pairs are of other queries");
}

inline void require_measurable(const Kernel& kernel, const Boundaries& queries) { require_domain({{}, kernel.longest(), {}}, queries); }

// The keys by which ties are broken; empty where there are none.
inline std::span<const double> checked_tie_key(const std::optional<In<double>>& tie_key, std::size_t documents) {
    if (!tie_key) return {};
    require_length("tie_key", tie_key->size(), documents);
    return spanned(*tie_key);
}

// Each query's documents in some order: numbers from 0, of which none may be beyond its end.
inline void require_orders(const char* name, const In<std::int32_t>& order, const Boundaries& queries) {
    require_length(name, order.size(), queries.documents());
    bool within = true;
    for (std::size_t q = 0; q < queries.queries(); ++q)
        for (std::int64_t i = queries[q]; i < queries[q + 1]; ++i)
            within &= static_cast<std::uint32_t>(order.data()[i]) < static_cast<std::uint32_t>(queries.length(q));
    require(within, std::string(name) + " must number the documents of each query from 0");
}

using OwnedObjective = std::unique_ptr<Objective>;

// An objective that may be asked about `domain`.
template <class Made, class... Arguments>
OwnedObjective made(Domain domain, Arguments&&... arguments) {
    auto objective = std::make_unique<Made>(std::forward<Arguments>(arguments)...);
    objective->domain = std::move(domain);
    return objective;
}

}  // namespace exactrank
