// Structured losses: the most violated ranking.
#include "bindings.hpp"
#include "first_relevant_separation.hpp"
#include "positional_separation.hpp"
#include "precision_separation.hpp"

namespace exactrank {

namespace {

using OwnedSeparation = std::unique_ptr<Separation>;

std::size_t queries_of(In<std::int64_t> indptr, std::size_t documents) {
    const std::size_t queries = indptr.size() - 1;
    require(indptr.size() >= 1 && indptr(0) == 0 && indptr(queries) == static_cast<std::int64_t>(documents), "indptr does not cover the documents");
    return queries;
}

OwnedSeparation make_positional(In<double> a, In<double> d, In<double> worths, In<std::int64_t> indptr) {
    require(a.size() == d.size() && a.size() > 0, "one A and one discount a position are needed");
    const std::size_t queries = queries_of(indptr, worths.size());
    const std::vector<double> by_position(a.data(), a.data() + a.size()), discount(d.data(), d.data() + d.size());
    return std::make_unique<PositionalSeparation>(by_position, discount, worths.data(), indptr.data(), queries);
}

OwnedSeparation make_precision(In<std::uint8_t> relevant, In<std::int64_t> indptr) {
    return std::make_unique<PrecisionSeparation>(relevant.data(), indptr.data(), queries_of(indptr, relevant.size()));
}

OwnedSeparation make_first_relevant(In<double> worth, In<std::uint8_t> relevant, In<std::int64_t> indptr) {
    require(worth.size() > 0, "the worth of at least one position is needed");
    const std::vector<double> by_position(worth.data(), worth.data() + worth.size());
    return std::make_unique<FirstRelevantSeparation>(by_position, relevant.data(), indptr.data(), queries_of(indptr, relevant.size()));
}

// By query delta and the loss, and by document c(y) - t.
nb::tuple separated(const StructuredLoss& loss, In<double> scores, In<std::int64_t> indptr, int threads) {
    const Queries queries{indptr.data(), queries_of(indptr, scores.size()), nullptr};
    auto delta = empty<double>(queries.count), losses = empty<double>(queries.count), difference = empty<double>(scores.size());
    {
        nb::gil_scoped_release release;
        for_each_query<Scratch>(indptr.data(), queries.count, threads, [&](Scratch& scratch, std::size_t q) {
            const std::int64_t begin = indptr(q);
            const Violation found = loss.violation(queries.scored(q, scores.data() + begin), scratch, difference.data() + begin);
            delta.data()[q] = found.delta, losses.data()[q] = loss.loss(found);
        });
    }
    return nb::make_tuple(delta, difference, losses);
}

// By document c of the ranking by score, ties by `tie_key`, smallest first, where given; 0 where no ranking is better than another.
Out<double> coefficients(const Separation& separation, In<double> scores, In<std::int64_t> indptr, std::optional<In<double>> tie_key) {
    require(!tie_key || tie_key->size() == scores.size(), "tie_key and scores differ in length");
    const std::size_t queries = queries_of(indptr, scores.size());
    auto found = empty<double>(scores.size());
    Scratch scratch;
    for (std::size_t q = 0; q < queries; ++q) {
        const std::int64_t begin = indptr(q);
        const auto n = static_cast<std::int32_t>(indptr(q + 1) - begin);
        scratch.order.resize(n);
        const QueryScores query{scores.data() + begin, tie_key ? tie_key->data() + begin : nullptr, n};
        require(rank_query(scratch.keys, query, scratch.order.data(), nullptr) == n, "scores must be finite");
        const RankedScores ranked{q, begin, n, scratch.order.data(), nullptr};
        std::fill_n(found.data() + begin, n, 0.0);
        if (separation.tells_apart(ranked)) separation.coefficients(ranked, ranked.order, found.data() + begin);
    }
    return found;
}

}  // namespace

void bind_separation(nb::module_& m) {
    nb::class_<Separation>(m, "Separation").def("coefficients", &coefficients, "scores"_a, "indptr"_a, "tie_key"_a.none());
    m.def("positional_separation", &make_positional, "a"_a, "d"_a, "worths"_a, "indptr"_a, nb::keep_alive<0, 3>());
    m.def("precision_separation", &make_precision, "relevant"_a, "indptr"_a, nb::keep_alive<0, 1>());
    m.def("first_relevant_separation", &make_first_relevant, "worth"_a, "relevant"_a, "indptr"_a, nb::keep_alive<0, 2>());
    nb::class_<StructuredLoss, Objective>(m, "StructuredLoss")
        .def(
            "__init__",
            [](StructuredLoss* self, const Separation& separation, std::optional<In<double>> targets, bool rescales_slack) {
                new (self) StructuredLoss(separation, targets ? targets->data() : nullptr, rescales_slack);
            },
            "separation"_a, "targets"_a.none(), "rescales_slack"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("separate", &separated, "scores"_a, "indptr"_a, "threads"_a);
}

}  // namespace exactrank
