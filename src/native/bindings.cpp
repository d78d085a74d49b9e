// The Python face of the kernels: flat arrays in and out, the GIL released while they run.
#include "bindings.hpp"

#include <poll.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#else
#include <pthread.h>
#endif

#include <cerrno>

#include "average_precision.hpp"
#include "bindings_queries.hpp"
#include "cascade.hpp"
#include "columns.hpp"
#include "cubic.hpp"
#include "evaluate.hpp"
#include "json_matrix.hpp"
#include "letor.hpp"
#include "letor_text.hpp"
#include "linear.hpp"
#include "pair_counts.hpp"
#include "positional.hpp"
#include "preference_counts.hpp"
#include "rounding.hpp"

using namespace exactrank;

namespace {

nb::ndarray<nb::numpy, float, nb::ndim<2>> matrix(GrowingMatrix::Block block, std::size_t rows, std::size_t width) {
    float* cells = block.release();
    const nb::capsule owner(cells, [](void* p) noexcept { std::free(p); });
    return {cells, {rows, width}, owner};
}

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// ---- measures ----

using OwnedKernel = std::unique_ptr<Kernel>;

Normaliser normaliser_named(const std::string& name) {
    if (name == "one") return Normaliser::one;
    if (name == "length") return Normaliser::length;
    if (name == "total") return Normaliser::total;
    if (name == "ideal") return Normaliser::ideal;
    if (name == "mean_ideal") return Normaliser::mean_ideal;
    throw std::invalid_argument("unknown normaliser: " + name);
}

OwnedKernel make_positional(const Gain& gain, In<double> discount, std::int32_t cutoff, const std::string& normaliser, bool short_is_zero, double empty) {
    require(cutoff > 0, "cutoff must be above 0");
    const Positional measure{copied(discount), cutoff, normaliser_named(normaliser), short_is_zero};
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
    m.def("positional", &make_positional, "gain"_a, "discount"_a, "cutoff"_a, "normaliser"_a, "short_is_zero"_a, "empty"_a);
    m.def("cascade", &make_cascade, "gain"_a, "discount"_a, "cutoff"_a, "empty"_a);
    m.def("average_precision", &make_average_precision, "rel"_a, "cutoff"_a, "limit_to_cutoff"_a, "empty"_a);
    m.def("bpref", &make_bpref, "rel"_a, "empty"_a);
    m.def("pairwise_correct", &make_pairwise_correct, "gain"_a, "empty"_a);
    nb::class_<Preferences>(m, "Preferences").def(nb::new_(&make_preferences), "indptr"_a, "better"_a, "worse"_a, "weight"_a);
    m.def("preference_correct", &make_preference_correct, "gain"_a, "grades"_a, "preferences"_a, "empty"_a);
    m.def("evaluate", &evaluate_all, "scores"_a, "indptr"_a, "measures"_a, "threads"_a);
}

// ---- LETOR text ----

nb::tuple spans(const std::vector<Span>& given, std::size_t rows) {
    std::vector<std::int64_t> start(rows), stop(rows);
    for (std::size_t i = 0; i < given.size(); ++i) start[i] = given[i].start, stop[i] = given[i].stop;
    return nb::make_tuple(array(std::move(start)), array(std::move(stop)));
}

nb::tuple taken(LetorParser& parser) {
    LetorRows rows = parser.take();
    nb::object comments = nb::none(), comment = nb::none(), docid = nb::none();
    if (!rows.comment.empty()) {
        comments = nb::cast(array(std::vector<std::uint8_t>(rows.comments.begin(), rows.comments.end())));
        comment = spans(rows.comment, rows.rows);
        docid = spans(rows.docid, rows.rows);
    }
    return nb::make_tuple(matrix(std::move(rows.x), rows.rows, rows.width), array(std::move(rows.y)), array(std::move(rows.query)), comments, comment, docid);
}

std::vector<std::string> strings(const nb::sequence& items) {
    std::vector<std::string> out;
    for (nb::handle item : items) {
        require(nb::isinstance<nb::bytes>(item), "query_names must hold bytes");
        const auto bytes = nb::borrow<nb::bytes>(item);
        out.emplace_back(bytes.c_str(), bytes.size());
    }
    return out;
}

// ::read, but a pipe that stays empty does not keep Ctrl-C waiting.
ssize_t read_when_ready(int descriptor, std::uint8_t* to, std::size_t room) {
    pollfd watched{descriptor, POLLIN, 0};
    for (;; breathe()) {
        const int ready = ::poll(&watched, 1, static_cast<int>(between_looks.count()));
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t size = ::read(descriptor, to, room);
        if (size >= 0 || errno != EINTR) return size;
    }
}

nb::bytes written_rows(InMatrix<float> x, std::optional<In<double>> offset, In<double> y, In<std::int64_t> query, const nb::sequence& query_names,
                       std::optional<In<std::uint8_t>> comments, std::optional<In<std::int64_t>> start, std::optional<In<std::int64_t>> stop, int threads) {
    const std::vector<std::string> names = strings(query_names);
    const std::size_t rows = x.shape(0);
    if (offset) require_length("offset", offset->size(), x.shape(1));
    require_length("y", y.size(), rows);
    require_length("query", query.size(), rows);
    for (std::size_t i = 0; i < rows; ++i) require_below("query", query.data()[i], names.size());
    require(start.has_value() == comments.has_value() && stop.has_value() == comments.has_value(), "comments, start and stop belong together");
    if (comments) {
        require_length("start", start->size(), rows);
        require_length("stop", stop->size(), rows);
        for (std::size_t i = 0; i < rows; ++i)
            require(0 <= (*start)(i) && (*start)(i) <= (*stop)(i) && static_cast<std::size_t>((*stop)(i)) <= comments->size(),
                    "a comment lies outside the text");
    }
    const LetorTable table{x.data(),
                           offset ? offset->data() : nullptr,
                           y.data(),
                           query.data(),
                           rows,
                           x.shape(1),
                           names,
                           comments ? reinterpret_cast<const char*>(comments->data()) : nullptr,
                           start ? start->data() : nullptr,
                           stop ? stop->data() : nullptr};
    std::string text;
    {
        nb::gil_scoped_release release;
        text = letor_text(table, threads);
    }
    return to_bytes(text);
}

void bind_letor(nb::module_& m) {
    nb::class_<LetorParser>(m, "LetorParser")
        .def(
            "__init__",
            [](LetorParser* self, bool missing, bool queries, std::int64_t features, std::int64_t first_feature, std::int64_t expected_bytes, int threads,
               const std::vector<std::int64_t>& exact) {
                for (const std::int64_t column : exact) require(column >= 0 && column < features && first_feature >= 0, "an exact column is out of range");
                new (self) LetorParser(LetorOptions{missing, queries, features, first_feature, expected_bytes, threads, exact});
            },
            "missing"_a, "queries"_a, "features"_a, "first_feature"_a, "expected_bytes"_a, "threads"_a, "exact"_a = std::vector<std::int64_t>{})
        .def(
            "feed",
            [](LetorParser& self, In<std::uint8_t> block) {
                nb::gil_scoped_release release;
                self.feed({reinterpret_cast<const char*>(block.data()), block.size()}, [] {});
            },
            "block"_a)
        .def(
            "feed_while_reading",
            [](LetorParser& self, In<std::uint8_t> block, int descriptor, nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> next) {
                ssize_t size = 0;
                int failure = 0;
                {
                    nb::gil_scoped_release release;
                    self.feed({reinterpret_cast<const char*>(block.data()), block.size()}, [&] {
                        size = read_when_ready(descriptor, next.data(), next.size());
                        failure = errno;
                    });
                }
                if (size < 0) {
                    errno = failure;
                    PyErr_SetFromErrno(PyExc_OSError);
                    throw nb::python_error();
                }
                return size;
            },
            "block"_a, "descriptor"_a, "next"_a)
        .def("finish", &LetorParser::finish, nb::call_guard<nb::gil_scoped_release>())
        .def("take", &taken)
        .def("take_exact", [](LetorParser& self) { return array(self.take_exact()); })
        .def("query_names",
             [](const LetorParser& self) {
                 nb::list names;
                 for (const std::string& name : self.query_names()) names.append(to_bytes(name));
                 return names;
             })
        .def_prop_ro("first_feature", &LetorParser::first_feature);
    m.def("letor_text", &written_rows, "x"_a, "offset"_a.none(), "y"_a, "query"_a, "query_names"_a, "comments"_a.none(), "start"_a.none(), "stop"_a.none(),
          "threads"_a);
}

// ---- matrices ----

void require_permutation(const In<std::int64_t>& order, std::size_t rows) {
    require_length("order", order.size(), rows);
    std::vector<bool> met(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        require_below("order", order.data()[i], rows);
        require(!met[order.data()[i]], "order must not name a row twice");
        met[order.data()[i]] = true;
    }
}

void bind_matrices(nb::module_& m) {
    m.def(
        "summarise_columns",
        [](InMatrix<float> x, int threads) {
            ColumnSummary summary;
            {
                nb::gil_scoped_release release;
                summary = summarise_columns(viewed(x), threads);
            }
            return nb::make_tuple(array(std::move(summary.least)), array(std::move(summary.most)), array(std::move(summary.nans)), summary.first_infinite);
        },
        "x"_a, "threads"_a);
    m.def(
        "lost_by_rounding",
        [](InMatrix<double> x, In<std::int64_t> indptr, bool decimals, int threads) {
            require_starts("indptr", indptr, x.shape(0), false);
            std::vector<std::int64_t> counts;
            {
                nb::gil_scoped_release release;
                counts = lost_by_rounding(viewed(x), spanned(indptr), decimals, threads);
            }
            return array(std::move(counts));
        },
        "x"_a, "indptr"_a, "decimals"_a, "threads"_a);
    m.def(
        "json_matrix",
        [](const nb::bytes& text, std::size_t start) -> nb::object {
            require(start <= text.size(), "start lies beyond the text");
            JsonMatrix found;
            {
                nb::gil_scoped_release release;
                found = read_json_matrix(text.c_str() + start);
            }
            if (found.end == nullptr) return nb::none();
            const std::size_t end = static_cast<std::size_t>(found.end - text.c_str());
            return nb::make_tuple(array(std::move(found.cells)), found.width, end);
        },
        "text"_a, "start"_a);
    m.def(
        "permute_rows",
        [](nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> x, In<std::int64_t> order) {
            require_permutation(order, x.shape(0));
            nb::gil_scoped_release release;
            permute_rows({{x.data(), x.size()}, x.shape(0), x.shape(1)}, spanned(order));
        },
        "x"_a, "order"_a);
    m.def(
        "transpose",
        [](InMatrix<float> x, nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> columns, int threads) {
            require_length("columns", columns.shape(0), x.shape(1));
            require_length("each of columns", columns.shape(1), x.shape(0));
            nb::gil_scoped_release release;
            transpose(viewed(x), threads, {columns.data(), columns.size()});
        },
        "x"_a, "columns"_a, "threads"_a);
    m.def(
        "order_within",
        [](In<std::uint64_t> keys, In<std::int64_t> indptr, int threads) {
            require_starts("indptr", indptr, keys.size(), false);
            Out<std::int64_t> order = empty<std::int64_t>(keys.size());
            nb::gil_scoped_release release;
            order_within(spanned(keys), spanned(indptr), threads, spanned(order));
            return order;
        },
        "keys"_a, "indptr"_a, "threads"_a);
    m.def(
        "linear_scores",
        [](InMatrix<float> x, In<double> weights, int threads) {
            require_length("weights", weights.size(), x.shape(1));
            Out<double> out = empty<double>(x.shape(0));
            nb::gil_scoped_release release;
            linear_scores(viewed(x), spanned(weights), threads, spanned(out));
            return out;
        },
        "x"_a, "weights"_a, "threads"_a);
    m.def(
        "pulled_back",
        [](InMatrix<float> x, In<double> slope, int threads) {
            require_length("slope", slope.size(), x.shape(0));
            std::vector<double> gradient;
            {
                nb::gil_scoped_release release;
                gradient = pulled_back(viewed(x), spanned(slope), threads);
            }
            return array(std::move(gradient));
        },
        "x"_a, "slope"_a, "threads"_a);
    m.def("cubic_terms", &cubic_terms, "dimension"_a);
    m.def(
        "cubic",
        [](InMatrix<float> points, In<double> coefficients, int threads) {
            require_length("coefficients", coefficients.size(), cubic_terms(points.shape(1)));
            Out<double> out = empty<double>(points.shape(0));
            nb::gil_scoped_release release;
            cubic(viewed(points), spanned(coefficients), threads, spanned(out));
            return out;
        },
        "points"_a, "coefficients"_a, "threads"_a);
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
        } catch (const ParseError& e) {
            const nb::object arguments = nb::make_tuple(e.line, to_bytes(e.message));
            PyErr_SetObject(PyExc_ValueError, arguments.ptr());
        } catch (const std::bad_alloc&) {
            PyErr_SetString(PyExc_MemoryError, "there is not enough memory for this call; smaller data or fewer threads take less");
        }
    });
    look_at_signals = &raise_what_handlers_raised;
    bind_measures(m);
    bind_lines(m);
    bind_values(m);
    bind_objectives(m);
    bind_listwise(m);
    bind_separation(m);
    bind_planes(m);
    bind_boosting(m);
    bind_trees(m);
    bind_letor(m);
    bind_matrices(m);
}
