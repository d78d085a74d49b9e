// Structured losses: the most violated ranking.
#include "bindings/queries.hpp"
#include "structured/first_relevant_separation.hpp"
#include "structured/positional_separation.hpp"
#include "structured/precision_separation.hpp"

namespace exactrank {

namespace {

using OwnedSeparation = std::unique_ptr<Separation>;

template <class Made, class... Arguments>
OwnedSeparation made_for(const Boundaries& queries, Arguments&&... arguments) {
    auto separation = std::make_unique<Made>(std::forward<Arguments>(arguments)..., queries.data(), queries.queries());
    separation->domain = domain_of(queries);
    return separation;
}

std::vector<std::uint8_t> flags(const In<std::uint8_t>& relevant) {
    require(std::all_of(relevant.data(), relevant.data() + relevant.size(), [](std::uint8_t flag) { return flag <= 1; }), "relevant must hold 0 or 1");
    return copied(relevant);
}

void require_falling(const char* name, const In<double>& values) {
    bool falls = values(0) <= StructuredLoss::widest && values(values.size() - 1) >= 0;
    for (std::size_t r = 1; r < values.size(); ++r) falls &= values(r) <= values(r - 1);
    require(falls, std::string(name) + " must fall from position to position, from at most 1e100 to no less than 0");
}

OwnedSeparation make_positional(In<double> a, In<double> d, In<double> worths, In<std::int64_t> indptr) {
    require(a.size() > 0 && a.size() < static_cast<std::size_t>(no_cutoff), "a must hold a number per position");
    require_length("d", d.size(), a.size());
    require_falling("a", a);
    require_falling("d", d);
    for (std::size_t i = 0; i < worths.size(); ++i) require(std::abs(worths.data()[i]) <= StructuredLoss::widest, "worths must hold numbers of at most 1e100");
    return made_for<PositionalSeparation>(Boundaries(indptr, worths.size()), copied(a), copied(d), worths.data());
}

OwnedSeparation make_precision(In<std::uint8_t> relevant, In<std::int64_t> indptr) {
    return made_for<PrecisionSeparation>(Boundaries(indptr, relevant.size()), flags(relevant));
}

OwnedSeparation make_first_relevant(In<double> worth, In<std::uint8_t> relevant, In<std::int64_t> indptr) {
    require(worth.size() > 0, "the worth of at least one position is needed");
    return made_for<FirstRelevantSeparation>(Boundaries(indptr, relevant.size()), copied(worth), flags(relevant));
}

// By query delta and the loss, and by document c(y) - t.
nb::tuple separated(const StructuredLoss& loss, In<double> scores, In<std::int64_t> indptr, int threads) {
    const Boundaries boundaries(indptr, scores.size());
    require_domain(loss.domain, boundaries);
    const Queries queries{boundaries.all(), {}};
    auto delta = empty<double>(queries.count()), losses = empty<double>(queries.count()), difference = empty<double>(scores.size());
    {
        nb::gil_scoped_release release;
        for_each_query<Scratch>(queries.indptr, threads, [&](Scratch& scratch, std::size_t q) {
            const std::int64_t begin = indptr(q);
            const Violation found = loss.violation(queries.scored(q, scores.data() + begin), scratch, difference.data() + begin);
            delta.data()[q] = found.delta, losses.data()[q] = loss.loss(found);
        });
    }
    return nb::make_tuple(delta, difference, losses);
}

// By document c of the ranking by score, ties by `tie_key`, smallest first, where given; 0 where no ranking is better than another.
Out<double> coefficients(const Separation& separation, In<double> scores, In<std::int64_t> indptr, std::optional<In<double>> tie_key) {
    const Boundaries queries(indptr, scores.size());
    require_domain(separation.domain, queries);
    const std::span<const double> keys = checked_tie_key(tie_key, scores.size());
    auto found = empty<double>(scores.size());
    Scratch scratch;
    Breath breath;
    for (std::size_t q = 0; q < queries.queries(); ++q) {
        const std::int64_t begin = queries[q];
        const std::int32_t n = queries.length(q);
        breath.after(64 * static_cast<std::size_t>(n));
        scratch.order.resize(n);
        const QueryScores query{scores.data() + begin, keys.empty() ? nullptr : keys.data() + begin, n};
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
    m.def("positional_separation", &make_positional, "a"_a, "d"_a, "worths"_a.noconvert(), "indptr"_a, nb::keep_alive<0, 3>());
    m.def("precision_separation", &make_precision, "relevant"_a, "indptr"_a);
    m.def("first_relevant_separation", &make_first_relevant, "worth"_a, "relevant"_a, "indptr"_a);
    nb::class_<StructuredLoss, Objective>(m, "StructuredLoss")
        .def(
            "__init__",
            [](StructuredLoss* self, const Separation& separation, std::optional<In<double>> targets, bool rescales_slack) {
                if (targets) require_length("targets", targets->size(), *separation.domain.documents);
                new (self) StructuredLoss(separation, targets ? targets->data() : nullptr, rescales_slack);
                self->domain = separation.domain;
            },
            "separation"_a, "targets"_a.none().noconvert(), "rescales_slack"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("separate", &separated, "scores"_a, "indptr"_a, "threads"_a);
}

}  // namespace exactrank
