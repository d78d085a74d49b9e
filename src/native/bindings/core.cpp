// The Python face of the kernels: flat arrays in and out, the GIL released while they run. Here are the module and the measures.
#include "bindings/arrays.hpp"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <pthread.h>
#endif

#include "bindings/queries.hpp"
#include "measures/average_precision.hpp"
#include "measures/cascade.hpp"
#include "measures/evaluate.hpp"
#include "measures/pair_counts.hpp"
#include "measures/positional.hpp"
#include "measures/preference_counts.hpp"

using namespace exactrank;

namespace {

// ---- measures ----

using OwnedKernel = std::unique_ptr<Kernel>;

Normaliser normalizer_named(const std::string& name) {
    if (name == "one") return Normaliser::one;
    if (name == "length") return Normaliser::length;
    if (name == "retrieved") return Normaliser::retrieved;
    if (name == "total") return Normaliser::total;
    if (name == "ideal") return Normaliser::ideal;
    if (name == "mean_ideal") return Normaliser::mean_ideal;
    throw std::invalid_argument("unknown normalizer: " + name);
}

OwnedKernel make_positional(const Gain& gain, In<double> discount, std::int32_t cutoff, const std::string& normalizer, bool short_is_zero, double empty) {
    require(cutoff > 0, "cutoff must be above 0");
    const Positional measure{copied(discount), cutoff, normalizer_named(normalizer), short_is_zero};
    return with_gain(gain, [&](auto function) -> OwnedKernel { return std::make_unique<PositionalKernel<decltype(function)>>(measure, function, empty); });
}

OwnedKernel make_cascade(const Gain& gain, In<double> discount, std::int32_t cutoff, double empty) {
    require(cutoff > 0, "cutoff must be above 0");
    const Cascade measure{copied(discount), cutoff};
    return with_gain(gain, [&](auto function) -> OwnedKernel { return std::make_unique<CascadeKernel<decltype(function)>>(measure, function, empty); });
}

OwnedKernel make_average_precision(double rel, std::int32_t cutoff, bool limit_to_cutoff, double empty) {
    require(cutoff > 0, "cutoff must be above 0");
    return std::make_unique<AveragePrecisionKernel>(AveragePrecision{rel, cutoff, limit_to_cutoff}, empty);
}

OwnedKernel make_bpref(double rel, double empty) { return std::make_unique<BprefKernel>(rel, empty); }

OwnedKernel make_pairwise_correct(const Gain& gain, double empty) {
    return with_gain(gain, [&](auto function) -> OwnedKernel { return std::make_unique<PairwiseCorrectKernel<decltype(function)>>(function, empty); });
}

GivenPairs make_preferences(In<std::int64_t> indptr, In<std::int64_t> better, In<std::int64_t> worse, In<double> weight) {
    require(indptr.size() > 1 && indptr(indptr.size() - 1) >= 0, "indptr must have a query");
    const Boundaries queries(indptr, static_cast<std::size_t>(indptr(indptr.size() - 1)));
    require_length("worse", worse.size(), better.size());
    require_length("weight", weight.size(), better.size());
    require_finite("weight", weight);
    std::size_t q = 0;
    for (std::size_t p = 0; p < better.size(); ++p) {
        require_below("better", better(p), queries.documents());
        require(p == 0 || better(p) >= better(p - 1), "better must not fall");
        while (better(p) >= queries[q + 1]) ++q;
        require(worse(p) >= queries[q] && worse(p) < queries[q + 1] && worse(p) != better(p), "a pair must be of two documents of one query");
        require(weight(p) > 0, "weights must be above 0");
    }
    return std::make_shared<const Preferences>(queries.all(), spanned(better), spanned(worse), spanned(weight));
}

OwnedKernel make_preference_correct(const Gain& gain, In<double> grades, GivenPairs preferences, double empty) {
    require_length("grades", grades.size(), static_cast<std::size_t>(preferences->indptr().back()));
    require_finite("grades", grades);
    std::vector<double> usefulness(grades.size());
    with_gain(gain, [&](auto function) { return std::transform(grades.data(), grades.data() + grades.size(), usefulness.begin(), function); });
    return std::make_unique<PreferenceKernel>(preferences, std::move(usefulness), empty);
}

// Kernels with the grades that they read, what breaks their ties, and whether ties count as the mean over their orders.
using Measures = std::vector<std::tuple<const Kernel*, In<double>, std::optional<In<double>>, bool>>;

// Values, how many documents of each query have a rank, and which score is the first that is NaN or +inf: -1 where none is.
nb::tuple evaluate_all(In<double> scores, In<std::int64_t> indptr, const Measures& measures, int threads) {
    const Boundaries boundaries(indptr, scores.size());
    const std::size_t queries = boundaries.queries();
    std::vector<MeasureOf> asked;
    for (const auto& [kernel, grades, tie_key, mark_ties] : measures) {
        require(kernel != nullptr, "a measure is missing");
        require_length("grades", grades.size(), scores.size());
        require_measurable(*kernel, boundaries);
        asked.push_back({kernel, spanned(grades), checked_tie_key(tie_key, scores.size()), mark_ties});
    }
    auto values = empty<double>(measures.size() * queries);
    auto retrieved = empty<std::int32_t>(queries);
    std::int64_t bad;
    {
        nb::gil_scoped_release release;
        bad = evaluate({spanned(scores), boundaries.all()}, asked, threads, spanned(values), spanned(retrieved));
    }
    return nb::make_tuple(values, retrieved, bad);
}

void bind_measures(nb::module_& m) {
    nb::class_<Gain>(m, "Gain").def(nb::init<std::string, double>(), "kind"_a, "parameter"_a = 0.0);
    nb::class_<Kernel>(m, "Kernel");
    m.def("positional", &make_positional, "gain"_a, "discount"_a, "cutoff"_a, "normalizer"_a, "short_is_zero"_a, "empty"_a);
    m.def("cascade", &make_cascade, "gain"_a, "discount"_a, "cutoff"_a, "empty"_a);
    m.def("average_precision", &make_average_precision, "rel"_a, "cutoff"_a, "limit_to_cutoff"_a, "empty"_a);
    m.def("bpref", &make_bpref, "rel"_a, "empty"_a);
    m.def("pairwise_correct", &make_pairwise_correct, "gain"_a, "empty"_a);
    nb::class_<Preferences>(m, "Preferences").def(nb::new_(&make_preferences), "indptr"_a, "better"_a, "worse"_a, "weight"_a);
    m.def("preference_correct", &make_preference_correct, "gain"_a, "grades"_a, "preferences"_a, "empty"_a);
    m.def("evaluate", &evaluate_all, "scores"_a, "indptr"_a, "measures"_a, "threads"_a);
}

// ---- signals ----

// Python runs handlers in its main thread alone; only that one may wait for the interpreter's lock without harm to others.
bool is_main_thread() {
#ifdef __linux__
    return ::syscall(SYS_gettid) == ::getpid();
#else
    return ::pthread_main_np() != 0;
#endif
}

void raise_what_handlers_raised() {
    if (!is_main_thread()) return;
    const nb::gil_scoped_acquire hold;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Native kernels of exactrank.";
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const std::bad_alloc&) {
            PyErr_SetString(PyExc_MemoryError, "there is not enough memory for this call; smaller data or fewer threads take less");
        }
    });
    look_at_signals = &raise_what_handlers_raised;
    bind_measures(m);
    bind_lines(m);
    bind_steps(m);
    bind_outlines(m);
    bind_values(m);
    bind_unjudged(m);
    bind_objectives(m);
    bind_listwise(m);
    bind_separation(m);
    bind_planes(m);
    bind_boosting(m);
    bind_trees(m);
    bind_forest(m);
    bind_cutoffs(m);
    bind_letor(m);
    bind_matrices(m);
    bind_numerics(m);
}
